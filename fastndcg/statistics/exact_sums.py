"""Correctly rounded means, and the other numbers of a summary.

A float64 is a whole number times a power of two, so a sum of float64 values, or of products of two of them,
is exactly a Python integer in a fixed unit. It depends neither on the order of the values, nor on how they
are split among batches, threads or machines: the sums of parts are added with `+`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64

_CHUNK = (1 << 15) - 1  # number of values whose temporary arrays stay in a core's cache
_CHUNK_BY_GROUP = 1 << 26  # so that a step takes at least 13 bits of each value
_BITS = 2560  # products of two float64, and all steps towards them, are whole numbers of 2**-_BITS
_ONE = 1 << _BITS
# relative difference up to which results count as equal, as sums of the same numbers in another order
ROUNDING = 2.0**-44


def is_constant(off: Float64, size: float) -> bool:
    """Return whether values are equal up to rounding, by their deviations from the mean; `size` is the
    largest absolute value that they were computed from.

    >>> is_constant(np.array([0.4 - 0.2, 0.6 - 0.4]) - 0.2, 0.6)
    True
    """
    return not off.size or float(np.abs(off).max()) <= ROUNDING * size


def differences_of(one: npt.ArrayLike, other: npt.ArrayLike) -> Float64:
    """Return one - other, or 0 where the two are equal up to rounding.

    >>> differences_of([0.1 + 0.2, 0.5], [0.3, 0.25])
    array([0.  , 0.25])
    """
    size = np.maximum(np.abs(one), np.abs(other))
    with np.errstate(invalid="ignore"):  # inf - inf
        differences: Float64 = np.subtract(one, other)
    return np.where((np.abs(differences) <= ROUNDING * size) & np.isfinite(differences), 0.0, differences)


def ranks_of(values: npt.NDArray[Any], least: float) -> Int64:
    """Return the rank of each value from 0, equal for neighbours that differ by at most `least`.

    >>> ranks_of(np.array([0.5, 0.2, 0.6 - 0.4]), 1e-12)
    array([1, 0, 0])
    """
    order, places = np.argsort(values, kind="stable"), np.empty(len(values), np.int64)
    places[order] = np.cumsum(np.diff(values[order], prepend=values[order][:1]) > least)
    return places


def starts_of(groups: Int64) -> Int64:
    """Return where each group begins in ascending numbers of groups."""
    return np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))


def scaled(weight: Float64) -> Float64:
    """Divide weights by a power of two, so that neither their squares nor the sum of these overflow."""
    divided: Float64 = np.ldexp(weight, -math.frexp(float(weight.max(initial=0.0)))[1])
    return divided


def exact_sum(*factors: npt.ArrayLike) -> Fraction:
    """Return the exact sum of values, or of products of two arrays. Raises `InputError` for values that are
    not finite.

    >>> float(exact_sum([1e100, 1.0, -1e100]))
    1.0
    >>> float(exact_sum([0.1, 0.2], [3.0, 1.0])) == 0.5
    True
    """
    arrays = [np.asarray(factor, dtype=np.float64) for factor in factors]
    for values in arrays:
        _check_finite(values)
    return Fraction(_sum(arrays), _ONE)


def mean(values: Float64, weight: Float64 | None = None) -> float:
    """Return the (weighted) mean, rounded once; NaN for no values, a value or weight that is not finite, or
    weights that are all 0.

    >>> mean(np.array([0.1] * 10))
    0.1
    """
    if not values.size or not math.isfinite(_largest(values)):
        return float("nan")
    if weight is None:
        return float(_sum([values]) / (values.size << _BITS))  # Python rounds a ratio of integers correctly
    total = _sum([weight]) if math.isfinite(_largest(weight)) else 0
    return float(_sum([values, weight]) / total) if total else float("nan")


class Moments(NamedTuple):
    """Exact sums over some values of one measure, or over each group of values. The sums of parts add up
    exactly to those of the whole.

    >>> values = np.array([0.1, 0.2, 0.7])
    >>> Moments.of(values[:1]) + Moments.of(values[1:]) == Moments.of(values)
    True
    """

    n_values: Any  # an int, or an array of ints by group, like all sums
    undefined: Any  # values or weights that are not finite; only `n_values` counts them
    total: Any = 0  # all sums are multiples of 2**-_BITS
    squares: Any = 0
    weights: Any = 0  # this and the following sums are 0 without weights
    weighted: Any = 0
    weighing: Any = 0  # values whose weight is not 0
    # sums over w^2, w * wv and wv * wv, for the error of the weighted mean; wv is weight times value, rounded
    weight_squares: Any = 0
    weights_by_weighted: Any = 0
    weighted_squares: Any = 0
    low: Any = math.inf  # of all values, not by group
    high: Any = -math.inf

    @classmethod
    def of(
        cls,
        values: Float64,
        weight: Float64 | None = None,
        groups: Int64 | None = None,
        n_groups: int = 0,
        *,
        spread: bool = True,
    ) -> Moments:
        """Sums of values, (n,), and of their weights, (n,), if any: of all, or by the numbers of the groups
        of values, (n,); those that means need, or with `spread` those of their errors too.
        """

        def count(rows: npt.NDArray[np.bool_]) -> Any:
            if groups is None:
                return int(np.count_nonzero(rows))
            return np.bincount(groups, rows, n_groups).astype(np.int64)

        finite = np.isfinite(values) if weight is None else np.isfinite(values) & np.isfinite(weight)
        fields = {"n_values": count(np.ones_like(finite)), "undefined": count(~finite)}
        if not finite.all():
            values, weight = values[finite], None if weight is None else weight[finite]
            groups = None if groups is None else groups[finite]
        factors, sums = {"value": values}, _FACTORS[:2]
        if weight is not None:
            factors["weight"], fields["weighing"] = weight, count(weight != 0)
            sums = _FACTORS if groups is None else _FACTORS[2:]
        if not spread:
            sums = sums[: 1 + (weight is not None)]
        elif weight is not None:
            with np.errstate(over="ignore"):  # which is checked
                factors["product"] = weight * values
            _check_finite(factors["product"])
        if groups is None:
            fields |= {
                "low": float(values.min(initial=math.inf)),
                "high": float(values.max(initial=-math.inf)),
            }
        for name, *names in sums:
            fields[name] = _sum([factors[each] for each in names], groups, n_groups)
        return cls(**fields)

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        """Sums over the values of both, not by group."""
        sums = map(operator.add, self[:-2], other[:-2])
        return Moments._make([*sums, min(self.low, other.low), max(self.high, other.high)])

    @classmethod
    def merged(cls, groups: Int64, n_groups: int, parts: Sequence[Moments]) -> Moments:
        """Sums by group over parts, whose groups, one part after the other, have the numbers `groups`."""

        def add(*sums: Any) -> Any:
            if not isinstance(sums[0], np.ndarray):
                return sums[0]
            total = np.zeros(n_groups, sums[0].dtype)
            np.add.at(total, groups, np.concatenate(sums))
            return total

        return cls(*map(add, *parts))

    def each(self) -> list[Moments]:
        """Return the sums of each group."""
        n = len(self.n_values)
        columns = [field.tolist() if isinstance(field, np.ndarray) else [field] * n for field in self]
        return list(map(Moments._make, zip(*columns, strict=True)))

    def mean(self, *, weighted: bool = False) -> float:
        """Mean, rounded once; NaN for no values, a NaN among them, or only zero weights."""
        divisor = self.weights if weighted else self.n_values << _BITS
        if not self.n_values or self.undefined or not divisor:
            return float("nan")
        return float((self.weighted if weighted else self.total) / divisor)

    def std(self) -> float:
        """Standard deviation with the divisor n - 1; NaN for fewer than two values, or a NaN among them."""
        n = self.n_values
        if n < 2 or self.undefined:
            return float("nan")
        return root((self.squares * n << _BITS) - self.total**2, n * (n - 1) << 2 * _BITS)

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
        sums = (self.weights, self.weighted, *self[-5:-2])
        every = functools.reduce(operator.or_, sums)
        # last digits of the sums
        zeros = min((every & -every).bit_length() - 1, _BITS)
        w, total, w_squares, products, squares = (each >> zeros for each in sums)
        scale = _BITS - zeros
        # (sum of w)^2 times the sum of w^2 (v - m)^2
        off_mean = squares * w**2 - 2 * total * w * products + total**2 * w_squares
        freedom = (w**2 - (w_squares << scale)) / (w_squares << scale)
        return root(max(off_mean * n << scale, 0), (n - 1) * w**4), freedom

    def range(self) -> tuple[float, float]:
        """The lowest and the highest value; NaN for no values, or a NaN among them."""
        if not self.n_values or self.undefined:
            return float("nan"), float("nan")
        return self.low, self.high


# sums of `Moments`, with the factors of each
_FACTORS: list[tuple[str, ...]] = [
    ("total", "value"),
    ("squares", "value", "value"),
    ("weights", "weight"),
    ("weighted", "value", "weight"),
    ("weight_squares", "weight", "weight"),
    ("weights_by_weighted", "weight", "product"),
    ("weighted_squares", "product", "product"),
]


def root(numerator: int, denominator: int) -> float:
    """Return the square root of a ratio that may be too large or too small for a float64.

    >>> root(10**400, 1)
    1e+200
    """
    if not numerator:
        return 0.0
    places = (numerator.bit_length() - denominator.bit_length()) // 2
    scaled = numerator << max(-2 * places, 0), denominator << max(2 * places, 0)
    return math.ldexp(math.sqrt(operator.truediv(*scaled)), places)


def _check_finite(values: Float64) -> None:
    if not math.isfinite(_largest(values)):
        raise InputError(
            f"{np.count_nonzero(~np.isfinite(values)):,} of {values.size:,} numbers to sum are not finite; "
            "leave out those that are infinite or NaN"
        )


def _largest(values: Float64) -> float:
    """The largest absolute value; NaN if one is NaN."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _sum(factors: Sequence[Float64], groups: Int64 | None = None, n_groups: int = 0) -> Any:
    """Return the exact sum of values, or of products of two, in units of 2**-_BITS; or an array by group.

    Values are split into powers of two times integers of so few bits that float64 adds these, or their
    products, without rounding.
    """
    one, other = factors[0], factors[-1]
    total: Any = 0 if groups is None else np.zeros(n_groups, object)
    size = min(len(one), _CHUNK if groups is None else _CHUNK_BY_GROUP)
    bits = (53 - size.bit_length()) // len(factors)
    for start in range(0, len(one), size or 1):
        chunk = slice(start, start + size)
        left = _leading_bits(one[chunk], bits)
        steps: Iterable[Any] = ((step, (0, None)) for step in left)
        if len(factors) > 1:
            digits_of_one = list(left)
            steps = product(
                digits_of_one, digits_of_one if other is one else _leading_bits(other[chunk], bits)
            )
        for (unit, digits), (power, others) in steps:
            sums: Any
            if groups is not None:
                products = digits if others is None else digits * others
                sums = np.bincount(groups[chunk], products, n_groups).astype(np.int64).astype(object)
            else:  # not `@`, since BLAS would start threads
                sums = int(digits.sum() if others is None else np.einsum("i,i", digits, others))
            total += sums << (unit + power + _BITS)
    return total


def _leading_bits(values: Float64, bits: int) -> Iterator[tuple[int, Float64]]:
    """Split values into powers of two times integers of so many bits: first the leading bits, then those of
    the remainder.
    """
    scale, rest = 0, values.copy()
    while largest := _largest(rest):
        if largest < 2.0**-900:  # 2.0**-unit would overflow
            rest, largest, scale = rest * 2.0**256, largest * 2.0**256, scale - 256
        unit = math.frexp(largest)[1] - bits
        integral = rest * 2.0**-unit
        np.trunc(integral, out=integral)
        yield unit + scale, integral
        rest -= integral * 2.0**unit
