"""Steps for all queries of a batch side by side: take queries, keep documents, list the gains of ranks."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.schema import GAIN, TABLE, TERM, Array, Documents, Plan

from .accumulation import is_linear
from .compile.decorators import block
from .compile.llvm import BINS, LANES, SIDE_BY_SIDE
from .ranking import COUNTING, MANY, bounded_by, keep_all
from .vectors.ranking import average_side_by_side
from .vectors.selection import bounds_of_top, greatest_by_bin, keep_few_from, keep_from_lanes
from .vectors.sums import COUNTED, count_codes
from .workspace import TOGETHER, Batch, Queries, Ranked, Scratch, Work, vectors_of

FETCHED = 2048  # documents of the next queries that are fetched from memory while a batch is scored
_DEEPEST = 24  # up to so many ranks, bins give good bounds of scores
_COMPARED = 8  # cost of comparing a document with a vector; sorting n rows side by side costs n * log2(n)**2


@block
def take_queries(
    first: int, last: int, documents: Documents, plan: Plan, scored: Array, judged: Array, batch: Batch,
    out: Array,
) -> tuple[int, int]:  # fmt: skip
    """Take the next queries into the batch, and count their documents by level; those without a value get NaN
    and no place. Returns how many were taken, and the next query.
    """
    queries, totals = batch.queries, batch.totals
    unjudged, levels, pool_offsets = plan.gains.shape[1] - 2, documents.levels, documents.pool_offsets
    has_pool = pool_offsets.shape[0] > 0
    lane = 0
    while first < last and lane < queries.numbers.shape[0]:
        number = first
        first += 1
        start, stop = rows_of(number, documents)
        has_documents = stop > start
        count_levels(documents.relevance, start, stop, levels, scored, lane)
        n_unjudged = scored[unjudged, lane] if levels > unjudged else 0
        if has_pool:
            pool_start = pool_offsets[number] - documents.pool_base
            pool_stop = pool_offsets[first] - documents.pool_base
            has_documents = has_documents or pool_stop > pool_start
            count_levels(documents.pool_relevance, pool_start, pool_stop, levels, judged, lane)
            judged[unjudged, lane] = n_unjudged
        for i in range(plan.totals.shape[0]):
            table, total = plan.totals[i], 0.0
            for level in range(min(levels, unjudged)):
                total += judged[level, lane] * plan.gains[table, level]
            if plan.assumed[table] and n_unjudged > 0:
                total += n_unjudged * plan.gains[table, unjudged]
            totals[i, lane] = total
        if plan.skippable and no_level_gains(levels, scored, judged, lane, plan.promising, totals[:, lane]):
            out[:, number] = np.nan
            continue
        queries.numbers[lane], queries.starts[lane], queries.stops[lane] = number, start, stop
        queries.has_documents[lane], queries.all_kept[lane] = (
            has_documents,
            n_unjudged > 0 and plan.condensing,
        )
        lane += 1
    return lane, first


@block
def rows_of(query: int, documents: Documents) -> tuple[int, int]:
    return documents.offsets[query] - documents.base, documents.offsets[query + 1] - documents.base


@block
def count_levels(codes: Array, start: int, stop: int, levels: int, counts: Array, lane: int) -> None:
    """Count the documents of each level; `counts` has COUNTED rows more."""
    # a pass for every few levels, over 64 documents at a time, is faster than one addition for each document
    if stop - start >= LANES and levels <= 16:
        count_codes(codes, start, stop, levels, counts, lane)
        return
    counts[:levels, lane] = 0
    for i in range(start, stop):
        counts[codes[i], lane] += 1


@block
def no_level_gains(
    levels: int, scored: Array, judged: Array, lane: int, promising: Array, totals: Array
) -> bool:
    """Whether a query has no value by any row, by the counts of its documents of each level."""
    for level in range(levels - 1, -1, -1):
        if (promising[1, level] and judged[level, lane] > 0) or (
            promising[0, level] and scored[level, lane] > 0
        ):
            return False
    return nothing_relevant(totals)


@block
def nothing_relevant(totals: Array) -> bool:
    counted = 0.0
    for i in range(totals.shape[0]):
        counted += totals[i]
    return counted == 0.0


@block
def quarter_of_next(first: int, last: int, documents: Documents) -> tuple[int, int]:
    """The first document of the next queries to score side by side, and a quarter of them, up to FETCHED."""
    if first >= last:
        return 0, 0
    start, _ = rows_of(first, documents)
    _, stop = rows_of(min(first + SIDE_BY_SIDE, last) - 1, documents)
    return start, min(stop - start, FETCHED) // 4


@block
def keep_documents(placed: int, depth: int, documents: Documents, queries: Queries, scratch: Scratch) -> None:
    """For each query, keep at least the documents of the first `depth` ranks and all tied with the last. Each
    step is done for all queries, so that the processor does not wait for the result of the step before.
    """
    scores, codes, greatest, bounds = documents.scores, documents.relevance, scratch.greatest, scratch.bounds
    kept_scores, kept_codes = scratch.scores, scratch.kept
    least, bounded, others = max(BINS, 3 * depth), False, False
    for lane in range(placed):
        start, stop = queries.starts[lane], queries.stops[lane]
        if depth > _DEEPEST or stop - start < least or queries.all_kept[lane]:
            queries.all_kept[lane] = others = True
            queries.seen[lane] = start
        else:
            bounded = True
            others = others or stop - start > MANY
            queries.seen[lane] = start + bounded_by(stop - start)
    for lane in range(placed, queries.kept.shape[0]):
        queries.kept[lane], queries.seen[lane] = 0, queries.starts[lane]
    if bounded:
        greatest_by_bin(scores, queries.starts, queries.seen, greatest)
        bounds_of_top(greatest, max(depth, 1), bounds)
    if others:
        for lane in range(placed):
            start, stop = queries.starts[lane], queries.stops[lane]
            if queries.all_kept[lane]:
                queries.kept[lane] = keep_all(
                    codes[start:stop], scores[start:stop], kept_scores[lane], kept_codes[lane]
                )
            elif stop - start > MANY:
                queries.seen[lane] = start
                queries.kept[lane] = keep_few_from(
                    scores[start:stop], codes[start:stop], bounds[lane], kept_scores[lane], kept_codes[lane]
                )
    if bounded:
        keep_from_lanes(
            scores, codes, queries.starts, queries.seen, bounds, kept_scores, kept_codes, queries.kept
        )


@block
def rows_to_rank(placed: int, first_needed: int, queries: Queries, scored: Array) -> tuple[int, bool]:
    """The length up to which lists are ranked side by side, and whether no list is longer."""
    longest = longer = 0
    for lane in range(placed):
        longest = max(longest, queries.kept[lane])
        longer += queries.kept[lane] > LANES
    if longest > 2 * LANES:
        rows = rows_to_sort(placed, first_needed, queries.kept, queries.steps, scored)
    else:
        rows = LANES if 2 * longer <= SIDE_BY_SIDE else 2 * LANES
    return rows, longest <= rows


@block
def rows_to_sort(placed: int, first_needed: int, kept: Array, steps: Array, scored: Array) -> int:
    """The length of least cost, if lists up to it are sorted side by side and longer ones one by one."""
    best, least = 0, 0
    for lane in range(placed):
        needed = 0
        for level in range(first_needed, scored.shape[0] - COUNTED):
            needed += scored[level, lane]
        compared = min(needed, kept[lane]) * vectors_of(kept[lane])
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
                best, least = rows, cost
    return best


@block
def lists_by_rank(rows: int, tied: bool, plan: Plan, batch: Batch) -> None:
    """Fill the lists of gains and counts of queries that were ranked side by side."""
    kept, ranked, lists, lengths = batch.queries.kept, batch.ranked, batch.lists, batch.lengths
    for v in range(plan.lists.shape[0]):
        if is_linear(v, plan.lists):
            gains = plan.gains[plan.lists[v, TABLE]]
            if plan.lists[v, TERM] == GAIN:
                gains_by_rank(gains, rows, tied, kept, ranked, lists[v], lengths[v])
            else:
                counts_by_rank(gains, rows, kept, ranked.codes, lists[v], lengths[v])


@block
def gains_by_rank(
    gains: Array, rows: int, tied: bool, kept: Array, ranked: Ranked, out: Array, lengths: Array
) -> None:
    """Fill a list of gains for queries that were ranked side by side; ties are averaged."""
    depth = min(out.shape[0], rows)
    for lane in range(SIDE_BY_SIDE):
        lengths[lane] = min(kept[lane], depth)
    filled, n = (ranked.gains, rows) if tied else (out, depth)
    for rank in range(n):
        for lane in range(SIDE_BY_SIDE):
            filled[rank, lane] = gains[ranked.codes[rank, lane]]
    if tied:
        average_side_by_side(ranked.gains, ranked.same, kept, rows, ranked.sizes, out)


@block
def counts_by_rank(gains: Array, rows: int, kept: Array, codes: Array, out: Array, lengths: Array) -> None:
    """As `gather_sums`, for queries that were ranked side by side without ties."""
    depth = min(out.shape[0], rows)
    for lane in range(SIDE_BY_SIDE):
        lengths[lane] = min(kept[lane], depth)
    for rank in range(depth):
        for lane in range(SIDE_BY_SIDE):
            before = out[rank - 1, lane] if rank > 0 else 0.0
            out[rank, lane] = before + gains[codes[rank, lane]]


@block
def take_column(ranked: Ranked, lane: int, kept: int, work: Work) -> bool:
    """As `rank_documents`, for a query that was ranked side by side with others."""
    tied, start = False, 0
    for rank in range(kept):
        work.codes[rank], work.sizes[rank] = ranked.codes[rank, lane], 1
    for rank in range(1, kept):
        if ranked.same[rank] >> lane & 1:
            work.sizes[start] += 1
            tied = True
        else:
            start = rank
    return tied
