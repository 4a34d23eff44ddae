"""Several runs by name, in `evaluate` and `compare`: told from one run by the shape of the data."""

from collections import namedtuple

import numpy as np
import pandas as pd
import pytest

import fastndcg as fn

pytestmark = pytest.mark.pure

QRELS = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
RUN = {"q1": {"b": 0.5, "x": 0.9}, "q2": {"c": 1.0}}
OTHER = {"q1": {"b": 0.9, "x": 0.5}, "q2": {"c": 1.0}}
ROWS = [(query, doc, score) for query, docs in RUN.items() for doc, score in docs.items()]
FRAME = pd.DataFrame(ROWS, columns=["query_id", "doc_id", "score"])
EXPECTED = fn.evaluate(QRELS, RUN, ["RR", "nDCG@2"]).values.tobytes()


def test_paths_and_lazy_frames_are_runs(tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "bm25 of today", index=False)
    monkeypatch.chdir(tmp_path)
    polars = pytest.importorskip("polars")
    runs = {
        "path": tmp_path / "bm25 of today",
        "text": "bm25 of today",
        "lazy": polars.from_pandas(FRAME).lazy(),
        "tuples": ROWS,
    }
    for scores in fn.evaluate(QRELS, runs, ["RR", "nDCG@2"]).values():
        assert scores.values.tobytes() == EXPECTED
    with pytest.raises(fn.SourceError, match=r"e5\.trec does not exist"):
        fn.evaluate(QRELS, {"e5": "e5.trec"}, "RR")


@pytest.mark.parametrize(
    "run",
    [
        {"q1": [("x", 0.9), ("b", 0.5)], "q2": []},
        {"q1": np.array(["x", "b"]), "q2": np.array(["c"])},
        {
            "q1": {"x": 0.9, "b": 0.5},
            "q2": ["c"],
        },  # scores of one query are no ranks, though others are lists
        {
            "q1": [
                {"query_id": "q1", "doc_id": "x", "score": 0.9},
                {"query_id": "q1", "doc_id": "b", "score": 0.5},
            ]
        },
        {"q1": {"x": np.float32(0.9), "b": np.float32(0.5)}, "q2": {}},
        {"q1": ("x", "b")},
        {"q1": {"x": 2, "b": 1}, "q2": {}},
    ],
)
def test_documents_of_queries_are_one_run(run):
    assert fn.evaluate(QRELS, run, "RR")["RR"][0] == 0.5


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            {"q1": {"a": 1.0}, "bm25": RUN},
            r"run\['q1'\] has documents, and run\['bm25'\] is a run; expected one run",
        ),
        ({1: RUN, "1": RUN}, "two runs with the same name"),
        ({"bm25": {"q1": {"a": "x"}}}, r"^run\['bm25'\] holds values that are not numbers"),
    ],
)
def test_what_is_neither_is_refused(runs, message):
    with pytest.raises(fn.FastndcgError, match=message):
        fn.evaluate(QRELS, runs, "RR")


def test_warnings_name_the_run():
    with pytest.warns(fn.FastndcgWarning, match=r"^run\['none'\] has no documents"):
        fn.evaluate(QRELS, {"bm25": RUN, "none": {"q1": {}}}, "RR")


def test_a_convention_holds_for_each_run():
    tied = {"q1": {"b": 0.5, "x": 0.5}, "q2": {"c": 1.0}}
    for convention in ("trec_eval", "ranx", "ir_measures"):
        one = fn.evaluate(QRELS, tied, "nDCG@1", convention=convention)
        several = fn.evaluate(QRELS, {"a": tied}, "nDCG@1", convention=convention)["a"]
        assert several.values.tobytes() == one.values.tobytes()
        assert several.mean() == one.mean()


def test_judgments_that_can_be_read_once_serve_all_runs():
    qrel = namedtuple("qrel", "query_id doc_id relevance")
    judged = iter([qrel("q1", "b", 2), qrel("q2", "c", 1), qrel("q1", "a", 1)])
    assert {
        name: each.mean()["RR"] for name, each in fn.evaluate(judged, {"a": RUN, "b": OTHER}, "RR").items()
    } == {
        "a": 0.75,
        "b": 1.0,
    }


def test_compare_joins_runs():
    runs = {"bm25": RUN, "e5": OTHER}
    expected = fn.compare(fn.evaluate(QRELS, runs, "RR")).text()
    assert fn.compare(QRELS, runs, "RR").text() == expected
    assert fn.compare(QRELS, runs, measures=["RR"]).text() == expected
    assert fn.compare(qrels=QRELS, run=runs, measures="RR").text() == expected
    with pytest.raises(fn.InputTypeError, match=r"run is one run; compare takes several by name"):
        fn.compare(QRELS, RUN, "RR")
    with pytest.raises(fn.InputTypeError, match=r"no measures are given; they come last"):
        fn.compare(QRELS, runs)
    with pytest.raises(fn.InputTypeError, match=r"take the place of systems"):
        fn.compare(runs, qrels=QRELS, measures="RR")


def test_explain_joins_runs():
    joined = fn.Rankings.from_qrels_run(QRELS, RUN)
    expected = fn.explain(joined, "nDCG@2", "q1").to_arrow()
    assert fn.explain(QRELS, RUN, "nDCG@2", "q1").to_arrow().equals(expected)
    assert fn.explain(qrels=QRELS, run=RUN, measure="nDCG@2", query="q1").to_arrow().equals(expected)
    assert fn.explain(joined, measure="nDCG@2", query="q1").to_arrow().equals(expected)
    assert fn.explain(joined, "nDCG@2", query="q1").to_arrow().equals(expected)
    with pytest.raises(fn.InputTypeError, match="a measure and a query are needed"):
        fn.explain(joined, "nDCG@2")
