"""Health of judgments: each check finds what was put into clean data, through every door, and nothing else."""

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

import fastndcg as fn
from fastndcg.errors import ColumnError, InputError, InputTypeError, SourceError

N = 60  # queries
QRELS, RUN = {"q": {"a": 1}}, {"q": {"a": 0.5}}


def clean():
    """Judgments of five documents of each query, of which a run returns four, and four others."""
    grid = [(query, place, f"q{query}", f"d{query}-{place}") for query in range(N) for place in range(9)]
    judged = [
        (name, document, (place + query) % 3, f"text {query}", ("de", "fr")[query % 2])
        for query, place, name, document in grid
        if place < 5
    ]
    returned = [(name, document, 9.5 - place) for _, place, name, document in grid if place]
    qrels = ("qid", "doc_id", "grade", "query_text", "lang"), judged
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
    qrels["query_text"][10:15] = [" TEXT 3 "] * 5
    (row,) = found(qrels, run).values()
    assert (row["check"], row["examples"]) == ("queries with the same text", "q2, q3")
    assert row["verdict"] == "fails"

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


def test_every_kind_of_input_says_the_same(tmp_path):
    qrels, run = clean()
    qrels["grade"][:5] = [0] * 5
    expected = fn.check_judgments(qrels, run)
    for frame in (pa.table, pd.DataFrame, pl.DataFrame, pl.LazyFrame):
        assert fn.check_judgments(frame(qrels), frame(run)) == expected
    pq.write_table(pa.table(qrels), tmp_path / "q.parquet")
    pq.write_table(pa.table(run), tmp_path / "r.parquet")
    assert fn.check_judgments(tmp_path / "q.parquet", str(tmp_path / "r.parquet")) == expected
    without = [row for row in expected.to_pylist() if row["check"] != "queries with the same text"]
    judged = {}
    for query, document, grade in zip(qrels["qid"], qrels["doc_id"], qrels["grade"], strict=True):
        judged.setdefault(query, {})[document] = grade
    returned = {}
    for query, document in zip(run["qid"], run["doc_id"], strict=True):
        returned.setdefault(query, []).append(document)
    assert fn.check_judgments(judged, returned).to_pylist() == without
    (tmp_path / "q.json").write_text(json.dumps(judged))
    assert fn.check_judgments(tmp_path / "q.json", returned).to_pylist() == without
    lines = [
        f"{query} 0 {document} {grade}\n" for query, of in judged.items() for document, grade in of.items()
    ]
    (tmp_path / "q.txt").write_text("".join(lines))
    assert fn.check_judgments(tmp_path / "q.txt", {"one": returned})["count"].to_pylist() == [
        row["count"] for row in without
    ]


def test_every_kind_of_corpus(tmp_path):
    qrels, run = {"1": {7: 1, 8: 0}}, {"1": {7: 0.5}}
    (tmp_path / "ids.txt").write_text("7\n\n9\n")
    (tmp_path / "corpus.jsonl").write_text('{"_id": "7", "text": "x"}\n{"_id": "9", "text": "y"}\n')
    pq.write_table(pa.table({"docno": [7, 9]}), tmp_path / "c.parquet")
    for corpus in (
        [7, 9],
        ["7", "9"],
        {"7", "9"},
        {"7": {"text": "x"}, "9": {"text": "y"}},
        {"docno": ["7", "9"], "text": [1, 2]},
        np.array([7, 9]),
        pd.Series(["7", "9"]),
        pd.DataFrame({"_id": ["7", "9"]}),
        pl.DataFrame({"doc_id": [7, 9], "other": [0, 0]}),
        pa.chunked_array([["7"], ["9"]]),
        tmp_path / "ids.txt",
        str(tmp_path / "corpus.jsonl"),
        tmp_path / "c.parquet",
    ):
        row = found(qrels, run, corpus)["judged documents that the corpus lacks"]
        assert (row["count"], row["total"], row["examples"]) == (1, 2, "8"), corpus


@pytest.mark.parametrize(
    ("given", "options", "error", "message"),
    [
        (({}, RUN), {}, InputError, "no judgments"),
        ((QRELS, {}), {}, InputError, "empty dict"),
        ((QRELS, 3), {}, InputTypeError, "run is a int"),
        ((QRELS, RUN), {"is_judged": "x"}, InputTypeError, "no argument is_judged="),
        ((QRELS, RUN), {"by": "lang"}, ColumnError, "keep|column"),
        ((QRELS, RUN), {"least_judged": 2}, InputError, "least_judged=2"),
        ((QRELS, RUN, Path("none.txt")), {}, SourceError, "none.txt cannot be read"),
        ((QRELS, RUN, [0.5]), {}, InputTypeError, "corpus"),
        *(((QRELS, RUN), {"cutoffs": each}, (InputError, InputTypeError), "cutoffs=.* expected a whole number")
          for each in (0, None, "5", [0], [True], 2.5)),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_refused(given, options, error, message):
    with pytest.raises(error, match=message):
        fn.check_judgments(*given, **options)


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
    "convert",
    [pa.Array.dictionary_encode, pc.run_end_encode, lambda texts: texts.cast(pa.string_view())],
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


def test_the_command(tmp_path, monkeypatch):
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
