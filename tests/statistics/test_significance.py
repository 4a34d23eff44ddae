"""Student's distribution, randomisation and the bootstrap: against SciPy, against all signs, coverage by simulation, slices; the same
bits in any order.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from systems import DEXTRO, LAEVO, drawn, row_of, scores_of

import fastndcg as fn
from fastndcg.common.progress import Task
from fastndcg.compiled import resampling as kernels
from fastndcg.kernels.compile import dispatch
from fastndcg.statistics import resampling
from fastndcg.statistics.exact_sums import Moments
from fastndcg.statistics.significance import t_quantile, t_two_sided

special, stats = pytest.importorskip("scipy.special"), pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.pure


def reciprocal_ranks(random, size):
    """RR@10 as it often is: 0 in most queries."""
    return np.where(random.random(size) < 0.7, 0.0, 1 / random.integers(1, 11, size))


# ---- Student's distribution ----


@pytest.mark.parametrize("freedom", [0.3, 1, 1.5, 2, 9, 29.3, 49, 999, 99_999, 1e6, 1e8])
def test_students_distribution_is_that_of_scipy(freedom):
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


PURE = kernels.word is int
FEW, MANY = (300, 1000) if PURE else (2000, 100_000)


# ---- random words ----


def test_words_are_those_of_splitmix():
    """The first of the generator from 0 and from 1234567, as its authors' C has them."""
    for start, words in (
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (1234567, [6457827717110365317, 3203168211198807973, 9817491932198370423]),
    ):
        for number, expected in enumerate(words, 1):
            state = (start + number * 0x9E3779B97F4A7C15) % 2**64
            value = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
            value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % 2**64
            assert value ^ (value >> 31) == expected
            if PURE:
                assert kernels.random_word(start, number) == expected


def test_signs_and_draws_are_fair():
    sums = np.empty(FEW, np.int64)
    kernels.flip_signs(7, 0, np.array([1, 1 << 10, 1 << 20, 1 << 30], np.int64), sums)
    for place in range(4):
        signs = ((sums + ((1 << 40) - 1)) >> (10 * place + 1)) & 1
        assert abs(signs.mean() - 0.5) < 5 / math.sqrt(4 * FEW)
    kernels.draw_sums(7, 0, 1000 ** np.arange(3), sums)
    counts = np.stack([sums % 1000, sums // 1000 % 1000, sums // 1_000_000])
    assert (counts.sum(axis=0) == 3).all() and np.allclose(counts.mean(axis=1), 1, atol=5 / math.sqrt(FEW))


# ---- signs ----


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_all_signs_are_tried_of_few_differences(seed, n):
    """Of differences in hundredths, many of whose sums are equal."""
    random = np.random.default_rng(seed)
    hundredths = random.integers(-5, 6, n).tolist()
    observed = abs(sum(hundredths))
    as_far = [
        abs(sum(map(int.__mul__, hundredths, signs))) >= observed for signs in product((-1, 1), repeat=n)
    ]
    p = resampling.sign_flips(np.array(hundredths) / 100, None, 100, 0)
    assert p == Fraction(sum(as_far), len(as_far))


@pytest.mark.parametrize("n", [3, 8, 12])
def test_exact_signs_are_those_of_scipy(n):
    a, b = drawn(n, n)
    wanted = stats.permutation_test((b - a,), np.sum, permutation_type="samples", vectorized=False)
    assert row_of(a, b, test="randomisation")["p"] == pytest.approx(wanted.pvalue, rel=1e-12)


def test_students_own_example():
    """Nine differences are not 0 and all have one sign: 2 of 512."""
    assert row_of(DEXTRO, LAEVO, test="randomisation")["p"] == 2 / 512


def test_random_signs_are_near_all_signs():
    differences = np.random.default_rng(5).normal(0.05, 0.1, 14)
    exact = resampling.sign_flips(differences, None, 100, 0)
    p = resampling.sign_flips(differences, None, MANY, 3, exact=0)
    assert p == pytest.approx(exact, abs=5 * math.sqrt(exact / MANY))
    assert p != resampling.sign_flips(differences, None, MANY, 4, exact=0)


def test_p_is_never_0():
    assert resampling.sign_flips(np.full(80, 0.5), None, 999, 0) == 1 / 1000
    assert resampling.sign_flips(np.zeros(80), None, 999, 0) == 1
    assert resampling.sign_flips(np.empty(0), None, 999, 0) == 1


@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 3))
def test_threads_order_and_zeros_change_no_bit(seed, n, threads):
    random = np.random.default_rng(seed)
    differences = random.normal(0, 0.1, n) * (random.random(n) < 0.8)
    clusters = random.integers(0, 30, n) if seed % 2 else None
    one = resampling.sign_flips(differences, clusters, 150, seed, 1)
    order = random.permutation(n)
    other = resampling.sign_flips(
        -differences[order], None if clusters is None else clusters[order], 150, seed, threads
    )
    assert other == one
    if clusters is None:
        assert resampling.sign_flips(np.append(differences, [0.0] * 5), None, 150, seed) == one


def test_whole_clusters_are_flipped():
    """The queries of a user who always does alike are one difference."""
    differences = np.repeat([0.3, 0.1, 0.2, -0.1], 25)
    users = np.repeat(np.arange(4), 25)
    assert resampling.sign_flips(differences, users, 100, 0) == resampling.sign_flips(
        np.array([0.3, 0.1, 0.2, -0.1]), None, 100, 0
    )
    assert resampling.sign_flips(differences, None, 1000, 0) < 0.01


# ---- the bootstrap ----


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_intervals_are_near_those_of_scipy(method):
    values = np.random.default_rng(2).beta(0.4, 1.2, 60)
    wanted = stats.bootstrap((values,), np.mean, method=method, n_resamples=20_000, rng=1).confidence_interval
    row = scores_of(values).summary(0.95, method, resamples=FEW * 5).rows[0]
    assert (row["low"], row["high"]) == pytest.approx((wanted.low, wanted.high), abs=0.02 if PURE else 0.005)


@given(st.integers(0, 2**32 - 1), st.sampled_from(resampling.METHODS), st.booleans())
def test_bootstrap_intervals_know_no_order_nor_threads(seed, method, weighted):
    random = np.random.default_rng(seed)
    values = random.random(20).round(1)
    weight = random.exponential(size=20) if weighted else None
    order = random.permutation(20)
    one = resampling.bootstrap_interval(values, weight, 0.9, method, 200, seed, 1)
    other = resampling.bootstrap_interval(
        values[order], None if weight is None else weight[order], 0.9, method, 200, seed, 3
    )
    assert repr(one) == repr(other)
    assert one.low <= one.high


def test_equal_weights_are_none():
    values = np.random.default_rng(2).random(30)
    for method in resampling.METHODS:
        found = [
            resampling.bootstrap_interval(values, w, 0.9, method, 500, 0) for w in (None, np.full(30, 0.25))
        ]
        assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize("method", resampling.METHODS)
def test_bootstrap_of_few_or_equal_values(method):
    for values in ([], [0.5], [0.5, math.nan, 0.1]):
        row = scores_of(np.array(values)).summary(0.95, method, resamples=100).rows[0]
        assert math.isnan(row["low"]) and math.isnan(row["high"])
    row = scores_of([0.25] * 9).summary(0.95, method, resamples=100).rows[0]
    assert (row["low"], row["high"]) == (0.25, 0.25)


@pytest.mark.parametrize("threads", [2, 3, 4, 5, 16])
def test_threads_get_equally_many_resamples(threads, monkeypatch):
    sizes = []
    monkeypatch.setattr(dispatch, "run", lambda *arguments, job: sizes.append(len(arguments[-1])))
    resampling._run("flip_signs", np.arange(1, 40), 5.0, 100_000, 0, threads)
    assert sum(sizes) == 100_000 and max(sizes) <= resampling._SUMS
    assert len(sizes) % threads == 0 and max(sizes) - min(sizes) < len(sizes)


@pytest.mark.parametrize("threads", [1, 2])
def test_resampling_says_how_far_it_is(threads, monkeypatch):
    advanced = []
    monkeypatch.setattr(Task, "advance", lambda task, done, total: advanced.append((task.name, done, total)))
    monkeypatch.setattr(resampling, "_SUMS", 100)
    resampling._run("flip_signs", np.arange(1, 40), 5.0, 1000, 0, threads)
    assert {(name, total) for name, _, total in advanced} == {("Resampling", 1000)}
    assert [done for _, done, _ in advanced] == [100 * part for part in range(11)]
