"""Student's t: intervals of means, tests of two samples, and corrections of several p-values.

The distribution is implemented here, so that intervals do not need SciPy; tests compare it to 1e-12.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastndcg.errors import InputError, InputTypeError
from fastndcg.statistics.exact_sums import (
    ROUNDING,
    differences_of,
    exact_sum,
    is_constant,
    mean,
    scaled,
    starts_of,
)

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64

SMALL = 30  # with fewer values, the interval of a mean is unreliable
HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"  # verdicts


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


def check_confidence(confidence: object) -> float:
    """A number between 0 and 1 as a float. Raises `InputError` or `InputTypeError` for anything else."""
    number = _number("confidence", confidence, "one between 0 and 1, as in confidence=0.95")
    if not 0 < number < 1:
        hint = f" Did you mean {number / 100:g}?" if 1 < number < 100 else ""
        raise InputError(
            f"confidence={confidence!r} is not between 0 and 1; expected for example confidence=0.95.{hint}"
        )
    return number


def check_size(name: str, size: object, what: str, example: float) -> float:
    """A size of differences as a float: finite, 0 or more. Raises `InputError` or `InputTypeError`."""
    number = _number(name, size, f"0 or more, as in {name}={example}")
    if not 0 <= number < math.inf:
        raise InputError(
            f"{name}={size!r} is not {what}; expected a finite number, 0 or more, as in {name}={example}"
        )
    return number


def _number(name: str, value: object, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{name}={value!r} is not a number; expected {expected}")
    try:
        return float(value)
    except OverflowError:  # an integer too large for a float
        return math.inf


def t_interval(mean: float, error: float, freedom: float, confidence: float) -> Interval:
    """Return mean ± t(freedom, 1 - (1 - confidence) / 2) * error; NaN if too few values give no error.

    >>> t_interval(0.5, 0.1, 9, 0.95)
    Interval(low=0.27378428372..., high=0.72621571627...)
    """
    if math.isnan(error):
        return Interval(math.nan, math.nan)
    half = t_quantile(1 - confidence, freedom) * error if error else 0.0
    return Interval(mean - half, mean + half)


def t_two_sided(t: float, freedom: float) -> float:
    """Return the two-sided p-value: the probability that Student's t is at least as far from 0; never 0.

    >>> round(t_two_sided(2.2621571628, 9), 9)
    0.05
    """
    if math.isnan(t) or not freedom > 0:
        return math.nan
    if math.isinf(t):
        return _LEAST
    if freedom < 0.2:
        return _t_of_few(abs(t), freedom)
    # with density f: 2 f(t) * integral over u > 0 of f(t + u) / f(t), which is 1 near 0 and falls
    t, width = abs(t), math.hypot(math.sqrt(freedom), t)
    scale = width / ((freedom + 1) * t / width + math.sqrt(freedom + 1))
    beyond = 0.0
    for node, part in _nodes():
        u = node * scale
        fall = math.log1p(u / width * ((2 * t + u) / width))
        beyond += part * math.exp(-(freedom + 1) / 2 * fall)
    return min(max(2 * t_density(t, freedom) * beyond * scale, _LEAST), 1.0)


def _t_of_few(t: float, freedom: float) -> float:
    """Return it for few degrees of freedom, whose density falls too slowly to integrate: the incomplete beta
    function I(x; freedom / 2, 1 / 2) with x = freedom / (freedom + t^2), as a power series of x or of 1 - x.
    """
    root, a, b = math.sqrt(freedom), freedom / 2, 0.5
    ratio = min(root, t) / math.hypot(root, t)
    is_far = t > root
    if not is_far:
        a, b = b, a
    # x^a / (a B(a, b)) * (1 + a * sum over n > 0 of (1 - b) ... (n - b) / n! * x^n / (a + n))
    x, part, total = ratio * ratio, 1.0, 1.0
    for n in range(1, 64):
        part *= (n - b) / n * x
        total += part * a / (a + n)
    below: float = ratio ** (2 * a) * _gamma_ratio(freedom / 2) / math.sqrt(math.pi) / a * total
    return min(max(below if is_far else 1 - below, _LEAST), 1.0)


def t_density(t: float, freedom: float) -> float:
    """Return the density of Student's t."""
    peak = _gamma_ratio(freedom / 2) / math.sqrt(freedom * math.pi)
    return peak * math.exp(-(freedom + 1) / 2 * math.log1p(t / freedom * t))


@cache
def _nodes() -> list[tuple[float, float]]:
    """Return nodes from 0 to infinity and weights that integrate smooth functions to float64 precision.

    Steps of h along u = exp(pi / 2 sinh x) (Takahasi and Mori, 1974).
    """
    h, nodes = 1 / 32, []
    for step in range(-4 * 32, 6 * 32):
        x = step * h
        u = math.exp(math.pi / 2 * math.sinh(x))
        nodes.append((u, h * math.pi / 2 * math.cosh(x) * u))
    return nodes


@lru_cache(64)
def t_quantile(outside: float, freedom: float) -> float:
    """Return the t with probability `outside` beyond its absolute value.

    >>> round(t_quantile(0.05, 9), 9)
    2.262157163
    """
    if not freedom > 0:
        return math.nan
    if outside >= 1:
        return 0.0
    t: float = -normal_distribution().inv_cdf(outside / 2)
    for _ in range(1000):  # Newton's method from the left of a convex function, which never oversteps
        density = t_density(t, freedom)
        if not density:  # almost no freedom: one value has all the weight
            return math.inf
        step = (t_two_sided(t, freedom) - outside) / (2 * density)
        t = max(t + step, 0.0)  # below 0 by rounding, if `outside` is nearly 1, the iteration would diverge
        if abs(step) <= 1e-15 * t:
            break
    return t


_LEAST = 2.2250738585072014e-308  # the smallest normal float64


@cache
def normal_distribution() -> Any:
    from statistics import NormalDist  # imported here, because it imports random

    return NormalDist()


def _gamma_ratio(a: float) -> float:
    """Return gamma(a + 1/2) / gamma(a); for large a, a difference of logarithms would lose precision."""
    ratio = 1.0
    while a < 40:
        ratio *= a / (a + 0.5)
        a += 1
    series = -1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    return ratio * math.sqrt(a) * math.exp(series)


def shift_to_detect(freedom: float, confidence: float, power: float) -> float:
    """Return the difference, in standard errors, that the two-sided t-test finds with this power: the sum of
    two quantiles of Student's t, which approximates the noncentral t.
    """
    of_power = t_quantile(2 * min(power, 1 - power), freedom)
    return max(t_quantile(1 - confidence, freedom) + math.copysign(of_power, power - 0.5), 0.0)


# ---- two samples ----


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
        shares, total_weight = w * off, exact_sum(w)
        std = math.ldexp(math.sqrt(exact_sum(shares * off) / total_weight * n / (n - 1)), power)
        if weight is None and clusters is None:
            return cls(n, middle, std, std / math.sqrt(n), n - 1.0)
        if clusters is None:
            error = math.ldexp(math.sqrt(exact_sum(shares * shares) * n / (n - 1) / total_weight**2), power)
            return cls(n, middle, std, error, float(total_weight**2 / exact_sum(w, w) - 1))
        # summed in an order that depends neither on the order of queries nor on the choice of baseline
        order = np.lexsort((shares * (direction(middle, values) or 1.0), clusters))
        starts = starts_of(clusters[order])
        shares, sizes = np.add.reduceat(shares[order], starts), np.add.reduceat(w[order], starts)
        if is_constant(shares / sizes, math.ldexp(size, -power)):
            shares, middle = np.zeros(len(shares)), settled
        if (groups := len(shares)) < 2:
            return cls(n, middle, std, math.nan, math.nan)
        error = math.sqrt(exact_sum(shares * shares) * groups / (groups - 1) / total_weight**2)
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
    large = turned[np.abs(turned) > least]
    return math.copysign(1.0, large[0]) if len(large) else 0.0


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
