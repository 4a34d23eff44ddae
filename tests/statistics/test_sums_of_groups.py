"""Exact sums of many groups beside fractions of Python, for values of all magnitudes."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg import InputError
from fastndcg.statistics import SumsOfGroups

VALUES = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(st.tuples(st.integers(0, 4), VALUES, VALUES), max_size=40)


def sums_of(rows, *, products):
    groups = np.array([group for group, *_ in rows], np.int64)
    left, right = (np.array([row[side] for row in rows], np.float64) for side in (1, 2))
    return SumsOfGroups.of(groups, 5, *((left, right) if products else (left,)))


@given(ROWS, st.integers(1, 7), st.booleans())
def test_sums_are_exact_however_rows_are_split(rows, size, products):
    expected = [Fraction(0)] * 5
    for group, left, right in rows:
        expected[group] += Fraction(left) * (Fraction(right) if products else 1)
    assert sums_of(rows, products=products).fractions() == expected
    parts = [sums_of(rows[start : start + size], products=products) for start in range(0, len(rows), size)]
    merged = SumsOfGroups.merged(np.tile(np.arange(5), len(parts)), 5, parts)
    assert merged.fractions() == expected


def test_sums_of_many_values_carry():
    n = 1_000_000  # more than are added up at a time
    values = np.where(np.arange(n) % 2, -1.0, 1.0) * np.nextafter(2.0, 0.0)
    values[0] = 5e-324
    found = SumsOfGroups.of(np.arange(n) % 4, 4, values, np.abs(values)).fractions()
    square = Fraction(values[1]) ** 2
    least = Fraction(5e-324) ** 2
    assert found == [(n // 4 - 1) * square + least, -n // 4 * square, n // 4 * square, -n // 4 * square]


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="^1 of 2 numbers to sum are not finite"):
        SumsOfGroups.of(np.array([0, 0]), 1, np.array([1.0, np.inf]))
