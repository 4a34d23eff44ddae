"""Damaged files: a mutant is known by its number, and a short run of each target finds nothing."""

from random import Random

import pytest

from scripts import fuzz


def test_a_mutant_is_known_by_its_number():
    target = fuzz.TARGETS["parquet"]
    assert fuzz.mutant_of(target, 3, 17) == fuzz.mutant_of(target, 3, 17) != fuzz.mutant_of(target, 3, 18)


def test_damage_begins_where_it_is_asked_for():
    whole = bytes(range(100))
    for number in range(200):
        changed = fuzz.mutate(whole, Random(number), 40)
        assert changed[:40] == whole[:40]


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_a_short_run(name, tmp_path):
    """Of the kernels as plain Python, which find each index that is out of bounds."""
    found = fuzz.fuzz(fuzz.TARGETS[name], range(400), 0, tmp_path / "kept", seconds=2)
    assert found.failures == []
    assert found.counts[fuzz.READ] > 0


@pytest.mark.parametrize("name", ["parquet", "trec_run", "letor"])
def test_a_short_run_of_compiled_kernels(name, tmp_path):
    found = fuzz.fuzz(fuzz.TARGETS[name], range(200), 0, tmp_path / "kept", seconds=3, kernels="compiled")
    assert found.failures == []


def test_a_reader_that_is_wrong_is_found(capsys, tmp_path, monkeypatch):
    """Its mutant is kept and read again; a run that reads nothing fails, too."""
    target = fuzz.TARGETS["csv"]
    answers = iter([(0, fuzz.READ), (1, "raises KeyError: 1")])
    monkeypatch.setattr(fuzz, "in_children", lambda *_: answers)
    assert fuzz.main(["--target", "csv", "--seed", "3", "--keep", str(tmp_path)]) == 1
    assert "1 read, 0 refused, 1 failed" in capsys.readouterr().out
    assert (tmp_path / "csv-3-1.csv").read_bytes() == fuzz.mutant_of(target, 3, 1)
    assert fuzz.main(["--replay", str(tmp_path / "csv-3-1.csv")]) == 0
    monkeypatch.setattr(fuzz, "in_children", lambda *_: iter([(0, fuzz.REFUSED)]))
    assert fuzz.main(["--target", "csv", "--keep", str(tmp_path)]) == 1
