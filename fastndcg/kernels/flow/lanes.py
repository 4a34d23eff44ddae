"""Steps for all queries of a batch side by side: keep documents, rank them, list their gains."""

from __future__ import annotations

from fastndcg.kernels.flow.tables import (
    Array,
)

from ..compile.llvm import BINS, LANES, SIDE_BY_SIDE
from ..compile.marks import apart, inlined
from ..vectors.bounds import bounds_of_top, greatest_by_bin
from ..vectors.keeping import keep_few_from, keep_from_lanes
from ..vectors.side_by_side import average_side_by_side
from ..vectors.summing import COUNTED, gains_of_codes
from .memory import TOGETHER, Lanes, Ranked, Work, vectors_of
from .ranking import COUNTING, MANY, bounded_by, keep_all

_DEEPEST = 24  # up to so many ranks, bins give good bounds of scores
_COMPARED = 8  # cost of comparing a document with a vector; sorting n rows side by side costs n * log2(n)**2


@apart
def keep_of_lanes(
    placed: int,
    depth: int,
    scores: Array,
    codes: Array,
    lanes: Lanes,
    greatest: Array,
    bounds: Array,
    kept_scores: Array,
    kept_codes: Array,
) -> None:
    """For each query, keep at least the documents of the first `depth` ranks and all documents tied with the
    last of them.

    Each step is done for all queries, so that the processor does not wait for the result of the step before.
    """
    least, bounded, others = max(BINS, 3 * depth), False, False
    for lane in range(placed):
        start, stop = lanes.starts[lane], lanes.stops[lane]
        if depth > _DEEPEST or stop - start < least or lanes.all_kept[lane]:
            lanes.all_kept[lane] = others = True
            lanes.seen[lane] = start
        else:
            bounded = True
            others = others or stop - start > MANY
            lanes.seen[lane] = start + bounded_by(stop - start)
    for lane in range(placed, lanes.kept.shape[0]):
        lanes.kept[lane], lanes.seen[lane] = 0, lanes.starts[lane]
    if bounded:
        greatest_by_bin(scores, lanes.starts, lanes.seen, greatest)
        bounds_of_top(greatest, max(depth, 1), bounds)
    if others:
        for lane in range(placed):
            start, stop = lanes.starts[lane], lanes.stops[lane]
            if lanes.all_kept[lane]:
                lanes.kept[lane] = keep_all(
                    codes[start:stop], scores[start:stop], kept_scores[lane], kept_codes[lane]
                )
            elif stop - start > MANY:
                lanes.seen[lane] = start
                lanes.kept[lane] = keep_few_from(
                    scores[start:stop], codes[start:stop], bounds[lane], kept_scores[lane], kept_codes[lane]
                )
    if bounded:
        keep_from_lanes(scores, codes, lanes.starts, lanes.seen, bounds, kept_scores, kept_codes, lanes.kept)


@inlined
def rows_to_rank(placed: int, first_wanted: int, lanes: Lanes, scored: Array) -> tuple[int, bool]:
    """The length up to which lists of a batch are ranked side by side, and whether no list is longer.

    Longer lists are ranked one by one.
    """
    longest = longer = 0
    for lane in range(placed):
        longest = max(longest, lanes.kept[lane])
        longer += lanes.kept[lane] > LANES
    if longest > 2 * LANES:
        rows = rows_worth_sorting(placed, first_wanted, lanes.kept, lanes.steps, scored)
    else:
        rows = LANES if 2 * longer <= SIDE_BY_SIDE else 2 * LANES
    return rows, longest <= rows


@apart
def rows_worth_sorting(placed: int, first_wanted: int, kept: Array, steps: Array, scored: Array) -> int:
    """The length of least cost, if lists up to it are sorted side by side and longer ones one by one."""
    worth, least = 0, 0
    for lane in range(placed):
        wanted = 0
        for level in range(first_wanted, scored.shape[0] - COUNTED):
            wanted += scored[level, lane]
        compared = min(wanted, kept[lane]) * vectors_of(kept[lane])
        steps[lane] = _COMPARED * min(compared, COUNTING * kept[lane])
        least += steps[lane]
    for candidate in range(placed):
        rows = LANES * vectors_of(kept[candidate])
        if LANES <= rows <= TOGETHER:
            doublings = 0
            while 1 << doublings < rows:
                doublings += 1
            cost = rows * doublings * doublings
            for lane in range(placed):
                if kept[lane] > rows:
                    cost += steps[lane]
            if cost < least:
                worth, least = rows, cost
    return worth


@apart
def gains_by_rank(
    gains: Array, rows: int, tied: bool, kept: Array, ranked: Ranked, out: Array, lengths: Array
) -> None:
    """Fill a list of gains for queries that were ranked side by side; ties are averaged."""
    depth = min(out.shape[0], rows)
    fill_lengths(kept, depth, lengths)
    filled, n = (ranked.gains, rows) if tied else (out, depth)
    if gains.shape[0] <= SIDE_BY_SIDE:
        gains_of_codes(ranked.codes, gains, n, filled)
    else:
        for rank in range(n):
            for lane in range(SIDE_BY_SIDE):
                filled[rank, lane] = gains[ranked.codes[rank, lane]]
    if tied:
        average_side_by_side(ranked.gains, ranked.same, kept, rows, ranked.sizes, out)


@apart
def counts_by_rank(gains: Array, rows: int, kept: Array, codes: Array, out: Array, lengths: Array) -> None:
    """As `gather_sums`, for queries that were ranked side by side without ties."""
    depth = min(out.shape[0], rows)
    fill_lengths(kept, depth, lengths)
    for rank in range(depth):
        for lane in range(SIDE_BY_SIDE):
            before = out[rank - 1, lane] if rank > 0 else 0.0
            out[rank, lane] = before + gains[codes[rank, lane]]


@inlined
def fill_lengths(kept: Array, depth: int, lengths: Array) -> None:
    for lane in range(SIDE_BY_SIDE):
        lengths[lane] = min(kept[lane], depth)


@apart
def take_column(ranked: Ranked, lane: int, kept: int, work: Work) -> bool:
    """As `rank_documents`, for a query that was ranked side by side with others."""
    tied, start = False, 0
    for rank in range(kept):
        work.codes[rank] = ranked.codes[rank, lane]
    for rank in range(max(kept, 2 * LANES)):
        work.sizes[rank] = 1
    for rank in range(1, kept):
        if ranked.same[rank] >> lane & 1:
            work.sizes[start] += 1
            tied = True
        else:
            start = rank
    if tied and kept <= 2 * LANES:
        start = 0
        while start < kept:
            size = work.sizes[start]
            for rank in range(start, start + size):
                work.firsts[rank], work.sizes[rank] = start, size
            start += size
    return tied
