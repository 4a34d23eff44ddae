"""Confidence intervals of means by Student's t distribution; by the noncentral one, what a test detects.

The distribution is written here, so that intervals need no SciPy; tests compare it with SciPy's to 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from fastndcg.errors import InputError, InputTypeError, library

SMALL = 30  # with fewer values, the interval of a mean is unreliable


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


def check_share(name: str, share: object, example: float) -> float:
    """A number between 0 and 1 as a float. Raises `InputError` or `InputTypeError` for anything else."""
    if isinstance(share, bool) or not isinstance(share, Real):
        raise InputTypeError(
            f"{name}={share!r} is not a number; expected one between 0 and 1, as in {name}={example}"
        )
    given = float(share)
    if not 0 < given < 1:
        hint = f" Did you mean {given / 100:g}?" if 1 < given < 100 else ""
        raise InputError(
            f"{name}={share!r} is not between 0 and 1; expected for example {name}={example}.{hint}"
        )
    return given


def check_confidence(confidence: object) -> float:
    return check_share("confidence", confidence, 0.95)


def check_size(name: str, size: object, what: str, example: float) -> float:
    """A size of differences as a float: finite, 0 or more. Raises `InputError` or `InputTypeError`."""
    if isinstance(size, bool) or not isinstance(size, Real):
        raise InputTypeError(f"{name}={size!r} is not a number; expected 0 or more, as in {name}={example}")
    try:
        found = float(size)
    except OverflowError:  # a whole number beyond all floats
        found = math.inf
    if not 0 <= found < math.inf:
        raise InputError(
            f"{name}={size!r} is not {what}; expected a finite number, 0 or more, as in {name}={example}"
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


def sequence_half(error: float, freedom: float, confidence: float) -> float:
    """Half of the interval of an asymptotic confidence sequence (Waudby-Smith et al., arXiv 2103.06476): such
    intervals of a mean hold at once for all numbers of values, freedom + 1.

    With x = (freedom + 1) rho^2 it is error * sqrt((1 + 1 / x) (log(1 + x) + 2 log(1 / (1 - confidence)))),
    infinite for little freedom. Its normal quantile is replaced by that of Student's t.

    >>> sequence_half(0.1, 999, 0.95)
    0.3...
    """
    if not error > 0 or not freedom > 0:
        return 0.0 if error == 0 else math.inf
    level = -2 * math.log(1 - confidence)
    best = level
    for _ in range(50):  # the x at which the half is least: x = log(1 + x) + level
        best = level + math.log1p(best)
    x = best * (freedom + 1) / 1000  # values at which the interval is narrowest
    outside = math.erfc(math.sqrt((1 + 1 / x) * (math.log1p(x) + level) / 2))
    return t_quantile(outside, freedom) * error if outside > 1e-300 else math.inf


def t_two_sided(t: float, freedom: float) -> float:
    """Two-sided p-value: the probability that Student's t is at least as far from 0 as `t`; never 0.

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
    t: float = -normal_distribution().inv_cdf(outside / 2)
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


@cache
def normal_distribution() -> Any:
    from statistics import NormalDist  # here, because it brings random

    return NormalDist()


def normal_quantile(confidence: float) -> float:
    """The z with this probability between -z and z, of the normal distribution."""
    return float(normal_distribution().inv_cdf((1 + confidence) / 2))


def _gamma_ratio(a: float) -> float:
    """gamma(a + 1/2) / gamma(a); a difference of logarithms would lose it to rounding for large a."""
    ratio = 1.0
    while a < 40:
        ratio *= a / (a + 0.5)
        a += 1
    series = -1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5) + 17 / (14336 * a**7)
    return ratio * math.sqrt(a) * math.exp(series)


# ---- the noncentral t distribution ----


def scipy(module: str, what: str) -> Any:
    """A module of SciPy. Raises `ExtraError` where it is not installed."""
    return library(f"scipy.{module}", "SciPy", "stats", what)


@cache
def _special() -> Any:
    return scipy("special", "The noncentral t distribution")


def queries_needed(effect: float, confidence: float, power: float) -> int:
    """Queries so that the paired t-test finds a difference of `effect` standard deviations so often, by the
    noncentral t.

    >>> queries_needed(0.5, 0.95, 0.8)
    34
    """

    def are_enough(n: int) -> bool:
        return effect * math.sqrt(n) >= shift_to_detect(n - 1, confidence, power)

    # the normal distribution gives a little less, and the same for large n
    ratio: float = max(normal_quantile(confidence) + normal_distribution().inv_cdf(power), 0.0) / effect
    if ratio > 1e9:
        raise InputError(
            f"a difference of {effect:.3g} standard deviations needs more than 10^18 queries; "
            "ask for a larger one"
        )
    usual = ratio**2
    if usual > 1e6:
        return math.ceil(usual)
    few, many = 1, max(2, math.ceil(usual) + 8)
    while not are_enough(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if are_enough(middle) else (middle, many)
    return many


@lru_cache(1024)
def shift_to_detect(freedom: float, confidence: float, power: float) -> float:
    """The noncentrality with which the two-sided t-test rejects so often."""
    bound = t_quantile(1 - confidence, freedom)
    if power <= 1 - confidence:
        return 0.0
    if not math.isfinite(bound):
        return bound

    def missed(shift: float) -> float:
        return _below(bound, freedom, shift) - _below(-bound, freedom, shift)

    return _root(missed, 1 - power, 0.0, _quantile_bounds(bound, freedom, power)[1])


def noncentralities(t: float, freedom: float, confidence: float) -> Interval:
    """The least and the greatest noncentrality that t does not contradict."""
    if not math.isfinite(t) or not freedom > 0:
        return Interval(math.nan, math.nan)
    if t < 0:
        low, high = noncentralities(-t, freedom, confidence)
        return Interval(-high, -low)
    outside = (1 - confidence) / 2
    return Interval._make(
        _root(lambda shift: _below(t, freedom, shift), 1 - share, *_quantile_bounds(t, freedom, share))
        for share in (outside, 1 - outside)
    )


# T with noncentrality d is (Z + d) / S: Z is normal, and freedom * S^2 chi-squared. So T is at most t with
# probability p for the d that is the quantile of t S - Z at 1 - p.


def _quantile_bounds(t: float, freedom: float, share: float) -> tuple[float, float]:
    """What the quantile of t S - Z lies between, from those of S and Z; t is 0 or more."""
    special = _special()
    low, high = share / 2, (1 + share) / 2
    least, greatest = (math.sqrt(special.chdtri(freedom, 1 - each) / freedom) for each in (low, high))
    return t * least + float(special.ndtri(low)), t * greatest + float(special.ndtri(high))


def _below(t: float, freedom: float, shift: float) -> float:
    """The probability that the noncentral t is at most t."""
    special = _special()
    if abs(t) <= 1e3 or freedom > t * t:  # above, SciPy's distribution is slow, and then wrong
        share = float(special.nctdtr(freedom, shift, t))
        return 0.0 if math.isnan(share) else share  # NaN in the far tail
    if t < 0:
        return 1 - _below(-t, freedom, -shift)
    # the mean over Z of the probability that S is at least (Z + d) / t, by equal steps
    z = np.linspace(-9, 9, 361)
    parts = np.exp(-z * z / 2)
    ratios = np.maximum(z + shift, 0.0) / t
    return float((parts * special.chdtrc(freedom, freedom * ratios**2)).sum() / parts.sum())


def _root(falling: Callable[[float], float], share: float, low: float, high: float) -> float:
    """Where a falling function of probabilities is `share`, by the method of false position, on the scale of
    the normal distribution, on which it is nearly straight.
    """
    special = _special()

    def above(place: float) -> float:
        return float(special.ndtri(min(max(falling(place), 0.0), 1.0)) - special.ndtri(share))

    ends, off = [low, high], [above(low), above(high)]
    for _ in range(200):
        width = ends[1] - ends[0]
        if not width > 1e-14 * max(map(abs, ends)):
            break
        straight = off[0] / (off[0] - off[1])  # NaN or 0 where an end is infinite
        middle = ends[0] + width * (straight if 0 < straight < 1 else 0.5)
        found = above(middle)
        if abs(found) < 1e-14:
            return middle
        side = int(found < 0)
        ends[side], off[side] = middle, found
        off[1 - side] /= 2  # so that this end moves too
    return sum(ends) / 2
