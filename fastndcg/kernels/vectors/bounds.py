"""Vector blocks that find bounds: at least the documents of the first ranks reach them.

As in all modules of `vectors`, each block stands beside the plain function that defines it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.llvm import (
    BINS,
    LANES,
    SIDE_BY_SIDE,
    Code,
    Data,
    Value,
    greater,
    sorting_steps,
    transpose,
    where,
)
from ..compile.marks import ir, vectors


def plain_bound_of_top(scores: Array, depth: int) -> Any:
    """A lower bound of the `depth`-th greatest score, for depth <= LANES <= len(scores).

    Documents go to LANES lanes in turn, and each lane keeps its greatest score. At least `depth` documents
    reach the `depth`-th greatest of these scores.
    """
    n = scores.shape[0]
    lanes = scores[:LANES].copy()
    last = n - n % LANES
    for i in range(LANES, last):
        lanes[i % LANES] = max(lanes[i % LANES], scores[i])
    for i in range(last, n):
        lane = i - (n - LANES)
        lanes[lane] = max(lanes[lane], scores[i])
    lanes.sort()
    return lanes[LANES - depth]


@vectors(plain_bound_of_top)
def bound_of_top(code: Code, scores: Data, depth: Value) -> Value:
    lanes = _greatest_by_lane(code, scores, scores.shape[0], LANES)
    # sort the lanes: in each step they are compared in pairs, and the lane of lower number keeps the greater
    for size in (2, 4, 8, 16):
        for span in (size - 1, *(size >> turn for turn in range(2, size.bit_length()))):
            partners = [lane ^ span for lane in range(LANES)]
            met = lanes.pick(partners)
            above = lanes > met
            lower = [lane < partner for lane, partner in enumerate(partners)]
            is_lower = Value(code, ir.Constant(ir.VectorType(ir.IntType(1), LANES), lower))
            lanes = where(is_lower, where(above, lanes, met), where(above, met, lanes))
    return lanes.lane((depth - 1).to(32))


def _greatest_by_lane(code: Code, scores: Data, n: Value, lanes: int) -> Value:
    """The greatest of the first `n` scores that go to each lane in turn."""
    greatest = code.variable(scores.load(0, lanes))
    with code.steps(lanes, n // lanes * lanes, lanes) as offset:
        greatest.value = greater(scores.load(offset, lanes), greatest.value)
    end, fresh = code.last_of(n, lanes)
    return greater(where(fresh, scores.load(end, lanes), scores.lowest), greatest.value)


def plain_greatest_by_bin(scores: Array, starts: Array, stops: Array, greatest: Array) -> None:
    """greatest[lane, bin] = the greatest score of a bin, where scores go to BINS bins in turn."""
    for lane in range(starts.shape[0]):
        own = scores[starts[lane] : stops[lane]]
        n = own.shape[0]
        if n < BINS:
            continue
        greatest[lane] = own[:BINS]
        last = n - n % BINS
        for i in range(BINS, n):
            turn = i % BINS if i < last else i - (n - BINS)
            greatest[lane, turn] = max(greatest[lane, turn], own[i])


@vectors(plain_greatest_by_bin, unrolled=False)
def greatest_by_bin(code: Code, scores: Data, starts: Data, stops: Data, greatest: Data) -> None:
    with lanes_of(code, starts, stops, BINS) as (lane, start, n):
        greatest.store(_greatest_by_lane(code, scores.part(start), n, BINS), lane * BINS)


@contextmanager
def lanes_of(code: Code, starts: Data, stops: Data, least: int) -> Iterator[tuple[Value, Value, Value]]:
    """Loop over lanes with at least `least` documents: yields the lane, its first document, its length."""
    with code.range(starts.shape[0]) as lane:
        start = starts[lane]
        n = stops[lane] - start
        with code.when(n >= least):
            yield lane, start, n


def plain_bounds_of_top(greatest: Array, depth: int, bounds: Array) -> None:
    """Write the `depth`-th greatest score of each lane's bins, a lower bound of that of its documents."""
    bounds[:] = np.sort(greatest, axis=1)[:, BINS - depth]


@vectors(plain_bounds_of_top)
def bounds_of_top(code: Code, greatest: Data, depth: Value, bounds: Data) -> None:
    first_rows = code.room(ir.VectorType(greatest.element, SIDE_BY_SIDE), BINS)

    def sort_bins(wanted: int) -> None:
        rows: list[Value] = []
        for first in range(0, BINS, SIDE_BY_SIDE):
            own = [greatest.load(lane * BINS + first, SIDE_BY_SIDE) for lane in range(SIDE_BY_SIDE)]
            rows += transpose(own)
        for i, j in sorting_steps(0, BINS):
            above = rows[i] > rows[j]
            rows[i], rows[j] = where(above, rows[i], rows[j]), where(above, rows[j], rows[i])
        for place in range(wanted):
            first_rows[place] = rows[place]

    # LLVM removes the steps that the wanted rows do not depend on
    with code.either(depth <= LANES) as (half, whole):
        with half:
            sort_bins(LANES)
        with whole:
            sort_bins(BINS)
    bounds.store(first_rows[depth - 1], 0)
