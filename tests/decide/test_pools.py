"""Pools of several systems against sets of plain Python, and what to judge next against each judgment tried."""

import json
from pathlib import Path

import commands
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

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


# ---- judge_next ----

Grades = dict[str, dict[str, int]]


def moves_by_trying(qrels, runs, measure):
    """The largest change of the difference of means, of every unjudged document and grade, by evaluation."""

    def difference(judged):
        first, second = (
            np.mean(np.nan_to_num(fn.evaluate(judged, run, measure)[measure])) for run in runs.values()
        )
        return float(second - first)

    levels = {0} | {grade for of in qrels.values() for grade in of.values()}
    found = {}
    for query in qrels:
        for document in {document for run in runs.values() for document in run[query]} - {*qrels[query]}:
            changed = [qrels | {query: qrels[query] | {document: grade}} for grade in levels]
            found[query, document] = max(abs(difference(each) - difference(qrels)) for each in changed)
    return {pair: move for pair, move in found.items() if move > 1e-11}


@pytest.mark.parametrize(
    "measure",
    [
        "nDCG@3", "nDCG(ideal='scored')@3", "nDCG", "DCG@4", "P@2", "RBP(p=0.8)", "CG", "AP", "AP@3", "RR",
        "ERR@4", "Judged@3", "R@2",
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", [0, 1])
def test_moves_are_those_of_each_judgment_tried(measure, seed):
    rng = np.random.default_rng(seed)
    documents = list("abcdefgh")
    qrels = {
        str(query): {str(each): int(rng.integers(0, 3)) for each in rng.permutation(documents)[:3]}
        for query in range(5)
    }
    runs = {
        name: {query: [*map(str, rng.permutation(documents)[:6])] for query in qrels}
        for name in ("old", "new")
    }
    for of in qrels.values():
        of["a"] = 2
    for run in runs.values():
        for returned in run.values():
            returned[-1] = "a" if "a" not in returned else returned[-1]
    systems = {name: fn.Rankings.from_qrels_run(qrels, run) for name, run in runs.items()}
    expected = moves_by_trying(qrels, runs, measure)
    rows = fn.judge_next(systems, measure, n=1000).to_pylist()
    found = {(row["query"], row["document"]): row["move"] for row in rows}
    assert found.keys() == expected.keys()
    assert [found[pair] for pair in found] == pytest.approx([expected[pair] for pair in found])
    moves = [round(row["move"], 12) for row in rows]
    assert moves == sorted(moves, reverse=True)
    for row in rows:
        for name, run in runs.items():
            listed = run[row["query"]]
            rank = listed.index(row["document"]) + 1 if row["document"] in listed else None
            assert row[f"rank_{name}"] == rank
    assert fn.judge_next(systems, measure, n=3).to_pylist() == rows[:3]
    turned = {
        name: fn.Rankings.from_qrels_run(qrels, dict(reversed(run.items()))) for name, run in runs.items()
    }
    assert fn.judge_next(turned, measure, n=1000).to_pylist() == rows, "repeatable"


def big(n=60):
    rng = np.random.default_rng(3)
    qrels = {"qid": [], "doc_id": [], "grade": [], "lang": []}
    runs = {"old": {}, "new": {}}
    for query in range(n):
        for document in rng.permutation(30)[:6]:
            values = query, f"d{document}", int(rng.integers(0, 4)), "de" if query < 50 else "fr"
            for column, value in zip(qrels.values(), values, strict=True):
                column.append(value)
        for run in runs.values():
            run[query] = [f"d{each}" for each in rng.permutation(30)[:20]]
    return qrels, runs


def test_slices_share_the_budget_and_ties_of_scores_share_ranks():
    qrels, runs = big()
    systems = {name: fn.Rankings.from_qrels_run(qrels, run, keep="lang") for name, run in runs.items()}
    whole = fn.judge_next(systems, "nDCG@10", n=40).to_pylist()
    shared = fn.judge_next(systems, "nDCG@10", n=40, by="lang").to_pylist()
    assert sum(row["lang"] == "fr" for row in shared) == 20
    assert {(row["query"], row["document"]) for row in shared if row["lang"] == "de"} == {
        (row["query"], row["document"])
        for row in [
            row for row in fn.judge_next(systems, "nDCG@10", n=4000).to_pylist() if row["query"] < 50
        ][:20]
    }
    assert len(whole) == 40
    tied = {name: each.with_scores(np.zeros(each.n_docs)) for name, each in systems.items()}
    rows = fn.judge_next(tied, "P@10", n=4000).to_pylist()
    assert rows
    assert all(None in (row["rank_old"], row["rank_new"]) for row in rows), "both rank all others alike"


@pytest.mark.parametrize(
    "measure", ["DCG(gain='exp2')@5", "CG@4", "P(rel=2)@7", "RBP(p=0.5)@9", "DCG(ties='input')"]
)
def test_sums_are_moved_as_evaluation_says(measure, monkeypatch):
    qrels, runs = big()
    systems = {name: fn.Rankings.from_qrels_run(qrels, run) for name, run in runs.items()}
    systems = {
        name: each.with_scores(np.floor(np.asarray(each.scores) / 3)) for name, each in systems.items()
    }
    at_once = fn.judge_next(systems, measure, n=4000).to_pylist()
    monkeypatch.setattr("fastndcg.decide.pools._is_sum", lambda _: False)
    tried = fn.judge_next(systems, measure, n=4000).to_pylist()
    moves, others = (
        {(row["query"], row["document"]): row["move"] for row in rows} for rows in (at_once, tried)
    )
    assert moves.keys() == others.keys()
    assert [moves[pair] for pair in others] == pytest.approx([*others.values()])


def test_judge_next_refuses_what_has_no_answer():
    qrels, runs = big(5)
    systems = {name: fn.Rankings.from_qrels_run(qrels, run) for name, run in runs.items()}
    with pytest.raises(InputError, match="two systems; got 1"):
        fn.judge_next({"old": systems["old"]}, "P@1")
    with pytest.raises(InputError, match="different queries"):
        fn.judge_next({"old": systems["old"], "new": systems["new"][1:]}, "P@1")
    with pytest.raises(fn.MeasureError, match="one measure"):
        fn.judge_next(systems, ["P@1", "P@2"])
    with pytest.raises(fn.ColumnError, match='no column "lang"'):
        fn.judge_next(systems, "P@1", by="lang")
    with pytest.raises(InputError, match="n=0"):
        fn.judge_next(systems, "P@1", 0)


def test_judge_next_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qrels, runs = big(20)
    pa_table = pa.table(qrels)
    csv.write_csv(pa_table, "qrels.csv")
    for name, run in runs.items():
        Path(f"{name}.run").write_text(
            "".join(
                f"{query} Q0 {each} {rank} {-rank} me\n"
                for query, of in run.items()
                for rank, each in enumerate(of)
            )
        )
    given = ("judge-next", "--qrels", "qrels.csv", "old.run", "new.run", "-n", "7", "--by", "lang")
    done = commands.run(*given, "--format", "json")
    assert done.exit_code == 0, done.stderr
    systems = {name: fn.Rankings.from_qrels_run(qrels, run, keep="lang") for name, run in runs.items()}
    expected = fn.judge_next(systems, "nDCG@10", 7, by="lang").to_pylist()
    keys = ("document", "grade", "rank_old", "rank_new")
    rows = json.loads(done.stdout)["judge"]
    assert [[row[key] for key in keys] for row in rows] == [[row[key] for key in keys] for row in expected]
    assert [row["move"] for row in rows] == pytest.approx([row["move"] for row in expected])
    lines = commands.run(*given, "--format", "csv").stdout.splitlines()
    assert lines[0] == "query,document,lang,move,grade,rank_old,rank_new"
    assert len(lines) == 8
    assert commands.run("judge-next", "--qrels", "qrels.csv", "old.run").exit_code == 2
    assert "document" in commands.run(*given).stdout
