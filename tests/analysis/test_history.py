"""`History`: times of the same queries are compared in pairs, changes are sure when they are, and nothing is lost."""

import subprocess
import sys
import time
import warnings
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import ROOT

import fastndcg as fn
from fastndcg.measures import as_measures

pytestmark = pytest.mark.pure


def scores_of(values, measure="nDCG@10", weight=None, first=0):
    values = np.asarray(values, np.float64)
    table = pa.table({"query_id": np.arange(first, first + len(values))})
    return fn.Scores(as_measures(measure), values[None], np.zeros((1, len(values)), np.bool_), table, weight)


def rows_of(history, *columns, **words):
    return history.table(**words).select(columns).to_pylist()


@pytest.mark.parametrize("weight", [None, np.array([3.0, 1.0, 2.0, 1.0])])
def test_changes_are_those_of_compare(weight, tmp_path):
    """In pairs for the same queries in any order, else as independent samples; weights too."""
    values = np.array([0.1, 0.4, 0.6, 0.9]), np.array([0.2, 0.3, 0.9, 0.9])
    old, new = (scores_of(each, weight=weight) for each in values)
    order = np.array([2, 0, 3, 1])
    turned = new._of(new.queries.take(pa.array(order)), order)
    others = scores_of(values[1], weight=weight, first=7)
    for number, (second, paired) in enumerate([(new, True), (turned, True), (others, False)]):
        history = fn.History(tmp_path / str(number))
        history.add(old, at="2026-01-01")
        history.add(second, at="2026-01-02T10:00+02:00")
        first, row = history.table().to_pylist()
        expected = fn.compare({"new": second, "old": old}, "old", paired=paired).rows[0]
        for name, key in (("change", "difference"), ("change_low", "low"), ("change_high", "high")):
            assert row[name] == pytest.approx(expected[key], rel=1e-12)
        assert row["paired"] is paired and row["differs"] is None and first["change"] is None
        assert row["at"] == datetime(2026, 1, 2, 8, tzinfo=UTC)
        summary = second.summary(0.95).rows[0]
        assert all(row[name] == summary[name] for name in ("mean", "low", "high"))
    if weight is not None:  # other weights are another sample
        history.add(scores_of(values[0], weight=weight[::-1]), at="2026-01-03")
        assert rows_of(history, "paired")[2] == {"paired": False}


def test_without_a_change_few_series_are_ever_called_changed(tmp_path):
    """At most 5 % of series of 10 times, in pairs or not; 8 of 40 would be 4 deviations above."""
    for paired in (True, False):
        random, called = np.random.default_rng(0), 0
        for number in range(40):
            history, queries = fn.History(tmp_path / f"{paired} {number}"), random.beta(2, 1, 50)
            for day in range(10):
                values = queries + random.normal(0, 0.1, 50) if paired else random.beta(2, 1, 50)
                history.add(scores_of(values, first=0 if paired else 50 * day), at=f"2026-11-{day + 1:02}")
            called += any(history.table()["sure"].to_pylist())
        assert called < 8
        if paired:  # and a change that is there is found, for which independent samples are too few
            history.add(scores_of(values - 0.08), at="2026-12-01")
            history.add(scores_of(values - 0.08, first=500), at="2026-12-02")
            assert [row["sure"] for row in rows_of(history, "sure")[-2:]] == [True, False]


def test_other_definitions_are_not_joined(tmp_path):
    """Another convention, or other judgments of the same queries, start anew; other documents and queries do not."""

    def rankings(grades, documents=("a", "b", "c")):
        scored = {document: 3.0 - rank for rank, document in enumerate(documents)}
        return fn.Rankings.from_qrels_run(grades, dict.fromkeys(grades, scored))

    qrels = {query: {"a": 0, "b": 1, "c": 2, "d": 1} for query in ("q1", "q2", "q3")}
    more = qrels | {"q2": {"a": 2, "b": 1, "c": 2, "d": 1}}
    history = fn.History(tmp_path / "h")
    for day, scores in enumerate(
        [
            fn.evaluate(rankings(qrels), "nDCG@3"),
            fn.evaluate(rankings(qrels, ("c", "d", "a")), "nDCG@3"),
            fn.evaluate(rankings({"q4": qrels["q1"], "q5": more["q2"]}), "nDCG@3"),
            fn.evaluate(rankings(qrels), "nDCG@3"),
            fn.evaluate(rankings(more), "nDCG@3"),
            fn.evaluate(rankings(more), "nDCG@3", convention="lightgbm"),
            fn.evaluate(rankings(more, ("c", "d", "a")), "nDCG@3", convention="lightgbm"),
        ],
        1,
    ):
        history.add(scores, at=f"2026-11-0{day}")
    found = history.table().to_pylist()
    assert [row["differs"] is not None for row in found] == [False] * 4 + [True, True, False]
    assert [row["change"] is not None for row in found] == [False, True, True, True, False, False, True]
    assert found[4]["differs"].startswith("judgments pool:12:")
    assert "convention none, now lightgbm" in found[5]["differs"]
    assert [row["paired"] for row in found if row["paired"] is not None] == [True, False, True, True]


def test_a_scale_of_grades_that_changes_is_a_warning(tmp_path):
    history = fn.History(tmp_path / "h")
    days = [fn.evaluate(fn.Rankings.from_lists([[top, 0], [0, 1]]), "nDCG@10") for top in (2, 2, 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history.add(days[0], at="2026-11-24")
        history.add(days[1], at="2026-11-25")
    with pytest.warns(
        fn.FastndcgWarning, match="grade is 4 in the judgments of 2026-11-26 and 2 in those of"
    ):
        history.add(days[2], at="2026-11-26")
    assert len(history.table()) == 3


def test_nothing_is_changed_and_the_same_again_adds_nothing(tmp_path):
    history, name = fn.History(tmp_path / "h"), 'a/b "quoted"\nname'
    values = scores_of([0.5, 0.25, 1, np.nan], "nDCG(empty='skip')@10")
    history.add(values, at="2026-11-24", name=name)
    history.add(values, at="2026-11-24", name=name)
    with pytest.raises(
        fn.InputError, match=r"has other values, with the means .* 0\.5833.* Pass another at="
    ):
        history.add(scores_of([0.5], "nDCG(empty='skip')@10"), at="2026-11-24", name=name)
    history.add(scores_of([np.nan, 1.0], "RR"), at="2026-11-24")
    history.add(scores_of([np.nan, 1.0], "RR"), at="2026-11-24")
    found = history.table().to_pylist()
    assert [(row["name"], row["measure"], row["queries"]) for row in found] == [
        ("", "RR", 2), (name, "nDCG(empty='skip')@10", 3),
    ]  # fmt: skip
    assert found[1]["mean"] == pytest.approx(1.75 / 3) and np.isnan(found[0]["mean"])
    # files are results like any others
    files = sorted((tmp_path / "h").iterdir())
    assert files[0].name == "2026-11-24T000000Z.parquet" and len(files) == 2
    assert pq.read_table(files[0]).column_names == ["query_id", "RR"]


def test_means_and_what_is_asked_for(tmp_path):
    history, random = fn.History(tmp_path / "h"), np.random.default_rng(0)
    for day, mean in enumerate((0.6, 0.605, 0.55, 0.61)):
        values = random.normal(0, 0.2, 400)
        history.add(scores_of(values + mean - values.mean()), at=date(2026, 11, 1) + timedelta(day))
    rows = history.table().to_pylist()
    assert [row["mean"] for row in rows] == pytest.approx([0.6, 0.605, 0.55, 0.61])
    assert [row["sure"] for row in rows] == [False, False, True, False]
    assert rows[2]["change"] == pytest.approx(-0.05)
    for asked, said in (
        ({"measure": "RR"}, "measure 'RR'; it has: 'nDCG@10'"),
        ({"name": "x"}, "name 'x'; it has: ''"),
    ):
        with pytest.raises(fn.InputError, match=f"has no {said}"):
            history.table(**asked)


def test_files_that_are_no_history(tmp_path):
    history, one = fn.History(tmp_path / "h"), scores_of([0.5])
    pandas = pytest.importorskip("pandas")
    history.add(one, at="2026-11-24")
    history.add(one, at=pandas.Timestamp("2026-11-25"))
    assert history.table()["at"].to_pylist() == [datetime(2026, 11, day, tzinfo=UTC) for day in (24, 25)]
    file, _ = (tmp_path / "h").iterdir()
    with pytest.raises(fn.SourceError, match="is a file, and a history is a folder"):
        fn.History(file).add(one)
    for write in (
        lambda path: pq.write_table(pa.table({"a": [1]}), path),
        lambda path: path.write_text("x", encoding="utf-8"),
    ):
        other = tmp_path / "h" / "other.parquet"
        write(other)
        with pytest.raises(fn.SourceError, match=r"other\.parquet .*a file of a history"):
            history.table()
        other.unlink()


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
    """Both are killed some time after their first values were added, however long that took."""
    path, promised = tmp_path / "h", set()
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = {
        side: subprocess.Popen([*command, side], stdout=subprocess.PIPE, text=True, cwd=ROOT) for side in "ab"
    }
    for side, each in writers.items():
        assert each.stdout is not None and each.stdout.readline() == "0\n"
        promised.add(f"{side} 0")
    time.sleep(0.1)
    for side, each in writers.items():
        each.kill()
        promised |= {f"{side} {line.strip()}" for line in each.stdout if line.endswith("\n")}
        each.stdout.close()
        each.wait()
    found = fn.History(path).table()["name"].to_pylist()
    assert promised <= set(found) and len(promised) <= len(found) == len(set(found)) <= len(promised) + 2
