"""The command line over judgments and runs."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, rows, run

import fastndcg as fn

typer = pytest.importorskip("typer")

from fastndcg.cli import app  # noqa: E402 - after the question whether typer is there

RUN = "301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n302 Q0 A 1 0.5 me\n999 Q0 A 1 0.5 me\n"
FILES = {
    "qrels": "301 0 A 1\n301 0 B 2\n302 0 A 1\n303 0 Z 0\n",
    "run": RUN,
    "b/run.trec": RUN,
    "other": RUN.replace("2.5", "0.5").replace("me", "you"),
    "few": "301 Q0 B 1 2.5 me\n",
    "none": "q301 Q0 B 1 2.5 me\n",
    "runs/a.run": "301 Q0 A 1 2 me\n301 Q0 B 2 1 me\n302 Q0 A 1 1 me\n",
    "runs/b.run": "301 Q0 A 1 0.5 me\n301 Q0 B 2 1 me\n302 Q0 A 1 1 me\n",
}
TABLES = {
    "q.parquet": {"topic": [1, 1], "docid": [7, 8], "rel": [1, 2]},
    "r.parquet": {"topic": [1, 1], "docid": [7, 9], "score": [1.0, 2.0]},
    "other.parquet": {"query_id": [1, 1], "docid": [7, 9], "score": [1.0, 2.0]},
    "judged.parquet": {"qid": [1, 1], "docid": [7, 8], "rel": [1, 2]},
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    for name, columns in TABLES.items():
        pq.write_table(pa.table(columns), name)
    Path("packed.run.txt.gz").write_bytes(gzip.compress(b"301 Q0 B 1 2.5 me\n302 Q0 B 1 2.5 me\n"))


LINES = [  # what is typed, and the lines on stderr
    ("score --qrels qrels --run run", "3 queries, 3 documents"),
    ("score --qrels qrels --run run --missing skip", "2 queries, 3 documents"),
    ("score --qrels qrels --run run --run packed.run.txt.gz", "run: 3 queries, 3 documents\npacked.run: 3 queries, 2 documents"),
    ("score --qrels q.parquet --run r.parquet --query topic", "; columns: query=topic, doc_id=docid, relevance=rel, score=score"),
    ("score --qrels judged.parquet --run other.parquet", "columns: query of qrels=qid, query of run=query_id, doc_id=docid"),
    ("score --qrels qrels run --score x", "--score cannot be used with run: the score of a TREC run is its fifth field\n"),
    ("score --qrels qrels --run few", "count with an empty ranking; pass --missing skip to leave them out"),
    ("score --qrels qrels --run few", "Warning: qrels has 3 queries and "),
    ("score --qrels qrels --run few", "\n3 queries, 1 document\n"),
    ("score --qrels q.parquet --run r.parquet", "q.parquet: "),
    ("score --qrels q.parquet --run r.parquet", "as in --query ..."),
    ("score --qrels qrels no_such", "no_such"),
    ("score --qrels qrels none", 'have no query in common: "301", "302", "303" there, "q301" here.'),
    ("trec_eval qrels none", 'have no query in common: "301", "302", "303" there, "q301" here.'),
    ("score --qrels qrels --run run --run run", "run and run are one file; name each file once\n"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "said"), LINES)
def test_what_is_said(line, said):
    result = run(line)
    assert said in result.stderr + "\n", result.stderr
    is_refused = "topic" not in line and any(
        word in line for word in ("q.parquet", "no_such", "none", "run --run run")
    )
    assert result.exit_code == (0 if not is_refused else 2 if "run --run run" in line else 3)
    assert not is_refused or (result.stdout, result.stderr.count("\n")) == ("", 1)


def test_means_and_results_are_those_of_the_reader():
    found = facts("score --qrels qrels --run run -m nDCG@10 --out out.parquet")
    assert (
        found["measures"][0]["mean"]
        == fn.evaluate(fn.read_qrels_run("qrels", "run"), "nDCG@10").mean()["nDCG@10"]
    )
    assert (found["queries"], found["documents"], found["columns"]) == (3, 3, {})
    assert pq.read_table("out.parquet")["query_id"].to_pylist() == ["301", "302", "303"]


def test_several_runs():
    paths = {"run": "run", "packed.run": "packed.run.txt.gz"}
    line = f"score --qrels qrels --run {' --run '.join(paths.values())} -m P@1 -m RR"
    means = {
        name: fn.evaluate(fn.read_qrels_run("qrels", path), ["P@1", "RR"]).mean()
        for name, path in paths.items()
    }
    expected = [(name, measure, mean) for name, each in means.items() for measure, mean in each.items()]
    found = facts(f"{line} --out out.parquet")
    assert [(row["run"], row["measure"], row["mean"]) for row in found["measures"]] == expected
    assert [(each["run"], each["documents"]) for each in found["runs"]] == [("run", 3), ("packed.run", 2)]
    assert [(row["run"], row["measure"], float(row["mean"])) for row in rows(line)] == expected
    shown = [each.split()[:2] for each in run(line).stdout.splitlines()]
    assert shown == [["run", "measure"], *([name, measure] for name, measure, _ in expected)]
    table = pq.read_table("out.parquet")
    assert table.column_names == ["run", "query_id", "P@1", "RR"]
    assert table["run"].to_pylist() == ["run"] * 3 + ["packed.run"] * 3
    failed = run(f"{line} --fail-under RR={means['run']['RR']}")
    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-1].startswith("--fail-under: packed.run: the mean of RR is 0.33")
    # names of files that are alike are their paths
    assert [row["run"] for row in rows("score --qrels qrels run b/run.trec")] == ["run", "b/run.trec"]


@pytest.mark.parametrize("command", ["score", "compare"])
def test_runs_are_options_or_paths(command):
    options = "--qrels qrels -m RR --format json"
    expected = run(f"{command} {options} --run runs/a.run --run runs/b.run")
    assert expected.exit_code == 0, expected.stderr
    for given in ("runs/a.run runs/b.run", "--run runs/a.run runs/b.run"):
        assert run(f"{command} {options} {given}").stdout == expected.stdout, given


@pytest.mark.parametrize("options", ["", "-q", "-q -c -m map -m runid", "-n -q"])
def test_trec_eval_of_several_runs_is_that_of_each(options):
    each = [run(f"trec_eval {options} qrels {path}").stdout for path in ("run", "other")]
    assert run(f"trec_eval {options} qrels run other").stdout == "".join(each)


@pytest.mark.parametrize("command", ["score", "compare", "conventions", "measures", "demo", "trec_eval"])
def test_an_option_of_one_value_is_given_once(command):
    for option in typer.main.get_command(app).commands[command].params:
        if option.param_type_name != "option" or option.is_flag:
            continue
        given = [option.opts[0], *["1"] * option.nargs] * 2
        result = run(command, *(["qrels", "run"] if command == "trec_eval" else []), *given)
        message = f"{max(option.opts, key=len)} takes one value but was passed 2 times"
        assert result.stderr.startswith(message) is not option.multiple, option.name
        assert option.multiple or result.exit_code == 2
