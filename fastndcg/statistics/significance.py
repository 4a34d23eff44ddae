"""Two samples of values: the difference of means, its significance and its effect size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastndcg.statistics.exact_sums import (
    ROUNDING,
    differences_of,
    exact_sum,
    is_constant,
    mean,
    scaled,
    starts_of,
)
from fastndcg.statistics.intervals import Interval, shift_to_detect, t_interval, t_two_sided

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64


class Spread(NamedTuple):
    """A mean, or the difference of two means, and its standard error."""

    n: int
    mean: float
    std: float  # standard deviation of the values, one per query
    error: float  # standard error of the mean
    freedom: float  # degrees of freedom of the error

    @classmethod
    def of(
        cls,
        values: Float64,
        weight: Float64 | None = None,
        clusters: Int64 | None = None,
        size: float | None = None,
    ) -> Spread:
        """Compute it from values, (n,), their weights and cluster numbers, if any; NaN for fewer than two, or
        a NaN among them. `size` is the largest absolute value that values were computed from.

        With m the mean, w the weights (or 1) and G clusters (or values), the error is the root of G / (G - 1)
        * sum over clusters of (sum of w (v - m) in it)^2 / (sum of w)^2. Degrees of freedom are G - 1, and
        (sum of w)^2 / (sum of w^2) - 1 for weights without clusters. Values that are equal up to rounding
        have no spread, and such means of clusters no error.
        """
        if weight is not None:
            weighs = weight > 0
            values, weight = values[weighs], scaled(weight[weighs])
            clusters = None if clusters is None else clusters[weighs]
        n, middle = len(values), mean(values, weight)
        if n < 2 or math.isnan(middle):
            return cls(n, middle, math.nan, math.nan, math.nan)
        size = float(np.abs(values).max()) if size is None else size
        # deviations are divided by a power of two, so that their squares do not overflow
        power, w = math.frexp(size)[1], np.ones(n) if weight is None else weight
        off = np.ldexp(values - middle, -power)
        settled = middle if abs(middle) > ROUNDING * size else 0.0  # the mean of values without a spread
        if is_constant(off, math.ldexp(size, -power)):
            off, middle = np.zeros(n), settled
        shares, whole = w * off, exact_sum(w)
        std = math.ldexp(math.sqrt(exact_sum(shares * off) / whole * n / (n - 1)), power)
        if weight is None and clusters is None:
            return cls(n, middle, std, std / math.sqrt(n), n - 1.0)
        if clusters is None:
            error = math.ldexp(math.sqrt(exact_sum(shares * shares) * n / (n - 1) / whole**2), power)
            return cls(n, middle, std, error, float(whole**2 / exact_sum(w, w) - 1))
        # summed in an order that depends neither on the order of queries nor on the choice of baseline
        order = np.lexsort((shares * (direction(middle, values) or 1.0), clusters))
        starts = starts_of(clusters[order])
        shares, sizes = np.add.reduceat(shares[order], starts), np.add.reduceat(w[order], starts)
        if is_constant(shares / sizes, math.ldexp(size, -power)):
            shares, middle = np.zeros(len(shares)), settled
        if (groups := len(shares)) < 2:
            return cls(n, middle, std, math.nan, math.nan)
        error = math.sqrt(exact_sum(shares * shares) * groups / (groups - 1) / whole**2)
        return cls(n, middle, std, math.ldexp(error, power), groups - 1.0)

    @classmethod
    def independent(cls, sample: Spread, baseline: Spread) -> Spread:
        """Compute the difference of two samples that share no query, by Welch; degrees of freedom are
        Satterthwaite's.
        """
        power = max(math.frexp(each)[1] for each in (sample.std, baseline.std, 0.0))
        (e, std), (e0, std0) = (
            [math.ldexp(each, -power) for each in (one.error, one.std)] for one in (sample, baseline)
        )
        squares = [e**2, e0**2]
        error = math.ldexp(math.sqrt(sum(squares)), power)
        parts = squares[0] ** 2 / sample.freedom + squares[1] ** 2 / baseline.freedom
        freedom = sum(squares) ** 2 / parts if parts else sample.freedom + baseline.freedom
        n = sample.n + baseline.n
        pooled = (sample.n - 1) * std**2 + (baseline.n - 1) * std0**2
        std = math.ldexp(math.sqrt(pooled / (n - 2)), power) if n > 2 else math.nan
        return cls(n, float(differences_of(sample.mean, baseline.mean)), std, error, freedom)

    def interval(self, confidence: float) -> Interval:
        return t_interval(self.mean, self.error, self.freedom, confidence)

    def p(self) -> float:
        """Return the p-value of the t-test; never 0."""
        if not self.error:
            return t_two_sided(math.inf, 1) if self.mean else 1.0
        return t_two_sided(self.mean / self.error, self.freedom)

    def numbers(self, confidence: float) -> dict[str, float]:
        """Return the mean and its interval; the effect, which is the mean in standard deviations with Hedges'
        correction for bias; and the difference detected with a power of 0.8.
        """
        correction = 1 - 3 / (4 * self.freedom - 1) if self.freedom > 1 else math.nan
        return {
            "difference": self.mean,
            **self.interval(confidence)._asdict(),
            "effect": correction * self.mean / self.std if self.std > 0 else math.nan,
            "detectable": self.error and self.error * shift_to_detect(self.freedom, confidence, 0.8),
        }


def direction(middle: float, values: Float64, least: float = 0.0) -> float:
    """Return the sign of the mean, 1 or -1, if it exceeds `least`; 0 for values that are symmetric within it.
    Negated values have the opposite sign.
    """
    if abs(middle) > least:
        return math.copysign(1.0, middle)
    ascending = np.sort(values)
    turned = ascending + ascending[::-1]
    far = turned[np.abs(turned) > least]
    return math.copysign(1.0, far[0]) if len(far) else 0.0


def holm(p: list[float]) -> list[float]:
    """Adjust p-values for the family-wise error rate (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, tested = np.array(p, np.float64), _ascending(p)
    at_least = adjusted[tested] * np.arange(len(tested), 0, -1)
    adjusted[tested] = np.minimum(np.maximum.accumulate(at_least), 1.0)
    return adjusted.tolist()  # type: ignore[no-any-return]


def benjamini_hochberg(p: list[float]) -> list[float]:
    """Adjust p-values for the false discovery rate (Benjamini and Hochberg 1995).

    >>> [round(each, 3) for each in benjamini_hochberg([0.01, 0.04, 0.03, 0.005])]
    [0.02, 0.04, 0.04, 0.02]
    """
    adjusted, tested = np.array(p, np.float64), _ascending(p)
    at_most = (adjusted[tested] * len(tested) / np.arange(1, len(tested) + 1))[::-1]
    adjusted[tested] = np.minimum(np.minimum.accumulate(at_most), 1.0)[::-1]
    return adjusted.tolist()  # type: ignore[no-any-return]


CORRECTIONS = {"holm": holm, "bh": benjamini_hochberg}


def _ascending(p: list[float]) -> Int64:
    """Return the indices of p-values that are not NaN, in ascending order."""
    return np.argsort(p, kind="stable")[: len(p) - np.count_nonzero(np.isnan(p))]
