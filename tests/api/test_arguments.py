"""Names of arguments that people type for others are answered with what exists, not with the nearest spelling."""

import pytest

import fastndcg as fn
from fastndcg.errors import suggest

pytestmark = pytest.mark.pure

SYSTEMS = {"a": fn.Rankings.from_lists([[1, 0]]), "b": fn.Rankings.from_lists([[0, 1]])}
SCORES = fn.evaluate(SYSTEMS["a"], "RR")
COMPARED = fn.compare(SYSTEMS, "RR")


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
        (lambda: fn.Rankings.from_offsets([0, 1], [1], [1.0], sample_weight=[1]), "from_offsets has no argument sample_weight=", "weight"),
        (lambda: fn.read_trec(judgments="q", run="r"), "read_trec has no argument judgments=", "qrels"),
        (lambda: fn.report(SYSTEMS, "p.html", metrics="RR"), "report has no argument metrics=", "measures"),
        (lambda: SCORES.by("query_id", ci=0.9), "by has no argument ci=", "confidence"),
        (lambda: SCORES.summary(alpha=0.9), "summary has no argument alpha=", "confidence"),
        (lambda: SCORES.worst("RR", top_k=3), "worst has no argument top_k=", "n"),
        (lambda: COMPARED.movers("RR", k=3), "movers has no argument k=", "n"),
        (lambda: COMPARED.no_worse_than("a", epsilon=0.1), "no_worse_than has no argument epsilon=", "margin"),
        (lambda: fn.tie_range(SYSTEMS["a"], metrics="RR"), "tie_range has no argument metrics=", "measures"),
        (lambda: fn.match_conventions(SYSTEMS["a"], metric="RR"), "match_conventions has no argument metric=", "measure"),
        (lambda: fn.nDCG(label_gain=[0, 1]), "nDCG has no parameter 'label_gain'", "gain"),
    ],
)  # fmt: skip
def test_other_names_of_arguments(call, given, expected):
    with pytest.raises(fn.FastndcgError, match=f'^{given}.*Did you mean "{expected}"\\?$'):
        call()


def test_more_values_than_are_taken_by_position():
    said = "tie_range takes rankings, measures by position, and 3 values are given; .*threads. Join"
    with pytest.raises(fn.InputTypeError, match=said):
        fn.tie_range({"q": {"a": 1}}, {"q": ["a"]}, "RR")
    with pytest.raises(fn.InputTypeError, match="worst takes self, measure, n by position, and 4 "):
        SCORES.worst("RR", 1, 0.9)


def test_several_names_are_proposed_and_a_near_one_where_none_means_the_same():
    assert suggest("equivalence", ["margin", "no_worse_than"]) == ' Did you mean "no_worse_than" or "margin"?'
    assert suggest("metric", ["metrics"]) == ' Did you mean "metrics"?'
