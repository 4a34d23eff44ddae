"""Correctly rounded means, and the other numbers of a summary.

A float64 is a whole number times a power of two, so a sum of float64 values is exactly a fraction. It does
not depend on the order of the values, nor on how they are split among batches, threads or machines: the
fractions of parts add up to that of the whole.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64

_AT_ONCE = (1 << 15) - 1  # values whose temporary arrays stay in a core's cache
_MOST = 1 << 26  # values by group at a time, so that a step takes at least 13 bits
_UNIT = -2560  # products of two float64, and all steps towards them, are whole numbers of 2**_UNIT
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
    return _checked_sum(np.asarray(values, dtype=np.float64))


def exact_sum_of_products(left: Float64, right: Float64) -> Fraction:
    """The exact sum of left[i] * right[i]. Raises `InputError` for values that are not finite.

    >>> float(exact_sum_of_products(np.array([0.1, 0.2]), np.array([3.0, 1.0]))) == 0.5
    True
    """
    return _checked_sum(left, right)


def mean(values: Float64, weight: Float64 | None = None) -> float:
    """The mean, or the weighted mean, rounded once; NaN for no values, a value or weight that is not finite,
    or weights that are all 0.

    >>> mean(np.array([0.1] * 10))
    0.1
    """
    if not values.size or not math.isfinite(_largest(values)):
        return float("nan")
    if weight is None:
        return _whole(values) / (values.size << -_UNIT)  # Python rounds a ratio of integers correctly
    if not math.isfinite(_largest(weight)):
        return float("nan")
    total = _whole(weight)
    return _whole(values, weight) / total if total else float("nan")


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
    """Exact sums over some values of one measure; those of parts add up to exactly those of the whole.

    >>> values = np.array([0.1, 0.2, 0.7])
    >>> Moments.of(values[:1]) + Moments.of(values[1:]) == Moments.of(values)
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

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
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


def _checked_sum(*factors: Float64) -> Fraction:
    for factor in factors:
        _check_finite(factor)
    return _fraction(_whole(*factors), _UNIT)


def _check_finite(values: Float64) -> None:
    if not math.isfinite(_largest(values)):
        raise InputError(
            f"{np.count_nonzero(~np.isfinite(values)):,} of {values.size:,} numbers to sum are not finite; "
            "leave out those that are infinite or NaN"
        )


def _largest(values: Float64) -> float:
    """The largest absolute value; NaN if one is NaN."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _fraction(whole: int, unit: int) -> Fraction:
    """whole * 2**unit. `Fraction` would look for the power of two that both sides share by dividing."""
    zeros = min((whole & -whole).bit_length() - 1, -unit) if whole else -unit
    return Fraction(whole >> zeros, 1 << (-unit - zeros))


def _whole(*factors: Float64) -> int:
    """The exact sum of values, or of products of two, in units of 2**_UNIT."""
    total = 0
    for start in range(0, factors[0].size, _AT_ONCE):
        for unit, *digits in _digits([factor[start : start + _AT_ONCE] for factor in factors]):
            # not `@`, for which BLAS starts threads
            found = digits[0].sum() if len(digits) == 1 else np.einsum("i,i", *digits)
            total += int(found) << (unit - _UNIT)
    return total


def _digits(factors: Sequence[Float64]) -> Iterator[tuple[Any, ...]]:
    """Yield a power of two, and as many arrays of whole numbers as there are factors. Their products times
    that power add up to the products of the factors, and float64 adds up those of one step without rounding.
    """
    bits = (53 - factors[0].size.bit_length()) // len(factors)
    if len(factors) == 1:
        yield from _leading_bits(factors[0], bits)
        return
    left = list(_leading_bits(factors[0], bits))
    right = left if factors[1] is factors[0] else list(_leading_bits(factors[1], bits))
    for (unit, one), (power, other) in product(left, right):
        yield unit + power, one, other


def _leading_bits(values: Float64, bits: int) -> Iterator[tuple[int, Float64]]:
    """Yield powers of two and whole numbers of so many bits, which make up the values: first the leading bits
    of the largest, then those of what is left.
    """
    scale, rest = 0, values.copy()
    while largest := _largest(rest):
        if largest < 2.0**-900:  # 2.0**-unit would overflow
            rest, largest, scale = rest * 2.0**256, largest * 2.0**256, scale - 256
        unit = math.frexp(largest)[1] - bits
        whole = rest * 2.0**-unit
        np.trunc(whole, out=whole)
        yield unit + scale, whole
        rest -= whole * 2.0**unit


class SumsByGroup(NamedTuple):
    """For each group the sum of wholes[group] * 2**unit.

    >>> SumsByGroup.of(np.array([1, 0, 1]), 2, np.array([1e100, 0.5, -1e100])).fractions()
    [Fraction(1, 2), Fraction(0, 1)]
    """

    unit: int
    wholes: npt.NDArray[Any]  # (n_groups,), integers of Python

    @classmethod
    def of(cls, groups: Int64, n_groups: int, *factors: Float64) -> SumsByGroup:
        """Sums of values, or of products of two, (n,), by the numbers of their groups, (n,).

        Raises `InputError` for values that are not finite.
        """
        for factor in factors:
            _check_finite(factor)
        found = []
        for start in range(0, len(groups), _MOST):
            part = slice(start, start + _MOST)
            for unit, *digits in _digits([factor[part] for factor in factors]):
                sums = np.bincount(groups[part], math.prod(digits), n_groups)
                found.append(cls(unit, sums.astype(np.int64).astype(object)))
        return cls.merged(np.tile(np.arange(n_groups), len(found)), n_groups, found)

    @classmethod
    def merged(cls, groups: Int64, n_groups: int, parts: Sequence[SumsByGroup]) -> SumsByGroup:
        """Sums over parts, of which all sums one after another belong to the groups with these numbers."""
        unit, sums = min(0, *(part.unit for part in parts)) if parts else 0, np.zeros(n_groups, object)
        if parts:
            np.add.at(sums, groups, np.concatenate([part.wholes << (part.unit - unit) for part in parts]))
        return cls(unit, sums)

    def fractions(self) -> list[Fraction]:
        """The sum of each group."""
        return [_fraction(whole, self.unit) for whole in self.wholes.tolist()]


# the sums of `Moments`, with the factors of each
_FACTORS = {
    "total": ("value",),
    "squares": ("value", "value"),
    "weights": ("weight",),
    "weighted": ("value", "weight"),
    "weight_squares": ("weight", "weight"),
    "weights_by_weighted": ("weight", "product"),
    "weighted_squares": ("product", "product"),
}


def sums_by_group(
    groups: Int64, n_groups: int, values: Float64, weight: Float64 | None = None, *, spread: bool = False
) -> dict[str, SumsByGroup]:
    """The fields of `Moments` of each group that its mean needs, or with `spread` its error too."""
    needed = ["total"] if weight is None else ["weights", "weighted"]
    if spread:
        needed = list(_FACTORS)[:2] if weight is None else list(_FACTORS)[2:]
    finite = np.isfinite(values) & (True if weight is None else np.isfinite(weight))
    counted = {"n_values": groups, "undefined": groups[~finite]}
    groups, factors = groups[finite], {"value": values[finite]}
    if weight is not None:
        factors |= {"weight": weight[finite], "product": weight[finite] * values[finite]}
        counted["weighing"] = groups[factors["weight"] != 0]
    counts = {name: SumsByGroup(0, np.bincount(of, minlength=n_groups)) for name, of in counted.items()}
    sums = {
        name: SumsByGroup.of(groups, n_groups, *(factors[each] for each in _FACTORS[name])) for name in needed
    }
    return counts | sums


def moments_by_group(sums: Mapping[str, SumsByGroup]) -> list[Moments]:
    """The moments of each group, without the extremes, from `sums_by_group`."""
    n = len(sums["n_values"].wholes)
    columns: dict[str, Sequence[Any]] = {name: [0] * n for name in Moments._fields}
    columns |= {name: [Fraction(0)] * n for name in _FACTORS}
    for name, each in sums.items():
        columns[name] = each.fractions() if name in _FACTORS else each.wholes.tolist()
    return list(map(Moments._make, zip(*columns.values(), strict=True)))
