"""`match_conventions` names the tool that a number comes from, and what brings the nearest to it."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from commands import run
from conventions_data import rankings_of
from measured import LIVE, RIVAL_OF, ragged
from rivals import RIVALS, random_queries

import fastndcg as fn

MEASURES = ("nDCG@5", "nDCG@10", "nDCG", "AP@3", "AP", "P@5", "R@3", "RR@5", "Success@3", "AUC", "ERR@5", "Rprec", "DCG@5")  # fmt: skip


def first(table):
    row = table.to_pylist()[0]
    return row["convention"], {name for name in row["equals"].split(", ") if name}


def values_by(rankings, measure, tool):
    scores = fn.evaluate(rankings, measure, convention=None if tool == "fastndcg" else tool)
    return scores[measure], scores.mean()[measure]


def having(rankings, measure):
    """Values and means of all tools that have some here, by `evaluate`."""
    known = {}
    for tool in ("fastndcg", *fn.conventions):
        try:
            known[tool] = values_by(rankings, measure, tool)
        except (fn.MeasureError, fn.InputError):
            continue
    return known


@pytest.mark.compiled
@pytest.mark.slow
def test_it_names_the_right_tool_first_in_95_of_100_cases():
    random, right, told_apart, wrong = np.random.default_rng(35), 0, 0, []
    for case in range(100):
        measure = str(random.choice(MEASURES))
        queries = random_queries(1000 + case, int(random.integers(20, 60)), ties=bool(random.integers(2)))
        rankings = rankings_of(queries)
        known = having(rankings, measure)
        tool = str(random.choice(list(known)))
        values, mean = known[tool]
        decimals = [None, 4, 6][case % 3]
        alone = case % 4 == 3 and not math.isnan(mean)
        given = mean if alone else values
        given = given if decimals is None else round(given, decimals) if alone else given.round(decimals)
        if case % 4 == 1:
            ids = rankings.query_ids.to_pylist()
            given = {name: value for name, value in zip(ids, given, strict=True) if not math.isnan(value)}
        name, equals = first(fn.match_conventions(rankings, measure, given))
        slack = 2e-6 if decimals is None else 1.01 * 10.0**-decimals
        theirs = known[name]
        same = (
            abs(theirs[1] - mean) <= slack
            if alone
            else np.allclose(theirs[0], values, rtol=0, atol=slack, equal_nan=True)
        )
        told_apart += not equals
        if name == tool or (tool in equals and same):
            right += 1
        else:
            wrong.append((case, measure, tool, name, equals, alone, decimals))
    assert right >= 95, wrong
    assert told_apart >= 20, told_apart  # of the others the numbers are those of several tools


LIVE_CASES = [(tool, measure, live.cutoffs[-2 % len(live.cutoffs)]) for (tool, measure), live in LIVE.items()]


@pytest.mark.compiled
@pytest.mark.rivals
@pytest.mark.filterwarnings("ignore")
@pytest.mark.xdist_group("conventions_rivals")
@pytest.mark.parametrize(("tool", "measure", "k"), LIVE_CASES)
def test_it_names_the_tool_that_was_asked(tool, measure, k):
    if (why := RIVALS[RIVAL_OF.get(tool, tool)].missing) is not None:
        pytest.skip(f"{tool} is not installed here: {why}")
    queries = ragged(17, LIVE[tool, measure])
    values = LIVE[tool, measure].run(queries, k)
    asked = measure if k is None else f"{measure}@{k}"
    for given in (values, [None if value is None else round(value, 5) for value in values]):
        row = fn.match_conventions(rankings_of(queries), asked, given).to_pylist()[0]
        assert row["matches"] and tool in (row["convention"], *row["equals"].split(", ")), row


@pytest.fixture(scope="module")
def asked():
    rankings = rankings_of(random_queries(5, 40))
    scores = fn.evaluate(rankings, "AP@10", convention="lightgbm")
    return rankings, rankings.query_ids.to_pylist(), scores["AP@10"], scores.mean()["AP@10"]


def test_every_form_of_values(asked):
    rankings, ids, values, mean = asked
    pairs = list(zip(ids, values.tolist(), strict=True))
    forms = [
        values, values.tolist(), pa.array(values), tuple(values), pd.Series(values), pl.Series(values), mean, np.float32(mean), round(mean, 5),
        dict(pairs), {int(name): value for name, value in pairs}, values.astype(np.float32),
    ]  # fmt: skip
    for given in forms:
        row = fn.match_conventions(rankings, "AP@10", given).to_pylist()[0]
        assert row["matches"] and row["convention"] == "lightgbm", (type(given), row)


def test_numbers_that_nobody_has(asked):
    rankings, ids, values, _ = asked
    mine = fn.conventions["lightgbm"].replace(AP={"denominator": "hits"})
    given = fn.evaluate(rankings, "AP@10", convention=mine)["AP@10"]
    rows = fn.match_conventions(rankings, "AP@10", given).to_pylist()
    assert not any(row["matches"] for row in rows)
    found = [row["differing"] for row in rows if row["value"] is not None]
    assert found == sorted(found), "nearest first"
    sample = dict(list(zip(ids, values, strict=True))[:9])  # queries that a sample lacks do not count
    assert fn.match_conventions(rankings, "AP@10", sample).to_pylist()[0]["matches"]
    row = fn.match_conventions(rankings, "AP@10", np.random.default_rng(1).random(40)).to_pylist()[0]
    assert row["differing"] >= 39
    ours = fn.AP(rel=2, judged_only=True, empty="skip") @ 5
    row = fn.match_conventions(rankings, ours, fn.evaluate(rankings, ours)[ours]).to_pylist()[0]
    assert row["convention"] == "fastndcg" and row["matches"]


def test_tools_without_a_value_come_last_with_the_reason(asked):
    rankings, _, values, _ = asked
    rows = fn.match_conventions(rankings, "AP@10", values).to_pylist()
    (row,) = (row for row in rows if row["convention"] == "torchmetrics")
    assert row["value"] is None and "does not define the order of ties" in row["refused"]
    assert 'AP(like="torchmetrics"' in row["refused"]
    assert [row["value"] is None for row in rows] == sorted(row["value"] is None for row in rows)
    short = fn.Rankings.from_lists([[1, 0], [0, 1], [1, 0], [0, 1]])
    row = fn.match_conventions(short, "RR", 0.75).to_pylist()[0]  # a mean of 3/4, and none of about 0.7
    assert row["matches"] and row["largest"] == 0


def test_decimals_that_are_given_count():
    lists = fn.Rankings.from_lists([[0, 1], [0, 0, 0, 1], [0, 1]])
    assert fn.match_conventions(lists, "AP", 0.4167)["matches"].to_pylist()[0]
    assert not fn.match_conventions(lists, "AP", [0.5, 0.25, 0.5001])["matches"].to_pylist()[0]
    assert fn.match_conventions(lists, "AP", [0.5, 0.25, 0.5001], decimals=3)["matches"][0].as_py()


def test_the_command(tmp_path):
    queries = random_queries(5, 40, ties=False)  # ties of a run are not in the order of its lines
    scores = fn.evaluate(rankings_of(queries), "AP@10", convention="lightgbm")
    mean = scores.mean()["AP@10"]
    (tmp_path / "qrels").write_text(
        "".join(f"{q.name} 0 {d} {g}\n" for q in queries for d, g in q.qrels.items())
    )
    (tmp_path / "run").write_text(
        "".join(
            f"{q.name} Q0 {d} 0 {s} me\n" for q in queries for d, s in zip(q.doc_ids, q.scores, strict=True)
        )
    )
    data = ("--qrels", tmp_path / "qrels", "--run", tmp_path / "run", "-m", "AP@10")
    rows = json.loads(run("conventions", *data, "--match", f"{mean:.6f}", "--format", "json").stdout)
    assert rows[0]["convention"] == "lightgbm" and rows[0]["matches"] is True
    shown = run("conventions", *data, "--match", f"{mean:.4f}").stdout
    assert shown.startswith("These numbers are those of lightgbm") and " yes " in shown
    assert "torchmetrics" in shown and "torchmetrics: does not define the order of ties" not in shown
    for words, message in (
        (
            (*data, "--match", "nothing.csv"),
            '--match is "nothing.csv"; expected a mean, as in --match 0.4321',
        ),
        ((*data, "--match", "0.4", "-n", "ranx"), "--match compares all definitions"),
        (("--match", "0.4"), "--match needs data"),
    ):
        result = run("conventions", *words)
        assert result.exit_code == 2 and message in result.stderr
