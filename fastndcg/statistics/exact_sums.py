"""Correctly rounded means, and the other numbers of a summary.

A float64 is a whole number times a power of two, so a sum of float64 values is exactly a fraction. It does
not depend on the order of the values, nor on how they are split among batches, threads or machines: the
fractions of parts add up to that of the whole.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError
from fastndcg.kernels.compile import worlds

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_HALF = 26  # bits of the low part of a mantissa; the high part has 27
_COMPILED = 1 << 16  # values that are worth loading a kernel for
_BETWEEN_CARRIES = 1 << 28  # values that a kernel adds up at a time
_USUAL = 400  # size of exponents of usual numbers
_BLOCK = 1 << 20  # values summed at a time: 2**20 parts of 27 bits stay exact in a float64
# share of the values by which results that are equal may differ, as sums of the same numbers in another order
ROUNDING = 2.0**-44


def is_constant(off: Float64, size: float) -> bool:
    """Whether values are equal up to rounding, from their differences from their mean; `size` is the largest
    absolute value of what they were computed from.

    >>> is_constant(np.array([0.4 - 0.2, 0.6 - 0.4]) - 0.2, 0.6)
    True
    """
    return not off.size or float(np.abs(off).max()) <= ROUNDING * size


def differences_of(one: npt.ArrayLike, other: npt.ArrayLike) -> Float64:
    """one - other, and 0 where the two are equal up to rounding.

    >>> differences_of([0.1 + 0.2, 0.5], [0.3, 0.25])
    array([0.  , 0.25])
    """
    size = np.maximum(np.abs(one), np.abs(other))
    with np.errstate(invalid="ignore"):  # inf - inf
        found: Float64 = np.subtract(one, other)
    return np.where((np.abs(found) <= ROUNDING * size) & np.isfinite(found), 0.0, found)


def ranks_of(values: npt.NDArray[Any], least: float) -> Int64:
    """The rank of each value from 0, equal for neighbours that differ by at most `least`.

    >>> ranks_of(np.array([0.5, 0.2, 0.6 - 0.4]), 1e-12)
    array([1, 0, 0])
    """
    order = np.argsort(values, kind="stable")
    places = np.empty(len(values), np.int64)
    places[order] = np.cumsum(np.diff(values[order], prepend=values[order][:1]) > least)
    return places


def scaled(weight: Float64) -> Float64:
    """Weights divided by a power of two, so that neither their squares nor the sum of these overflow."""
    divided: Float64 = np.ldexp(weight, -math.frexp(float(weight.max(initial=0.0)))[1])
    return divided


def exact_sum(values: npt.ArrayLike, largest: float | None = None) -> Fraction:
    """The exact sum of values; `largest` is their largest absolute value, if it is known. Raises `InputError`
    for values that are not finite.

    >>> float(exact_sum([1e100, 1.0, -1e100]))
    1.0
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size >= _COMPILED and worlds.pays("flow.windows.add_parts", array.size):
        close = _sum_of_close(array, largest, squared=False)
        return _sum_of_digits(array) if close is None else close
    total = Fraction(0)
    with worlds.counted("flow.windows.add_parts", array.size):
        for start in range(0, array.size, _BLOCK):
            total += _sum_scaled(*_split(array[start : start + _BLOCK]))
    return total


def exact_sum_of_products(left: Float64, right: Float64, largest: float | None = None) -> Fraction:
    """The exact sum of left[i] * right[i]; `largest` is the largest absolute value of left, if it is known.
    Raises `InputError` for values that are not finite.

    >>> float(exact_sum_of_products(np.array([0.1, 0.2]), np.array([3.0, 1.0]))) == 0.5
    True
    """
    way = "flow.windows.add_squares" if left is right else "flow.exact.add_products"
    if left.size >= _COMPILED and worlds.pays(way, left.size):
        close = _sum_of_close(left, largest, squared=True) if left is right else None
        return _sum_of_digits(left, right) if close is None else close
    total = Fraction(0)
    with worlds.counted(way, left.size):
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
    """The mean, or the weighted mean, rounded once; NaN for no values, a value or weight that is not finite,
    or weights that are all 0.

    >>> mean(np.array([0.1] * 10))
    0.1
    """
    largest = _largest(values)
    if not values.size or not math.isfinite(largest):
        return float("nan")
    if weight is None:
        return float(exact_sum(values, largest) / values.size)
    if not math.isfinite(_largest(weight)):
        return float("nan")
    total = exact_sum(weight)
    return float(exact_sum_of_products(values, weight) / total) if total else float("nan")


def root(square: Fraction) -> float:
    """The square root of a fraction that may be too large for a float64, or too small.

    >>> root(Fraction(10) ** 400)
    1e+200
    """
    if not square:
        return 0.0
    places = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(square / Fraction(4) ** places), places)


class Moments(NamedTuple):
    """Exact sums over some values of one measure; those of parts merge into exactly those of the whole.

    >>> values = np.array([0.1, 0.2, 0.7])
    >>> Moments.of(values[:1]).merge(Moments.of(values[1:])) == Moments.of(values)
    True
    """

    n_values: int
    undefined: int  # not finite, or of such a weight: they are in `n_values` and in none of the sums
    total: Fraction
    squares: Fraction
    weights: Fraction  # 0 where there are no weights, as is the next
    weighted: Fraction
    weighing: int  # values whose weight is not 0
    # sums over w^2, w * wv and wv * wv, for the error of the weighted mean; wv is weight times value, rounded
    weight_squares: Fraction
    weights_by_weighted: Fraction
    weighted_squares: Fraction
    low: float
    high: float

    @classmethod
    def of(cls, values: Float64, weight: Float64 | None = None) -> Moments:
        """Sums of values, (n,), and of their weights, (n,), if any."""
        count, undefined = len(values), 0
        low, high = float(values.min(initial=math.inf)), float(values.max(initial=-math.inf))
        if count and not math.isfinite(max(high, -low) if weight is None else high - low + weight.sum()):
            defined = np.isfinite(values) & (True if weight is None else np.isfinite(weight))
            undefined = len(values) - int(defined.sum())
            values, weight = values[defined], None if weight is None else weight[defined]
            low, high = float(values.min(initial=math.inf)), float(values.max(initial=-math.inf))
        of_weights: tuple[Any, ...] = (Fraction(0), Fraction(0), 0, Fraction(0), Fraction(0), Fraction(0))
        if weight is not None:
            weighted = weight * values
            of_weights = (
                exact_sum(weight),
                exact_sum_of_products(values, weight),
                int(np.count_nonzero(weight)),
                *map(exact_sum_of_products, (weight, weight, weighted), (weight, weighted, weighted)),
            )
        largest = max(high, -low)
        sums = exact_sum(values, largest), exact_sum_of_products(values, values, largest)
        return cls._make([count, undefined, *sums, *of_weights, low, high])

    def merge(self, other: Moments) -> Moments:
        """Sums over the values of both."""
        sums = map(operator.add, self[:-2], other[:-2])
        return Moments._make([*sums, min(self.low, other.low), max(self.high, other.high)])

    def mean(self, *, weighted: bool = False) -> float:
        """As the function `mean`: rounded once; NaN for no values, a NaN among them, or only zero weights."""
        divisor = self.weights if weighted else self.n_values
        if not self.n_values or self.undefined or not divisor:
            return float("nan")
        return float((self.weighted if weighted else self.total) / divisor)

    def std(self) -> float:
        """Standard deviation of the sample; NaN for fewer than two values, or a NaN among them."""
        if self.n_values < 2 or self.undefined:
            return float("nan")
        return root((self.squares - self.total**2 / self.n_values) / (self.n_values - 1))

    def error(self, *, weighted: bool = False) -> tuple[float, float]:
        """Standard error of the mean, and its degrees of freedom; NaN for fewer than two values, or a NaN
        among them.

        std / sqrt(n), with n - 1. Of a weighted mean m that of a ratio of two sums, linearised: the root of n
        / (n - 1) * sum of w^2 (v - m)^2 / (sum of w)^2, with (sum of w)^2 / (sum of w^2) - 1; equal weights
        give the same.
        """
        n = self.weighing if weighted else self.n_values
        if n < 2 or self.undefined:
            return float("nan"), float("nan")
        if not weighted:
            return self.std() / math.sqrt(n), float(n - 1)
        mean = self.weighted / self.weights
        squares = self.weighted_squares - 2 * mean * self.weights_by_weighted + mean**2 * self.weight_squares
        error = math.sqrt(max(squares * n / (n - 1), Fraction(0)) / self.weights**2)
        return error, float(self.weights**2 / self.weight_squares - 1)

    def range(self) -> tuple[float, float]:
        """The lowest and the highest value; NaN for no values, or a NaN among them."""
        if not self.n_values or self.undefined:
            return float("nan"), float("nan")
        return self.low, self.high


def quartiles(values: Float64) -> tuple[float, float, float]:
    """The first quartile, the median and the third quartile, interpolated linearly; NaN for no values or one
    that is not finite.

    >>> quartiles(np.array([4.0, 1.0, 2.0, 3.0, 5.0]))
    (2.0, 3.0, 4.0)
    """
    if not values.size or not math.isfinite(_largest(values)):
        return float("nan"), float("nan"), float("nan")
    if values.size >= _COMPILED and worlds.pays("flow.windows.count_in_bins", values.size):
        found = _select_quartiles(np.ascontiguousarray(values))
        if found is not None:
            return found
    with worlds.counted("flow.windows.count_in_bins", values.size):
        q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return q25, median, q75


def _sum_of_close(values: Float64, largest: float | None, *, squared: bool) -> Fraction | None:
    """The sum of values or their squares, in a tenth of the time if exponents are close; otherwise None."""
    from fastndcg.kernels.flow import windows

    if squared:
        kernel, bits, places = "flow.windows.add_squares", windows.SQUARED, 2 * windows.SQUARED_PARTS - 1
    else:
        kernel, bits, places = "flow.windows.add_parts", windows.PART, windows.PARTS
    at_once = windows.MOST_SQUARED if squared else windows.MOST
    values = np.ascontiguousarray(values)
    if largest is None:
        largest = _largest(values)
    shift = bits - math.frexp(largest)[1]  # the power of two that brings all values below 2**bits
    if not math.isfinite(largest) or abs(shift) >= _USUAL:
        return None
    total = 0
    for start in range(0, values.size, at_once):
        sums = np.zeros(places, np.int64)
        if worlds.run(kernel, math.inf, values[start : start + at_once], 2.0**shift, sums):
            return None
        total += sum(int(part) << (bits * (places - 1 - place)) for place, part in enumerate(sums))
    return Fraction(total) / Fraction(2) ** ((1 + squared) * shift + bits * (places - 1))


def _select_quartiles(values: Float64) -> tuple[float, float, float] | None:
    """Quartiles without a full sort: only the bins that contain them are sorted. None without bins."""
    from fastndcg.kernels.flow import windows

    low, high, n = float(values.min()), float(values.max()), values.size
    if low == high:
        return low, low, low
    scale = (windows.BINS - 1) / (high - low)
    if not (math.isfinite(scale) and math.isfinite(high - low)):
        return None
    counts = np.zeros(windows.BINS, np.int64)
    worlds.run("flow.windows.count_in_bins", math.inf, values, low, scale, counts)
    places = [share * (n - 1) for share in (0.25, 0.5, 0.75)]
    asked = sorted({rank for place in places for rank in (int(place), min(int(place) + 1, n - 1))})
    ends = np.cumsum(counts)
    bins = np.searchsorted(ends, asked, side="right")
    wanted = np.zeros(windows.BINS, np.int64)
    wanted[bins] = 1
    kept = np.empty(int(counts @ wanted) + 1)
    worlds.run("flow.windows.keep_of_bins", math.inf, values, low, scale, wanted, kept)
    kept = kept[:-1]
    before = np.cumsum(np.where(wanted, 0, counts))  # values that were left out, of the bins so far
    ranks = [rank - int(before[place]) for rank, place in zip(asked, bins, strict=True)]
    kept.partition(ranks)
    found = dict(zip(asked, kept[ranks].tolist(), strict=True))
    q25, median, q75 = (_between(found, place, n) for place in places)
    return q25, median, q75


def _between(found: dict[int, float], place: float, n: int) -> float:
    """As NumPy interpolates."""
    rank = int(place)
    share, one, other = place - rank, found[rank], found[min(rank + 1, n - 1)]
    return one + (other - one) * share if share < 0.5 else other - (other - one) * (1 - share)


def _sum_of_digits(*factors: Float64, at_once: int = _BETWEEN_CARRIES) -> Fraction:
    """The same sums, by the kernels."""
    from fastndcg.kernels.flow import exact

    add = "flow.exact.add_values" if len(factors) == 1 else "flow.exact.add_products"
    total = 0
    for factor in factors:
        _check_finite(factor)
    for start in range(0, factors[0].size, at_once):
        digits = np.zeros(exact.DIGITS, np.int64)
        parts = (factor[start : start + at_once] for factor in factors)
        worlds.run(
            add, math.inf, *(np.ascontiguousarray(part, np.float64).view(np.int64) for part in parts), digits
        )
        total += sum(digit << (exact.BITS * place) for place, digit in enumerate(digits.tolist()) if digit)
    return Fraction(total, 1 << (1074 * len(factors)))


def _largest(values: Float64) -> float:
    """The largest absolute value; NaN if one is NaN."""
    return float(np.maximum(values.max(initial=0.0), -values.min(initial=0.0)))


def _check_finite(values: Float64) -> None:
    if not math.isfinite(_largest(values)):
        raise InputError(
            f"{np.count_nonzero(~np.isfinite(values)):,} of {values.size:,} numbers to sum are not finite; "
            "leave out those that are infinite or NaN"
        )


def _split(values: Float64) -> tuple[Int64, Int64]:
    """Whole numbers of at most 53 bits and exponents, so that value = whole * 2**exponent."""
    _check_finite(values)
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
