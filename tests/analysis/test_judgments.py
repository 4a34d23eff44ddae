"""Judgments: each check finds what was put into clean data, through every door, and nothing else; pools against plain Python."""

import contextlib
import json
import os
from pathlib import Path

import commands
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from commands import facts
from hypothesis import given, settings
from hypothesis import strategies as st

import fastndcg as fn
from fastndcg.errors import FastndcgWarning

N = 60  # queries
QRELS, RUN = {"q": {"a": 1}}, {"q": {"a": 0.5}}


def clean():
    """Judgments of five documents of each query, of which a run returns four, and four others."""
    grid = [(query, place, f"q{query}", f"d{query}-{place}") for query in range(N) for place in range(9)]
    judged = [
        (name, document, (place + query) % 3, ("de", "fr")[query % 2])
        for query, place, name, document in grid
        if place < 5
    ]
    returned = [(name, document, 9.5 - place) for _, place, name, document in grid if place]
    qrels = ("qid", "doc_id", "grade", "lang"), judged
    return [
        dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        for names, rows in (qrels, (("qid", "doc_id", "score"), returned))
    ]


def found(qrels, run, *words, **options):
    """What was found of all, by check: what fails or is a caution."""
    rows = fn.check_judgments(qrels, run, *words, **options).to_pylist()
    assert all(0 <= row["count"] <= max(row["total"], row["count"]) for row in rows)
    return {row["check"]: row for row in rows if row["verdict"] != "holds"}


def test_clean_judgments_hold_and_shares_are_told_by_slice_and_system():
    qrels, run = clean()
    other = {
        name: [value for value, at in zip(run[name], range(len(run[name])), strict=True) if at % 8 < 4]
        for name in run
    }
    corpus = {"doc_id": sorted({*qrels["doc_id"], *run["doc_id"]})}
    table = fn.check_judgments(qrels, {"a": run, "b": other}, corpus, by="lang")
    odd = [(row["system"], row["check"]) for row in table.to_pylist() if row["verdict"] != "holds"]
    assert {*odd} == {("a", f"judged at {cutoff}") for cutoff in (5, 10, 20)}, "b has higher shares"
    shares = {
        (row["system"], row["slice"], row["check"]): row
        for row in table.to_pylist()
        if row["share"] is not None
    }
    assert len(shares) == 2 * 3 * 3
    assert shares["a", None, "judged at 5"]["share"] == pytest.approx(4 / 5)
    assert shares["a", "lang=de", "judged at 20"]["count"] == N // 2 * 4
    assert shares["a", "lang=de", "judged at 20"]["total"] == N // 2 * 8
    assert shares["b", "lang=fr", "judged at 5"]["count"] == N // 2 * 4
    joined = fn.evaluate(fn.Rankings.from_qrels_run(qrels, run), "Judged@5").mean()["Judged@5"]
    assert shares["a", None, "judged at 5"]["share"] == pytest.approx(joined), "as the measure has it"
    low = fn.check_judgments(qrels, {"a": run, "b": other}, least_judged=0.6).to_pylist()
    assert {(row["system"], row["check"]) for row in low if row["verdict"] == "fails"} == {
        ("a", "judged at 10"),
        ("a", "judged at 20"),
    }


def put(table, row, **values):
    """Values in a new row, or in a row and, of -1, at the end."""
    for name, column in table.items():
        column.append(values.get(name, column[row]))


def test_each_fault_is_found_and_no_other():
    qrels, run = clean()
    qrels["grade"][:5] = [0] * 5
    assert found(qrels, run)["queries without a relevant document"]["examples"] == "q0"
    assert list(found(qrels, run)) == ["queries without a relevant document"]

    qrels, run = clean()
    put(qrels, 7, grade=2 - qrels["grade"][7])
    put(qrels, 8)
    rows = found(qrels, run)
    assert {name: row["count"] for name, row in rows.items()} == {
        "documents with two grades for a query": 1,
        "documents judged twice with one grade": 1,
    }
    assert rows["documents with two grades for a query"]["examples"] == "q1 d1-2"

    qrels, run = clean()
    lacking = found(qrels, run, [each for each in qrels["doc_id"] if not each.startswith("d9-")])
    assert lacking["judged documents that the corpus lacks"]["count"] == 5
    assert lacking["judged documents that the corpus lacks"]["examples"].endswith(" ...")

    qrels, run = clean()
    qrels["query_text"] = [f"text {query[1:]}" for query in qrels["qid"]]
    qrels["query_text"][10:15] = [" TEXT 3 "] * 5
    (row,) = found(qrels, run).values()
    assert (row["check"], row["examples"], row["verdict"]) == (
        "queries with the same text",
        "q2, q3",
        "fails",
    )

    qrels, run = clean()
    run = {name: column[8:] for name, column in run.items()}
    put(run, 0, qid="other")
    put(run, 3)
    run["score"][5] = None
    rows = found(qrels, pd.DataFrame(run))
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "judged queries that the run lacks": "fails",
        "queries of the run without judgments": "caution",
        "documents twice in the run": "fails",
        "scores that are NaN": "fails",
    }


def test_swapped_columns_ranks_and_scales():
    qrels, run = clean()
    swapped = qrels | {"grade": [value + 0.25 for value in range(5 * N)]}
    whole = run | {"score": [value % 3 for value in range(8 * N)]}
    assert found(swapped, whole)["grades and scores that look swapped"]["verdict"] == "fails"
    ranks = run | {"score": [1 + value % 8 for value in range(8 * N)]}
    assert found(qrels, ranks)["scores that look like ranks"]["verdict"] == "caution"
    named = {name: column for name, column in ranks.items() if name != "score"} | {"rank": ranks["score"]}
    assert not found(qrels, named), "ranks that are called so"
    wide = qrels | {
        "grade": [
            2 * grade if lang == "de" else grade
            for grade, lang in zip(qrels["grade"], qrels["lang"], strict=True)
        ]
    }
    rows = fn.check_judgments(wide, run, by="lang").to_pylist()
    scales = {
        row["slice"]: (row["examples"], row["verdict"]) for row in rows if row["check"] == "scale of grades"
    }
    assert scales == {
        None: ("0 to 4", "holds"),
        "lang=de": ("0 to 4", "holds"),
        "lang=fr": ("0 to 2", "caution"),
    }


def test_every_kind_of_corpus(tmp_path):
    qrels, run = {"1": {7: 1, 8: 0}}, {"1": {7: 0.5}}
    (tmp_path / "corpus.jsonl").write_text('{"_id": "7", "text": "x"}\n{"_id": "9", "text": "y"}\n')
    pq.write_table(pa.table({"docno": [7, 9]}), tmp_path / "c.parquet")
    for corpus in (
        [7, 9],
        ["7", "9"],
        iter([7, 9]),
        {"7": {"text": "x"}, "9": {"text": "y"}},
        {"7": "x", "9": "y"},
        {"docno": ["7", "9"], "text": [1, 2]},
        np.array([7, 9]),
        pd.Series(["7", "9"]),
        pd.DataFrame({"_id": ["7", "9"]}),
        pl.DataFrame({"doc_id": [7, 9], "other": [0, 0]}),
        pa.chunked_array([["7"], ["9"]]),
        str(tmp_path / "corpus.jsonl"),
        tmp_path / "c.parquet",
    ):
        row = found(qrels, run, corpus)["judged documents that the corpus lacks"]
        assert (row["count"], row["total"], row["examples"]) == (1, 2, "8"), corpus


def test_a_system_with_fewer_judged_documents_is_a_caution():
    """As `compare` says it of these runs."""
    qrels = {f"q{i}": {f"d{j}": 1 for j in range(10)} for i in range(9)}
    runs = {
        name: {query: [f"{kind}{j}" for kind in "dx" for j in range(n)] for query in qrels}
        for name, n in (("a", 10), ("b", 6))
    }
    cautions = [
        (row["system"], row["check"], row["verdict"])
        for row in fn.check_judgments(qrels, runs, cutoffs=10).to_pylist()
        if row["system"] and row["verdict"] != "holds"
    ]
    assert cautions == [("b", "judged at 10", "caution")]
    rankings = {name: fn.Rankings.from_qrels_run(qrels, each) for name, each in runs.items()}
    assert "60.0 % of b" in repr(fn.compare(rankings, "nDCG@10"))


@pytest.mark.parametrize(
    "convert", [pa.Array.dictionary_encode, pc.run_end_encode, lambda texts: texts.cast(pa.string_view())]
)
def test_slices_of_any_type_of_text(convert):
    languages = pa.array(["de", "de", "en"])
    qrels = {"qid": ["a", "a", "b"], "docid": ["1", "2", "1"], "label": [1, 0, 2]}
    plain, other = (
        fn.check_judgments(pa.table(qrels | {"lang": each}), {"a": {"1": 0.5}, "b": {"1": 0.2}}, by="lang")
        for each in (languages, convert(languages))
    )
    assert plain == other and {*plain["slice"].to_pylist()} == {None, "lang=de", "lang=en"}


@pytest.mark.skipif(os.name != "posix", reason="pipes as POSIX has them")
def test_pipes_are_read_once(tmp_path):
    program = """
import os, threading, fastndcg as fn
def pipe(name, text):
    os.mkfifo(name)
    threading.Thread(target=lambda: open(name, "w").write(text), daemon=True).start()
    return name
print(len(fn.check_judgments(pipe("q", "a 0 1 1\\n"), pipe("r", "a Q0 1 1 0.5 t\\n"))))
"""
    with contextlib.chdir(tmp_path):
        assert int(commands.printed(program, timeout=60)) > 5


def test_small_judgments():
    assert fn.check_judgments(QRELS, RUN, cutoffs=5) == fn.check_judgments(QRELS, RUN, cutoffs=[5])
    assert found(QRELS, {"other": {"a": 0.5}})["judged queries that the run lacks"]["count"] == 1
    assert fn.check_judgments(QRELS, {"q": ["b"]}).to_pylist()[-1]["share"] == 0.0


def test_the_check_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qrels, run = clean()
    pq.write_table(pa.table(qrels), "qrels.parquet")
    pq.write_table(pa.table(run), "run.parquet")
    line = "check --qrels qrels.parquet --run run.parquet"
    expected = fn.check_judgments(qrels, {"run": run}, by="lang").to_pylist()
    assert facts(f"{line} --by lang")["checks"] == expected
    qrels["grade"][:5] = [0] * 5
    pq.write_table(pa.table(qrels), "qrels.parquet")
    bad = commands.run(f"{line} --format csv")
    assert bad.exit_code == 1
    assert "check: queries without a relevant document: 1 of 60: q0" in bad.stderr
    assert bad.stdout.splitlines()[1] == "queries without a relevant document,,,1,60,,q0,fails"
    low = commands.run("check run.parquet --qrels qrels.parquet --least-judged 0.7")
    assert low.exit_code == 1
    assert "judged at 10 (run): 240 of 480, share 0.5" in low.stderr
    Path("extra").write_text("q1 Q0 d1-1 1 2.5 me\nother Q0 d 1 0.5 me\n")
    pq.write_table(pa.table({name: column[5:10] for name, column in qrels.items()}), "fine.parquet")
    for words, code in (
        ("check --qrels qrels.parquet", 2),
        (f"{line} --corpus none.parquet", 3),
        ("check --qrels fine.parquet --run extra", 0),
        ("check --qrels fine.parquet --run extra --strict", 1),
    ):
        assert commands.run(words).exit_code == code, words


of_query = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3).map(float), max_size=6)
runs = st.dictionaries(
    st.sampled_from(["x", "y", "z"]), st.dictionaries(st.sampled_from("123"), of_query), min_size=1
)
grades = st.dictionaries(
    st.sampled_from("123"), st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-1, 2))
)


@settings(deadline=None, max_examples=80)
@given(runs=runs, qrels=grades, depth=st.integers(1, 5))
@pytest.mark.filterwarnings("ignore:.*is judged:fastndcg.FastndcgWarning")
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


def test_every_shape_says_the_same(tmp_path):
    qrels = {"1": {"a": 0, "b": 0, "c": -1}, "9": {"z": 1}}
    run = {"1": {"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1}, "2": {"b": 3.0}}
    pooled, checked = fn.pool({"r": run}, 3, qrels), fn.check_judgments(qrels, {"r": run})
    assert [tuple(row.values()) for row in pooled.to_pylist()] == [
        ("1", "a", 1, ["r"], True),
        ("1", "c", 2, ["r"], False),  # tied with b: the higher id first, as trec_eval has them
        ("1", "b", 3, ["r"], True),
        ("2", "b", 1, ["r"], False),
    ]
    forms = {form: [] for form in ("table", "pandas", "lazy", "parquet", "json")}
    for name, side, value in (("q", qrels, "grade"), ("r", run, "score")):
        rows = [(query, document, each) for query, of in side.items() for document, each in of.items()]
        table = pa.table(list(map(list, zip(*rows, strict=True))), ["qid", "docid", value])
        pq.write_table(table, tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.json").write_text(json.dumps(side))
        paths = tmp_path / f"{name}.parquet", str(tmp_path / f"{name}.json")
        shapes = table, table.to_pandas(), pl.from_arrow(table).lazy(), *paths
        for form, shape in zip(forms, shapes, strict=True):
            forms[form].append(shape)
    for judged, returned in forms.values():
        assert fn.pool({"r": returned}, 3, judged) == pooled
        assert fn.check_judgments(judged, {"r": returned}) == checked
    distances = {"1": {"a": 1, "c": 2, "b": 3, "d": 4}, "2": {"b": 1}}
    assert fn.pool({"r": distances}, 3, qrels, ascending=True) == pooled
    renamed = forms["pandas"][1].rename(columns={"qid": "frage", "score": "wert"})
    assert fn.pool({"r": renamed}, 3, qrels, query="frage", score="wert") == pooled
    words = pa.table({"qid": ["1"] * 2, "docid": ["a", "b"], "relevance": ["ja"] * 2})
    assert fn.pool({"r": run}, 3, words, grades={"ja": 1}) == pooled


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


def test_judgments_of_others_are_a_warning():
    with pytest.warns(
        FastndcgWarning, match='no document .* is judged.*: "0q" and "d" there, "q" and "d" here'
    ):
        fn.pool(ONE, qrels={"0q": {"d": 1}})
    with pytest.warns(FastndcgWarning, match='"q" and "D" there, "q" and "d" here'):
        fn.pool(ONE, qrels={"q": {"D": 1}})


def test_the_pool_command(tmp_path, monkeypatch):
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
        "pool": 2, "pool runs": 3, f"pool {runs} --depth 0": 2, f"pool {runs} runs/bm25.txt": 2, "pool - --qrels -": 2, "pool nowhere": 3,
        f"pool {runs} --qrels nowhere": 3, f"pool {runs} --query q --score s": 0,
    }.items():  # fmt: skip
        pq.write_table(pa.table({"qid": [1], "docid": [1], "score": [1]}), "table.parquet")
        assert commands.run(*words.split()).exit_code == code, words
