"""Measure how often intervals of scarce labels miss: people beside a judge.

Each number is the share of nominal 95 % intervals, in %, that miss the true mean, where 5 is right. Beside it
stands how wide the interval is, as a share of that of people's labels alone.

Bias: generated values, whose distributions are known; real judges err in other ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from bench.record import Row
from fastndcg.statistics.controlled import controlled
from fastndcg.statistics.intervals import t_quantile

Float64 = npt.NDArray[np.float64]
Pair = tuple[Float64, Float64]


# ---- people and a judge ----


def ndcg_like(random: np.random.Generator, n: int) -> Pair:
    """Values near 0.55 with some at 0 and 1; the judge is too generous, and correlates by 0.88."""
    people = np.clip(0.55 + 0.28 * random.normal(size=n), 0, 1)
    return people, np.clip(0.15 + 0.8 * people + 0.15 * random.normal(size=n), 0, 1)


def precision(random: np.random.Generator, n: int) -> Pair:
    """P@4, of which the judge gets one document in three wrong, mostly upwards."""
    people = random.binomial(4, random.beta(1.5, 1.5, n)) / 4
    return people, np.clip(people + (random.random(n) < 0.3) / 4 - (random.random(n) < 0.15) / 4, 0, 1)


def differences(random: np.random.Generator, n: int) -> Pair:
    """Differences of two systems, half of them 0."""
    people = np.where(random.random(n) < 0.5, 0.0, random.normal(0.03, 0.2, n))
    near = people + random.normal(0, 0.05, n) * (people != 0)
    return people, np.where(random.random(n) < 0.8, near, random.normal(0, 0.2, n))


def no_agreement(random: np.random.Generator, n: int) -> Pair:
    """A judge that draws its values at random."""
    return np.clip(0.55 + 0.28 * random.normal(size=n), 0, 1), random.random(n)


def reciprocal_ranks(random: np.random.Generator, n: int) -> Pair:
    """RR@10 of one system, 0 in 70 % of queries: skewed, so that Student's t of people alone misses too."""

    def values() -> Float64:
        return np.where(random.random(n) < 0.7, 0.0, 1 / random.integers(1, 11, n))

    people = values()
    return people, np.where(random.random(n) < 0.8, people, values())


KINDS = (ndcg_like, precision, differences, no_agreement, reciprocal_ranks)


def rows(*, quick: bool) -> Iterator[Row]:
    """PPI++ beside Student's t of people alone."""
    random, experiments = np.random.default_rng(1), 50 if quick else 6000
    for kind in KINDS:
        true = kind(random, 4_000_000)[0].mean()
        for n, n_judge in ((50, 1000), (200, 2000), (200, 400), (25, 1000)):
            missed = alone = 0
            widths = []
            for _ in range(experiments):
                people, judge = kind(random, n_judge)
                found = controlled(people[:n], judge[:n], judge[n:])
                low, high = found.interval(0.95)
                half = t_quantile(0.05, n - 1) * people[:n].std(ddof=1) / math.sqrt(n)
                missed += not low <= true <= high
                alone += abs(people[:n].mean() - true) > half
                widths.append((high - low) / 2 / half if half else 1.0)
            shares = [100 * count / experiments for count in (missed, alone)]
            yield Row(
                "labels", f"{kind.__name__}, {n} of {n_judge}", "people alone", "% missed", cpu=shares[0], baseline_cpu=shares[1],
                note=f"{np.mean(widths):.2f} times as wide",
            )  # fmt: skip
