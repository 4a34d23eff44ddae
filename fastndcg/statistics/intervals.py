"""Confidence intervals of means, by Student's t distribution.

The distribution is written here, so that intervals need no SciPy; tests compare it with SciPy's to 1e-12.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from numbers import Real
from typing import NamedTuple

from fastndcg.errors import Argument, InputError, InputTypeError

SMALL = 30  # with fewer values, the interval of a mean is unreliable


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


def check_share(name: str, share: object, example: float) -> float:
    """A number between 0 and 1 as a float. Raises `InputError` or `InputTypeError` for anything else."""
    wanted = Argument(name, example)
    if isinstance(share, bool) or not isinstance(share, Real):
        raise InputTypeError(
            Argument(name, share), " is not a number; wanted one between 0 and 1, as in ", wanted
        )
    given = float(share)
    if not 0 < given < 1:
        hint = f" Did you mean {given / 100:g}?" if 1 < given < 100 else ""
        raise InputError(
            Argument(name, share),
            " is not between 0 and 1; wanted a number between them, as in ",
            wanted,
            f".{hint}",
        )
    return given


def check_confidence(confidence: object) -> float:
    return check_share("confidence", confidence, 0.95)


def check_size(name: str, size: object, what: str, example: float) -> float:
    """A size of differences as a float: finite, 0 or more. Raises `InputError` or `InputTypeError`."""
    if isinstance(size, bool) or not isinstance(size, Real):
        raise InputTypeError(
            Argument(name, size), " is not a number; wanted 0 or more, as in ", Argument(name, example)
        )
    try:
        found = float(size)
    except OverflowError:  # a whole number beyond all floats
        found = math.inf
    if not 0 <= found < math.inf:
        raise InputError(
            Argument(name, size),
            f" is not {what}; wanted a finite number, 0 or more, as in ",
            Argument(name, example),
        )
    return found


def t_interval(mean: float, error: float, freedom: float, confidence: float) -> Interval:
    """mean ± t(freedom, 1 - (1 - confidence) / 2) * error; NaN where there are too few values for an error.

    >>> t_interval(0.5, 0.1, 9, 0.95)
    Interval(low=0.27378428372..., high=0.72621571627...)
    """
    if math.isnan(error):
        return Interval(math.nan, math.nan)
    half = t_quantile(1 - confidence, freedom) * error if error else 0.0
    return Interval(mean - half, mean + half)


def logit_interval(
    mean: float, error: float, freedom: float, confidence: float, least: float, greatest: float
) -> Interval:
    """Student's interval of the logit of where a mean lies from `least` to `greatest`, whose ends therefore
    lie there too (Korn and Graubard, Survey Methodology 1998). NaN for a mean that lies elsewhere.

    >>> logit_interval(0.9, 0.1, 9, 0.95, 0, 1)
    Interval(low=0.421581..., high=0.991082...)
    """
    share = (mean - least) / (greatest - least)
    if not error:
        return Interval(mean, mean)
    if not 0 < share < 1:
        return Interval(math.nan, math.nan)
    half = t_interval(0.0, error / (greatest - least) / (share * (1 - share)), freedom, confidence).high
    middle = math.log(share / (1 - share))
    low, high = (
        least + (greatest - least) * (1 + math.tanh(end / 2)) / 2 for end in (middle - half, middle + half)
    )
    return Interval(min(low, mean), max(high, mean))


_NARROWEST = 1000  # queries at which the interval of a confidence sequence is narrowest


def sequence_half(error: float, freedom: float, confidence: float) -> float:
    """Half of the interval of an asymptotic confidence sequence (Waudby-Smith et al., arXiv 2103.06476): such
    intervals of a mean hold at once for all numbers of values, freedom + 1, from standard errors.

    With x = (freedom + 1) rho^2 it is error * sqrt((1 + 1 / x) (log(1 + x) + 2 log(1 / (1 - confidence)))),
    infinite for little freedom. Its normal quantile is replaced by that of Student's t with the same
    probability.

    >>> sequence_half(0.1, 999, 0.95)
    0.3...
    """
    if not error > 0 or not freedom > 0:
        return 0.0 if error == 0 else math.inf
    level = -2 * math.log(1 - confidence)
    best = level
    for _ in range(50):  # the x at which the half is least: x = log(1 + x) + level
        best = level + math.log1p(best)
    x = best * (freedom + 1) / _NARROWEST
    outside = math.erfc(math.sqrt((1 + 1 / x) * (math.log1p(x) + level) / 2))
    return t_quantile(outside, freedom) * error if outside > 1e-300 else math.inf


def t_two_sided(t: float, freedom: float) -> float:
    """Two-sided p-value: the probability that Student's t is at least as far from 0 as `t`.

    It is never 0: where it is too small for a float64, the smallest normal one is returned.

    >>> round(t_two_sided(2.2621571628, 9), 9)
    0.05
    """
    if math.isnan(t) or not freedom > 0:
        return math.nan
    if math.isinf(t):
        return _LEAST
    if freedom < _FEW:
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
    """The same for little freedom, where the density falls too slowly to be integrated: the incomplete beta
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
    """Density of Student's t."""
    peak = _gamma_ratio(freedom / 2) / math.sqrt(freedom * math.pi)
    return peak * math.exp(-(freedom + 1) / 2 * math.log1p(t / freedom * t))


@cache
def _nodes() -> list[tuple[float, float]]:
    """Nodes from 0 to infinity and weights that integrate smooth functions to the precision of float64.

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
    """The t with probability `outside` beyond its absolute value.

    >>> round(t_quantile(0.05, 9), 9)
    2.262157163
    """
    if not freedom > 0:
        return math.nan
    from statistics import NormalDist  # here, because it brings random

    t = -NormalDist().inv_cdf(outside / 2)
    for _ in range(1000):  # Newton's method from the left of a convex function, which never oversteps
        density = t_density(t, freedom)
        if not density:  # freedom is next to nothing: one value has all the weight
            return math.inf
        step = (t_two_sided(t, freedom) - outside) / (2 * density)
        t += step
        if abs(step) <= 1e-15 * t:
            break
    return t


_LEAST = 2.2250738585072014e-308  # the smallest normal float64
_FEW = 0.2  # degrees of freedom


def _gamma_ratio(a: float) -> float:
    """gamma(a + 1/2) / gamma(a); a difference of logarithms would lose it to rounding for large a."""
    ratio = 1.0
    while a < 40:
        ratio *= a / (a + 0.5)
        a += 1
    series = -1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    return ratio * math.sqrt(a) * math.exp(series)
