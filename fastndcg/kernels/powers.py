"""Gains by a formula, and powers of two with fractional exponents: equal bits in Python, kernels and all
processors.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from fastndcg.kernels.schema import EXP2, LINEAR

from .compile.decorators import block

_BITS = 7
_STEPS = 1 << _BITS  # of the table, from one power of two to the next
_LN2, _LN2_REST = 46516320 / 2.0**26, -1.904654299957768e-09  # ln 2: its leading 26 bits, and the rest
_SPLIT = 2.0**27 + 1  # x * _SPLIT - (x * _SPLIT - x) is x rounded to 26 bits
_FRACTION = 160  # bits after the point of fractions that are stored as whole numbers
_LEAST = -54  # 2^grade - 1 rounds to -1 for all grades below


def _table() -> npt.NDArray[np.float64]:
    """2^(j / _STEPS) for each j, as a number of 26 bits and the rest; computed by roots of whole numbers."""
    root = 2 << _FRACTION
    for _ in range(_BITS):
        root = math.isqrt(root << _FRACTION)
    power, rows = 1 << _FRACTION, []
    for _ in range(_STEPS):
        first = (power + (1 << (_FRACTION - 26))) >> (_FRACTION - 25)
        rows.append((first / 2.0**25, (power - (first << (_FRACTION - 25))) / 2.0**_FRACTION))
        power = power * root >> _FRACTION
    return np.array(rows)


_POWERS = _table()
_WHOLE = np.array([math.ldexp(1.0, whole) for whole in range(_LEAST, 54)])


@block
def exp2(grade: float) -> float:
    """2^grade for a grade up to 53, within 0.50002 units in the last place; 0 below -54.

    Results of libraries differ in the last bit between libraries and processors. This function uses only sums
    and products of float64, whose roundings no compiler may leave out. With grade = k / 128 + r and t = r ln
    2 the power is 2^(k / 128) (1 + t + t^2 / 2 + ...). The factors of the large terms have 26 bits, so their
    products are exact.
    """
    if grade < _LEAST:
        return 0.0
    k = math.floor(grade * _STEPS + 0.5)
    r = grade - k / _STEPS
    large = r * _SPLIT
    large -= large - r
    product, rest = large * _LN2, (r - large) * _LN2 + r * _LN2_REST
    t = product + rest
    large = t * _SPLIT
    large -= large - t
    rest += product - large
    series = 1 / 24 + t * (1 / 120 + t * (1 / 720))
    rest += t * t * (0.5 + t * (1 / 6 + t * series))
    power, tail = _POWERS[k & (_STEPS - 1), 0], _POWERS[k & (_STEPS - 1), 1]
    tail += power * rest + tail * (large + rest)
    step = power * large
    value = power + step
    tail += (power - value) + step
    return (value + tail) * _WHOLE[(k >> _BITS) - _LEAST]


@block
def gain_by(kind: int, grade: float) -> float:
    """The gain of a grade by a kind of gain: the grade, 2^grade - 1, or 1."""
    if kind == LINEAR:
        return grade
    return exp2(grade) - 1.0 if kind == EXP2 else 1.0
