"""Damaged files: a mutant is defined by its number, and a short run of each format finds nothing."""

import os

import pytest

import fastndcg as fn
from scripts import fuzz


@pytest.mark.parametrize("seconds", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", fuzz.FORMATS)
def test_a_short_run(name, seconds, tmp_path):
    """Of the kernels as plain Python, which find each index that is out of bounds."""
    counts, failures = fuzz.fuzz(fuzz.FORMATS[name], range(400), 0, tmp_path / "kept", seconds)
    assert failures == []
    assert counts[fuzz.READ] > 0


@pytest.mark.parametrize("name", ["parquet", "trec_run", "letor"])
@pytest.mark.slow
def test_a_short_run_of_compiled_kernels(name, tmp_path):
    _, failures = fuzz.fuzz(fuzz.FORMATS[name], range(200), 0, tmp_path / "kept", 3, "compiled")
    assert failures == []


def test_a_reader_that_is_wrong_is_found(capsys, tmp_path, monkeypatch):
    """Its mutant is kept, and can be read again; a run that reads nothing fails, too."""
    command = ["--format", "csv", "--seed", "3", "--keep", str(tmp_path)]
    monkeypatch.setattr(
        fuzz, "judge_all", lambda *_: (each for each in [(0, fuzz.READ), (1, "raises KeyError: 1")])
    )
    assert fuzz.main(command) == 1
    assert "1 read, 0 refused, 1 failed" in capsys.readouterr().out
    mutant = tmp_path / "csv-3-1.csv"
    assert mutant.read_bytes() == fuzz.mutant_of(fuzz.FORMATS["csv"], 3, 1)
    assert fuzz.main(["--replay", str(mutant)]) == 0
    monkeypatch.setattr(fuzz, "judge_all", lambda *_: (each for each in [(0, fuzz.REFUSED)]))
    assert fuzz.main(command) == 1


def fail(path):
    raise KeyError(path.suffix)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, fuzz.READ),
        ({"readers": (fail,)}, "fail raises KeyError: '.csv'"),
        ({"readers": (fuzz.whole, lambda path: [("a",)])}, "readers differ: whole, <lambda>"),
        ({"reference": lambda path: [("a",)]}, "reads something else than the reference"),
        ({"reference": fail}, fuzz.READ),
        ({"reference": fail, "may_read_more": False}, "reads what it should refuse"),
    ],
)
def test_verdicts(changes, said, tmp_path):
    (tmp_path / "a.csv").write_text("qid,label,score\nq1,1,0.5\n")
    assert fuzz.verdict(fuzz.FORMATS["csv"]._replace(**changes), tmp_path / "a.csv") == said


def crash_at_zero(name, seed, number, seconds):
    return fuzz.READ if number else os.abort()


def test_a_crash_is_found(monkeypatch):
    """The mutant that ends a process fails, and the next one is read by another process."""
    monkeypatch.setattr(fuzz, "judge", crash_at_zero)
    (_, crash), after = fuzz.judge_all(fuzz.FORMATS["csv"], range(2), 0, "plain")
    assert crash.startswith("the process crashed")
    assert after == (1, fuzz.READ)


@pytest.mark.parametrize("text", ["1\u00a0", "1_0", "\u0661", "x"])
def test_numbers_that_only_python_reads(text, tmp_path):
    (tmp_path / "a.csv").write_text(f"qid,label,score\nq1,0,0.5\nq1,{text},0.25\n", encoding="utf-8")
    with pytest.raises(fn.FastndcgError, match=f'row 3 .*"label" has "{text}"'):
        fn.read_csv(tmp_path / "a.csv")
