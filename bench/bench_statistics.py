"""Measure the coverage of confidence intervals, and time tests and intervals against SciPy.

    python bench/bench_statistics.py [--queries 1000000] [--experiments 2000]

Coverage: the share of nominal 95 % intervals, in %, that miss the true mean, where 5 is right; and how often
randomised Tukey finds a difference among five equal systems. Speed: ratios within one run, after the answers
were compared.

Bias: generated values; a machine with other work, so only ratios are meaningful; SciPy supports any
statistic, this package means.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

import fastndcg as fn
from bench.timing import take_turns, time_once
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


def print_coverage(experiments: int) -> None:
    methods = ("t", *resampling.METHODS)
    print(f"misses of 95 % intervals in %, {experiments} experiments (t: {10 * experiments})\n")
    print(f"| differences | n | {' | '.join(methods)} |\n|---|---|{'---|' * len(methods)}")
    for name, draw in DRAWS.items():
        for n in (25, 50, 200):
            shares = [
                missed(draw, n, method, experiments * (10 if method == "t" else 1)) for method in methods
            ]
            print(f"| {name} | {n} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |", flush=True)


def print_tukey(experiments: int) -> None:
    rejected = 0
    for seed in range(experiments):
        random = np.random.default_rng(seed)
        values = random.beta(2, 2, 50) + random.normal(0, 0.1, (5, 50))
        p = resampling.tukey(values, None, None, 399, seed, 1)
        rejected += min(p(i, j) for i in range(5) for j in range(i)) <= 0.05
    print(
        "\nrandomised Tukey, 5 equal systems, 50 queries: "
        f"a difference is found in {100 * rejected / experiments:.1f} %"
    )


def scores_of(values: Float64) -> Scores:
    rankings = fn.Rankings.from_groups(*([np.ones(values.shape[1], np.int64)] * 3))
    measures = [fn.nDCG @ k for k in range(1, len(values) + 1)]
    return Scores(measures, values, np.zeros(values.shape, np.bool_), rankings, None)


def print_ratio(what: str, ours: float, theirs: float, beside: str, bar: str) -> None:
    print(f"{what}: {ours:.4f} s, {beside} {theirs:.4f} s: ratio {theirs / ours:.2f} ({bar})", flush=True)


def print_speed(queries: int) -> None:
    random = np.random.default_rng(0)
    values = random.random((5, queries))
    one, other = scores_of(values), scores_of(np.clip(values + random.normal(0, 0.1, values.shape), 0, 1))
    found = take_turns(
        {
            "compare": lambda: fn.compare({"a": one, "b": other}),
            "summary": lambda: one.summary(0.95),
        },
        least=2,
        most=2,
    )
    print(f"\n{queries:,} queries x 5 measures, t intervals (bar: 0.1 s on an idle machine)")
    print(", ".join(f"{name} {times.wall:.3f} s" for name, times in found.items()))

    differences = random.normal(0.0001, 0.1, queries)
    reading = take_turns({"read": differences.sum}, least=20)["read"].wall
    resampling.sign_flips(differences[:1000], None, 1000, 0)
    taken = time_once(lambda: resampling.sign_flips(differences, None, 10_000, 0)).wall
    print_ratio(
        "10,000 sign flips",
        taken,
        10_000 / 64 * reading,
        "reading 10,000 / 64 times",
        "bar: 0.1 or more",
    )

    small = random.normal(0.02, 0.1, 200)
    theirs = stats.permutation_test(
        (small,), np.mean, permutation_type="samples", n_resamples=9999, axis=-1, rng=1
    )
    p = resampling.sign_flips(small, None, 99_999, 0)
    assert abs(theirs.pvalue - p) < 0.03, (theirs.pvalue, p)
    interval = resampling.bootstrap_interval(small, None, 0.95, "bca", 9999, 0)
    scipys = stats.bootstrap((small,), np.mean, method="BCa", n_resamples=9999, rng=1).confidence_interval
    assert max(abs(interval.low - scipys.low), abs(interval.high - scipys.high)) < 0.002, (interval, scipys)
    for n in (200, 5000):
        sample = random.normal(0.02, 0.1, n)
        found = take_turns(
            {
                "flips": lambda sample=sample: resampling.sign_flips(sample, None, 9999, 0),
                "scipy flips": lambda sample=sample: stats.permutation_test(
                    (sample,), np.mean, permutation_type="samples", n_resamples=9999, axis=-1, batch=500
                ),
                "bca": lambda sample=sample: resampling.bootstrap_interval(
                    sample, None, 0.95, "bca", 9999, 0
                ),
                "scipy bca": lambda sample=sample: stats.bootstrap(
                    (sample,), np.mean, method="BCa", n_resamples=9999, batch=500
                ),
            },
            least=2,
            most=2,
        )
        for ours, what in (("flips", "permutation_test"), ("bca", "bootstrap")):
            print_ratio(
                f"{ours} of {n:,}, 9,999 resamples",
                found[ours].wall,
                found[f"scipy {ours}"].wall,
                what,
                "bar: 50",
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--experiments", type=int, default=2000)
    asked = parser.parse_args()
    print_speed(asked.queries)
    print_tukey(min(asked.experiments, 1000))
    print_coverage(asked.experiments)


if __name__ == "__main__":
    main()
