"""Correlations of two measurements of the same things, and how often their signs agree, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fastndcg.statistics.agreement import tau_b
from fastndcg.statistics.intervals import Interval

Float64 = npt.NDArray[np.float64]


def pearson(a: Float64, b: Float64) -> float:
    """The linear correlation of two arrays, (n,); NaN if the values of one are equal."""
    one, other = (each - each.mean() for each in (a, b)) if len(a) else (a, b)
    sizes = float(np.linalg.norm(one) * np.linalg.norm(other))
    return min(max(float(one @ other) / sizes, -1.0), 1.0) if sizes else math.nan


def spearman(a: Float64, b: Float64) -> float:
    """The linear correlation of ranks, those of ties averaged."""
    return pearson(*(_ranks(each) for each in (a, b)))


def _ranks(values: Float64) -> Float64:
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[codes]


# a correlation, and the variance of its arc hyperbolic tangent from n and the correlation: Fisher's; Bonett
# and Wright, Psychometrika 2000
METHODS: dict[str, tuple[Callable[[Float64, Float64], float], Callable[[int, float], float]]] = {
    "pearson": (pearson, lambda n, _: 1 / (n - 3)),
    "spearman": (spearman, lambda n, r: (1 + r * r / 2) / (n - 3)),
    "kendall": (tau_b, lambda n, _: 0.437 / (n - 4)),
}


def correlation(method: str, a: Float64, b: Float64, confidence: float) -> tuple[float, Interval]:
    """A correlation and its interval, which is NaN for fewer than 5 values, or where it is 1 or -1."""
    correlate, variance = METHODS[method]
    r = correlate(a, b) if len(a) > 1 else math.nan
    if len(a) < 5 or not abs(r) < 1 - 1e-12:
        return r, Interval(math.nan, math.nan)
    half = _normal(confidence) * math.sqrt(variance(len(a), r))
    return r, Interval(math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half))


def share(hits: int, n: int, confidence: float) -> tuple[float, Interval]:
    """A share and its interval by Wilson (JASA 1927), which lies from 0 to 1; NaN of nothing.

    >>> share(8, 10, 0.95)
    (0.8, Interval(low=0.490162..., high=0.943317...))
    """
    if not n:
        return math.nan, Interval(math.nan, math.nan)
    z = _normal(confidence)
    middle, whole = (hits + z * z / 2) / (n + z * z), hits / n
    half = z / (n + z * z) * math.sqrt(n * whole * (1 - whole) + z * z / 4)
    low = 0.0 if not hits else min(middle - half, whole)  # which rounding would leave apart from the ends
    return whole, Interval(low, 1.0 if hits == n else max(middle + half, whole))


def _normal(confidence: float) -> float:
    from statistics import NormalDist  # here, because it brings random

    return NormalDist().inv_cdf((1 + confidence) / 2)
