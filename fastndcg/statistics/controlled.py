"""Means that a second number of each value makes more precise: a control whose mean is known better.

Prediction-powered inference is of this kind, where a judge has values for many more queries than people
have, and so is the control variate of a difference of two rankers, whose mean is 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.statistics.exact_sums import differences_of, exact_sum, is_constant, mean, scaled
from fastndcg.statistics.intervals import Interval, t_interval
from fastndcg.statistics.paired import Spread

Float64 = npt.NDArray[np.float64]


class Controlled(NamedTuple):
    """A mean that is corrected by a control, and its standard error."""

    mean: float
    weight: float  # how much of the difference of the control's two means is added
    error: float
    freedom: float  # degrees of freedom of the error
    effective: float  # values that alone would give as small an error

    def interval(self, confidence: float) -> Interval:
        return t_interval(self.mean, self.error, self.freedom, confidence)


def controlled(
    values: Float64,
    control: Float64,
    others: Float64 | None = None,
    weights: tuple[Float64, Float64] | None = None,
) -> Controlled:
    """The mean of values, (n,), corrected by their control, (n,), whose mean is 0, or that of `others`,
    (n_others,), which are of the same population. `weights` are of the values and of the others.

    mean = mean(values) + weight * (mean(others) - mean(control)), with the weight that makes the variance the
    least: cov(values, control) / ((1 + n / n_others) var(control)), var that of all values of the control,
    and between 0 and 1 (PPI++, Angelopoulos, Duchi and Zrnic 2023). Without others it is cov / var, of any
    size. Of weighted values n is (sum of w)^2 / (sum of w^2).

    The error is that of values - weight * control, and of weight * others; degrees of freedom are
    Satterthwaite's. That the weight is chosen from the values takes one, and adds what the regression of
    double sampling has for it: (means' difference)^2 / (n var(control)) (Cochran, Sampling Techniques, 1977).
    """
    w, w_others = (None, None) if weights is None else weights
    alone, own = Spread.of(values, w), Spread.of(control, w)
    if math.isnan(own.mean + (0.0 if others is None or not len(others) else mean(others, w_others))):
        return Controlled(*[math.nan] * 5)
    theirs = Spread(0, 0.0, 0.0, 0.0, math.inf) if others is None else Spread.of(others, w_others)
    if alone.n < 3 or math.isnan(alone.error) or math.isnan(theirs.error):  # nothing to learn from
        return Controlled(alone.mean, 0.0, alone.error, alone.freedom, float(alone.n))
    shares = np.full(len(values), 1 / alone.n) if w is None else scaled(w) / scaled(w).sum()
    off = control - own.mean
    together, square = (float((shares * each * off).sum()) for each in (values - alone.mean, off))
    n, spread = _size(values, w), square
    if others is not None:
        every = None if weights is None else np.concatenate(weights)
        spread = Spread.of(np.concatenate([control, others]), every).std ** 2
        spread *= 1 + n / _size(others, w_others)
    far = max(float(np.abs(each).max(initial=0.0)) for each in (control, () if others is None else others))
    weight = 0.0 if is_constant(off, far) or not square else together / spread
    weight = weight if others is None else min(max(weight, 0.0), 1.0)
    if not weight:
        return Controlled(alone.mean, 0.0, alone.error, alone.freedom, float(alone.n))
    size = float(max(np.abs(values).max(), abs(weight) * np.abs(control).max()))
    rest, gap = Spread.of(differences_of(values, weight * control), w, size=size), theirs.mean - own.mean
    chosen = math.sqrt((alone.n - 1) / (alone.n - 2) * (1 + gap**2 / (n * square)))
    parts = (rest.error * chosen, max(rest.freedom - 1, 1.0)), (weight * theirs.error, theirs.freedom)
    error = math.hypot(*(part for part, _ in parts))
    apart = sum(part**4 / freedom for part, freedom in parts if part)
    return Controlled(
        alone.mean + weight * gap,
        weight,
        error,
        error**4 / apart if apart else parts[0][1],
        alone.n * (alone.error / error) ** 2 if error else math.inf,
    )


def _size(values: Float64, weight: Float64 | None) -> float:
    """The number of values; of weighted ones that of as many equal weights."""
    if weight is None:
        return float(len(values))
    w = scaled(weight)
    return float(exact_sum(w)) ** 2 / float((w * w).sum())
