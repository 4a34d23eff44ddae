"""Pools of runs of every shape against sets of plain Python."""

import json
import os
import subprocess
import sys
from pathlib import Path

import commands
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import ColumnError, FastndcgWarning, InputError, InputTypeError, SourceError

of_query = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3).map(float), max_size=6)
runs = st.dictionaries(
    st.sampled_from(["x", "y", "z"]), st.dictionaries(st.sampled_from("123"), of_query), min_size=1
)
grades = st.dictionaries(
    st.sampled_from("123"), st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 2))
)


@settings(deadline=None, max_examples=80)
@given(runs=runs, qrels=grades, depth=st.integers(1, 5))
@pytest.mark.filterwarnings("ignore:.*in common:fastndcg.FastndcgWarning")
def test_pool_is_the_union_of_the_first(runs, qrels, depth):
    expected = {}
    for name, run in runs.items():
        for query, documents in run.items():
            order = sorted(documents, key=lambda document: (documents[document], document), reverse=True)
            for rank, document in enumerate(order[:depth], 1):
                names, best = expected.get((query, document), ([], rank))
                expected[query, document] = ([*names, name], min(best, rank))
    judged = {(query, doc) for query, docs in qrels.items() for doc, grade in docs.items() if grade >= 0}
    found = fn.pool(runs, depth, qrels).to_pylist()
    assert len(found) == len(expected)
    for row in found:
        pair = row["query"], row["document"]
        assert (row["systems"], row["best_rank"]) == expected[pair]
        assert row["judged"] == (pair in judged)
    order = list(dict.fromkeys(query for run in runs.values() for query in run))
    keys = [(order.index(row["query"]), row["best_rank"], row["document"]) for row in found]
    assert keys == sorted(keys)


def test_every_shape_of_a_run_is_the_same(tmp_path):
    run = {"1": {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1}, "2": {"b": 3.0}}
    rows = [(query, document, score) for query, scores in run.items() for document, score in scores.items()]
    table = dict(zip(("qid", "docid", "score"), map(list, zip(*rows, strict=True)), strict=True))
    (tmp_path / "run.txt").write_text("".join(f"{q} Q0 {d} 0 {score} me\n" for q, d, score in rows))
    (tmp_path / "run.json").write_text(json.dumps(run))
    pq.write_table(pa.table(table), tmp_path / "run.parquet")
    judgments = {"1": {"b": 0, "c": -1}, "9": {"z": 1}}
    expected = fn.pool({"r": run}, 3, judgments)
    assert [tuple(row.values()) for row in expected.to_pylist()] == [
        ("1", "a", 1, ["r"], False),
        ("1", "c", 2, ["r"], False),  # tied with b: the higher id first, as trec_eval has them
        ("1", "b", 3, ["r"], True),
        ("2", "b", 1, ["r"], False),
    ]
    shapes = (
        table, pa.table(table), pd.DataFrame(table), pl.DataFrame(table), pl.LazyFrame(table),
        tmp_path / "run.txt", str(tmp_path / "run.json"), tmp_path / "run.parquet",
        {"1": ["a", "c", "b", "d"], "2": ["b"]},
    )  # fmt: skip
    for shape in shapes:
        assert fn.pool({"r": shape}, 3, judgments) == expected
    distances = {"1": {"a": 1, "c": 2, "b": 3, "d": 4}, "2": {"b": 1}}
    assert fn.pool({"r": distances}, 3, judgments, ascending=True) == expected
    renamed = pd.DataFrame(table).rename(columns={"qid": "frage", "score": "wert"})
    assert fn.pool({"r": renamed}, 3, judgments, query="frage", score="wert") == expected
    words = pa.table({"qid": ["1"], "docid": ["b"], "relevance": ["ja"]})
    assert fn.pool({"r": run}, 3, words, grades={"ja": 1}) == expected


def test_ids_of_other_kinds():
    numbers = {1: {9: 0.5, 10: 0.5, 8: 0.7}}
    assert fn.pool({"none": {}, "n": numbers}, 2)["document"].to_pylist() == [8, 10], "10 is above 9"
    words = pa.table({"qid": pa.array(["1"]), "docid": pa.array([b"9"]), "score": [1]})
    rows = fn.pool({"n": numbers, "w": words}, 2, {1: [10]}).to_pylist()
    assert [(row["query"], row["document"], row["systems"], row["judged"]) for row in rows] == [
        ("1", "8", ["n"], False),
        ("1", "9", ["n", "w"], False),
    ], '"9" is above "10"'
    small = pa.table({"qid": pa.array([1], pa.int8()), "docid": pa.array([10], pa.uint64()), "score": [1]})
    assert fn.pool({"n": numbers, "s": small}, 1).to_pylist()[1]["document"] == 10
    assert fn.pool({7: numbers})["systems"].to_pylist()[0] == ["7"]
    assert [len(fn.pool(runs)) for runs in ({"a": {}}, {"a": {"q": {}}, "b": {}})] == [0, 0]
    missing = fn.pool({"a": {"q": {"d": np.nan, "e": -np.inf}}}, nan="last")
    assert missing["document"].to_pylist() == ["e", "d"]


ONE = {"a": {"q": {"d": 1.0}}}


@pytest.mark.parametrize(
    ("given", "options", "error", "said"),
    [
        (fn.Rankings.from_lists([[1, 0]]), {}, InputTypeError, "runs is a Rankings; expected a mapping"),
        (["a.run"], {}, InputTypeError, "runs is a list; expected a mapping"),
        ({}, {}, InputError, "no runs to pool"),
        ({1: {}, "1": {}}, {}, InputError, "two runs have the same name"),
        ({"a": fn.Rankings.from_lists([[1, 0]])}, {}, InputTypeError, 'run "a" is a Rankings; expected a dict'),
        ({"a": {"q": ["x", "y", "x"]}}, {}, InputError, 'run "a": document "x" of query "q" appears twice'),
        ({"q": {"d": 0.5}}, {}, InputTypeError, "run \"q\"\\['d'\\] is a float"),
        ({"a": 3}, {}, InputTypeError, 'run "a" is a int'),
        ({"a": {"q": {"d": np.nan}}}, {}, InputError, 'score nan of document "d".*nan="last"'),
        ({"a": pd.DataFrame({"qid": [1], "docid": [2]})}, {}, ColumnError, 'run "a": no column has a usual name'),
        ({"a": Path("none.txt")}, {}, SourceError, "none.txt does not exist"),
        (ONE, {"depth": 0}, InputError, "depth=0"),
        (ONE, {"depth": 1.5}, InputTypeError, r"depth=1\.5"),
        (ONE, {"cutoff": 3}, InputTypeError, r"pool has no argument cutoff=; it takes runs, depth, qrels"),
        (ONE, {"qrels": {"q": {"d": "good"}}}, InputTypeError, "qrels holds values that are not numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_pooled_is_refused(given, options, error, said):
    with pytest.raises(error, match=said):
        fn.pool(given, **options)


def test_judgments_of_others_are_a_warning():
    with pytest.warns(FastndcgWarning, match='no query in common: "0q" there, "q" here'):
        fn.pool(ONE, qrels={"0q": {"d": 1}})
    with pytest.warns(FastndcgWarning, match='no document in common: "D" there, "d" here'):
        fn.pool(ONE, qrels={"q": {"D": 1}})


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("runs", "old"):
        Path(folder).mkdir()
        Path(folder, "bm25.txt").write_text("1 Q0 a 1 3 x\n1 Q0 b 2 2 x\n1 Q0 c 3 2 x\n")
    Path("runs/dense.txt").write_text("1 Q0 b 1 9 x\n")
    Path("qrels").write_text("1 0 b 1\n")
    expected = fn.pool({"bm25": "runs/bm25.txt", "dense": "runs/dense.txt"}, 2, "qrels").to_pylist()
    runs = "runs/bm25.txt runs/dense.txt"  # a shell expands patterns
    line = f"pool {runs} --depth 2 --qrels qrels"
    assert commands.facts(line)["pool"] == expected
    assert commands.only_line(commands.run(line).stderr) == "3 documents of 2 runs, 1 judged"
    done = commands.run(f"pool {runs} old/bm25.txt --depth 1 --format csv")
    assert done.stdout.splitlines() == [
        "query,document,best_rank,systems,judged",
        '1,a,1,"runs/bm25.txt, old/bm25.txt",False',
        "1,b,1,dense,False",
    ]
    for words, code in {
        "pool": 2, "pool runs": 3, f"pool {runs} --depth 0": 2, f"pool {runs} runs/bm25.txt": 2, "pool - --qrels -": 2,
        "pool nowhere": 3,
        f"pool {runs} --qrels nowhere": 3, f"pool {runs} --query q --score s": 0,
    }.items():  # fmt: skip
        pq.write_table(pa.table({"qid": [1], "docid": [1], "score": [1]}), "table.parquet")
        assert commands.run(*words.split()).exit_code == code, words


def test_a_closed_pipe(tmp_path):
    rows = "".join(f"{query} Q0 d{place} 1 {-place} x\n" for query in range(300) for place in range(20))
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(rows)
    words = [sys.executable, "-m", "fastndcg", "pool", *map(str, sorted(tmp_path.iterdir()))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141
