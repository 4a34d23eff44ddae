"""The noncentral t distribution: what a test detects, and intervals of effects."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np

from fastndcg.errors import InputError, library
from fastndcg.statistics.intervals import Interval, t_quantile

NAN = float("nan")


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

    from statistics import NormalDist  # here, because it brings random

    # the normal distribution gives a little less, and the same for large n
    normal = NormalDist()
    ratio = max(normal.inv_cdf((1 + confidence) / 2) + normal.inv_cdf(power), 0.0) / effect
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
        return Interval(NAN, NAN)
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

_LARGE = 1e3  # a t above which SciPy's distribution is slow, and then wrong


def _quantile_bounds(t: float, freedom: float, share: float) -> tuple[float, float]:
    """What the quantile of t S - Z lies between, from those of S and Z; t is 0 or more."""
    special = _special()
    low, high = share / 2, (1 + share) / 2
    least, greatest = (math.sqrt(special.chdtri(freedom, 1 - each) / freedom) for each in (low, high))
    return t * least + float(special.ndtri(low)), t * greatest + float(special.ndtri(high))


def _below(t: float, freedom: float, shift: float) -> float:
    """The probability that the noncentral t is at most t."""
    special = _special()
    if abs(t) <= _LARGE or freedom > t * t:
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
