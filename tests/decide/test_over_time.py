"""`History`: nothing is lost whatever ends a writer, changes are sure when they are, and it reads as text, page and metrics."""

import os
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import ROOT

import fastndcg as fn
from fastndcg.measures import as_measures


def scores_of(values, measure="nDCG@10", **kept):
    values = np.asarray(values, np.float64)
    table = pa.table({"query_id": np.arange(len(values))} | kept)
    return fn.Scores(as_measures(measure), values[None], np.zeros((1, len(values)), np.bool_), table, None)


def days(history, *means, n=400, spread=0.2):
    random = np.random.default_rng(0)
    for day, mean in enumerate(means):
        values = random.normal(0, spread, n)
        values += mean - values.mean()
        history.add(scores_of(values), at=date(2026, 11, 1) + timedelta(day))


@pytest.mark.pure
def test_a_table_has_what_the_values_say(tmp_path):
    history = fn.History(tmp_path / "h.parquet")
    days(history, 0.6, 0.605, 0.55, 0.61)
    rows = history.table().to_pylist()
    assert [row["mean"] for row in rows] == pytest.approx([0.6, 0.605, 0.55, 0.61])
    assert [row["sure"] for row in rows] == [False, False, True, False]
    assert rows[0]["change"] is None and rows[2]["change"] == pytest.approx(-0.05)
    assert rows[2]["change_low"] < -0.05 < rows[2]["change_high"] < 0
    centre, ranges = np.mean([0.6, 0.605, 0.55, 0.61]), np.mean([0.005, 0.055, 0.06])
    assert rows[0]["limit_high"] == pytest.approx(centre + 2.66 * ranges)
    independent = fn.compare(
        {"a": scores_of(np.r_[0.1, 0.4, 0.6]), "b": scores_of(np.r_[0.2, 0.9])}, "a", paired=False
    )
    other = fn.History(tmp_path / "two.parquet")
    other.add(scores_of([0.1, 0.4, 0.6]), at="2026-01-01")
    other.add(scores_of([0.2, 0.9]), at="2026-01-02T10:00+02:00")
    row = other.table().to_pylist()[1]
    expected = [independent.rows[0][name] for name in ("difference", "low", "high")]
    assert [row[name] for name in ("change", "change_low", "change_high")] == pytest.approx(
        expected, rel=1e-12
    )
    assert row["at"] == datetime(2026, 1, 2, 8, tzinfo=UTC)
    assert [row["change"] for row in history.table(since=date(2026, 11, 3)).to_pylist()[:3]] == [None] * 3


@pytest.mark.compiled
def test_without_a_change_few_series_are_ever_called_changed():
    """At most 5 % of series of 20 days, however often one looks; 12 of 60 would be 5 deviations above."""
    from fastndcg.decide.over_time import numbers_of

    random, called = np.random.default_rng(0), 0
    for _ in range(60):
        rows = []
        for day in range(20):
            values = random.beta(2, 1, 50)
            numbers = values.mean(), values.std(ddof=1) / np.sqrt(50), 49.0
            rows.append(dict(zip(("mean", "error", "freedom"), numbers, strict=True))
                        | {"at": day, "name": "", "measure": "", "slice": None, "queries": 50})  # fmt: skip
        called += any(row["sure"] for row in numbers_of(rows, 0.95, None))
    assert called < 12


@pytest.mark.pure
def test_nothing_is_changed_and_the_same_again_adds_nothing(tmp_path):
    path = tmp_path / "h.parquet"
    history, kept = fn.History(path), {"country": pa.array(["de", None, "fr", "de"])}
    values = scores_of([0.5, 0.25, 1, np.nan], "nDCG(empty='skip')@10", **kept)
    history.add(values, at="2026-11-24", by="country", name='a "quoted"\nname')
    before = path.read_bytes()
    history.add(values, at="2026-11-24", by="country", name='a "quoted"\nname')
    assert path.read_bytes() == before
    with pytest.raises(
        fn.InputError, match=r"(?s)already has .* 0\.583333, not 0\.5\. Pass another at= or name="
    ):
        history.add(scores_of([0.5], "nDCG(empty='skip')@10"), at="2026-11-24", name='a "quoted"\nname')
    assert path.read_bytes() == before
    slices = history.table(by="country").to_pylist()
    assert [(row["slice"], row["queries"]) for row in slices] == [("de", 1), ("fr", 1), ("null", 1)]
    lines = history.openmetrics().splitlines()
    assert lines[-1] == "# EOF" and any('name="a \\"quoted\\"\\nname"' in line for line in lines)
    link = tmp_path / "link.parquet"
    link.symlink_to(path)
    fn.History(link).add(values, at="2026-11-25")
    assert link.is_symlink() and len(history.table()) == 2


@pytest.mark.pure
def test_what_is_wrong_is_said_and_no_file_is_touched(tmp_path):
    history, one = fn.History(tmp_path / "h.parquet"), scores_of([0.5])
    with pytest.raises(fn.InputError, match=r"h\.parquet, which does not exist, has no runs yet"):
        history.table()
    wrong = ("yesterday", fn.InputError), (7, fn.InputTypeError), (np.datetime64("NaT"), fn.InputTypeError)
    for at, error in wrong:
        with pytest.raises(error, match="is not a date|wanted a date"):
            history.add(one, at=at)
    with pytest.raises(fn.InputTypeError, match="wanted Scores"):
        history.add({"nDCG": 0.5})
    with pytest.raises(fn.ColumnError, match="country"):
        history.add(one, by="country")
    assert not os.listdir(tmp_path)
    history.add(one, at="2026-11-24")
    history.add(one, at=np.datetime64("2026-11-24"))
    assert history.table()["at"].to_pylist() == [datetime(2026, 11, 24, tzinfo=UTC)]
    with pytest.raises(fn.InputError, match=r"has no measure 'RR'; it has: 'nDCG@10'"):
        history.table("RR")
    for since in ("2026-11-23", "2026-11-23T22:00"):
        with pytest.raises(fn.InputError, match=f"no run up to {since[:10]}"):
            history.table(since=since)
    with pytest.raises(
        fn.InputError, match=r'since="soon" is not a date; expected for example since="2026-11-24"'
    ):
        history.table(since="soon")
    history.add(scores_of([0.25]), at="2026-11-24T07:30")  # later on that day
    for since in ("2026-11-24", date(2026, 11, 24)):
        assert history.table(since=since)["change"].to_pylist() == [None, None]
    assert history.table(since="2026-11-24T00:00")["change"].to_pylist() == [None, -0.25]
    for name, write in (
        ("other", lambda path: pq.write_table(pa.table({"a": [1]}), path)),
        ("text", lambda path: path.write_text("x")),
    ):
        path = tmp_path / name
        write(path)
        before = path.read_bytes()
        with pytest.raises(fn.SourceError, match=r"history"):
            fn.History(path).add(one)
        assert path.read_bytes() == before
    with pytest.raises(fn.SourceError):
        fn.History(tmp_path / "no folder" / "h.parquet").add(one)


WRITER = """
import sys
import numpy as np, pyarrow as pa
import fastndcg as fn
from fastndcg.measures import as_measures
path, name = sys.argv[1:]
table = pa.table({"query_id": np.arange(3)})
for run in range(10_000):
    values = np.array([[0.1, 0.2, run / 10_000]])
    scores = fn.Scores(as_measures("RR"), values, np.zeros((1, 3), bool), table, None)
    fn.History(path).add(scores, at="2026-11-24", name=f"{name} {run}")
    print(run, flush=True)
"""


def test_two_writers_that_are_killed_lose_nothing(tmp_path):
    """Each is killed some time after its first run was added, however long that took."""
    kills = int(os.environ.get("FASTNDCG_KILLS", "8"))
    path, random, promised = tmp_path / "h.parquet", np.random.default_rng(0), set()
    for kill in range(0, kills, 2):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(path), f"{kill} {side}"], stdout=subprocess.PIPE, text=True,
                cwd=ROOT,
            )
            for side in "ab"
        ]  # fmt: skip
        for side, each in zip("ab", writers, strict=True):
            assert each.stdout is not None and each.stdout.readline() == "0\n"
            promised.add(f"{kill} {side} 0")
        for side, each in zip("ab", writers, strict=True):
            time.sleep(random.uniform(0.005, 0.08))
            each.kill()
            assert each.stdout is not None
            promised |= {f"{kill} {side} {line.strip()}" for line in each.stdout if line.endswith("\n")}
            each.stdout.close()
            each.wait()
    found = fn.History(path).table()["name"].to_pylist()
    assert len(found) == len(set(found)) and promised <= set(found) and len(promised) >= kills
    assert len(found) <= len(promised) + kills  # at most one of each writer was added and not yet promised
    # a writer that was killed as it gave its draft a name leaves it to the next
    (tmp_path / ".h.parquet.0a1b2c3d.draft").touch()
    (tmp_path / ".other.parquet.0a1b2c3d.draft").touch()
    fn.History(path).add(fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 1]]), "RR"), at="2026-01-01")
    assert sorted(os.listdir(tmp_path)) == [".other.parquet.0a1b2c3d.draft", "h.parquet"]


def test_no_runs_and_no_dates(tmp_path):
    history = fn.History(tmp_path / "h.parquet")
    with pytest.raises(fn.InputError, match="has no runs yet"):
        history.openmetrics()
    scores = fn.evaluate(fn.Rankings.from_lists([[1, 0], [0, 1]]), "RR")
    with pytest.raises(fn.InputTypeError, match="at is a NaTType; wanted a date"):
        history.add(scores, at=pytest.importorskip("pandas").NaT)
    for at in ("9999-12-31T23:59:59-05:00", "0001-01-01T00:00+05:00"):
        with pytest.raises(fn.InputError, match="lies outside the years 1 to 9999"):
            history.add(scores, at=at)
    assert not os.listdir(tmp_path)
