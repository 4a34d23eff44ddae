"""Correctly rounded means, and the other numbers of a summary.

A float64 is a whole number times a power of two, so a sum of float64 values is exactly a fraction. It does
not depend on the order of the values, nor on how they are split among batches, threads or machines: the
fractions of parts add up to that of the whole.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError
from fastndcg.kernels.compile import dispatch

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64

_COMPILED = 1 << 16  # values that are worth loading a kernel for
_BETWEEN_CARRIES = 1 << 28  # values that a kernel adds up at a time
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
    order, places = np.argsort(values, kind="stable"), np.empty(len(values), np.int64)
    places[order] = np.cumsum(np.diff(values[order], prepend=values[order][:1]) > least)
    return places


def scaled(weight: Float64) -> Float64:
    """Weights divided by a power of two, so that neither their squares nor the sum of these overflow."""
    divided: Float64 = np.ldexp(weight, -math.frexp(float(weight.max(initial=0.0)))[1])
    return divided


def exact_sum(values: npt.ArrayLike) -> Fraction:
    """The exact sum of values. Raises `InputError` for values that are not finite.

    >>> float(exact_sum([1e100, 1.0, -1e100]))
    1.0
    """
    return _sum_of_digits(np.asarray(values, dtype=np.float64))


def exact_sum_of_products(left: Float64, right: Float64) -> Fraction:
    """The exact sum of left[i] * right[i]. Raises `InputError` for values that are not finite.

    >>> float(exact_sum_of_products(np.array([0.1, 0.2]), np.array([3.0, 1.0]))) == 0.5
    True
    """
    return _sum_of_digits(left, right)


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
        return float(exact_sum(values) / values.size)
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
        sums = exact_sum(values), exact_sum_of_products(values, values)
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

    def std(self, ddof: int = 1) -> float:
        """Standard deviation with the divisor n - ddof; NaN for n <= ddof, or a NaN among the values."""
        if self.n_values <= ddof or self.undefined:
            return float("nan")
        return root((self.squares - self.total**2 / self.n_values) / (self.n_values - ddof))

    def error(self, *, weighted: bool = False) -> tuple[float, float]:
        """Standard error of the mean, and its degrees of freedom; NaN for fewer than two values, or a NaN
        among them: std / sqrt(n), with n - 1. Of a weighted mean m that of a ratio of two sums, linearised:
        the root of n / (n - 1) * sum of w^2 (v - m)^2 / (sum of w)^2, with (sum of w)^2 / (sum of w^2) - 1.
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
    q25, median, q75 = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return q25, median, q75


def _sum_of_digits(*factors: Float64) -> Fraction:
    """The exact sum of values, or of products of two."""
    from fastndcg.kernels.flow import exact

    name, n = ("add_values", "add_products")[len(factors) - 1], factors[0].size
    for factor in factors:
        _check_finite(factor)
    total = 0
    for start in range(0, n, _BETWEEN_CARRIES):
        digits = np.zeros(exact.DIGITS, np.int64)
        parts = (factor[start : start + _BETWEEN_CARRIES] for factor in factors)
        bits = [np.ascontiguousarray(part, np.float64).view(np.int64) for part in parts]
        if n < _COMPILED:
            getattr(exact, name)(*bits, digits)
        else:
            dispatch.run(f"flow.exact.{name}", len(bits[0]), *bits, digits, job=n)
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


# ---- many groups at once, without a step of Python for a group ----
#
# A sum is a row of digits of 32 bits, each in an int64, as in `kernels.flow.exact`. Groups of a part share
# the place of their lowest digit, so rows are as long as the values need: of measures, a handful of digits.


_BITS = 32
_LOW = (1 << _BITS) - 1
_UNIT = 72 * _BITS  # the lowest digit counts 2**-_UNIT, less than a product of the least float64
_PART = 27  # bits of the low part of a factor
_AT_ONCE = 1 << 18  # values whose temporary arrays stay in the cache of a core


class SumsOfGroups(NamedTuple):
    """For each group the sum of digits[group, i] * 2**(32 * (lowest + i) - 2304).

    >>> sums = SumsOfGroups.of(np.array([1, 0, 1]), 2, np.array([1e100, 0.5, -1e100]))
    >>> [float(each) for each in sums.fractions()]
    [0.5, 0.0]
    """

    lowest: int
    digits: Int64  # (n_groups, width), each from 0 to 2**32 - 1 but for the last, which has the sign

    @classmethod
    def of(cls, groups: Int64, n_groups: int, *factors: Float64) -> SumsOfGroups:
        """Sums of values, or of products of two, (n,), of the groups with these numbers, (n,).

        Raises `InputError` for values that are not finite.
        """
        for factor in factors:
            _check_finite(factor)
        found = []
        for start in range(0, len(groups), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            found.append(_of_few(groups[part], n_groups, [each[part] for each in factors]))
        return cls.merged(np.tile(np.arange(n_groups), len(found)), n_groups, found)

    @classmethod
    def merged(cls, groups: Int64, n_groups: int, parts: Sequence[SumsOfGroups]) -> SumsOfGroups:
        """Sums over parts, of which all rows one after another belong to the groups with these numbers."""
        lowest = min((part.lowest for part in parts), default=0)
        width = max((part.lowest + part.digits.shape[1] for part in parts), default=lowest) - lowest + 1
        digits = np.zeros((n_groups, width), np.int64)
        start = 0
        for part in parts:
            n, size = part.digits.shape
            np.add.at(digits[:, part.lowest - lowest :][:, :size], groups[start : start + n], part.digits)
            start += n
        return cls(lowest, _carry(digits))

    def fractions(self) -> list[Fraction]:
        """The sum of each group."""
        size = self.digits.shape[1] - 1
        whole, up = self.digits[:, :size].astype("<u4").tobytes(), self.lowest * _BITS
        sums = [
            int.from_bytes(whole[4 * size * row : 4 * size * (row + 1)], "little") + (last << (_BITS * size))
            for row, last in enumerate(self.digits[:, size].tolist())
        ]
        return [Fraction(each << up, 1 << _UNIT) for each in sums]


def _of_few(groups: Int64, n_groups: int, factors: list[Float64]) -> SumsOfGroups:
    counts = np.logical_and.reduce([factor != 0 for factor in factors])
    groups = groups[counts]
    if not len(groups):
        return SumsOfGroups(0, np.zeros((n_groups, 1), np.int64))
    wholes, place = [], np.full(len(groups), _UNIT, np.int64)
    for factor in factors:
        part, exponent = np.frexp(factor[counts])
        wholes.append(np.ldexp(part, 53).astype(np.int64))
        place += exponent - 53
    if len(wholes) == 1:
        scaled = [(wholes[0], place)]
    else:
        (a, a_low), (b, b_low) = ((whole >> _PART, whole & ((1 << _PART) - 1)) for whole in wholes)
        scaled = [
            (a * b, place + 2 * _PART), (a * b_low + a_low * b, place + _PART), (a_low * b_low, place)
        ]  # fmt: skip
    lowest = int(place.min()) >> 5
    width = (int(place.max()) + 2 * _PART >> 5) - lowest + 3
    digits = np.zeros(n_groups * width, np.int64)
    for size, up in scaled:
        shift, at = up & 31, groups * width + ((up >> 5) - lowest)
        low, high = (size & _LOW) << shift, (size >> _BITS) << shift
        for step, digit in enumerate((low & _LOW, (low >> _BITS) + (high & _LOW), high >> _BITS)):
            np.add.at(digits, at + step, digit)
    return SumsOfGroups(lowest, _carry(digits.reshape(n_groups, width)))


def _carry(digits: Int64) -> Int64:
    """Carries, in place, and without the digits that are 0 in all groups at the upper end."""
    for place in range(digits.shape[1] - 1):
        digits[:, place + 1] += digits[:, place] >> _BITS
        digits[:, place] &= _LOW
    width = digits.shape[1]
    while width > 2 and not digits[:, width - 1].any():
        width -= 1
    return digits[:, :width]
