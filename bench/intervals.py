"""Measure the coverage of confidence intervals, and time tests and intervals against SciPy.

Coverage: the share of nominal 95 % intervals, in %, that miss the true mean, where 5 is right; and how often
randomised Tukey finds a difference among five equal systems. Speed: ratios within one run, after the answers
were compared.

Bias: generated values; a machine with other work, so only ratios are meaningful; SciPy supports any
statistic, this package means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import fastndcg as fn
from bench.record import Row, beside
from bench.timing import Time, take_turns, time_once
from fastndcg.scores.scores import Scores
from fastndcg.statistics import resampling
from fastndcg.statistics.intervals import t_quantile

Float64 = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Float64]


def ndcg_like(random: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    return random.beta(1.2, 0.8, shape) - random.beta(1.2, 0.8, shape)


def reciprocal_ranks(random: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    """Draw differences of RR@10, which is 0 in 70 % of queries."""
    sides = [np.where(random.random(shape) < 0.7, 0.0, 1 / random.integers(1, 11, shape)) for _ in range(2)]
    return sides[0] - sides[1]


def few_differ(random: np.random.Generator, shape: tuple[int, ...]) -> Float64:
    """Draw differences of two systems that differ in 5 % of queries, where gains are larger than losses."""
    return np.where(random.random(shape) < 0.05, random.exponential(0.3, shape) - 0.1, 0.0)


DRAWS: dict[str, Draw] = {
    "normal": lambda random, shape: random.normal(0.02, 0.1, shape),
    "nDCG-like": ndcg_like,
    "RR@10-like, 70 % zeros": reciprocal_ranks,
    "5 % of queries differ": few_differ,
}


def missed(draw: Draw, n: int, method: str, experiments: int) -> float:
    """Return the share of experiments whose interval misses the true mean."""
    random = np.random.default_rng(n)
    truth = draw(np.random.default_rng(0), (4_000_000,)).mean()
    samples = draw(random, (experiments, n))
    if method == "t":
        half = t_quantile(0.05, n - 1) * samples.std(axis=1, ddof=1) / math.sqrt(n)
        return float(np.mean(np.abs(samples.mean(axis=1) - truth) > half))
    out = 0
    for seed, sample in enumerate(samples):
        low, high = resampling.bootstrap_interval(sample, None, 0.95, method, 1000, seed, 1)
        out += not low <= truth <= high
    return out / experiments


def coverage(experiments: int) -> Iterator[Row]:
    for name, draw in DRAWS.items():
        for n in (25, 50, 200):
            for method in ("t", *resampling.METHODS):
                share = missed(draw, n, method, experiments * (10 if method == "t" else 1))
                yield Row("intervals", f"{name}, {n} queries, {method}", unit="% missed", cpu=100 * share)
    rejected = 0
    for seed in range(experiments):
        random = np.random.default_rng(seed)
        values = random.beta(2, 2, 50) + random.normal(0, 0.1, (5, 50))
        p = resampling.tukey(values, None, None, 399, seed, 1)
        rejected += min(p(i, j) for i in range(5) for j in range(i)) <= 0.05
    yield Row(
        "intervals", "5 equal systems, Tukey", unit="% found to differ", cpu=100 * rejected / experiments
    )


def scores_of(values: Float64) -> Scores:
    rankings = fn.Rankings.from_groups(*([np.ones(values.shape[1], np.int64)] * 3))
    measures = [fn.nDCG @ k for k in range(1, len(values) + 1)]
    return Scores(measures, values, np.zeros(values.shape, np.bool_), rankings, None)


def speed(queries: int) -> Iterator[Row]:
    random = np.random.default_rng(0)
    values = random.random((5, queries))
    one, other = scores_of(values), scores_of(np.clip(values + random.normal(0, 0.1, values.shape), 0, 1))
    calls = {"compare": lambda: fn.compare({"a": one, "b": other}), "summary": lambda: one.summary(0.95)}
    for name, time in take_turns(calls, least=2, most=2).items():
        yield Row("intervals", f"{name} of {queries:,} queries x 5 measures", "", "s", *time, bar=0.1)

    differences = random.normal(0.0001, 0.1, queries)
    resampling.sign_flips(differences[:1000], None, 1000, 0)
    taken = time_once(lambda: resampling.sign_flips(differences, None, 10_000, 0))
    reading = Time(*(each * 10_000 / 64 for each in take_turns({"": differences.sum}, least=20)[""]))
    flips, passes = f"10,000 sign flips of {queries:,}", "reading 10,000 / 64 times"
    yield beside("intervals", flips, passes, "s", taken, reading, clock="wall", wants="more", bar=0.1)

    small = random.normal(0.02, 0.1, 200)
    options: dict[str, Any] = {"permutation_type": "samples", "n_resamples": 9999, "axis": -1}
    theirs = stats.permutation_test((small,), np.mean, rng=1, **options)
    p = resampling.sign_flips(small, None, 99_999, 0)
    assert abs(theirs.pvalue - p) < 0.03, (theirs.pvalue, p)
    interval = resampling.bootstrap_interval(small, None, 0.95, "bca", 9999, 0)
    scipys = stats.bootstrap((small,), np.mean, method="BCa", n_resamples=9999, rng=1).confidence_interval
    assert max(abs(interval.low - scipys.low), abs(interval.high - scipys.high)) < 0.002, (interval, scipys)
    for n in (200, queries // 200):
        sample = random.normal(0.02, 0.1, n)
        pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
            "permutation_test": (
                partial(resampling.sign_flips, sample, None, 9999, 0),
                partial(stats.permutation_test, (sample,), np.mean, batch=500, **options),
            ),
            "bootstrap": (
                partial(resampling.bootstrap_interval, sample, None, 0.95, "bca", 9999, 0),
                partial(stats.bootstrap, (sample,), np.mean, method="BCa", n_resamples=9999, batch=500),
            ),
        }
        for rival, (ours, base) in pairs.items():
            times = take_turns({"ours": ours, "base": base}, least=2, most=2)
            name = f"the same of {n:,}, 9,999 resamples"
            yield beside(
                "intervals", name, f"SciPy's {rival}", "s", times["ours"], times["base"], clock="wall", wants="more", bar=50
            )  # fmt: skip


def rows(*, quick: bool) -> Iterator[Row]:
    yield from speed(10_000 if quick else 1_000_000)
    yield from coverage(20 if quick else 1000)
