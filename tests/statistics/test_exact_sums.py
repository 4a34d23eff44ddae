"""Sums without rounding: the same as those of fractions, whatever the values, of one group or of many."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastndcg.errors import InputError
from fastndcg.statistics import exact_sums
from fastndcg.statistics.exact_sums import Moments


def drawn(seed, n):
    """Values as measures and differences of them have, and very large and small ones."""
    random = np.random.default_rng(seed)
    kind = seed % 10
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
        values = np.full(n, random.choice([0.0, 0.1, -1.0, 1.7976931348623157e308, 5e-324]))
    elif kind == 6:
        values = random.integers(-3, 4, n) / 7
    elif kind == 7:
        values = np.round(values, 2)
    elif kind == 8:
        values -= 2.0 ** random.integers(-60, 3)
    elif kind == 9:
        values = random.integers(0, 1 << 64, n, np.uint64).view(np.float64)
        values[~np.isfinite(values)] = -0.0
    return values


def in_fractions(*factors):
    products = zip(*(map(Fraction, factor.tolist()) for factor in factors), strict=True)
    return sum(map(math.prod, products), Fraction(0))


@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.integers(1, 5))
def test_sums_are_those_of_fractions(seed, n, n_groups):
    """By group too, and of parts that are merged."""
    values, others = drawn(seed, n), drawn(seed // 10, n)
    groups = np.arange(n) * 7 % n_groups
    for factors in ((values,), (values, others), (values, values)):
        assert exact_sums.exact_sum(*factors) == in_fractions(*factors)
    with np.errstate(over="ignore"):
        overflows = not np.isfinite(values * others).all()
    for weight in (None, others):
        if weight is not None and overflows:
            with pytest.raises(InputError, match="are not finite"):
                Moments.of(values, weight, groups, n_groups)
            break
        found = Moments.of(values, weight, groups, n_groups)
        cut = slice(0, n // 3), slice(n // 3, n)
        parts = [
            Moments.of(values[part], None if weight is None else weight[part], groups[part], n_groups)
            for part in cut
        ]
        merged = Moments.merged(np.tile(np.arange(n_groups), 2), n_groups, parts)
        for group, (sums, of_parts) in enumerate(zip(found.each(), merged.each(), strict=True)):
            rows = groups == group
            own = Moments.of(values[rows], None if weight is None else weight[rows])
            known = Moments._fields[2:4] if weight is None else Moments._fields[4:10]
            assert all(getattr(own, name) == getattr(sums, name) == getattr(of_parts, name) for name in known)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_means_are_rounded_once(seed, n):
    values, weight = drawn(seed, n), np.abs(drawn(seed // 10, n))
    assert exact_sums.mean(values) == float(in_fractions(values) / n)
    total = in_fractions(weight)
    found = exact_sums.mean(values, weight)
    assert found == float(in_fractions(values, weight) / total) if total else math.isnan(found)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.slow
def test_many_values(seed):
    """More than are added up at a time."""
    values = drawn(seed, 70_000)
    squares = exact_sums.exact_sum(values, values)
    assert exact_sums.exact_sum(values[::-1]) == in_fractions(values)
    halves = [values[::2], values[1::2]]
    assert squares == sum(exact_sums.exact_sum(half, half) for half in halves)
    moments = exact_sums.Moments.of(values)
    assert (moments.low, moments.high) == (values.min(), values.max())
    assert moments.mean() == exact_sums.mean(values)
    with_nan = exact_sums.Moments.of(np.append(values, math.nan))
    assert with_nan.undefined == 1 and with_nan[2:] == moments[2:]


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_by_group_are_those_of_each(weighted):
    """Of groups without values and with values that are not finite, too."""
    groups = np.array([0, 2, 0, 3, 3, 2, 2])
    values = np.array([0.1, 0.2, 0.7, math.nan, 0.5, 1 / 3, 0.6])
    weight = np.array([1.0, 0.0, 0.3, 1.0, math.inf, 2.0, 5.0]) if weighted else None
    found = Moments.of(values, weight, groups, 5).each()
    for group, moments in enumerate(found):
        rows = groups == group
        own = exact_sums.Moments.of(values[rows], None if weight is None else weight[rows])
        assert moments.n_values == own.n_values and moments.undefined == own.undefined
        for answer in ("mean", "error"):
            pair = (getattr(each, answer)(weighted=weighted) for each in (moments, own))
            assert repr(next(pair)) == repr(next(pair))


@pytest.mark.parametrize("values", [[], [1.0, math.inf], [math.nan]])
def test_what_is_not_finite_has_no_sum(values):
    assert math.isnan(exact_sums.mean(np.array(values)))
    if values:
        with pytest.raises(InputError, match="1 of . numbers to sum are not finite"):
            exact_sums.exact_sum(values)


def test_products_that_overflow_are_refused():
    values, weight = np.array([1e300, 1.0]), np.array([1e300, 1.0])
    with pytest.raises(InputError, match="1 of 2 numbers to sum are not finite"), np.errstate(over="ignore"):
        exact_sums.Moments.of(values, weight)


@pytest.mark.parametrize("scale", [1e200, 1e-160])
def test_errors_of_extreme_values(scale):
    error, freedom = exact_sums.Moments.of(np.array([1, 3]) * scale, np.array([1.0, 2.0])).error(
        weighted=True
    )
    plain, same = exact_sums.Moments.of(np.array([1.0, 3]), np.array([1.0, 2.0])).error(weighted=True)
    assert (error, freedom) == (pytest.approx(plain * scale, rel=1e-12), same)
