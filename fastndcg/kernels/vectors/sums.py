"""Vector blocks from codes to sums: gains by rank, ideals, and sums over ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastndcg.kernels.schema import Array

from ..compile.decorators import block, vectors
from ..compile.llvm import LANES, SIDE_BY_SIDE, Code, Data, Value, greater, lesser, where

_NEARLY_ONE = 1.0 + 1e-12
_WIDE = 64  # bytes compared at once
COUNTED = 4  # codes counted in one pass


def plain_count_codes(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    """counts[code, lane] = how many of at least LANES codes, from `start` to before `stop`, are `code`, for
    each of the levels; `counts` has COUNTED rows more.
    """
    for code in range(levels):
        counts[code, lane] = np.count_nonzero(codes[start:stop] == code)


@vectors(plain_count_codes, unrolled=False)
def count_codes(
    code: Code, codes: Data, start: Value, stop: Value, levels: Value, counts: Data, lane: Value
) -> None:
    own, n = codes.part(start), stop - start
    # level 0 gets the rest of the codes: adding up counts that were just stored, by a vector load, would
    # stall
    others = code.variable(n)

    def count_few(first: Value, lanes: int) -> None:
        sought = [(first.to(8) + i).splat(lanes) for i in range(COUNTED)]
        found = [code.variable(0) for _ in sought]

        def count(offset: Value, fresh: Value | None = None) -> None:
            vector = own.load(offset, lanes)
            for each, sum_ in zip(sought, found, strict=True):
                mask = vector.equals(each)
                sum_.value += (mask if fresh is None else mask & fresh).count()

        with code.steps(0, n // lanes * lanes, lanes) as offset:
            count(offset)
        count(*code.last_of(n, lanes, 8))
        for i, sum_ in enumerate(found):
            counts[(first + i) * counts.shape[1] + lane] = sum_.value
            others.value -= sum_.value

    is_wide = n >= _WIDE
    with code.steps(1, levels, COUNTED) as first, code.either(is_wide) as (wide, narrow):
        with wide:
            count_few(first, _WIDE)
        with narrow:
            count_few(first, LANES)
    counts[lane] = others.value


def plain_fill_ideals(
    counts: Array, falling: Array, gains: Array, levels: int, left_out: int, depth: int, ideals: Array,
    lengths: Array,
) -> None:  # fmt: skip
    """Fill the ideal of each lane from counts by level: the first `levels` of `falling` but `left_out`, at
    most `depth` ranks. Writes the number of filled ranks to `lengths`; later ranks hold any value.
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
    code: Code, counts: Data, falling: Data, gains: Data, levels: Value, left_out: Value, depth: Value,
    ideals: Data, lengths: Data,
) -> None:  # fmt: skip
    filled = code.variable(code.full(0, SIDE_BY_SIDE))
    with code.range(levels) as index:
        level = falling[index]
        gain, first = gains[level].splat(SIDE_BY_SIDE), filled.value
        skipped = level.equals(left_out).splat(SIDE_BY_SIDE)
        stop = first + where(skipped, 0, counts.row(level))
        filled.value = stop
        # in lanes with fewer documents of this level, later levels overwrite the surplus ranks
        with code.steps(first.least(), lesser(stop.greatest(), depth)) as rank:
            is_own = rank.splat(SIDE_BY_SIDE) >= first
            ideals.set_row(rank, where(is_own, gain, ideals.row(rank)))
    lengths.set_row(0, lesser(filled.value, depth.splat(SIDE_BY_SIDE)))


@block
def add_discounted(gains: Array, discounts: Array, stops: Array, summed: Array, sums: Array) -> None:
    """sums[lane] += gains[rank, lane] * discounts[rank], for ranks from summed[lane] to stops[lane]."""
    for lane in range(sums.shape[0]):
        total = sums[lane]
        for rank in range(np.uint64(summed[lane]), np.uint64(max(stops[lane], summed[lane]))):
            total += gains[rank, lane] * discounts[rank]
        sums[lane] = total
        summed[lane] = max(summed[lane], stops[lane])


@block
def normalise(total: float, ideal: float) -> float:
    """A sum divided by the sum of the ideal; NaN where that is 0."""
    if ideal == 0.0:
        return np.nan
    value = total / ideal
    # two orders of one sum round differently: a ratio of exactly 1 must not come out above 1
    return 1.0 if 1.0 < value < _NEARLY_ONE else value


class _Side(NamedTuple):
    """Gains of SIDE_BY_SIDE queries by rank, the ranks added (`first` to before `stop`), the sums so far."""

    gains: Data
    first: Value
    stop: Value
    sums: Data


def _add_ranks(code: Code, sides: list[_Side], discounts: Data, start: Value, end: Value) -> None:
    """Add discounted gains of ranks from `start` to before `end` that are from `first` to before `stop`."""
    with code.steps(start, end) as rank:
        discount, here = (value.splat(SIDE_BY_SIDE) for value in (discounts[rank], rank))
        for side in sides:
            is_needed = (here >= side.first) & (here < side.stop)
            more = side.sums.value + side.gains.row(rank) * discount
            side.sums.value = where(is_needed, more, side.sums.value)


def plain_sum_row(
    placed: int, sides: int, gains: Array, lengths: Array, ideals: Array, ideal_lengths: Array,
    discounts: Array, cutoffs: Array, anew: bool, stops: Array, summed: Array, sums: Array, values: Array,
) -> None:  # fmt: skip
    """Sum the list of a row (bit 0 of `sides`) and its ideal (bit 1) up to each lane's cutoff, and write the
    quotients to `values`.

    Continues the `sums` of `summed` ranks unless `anew`. Lanes after the first `placed` have no ranks.
    """
    if anew:
        summed[:, :] = 0
        sums[:, :] = 0.0
    for lane in range(values.shape[0]):
        stops[0, lane] = min(cutoffs[lane], lengths[lane]) if lane < placed and sides & 1 else 0
        stops[1, lane] = min(cutoffs[lane], ideal_lengths[lane]) if lane < placed and sides & 2 else 0
    add_discounted(gains, discounts, stops[0], summed[0], sums[0])
    add_discounted(ideals, discounts, stops[1], summed[1], sums[1])
    for lane in range(values.shape[0]):
        values[lane] = normalise(sums[0, lane], sums[1, lane])


@vectors(plain_sum_row)
def sum_row(
    code: Code, placed: Value, sides: Value, gains: Data, lengths: Data, ideals: Data, ideal_lengths: Data,
    discounts: Data, cutoffs: Data, anew: Value, stops: Data, summed: Data, sums: Data, values: Data,
) -> None:  # fmt: skip
    is_placed, cutoff, anew = code.places(SIDE_BY_SIDE, 64) < placed, cutoffs.row(0), anew.to(1)
    both = []
    for row, ranks, shown in ((0, gains, lengths), (1, ideals, ideal_lengths)):
        has_side = ((sides >> row).to(1)).splat(SIDE_BY_SIDE)
        stop = where(is_placed & has_side, lesser(shown.row(0), cutoff), 0)
        stops.set_row(row, stop)
        first, total = where(anew, 0, summed.row(row)), where(anew, 0.0, sums.row(row))
        both.append(_Side(ranks, first, stop, code.variable(total)))
    start = lesser(*(side.first.least() for side in both))
    ends = [side.stop.greatest() for side in both]
    together = lesser(*ends)
    # both sums in the time of one: a sum alone waits for each addition
    _add_ranks(code, both, discounts, start, together)
    rest = greater(together, start)
    for side, end in zip(both, ends, strict=True):
        _add_ranks(code, [side], discounts, rest, end)
    for row, side in enumerate(both):
        sums.set_row(row, side.sums.value)
        summed.set_row(row, greater(side.stop, side.first))
    total, ideal = (side.sums.value for side in both)
    value = total / ideal
    value = where((value > 1.0) & (value < _NEARLY_ONE), 1.0, value)
    values.set_row(0, where(ideal.equals(0.0), float("nan"), value))


fill_ideals_of_one, sum_row_of_one = block(plain_fill_ideals), block(plain_sum_row)
