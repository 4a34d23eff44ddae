"""Vector blocks from codes to sums: gains by rank, averaged ties, ideals, and sums over ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.llvm import (
    LANES,
    SIDE_BY_SIDE,
    Data,
    const,
    for_range,
    for_steps,
    lane_numbers,
    load,
    population,
    reduce_lanes,
    splat,
    store,
    variable,
)
from ..compile.marks import block, ir, vectors

_NEARLY_ONE = 1.0 + 1e-12
_WIDE = 64  # bytes compared at once
COUNTED = 4  # codes counted in one pass


def plain_gains_of_codes(codes: Array, gains: Array, rows: int, out: Array) -> None:
    """out[rank, lane] = gains[codes[rank, lane]] for the first `rows` ranks; at most SIDE_BY_SIDE gains."""
    for rank in range(rows):
        for lane in range(SIDE_BY_SIDE):
            out[rank, lane] = gains[codes[rank, lane]]


@vectors(plain_gains_of_codes)
def gains_of_codes(builder: Any, codes: Data, gains: Data, rows: Any, out: Data) -> None:
    word = ir.IntType(64)
    numbers, doubles = ir.VectorType(word, SIDE_BY_SIDE), ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)
    last = builder.sub(gains.shape[0], const(1))
    table = ir.Constant(doubles, ir.Undefined)
    for place in range(SIDE_BY_SIDE):
        there = builder.select(builder.icmp_signed("<", const(place), last), const(place), last)
        gain = gains.data.read(builder, there)
        table = builder.insert_element(table, gain, const(place, 32))
    kind = ir.VectorType(ir.IntType(32), SIDE_BY_SIDE)
    with for_range(builder, rows) as index:
        row = builder.mul(index, const(SIDE_BY_SIDE))
        wide = builder.zext(load(builder, codes.data, row, kind, 4), numbers)
        place = builder.and_(wide, ir.Constant(numbers, [SIDE_BY_SIDE - 1] * SIDE_BY_SIDE))
        found = ir.Constant(doubles, ir.Undefined)
        for lane in range(SIDE_BY_SIDE):  # one instruction where the processor has it
            gain = builder.extract_element(table, builder.extract_element(place, const(lane, 32)))
            found = builder.insert_element(found, gain, const(lane, 32))
        store(builder, found, out.data, row, 8)


def plain_average_side_by_side(
    gains: Array, same: Array, kept: Array, rows: int, sizes: Array, out: Array
) -> None:
    """out[r, lane] = mean gain of the tied group of rank r; `same` is as in `rank_side_by_side`. Sums of
    gains are exact.

    `gains` and `sizes` are overwritten.
    """
    depth = min(out.shape[0], rows)
    for lane in range(SIDE_BY_SIDE):
        start = 0
        while start < rows:
            stop = start + 1
            while stop < rows and same[stop] >> lane & 1:
                stop += 1
            size = min(kept[lane], stop) - start
            if size > 0:
                out[start : min(stop, depth), lane] = gains[start:stop, lane].sum() / size
            start = stop


@vectors(plain_average_side_by_side)
def average_side_by_side(
    builder: Any, gains: Data, same: Data, kept: Data, rows: Any, sizes: Data, out: Data
) -> None:
    lanes = SIDE_BY_SIDE
    doubles, numbers = ir.VectorType(ir.DoubleType(), lanes), ir.VectorType(ir.IntType(64), lanes)
    zero, one = ir.Constant(doubles, [0.0] * lanes), ir.Constant(doubles, [1.0] * lanes)
    n_kept = load(builder, kept.data, const(0), numbers, 8)
    total, size = (variable(builder, zero) for _ in range(2))

    def read_mask(row: Any) -> Any:
        bits = same.data.read(builder, row)
        return builder.bitcast(bits, ir.VectorType(ir.IntType(1), lanes))

    same.data.write(builder, const(0, 8))
    with for_range(builder, rows) as index:
        row, at = index, builder.mul(index, const(lanes))
        goes_on = read_mask(row)
        is_document = builder.icmp_signed(">", n_kept, splat(builder, row, lanes))
        for sums, array, own in (
            (total, gains, load(builder, gains.data, at, doubles, 8)),
            (size, sizes, builder.select(is_document, one, zero)),
        ):
            before = builder.select(goes_on, sums.read(builder), zero)
            sums.write(builder, builder.fadd(own, before))
            store(builder, sums.read(builder), array.data, at, 8)
    ended = variable(builder, ir.Constant(ir.VectorType(ir.IntType(1), lanes), [1] * lanes))
    with for_range(builder, rows) as index:  # from the last rank of a group back to its first
        row = builder.sub(builder.sub(rows, const(1)), index)
        at = builder.mul(row, const(lanes))
        for sums, array in ((total, gains), (size, sizes)):
            own = load(builder, array.data, at, doubles, 8)
            sums.write(builder, builder.select(ended.read(builder), own, sums.read(builder)))
        ended.write(builder, builder.not_(read_mask(row)))
        with builder.if_then(builder.icmp_signed("<", row, out.shape[0])):
            store(builder, builder.fdiv(total.read(builder), size.read(builder)), out.data, at, 8)


def plain_count_codes(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    """counts[code, lane] = how many of the codes from `start` to before `stop` are `code`, for each of the
    levels.

    There are at least LANES codes; `counts` has COUNTED rows more.
    """
    for code in range(levels):
        counts[code, lane] = np.count_nonzero(codes[start:stop] == code)


@vectors(plain_count_codes, unrolled=False)
def count_codes(
    builder: Any, codes: Data, start: Any, stop: Any, levels: Any, counts: Data, lane: Any
) -> None:
    byte = ir.IntType(8)
    pointer, n = codes.data.at(builder, start), builder.sub(stop, start)
    # level 0 gets the rest of the codes: adding up counts that were just stored, by a vector load, would
    # stall
    others = variable(builder, n)

    def count_few(first: Any, lanes: int) -> None:
        wanted = [builder.add(builder.trunc(first, byte), const(i, 8)) for i in range(COUNTED)]
        sought = [splat(builder, code, lanes) for code in wanted]
        found = [variable(builder, const(0)) for _ in wanted]

        def count(offset: Any, fresh: Any) -> None:
            vector = load(builder, pointer, offset, ir.VectorType(byte, lanes), 1)
            for code, sum_ in zip(sought, found, strict=True):
                mask = builder.icmp_unsigned("==", vector, code)
                mask = mask if fresh is None else builder.and_(mask, fresh)
                sum_.write(builder, builder.add(sum_.read(builder), population(builder, mask)))

        full = builder.sdiv(n, const(lanes))
        with for_range(builder, full) as index:
            count(builder.mul(index, const(lanes)), None)
        done, end = builder.mul(full, const(lanes)), builder.sub(n, const(lanes))
        seen = splat(builder, builder.trunc(builder.sub(done, end), byte), lanes)
        count(end, builder.icmp_unsigned(">=", lane_numbers(lanes, 8), seen))
        for i, sum_ in enumerate(found):
            count_of_code = sum_.read(builder)
            place = builder.add(builder.mul(builder.add(first, const(i)), counts.shape[1]), lane)
            counts.data.write(builder, count_of_code, place)
            others.write(builder, builder.sub(others.read(builder), count_of_code))

    is_wide = builder.icmp_signed(">=", n, const(_WIDE))
    with (
        for_steps(builder, const(1), levels, const(COUNTED)) as first,
        builder.if_else(is_wide) as (wide, narrow),
    ):
        with wide:
            count_few(first, _WIDE)
        with narrow:
            count_few(first, LANES)
    counts.data.write(builder, others.read(builder), lane)


def plain_fill_ideals(
    counts: Array,
    falling: Array,
    gains: Array,
    levels: int,
    left_out: int,
    depth: int,
    ideals: Array,
    lengths: Array,
) -> None:
    """Fill the ideal of each lane from counts by level: the first `levels` levels of `falling`, in order, at
    most `depth` ranks.

    Documents of the level `left_out` do not count. Writes the number of filled ranks to `lengths`; later
    ranks hold any value.
    """
    for lane in range(lengths.shape[0]):
        at = 0
        for i in range(levels):
            if falling[i] != left_out:
                stop = min(at + counts[falling[i], lane], depth)
                for rank in range(at, stop):
                    ideals[rank, lane] = gains[falling[i]]
                at = stop
        lengths[lane] = at


@vectors(plain_fill_ideals)
def fill_ideals(
    builder: Any, counts: Data, falling: Data, gains: Data, levels: Any, left_out: Any, depth: Any,
    ideals: Data, lengths: Data,
) -> None:  # fmt: skip
    word = ir.IntType(64)
    numbers, doubles = ir.VectorType(word, SIDE_BY_SIDE), ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)
    none = ir.Constant(numbers, [0] * SIDE_BY_SIDE)
    at = variable(builder, none)
    with for_range(builder, levels) as index:
        level = falling.data.read(builder, index)
        gain = splat(builder, gains.data.read(builder, level), SIDE_BY_SIDE)
        first = at.read(builder)
        counted = load(builder, counts.data, builder.mul(level, const(SIDE_BY_SIDE)), numbers, 8)
        skipped = splat(builder, builder.icmp_signed("==", level, left_out), SIDE_BY_SIDE)
        stop = builder.add(first, builder.select(skipped, none, counted))
        at.write(builder, stop)
        # in lanes with fewer documents of this level, later levels overwrite the surplus ranks
        start, end = reduce_lanes(builder, "smin", first), reduce_lanes(builder, "smax", stop)
        end = builder.select(builder.icmp_signed("<", end, depth), end, depth)
        with for_steps(builder, start, end, const(1)) as rank:
            place = builder.mul(rank, const(SIDE_BY_SIDE))
            own = builder.icmp_signed(">=", splat(builder, rank, SIDE_BY_SIDE), first)
            before = load(builder, ideals.data, place, doubles, 8)
            store(builder, builder.select(own, gain, before), ideals.data, place, 8)
    filled, most = at.read(builder), splat(builder, depth, SIDE_BY_SIDE)
    filled = builder.select(builder.icmp_signed("<", filled, most), filled, most)
    store(builder, filled, lengths.data, const(0), 8)


def plain_add_discounted(gains: Array, discounts: Array, stops: Array, summed: Array, sums: Array) -> None:
    """sums[lane] += gains[rank, lane] * discounts[rank], for ranks from summed[lane] to stops[lane]."""
    for lane in range(sums.shape[0]):
        total = sums[lane]
        for rank in range(np.uint64(summed[lane]), np.uint64(max(stops[lane], summed[lane]))):
            total += gains[rank, lane] * discounts[rank]
        sums[lane] = total
        summed[lane] = max(summed[lane], stops[lane])


class _Side(NamedTuple):
    """Gains of SIDE_BY_SIDE queries by rank, the ranks added (`first` to before `stop`), the sums so far."""

    gains: Data
    first: Any
    stop: Any
    sums: Any  # pointer to the sums

    def store(self, builder: Any, summed: Data, sums: Data, place: Any) -> None:
        store(builder, self.sums.read(builder), sums.data, place, 8)
        reached = builder.select(builder.icmp_signed(">", self.stop, self.first), self.stop, self.first)
        store(builder, reached, summed.data, place, 8)


def _add_ranks(builder: Any, sides: list[_Side], discounts: Data, start: Any, end: Any) -> None:
    """Add discounted gains of ranks from `start` to before `end` that are from `first` to before `stop`."""
    doubles = ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)
    with for_steps(builder, start, end, const(1)) as rank:
        discount = splat(builder, discounts.data.read(builder, rank), SIDE_BY_SIDE)
        here = splat(builder, rank, SIDE_BY_SIDE)
        for side in sides:
            gain = load(builder, side.gains.data, builder.mul(rank, const(SIDE_BY_SIDE)), doubles, 8)
            wanted = builder.and_(
                builder.icmp_signed(">=", here, side.first), builder.icmp_signed("<", here, side.stop)
            )
            total = side.sums.read(builder)
            more = builder.fadd(total, builder.fmul(gain, discount))
            side.sums.write(builder, builder.select(wanted, more, total))


@vectors(plain_add_discounted)
def add_discounted(builder: Any, gains: Data, discounts: Data, stops: Data, summed: Data, sums: Data) -> None:
    numbers = ir.VectorType(ir.IntType(64), SIDE_BY_SIDE)
    doubles = ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)
    first = load(builder, summed.data, const(0), numbers, 8)
    stop = load(builder, stops.data, const(0), numbers, 8)
    total = variable(builder, load(builder, sums.data, const(0), doubles, 8))
    side = _Side(gains, first, stop, total)
    start, end = reduce_lanes(builder, "smin", first), reduce_lanes(builder, "smax", stop)
    _add_ranks(builder, [side], discounts, start, end)
    side.store(builder, summed, sums, const(0))


def plain_sum_row(
    placed: int,
    gains: Array,
    lengths: Array,
    ideals: Array,
    ideal_lengths: Array,
    discounts: Array,
    cutoffs: Array,
    anew: bool,
    stops: Array,
    summed: Array,
    sums: Array,
    values: Array,
) -> None:
    """Sum the list of a row and its ideal up to each lane's cutoff, and write the quotients to `values`.

    Continues the `sums` of `summed` ranks unless `anew`. Lanes after the first `placed` have no ranks.
    """
    if anew:
        summed[:], sums[:] = 0, 0.0
    for lane in range(values.shape[0]):
        stops[0, lane] = min(cutoffs[lane], lengths[lane]) if lane < placed else 0
        stops[1, lane] = min(cutoffs[lane], ideal_lengths[lane]) if lane < placed else 0
    plain_add_discounted(gains, discounts, stops[0], summed[0], sums[0])
    plain_add_discounted(ideals, discounts, stops[1], summed[1], sums[1])
    for lane in range(values.shape[0]):
        values[lane] = plain_normalise(sums[0, lane], sums[1, lane])


@vectors(plain_sum_row)
def sum_row(
    builder: Any,
    placed: Any,
    gains: Data,
    lengths: Data,
    ideals: Data,
    ideal_lengths: Data,
    discounts: Data,
    cutoffs: Data,
    anew: Any,
    stops: Data,
    summed: Data,
    sums: Data,
    values: Data,
) -> None:
    numbers = ir.VectorType(ir.IntType(64), SIDE_BY_SIDE)
    doubles = ir.VectorType(ir.DoubleType(), SIDE_BY_SIDE)
    places = [const(0), const(SIDE_BY_SIDE)]  # where those of the list and of the ideal begin
    is_placed = builder.icmp_signed("<", lane_numbers(SIDE_BY_SIDE, 64), splat(builder, placed, SIDE_BY_SIDE))
    cutoff = load(builder, cutoffs.data, const(0), numbers, 8)
    anew = builder.trunc(anew, ir.IntType(1)) if anew.type.width > 1 else anew
    sides = []
    for place, rows, shown in zip(places, (gains, ideals), (lengths, ideal_lengths), strict=True):
        length = load(builder, shown.data, const(0), numbers, 8)
        least = builder.select(builder.icmp_signed("<", length, cutoff), length, cutoff)
        stop = builder.select(is_placed, least, ir.Constant(numbers, [0] * SIDE_BY_SIDE))
        store(builder, stop, stops.data, place, 8)
        first, total = (
            builder.select(
                anew, ir.Constant(kind, [0] * SIDE_BY_SIDE), load(builder, array.data, place, kind, 8)
            )
            for kind, array in ((numbers, summed), (doubles, sums))
        )
        sides.append(_Side(rows, first, stop, variable(builder, total)))

    def lesser(one: Any, other: Any) -> Any:
        return builder.select(builder.icmp_signed("<", one, other), one, other)

    start = lesser(*(reduce_lanes(builder, "smin", side.first) for side in sides))
    ends = [reduce_lanes(builder, "smax", side.stop) for side in sides]
    together = lesser(*ends)
    # both sums in the time of one: a sum alone waits for each addition
    _add_ranks(builder, sides, discounts, start, together)
    rest = builder.select(builder.icmp_signed("<", start, together), together, start)
    for side, end in zip(sides, ends, strict=True):
        _add_ranks(builder, [side], discounts, rest, end)
    for side, place in zip(sides, places, strict=True):
        side.store(builder, summed, sums, place)
    total, ideal = (side.sums.read(builder) for side in sides)
    zero, one, nearly, nothing = (
        ir.Constant(doubles, [value] * SIDE_BY_SIDE) for value in (0.0, 1.0, _NEARLY_ONE, float("nan"))
    )
    value = builder.fdiv(total, ideal)
    is_one = builder.and_(builder.fcmp_ordered(">", value, one), builder.fcmp_ordered("<", value, nearly))
    value = builder.select(is_one, one, value)
    value = builder.select(builder.fcmp_ordered("==", ideal, zero), nothing, value)
    store(builder, value, values.data, const(0), 8)


def plain_normalise(total: float, ideal: float) -> float:
    """A sum divided by the sum of the ideal; NaN where that is 0."""
    if ideal == 0.0:
        return np.nan
    value = total / ideal
    # two orders of one sum round differently: a ratio of exactly 1 must not come out above 1
    return 1.0 if 1.0 < value < _NEARLY_ONE else value


fill_ideals_of_one, add_discounted_of_one = block(plain_fill_ideals), block(plain_add_discounted)
normalise = block(plain_normalise)
