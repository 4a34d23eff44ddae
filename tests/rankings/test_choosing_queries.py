"""`rankings[part]`: a slice, a mask, a list of ids. Each query has the values that it has among all."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastndcg as fn

pytestmark = pytest.mark.pure


def rankings(ids=("q1", "q7", "q3"), **columns):
    return fn.Rankings.from_offsets(
        [0, 2, 2, 5],
        [1, 0, 3, 0, 1],
        [0.5, 0.5, 0.1, 0.7, 0.7],
        query_ids=list(ids),
        judged=([0, 3, 4, 7], [1, 0, 2, 1, 3, 0, 1]),
        is_judged=[True, True, True, False, True],
        doc_ids=list("abcde"),
        weight=[1.0, 2.0, 3.0],
        propensity=[0.5, 0.6, 0.7, 0.8, 0.9],
        queries={"country": ["de", "fr", "de"]},
        **columns,
    )


CHOSEN = {
    "mask": np.array([True, False, True]),
    "list of bools": [True, False, True],
    "Series of bools": pd.Series([True, False, True], index=[7, 8, 9]),
    "Arrow bools": pa.array([True, False, True]),
    "ids": ["q1", "q3"],
    "tuple of ids": ("q1", "q3"),
    "Arrow ids": pa.array(["q1", "q3"]),
    "Series of ids": pd.Series(["q1", "q3"]),
}


@pytest.mark.parametrize("kind", CHOSEN)
@pytest.mark.parametrize("measure", ["nDCG", "AP", "DCG(ips=True)", "infAP", "nDCG(ties='input')@1"])
def test_queries_have_the_values_that_they_have_among_all(kind, measure):
    whole = rankings()
    part = whole[CHOSEN[kind]]
    expected = fn.evaluate(whole, measure)
    scores = fn.evaluate(part, measure)
    assert scores.values.tobytes() == expected.values[:, [0, 2]].tobytes()
    assert scores.queries.to_pydict() == expected.queries.take([0, 2]).to_pydict()
    assert part.doc_ids.to_pylist() == list("abcde")
    assert not any(
        column.flags.writeable for column in (part.offsets, part.relevance, part.scores, part.weight)
    )


def test_ids_give_the_order_and_numbers_are_their_text():
    assert rankings()[["q3", "q1", "q7"]].lengths.tolist() == [3, 2, 0]
    assert rankings((1, 2, 3))[["3", "1"]].lengths.tolist() == [3, 2]
    assert rankings(("1", "2", "3"))[[3, 1]].lengths.tolist() == [3, 2]
    assert fn.Rankings.from_lists([[1], [1, 0]])[[1]].lengths.tolist() == [2]
    for none in ([], np.zeros(3, bool)):
        assert rankings()[none].n_queries == 0


def test_intents_go_with_their_queries():
    qrels = {"q1": {"a": {"x": 1}, "b": {"y": 1}}, "q2": {"c": {"z": 1}, "d": {"x": 1, "z": 1}}}
    run = {"q1": ["b", "e", "a"], "q2": ["d", "c"]}
    whole = fn.Rankings.from_qrels_run(qrels, run, intents=True)
    expected = fn.evaluate(whole, ["alpha_nDCG", "ERR_IA@2"]).values
    reverse = fn.evaluate(whole[["q2", "q1"]], ["alpha_nDCG", "ERR_IA@2"]).values
    assert reverse.tobytes() == expected[:, ::-1].tobytes()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("q1", "a str does not choose queries; expected a slice"),
        (5, "a int does not choose queries; expected a slice"),
        ([True, False], "the mask has 2 values for 3 queries"),
        (["q1", "q9"], r"query 'q9' is not among 3 queries; see rankings.query_ids"),
        (["q1", "q1"], "an id appears twice in the list"),
        ([2.5], "query 2.5 is not among 3 queries"),
        ({"q1", "q3"}, "a set does not choose queries"),
        (np.ones((3, 3), bool), "a ndarray does not choose queries"),
        (slice(0, 3, 2), "expected a slice of step 1"),
    ],
)
def test_what_names_no_queries_is_refused(part, message):
    with pytest.raises(fn.FastndcgError, match=message):
        rankings()[part]
