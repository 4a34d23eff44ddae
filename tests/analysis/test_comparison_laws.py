"""Laws that hold for whatever values are compared: lattices, constants, two queries, one weight that dominates, huge scales."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems import scores_of

import fastndcg as fn
from fastndcg.analysis.compare import TESTS
from fastndcg.scores.scores import Scores
from fastndcg.statistics import exact_sum, mean
from fastndcg.statistics.intervals import shift_to_detect, t_quantile, t_two_sided
from fastndcg.statistics.resampling import METHODS

stats = pytest.importorskip("scipy.stats")

INTERVALS = ("t", *METHODS)
SIZES = ("difference", "low", "high", "detectable")
SCALES = (5.0, 2.0**-600, 1e150)


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray
    weight: np.ndarray | None = None
    cluster: np.ndarray | None = None

    def row(self, scale=1.0, order=slice(None), **options):
        weight = None if self.weight is None else self.weight[order]
        systems = {
            name: scores_of(scale * values[order], measure="CG", weight=weight)
            for name, values in (("a", self.a), ("b", self.b))
        }
        if self.cluster is not None:
            options["cluster"] = self.cluster[order]
        return fn.compare(systems, resamples=200, **options).rows[0]


@st.composite
def pairs(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([2, 2, 3, 5, 9, 30]))
    if draw(st.booleans()):  # a lattice, as of P@5
        a = random.integers(0, 4, n) / 5
        b = a + (random.integers(-1, 3, n) / 5 if draw(st.booleans()) else 0.2)
    else:
        a = random.random(n)
        b = a + draw(st.sampled_from([0.1, 1e-17, 1e-9])) * np.ceil(random.normal(0, 1, n))
    if draw(st.booleans()):  # most queries tie
        b = np.where(random.random(n) < 0.8, a, b)
    weight = cluster = None
    if draw(st.booleans()):
        weight = random.exponential(size=n) * draw(st.sampled_from([1.0, 1e170, 1e-170]))
        weight[0] *= draw(st.sampled_from([1.0, 100.0, 1e5, 1e20, 1e100]))
    if draw(st.booleans()):
        cluster = random.integers(0, max(2, n // 3), n)
    return Pair(a, b, weight, cluster)


@given(pairs(), st.sampled_from(INTERVALS), st.sampled_from(TESTS), st.sampled_from([0.2, 0.95, 0.999]))
def test_numbers_of_a_comparison(pair, interval, test, confidence):
    options = {"interval": interval, "test": test, "confidence": confidence}
    row = pair.row(**options)
    difference, low, high = row["difference"], row["low"], row["high"]
    assert math.isfinite(difference)
    assert low <= difference <= high or (math.isnan(low) and math.isnan(high))
    assert row["wins"] + row["ties"] + row["losses"] == row["queries"] == len(pair.a)
    assert math.isnan(row["p"]) or 0 < row["p"] <= 1
    assert not row["detectable"] < 0
    # neither scale nor order nor direction matter
    near = 1e-13 + (1e-9 * (high - low) if math.isfinite(high - low) else 0)
    for scale in SCALES:
        scaled = pair.row(scale, **options)
        for names, size, off in ((SIZES, scale, near), (("p", "effect"), 1.0, 1e-6)):
            for name in names:
                wanted = pytest.approx(row[name], rel=1e-5, abs=off, nan_ok=True)
                assert scaled[name] / size == wanted, (name, scale)
    order = np.random.default_rng(0).permutation(len(pair.a))
    assert repr(pair.row(order=order, **options)) == repr(row)
    turned = pair._replace(a=pair.b, b=pair.a).row(**options)
    assert [repr(turned[name] + 0.0) for name in ("difference", "low", "high", "p")] == [
        repr(each + 0.0) for each in (-difference, -high, -low, row["p"])
    ]


# ---- distributions ----


def test_equal_differences_are_detected():
    for freedom in (1e-6, 0.01, 0.3, 1, 2, 9, 999, 1e9):
        assert shift_to_detect(freedom, 0.95, 0.8) > 2.8
    kept = {"country": ["de"] * 38 + ["li"] * 2}
    a = fn.Rankings.from_lists([[0, 1, 0, 0, 1]] * 38 + [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], queries=kept)
    b = fn.Rankings.from_lists([[1, 1, 0, 1, 0]] * 38 + [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]], queries=kept)
    for each in fn.compare({"a": a, "b": b}, measures="P@5").slices("country").values():
        (row,) = each.rows
        assert row["low"] == row["difference"] == row["high"] > 0 and row["detectable"] == 0


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 50, 1000])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_power_at_the_detectable_difference(n, confidence):
    """By the noncentral t, it is near 0.8 from 10 queries on, and 0.69 or more for fewer."""
    values = np.random.default_rng(n).random(n)
    row = Pair(np.zeros(n), values).row(confidence=confidence)
    shift = row["detectable"] / (values.std(ddof=1) / math.sqrt(n))
    bound = stats.t.ppf((1 + confidence) / 2, n - 1)
    power = stats.nct.sf(bound, n - 1, shift) + np.nan_to_num(stats.nct.cdf(-bound, n - 1, shift))
    assert power == pytest.approx(0.8, abs=0.02 if n >= 10 else 0.11)


@pytest.mark.parametrize("freedom", [1e-6, 1e-3, 0.0038, 0.04, 0.1, 0.19999])
def test_p_of_little_freedom(freedom):
    """It fell from 1 to 0 where one weight dominated."""
    for t in (1e-8, 0.01, 0.3, 1, 2, 589.2, 1e6, 1e100):
        assert t_two_sided(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-11)
    outside = 0.999999 if freedom < 0.01 else 0.05
    assert t_two_sided(t_quantile(outside, freedom), freedom) == pytest.approx(outside, rel=1e-12)


def test_weights_of_any_size():
    random = np.random.default_rng(3)
    a, b, weight = random.random((3, 30))
    for interval in INTERVALS:
        wanted = Pair(a, b, weight).row(interval=interval)
        for power in (-1000, -560, 560, 1000):
            assert repr(Pair(a, b, np.ldexp(weight, power)).row(interval=interval)) == repr(wanted)


# ---- ends ----


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_gate_of_equal_losses_fails(interval):
    values = np.full(56, 0.0625), np.full(56, 0.0125)
    systems = {name: scores_of(each) for name, each in zip("ab", values, strict=True)}
    found = fn.compare(systems, interval=interval, resamples=200)
    assert found.rows[0]["low"] == found.rows[0]["high"] == found.rows[0]["difference"] == -0.05
    assert found.no_worse_than("a", margin=0.001) == {"nDCG@1": False}
    row = systems["b"].summary(0.95, interval, resamples=200).rows[0]
    assert (row["low"], row["high"]) == (0.0125, 0.0125)


def test_an_interval_without_ends_holds_no_gate():
    """One query has nearly all the weight, so that there is hardly a degree of freedom."""
    weight = [1.0, *[1e-9] * 5]
    found = fn.compare(
        {name: scores_of([0.1 * (name == "b"), 0, 0, 0, 0, 0], weight=weight) for name in "ab"}
    )
    assert not math.isfinite(found.rows[0]["high"])
    assert found.no_worse_than("a", margin=100.0) == {"nDCG@1": False}
    assert "The interval of nDCG@1 between b and a is not finite, so that no gate holds by it" in repr(found)


# ---- what is not finite ----


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("n", [3, 70_000])
def test_values_and_weights_that_are_not_finite(odd, n):
    """They were summed as if their bits were those of numbers."""
    values = np.full(n, 0.5)
    values[1] = odd
    plain = np.full(n, 0.25)
    for each in ((values, None), (values, plain), (plain, values)):
        assert math.isnan(mean(*each))
    for sums in (lambda: exact_sum(values), lambda: exact_sum(plain, values)):
        with pytest.raises(fn.InputError, match="1 of .* numbers to sum are not finite"):
            sums()
    stored = [
        Scores(
            (fn.nDCG @ 1,), np.atleast_2d(each), np.zeros((1, n), np.bool_), scores_of(plain).queries, None
        )
        for each in (values, plain)
    ]
    assert math.isnan(stored[0].mean()["nDCG@1"])
    for method in INTERVALS:
        row = stored[0].summary(0.95, method, resamples=100).rows[0]
        assert all(math.isnan(row[name]) for name in ("mean", "low", "high", "std"))
    for test in TESTS:
        row = fn.compare({"a": stored[0], "b": stored[1]}, test=test, resamples=100).rows[0]
        assert all(
            math.isnan(row[name]) for name in ("difference", "low", "high", "p", "effect", "detectable")
        )
