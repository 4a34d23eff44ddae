"""Judges: their agreement beside the functions of matrices, gold, drift, and the command."""

import json
import math

import commands
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv

import fastndcg as fn
from fastndcg.errors import ColumnError, InputError, InputTypeError


def log(seed=0, n=200):
    """Three judges of the same documents; bob is a grade higher in the second half."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, n)
    rows = {name: [] for name in ("query", "document", "judge", "grade", "batch", "time", "gold")}
    for i in range(n):
        for name in ("ann", "bob", "cy"):
            grade = true[i] + rng.integers(-1, 2) * (rng.random() < 0.3) + (name == "bob" and i >= n // 2)
            values = f"q{i // 5}", f"d{i}", name, int(np.clip(grade, 0, 3)), f"b{i // (n // 2)}", i
            gold = int(true[i]) if i % 4 == 0 else None
            for column, value in zip(rows, (*values, gold), strict=True):
                rows[column].append(value)
    return pa.table(rows)


def matrix(table):
    rows = table.to_pylist()
    items = sorted({(row["query"], row["document"]) for row in rows})
    names = sorted({row["judge"] for row in rows})
    found = np.full((len(names), len(items)), math.nan)
    for row in rows:
        found[names.index(row["judge"]), items.index((row["query"], row["document"]))] = row["grade"]
    return found


def counted(ratings):
    return [[int((item == level).sum()) for level in np.unique(ratings)] for item in ratings.T]


@pytest.mark.parametrize("metric", ["ordinal", "nominal", "interval", "ratio"])
def test_alpha_and_kappa_are_those_of_matrices(metric):
    table = log()
    found = fn.check_judges(table, metric=metric).to_pylist()
    assert [(row["group"], row["name"]) for row in found] == [
        ("all", "all"), ("batch", "b0"), ("batch", "b1"), ("judge", "ann"), ("judge", "bob"), ("judge", "cy"),
    ]  # fmt: skip
    for row, of in zip(found, (slice(None), slice(0, 300), slice(300, 600)), strict=False):
        ratings = matrix(table.slice(*of.indices(600)[:2]) if of != slice(300, 600) else table.slice(300))
        assert row["alpha"] == pytest.approx(fn.krippendorff_alpha(ratings, metric), abs=1e-12)
        assert row["kappa"] == pytest.approx(fn.fleiss_kappa(counted(ratings)), abs=1e-12)
        assert (row["grades"], row["items"], row["repeated"]) == (ratings.size, ratings.shape[1], 0)
        assert row["drift"] is None
    of_judges = [row["alpha"] for row in found[3:]]
    assert np.mean(of_judges) == pytest.approx(found[0]["alpha"]), "of equally many pairs each"
    assert min(of_judges) == of_judges[1], "bob agrees least"


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([0, 1, 2, 4])),
        min_size=1,
        max_size=14,
    ),
    st.sampled_from(["ordinal", "nominal", "interval", "ratio"]),
)
def test_judges_that_skip_and_repeat(rows, metric):
    """Whatever is missing or given again: alpha of the matrix with the last grade; of a judge pair by pair."""
    items, judges, grades = zip(*rows, strict=True)
    table = {"query": [0] * len(rows), "doc_id": items, "judge": judges, "grade": grades}
    found = fn.check_judges(table, metric=metric).to_pylist()
    ratings = np.full((3, 4), math.nan)
    for item, judge, grade in rows:
        ratings[judge, item] = grade
    given_grades = int((~np.isnan(ratings)).sum())
    assert (found[0]["grades"], found[0]["repeated"]) == (given_grades, len(rows) - given_grades)
    wanted = fn.krippendorff_alpha(ratings, metric)
    assert found[0]["alpha"] == pytest.approx(wanted, abs=1e-9, nan_ok=True)
    if metric != "nominal" or math.isnan(wanted):
        return
    shared = ratings[:, (~np.isnan(ratings)).sum(axis=0) > 1]
    values = shared[~np.isnan(shared)].tolist()
    chance = np.mean([a != b for i, a in enumerate(values) for j, b in enumerate(values) if i != j])
    for row in found[1:]:
        own, apart, pairs = int(row["name"]), 0.0, 0.0
        for item in shared.T:
            others = [grade for judge, grade in enumerate(item) if judge != own and not math.isnan(grade)]
            if not math.isnan(item[own]):
                apart += sum(item[own] != grade for grade in others) / len(others)
                pairs += 1
        wanted = 1 - apart / pairs / chance if pairs else math.nan
        assert row["alpha"] == pytest.approx(wanted, abs=1e-9, nan_ok=True)


def test_gold_and_drift():
    table = log()
    rows = {row["name"]: row for row in fn.check_judges(table).to_pylist()}
    frame = [row for row in table.to_pylist() if row["judge"] == "bob" and row["gold"] is not None]
    grades, gold = [row["grade"] for row in frame], [row["gold"] for row in frame]
    assert rows["bob"]["gold"] == 50
    assert rows["bob"]["gold_kappa"] == pytest.approx(fn.cohen_kappa(grades, gold, "quadratic"))
    assert rows["bob"]["bias"] == pytest.approx(np.mean(np.subtract(grades, gold)))
    assert rows["bob"]["bias_low"] > 0 > rows["cy"]["bias_low"]
    halves = np.subtract(grades, gold)
    assert rows["bob"]["drift"] == pytest.approx(halves[25:].mean() - halves[:25].mean())
    assert rows["bob"]["drift_low"] > 0
    assert rows["ann"]["drift_low"] < 0 < rows["ann"]["drift_high"]
    # without known grades beside the others, of whom one drifts the other way by that
    beside = {row["name"]: row for row in fn.check_judges(table.drop_columns("gold")).to_pylist()}
    assert beside["bob"]["gold"] == 0 and beside["bob"]["gold_kappa"] is None
    assert beside["bob"]["drift_low"] > 0.3
    dates = table.set_column(5, "time", pa.array(table["time"].to_numpy(), pa.int32()).cast(pa.date32()))
    assert fn.check_judges(dates) == fn.check_judges(table)
    words = table.set_column(5, "time", pa.array([f"{moment:05}" for moment in table["time"].to_pylist()]))
    assert fn.check_judges(words) == fn.check_judges(table)
    once = table.set_column(5, "time", pa.nulls(600, pa.int64()))
    assert fn.check_judges(once)["drift"].null_count == 6
    assert fn.check_judges(
        table.take(pa.array(np.random.default_rng(0).permutation(600)))
    ) == fn.check_judges(table)


def test_drift_is_rarely_found_where_there_is_none():
    """Of 400 steady judges about 5 % drift by intervals of 95 %."""
    rng, found = np.random.default_rng(1), 0
    items = np.tile(np.arange(60), 2)
    table = {"query": items, "doc_id": items, "judge": np.repeat([0, 1], 60), "time": items}
    for _ in range(200):
        row = fn.check_judges(table | {"grade": rng.integers(0, 4, 120)}).to_pylist()[1]
        found += not row["drift_low"] <= 0 <= row["drift_high"]
    assert found <= 20


def test_tables_and_names():
    table = log(n=20)
    first = fn.check_judges(table)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert fn.check_judges(table.to_pandas()) == first
    assert fn.check_judges(polars.from_arrow(table)) == first
    assert fn.check_judges(table.to_pydict()) == first
    renamed = table.rename_columns(["q", "d", "Annotator-ID", "g", "part", "at", "known"])
    words = {"query": "q", "doc_id": "d", "relevance": "g", "batch": "part", "time": "at", "gold": "known"}
    assert fn.check_judges(renamed, **words) == first
    assert fn.check_judges(pandas.DataFrame(renamed.to_pandas()), judge="Annotator-ID", **words) == first
    alone = fn.check_judges(table.select(["query", "document", "judge", "grade"]))
    assert alone["group"].to_pylist() == ["all"] + ["judge"] * 3 and alone["drift"].null_count == 4
    one = fn.check_judges({"query": [1], "doc": [1], "judge": ["a"], "grade": [2]}).to_pylist()
    assert math.isnan(one[0]["alpha"]) and one[0]["kappa"] is None and math.isnan(one[1]["alpha"])
    skipped = {"query": [1, 1], "doc": [1, 1], "judge": ["a", "b"], "grade": [2, None]}
    assert fn.check_judges(skipped).to_pylist()[0]["grades"] == 1


def test_refused():
    base = {"query": [1, 1], "doc_id": [1, 2], "judge": ["a", "b"], "grade": [1, 2]}
    with pytest.raises(ColumnError, match='there is no column "judge" for judge'):
        fn.check_judges({name: each for name, each in base.items() if name != "judge"})
    with pytest.raises(InputTypeError, match="the column for relevance holds string; wanted numbers"):
        fn.check_judges(base | {"grade": ["good", "bad"]})
    with pytest.raises(InputError, match="1 grade without a judge"):
        fn.check_judges(base | {"judge": ["a", None]})
    with pytest.raises(InputError, match="there are no grades"):
        fn.check_judges(base | {"grade": [None, None]})
    with pytest.raises(InputError, match='metric="ordinel" is not known|metric=.ordinel. is not known'):
        fn.check_judges(base, metric="ordinel")
    with pytest.raises(ColumnError, match='there is no column "when" for time'):
        fn.check_judges(base, time="when")
    with pytest.raises(InputTypeError, match="data is a int"):
        fn.check_judges(3)


# ---- the command ----


def test_command(tmp_path):
    table = log()
    pq.write_table(table, tmp_path / "grades.parquet")
    csv.write_csv(table, tmp_path / "grades.csv")
    rows = fn.check_judges(table).to_pylist()
    for path in ("grades.parquet", "grades.csv"):
        result = commands.run("judges", tmp_path / path, "--format", "json")
        assert result.exit_code == 0 and result.stderr == "600 grades of 200 documents\n"
        assert json.loads(result.stdout)["judges"] == rows
    shown = commands.run("judges", tmp_path / "grades.csv").stdout.splitlines()
    assert len(shown) == 7 and shown[0].split()[:4] == ["group", "name", "grades", "items"]
    lines = commands.run("judges", tmp_path / "grades.csv", "--format", "csv").stdout.splitlines()
    assert lines[0].startswith("group,name,grades,") and len(lines) == 7
    result = commands.run("judges", tmp_path / "grades.csv", "--fail-under", "0.8", "--metric", "ordinal")
    assert result.exit_code == 1
    assert "--fail-under: alpha of judge bob is 0.765053, not 0.8 or more" in result.stderr
    assert commands.run("judges", tmp_path / "grades.csv", "--fail-under", "0.5").exit_code == 0
    result = commands.run("judges", tmp_path / "grades.csv", "--fail-under", "1")
    assert "--fail-under: alpha of all is " in result.stderr
    result = commands.run("judges", tmp_path / "grades.csv", "--judge", "who")
    assert result.exit_code == 3 and 'there is no column "who" for --judge' in commands.only_line(
        result.stderr
    )
    assert commands.run("judges", tmp_path / "none.csv").exit_code == 3
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\n")
    result = commands.run("judges", tmp_path / "qrels.txt")
    wanted = "a file of TREC, whose columns have no names; wanted Parquet, CSV"
    assert result.exit_code == 3 and wanted in commands.only_line(result.stderr)
    assert commands.run("judges").exit_code == 2
    with (tmp_path / "grades.csv").open("rb") as stream:
        piped = commands.in_process_of_its_own("judges", "-", "--format", "csv", stdin=stream)
    assert piped.returncode == 0 and piped.stdout.splitlines() == lines


def test_many_judges():
    """A crowd of which each grades a little: one pass over the rows, not one for each judge."""
    rng = np.random.default_rng(0)
    items = np.repeat(np.arange(20_000), 3)
    table = {"query": items // 20, "doc_id": items, "judge": rng.integers(0, 300, 60_000)}
    found = fn.check_judges(
        table | {"grade": rng.integers(0, 4, 60_000), "time": np.arange(60_000)}
    ).to_pylist()
    assert len(found) == 301 and abs(found[0]["alpha"]) < 0.02
    assert sum(row["grades"] + row["repeated"] for row in found[1:]) == 60_000


@pytest.mark.pure
def test_times_and_judges_that_are_nan():
    table = {"query": list("aaaabbbb"), "document": [1, 1, 2, 2] * 2, "judge": ["x", "y"] * 4}
    table |= {"grade": [1, 2, 0, 0, 1, 1, 2, 2]}
    times = [1.0, math.nan, 2.0, 3.0, 4.0, 5.0, 6.0, math.nan]
    nulls = pa.array([None if each != each else each for each in times])
    one, other = (fn.check_judges(pa.table(table | {"time": each})) for each in (pa.array(times), nulls))
    assert one.to_pylist() == other.to_pylist()
    with pytest.raises(fn.InputError, match="1 grade without a judge"):
        fn.check_judges(pa.table(table | {"judge": [1.0, math.nan] + [2.0] * 6}))
    for role in ("grade", "gold"):
        with pytest.raises(fn.InputError, match="has an infinite number"):
            fn.check_judges(pa.table(table | {role: [1.0, math.inf] + [2.0] * 6}))
