"""Two samples of values: the difference of their means, its significance, and its effect size.

Arrays in, numbers out. `fastndcg.comparison` has the systems, queries and tables around them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.errors import library
from fastndcg.statistics.intervals import t_interval, t_two_sided
from fastndcg.statistics.sums import exact_sum, mean

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

NAN = float("nan")


class Spread(NamedTuple):
    """A mean and its standard error."""

    n: int
    mean: float
    std: float  # of the values, one each query
    error: float  # standard error of the mean
    freedom: float  # degrees of freedom of the error

    @classmethod
    def of(cls, values: Float64, weight: Float64 | None = None, clusters: Int64 | None = None) -> Spread:
        """Of values, (n,), their weights and the numbers of their clusters, if any; NaN for fewer than two,
        or a NaN among them.

        With m the mean, w the weights (or 1) and G clusters (or values), the error is the root of G / (G - 1)
        * sum over clusters of (sum of w (v - m) in it)^2 / (sum of w)^2. Degrees of freedom are G - 1, and
        (sum of w)^2 / (sum of w^2) - 1 for weights without clusters.
        """
        if weight is not None:
            weighs = weight > 0
            values, weight = values[weighs], weight[weighs]
            clusters = None if clusters is None else clusters[weighs]
        n, middle = len(values), mean(values, weight)
        if n < 2 or math.isnan(middle):
            return cls(n, middle, NAN, NAN, NAN)
        off = values - middle
        whole = Fraction(n) if weight is None else exact_sum(weight)
        spread = off * off if weight is None else weight * off * off
        std = math.sqrt(exact_sum(spread) / whole * n / (n - 1))
        if clusters is None and weight is None:
            return cls(n, middle, std, std / math.sqrt(n), n - 1.0)
        shares = off if weight is None else weight * off
        groups, freedom = n, n - 1.0
        if clusters is not None:
            # summed in an order that depends neither on the order of queries nor on the choice of baseline
            order = np.lexsort((shares * _direction(middle, values), clusters))
            starts = np.flatnonzero(np.diff(clusters[order], prepend=clusters.min() - 1))
            shares = np.add.reduceat(shares[order], starts)
            groups = len(shares)
            freedom = groups - 1.0
        elif weight is not None:
            freedom = float(whole**2 / exact_sum(weight * weight) - 1)
        if groups < 2:
            return cls(n, middle, std, NAN, NAN)
        error = math.sqrt(exact_sum(shares * shares) * groups / (groups - 1) / whole**2)
        return cls(n, middle, std, error, freedom)


def _direction(middle: float, values: Float64) -> float:
    """1 or -1, and the opposite for the negated values."""
    if middle:
        return math.copysign(1.0, middle)
    ascending = np.sort(values)
    turned = ascending + ascending[::-1]
    return math.copysign(1.0, turned[np.argmax(turned != 0)])


class Difference(NamedTuple):
    """The difference of the means of two samples."""

    queries: int
    difference: float
    std: float  # what effect sizes are measured in
    error: float
    freedom: float

    @classmethod
    def independent(cls, sample: Spread, baseline: Spread) -> Difference:
        """Of two samples that share no query, by Welch; degrees of freedom are Satterthwaite's."""
        squares = [sample.error**2, baseline.error**2]
        error = math.sqrt(sum(squares))
        parts = squares[0] ** 2 / sample.freedom + squares[1] ** 2 / baseline.freedom
        freedom = sum(squares) ** 2 / parts if parts else sample.freedom + baseline.freedom
        n = sample.n + baseline.n
        pooled = (sample.n - 1) * sample.std**2 + (baseline.n - 1) * baseline.std**2
        std = math.sqrt(pooled / (n - 2)) if n > 2 else NAN
        return cls(n, sample.mean - baseline.mean, std, error, freedom)

    def p(self) -> float:
        """The p-value of the t-test; never 0."""
        if not self.error:
            return t_two_sided(math.inf, 1) if self.difference else 1.0
        return t_two_sided(self.difference / self.error, self.freedom)

    def numbers(self, confidence: float) -> dict[str, float]:
        """Interval, effect size with its interval, and the difference detected with a power of 0.8."""
        low, high = t_interval(self.difference, self.error, self.freedom, confidence)
        effect = effect_low = effect_high = NAN
        if self.std > 0:
            # Hedges' correction of the bias
            corrected = 1 - 3 / (4 * self.freedom - 1) if self.freedom > 1 else NAN
            effect = corrected * self.difference / self.std
            if not self.error:  # the means of all clusters are equal
                effect_low = effect_high = effect
            else:
                ends = noncentralities(self.difference / self.error, self.freedom, confidence)
                effect_low, effect_high = (corrected * end * self.error / self.std for end in ends)
        return {
            "low": low,
            "high": high,
            "effect": effect,
            "effect_low": effect_low,
            "effect_high": effect_high,
            "detectable": _normal_sum(confidence, 0.8) * self.error,
        }

    def queries_needed(self, difference: float, confidence: float, power: float) -> int | None:
        """Queries that a test needs to detect this difference with this power; None if values do not vary."""
        if not self.std > 0 or not self.error > 0:
            return None
        std = self.error * math.sqrt(self.queries)
        return queries_needed(abs(difference) / std, confidence, power)


def _normal_sum(confidence: float, power: float) -> float:
    from statistics import NormalDist  # here, because it brings random

    normal = NormalDist()
    return normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(power)


def queries_needed(effect: float, confidence: float, power: float) -> int:
    """Queries so that the paired t-test finds a difference of `effect` standard deviations so often, by the
    noncentral t.

    >>> queries_needed(0.5, 0.95, 0.8)
    34
    """
    special = scipy("special", "The number of queries that a test needs")

    def power_of(n: int) -> float:
        bound = special.stdtrit(n - 1, (1 + confidence) / 2)
        shift = effect * math.sqrt(n)
        beyond = special.nctdtr(n - 1, shift, bound) - special.nctdtr(n - 1, shift, -bound)
        return float(1 - beyond)

    # the normal distribution gives a little less, and the same for large n
    usual = (_normal_sum(confidence, power) / effect) ** 2
    if usual > 1e6:
        return math.ceil(usual)
    few, many = 1, max(2, math.ceil(usual) + 8)
    while power_of(many) < power:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power_of(middle) >= power else (middle, many)
    return many


def noncentralities(t: float, freedom: float, confidence: float) -> tuple[float, float]:
    """The least and the greatest noncentrality that t does not contradict."""
    special = scipy("special", "The interval of an effect size")
    outside = (1 - confidence) / 2
    if not math.isfinite(t) or not freedom > 0:
        return NAN, NAN
    low, high = (float(special.nctdtrinc(freedom, share, t)) for share in (1 - outside, outside))
    return low, high


def wilcoxon(differences: Float64) -> float:
    """p-value of Wilcoxon's signed-rank test without zeros; 1 where all are zero."""
    stats = scipy("stats", "Wilcoxon's test")
    nonzero = differences[differences != 0]
    if not len(nonzero):
        return 1.0
    return max(float(stats.wilcoxon(np.sort(nonzero)).pvalue), t_two_sided(math.inf, 1))


def holm(p: list[float]) -> list[float]:
    """p-values adjusted for the family-wise error rate (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, least = list(p), 0.0
    for rank, place in enumerate(_ascending(p)):
        least = max(least, (_count_tested(p) - rank) * p[place])
        adjusted[place] = min(1.0, least)
    return adjusted


def benjamini_hochberg(p: list[float]) -> list[float]:
    """p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995).

    >>> [round(each, 3) for each in benjamini_hochberg([0.01, 0.04, 0.03, 0.005])]
    [0.02, 0.04, 0.04, 0.02]
    """
    adjusted, most = list(p), 1.0
    for rank, place in reversed(list(enumerate(_ascending(p), 1))):
        most = min(most, p[place] * _count_tested(p) / rank)
        adjusted[place] = most
    return adjusted


CORRECTIONS = {"holm": holm, "bh": benjamini_hochberg}


def _ascending(p: list[float]) -> list[int]:
    return sorted((place for place, each in enumerate(p) if not math.isnan(each)), key=p.__getitem__)


def _count_tested(p: list[float]) -> int:
    return sum(not math.isnan(each) for each in p)


def scipy(module: str, what: str) -> Any:
    """A module of SciPy. Raises `ExtraError` where it is not installed."""
    return library(f"scipy.{module}", "SciPy", "stats", what)
