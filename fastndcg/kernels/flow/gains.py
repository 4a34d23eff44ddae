"""Grades to levels and gains."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow.tables import LINEAR, LOOKUP, Array, Plan

from ..compile.llvm import LANES
from ..compile.marks import apart, block, inlined
from ..vectors.summing import count_codes
from .powers import gain_by


@inlined
def count_levels(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    """Count the documents of each level; `counts` has COUNTED rows more."""
    # a pass for every few levels, over 64 documents at a time, is faster than one addition for each document
    if stop - start >= LANES and levels <= 16:
        count_codes(codes, start, stop, levels, counts, lane)
    else:
        count_one_by_one(codes, start, stop, levels, counts, lane)


@apart
def count_one_by_one(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    for level in range(levels):
        counts[level, lane] = 0
    for i in range(start, stop):
        counts[codes[i], lane] += 1


@block
def place_of(grade: float, grades: Array) -> int:
    """As np.searchsorted; with that one, loading a cached kernel would import SciPy where it is installed."""
    first, last = 0, grades.shape[0]
    while first < last:
        middle = (first + last) // 2
        if grades[middle] < grade:
            first = middle + 1
        else:
            last = middle
    return first


@block
def gain_of(grade: float, table: int, plan: Plan) -> float:
    """Gain of a grade that has no level."""
    if grade < plan.thresholds[table]:
        return 0.0
    kind = plan.kinds[table]
    if kind == LOOKUP:
        return plan.gains[table, place_of(grade, plan.grades)]
    return gain_by(kind, grade)


@inlined
def fill_gains(relevance: Array, table: int, plan: Plan, gains: Array) -> None:
    if plan.kinds[table] == LINEAR and plan.thresholds[table] == -np.inf:
        for i in range(relevance.shape[0]):
            gains[i] = relevance[i]
        return
    for i in range(relevance.shape[0]):
        gains[i] = gain_of(np.float64(relevance[i]), table, plan)
