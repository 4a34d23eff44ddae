"""Two samples of values: the difference of means, its significance and its effect size."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastndcg.statistics import intervals
from fastndcg.statistics.exact_sums import (
    ROUNDING,
    differences_of,
    exact_sum,
    exact_sum_of_products,
    is_constant,
    mean,
    ranks_of,
    scaled,
)
from fastndcg.statistics.intervals import Interval, t_interval, t_two_sided

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64


class Centre(NamedTuple):
    """What squares are taken about, a mean; values off it are divided by a power of two against overflow."""

    middle: float
    power: int
    is_constant: bool  # values are equal up to rounding, and have no spread
    settled: float  # the mean of values without a spread

    @classmethod
    def of(cls, middle: float, size: float, low: float, high: float) -> Centre:
        power, settled = math.frexp(size)[1], middle if abs(middle) > ROUNDING * size else 0.0
        off = np.ldexp(np.array([low, high]) - middle, -power)
        return cls(middle, power, is_constant(off, math.ldexp(size, -power)), settled)

    def off(self, values: Float64) -> Float64:
        off: Float64 = np.ldexp(values - self.middle, -self.power)
        return np.zeros(len(values)) if self.is_constant else off

    def squares(self, values: Float64, weight: Float64 | None) -> tuple[Fraction, Fraction]:
        """Exact sums of weight * off^2, and of (weight * off)^2."""
        off = self.off(values)
        shares = off if weight is None else weight * off
        return exact_sum(shares * off), exact_sum(shares * shares)


class Spread(NamedTuple):
    """A mean, or the difference of two, and its standard error."""

    n: int
    mean: float
    std: float  # of the values, one each query
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
        """Of values, (n,), their weights and the numbers of their clusters, if any; NaN for fewer than two,
        or a NaN among them. `size` is the largest absolute value of what values were computed from.

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
        centre = Centre.of(middle, size, float(values.min()), float(values.max()))
        whole = Fraction(n) if weight is None else exact_sum(weight)
        of_weights = None if weight is None else exact_sum_of_products(weight, weight)
        found = cls.of_sums(n, centre, whole, of_weights, *centre.squares(values, weight))
        if clusters is None:
            return found
        middle, off = found.mean, centre.off(values)
        shares = off if weight is None else weight * off
        # summed in an order that depends neither on the order of queries nor on the choice of baseline
        order = np.lexsort((shares * (direction(middle, values) or 1.0), clusters))
        starts = np.flatnonzero(np.diff(clusters[order], prepend=clusters.min() - 1))
        shares = np.add.reduceat(shares[order], starts)
        sizes = np.add.reduceat(np.ones(n) if weight is None else weight[order], starts)
        if is_constant(shares / sizes, math.ldexp(size, -centre.power)):
            shares, middle = np.zeros(len(shares)), centre.settled
        if (groups := len(shares)) < 2:
            return cls(n, middle, found.std, math.nan, math.nan)
        error = math.sqrt(exact_sum(shares * shares) * groups / (groups - 1) / whole**2)
        return cls(n, middle, found.std, math.ldexp(error, centre.power), groups - 1.0)

    @classmethod
    def of_sums(
        cls, n: int, centre: Centre, whole: Fraction, of_weights: Fraction | None, *squares: Fraction
    ) -> Spread:
        """Of n values, two or more: from sums of weights, or n; of their squares; and `Centre.squares`."""
        middle = centre.settled if centre.is_constant else centre.middle
        std = math.ldexp(math.sqrt(squares[0] / whole * n / (n - 1)), centre.power)
        if of_weights is None:
            return cls(n, middle, std, std / math.sqrt(n), n - 1.0)
        error = math.ldexp(math.sqrt(squares[1] * n / (n - 1) / whole**2), centre.power)
        return cls(n, middle, std, error, float(whole**2 / of_weights - 1))

    @classmethod
    def independent(cls, sample: Spread, baseline: Spread) -> Spread:
        """Of the difference of two samples that share no query, by Welch; degrees of freedom are
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
        """The p-value of the t-test; never 0."""
        if not self.error:
            return t_two_sided(math.inf, 1) if self.mean else 1.0
        return t_two_sided(self.mean / self.error, self.freedom)

    def numbers(self, confidence: float) -> dict[str, float]:
        """Interval, effect size, and the difference detected with a power of 0.8."""
        return {
            **self.interval(confidence)._asdict(),
            "effect": self.effect,
            "detectable": self.error
            and self.error * intervals.shift_to_detect(self.freedom, confidence, 0.8),
        }

    @property
    def _correction(self) -> float:
        """Hedges' correction of the bias of effects."""
        return 1 - 3 / (4 * self.freedom - 1) if self.freedom > 1 else math.nan

    @property
    def effect(self) -> float:
        """The mean in standard deviations, corrected."""
        return self._correction * self.mean / self.std if self.std > 0 else math.nan

    def effect_interval(self, confidence: float) -> Interval:
        """The interval of the effect, widened to contain it, which it may not if confidence is low."""
        effect, corrected = self.effect, self._correction
        if math.isnan(effect) or not self.error:  # without an error the means of all clusters are equal
            return Interval(effect, effect)
        ends = intervals.noncentralities(self.mean / self.error, self.freedom, confidence)
        scale = self.error / self.std
        return Interval(min(effect, corrected * ends.low * scale), max(effect, corrected * ends.high * scale))

    def queries_needed(self, difference: float, confidence: float, power: float) -> int | None:
        """Queries that a test needs to detect this difference with this power; None if values do not vary."""
        if not self.std > 0 or not self.error > 0:
            return None
        std = self.error * math.sqrt(self.n)
        return intervals.queries_needed(abs(difference) / std, confidence, power)


def direction(middle: float, values: Float64, least: float = 0.0) -> float:
    """1 or -1, and the opposite for the negated values: the sign of the mean, if it is larger than `least`. 0
    for values that are symmetrical up to that.
    """
    if abs(middle) > least:
        return math.copysign(1.0, middle)
    ascending = np.sort(values)
    turned = ascending + ascending[::-1]
    far = turned[np.abs(turned) > least]
    return math.copysign(1.0, far[0]) if len(far) else 0.0


def wilcoxon(differences: Float64, size: float) -> float:
    """p-value of Wilcoxon's signed-rank test without zeros; 1 where all are zero. Sizes that are equal up to
    rounding are tied.
    """
    stats = intervals.scipy("stats", "Wilcoxon's test")
    nonzero = differences[differences != 0]
    if not len(nonzero):
        return 1.0
    ranks = np.copysign(1 + ranks_of(np.abs(nonzero), ROUNDING * size), nonzero)
    return max(float(stats.wilcoxon(np.sort(ranks)).pvalue), t_two_sided(math.inf, 1))


def holm(p: list[float]) -> list[float]:
    """p-values adjusted for the family-wise error rate (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, least, tested = list(p), 0.0, _ascending(p)
    for rank, place in enumerate(tested):
        least = max(least, (len(tested) - rank) * p[place])
        adjusted[place] = min(1.0, least)
    return adjusted


def benjamini_hochberg(p: list[float]) -> list[float]:
    """p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995).

    >>> [round(each, 3) for each in benjamini_hochberg([0.01, 0.04, 0.03, 0.005])]
    [0.02, 0.04, 0.04, 0.02]
    """
    adjusted, most, tested = list(p), 1.0, _ascending(p)
    for rank, place in reversed(list(enumerate(tested, 1))):
        most = min(most, p[place] * len(tested) / rank)
        adjusted[place] = most
    return adjusted


def bonferroni(p: list[float]) -> list[float]:
    """p-values adjusted for the family-wise error rate, each times their number (Dunn 1961).

    >>> bonferroni([0.01, 0.4, 0.03])
    [0.03, 1.0, 0.09]
    """
    return [each if math.isnan(each) else min(1.0, len(_ascending(p)) * each) for each in p]


CORRECTIONS = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}


def _ascending(p: list[float]) -> list[int]:
    """The places of p-values that are no NaN, the least first."""
    return sorted((place for place, each in enumerate(p) if not math.isnan(each)), key=p.__getitem__)
