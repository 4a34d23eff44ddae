"""Gains of grades and discounts of ranks by name.

To add one, add a line here, its word in `typing`, and a function in `tests/oracle.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastndcg.kernels.powers import gain_by
from fastndcg.kernels.schema import EXP2


class Formula(NamedTuple):
    """A gain or a discount with a name."""

    meaning: str
    value: Callable[[Any], Any]  # takes a grade, or an array of ranks in extended precision


def _exp2_gain(grade: float) -> float:
    return float(gain_by(EXP2, grade)) if grade <= 53 else math.inf


GAINS = {
    "linear": Formula("the grade", float),
    "exp2": Formula("2^grade - 1", _exp2_gain),
    "binary": Formula("1 from the grade `rel` on, 0 below it", lambda _: 1.0),
}
DISCOUNTS = {
    "log2": Formula("1 / log2(i + 1)", lambda rank: 1 / np.log2(rank + 1)),
    "jarvelin": Formula(
        "1 at the ranks 1 and 2, then 1 / log2(i)",
        lambda rank: 1 / np.maximum(np.log2(np.maximum(rank, 2)), 1),
    ),
    "reciprocal": Formula("1 / i", lambda rank: 1 / rank),
    "ln": Formula("1 / ln(i + e)", lambda rank: 1 / np.log(rank + np.exp(np.longdouble(1)))),
}
