"""Compute nDCG in a few lines of NumPy, a query at a time, to check answers before they are timed.

This module shares no code with the package. `tests/oracle.py` is the definition, and a test compares the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import fastndcg as fn
from bench.errors import WrongAnswerError

Array = npt.NDArray[Any]


def ndcg(grades: Array, scores: Array, cutoff: int | None, *, gain: str = "linear") -> float:
    """Return nDCG of one query, averaged over the orders of tied documents."""
    gains = np.asarray(grades, np.float64)
    if gain == "exp2":
        gains = 2.0**gains - 1
    discounts = 1 / np.log2(np.arange(len(gains)) + 2)
    if cutoff is not None:
        discounts[cutoff:] = 0
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")
    _, group, size = np.unique(
        -np.asarray(scores, np.float64)[order], return_inverse=True, return_counts=True
    )
    averaged = (np.bincount(group, gains[order]) / size)[group]
    ideal = float(np.sort(gains)[::-1] @ discounts)
    return float(averaged @ discounts) / ideal if ideal else 0.0


def _is_here(measure: fn.Measure) -> bool:
    if measure.name != "nDCG":
        return False
    plain = fn.nDCG(gain=measure.gain)
    return bool(measure == (plain if measure.cutoff is None else plain @ measure.cutoff))


def check(rankings: fn.Rankings, measures: tuple[str, ...], *, threads: int, queries: int = 200) -> None:
    """Check values against this module for a sample of queries, and that measures alone have the same.

    A linear or exp2 nDCG is compared with `ndcg`, 1e-12 relative. Any other measure is scored alone, on one
    thread: bit for bit the same.
    """
    together = fn.evaluate(rankings, measures, threads=threads)
    some = np.unique(np.linspace(0, rankings.n_queries - 1, queries).astype(int))
    for measure, values in zip(together.measures, together.values, strict=True):
        if not _is_here(measure):
            alone = fn.evaluate(rankings, measure, threads=1).values[0]
            if not np.array_equal(alone, values, equal_nan=True):
                query = int(np.argmax(alone != values))
                raise WrongAnswerError(str(measure), f"query {query}", values[query], alone[query])
            continue
        for query in some[: max(1, int(2_000_000 / max(1, rankings._longest)))]:
            rows = slice(rankings.offsets[query], rankings.offsets[query + 1])
            wanted = ndcg(rankings.relevance[rows], rankings.scores[rows], measure.cutoff, gain=measure.gain)
            if not np.isclose(values[query], wanted, rtol=1e-12, atol=0):
                raise WrongAnswerError(str(measure), f"query {query}", values[query], wanted)
