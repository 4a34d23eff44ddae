"""Names of arguments that people type for others are answered with what exists, not with the nearest spelling."""

import pytest

import fastndcg as fn
from fastndcg.errors import suggest

pytestmark = pytest.mark.pure

SYSTEMS = {"a": fn.Rankings.from_lists([[1, 0]]), "b": fn.Rankings.from_lists([[0, 1]])}


@pytest.mark.parametrize(
    ("call", "given", "expected"),
    [
        (lambda: fn.evaluate(SYSTEMS["a"], metrics="RR"), "evaluate has no argument metrics=", "measures"),
        (lambda: fn.evaluate(SYSTEMS["a"], metric="RR"), "evaluate has no argument metric=", "measures"),
        (lambda: fn.evaluate(SYSTEMS["a"], "nDCG", k=5), "evaluate has no argument k=", "cutoff"),
        (lambda: fn.evaluate({}, "RR", qid="q"), "evaluate has no argument qid=", "query"),
        (lambda: fn.evaluate({}, "RR", n_jobs=2), "evaluate has no argument n_jobs=", "threads"),
        (lambda: fn.compare(SYSTEMS, metrics="RR"), "compare has no argument metrics=", "measures"),
        (lambda: fn.compare(SYSTEMS, "RR", ci=0.9), "compare has no argument ci=", "confidence"),
        (lambda: fn.explain(SYSTEMS["a"], metric="RR"), "explain has no argument metric=", "measure"),
        (lambda: fn.ndcg([1], [1.0], qid=[1]), "ndcg has no argument qid=", "query_ids"),
        (lambda: fn.ndcg([1], [1.0], gains="exp2"), "ndcg has no argument gains=", "gain"),
        (lambda: fn.ndcg([1], [1.0], top_k=1), "ndcg has no argument top_k=", "k"),
        (lambda: fn.Rankings.from_arrow({}, docid="d"), "from_arrow has no argument docid=", "doc_id"),
        (lambda: fn.nDCG(label_gain=[0, 1]), "nDCG has no parameter 'label_gain'", "gain"),
    ],
)
def test_other_names_of_arguments(call, given, expected):
    with pytest.raises(fn.FastndcgError, match=f'^{given}.*Did you mean "{expected}"\\?$'):
        call()


def test_gains_of_words_are_gain():
    with pytest.raises(fn.MeasureError, match="Words and functions are gain="):
        fn.nDCG(gains="exp2")


def test_several_names_are_proposed_and_a_near_one_where_none_means_the_same():
    assert suggest("equivalence", ["margin", "no_worse_than"]) == ' Did you mean "no_worse_than" or "margin"?'
    assert suggest("metric", ["metrics"]) == ' Did you mean "metrics"?'
