"""The command line over judgments and a run."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.sources.trec import read_qrels_run

typer_testing = pytest.importorskip("typer.testing")

QRELS = "301 0 A 1\n301 0 B 2\n302 0 A 1\n303 0 Z 0\n"
RUN = "301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n302 Q0 A 1 0.5 me\n999 Q0 A 1 0.5 me\n"


@pytest.fixture
def paths(tmp_path):
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "run.txt").write_text(RUN)
    return str(tmp_path / "qrels.txt"), str(tmp_path / "run.txt")


def run_cli(*arguments):
    from fastndcg.cli import app

    return typer_testing.CliRunner().invoke(app, list(arguments), prog_name="fastndcg")


def test_text_files(paths, tmp_path):
    out = tmp_path / "out.parquet"
    result = run_cli(
        "score",
        "--qrels",
        paths[0],
        "--run",
        paths[1],
        "-m",
        "nDCG@10",
        "--format",
        "json",
        "--out",
        str(out),
    )
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    rankings = read_qrels_run(*paths)
    assert printed["measures"][0]["mean"] == fn.evaluate(rankings, "nDCG@10").mean()["nDCG@10"]
    assert (printed["queries"], printed["documents"], printed["columns"]) == (3, 3, {})
    assert result.stderr == "3 queries, 3 documents\n"
    assert pq.read_table(out)["query_id"].to_pylist() == ["301", "302", "303"]
    skipped = json.loads(
        run_cli(
            "score", "--qrels", paths[0], "--run", paths[1], "--missing", "skip", "--format", "json"
        ).stdout
    )
    assert skipped["queries"] == 2


def test_parquet_files(tmp_path):
    qrels, run = str(tmp_path / "q.parquet"), str(tmp_path / "r.parquet")
    pq.write_table(pa.table({"topic": [1, 1], "docid": [7, 8], "rel": [1, 2]}), qrels)
    pq.write_table(pa.table({"topic": [1, 1], "docid": [7, 9], "score": [1.0, 2.0]}), run)
    result = run_cli("score", "--qrels", qrels, "--run", run, "--query", "topic", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["columns"] == {
        "query": "topic",
        "doc_id": "docid",
        "relevance": "rel",
        "score": "score",
    }
    assert result.stderr.endswith("; columns: query=topic, doc_id=docid, relevance=rel, score=score\n")
    pq.write_table(
        pa.table({"query_id": [1, 1], "docid": [7, 9], "score": [1.0, 2.0]}), tmp_path / "other.parquet"
    )
    pq.write_table(pa.table({"qid": [1, 1], "docid": [7, 8], "rel": [1, 2]}), tmp_path / "judged.parquet")
    result = run_cli(
        "score", "--qrels", str(tmp_path / "judged.parquet"), "--run", str(tmp_path / "other.parquet")
    )
    assert "columns: query of qrels=qid, query of run=query_id, doc_id=docid" in result.stderr
    failed = run_cli("score", "--qrels", qrels, "--run", run)
    assert failed.exit_code == 1
    assert "q.parquet: " in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert '--query "' in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--qrels", "Q"], "--qrels and --run go together"),
        (["--run", "R"], "--qrels and --run go together"),
        (["--qrels", "Q", "--run", "R", "p.parquet"], "PATH p.parquet is given beside --qrels and --run"),
        (["--qrels", "Q", "--run", "R", "--keep", "c"], "--keep has no meaning with --qrels and --run"),
        (["p.parquet", "--missing", "skip"], "--missing has no meaning without --qrels and --run"),
        ([], "Error: nothing to score. Give PATH, or --qrels and --run."),
    ],
)
def test_wrong_usage(paths, arguments, message):
    given = [{"Q": paths[0], "R": paths[1]}.get(argument, argument) for argument in arguments]
    result = run_cli("score", *given)
    assert result.exit_code == 2
    assert message in result.stderr


def test_faults_are_one_line(paths, tmp_path):
    (tmp_path / "run.txt").write_text("301 Q0 C 1 2.5\n")
    result = run_cli("score", "--qrels", paths[0], "--run", paths[1])
    assert result.exit_code == 1
    assert "run.txt, line 1: 5 fields" in result.stderr
    assert result.stderr.count("\n") == 1
    assert (
        run_cli("score", "--qrels", paths[0], "--run", "absent").stderr
        == "absent does not exist. Check the path.\n"
    )
