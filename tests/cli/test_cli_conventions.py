"""`fastndcg conventions` and `fastndcg score --convention`."""

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run
from rivals import random_queries

import fastndcg as fn

HAVING_NDCG = [name for name, rule in fn.conventions.items() if "nDCG" in rule.names_of_measures]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    queries = random_queries(14, 12)
    file = tmp_path_factory.mktemp("conventions") / "predictions.parquet"
    columns = {
        "qid": [query.name for query in queries for _ in query.grades],
        "doc_id": [document for query in queries for document in query.doc_ids],
        "label": [grade for query in queries for grade in query.grades],
        "score": [score for query in queries for score in query.scores],
    }
    pq.write_table(pa.table(columns), file)
    return file


def test_the_list_has_every_convention_and_what_is_refused():
    shown = run("conventions").stdout
    assert all(name in shown for name in HAVING_NDCG)
    assert all(name in shown for name in fn.conventions.refused)
    rows = json.loads(run("conventions", "--format", "json").stdout)
    assert [row["name"] for row in rows] == HAVING_NDCG
    assert rows[0]["caveats"] == list(fn.conventions["sklearn"].caveats)
    names = [
        row["name"]
        for row in csv.DictReader(io.StringIO(run("conventions", "-n", "ranx", "--format", "csv").stdout))
    ]
    assert names == ["ranx"]


def test_everybodys_number(path):
    result = run("conventions", path, "-k", 5, "--format", "json")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert list(rows) == HAVING_NDCG
    assert "doc_id=doc_id" in result.stderr
    rankings = fn.read_parquet(path, doc_id="doc_id")
    for name in ("sklearn", "trec_eval", "lightgbm", "quepid"):
        mean = fn.evaluate(rankings, "nDCG@5", convention=name).mean()["nDCG@5"]
        assert rows[name]["value"] == pytest.approx(mean, abs=1e-15)
    assert rows["recpack"]["value"] is None and "does not define" in rows["recpack"]["refused"]


def test_everybodys_number_of_any_measure(path):
    listed = json.loads(run("conventions", "-m", "AP", "--format", "json").stdout)
    assert all(row["measure"].startswith("AP") and "AP" in row["measures"] for row in listed)
    rows = json.loads(run("conventions", path, "-m", "AP@10", "-k", 3, "--format", "json").stdout)
    without_a_cutoff = {name for name, rule in fn.conventions.items() if not rule.find("AP", cut=True)}
    assert {row["name"] for row in rows} == {row["name"] for row in listed} - without_a_cutoff
    rankings = fn.read_parquet(path, doc_id="doc_id")
    for row in rows:
        if row["value"] is not None:
            mean = fn.evaluate(rankings, "AP@3", convention=row["name"]).mean()["AP@3"]
            assert row["value"] == pytest.approx(mean, abs=1e-15)
    own = json.loads(run("conventions", path, "-m", "AP", "-n", "xgboost", "--format", "json").stdout)
    mean = fn.evaluate(rankings, "AP@32", convention="xgboost").mean()["AP@32"]
    assert own[0]["value"] == pytest.approx(mean, abs=1e-15)
    steps = json.loads(
        run(
            "conventions", path, "-m", "AP@10", "--explain", "trec_eval", "lightgbm", "--format", "json"
        ).stdout
    )
    assert steps[0]["choice"] == "trec_eval" and "denominator" in {s["choice"] for s in steps}
    for arguments in (["-m", "RR"], ["-m", "RR", "--explain"]):
        last = ["-n", "xgboost"] if arguments[-1] == "RR" else ["ranx", "xgboost"]
        refused = run("conventions", path, *arguments, *last)
        assert refused.exit_code == 2 and "xgboost has no RR; it has: nDCG, AP" in refused.stderr
    several = run("conventions", path, "-m", "AP@1-3")
    assert several.exit_code == 2 and "for one measure" in several.stderr


def test_the_printed_steps_add_up(path):
    lines = run("conventions", path, "-k", 5, "--explain", "sklearn", "lightgbm").stdout.splitlines()
    first, *steps = [line.split() for line in lines[1:]]
    total = round(float(first[-1]) * 1e6)
    for step in steps:
        total += round(float(step[-2]) * 1e6)
        assert total == round(float(step[-1]) * 1e6)
    assert [step[0] for step in steps] == ["gain", "ties", "empty", "weights"]

    header, *rows = [
        line.split()
        for line in run("conventions", path, "-k", 5, "-n", "sklearn", "-n", "trec_eval").stdout.splitlines()
    ]
    assert header[:3] == ["name", "value", "difference"]
    start, end = (round(float(row[1]) * 1e6) for row in rows)
    assert start + sum(round(float(cell) * 1e6) for cell in rows[1][3:]) == end


def test_means_that_are_nan_are_no_first_value_and_no_fault(path):
    table = fn.compare_conventions(fn.read_parquet(path, doc_id="doc_id"), "AUC").to_pylist()
    assert table[0]["value"] == table[0]["value"] and {"sklearn"} < {row["name"] for row in table}
    for arguments in (
        ["AUC"],
        ["AUC", "-n", "sklearn", "-n", "catboost"],
        ["AUC", "--explain", "sklearn", "catboost"],
        ["P"],
    ):
        assert run("conventions", path, "-m", *arguments).exit_code == 0
    columns = pq.read_table(path).drop_columns("doc_id")  # so that steps on the way are refused
    pq.write_table(columns, path.with_name("without_ids.parquet"))
    assert run("conventions", path.with_name("without_ids.parquet"), "-m", "P").exit_code == 0


def test_a_long_list_of_equal_conventions_makes_no_other_line_long(path):
    """In a pipe, where lines are whole, it is the last column."""
    header, *lines = (
        run("conventions", path, "-m", "AP@5", "--match", "0.5").stdout.partition("\n\n")[0].splitlines()
    )
    assert header.split()[-1] == "equals"
    starts = header.index("equals")
    assert (
        any(len(line) > starts for line in lines) and max(len(line[:starts].rstrip()) for line in lines) < 120
    )
    equal = {name for line in lines for name in line[starts:].split(", ")}
    rows = json.loads(run("conventions", path, "-m", "AP@5", "--match", "0.5", "--format", "json").stdout)
    assert equal - {""} == {name for row in rows for name in row["equals"].split(", ")} - {""}


def test_one_query_alone(path):
    rankings = fn.read_parquet(path, doc_id="doc_id")
    at = rankings.query_ids.to_pylist().index("3")
    rows = json.loads(run("conventions", path, "--id", "3", "-n", "catboost", "--format", "json").stdout)
    assert rows[0]["value"] == pytest.approx(
        fn.evaluate(rankings, "nDCG@10", convention="catboost")["nDCG@10"][at]
    )
    missing = run("conventions", path, "--id", "303")
    assert missing.exit_code == 3 and 'there is no query "303"' in missing.stderr


def test_without_a_cutoff_each_tool_has_its_own(path):
    steps = json.loads(
        run("conventions", path, "--uncut", "--explain", "lightgbm", "xgboost", "--format", "json").stdout
    )
    assert [(step["choice"], step["before"], step["after"]) for step in steps][:2] == [
        ("lightgbm", None, None),
        ("cutoff", "none", "32"),
    ]


def test_score_like_a_tool(path):
    asked = ("score", path, "-m", "nDCG@5", "--convention", "trec_eval", "--format", "json")
    rows = json.loads(run(*asked).stdout)
    expected = fn.evaluate(fn.read_parquet(path, doc_id="doc_id"), "nDCG@5", convention="trec_eval").mean()[
        "nDCG@5"
    ]
    assert rows["convention"] == "trec_eval"
    assert rows["measures"][0]["mean"] == expected == float(f"{expected:.4f}")
    assert rows["columns"]["doc_id"] == "doc_id"
