"""Intervals of means: Student's distribution against SciPy, coverage by simulation, slices of queries."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems import scores_of

import fastndcg as fn
from fastndcg.statistics.exact_sums import Moments
from fastndcg.statistics.significance import t_quantile, t_two_sided


def reciprocal_ranks(random, size):
    """RR@10 as it often is: 0 in most queries."""
    return np.where(random.random(size) < 0.7, 0.0, 1 / random.integers(1, 11, size))


# ---- Student's distribution ----


@pytest.mark.parametrize("freedom", [0.3, 1, 1.5, 2, 9, 29.3, 49, 999, 99_999, 1e6, 1e8])
def test_students_distribution_is_that_of_scipy(freedom):
    special = pytest.importorskip("scipy.special")
    for t in (1e-3, 0.1, 0.5, 1, 1.3, 2, 3, 5, 10, 20):
        assert t_two_sided(t, freedom) == pytest.approx(2 * special.stdtr(freedom, -t), rel=1e-12)
        assert t_two_sided(-t, freedom) == t_two_sided(t, freedom)
    for outside in (0.5, 0.1, 0.05, 0.01, 1e-6):
        assert t_quantile(outside, freedom) == pytest.approx(
            -special.stdtrit(freedom, outside / 2), rel=1e-12
        )


def test_students_distribution_at_its_ends():
    assert t_two_sided(0, 5) == pytest.approx(1, rel=1e-15)
    assert 0 < t_two_sided(1e6, 1e6) == t_two_sided(math.inf, 5) < 1e-300
    assert (
        math.isnan(t_two_sided(math.nan, 5))
        and math.isnan(t_two_sided(1, 0))
        and math.isnan(t_quantile(0.05, 0))
    )
    assert t_quantile(0.05, 1e-5) == math.inf and t_quantile(0.05, 0.02) > 1e60
    row = scores_of([0.1, 0.5], weight=[1e-9, 1.0]).summary(0.95).rows[0]
    assert (row["low"], row["high"]) == (-math.inf, math.inf)
    # Gosset's own: half of Cauchy's distribution lies within 1 of 0
    assert t_two_sided(1, 1) == pytest.approx(0.5, rel=1e-14)
    assert t_quantile(0.05, 1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-13)


# ---- of all queries ----


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
def test_a_weighted_error_is_that_of_a_ratio(seed, n):
    random = np.random.default_rng(seed)
    values, weight = random.random(n), random.exponential(size=n)
    weight[random.random(n) < 0.2] = 0
    if np.count_nonzero(weight) < 2:
        return
    v, w = [list(map(Fraction, array.tolist())) for array in (values, weight)]
    mean = sum(map(Fraction.__mul__, v, w)) / sum(w)
    squares = sum((x * (y - mean)) ** 2 for x, y in zip(w, v, strict=True))
    n_weighing = np.count_nonzero(weight)
    error = math.sqrt(Fraction(int(n_weighing), int(n_weighing) - 1) * squares) / float(sum(w))
    freedom = float(sum(w) ** 2 / sum(x * x for x in w) - 1)
    assert Moments.of(values, weight).error(weighted=True) == pytest.approx((error, freedom), rel=1e-12)


def test_an_interval_of_few_or_equal_values():
    for values in ([], [0.5]):
        row = scores_of(np.array(values)).summary(0.95).rows[0]
        assert math.isnan(row["low"]) and math.isnan(row["high"])
    row = scores_of([0.3] * 7).summary(0.95).rows[0]
    assert row["low"] == row["high"] == row["mean"] == 0.3
    assert math.isnan(scores_of([0.5, np.nan, 0.1]).summary(0.95).rows[0]["low"])


def test_without_confidence_there_is_no_interval():
    scores = scores_of([0.1, 0.5])
    assert "low" not in scores.summary().to_arrow().column_names
    table = scores.summary(confidence=0.95).to_arrow()
    assert table.column_names[:4] == ["measure", "mean", "low", "high"]
    assert "low" in repr(scores.summary(0.95)) and "<th>high</th>" in scores.summary(0.95)._repr_html_()


@pytest.mark.parametrize(
    ("draw", "n", "most"),
    [
        (lambda random, size: random.normal(size=size), 25, 0.065),
        (lambda random, size: random.beta(0.6, 0.4, size), 50, 0.065),
        (lambda random, size: reciprocal_ranks(random, size) - reciprocal_ranks(random, size), 50, 0.065),
    ],
)
def test_intervals_cover_as_often_as_they_say(draw, n, most):
    random = np.random.default_rng(1)
    truth = draw(random, 2_000_000).mean()
    samples = draw(random, (4000, n))
    half = t_quantile(0.05, n - 1) * samples.std(axis=1, ddof=1) / math.sqrt(n)
    missed = np.mean(np.abs(samples.mean(axis=1) - truth) > half)
    assert 0.03 < missed < most
    row = scores_of(samples[0]).summary(0.95).rows[0]
    assert (row["high"] - row["low"]) / 2 == pytest.approx(half[0], rel=1e-12)


# ---- of slices ----


def test_slices_by_several_columns():
    countries, devices = ["de", None, "de", "fr", None, "de"], ["tv", "pc", "tv", "pc", "pc", "pc"]
    lists = [[1, 0], [0, 1], [0, 1], [0, 0], [1], [0, 0]]
    rankings = fn.Rankings.from_lists(
        lists, queries={"country": countries, "device": devices}, weight=[1, 2, 3, 4, 5, 6]
    )
    scores = fn.evaluate(rankings, ["RR", "RR(empty='skip')"])
    table = scores.by(["country", "device"], confidence=0.95)
    assert table.select(["country", "device", "queries", "small", "RR", "RR_empty"]).to_pydict() == {
        "country": ["de", "de", "fr", None],
        "device": ["pc", "tv", "pc", "pc"],
        "queries": [1, 2, 1, 2],
        "small": [True] * 4,
        "RR": [0, 2.5 / 4, 0, 6 / 7],
        "RR_empty": [1, 0, 1, 0],
    }
    assert math.isnan(table["RR(empty='skip')"][2].as_py())
    assert table["RR_low"][1].as_py() < 0.625 < table["RR_high"][1].as_py() and math.isnan(
        table["RR_low"][2].as_py()
    )
    assert (
        scores.by(["country"])
        .drop(["RR(empty='skip')"])
        .equals(scores.by("country").drop(["RR(empty='skip')"]))
    )


@given(st.integers(0, 2**32 - 1), st.integers(0, 80))
def test_slices_are_those_queries_alone(seed, n):
    random = np.random.default_rng(seed)
    values = random.random((2, n))
    kept = {name: random.choice(list("xyz"), n) for name in "abc"}
    scores = scores_of(values, queries=kept)
    table = scores.by(["a", "b", "c"], confidence=0.8)
    assert sum(table["queries"].to_pylist()) == n
    for row in table.to_pylist():
        chosen = np.logical_and.reduce([kept[name] == row[name] for name in "abc"])
        alone = scores_of(values[:, chosen]).summary(0.8).rows
        for numbers in alone:
            name = numbers["measure"]
            for end, found in (("mean", name), ("low", f"{name}_low"), ("high", f"{name}_high")):
                assert repr(numbers[end]) == repr(row[found])


@given(st.integers(0, 2**32 - 1))
def test_the_order_of_queries_changes_no_bit(seed):
    random = np.random.default_rng(seed)
    values, weight = random.random(50), random.random(50)
    order = random.permutation(50)
    for w in (None, weight):
        one = scores_of(values, weight=w).summary(0.95).rows[0]
        other = scores_of(values[order], weight=None if w is None else w[order]).summary(0.95).rows[0]
        assert one == other
