"""The command line over judgments and a run."""

import csv
import gzip
import json
from pathlib import Path

import commands
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from fastndcg.sources.trec import read_qrels_run

typer = pytest.importorskip("typer")

from fastndcg.cli import app  # noqa: E402 - after the question whether typer is there

QRELS = "301 0 A 1\n301 0 B 2\n302 0 A 1\n303 0 Z 0\n"
RUN = "301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n302 Q0 A 1 0.5 me\n999 Q0 A 1 0.5 me\n"


@pytest.fixture
def paths(tmp_path):
    (tmp_path / "qrels.txt").write_text(QRELS)
    (tmp_path / "run.txt").write_text(RUN)
    return str(tmp_path / "qrels.txt"), str(tmp_path / "run.txt")


def test_text_files(paths, tmp_path):
    out = tmp_path / "out.parquet"
    result = commands.run(
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
        commands.run(
            "score", "--qrels", paths[0], "--run", paths[1], "--missing", "skip", "--format", "json"
        ).stdout
    )
    assert skipped["queries"] == 2


def test_parquet_files(tmp_path):
    qrels, run = str(tmp_path / "q.parquet"), str(tmp_path / "r.parquet")
    pq.write_table(pa.table({"topic": [1, 1], "docid": [7, 8], "rel": [1, 2]}), qrels)
    pq.write_table(pa.table({"topic": [1, 1], "docid": [7, 9], "score": [1.0, 2.0]}), run)
    result = commands.run("score", "--qrels", qrels, "--run", run, "--query", "topic", "--format", "json")
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
    result = commands.run(
        "score", "--qrels", str(tmp_path / "judged.parquet"), "--run", str(tmp_path / "other.parquet")
    )
    assert "columns: query of qrels=qid, query of run=query_id, doc_id=docid" in result.stderr
    failed = commands.run("score", "--qrels", qrels, "--run", run)
    assert failed.exit_code == 3
    assert "q.parquet: " in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert "as in --query ..." in failed.stderr


def test_several_runs(paths, tmp_path):
    qrels, run, out = *paths, tmp_path / "out.parquet"
    other = tmp_path / "other.run.txt.gz"
    other.write_bytes(gzip.compress(b"301 Q0 B 1 2.5 me\n302 Q0 B 1 2.5 me\n"))
    arguments = ["score", "--qrels", qrels, "--run", run, "--run", str(other), "-m", "P@1", "-m", "RR"]
    means = {
        name: fn.evaluate(read_qrels_run(qrels, path), ["P@1", "RR"]).mean()
        for name, path in (("run", run), ("other.run", other))
    }
    rows = [(name, measure, mean) for name, each in means.items() for measure, mean in each.items()]

    printed = json.loads(commands.run(*arguments, "--format", "json", "--out", str(out)).stdout)
    assert [(row["run"], row["measure"], row["mean"]) for row in printed["measures"]] == rows
    assert [(each["run"], each["documents"]) for each in printed["runs"]] == [("run", 3), ("other.run", 2)]
    text = list(csv.DictReader(commands.run(*arguments, "--format", "csv").stdout.splitlines()))
    assert [(row["run"], row["measure"], float(row["mean"])) for row in text] == rows
    shown = commands.run(*arguments)
    assert [line.split()[:2] for line in shown.stdout.splitlines()] == [
        ["run", "measure"],
        *map(list, (row[:2] for row in rows)),
    ]
    assert shown.stderr == "run: 3 queries, 3 documents\nother.run: 3 queries, 2 documents\n"
    table = pq.read_table(out)
    assert table.column_names == ["run", "query_id", "P@1", "RR"]
    assert table["run"].to_pylist() == ["run"] * 3 + ["other.run"] * 3

    failed = commands.run(*arguments, "--fail-under", f"RR={means['run']['RR']}")
    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-1].startswith("--fail-under: other.run: the mean of RR is 0.33")


def test_paths_beside_qrels_are_runs(paths, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text(RUN.replace("2.5", "0.5"))
    rows = [
        json.loads(commands.run("score", "--qrels", paths[0], *runs, "--format", "json").stdout)["measures"]
        for runs in (
            (paths[1], str(other)),
            ("--run", paths[1], str(other)),
            ("--run", paths[1], "--run", str(other)),
        )
    ]
    assert rows[0] == rows[1] == rows[2] and [row["run"] for row in rows[0]] == ["run", "other"]
    assert "no_such" in commands.run("score", "--qrels", paths[0], "no_such.txt").stderr


@pytest.mark.parametrize("options", [[], ["-q"], ["-q", "-c", "-m", "map", "-m", "runid"], ["-n", "-q"]])
def test_trec_eval_of_several_runs_is_that_of_each(paths, tmp_path, options):
    other = tmp_path / "other.txt"
    other.write_text(RUN.replace("2.5", "0.5").replace("me", "you"))
    each = [commands.run("trec_eval", *options, paths[0], run).stdout for run in (paths[1], str(other))]
    assert commands.run("trec_eval", *options, paths[0], paths[1], str(other)).stdout == "".join(each)


def test_runs_of_one_name(paths, tmp_path):
    qrels, run = paths
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "run.trec"
    other.write_text(RUN)
    result = commands.run("score", "--qrels", qrels, "--run", run, "--run", str(other), "--format", "csv")
    assert [line.split(",")[0] for line in result.stdout.splitlines()] == ["run", run, str(other)]
    twice = commands.run("score", "--qrels", qrels, "--run", run, "--run", run)
    assert (twice.exit_code, twice.stderr) == (2, f"{run} is given 2 times; give each file once\n")


@pytest.mark.parametrize("command", ["score", "compare", "conventions", "measures", "demo", "trec_eval"])
def test_an_option_of_one_value_is_given_once(command, paths):
    declared = typer.main.get_command(app).commands[command]
    for option in declared.params:
        if option.param_type_name != "option" or option.is_flag:
            continue
        given = [option.opts[0], *["1"] * option.nargs] * 2
        result = commands.run(command, *([] if command != "trec_eval" else paths), *given)
        name = max(option.opts, key=len)
        message = f"{name} takes one value and is given 2 times"
        assert result.stderr.startswith(message) is not option.multiple, option.name
        assert option.multiple or result.exit_code == 2


def test_few_queries_in_common(paths, tmp_path):
    qrels = paths[0]
    (tmp_path / "few.txt").write_text("301 Q0 B 1 2.5 me\n")
    result = commands.run("score", "--qrels", qrels, "--run", str(tmp_path / "few.txt"))
    assert result.exit_code == 0
    warning, counts = result.stderr.splitlines()
    assert warning.startswith(f"Warning: {qrels} has 3 queries and ")
    assert "count with an empty ranking; pass --missing skip to leave them out" in warning
    assert counts == "3 queries, 1 document"
    (tmp_path / "few.txt").write_text("q301 Q0 B 1 2.5 me\n")
    for command in (["score", "--qrels", qrels, "--run"], ["trec_eval", qrels]):
        refused = commands.run(*command, str(tmp_path / "few.txt"))
        assert refused.exit_code == 3
        assert 'have no query in common: "301", "302", "303" there, "q301" here.' in refused.stderr


@pytest.mark.parametrize("command", ["score", "compare"])
@pytest.mark.parametrize("given", ["runs", "runs/", "runs/*", "runs/?.run"])
def test_each_file_of_a_folder_or_glob_of_runs_is_a_run(command, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text("1 0 a 1\n1 0 b 0\n2 0 a 1\n")
    Path("runs").mkdir()
    for name, score in (("a", 2), ("b", 0.5)):
        Path("runs", f"{name}.run").write_text(f"1 Q0 a 1 {score} me\n1 Q0 b 2 1 me\n2 Q0 a 1 1 me\n")
    words = (command, "--qrels", "qrels", "-m", "RR", "--format", "json")
    found, wanted = commands.run(*words, given), commands.run(*words, "runs/a.run", "runs/b.run")
    assert found.exit_code == 0, found.stderr
    assert found.stdout == wanted.stdout


def test_columns_that_a_run_has_not_are_told_and_a_file_is_compared_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("qrels").write_text("1 0 a 1\n")
    Path("run").write_text("1 Q0 a 1 0.5 me\n")
    told = commands.run("score", "--qrels", "qrels", "run", "--score", "x")
    assert told.exit_code == 0
    assert told.stderr.startswith(
        "--score has no meaning with run: the score of a TREC run is its fifth field\n"
    )
    Path("link").symlink_to("run")
    for other in ("./run", "link"):
        twice = commands.run("compare", "--qrels", "qrels", "run", other)
        assert (twice.exit_code, twice.stderr) == (
            2,
            f"{other} is run, which is given too; give each file once\n",
        )
