"""Sums without rounding of values that lie close together, such as values of measures.

A value is cut into parts of a few bits, below a power of two that is above all values. Parts are whole
numbers, which vectors add. The rest after the last part is 0 for nearly all data; otherwise the caller uses
the sums of `exact`, which accept all values and take eight times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import driver

PART, PARTS = 40, 3  # bits and number of the parts of a value that is summed
SQUARED, SQUARED_PARTS = 20, 5  # the same for a value that is squared
MOST = 1 << 20  # values that are summed at a time, so that sums of parts fit an int64
MOST_SQUARED = 1 << 18
BINS = 4096

whole: Any = np.int64
_STEP, _SQUARED_STEP = float(1 << PART), float(1 << SQUARED)


@driver()
def add_parts(values: Array, scale: float, sums: Array) -> int:
    """Add parts of values times `scale`, below 2^40, to `sums`, int64 (3,); returns how many have a rest."""
    high = middle = low = left = 0
    for i in range(values.shape[0]):
        rest = values[i] * scale
        part = whole(rest)
        high += part
        rest = (rest - part) * _STEP
        part = whole(rest)
        middle += part
        rest = (rest - part) * _STEP
        part = whole(rest)
        low += part
        left += whole(rest != part)
    sums[0] += high
    sums[1] += middle
    sums[2] += low
    return left


@driver()
def add_squares(values: Array, scale: float, sums: Array) -> int:
    """As `add_parts`, for squares; values times `scale` are below 2^20, and `sums` is int64 (9,)."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = left = 0
    for i in range(values.shape[0]):
        rest = values[i] * scale
        a = np.float64(whole(rest))
        rest = (rest - a) * _SQUARED_STEP
        b = np.float64(whole(rest))
        rest = (rest - b) * _SQUARED_STEP
        c = np.float64(whole(rest))
        rest = (rest - c) * _SQUARED_STEP
        d = np.float64(whole(rest))
        rest = (rest - d) * _SQUARED_STEP
        e = np.float64(whole(rest))
        left += whole(rest != e)
        # products of float64 are exact here, and are computed as vectors; products of int64 took eight times
        # as long
        s0 += whole(a * a)
        s1 += whole(2.0 * a * b)
        s2 += whole(2.0 * a * c + b * b)
        s3 += whole(2.0 * (a * d + b * c))
        s4 += whole(2.0 * (a * e + b * d) + c * c)
        s5 += whole(2.0 * (b * e + c * d))
        s6 += whole(2.0 * c * e + d * d)
        s7 += whole(2.0 * d * e)
        s8 += whole(e * e)
    for place, found in enumerate((s0, s1, s2, s3, s4, s5, s6, s7, s8)):
        sums[place] += found
    return left


@driver()
def count_in_bins(values: Array, low: float, scale: float, counts: Array) -> None:
    """Count values in bins of width 1 / `scale` from `low` on: adds to `counts`, int64 (BINS,)."""
    for i in range(values.shape[0]):
        counts[whole((values[i] - low) * scale)] += 1


@driver()
def keep_of_bins(values: Array, low: float, scale: float, wanted: Array, kept: Array) -> int:
    """Keep values of the bins with 1 in `wanted`, int64 (BINS,); returns how many. Writes one value more."""
    n = 0
    for i in range(values.shape[0]):  # without a branch, which would be mispredicted
        kept[n] = values[i]
        n += wanted[whole((values[i] - low) * scale)]
    return n
