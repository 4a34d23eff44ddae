"""Confidence intervals of means by Student's t distribution, and the differences that its test detects.

The distribution is implemented here, so that intervals do not need SciPy; tests compare it to 1e-12.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from numbers import Real
from typing import Any, NamedTuple

from fastndcg.errors import InputError, InputTypeError

SMALL = 30  # with fewer values, the interval of a mean is unreliable
HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"  # verdicts


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


def check_confidence(confidence: object) -> float:
    """A number between 0 and 1 as a float. Raises `InputError` or `InputTypeError` for anything else."""
    if isinstance(confidence, bool) or not isinstance(confidence, Real):
        raise InputTypeError(
            f"confidence={confidence!r} is not a number; expected one between 0 and 1, as in confidence=0.95"
        )
    found = float(confidence)
    if not 0 < found < 1:
        hint = f" Did you mean {found / 100:g}?" if 1 < found < 100 else ""
        raise InputError(
            f"confidence={confidence!r} is not between 0 and 1; expected for example confidence=0.95.{hint}"
        )
    return found


def check_size(name: str, size: object, what: str, example: float) -> float:
    """A size of differences as a float: finite, 0 or more. Raises `InputError` or `InputTypeError`."""
    if isinstance(size, bool) or not isinstance(size, Real):
        raise InputTypeError(f"{name}={size!r} is not a number; expected 0 or more, as in {name}={example}")
    try:
        found = float(size)
    except OverflowError:  # an integer too large for a float
        found = math.inf
    if not 0 <= found < math.inf:
        raise InputError(
            f"{name}={size!r} is not {what}; expected a finite number, 0 or more, as in {name}={example}"
        )
    return found


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
    h, found = 1 / 32, []
    for step in range(-4 * 32, 6 * 32):
        x = step * h
        u = math.exp(math.pi / 2 * math.sinh(x))
        found.append((u, h * math.pi / 2 * math.cosh(x) * u))
    return found


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
