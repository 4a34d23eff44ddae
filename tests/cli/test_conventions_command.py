"""`fastndcg conventions` and `fastndcg score --convention`."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import facts, rows, run
from rivals import random_queries

import fastndcg as fn

HAVING_NDCG = [name for name, rule in fn.conventions.items() if "nDCG" in rule.names_of_measures]
ALL = "conventions p.parquet"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    queries = random_queries(14, 12)
    columns = {
        "qid": [query.name for query in queries for _ in query.grades],
        "doc_id": [document for query in queries for document in query.doc_ids],
        "label": [grade for query in queries for grade in query.grades],
        "score": [score for query in queries for score in query.scores],
    }
    pq.write_table(pa.table(columns), "p.parquet")
    pq.write_table(pa.table(columns).drop_columns("doc_id"), "without_ids.parquet")


@pytest.fixture
def rankings():
    return fn.read_parquet("p.parquet", doc_id="doc_id")


def test_the_list_has_every_convention():
    shown = run("conventions").stdout
    assert all(name in shown for name in HAVING_NDCG)
    found = facts("conventions")
    assert [row["name"] for row in found] == HAVING_NDCG
    assert found[0]["caveats"] == list(fn.conventions["sklearn"].caveats)
    assert [row["name"] for row in rows("conventions -n ranx")] == ["ranx"]


def test_everybodys_number(rankings):
    result = run(f"{ALL} -m nDCG@5 --format json")
    assert "doc_id=doc_id" in result.stderr
    found = {row["name"]: row for row in facts(f"{ALL} -m nDCG@5")}
    assert list(found) == HAVING_NDCG
    for name in ("sklearn", "trec_eval", "lightgbm", "quepid"):
        mean = fn.evaluate(rankings, "nDCG@5", convention=name).mean()["nDCG@5"]
        assert found[name]["value"] == pytest.approx(mean, abs=1e-15)
    assert found["recpack"]["value"] is None and "does not define" in found["recpack"]["refused"]


def test_everybodys_number_of_any_measure(rankings):
    tools = facts("conventions -m AP")
    assert all(row["measure"].startswith("AP") and "AP" in row["measures"] for row in tools)
    found = facts(f"{ALL} -m AP@3")
    without_a_cutoff = {name for name, rule in fn.conventions.items() if not rule.find("AP", cut=True)}
    assert {row["name"] for row in found} == {row["name"] for row in tools} - without_a_cutoff
    means = {row["name"]: ("AP@3", row["value"]) for row in found if row["value"] is not None}
    means["xgboost"] = ("AP@32", facts(f"{ALL} -m AP -n xgboost")[0]["value"])
    for name, (measure, value) in means.items():
        assert value == pytest.approx(
            fn.evaluate(rankings, measure, convention=name).mean()[measure], abs=1e-15
        )
    steps = facts(f"{ALL} -m AP@10 --explain trec_eval lightgbm")
    assert steps[0]["choice"] == "trec_eval" and "denominator" in {step["choice"] for step in steps}
    for words, said in (
        ("-m RR -n xgboost", "xgboost has no RR; it has: nDCG, AP"),
        ("-m RR --explain ranx xgboost", "xgboost has no RR; it has: nDCG, AP"),
        ("-m AP@1-3", "AP@1-3 is 3 measures; expected one"),
    ):
        refused = run(f"{ALL} {words}")
        assert refused.exit_code == 2 and said in refused.stderr


def test_steps_lead_from_one_value_to_the_other():
    steps = facts(f"{ALL} -m nDCG@5 --explain sklearn lightgbm")
    assert [step["choice"] for step in steps[1:]] == ["gain", "ties", "empty", "weights"]
    assert steps[0]["value"] + sum(step["effect"] for step in steps[1:]) == pytest.approx(steps[-1]["value"])
    first, other = facts(f"{ALL} -m nDCG@5 -n sklearn -n trec_eval")
    effects = [
        value for name, value in other.items() if name not in ("name", "value", "difference", "refused")
    ]
    assert first["value"] + sum(map(float, effects)) == pytest.approx(other["value"])
    lines = [line.split() for line in run(f"{ALL} -m nDCG@5 --explain sklearn lightgbm").stdout.splitlines()]
    assert [float(line[-1]) for line in lines[1:]] == [round(step["value"], 6) for step in steps]
    uncut = facts(f"{ALL} -m nDCG --explain lightgbm xgboost")  # without a cutoff each tool has its own
    assert [(step["choice"], step["before"], step["after"]) for step in uncut][:2] == [
        ("lightgbm", None, None), ("cutoff", "none", "32"),
    ]  # fmt: skip


def test_means_that_are_nan_are_no_first_value_and_no_fault(rankings):
    table = fn.compare_conventions(rankings, "AUC").to_pylist()
    assert table[0]["value"] == table[0]["value"] and {"sklearn"} < {row["name"] for row in table}
    for words in ("-m AUC", "-m AUC -n sklearn -n catboost", "-m AUC --explain sklearn catboost", "-m P"):
        assert run(f"{ALL} {words}").exit_code == 0
    assert run("conventions without_ids.parquet -m P").exit_code == 0  # steps on the way are refused


def test_equal_tools_share_a_row_in_a_pipe_and_in_a_terminal(rankings):
    """Every convention is there once, with its value; in a pipe a row is a line, in a terminal 80 columns hold."""
    found = facts(f"{ALL} -m nDCG@5")
    valued = {row["name"]: f"{row['value']:.6f}" for row in found if row["value"] is not None}
    listed = run(f"{ALL} -m nDCG@5").stdout.partition("\n\n")[0].splitlines()
    starts = listed[0].index("conventions")
    assert {name: line.split()[0] for line in listed[1:] for name in line[starts:].split(", ")} == valued
    assert len({line[:starts] for line in listed}) == len(listed) < len(valued)
    mean = facts(f"{ALL} -m AP@5 -n trec_eval")[0]["value"]
    for value, said in (
        (mean, "These numbers are those of "),
        (0.5, "No convention has these numbers. The nearest is "),
    ):
        answer, table, *_ = run(f"{ALL} -m AP@5 --match {value:.4f}").stdout.split("\n\n")
        assert answer.startswith(said) and '""' not in table
        first = facts(f"{ALL} -m AP@5 --match {value:.4f}")[0]
        assert first["convention"] in answer and first["matches"] == table.splitlines()[1].startswith(
            "    yes"
        )
    tables = fn.compare_conventions(rankings), fn.match_conventions(rankings, "nDCG@10", 0.5)
    for table in tables:
        lines = table.text(80).splitlines()
        assert max(map(len, lines)) <= 80 and '""' not in table.text(80)
        words = {word.strip(",:.") for line in lines for word in line.split()}
        assert {row.get("name", row.get("convention")) for row in table.to_pylist()} <= words
        assert table._repr_html_().count("<tr>") < len(table)
    assert "<td" in fn.conventions._repr_html_()


def test_score_like_a_tool(rankings):
    found = facts("score p.parquet -m nDCG@5 --convention trec_eval")
    expected = fn.evaluate(rankings, "nDCG@5", convention="trec_eval").mean()["nDCG@5"]
    assert found["convention"] == "trec_eval" and found["columns"]["doc_id"] == "doc_id"
    assert found["measures"][0]["mean"] == expected == float(f"{expected:.4f}")
