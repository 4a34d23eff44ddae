"""Sums in windows and quartiles by bins: the same numbers as exact fractions and NumPy have, whatever the values."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg.statistics import exact_sums


def drawn(seed: int, n: int) -> np.ndarray:
    """Values as measures and differences of them have, and those that no window holds."""
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
        values = np.append(values[1:], random.choice([1e-40, 1e40, -1e-300, 5e-324]))
    elif kind == 5:
        values = np.full(n, random.choice([0.0, 0.1, -1.0, 1e308, 5e-324]))
    elif kind == 6:
        values = random.integers(-3, 4, n) / 7
    elif kind == 7:
        values = np.round(values, 2)
    elif kind == 8:
        values -= 2.0 ** random.integers(-60, 3)
    return values


@pytest.mark.pure
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_sums_in_windows_are_exact_or_refused(seed: int, n: int) -> None:
    values = drawn(seed, n)
    found, squares = (exact_sums._sum_of_close(values, None, squared=squared) for squared in (False, True))
    assert found in (None, sum(map(Fraction, values.tolist())))
    assert squares in (None, sum(Fraction(value) ** 2 for value in values.tolist()))
    if seed % 9 in (0, 1, 6, 7):
        assert found is not None and squares is not None


@pytest.mark.pure
@given(st.integers(0, 2**32 - 1), st.integers(1, 300))
def test_quartiles_are_those_of_numpy(seed: int, n: int) -> None:
    values = drawn(seed, n)
    found = exact_sums._select_quartiles(values)
    assert found in (None, tuple(np.quantile(values, [0.25, 0.5, 0.75]).tolist()))
    if seed % 9 in (0, 1, 6, 7):
        assert found is not None


@pytest.mark.parametrize("seed", range(9))
def test_many_values(seed: int) -> None:
    """As many as are summed by kernels, and more than one run of them."""
    for n in (1 << 16, (1 << 20) + 5):
        values = drawn(seed, n)
        assert exact_sums.exact_sum(values) == exact_sums._sum_of_digits(values)
        assert exact_sums.exact_sum_of_products(values, values) == exact_sums._sum_of_digits(values, values)
        assert exact_sums.quartiles(values) == tuple(np.quantile(values, [0.25, 0.5, 0.75]).tolist())
    moments = exact_sums.Moments.of(values)
    assert (moments.low, moments.high) == (values.min(), values.max())
    assert moments.mean() == exact_sums.mean(values)
    with_nan = exact_sums.Moments.of(np.append(values, math.nan))
    assert with_nan.undefined == 1 and with_nan[2:] == moments[2:]


@pytest.mark.pure
def test_what_is_not_finite_is_in_no_window() -> None:
    values = np.array([1.0, math.inf])
    assert (
        exact_sums._sum_of_close(values, None, squared=False) is None
        and exact_sums._select_quartiles(values) is None
    )
