"""Damaged files: a mutant is known by its number, and a short run of each target finds nothing."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from scripts import fuzz

pytestmark = pytest.mark.auto


def test_a_mutant_is_known_by_its_number() -> None:
    target = fuzz.targets()["parquet"]
    assert fuzz.mutant_of(target, 3, 17) == fuzz.mutant_of(target, 3, 17) != fuzz.mutant_of(target, 3, 18)


def test_damage_begins_where_it_is_asked_for() -> None:
    whole = bytes(range(100))
    for number in range(200):
        changed = fuzz.mutate(whole, Random(number), 40)
        assert changed[:40] == whole[:40]


@pytest.mark.parametrize(
    "name",
    [
        "parquet",
        "parquet_run",
        "parquet_scores",
        "trec_run",
        "trec_qrels",
        "letor",
        "npy",
        "numbers",
        "csv",
        "notation",
    ],
)
def test_a_short_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the kernels as plain Python, which find each index that is out of bounds."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    read, failures = fuzz.fuzz(fuzz.targets()[name], range(400), 0, tmp_path / "kept", seconds=2)
    assert read > 0
    assert failures == []
