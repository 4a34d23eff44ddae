"""Vector blocks that find bounds of scores of the first ranks and keep the documents that reach one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fastndcg.kernels.schema import Array

from ..compile.decorators import ir, vectors
from ..compile.llvm import (
    BINS,
    LANES,
    SIDE_BY_SIDE,
    Code,
    Data,
    Value,
    greater,
    register_bits,
    sorting_steps,
    transpose,
    where,
)

_LINE = 64  # bytes of a cache line
_LOOKED_AT = 128  # vectors that are checked before their documents are kept

# ---- bounds ----


def plain_bound_of_top(scores: Array, depth: int) -> Any:
    """A lower bound of the `depth`-th greatest score, for depth <= LANES <= len(scores): documents go to
    LANES lanes in turn, and at least `depth` reach the `depth`-th greatest of the lanes' greatest scores.
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
    first_rows = code.allocate(ir.VectorType(greatest.element, SIDE_BY_SIDE), BINS)

    def sort_bins(needed: int) -> None:
        rows: list[Value] = []
        for first in range(0, BINS, SIDE_BY_SIDE):
            own = [greatest.load(lane * BINS + first, SIDE_BY_SIDE) for lane in range(SIDE_BY_SIDE)]
            rows += transpose(own)
        for i, j in sorting_steps(0, BINS):
            above = rows[i] > rows[j]
            rows[i], rows[j] = where(above, rows[i], rows[j]), where(above, rows[j], rows[i])
        for place in range(needed):
            first_rows[place] = rows[place]

    # LLVM removes the steps that the wanted rows do not depend on
    with code.either(depth <= LANES) as (half, whole):
        with half:
            sort_bins(LANES)
        with whole:
            sort_bins(BINS)
    bounds.store(first_rows[depth - 1], 0)


# ---- documents that reach a bound ----


def plain_keep_from(scores: Array, codes: Array, bound: Any, kept: Array, kept_codes: Array) -> int:
    """Copy scores that reach the bound, and their codes; returns how many. Targets have LANES more places."""
    found = np.flatnonzero(scores >= bound)
    kept[: found.shape[0]], kept_codes[: found.shape[0]] = scores[found], codes[found]
    return int(found.shape[0])


def plain_keep_from_lanes(
    scores: Array,
    codes: Array,
    starts: Array,
    stops: Array,
    bounds: Array,
    kept: Array,
    kept_codes: Array,
    counts: Array,
) -> None:
    """As `keep_from`, for each lane of at least LANES documents; writes numbers of kept ones to `counts`."""
    for lane in range(starts.shape[0]):
        own = slice(starts[lane], stops[lane])
        if stops[lane] - starts[lane] >= LANES:
            counts[lane] = plain_keep_from(
                scores[own], codes[own], bounds[lane], kept[lane], kept_codes[lane]
            )


def plain_keep_values_from(values: Array, bound: float, kept: Array) -> int:
    """Copy the values that reach the bound, in order; returns how many. `kept` has LANES places more."""
    found = values[values >= bound]
    kept[: found.shape[0]] = found
    return int(found.shape[0])


class _Column(NamedTuple):
    """Elements to keep, and where they go, widened where the target is wider."""

    source: Data | None  # None for the numbers of the places themselves
    to: Data

    def load(self, code: Code, offset: Value, lanes: int) -> Value:
        if self.source is None:
            return code.places(lanes) + offset.to(32)
        return self.source.load(offset, lanes).to(self.to.bits)


def _keep(
    code: Code,
    n: Value,
    lanes: int,
    reached: Callable[[Value, int], Value],
    columns: Sequence[_Column],
    *,
    halves: bool = True,
    few: bool = False,
) -> Value:
    """Keep the elements of n >= lanes places where the mask `reached(offset, lanes)` is set; returns how
    many. `few` first finds the vectors that contain any; with `halves` seldom more than half of a vector is
    kept.
    """
    found = code.variable(0)
    # as many lanes as a register has; masks of lanes in several registers have to be put together
    width = register_bits() * lanes // 512
    halves = halves and width == lanes

    def keep(offset: Value, mask: Value) -> None:
        at, count = found.value, mask.count()
        kept = [(column.load(code, offset, width).compressed(mask), column.to) for column in columns]
        # half a vector nearly always has room for the kept documents, and its store seldom crosses a cache
        # line
        for vector, to in kept:
            to.store(vector.pick(range(width // 2)) if halves else vector, at)
        if halves:
            with code.when(count > width // 2, likely=False):
                for vector, to in kept:
                    to.store(vector, at)
        found.value = at + count

    done = n // width * width
    if few:
        with _where_some_are(code, n // lanes * lanes, lanes, reached) as start:
            for part in range(0, lanes, width):
                keep(start + part, reached(start + part, width))
    with code.steps(n // lanes * lanes if few else 0, done, width) as offset:
        keep(offset, reached(offset, width))
    with code.when(done < n):
        end, fresh = code.last_of(n, width)
        keep(end, reached(end, width) & fresh)
    return found.value


@contextmanager
def _where_some_are(
    code: Code, stop: Value, lanes: int, reached: Callable[[Value, int], Value]
) -> Iterator[Value]:
    """A loop over the vectors before `stop` whose mask has a lane that is set. A branch for each vector would
    be mispredicted at most vectors that have documents to keep.
    """
    offsets, some = code.allocate(ir.IntType(64), _LOOKED_AT), code.variable(0)
    with code.steps(0, stop, _LOOKED_AT * lanes) as first:
        some.value = 0
        last = first + _LOOKED_AT * lanes
        with code.steps(first, where(last < stop, last, stop), lanes) as offset:
            offsets[some.value] = offset
            some.value += (~reached(offset, lanes).bits().equals(0)).to(64)
        with code.range(some.value) as index:
            yield offsets[index]


def _keep_scores(
    code: Code, scores: Data, n: Value, bound: Value, columns: Sequence[_Column], *, few: bool = False
) -> Value:
    lanes = 512 // scores.bits  # compressing wider vectors than a register goes through memory

    def reached(offset: Value, lanes: int) -> Value:
        return ~(bound.splat(lanes) > scores.load(offset, lanes))

    return _keep(code, n, lanes, reached, columns, few=few)


@vectors(plain_keep_from)
def keep_from(code: Code, scores: Data, codes: Data, bound: Value, kept: Data, kept_codes: Data) -> Value:
    columns = _Column(scores, kept), _Column(codes, kept_codes)
    return _keep_scores(code, scores, scores.shape[0], bound, columns)


@vectors(plain_keep_from)
def keep_few_from(code: Code, scores: Data, codes: Data, bound: Value, kept: Data, kept_codes: Data) -> Value:
    columns = _Column(scores, kept), _Column(codes, kept_codes)
    return _keep_scores(code, scores, scores.shape[0], bound, columns, few=True)


@vectors(plain_keep_from_lanes, unrolled=False)
def keep_from_lanes(
    code: Code,
    scores: Data,
    codes: Data,
    starts: Data,
    stops: Data,
    bounds: Data,
    kept: Data,
    kept_codes: Data,
    counts: Data,
) -> None:
    with lanes_of(code, starts, stops, LANES) as (lane, start, n):
        own = scores.part(start)
        columns = (
            _Column(own, kept.part(lane * kept.shape[1])),
            _Column(codes.part(start), kept_codes.part(lane * kept_codes.shape[1])),
        )
        counts[lane] = _keep_scores(code, own, n, bounds[lane], columns)


@vectors(plain_keep_values_from)
def keep_values_from(code: Code, values: Data, bound: Value, kept: Data) -> Value:
    return _keep_scores(code, values, values.shape[0], bound, [_Column(values, kept)])


def plain_find_from(codes: Array, least: int, rows: Array) -> int:
    """Fill `rows`, of LANES more places, with places of codes from `least` on, in order; returns how many."""
    found = np.flatnonzero(codes >= least)
    rows[: found.shape[0]] = found
    return int(found.shape[0])


@vectors(plain_find_from)
def find_from(code: Code, codes: Data, least: Value, rows: Data) -> Value:
    def reached(offset: Value, lanes: int) -> Value:
        return codes.load(offset, lanes).reaches(least.to(codes.bits).splat(lanes))

    return _keep(code, codes.shape[0], LANES, reached, [_Column(None, rows)], halves=False)


def plain_fetch(array: Array, first: int, last: int) -> None:
    """Fetch array[first:last] from memory into the cache, for a later read; may reach past the array."""


@vectors(plain_fetch, within=True)
def fetch(code: Code, array: Data, first: Value, last: Value) -> None:
    # for reading, into the first-level cache: fetching into the second-level cache gained nothing
    how = [code.number(number, 32).raw for number in (0, 3, 1)]
    with code.steps(first, last, 8 * _LINE // array.bits) as offset:
        code.call("llvm.prefetch.p0i8", ir.VoidType(), array.at(offset), *how)
