"""Sums without rounding: the same as those of fractions, whatever the values."""

import math
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg.errors import InputError
from fastndcg.statistics import exact_sums

pytestmark = pytest.mark.compiled


def drawn(seed, n):
    """Values as measures and differences of them have, and very large and small ones."""
    random = np.random.default_rng(seed)
    kind = seed % 9
    values = random.random(n)
    if kind == 1:
        values = np.where(random.random(n) < 0.7, 0.0, 1 / random.integers(1, 11, n))
    elif kind == 2:
        values = random.normal(0, 1e-3, n)
    elif kind == 3:
        values *= 10.0 ** random.integers(-320, 300, n)
    elif kind == 4:
        values = np.append(values[1:], random.choice([1e-40, 1e40, -1e-300, 5e-324], min(n, 1)))
    elif kind == 5:
        values = np.full(n, random.choice([0.0, 0.1, -1.0, 1e308, 5e-324]))
    elif kind == 6:
        values = random.integers(-3, 4, n) / 7
    elif kind == 7:
        values = np.round(values, 2)
    elif kind == 8:
        values -= 2.0 ** random.integers(-60, 3)
    return values


def in_fractions(*factors):
    products = zip(*(map(Fraction, factor.tolist()) for factor in factors), strict=True)
    return sum(map(math.prod, products), Fraction(0))


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.sampled_from([3, 1 << 28]), st.booleans())
def test_sums_are_those_of_fractions(seed, n, between_carries, compiled):
    """By kernels and by NumPy, whatever the values, in one part or in many."""
    values, others = drawn(seed, n), drawn(seed // 9, n)
    with (
        patch.object(exact_sums, "_BETWEEN_CARRIES", between_carries),
        patch.object(exact_sums, "_COMPILED", 0 if compiled else 1 << 30),
    ):
        assert exact_sums.exact_sum(values) == in_fractions(values)
        for other in (values, others):
            assert exact_sums.exact_sum_of_products(values, other) == in_fractions(values, other)


@pytest.mark.parametrize("seed", range(9))
def test_many_values(seed):
    """More than NumPy and kernels add up at a time."""
    values = drawn(seed, (1 << 18) + 5)
    totals, squares = [], []
    for compiled in (0, 1 << 30):
        with patch.object(exact_sums, "_COMPILED", compiled):
            totals.append(exact_sums.exact_sum(values))
            squares.append(exact_sums.exact_sum_of_products(values, values))
    assert totals[0] == totals[1] and squares[0] == squares[1]
    some = drawn(seed, 70_000)
    assert exact_sums.exact_sum(some[::-1]) == in_fractions(some)
    moments = exact_sums.Moments.of(values)
    assert (moments.low, moments.high) == (values.min(), values.max())
    assert moments.mean() == exact_sums.mean(values)
    with_nan = exact_sums.Moments.of(np.append(values, math.nan))
    assert with_nan.undefined == 1 and with_nan[2:] == moments[2:]


@pytest.mark.pure
@pytest.mark.parametrize("values", [[], [1.0, math.inf], [math.nan]])
def test_what_is_not_finite_has_no_sum(values):
    found = exact_sums.quartiles(np.array(values))
    assert all(map(math.isnan, found))
    if values:
        with pytest.raises(InputError, match="1 of . numbers to sum are not finite"):
            exact_sums.exact_sum(values)
