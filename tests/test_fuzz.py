"""Damaged files: a mutant is known by its number, and a short run of each target finds nothing."""

from __future__ import annotations

from random import Random

from scripts import fuzz


def test_a_mutant_is_known_by_its_number() -> None:
    target = fuzz.targets()["parquet"]
    assert fuzz.mutant_of(target, 3, 17) == fuzz.mutant_of(target, 3, 17) != fuzz.mutant_of(target, 3, 18)


def test_damage_begins_where_it_is_asked_for() -> None:
    whole = bytes(range(100))
    for number in range(200):
        changed = fuzz.mutated(whole, Random(number), 40)
        assert changed[:40] == whole[:40]
