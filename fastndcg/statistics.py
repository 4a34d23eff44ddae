"""Means that are correctly rounded, and the few other numbers of a summary.

A float64 is a whole number times a power of two, so sums of them are fractions, exactly. They do not depend on the order of
the values, nor on how the values were split among batches, threads or machines: fractions of parts add up to that of the whole.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_HALF = 26  # bits of the low part of a mantissa; the high part has 27
_BLOCK = 1 << 20  # values summed at a time: 2**20 parts of 27 bits stay exact in a float64


class Summary(NamedTuple):
    """Numbers that describe the values of one measure."""

    mean: float
    std: float
    min: float
    q25: float
    median: float
    q75: float
    max: float


def exact_sum(values: npt.ArrayLike) -> Fraction:
    """The sum of finite values, without rounding.

    >>> float(exact_sum([1e100, 1.0, -1e100]))
    1.0
    """
    array = np.asarray(values, dtype=np.float64)
    total = Fraction(0)
    for start in range(0, array.size, _BLOCK):
        total += _sum_scaled(*_split(array[start : start + _BLOCK]))
    return total


def exact_sum_of_products(left: Float64, right: Float64) -> Fraction:
    """The sum of left[i] * right[i], without rounding.

    >>> float(exact_sum_of_products(np.array([0.1, 0.2]), np.array([3.0, 1.0]))) == 0.5
    True
    """
    total = Fraction(0)
    for start in range(0, left.size, _BLOCK):
        a, a_exponent = _split(left[start : start + _BLOCK])
        b, b_exponent = _split(right[start : start + _BLOCK])
        exponent = a_exponent + b_exponent
        # 53 x 53 bits as four products of at most 27 x 27
        low = (1 << _HALF) - 1
        for a_part, b_part, shift in (
            (a >> _HALF, b >> _HALF, 2 * _HALF),
            (a >> _HALF, b & low, _HALF),
            (a & low, b >> _HALF, _HALF),
            (a & low, b & low, 0),
        ):
            total += _sum_scaled(a_part * b_part, exponent + shift)
    return total


def mean(values: Float64, weight: Float64 | None = None) -> float:
    """The mean, or the weighted mean, rounded once; NaN for no values, a NaN among them, or weights that are all 0.

    >>> mean(np.array([0.1] * 10))
    0.1
    """
    if not values.size or np.isnan(values.min()):
        return float("nan")
    if weight is None:
        return float(exact_sum(values) / values.size)
    total = exact_sum(weight)
    return float(exact_sum_of_products(values, weight) / total) if total else float("nan")


def summarise(values: Float64, weight: Float64 | None = None) -> Summary:
    """Mean (weighted where there are weights), standard deviation of the sample, and quartiles of the queries."""
    if not values.size or np.isnan(values.min()):
        nan = float("nan")
        return Summary(nan, nan, nan, nan, nan, nan, nan)
    centre = mean(values)
    deviation = (values - centre) ** 2
    std = float(exact_sum(deviation) / (values.size - 1)) ** 0.5 if values.size > 1 else float("nan")
    low, q25, median, q75, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return Summary(centre if weight is None else mean(values, weight), std, low, q25, median, q75, high)


def _split(values: Float64) -> tuple[Int64, Int64]:
    """Whole numbers of at most 53 bits and exponents, so that value = whole * 2**exponent."""
    mantissa, exponent = np.frexp(values)
    return (mantissa * 2.0**53).astype(np.int64), exponent.astype(np.int64) - 53


def _sum_scaled(whole: Int64, exponent: Int64) -> Fraction:
    """Sum of whole[i] * 2**exponent[i] for whole numbers of at most 54 bits."""
    lowest = int(exponent.min())
    place = exponent - lowest
    high = np.bincount(place, weights=whole >> 27)
    low = np.bincount(place, weights=whole & ((1 << 27) - 1))
    total = sum(
        (int(h) << 27) + int(v) << shift for shift, (h, v) in enumerate(zip(high, low, strict=True)) if h or v
    )
    return Fraction(total) * Fraction(2) ** lowest
