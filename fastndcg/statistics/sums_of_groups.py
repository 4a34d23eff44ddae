"""Exact sums of many groups at once, without a step of Python for a group.

A sum is a row of digits of 32 bits, each in an int64, as in `kernels.flow.exact`. All groups of a part share
the place of their lowest digit, so rows are as long as the values need: of measures, a handful of digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.statistics.exact_sums import _check_finite

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

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
        starts = range(0, len(groups), _AT_ONCE)
        found = [
            _of_few(
                groups[start : start + _AT_ONCE],
                n_groups,
                [each[start : start + _AT_ONCE] for each in factors],
            )
            for start in starts
        ]
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
