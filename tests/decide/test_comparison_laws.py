"""Laws that hold for whatever values are compared: lattices, constants, two queries, one weight that dominates, huge scales."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from commands import printed
from hypothesis import given
from hypothesis import strategies as st
from systems import scores_of

import fastndcg as fn
from fastndcg.decide.systems import TESTS
from fastndcg.scores.scores import Scores
from fastndcg.statistics import exact_sum, exact_sum_of_products, mean
from fastndcg.statistics.intervals import logit_interval, queries_needed, t_interval, t_quantile, t_two_sided
from fastndcg.statistics.resampling import METHODS

stats = pytest.importorskip("scipy.stats")

INTERVALS = ("t", *METHODS)
SIZES = ("difference", "low", "high", "detectable")
EFFECTS = ("effect_low", "effect", "effect_high")
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
    if test == "wilcoxon" and (pair.weight is not None or pair.cluster is not None):
        test = "t"
    options = {"interval": interval, "test": test, "confidence": confidence}
    row = pair.row(**options)
    difference, low, high = row["difference"], row["low"], row["high"]
    assert math.isfinite(difference)
    assert low <= difference <= high or (math.isnan(low) and math.isnan(high))
    effect = [row[name] for name in EFFECTS]
    assert effect == sorted(effect) or all(map(math.isnan, effect))
    assert row["wins"] + row["ties"] + row["losses"] == row["queries"] == len(pair.a)
    assert row["nonzero"] == row["wins"] + row["losses"]
    assert math.isnan(row["p"]) or 0 < row["p"] <= 1
    assert not row["detectable"] < 0
    # neither scale nor order nor direction matter
    near = 1e-13 + (1e-9 * (high - low) if math.isfinite(high - low) else 0)
    # errors of resamples without the query that has nearly all the weight are imprecise
    for scale in SCALES if interval != "studentised" or pair.weight is None else ():
        scaled = pair.row(scale, **options)
        for names, size, off in ((SIZES, scale, near), (("p", *EFFECTS), 1.0, 1e-6)):
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

_EVERY_CALL_ENDS = """
import numpy as np
import fastndcg as fn
from fastndcg.statistics.intervals import noncentralities, queries_needed, shift_to_detect
for freedom in (1, 1.5, 2, 9, 49, 999, 1e6):
    for t in np.logspace(-20, 300, 33).tolist():
        for confidence in (0.01, 0.5, 0.95, 0.999999):
            low, high = noncentralities(t, freedom, confidence)
            assert low <= high and noncentralities(-t, freedom, confidence) == (-high, -low)
for freedom in (1e-6, 0.01, 0.3, 1, 2, 9, 999, 1e9):
    assert shift_to_detect(freedom, 0.95, 0.8) > 2.8
assert [queries_needed(effect, 0.95, 0.8) for effect in (10, 15, 20, 40, 1e10)] == [3, 2, 2, 2, 2]
kept = {"country": ["de"] * 38 + ["li"] * 2}
a = fn.Rankings.from_lists([[0, 1, 0, 0, 1]] * 38 + [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], queries=kept)
b = fn.Rankings.from_lists([[1, 1, 0, 1, 0]] * 38 + [[1, 1, 0, 0, 0], [1, 1, 1, 0, 0]], queries=kept)
rows = [each.rows[0] for each in fn.compare({"a": a, "b": b}, measures="P@5").slices("country").values()]
assert all(row["low"] == row["difference"] == row["high"] > 0 and row["detectable"] == 0 for row in rows)
"""


def test_every_call_ends():
    """SciPy's inverse of the noncentral t never ended for t from 3e5 to 5e6."""
    printed(_EVERY_CALL_ENDS, timeout=600)


@pytest.mark.parametrize("n", [2, 3, 5, 10, 20, 50, 1000])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_power_at_the_detectable_difference(n, confidence):
    values = np.random.default_rng(n).random(n)
    row = Pair(np.zeros(n), values).row(confidence=confidence)
    shift = row["detectable"] / (values.std(ddof=1) / math.sqrt(n))
    bound = stats.t.ppf((1 + confidence) / 2, n - 1)
    power = stats.nct.sf(bound, n - 1, shift) + np.nan_to_num(stats.nct.cdf(-bound, n - 1, shift))
    assert power == pytest.approx(0.8, abs=1e-9)
    assert queries_needed(1.000001 * row["detectable"] / values.std(ddof=1), confidence, 0.8) == n


def test_large_effects_need_few_queries():
    """By the mean over S of the normal distribution, for S from the quantiles of chi-squared."""
    at = (np.arange(200_000) + 0.5) / 200_000
    for effect in (5.0, 10.0, 15.0, 20.0, 40.0):
        power = {}
        for n in (2, 3, 4, 5):
            spread = np.sqrt(stats.chi2.ppf(at, n - 1) / (n - 1))
            power[n] = stats.norm.sf(stats.t.ppf(0.975, n - 1) * spread - effect * math.sqrt(n)).mean()
        assert queries_needed(effect, 0.95, 0.8) == min(n for n in power if power[n] >= 0.8)
    found = Pair(np.zeros(3), np.array([0.1, 0.2, 0.3]))
    systems = {name: scores_of(values) for name, values in (("a", found.a), ("b", found.b))}
    assert fn.compare(systems).queries_needed(1e300)["queries"].to_pylist() == [2]
    with pytest.raises(fn.InputError, match="a difference of 1e-299 standard deviations needs more than"):
        fn.compare(systems).queries_needed(1e-300)


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
    """The studentised interval of equal differences was from inf to inf, which held."""
    values = np.full(56, 0.0625), np.full(56, 0.0125)
    systems = {name: scores_of(each) for name, each in zip("ab", values, strict=True)}
    found = fn.compare(systems, interval=interval, resamples=200)
    assert found.rows[0]["low"] == found.rows[0]["high"] == found.rows[0]["difference"] == -0.05
    assert found.no_worse_than("a", margin=0.001) == {"nDCG@1": False}
    row = systems["b"].summary(0.95, interval, resamples=200).rows[0]
    assert (row["low"], row["high"]) == (0.0125, 0.0125)


def test_an_interval_without_ends_holds_no_gate():
    found = fn.compare(
        {name: scores_of([0.1 * (name == "b"), 0, 0, 0, 0, 0]) for name in "ab"}, interval="studentised"
    )
    assert not math.isfinite(found.rows[0]["high"])
    assert found.no_worse_than("a", margin=100.0) == {"nDCG@1": False}
    assert "The interval of nDCG@1 between b and a is not finite, so that no gate holds by it" in repr(found)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.sampled_from([0.5, 0.95, 0.999]))
def test_a_bounded_interval(seed, n, confidence):
    values = np.random.default_rng(seed).beta(6, 1, (2, n)).round(seed % 3 + 1)
    row = scores_of(values[0]).summary(confidence, "logit").rows[0]
    assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1
    row = fn.compare(dict(zip("ab", map(scores_of, values), strict=True)), interval="logit").rows[0]
    assert -1 <= row["low"] <= row["difference"] <= row["high"] <= 1
    # of many values, as Student's
    one, other = (
        each(0.6, 1e-5, 9, 0.95, *ends) for each, ends in ((t_interval, ()), (logit_interval, (0, 1)))
    )
    assert one == pytest.approx(other, rel=1e-7)


def test_a_bounded_interval_misses_no_more_often_than_students():
    random = np.random.default_rng(0)
    for n in (3, 10):
        samples = random.beta(6, 1, (2000, n))
        numbers = [(each.mean(), each.std(ddof=1) / math.sqrt(n), n - 1, 0.95) for each in samples]
        ends = [[t_interval(*each) for each in numbers], [logit_interval(*each, 0, 1) for each in numbers]]
        missed = [np.mean([not low <= 6 / 7 <= high for low, high in each]) for each in ends]
        assert missed[1] < missed[0] and missed[1] < 0.08


def test_ends_beyond_the_range_are_said_once():
    values = {name: scores_of([[0.63, 1.0, 1.0], [0.2, 1.0, 1.0]], measure="RR") for name in "a"}
    summary = values["a"].summary(0.95)
    note = 'The interval of RR@1, RR@2 reaches beyond 0 to 1; Scores.summary(method="logit") keeps it within.'
    assert summary.rows[0]["high"] > 1 and repr(summary).endswith(note) and "logit" in summary._repr_html_()
    assert "logit" not in repr(values["a"].summary(0.95, "logit")) and "logit" not in repr(
        values["a"].summary()
    )
    values["b"] = scores_of([[0.0, 0.3, 0.9], [0.9, 0.0, 0.1]], measure="RR")
    cautions = [each for each in fn.compare(values).cautions if "no difference can have" in each]
    (caution,) = cautions
    assert caution == (
        "The interval of RR@1 between b and a has an end that no difference can have. The interval "
        '"logit" has only ends that are possible.'
    )
    assert "no difference" not in "".join(fn.compare(values, interval="logit").cautions)
    with pytest.raises(
        fn.InputError, match='"logit" is an interval of measures from 0 to 1, and CG@1 is none'
    ):
        scores_of([1.0, 2.0], measure="CG").summary(0.95, "logit")


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
    for sums in (lambda: exact_sum(values), lambda: exact_sum_of_products(plain, values)):
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
