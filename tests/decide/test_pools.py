"""Pools of several systems against sets of plain Python, and what to judge next against each judgment tried."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import FastndcgWarning, InputError, InputTypeError

Runs = dict[str, dict[str, dict[str, float]]]
of_query = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3).map(float), max_size=6)
runs = st.dictionaries(
    st.sampled_from(["x", "y", "z"]), st.dictionaries(st.sampled_from(["1", "2", "3"]), of_query), min_size=1
)


def rankings_of(run, judged):
    queries = list(run)
    pairs = [(query, document) for query in queries for document in run[query]]
    return fn.Rankings.from_groups(
        [len(run[query]) for query in queries],
        np.ones(len(pairs), np.int64),
        np.array([run[query][document] for query, document in pairs], np.float64),
        is_judged=np.array([pair in judged for pair in pairs], np.bool_),
        doc_ids=np.array([document for _, document in pairs], dtype="U1"),
        query_ids=np.array(queries, dtype="U1"),
    )


@settings(deadline=None, max_examples=50)
@given(
    runs=runs,
    judged=st.sets(st.tuples(st.sampled_from("123"), st.sampled_from("abcdefgh"))),
    depth=st.integers(1, 5),
)
def test_pool_is_the_union_of_the_first(runs, judged, depth):
    expected = {}
    for name, run in runs.items():
        for query, documents in run.items():
            order = sorted(documents, key=lambda document: (-documents[document], document))
            for rank, document in enumerate(order[:depth], 1):
                names, best = expected.get((query, document), ([], rank))
                expected[query, document] = ([*names, name], min(best, rank))
    table = fn.pool({name: rankings_of(run, judged) for name, run in runs.items()}, depth)
    found = table.to_pylist()
    assert len(found) == len(expected)
    for row in found:
        pair = row["query"], row["document"]
        assert (row["systems"], row["best_rank"]) == expected[pair]
        assert row["judged"] == (pair in judged)
    order = list(dict.fromkeys(query for run in runs.values() for query in run))
    keys = [(order.index(row["query"]), row["best_rank"], row["document"]) for row in found]
    assert keys == sorted(keys)


def test_ids_of_other_kinds_and_faults():
    numbers = fn.Rankings.from_qrels_run({1: {7: 1, 9: 0}}, {1: {7: 0.5, 8: 0.4}})
    words = fn.Rankings.from_qrels_run({"1": {"7": 1}}, {"1": {"7": 0.5, "9": 0.6}})
    rows = fn.pool({"n": numbers, "w": words}).to_pylist()
    assert [(row["document"], row["systems"], row["judged"]) for row in rows] == [
        ("7", ["n", "w"], True),
        ("9", ["w"], False),
        ("8", ["n"], False),
    ]
    assert fn.pool({"n": numbers})["document"].to_pylist() == [7, 8]
    with pytest.warns(FastndcgWarning, match=r"highest grade is 1 .* 4 .* grades=\{0: 0, 1: 4\}"):
        fn.pool({"n": numbers, "wide": fn.Rankings.from_qrels_run({1: {7: 4}}, {1: {7: 0.5}})})
    mapped = {"qid": [1, 1], "doc_id": [7, 8], "grade": [0, 1]}
    assert list(fn.Rankings.from_qrels_run(mapped, {1: [8, 7]}, grades={0: 0, 1: 4}).relevance) == [4, 0]
    with pytest.raises(InputError, match="no document ids"):
        fn.pool({"a": fn.Rankings.from_lists([[1, 0]])})
    with pytest.raises(InputError, match='"a" have a query id twice'):
        fn.pool({"a": fn.Rankings.from_groups([1, 1], [1, 0], [1, 2], query_ids=[3, 3], doc_ids=["d", "e"])})
    with pytest.raises(InputTypeError, match="mapping of names to Rankings"):
        fn.pool(numbers)
    with pytest.raises(InputTypeError, match="a mapping of dict"):
        fn.pool({"a": {}})
    with pytest.raises(InputError, match="no systems"):
        fn.pool({})
    with pytest.raises(InputError, match="depth=0"):
        fn.pool({"n": numbers}, 0)
    with pytest.raises(InputTypeError, match="depth=1.5"):
        fn.pool({"n": numbers}, 1.5)
