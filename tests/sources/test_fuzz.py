"""Damaged files: a mutant is known by its number, and a short run of each target finds nothing."""

from random import Random

import pytest

from scripts import fuzz


def test_a_mutant_is_known_by_its_number():
    target = fuzz.targets()["parquet"]
    assert fuzz.mutant_of(target, 3, 17) == fuzz.mutant_of(target, 3, 17) != fuzz.mutant_of(target, 3, 18)


def test_damage_begins_where_it_is_asked_for():
    whole = bytes(range(100))
    for number in range(200):
        changed = fuzz.mutate(whole, Random(number), 40)
        assert changed[:40] == whole[:40]


@pytest.mark.parametrize("name", fuzz.targets())
def test_a_short_run(name, tmp_path):
    """Of the kernels as plain Python, which find each index that is out of bounds."""
    found = fuzz.fuzz(fuzz.targets()[name], range(400), 0, tmp_path / "kept", seconds=2)
    assert found.read > 0
    assert found.failures == []
    assert found.reached
    assert found.missed == []


@pytest.mark.parametrize("name", ["parquet", "trec_run", "letor"])
def test_a_short_run_of_compiled_kernels(name, tmp_path):
    found = fuzz.fuzz(fuzz.targets()[name], range(200), 0, tmp_path / "kept", seconds=3, kernels="compiled")
    assert found.failures == []
    assert found.missed == []


def test_a_decoder_that_is_never_reached_fails_the_run(capsys, tmp_path, monkeypatch):
    """Decoders of pages were never reached once: files were too small for them."""
    counted = fuzz.Counter({"fastndcg.sources.parquet:_finish": 0, "fastndcg.sources.parquet:read_footer": 7})
    monkeypatch.setattr(fuzz, "fuzz", lambda *_: fuzz.Found(7, [], counted))
    assert fuzz.main(["--target", "parquet", "--keep", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "fastndcg.sources.parquet:_finish: NEVER REACHED" in said
    assert "read_footer: reached 7 times" in said
