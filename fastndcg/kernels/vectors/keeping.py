"""Vector blocks that select documents: bounds for the first ranks, the documents that reach them, and fetches
from memory.

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
    Data,
    bits_of,
    compress,
    compresses,
    const,
    declare,
    element_of,
    for_range,
    for_reached,
    for_steps,
    lane_numbers,
    load,
    population,
    room,
    sorting_steps,
    splat,
    store,
    transpose,
    variable,
)
from ..compile.marks import ir, vectors

_LINE = 64  # bytes of a cache line
_LOOKED_AT = 128  # vectors that are checked before their documents are kept


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
def bound_of_top(builder: Any, scores: Data, depth: Any) -> Any:
    element = element_of(scores)
    pointer, n = scores.data, scores.shape[0]
    kind = element.vector(LANES)

    def keep_greatest(vector: Any) -> None:
        before = greatest.read(builder)
        greatest.write(builder, builder.select(element.greater(builder, vector, before), vector, before))

    greatest = variable(builder, load(builder, pointer, const(0), kind, element.size))
    full = builder.sdiv(n, const(LANES))
    with for_steps(builder, const(1), full, const(1)) as block:
        keep_greatest(load(builder, pointer, builder.mul(block, const(LANES)), kind, element.size))
    end = builder.sub(n, const(LANES))
    fresh = builder.icmp_signed(
        ">=",
        lane_numbers(LANES),
        splat(
            builder,
            builder.trunc(builder.sub(builder.mul(full, const(LANES)), end), ir.IntType(32)),
            LANES,
        ),
    )
    tail = load(builder, pointer, end, kind, element.size)
    keep_greatest(builder.select(fresh, tail, element.constant(element.extreme(-1), LANES)))

    # sort the lanes: in each step the lanes are compared in pairs, and the lane of lower number keeps the
    # greater score
    lanes = greatest.read(builder)
    for size in (2, 4, 8, 16):
        for span in (size - 1, *(size >> turn for turn in range(2, size.bit_length()))):
            partners = [lane ^ span for lane in range(LANES)]
            order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), partners)
            lower = [lane < partner for lane, partner in enumerate(partners)]
            met = builder.shuffle_vector(lanes, lanes, order)
            above = element.greater(builder, lanes, met)
            lanes = builder.select(
                ir.Constant(ir.VectorType(ir.IntType(1), LANES), lower),
                builder.select(above, lanes, met),
                builder.select(above, met, lanes),
            )
    return builder.extract_element(lanes, builder.trunc(builder.sub(depth, const(1)), ir.IntType(32)))


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
def greatest_by_bin(builder: Any, scores: Data, starts: Data, stops: Data, greatest: Data) -> None:
    element = element_of(scores)
    kind = element.vector(BINS)
    with _for_lanes(builder, starts, stops, const(BINS)) as (lane, start, n):
        pointer = scores.data.at(builder, start)
        maxima = variable(builder, load(builder, pointer, const(0), kind, element.size))

        def keep_greatest(vector: Any) -> None:
            before = maxima.read(builder)
            maxima.write(builder, builder.select(element.greater(builder, vector, before), vector, before))

        full = builder.sdiv(n, const(BINS))
        with for_steps(builder, const(1), full, const(1)) as block:
            keep_greatest(load(builder, pointer, builder.mul(block, const(BINS)), kind, element.size))
        end = builder.sub(n, const(BINS))
        seen = builder.trunc(builder.sub(builder.mul(full, const(BINS)), end), ir.IntType(32))
        fresh = builder.icmp_signed(">=", lane_numbers(BINS), splat(builder, seen, BINS))
        tail = load(builder, pointer, end, kind, element.size)
        keep_greatest(builder.select(fresh, tail, element.constant(element.extreme(-1), BINS)))
        place = builder.mul(lane, const(BINS))
        store(builder, maxima.read(builder), greatest.data, place, element.size)


@contextmanager
def _for_lanes(builder: Any, starts: Data, stops: Data, least: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Loop over lanes with at least `least` documents: yields the lane, its first document, its length."""
    with for_range(builder, starts.shape[0]) as index:
        start = starts.data.read(builder, index)
        n = builder.sub(stops.data.read(builder, index), start)
        with builder.if_then(builder.icmp_signed(">=", n, least)):
            yield index, start, n


def plain_bounds_of_top(greatest: Array, depth: int, bounds: Array) -> None:
    """Write the `depth`-th greatest score of each lane's bins, a lower bound of that of its documents."""
    bounds[:] = np.sort(greatest, axis=1)[:, BINS - depth]


@vectors(plain_bounds_of_top)
def bounds_of_top(builder: Any, greatest: Data, depth: Any, bounds: Data) -> None:
    element = element_of(greatest)
    kind = element.vector(SIDE_BY_SIDE)
    first_rows = room(builder, kind, BINS)

    def sort_bins(wanted: int) -> None:
        rows: list[Any] = []
        for first in range(0, BINS, SIDE_BY_SIDE):
            places = [const(lane * BINS + first) for lane in range(SIDE_BY_SIDE)]
            loaded = [load(builder, greatest.data, place, kind, element.size) for place in places]
            rows += transpose(builder, loaded)
        for one, other in sorting_steps(0, BINS):
            above = element.greater(builder, rows[one], rows[other])
            rows[one], rows[other] = (
                builder.select(above, rows[one], rows[other]),
                builder.select(above, rows[other], rows[one]),
            )
        for place in range(wanted):
            first_rows.write(builder, rows[place], const(place))

    # LLVM removes the steps that the wanted rows do not depend on
    with builder.if_else(builder.icmp_signed("<=", depth, const(LANES))) as (half, whole):
        with half:
            sort_bins(LANES)
        with whole:
            sort_bins(BINS)
    found = first_rows.read(builder, builder.sub(depth, const(1)))
    store(builder, found, bounds.data, const(0), element.size)


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


def _copy_one(
    builder: Any, scores: Data, codes: Data | None, place: Any, kept: Data, kept_codes: Data | None, at: Any
) -> None:
    kept.data.write(builder, scores.data.read(builder, place), at)
    if codes is not None and kept_codes is not None:
        code = codes.data.read(builder, place)
        if code.type.width < 32:
            code = builder.zext(code, ir.IntType(32))
        kept_codes.data.write(builder, code, at)


def _keep(
    builder: Any,
    scores: Data,
    codes: Data | None,
    bound: Any,
    kept: Data,
    kept_codes: Data | None,
    *,
    few: bool = False,
) -> Any:
    """The code of `keep_from`, without codes if None; `few` first finds the vectors that contain any."""
    element = element_of(scores)
    lanes = 64 // element.size  # compressing wider vectors than a register goes through memory
    half = ir.Constant(ir.VectorType(ir.IntType(32), lanes // 2), list(range(lanes // 2)))
    pointer, n = scores.data, scores.shape[0]
    least = splat(builder, bound, lanes)
    found = variable(builder, const(0))

    def compare(offset: Any) -> tuple[Any, Any]:
        vector = load(builder, pointer, offset, element.vector(lanes), element.size)
        return vector, builder.not_(element.greater(builder, least, vector))

    if not compresses():
        with for_reached(builder, n, lanes, lambda offset: compare(offset)[1]) as offset:
            at = found.read(builder)
            _copy_one(builder, scores, codes, offset, kept, kept_codes, at)
            found.write(builder, builder.add(at, const(1)))
        return found.read(builder)

    def keep(offset: Any, fresh: Any = None) -> None:
        vector, reached = compare(offset)
        if fresh is not None:
            reached = builder.and_(reached, fresh)
        at = found.read(builder)
        moved = [(compress(builder, vector, reached), kept.data, element.size)]
        if codes is not None and kept_codes is not None:
            code = codes.data.kind
            numbers = load(builder, codes.data, offset, ir.VectorType(code, lanes), code.width // 8)
            if code.width < 32:
                numbers = builder.zext(numbers, ir.VectorType(ir.IntType(32), lanes))
            moved.append((compress(builder, numbers, reached), kept_codes.data, 4))
        # half a vector nearly always has room for the kept documents, and its store seldom crosses a cache
        # line
        for kept_lanes, to, size in moved:
            store(builder, builder.shuffle_vector(kept_lanes, kept_lanes, half), to, at, size)
        count = population(builder, reached)
        with builder.if_then(builder.icmp_signed(">", count, const(lanes // 2)), likely=False):
            for kept_lanes, to, size in moved:
                store(builder, kept_lanes, to, at, size)
        found.write(builder, builder.add(at, count))

    def keep_where_some_are(start: Any, stop: Any, places: Any) -> None:
        count = variable(builder, const(0))
        with for_steps(builder, start, stop, const(lanes)) as offset:
            reached = builder.bitcast(compare(offset)[1], ir.IntType(lanes))
            at = count.read(builder)
            places.write(builder, offset, at)
            some = builder.icmp_unsigned("!=", reached, const(0, lanes))
            count.write(builder, builder.add(at, builder.zext(some, at.type)))
        with for_range(builder, count.read(builder)) as index:
            keep(places.read(builder, index))

    done = builder.mul(builder.sdiv(n, const(lanes)), const(lanes))
    if few:  # a branch for each vector would be mispredicted at most vectors that have documents to keep
        step = _LOOKED_AT * lanes
        places = room(builder, ir.IntType(64), _LOOKED_AT)
        with for_steps(builder, const(0), done, const(step)) as start:
            stop = builder.add(start, const(step))
            stop = builder.select(builder.icmp_signed("<", stop, done), stop, done)
            keep_where_some_are(start, stop, places)
    else:
        with for_steps(builder, const(0), done, const(lanes)) as offset:
            keep(offset)
    with builder.if_then(builder.icmp_signed("<", done, n)):
        end = builder.sub(n, const(lanes))
        first = splat(builder, builder.trunc(builder.sub(done, end), ir.IntType(32)), lanes)
        keep(end, builder.icmp_signed(">=", lane_numbers(lanes), first))
    return found.read(builder)


@vectors(plain_keep_from)
def keep_from(builder: Any, scores: Data, codes: Data, bound: Any, kept: Data, kept_codes: Data) -> Any:
    return _keep(builder, scores, codes, bound, kept, kept_codes)


@vectors(plain_keep_from)
def keep_few_from(builder: Any, scores: Data, codes: Data, bound: Any, kept: Data, kept_codes: Data) -> Any:
    return _keep(builder, scores, codes, bound, kept, kept_codes, few=True)


@vectors(plain_keep_from_lanes, unrolled=False)
def keep_from_lanes(
    builder: Any,
    scores: Data,
    codes: Data,
    starts: Data,
    stops: Data,
    bounds: Data,
    kept: Data,
    kept_codes: Data,
    counts: Data,
) -> None:
    with _for_lanes(builder, starts, stops, const(LANES)) as (lane, start, n):
        found = _keep(
            builder,
            Data(scores.data.at(builder, start), [n]),
            Data(codes.data.at(builder, start), [n]),
            bounds.data.read(builder, lane),
            Data(kept.data.at(builder, builder.mul(lane, kept.shape[1])), []),
            Data(kept_codes.data.at(builder, builder.mul(lane, kept_codes.shape[1])), []),
        )
        counts.data.write(builder, found, lane)


@vectors(plain_keep_values_from)
def keep_values_from(builder: Any, values: Data, bound: Any, kept: Data) -> Any:
    return _keep(builder, values, None, bound, kept, None)


def plain_find_from(codes: Array, least: int, rows: Array) -> int:
    """Fill `rows`, of LANES more places, with places of codes from `least` on, in order; returns how many."""
    found = np.flatnonzero(codes >= least)
    rows[: found.shape[0]] = found
    return int(found.shape[0])


@vectors(plain_find_from)
def find_from(builder: Any, codes: Data, least: Any, rows: Data) -> Any:
    n, code = codes.shape[0], codes.data.kind
    wanted = splat(builder, builder.trunc(least, code), LANES)
    found = variable(builder, const(0))

    def compare(offset: Any) -> Any:
        vector = load(builder, codes.data, offset, ir.VectorType(code, LANES), 1)
        return builder.icmp_unsigned(">=", vector, wanted)

    if not compresses():
        with for_reached(builder, n, LANES, compare) as offset:
            at = found.read(builder)
            rows.data.write(builder, builder.trunc(offset, ir.IntType(32)), at)
            found.write(builder, builder.add(at, const(1)))
        return found.read(builder)

    def find(offset: Any, fresh: Any) -> None:
        reached = compare(offset)
        reached = reached if fresh is None else builder.and_(reached, fresh)
        numbers = builder.add(
            lane_numbers(LANES), splat(builder, builder.trunc(offset, ir.IntType(32)), LANES)
        )
        at = found.read(builder)
        store(builder, compress(builder, numbers, reached), rows.data, at, 4)
        found.write(builder, builder.add(at, population(builder, reached)))

    full = builder.sdiv(n, const(LANES))
    with for_range(builder, full) as index:
        find(builder.mul(index, const(LANES)), None)
    done = builder.mul(full, const(LANES))
    with builder.if_then(builder.icmp_signed("<", done, n)):
        end = builder.sub(n, const(LANES))
        seen = splat(builder, builder.trunc(builder.sub(done, end), ir.IntType(32)), LANES)
        find(end, builder.icmp_signed(">=", lane_numbers(LANES), seen))
    return found.read(builder)


def plain_fetch(array: Array, first: int, last: int) -> None:
    """Fetch array[first:last] from memory into the cache, for a later read; may reach past the array."""


@vectors(plain_fetch, within=True)
def fetch(builder: Any, array: Data, first: Any, last: Any) -> None:
    word = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), word, word, word])
    function = declare(builder, "llvm.prefetch.p0i8", kind)
    with for_steps(builder, first, last, const(8 * _LINE // bits_of(array.data.kind))) as offset:
        at = array.data.at(builder, offset).address
        # for reading, into the first-level cache: fetching into the second-level cache gained nothing
        builder.call(function, [at, const(0, 32), const(3, 32), const(1, 32)])
