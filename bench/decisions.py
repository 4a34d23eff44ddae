"""Simulate what comparisons decide: intervals of ranks, and gates that are looked at while queries arrive.

Ranks: the share of experiments, in %, in which all true ranks of six systems lie in their intervals at once,
where 95 or more is right. Two of the systems are equal. Gates: the share of experiments, in %, in which a gate
of level 5 % says "holds" of a system that loses exactly its margin, or "fails" of it, at any of 100 looks;
5 or less of both is right. Beside it, the same of the interval by Student's t, which is for one look; and after
how many queries the gate holds for a system that loses nothing.

Bias: generated values; looks are spread evenly on a logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import fastndcg as fn
from bench.intervals import DRAWS, Draw, few_differ
from bench.record import Row
from fastndcg.scores.scores import Scores
from fastndcg.statistics.intervals import SMALL, sequence_half, t_quantile

Float64 = npt.NDArray[np.float64]
GATES: dict[str, Draw] = {
    **DRAWS,
    "5 % differ, losses are larger": lambda random, shape: -few_differ(random, shape),
}
TRUTH = np.array([0.0, 0.0, 0.01, 0.03, 0.06, 0.15])


def values_of(draw: Draw, random: np.random.Generator, n: int) -> Float64:
    """Values of systems for the same queries: their true means, and what they differ by at random."""
    noise = draw(random, (len(TRUTH), n))
    return TRUTH[:, None] + noise - _mean_of(draw)


_MEANS: dict[Draw, float] = {}


def _mean_of(draw: Draw) -> float:
    if draw not in _MEANS:
        _MEANS[draw] = float(draw(np.random.default_rng(0), (4_000_000,)).mean())
    return _MEANS[draw]


def ranks_held(draw: Draw, n: int, experiments: int, **options: str) -> float:
    """The share of experiments in which all ranks lie within their intervals."""
    random, measure = np.random.default_rng(n), fn.nDCG @ 10
    least = {f"s{place}": 1 + int((mean < TRUTH).sum()) for place, mean in enumerate(TRUTH)}
    most = {f"s{place}": len(TRUTH) - int((mean > TRUTH).sum()) for place, mean in enumerate(TRUTH)}
    queries = fn.Rankings.from_groups([1] * n, [1] * n, [1.0] * n)
    held = 0
    for _ in range(experiments):
        systems = {
            f"s{place}": Scores([measure], each[None, :], np.zeros((1, n), np.bool_), queries, None)
            for place, each in enumerate(values_of(draw, random, n))
        }
        draws = (
            1_000 if options else 100
        )  # those of the share of draws in which a system is best, which is not used
        rows = fn.compare(systems, resamples=draws, **options)._rank_rows()
        held += all(row["low"] <= least[row["system"]] and most[row["system"]] <= row["high"] for row in rows)
    return held / experiments


def wrong_gates(draw: Draw, experiments: int, first: int, last: int, margin: float) -> tuple[Float64, float]:
    """Shares of experiments in which a gate says "holds", and "fails", of a loss of exactly the margin at any of 100
    looks, and the same of Student's t; and the median number of queries at which it holds if nothing is lost.
    """
    random, mean, looks = (
        np.random.default_rng(last),
        _mean_of(draw),
        np.geomspace(first, last, 100).astype(int),
    )
    students = np.array([t_quantile(0.05, n - 1.0) for n in looks])
    halves = np.array([0.0, 0.0, *(sequence_half(1.0, n - 1.0, 0.95) for n in range(2, last + 1))])
    wrong, decided = np.zeros(4), []
    for _ in range(experiments):
        given = draw(random, (last,))
        values, nonzero = given - mean, np.cumsum(given != 0)[looks - 1]
        means = np.cumsum(values)[looks - 1] / looks
        squares = np.cumsum(values**2)[looks - 1] - looks * means**2
        errors = np.sqrt(np.maximum(squares, 0) / (looks - 1) / looks)
        half, may = np.maximum(halves[looks], halves[nonzero]) * errors, nonzero >= SMALL
        wrong += [
            (may & (means - half >= 0)).any(),
            (may & (means + half < 0)).any(),
            (means - students * errors >= 0).any(),
            (means + students * errors < 0).any(),
        ]
        holds = may & (means + margin - half >= 0)
        decided.append(looks[np.argmax(holds)] if holds.any() else np.inf)
    return 100 * wrong / experiments, float(np.median(decided))


def rows(*, quick: bool) -> Iterator[Row]:
    experiments = 20 if quick else 2_000
    for name, draw in DRAWS.items():
        for n in (50, 200):
            for way, options in (("Holm", {}), ("Tukey", {"test": "tukey"})):
                share = 100 * ranks_held(draw, n, experiments, **options)
                yield Row("decisions", f"ranks of {name}, {n} queries, {way}", unit="% held", cpu=share)
    for name, draw in GATES.items():
        for first, last in ((10, 1_000), (100, 10_000)):
            wrong, queries = wrong_gates(draw, experiments, first, last, 0.02)
            told = f"without a loss it holds a margin of 0.02 at {queries:,.0f}"
            for says, ours, once in (("holds", wrong[0], wrong[2]), ("fails", wrong[1], wrong[3])):
                yield Row(
                    "decisions", f"gate of {name}, {first} to {last:,} queries, {says}", "Student's t", "% wrong", cpu=ours,
                    baseline_cpu=once, note=told,
                )  # fmt: skip
