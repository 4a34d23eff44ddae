"""Simulate what comparisons decide: intervals of ranks, and gates that are looked at while queries arrive.

    python -m bench.decisions [--experiments 2000]

Ranks: the share of experiments, in %, in which all true ranks of six systems lie in their intervals at once,
where 95 or more is right. Two of the systems are equal. Gates: the share of experiments, in %, in which a gate
of level 5 % says "holds" of a system that loses exactly its margin, or "fails" of it, at any of 100 looks;
5 or less is right. Beside it, the same of the interval by Student's t, which is for one look. Last, after how
many queries the gate holds for a system that loses nothing.

Bias: generated values; looks are spread evenly on a logarithmic scale.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

import fastndcg as fn
from bench.bench_statistics import DRAWS, Draw, few_differ
from fastndcg.decide.verdicts import verdict_of
from fastndcg.scores.scores import Scores
from fastndcg.statistics.intervals import SMALL, sequence_half, t_interval

Float64 = npt.NDArray[np.float64]
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


def wrong_gates(
    draw: Draw, experiments: int, first: int, last: int, shift: float, margin: float
) -> list[float]:
    """Shares of experiments in which a gate says "holds", and "fails", at any of 100 looks; the same of Student's t;
    and the median number of queries at which it first says "holds".
    """
    random, mean = np.random.default_rng(last), _mean_of(draw)
    looks = np.unique(np.geomspace(first, last, 100).astype(int))
    found = dict.fromkeys(("holds", "fails", "t holds", "t fails"), 0)
    decided = []
    for _ in range(experiments):
        values = draw(random, (last,)) - mean + shift
        sums, squares = np.cumsum(values), np.cumsum((values - shift) ** 2)
        nonzero = np.cumsum(np.abs(values - shift + mean) > 1e-12)
        says: dict[str, int] = {}
        for n in looks.tolist():
            middle = sums[n - 1] / n
            spread = max(squares[n - 1] / n - (middle - shift) ** 2, 0.0) * n / (n - 1)
            error = float(np.sqrt(spread / n))
            half = sequence_half(error, n - 1, 0.95)
            if nonzero[n - 1] >= SMALL:
                says.setdefault(verdict_of(middle - half, middle + half, margin), n)
            says.setdefault(f"t {verdict_of(*t_interval(middle, error, n - 1, 0.95), margin)}", n)
        for name in found:
            found[name] += name in says
        decided.append(says.get("holds", np.inf))
    return [*(count / experiments for count in found.values()), float(np.median(decided))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--experiments", type=int, default=2_000)
    experiments = parser.parse_args().experiments
    print(f"all true ranks within their intervals, % of {experiments:,} experiments")
    for name, draw in DRAWS.items():
        for n in (50, 200):
            shares = [ranks_held(draw, n, experiments, **options) for options in ({}, {"test": "tukey"})]
            print(f"  {name:24} n={n:<4} " + "  ".join(
                f"{way} {100 * share:5.1f}" for way, share in zip(("Holm", "Tukey"), shares, strict=True)
            ), flush=True)  # fmt: skip
    print(
        f"gates of a loss of exactly the margin, 100 looks, % of {experiments:,} experiments that are ever wrong"
    )
    for name, draw in {**DRAWS, "5 % of queries differ": few_differ}.items():
        for first, last in ((10, 1_000), (100, 10_000)):
            holds, fails, t_holds, t_fails, _ = wrong_gates(draw, experiments, first, last, -0.02, 0.02)
            print(
                f"  {name:24} {first} to {last:,} queries: holds {100 * holds:4.1f}, fails {100 * fails:4.1f}; "
                f"Student's t: holds {100 * t_holds:4.1f}, fails {100 * t_fails:4.1f}", flush=True,
            )  # fmt: skip
    print("a system that loses nothing, margin 0.02: queries until the gate holds, median")
    for name, draw in DRAWS.items():
        *_, queries = wrong_gates(draw, experiments // 10, 10, 20_000, 0.0, 0.02)
        print(f"  {name:24} {queries:,.0f}", flush=True)


if __name__ == "__main__":
    main()
