"""Queries side by side: each step of a batch is done for all of its queries before the next one.

A vector holds one document of each query. So bounds are sorted, rows are summed, and lists are ranked if they
are short or need most of their ranks.
"""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow.tables import (
    ALL_MADE,
    AVERAGE,
    AVERAGED_MADE,
    CONDENSED,
    COUNT,
    FOLD,
    FULL,
    GAIN,
    IDEAL_CUTOFF,
    JUDGED,
    LEAVES_OUT,
    NONE_MADE,
    OF_LIST,
    POOL,
    RETURNED,
    SCORED,
    SOURCE,
    TABLE,
    TIES,
    UNCUT,
    Array,
    Documents,
    Plan,
)

from ..compile.llvm import BINS, LANES, SIDE_BY_SIDE
from ..compile.marks import apart, block, inlined, stoppable
from ..vectors.bounds import bounds_of_top, greatest_by_bin
from ..vectors.keeping import fetch, keep_few_from, keep_from_lanes
from ..vectors.side_by_side import average_side_by_side, rank_side_by_side
from ..vectors.summing import COUNTED, gains_of_codes
from .folds import fold_lists
from .gains import count_levels, fill_gains
from .ideals import gains_of_judged, ideal_of_gains, ideals_of_levels, total_of_levels
from .lists import collect, gather, gather_sums
from .memory import TOGETHER, Batch, Lanes, Ranked, Scratch, Work, vectors_of
from .ranking import COUNTING, MANY, bounded_by, keep_all, keep_top, rank_documents
from .sorting import sort_falling
from .sums import fold_rows

_DEEPEST = 24  # up to so many ranks, bins give good bounds of scores
_COMPARED = 8  # cost of comparing a document with a vector; sorting n rows side by side costs n * log2(n)**2
_FETCHED = 2048  # documents of the next queries that are fetched from memory while a batch is scored


@block
def score_queries_of_levels(
    first: int,
    last: int,
    documents: Documents,
    plan: Plan,
    scratch: Scratch,
    work: Work,
    batch: Batch,
    out: Array,
) -> None:
    """Score the queries from `first` to before `last`, by levels; writes `out` (n_rows, n_queries)."""
    # fields are read once: each access copies the hundred words of a tuple, which LLVM has to remove again
    lists, gains, lanes, ranked = plan.lists, plan.gains, batch.lanes, batch.ranked
    out_lists, lengths, ideals, ideal_lengths = batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths
    unjudged, judged = gains.shape[1] - 2, batch.counts[1]
    scored = batch.counts[0] if documents.pool_offsets.shape[0] > 0 else judged
    lanes_are_many = lanes.queries.shape[0] == SIDE_BY_SIDE
    linear = averaged = True
    keeps_order = documents.scores.itemsize == 4  # of tied documents that are ranked side by side
    for v in range(lists.shape[0]):
        linear = linear and is_linear(v, lists)
        averaged = averaged and averages_exactly(v, lists, plan.exact)
    while first < last:
        placed, first = take_queries(
            first, last, documents, gains, plan.totals, plan.assumed, plan.promising, plan.skippable,
            plan.condensing, scored, judged, batch.totals, lanes, out,
        )  # fmt: skip
        # fetched in parts: a processor that waits for some twenty cache lines accepts no more requests
        ahead, quarter = quarter_of_next(first, last, documents)
        fetch(documents.scores, ahead, ahead + quarter)
        keep_of_lanes(
            placed, plan.depth, documents.scores, documents.relevance, lanes,
            scratch.greatest, scratch.bounds, scratch.scores, scratch.kept,
        )  # fmt: skip
        fetch(documents.scores, ahead + quarter, ahead + 2 * quarter)
        rows, all_ranked = 0, False
        if lanes_are_many:
            rows, all_ranked = rows_to_rank(placed, plan.first_wanted, lanes, scored)
        tied_lanes = 0
        if rows > 0:
            tied_lanes = rank_side_by_side(
                scratch.scores, scratch.kept, lanes.kept, placed, rows, unjudged + 1,
                ranked.keys, ranked.codes, ranked.same,
            )  # fmt: skip
            for v in range(lists.shape[0]):
                if not is_linear(v, lists):
                    continue
                own = gains[lists[v, TABLE]]
                if lists[v, FOLD] == GAIN:
                    gains_by_rank(own, rows, tied_lanes != 0, lanes.kept, ranked, out_lists[v], lengths[v])
                else:
                    counts_by_rank(own, rows, lanes.kept, ranked.codes, out_lists[v], lengths[v])
        fetch(documents.scores, ahead + 2 * quarter, ahead + 3 * quarter)
        tied = tied_lanes != 0
        all_made = all_ranked and (averaged or (linear and not tied))
        for lane in range(0 if all_made else placed):
            kept, is_tied = lanes.kept[lane], tied_lanes >> lane & 1 == 1
            is_ranked, made = rows > 0 and kept <= rows, NONE_MADE
            if is_ranked:
                made = AVERAGED_MADE if is_tied else ALL_MADE
            if (made == ALL_MADE and linear) or (made == AVERAGED_MADE and averaged):
                continue
            if is_ranked and (keeps_order or not is_tied):
                is_tied = take_column(ranked, lane, kept, work)
            else:
                is_tied = tied = rank_documents(
                    kept, tied, unjudged + 1, documents.lowest, plan.first_wanted,
                    scratch.scores[lane], scratch.kept[lane], scratch.wanted, work,
                )  # fmt: skip
            gather_lists(
                kept, not is_tied, unjudged, made, gains, lists, plan.exact, work, out_lists, lengths, lane
            )
            fold_lists(
                plan.folds, kept, not is_tied, unjudged, gains, plan, scratch.chances, work, batch, lane
            )
        fetch(documents.scores, ahead + 3 * quarter, ahead + 4 * quarter)
        ideals_of_levels(
            scored, judged, plan.ideals, plan.falling, plan.earning, gains, ideals, ideal_lengths
        )
        fetch(documents.relevance, ahead, ahead + 4 * quarter)
        finish_batch(placed, plan, work, batch, out)


@block
def score_queries_of_values(
    first: int,
    last: int,
    documents: Documents,
    plan: Plan,
    scratch: Scratch,
    work: Work,
    batch: Batch,
    out: Array,
) -> None:
    """As `score_queries_of_levels`, for grades without levels: a document's code is its row in the query."""
    pool_offsets, gains = documents.pool_offsets, scratch.gains
    while first < last:
        lane, tied = 0, False
        while first < last and lane < batch.lanes.queries.shape[0]:
            number = first
            first += 1
            start, stop = rows_of(number, documents)
            n = unjudged = stop - start
            ahead = stop + min(
                n, _FETCHED // SIDE_BY_SIDE
            )  # assumes that the next list is as long as this one
            fetch(documents.relevance, stop, ahead)
            codes = scratch.codes[:n]
            any_unjudged = code_by_row(start, stop, documents, plan, gains, codes)
            all_judged = not any_unjudged and pool_offsets.shape[0] == 0
            ideals_of_values(number, all_judged, codes, documents, plan, scratch, work, batch, lane)
            totals_of_values(number, codes, documents, plan, gains, scratch.values, batch.totals[:, lane])
            has_documents = n > 0
            if pool_offsets.shape[0] > 0:
                has_documents = has_documents or pool_offsets[first] > pool_offsets[number]
            if no_value_gains(plan, batch, lane):
                out[:, number] = np.nan
                continue
            fetch(documents.scores, stop, ahead)
            depth = n if any_unjudged and plan.condensing else min(plan.depth, n)
            batch.lanes.kept[lane] = keep_top(
                codes, documents.scores[start:stop], depth, scratch.scores[lane], scratch.kept[lane]
            )
            kept = batch.lanes.kept[lane]
            tied = rank_documents(
                kept, tied, unjudged + 1, documents.lowest, plan.first_wanted,
                scratch.scores[lane], scratch.kept[lane], scratch.wanted, work,
            )  # fmt: skip
            gather_lists(
                kept, not tied, unjudged, NONE_MADE, gains, plan.lists, plan.exact, work, batch.lists,
                batch.lengths, lane
            )  # fmt: skip
            fold_lists(plan.folds, kept, not tied, unjudged, gains, plan, scratch.chances, work, batch, lane)
            batch.lanes.queries[lane], batch.lanes.has_documents[lane] = number, has_documents
            lane += 1
        finish_batch(lane, plan, work, batch, out)


@inlined
def code_by_row(start: int, stop: int, documents: Documents, plan: Plan, gains: Array, codes: Array) -> bool:
    """Fill the gains and codes of the documents of a query; returns whether any document is unjudged.

    The code of a document is its place in the query. Unjudged documents have the code after the last place.
    """
    n, any_unjudged = stop - start, False
    for i in range(n):
        codes[i] = i
    for table in range(gains.shape[0]):
        fill_gains(documents.relevance[start:stop], table, plan, gains[table])
        gains[table, n] = plan.gains[table, plan.gains.shape[1] - 2]
        gains[table, n + 1] = 0.0
    if documents.is_judged.shape[0] > 0:
        is_judged = documents.is_judged[start:stop]
        for i in range(n):
            if not is_judged[i]:
                any_unjudged = True
                codes[i] = n
    return any_unjudged


@inlined
def ideals_of_values(
    number: int,
    all_judged: bool,
    codes: Array,
    documents: Documents,
    plan: Plan,
    scratch: Scratch,
    work: Work,
    batch: Batch,
    lane: int,
) -> None:
    """Fill the ideals of scored and of judged documents of a query whose grades have no levels."""
    values, n = scratch.values, codes.shape[0]
    for i in range(plan.ideals.shape[0]):
        table, source = plan.ideals[i, TABLE], plan.ideals[i, SOURCE]
        gains, found = scratch.gains[table], values[:0]
        if all_judged and source in (JUDGED, SCORED):
            found = gains[:n]
        elif source == JUDGED:
            found = values[: gains_of_judged(number, table, codes, n, gains, documents, plan, values)]
        elif source == SCORED:
            condensed = plan.ideals[i, LEAVES_OUT] == 1
            found = values[: collect(0, n, condensed, n, gains, codes, values)]
        batch.ideal_lengths[i, lane] = ideal_of_gains(
            found, plan.ideal_depth, values, scratch.kept[lane], work, batch.ideals[i], lane
        )


@inlined
def totals_of_values(
    number: int, codes: Array, documents: Documents, plan: Plan, gains: Array, values: Array, totals: Array
) -> None:
    for i in range(plan.totals.shape[0]):
        table = plan.totals[i]
        size = gains_of_judged(number, table, codes, codes.shape[0], gains[table], documents, plan, values)
        totals[i] = 0.0
        for j in range(size):
            totals[i] += values[j]


@inlined
def finish_batch(placed: int, plan: Plan, work: Work, batch: Batch, out: Array) -> None:
    ideals_of_lists(
        placed, plan.ideals, plan.top, batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths,
        work.group
    )  # fmt: skip
    fold_rows(
        placed, batch.lanes, batch.totals, batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths,
        batch.sums,
        plan.rows, plan.weights, plan.discounts, out,
    )  # fmt: skip


@stoppable
@apart
def take_queries(
    first: int,
    last: int,
    documents: Documents,
    gains: Array,
    summed: Array,
    assumed: Array,
    promising: Array,
    skippable: bool,
    condensing: bool,
    scored: Array,
    judged: Array,
    totals: Array,
    lanes: Lanes,
    out: Array,
) -> tuple[int, int]:
    """Place the next queries in the lanes, and count their documents by level. Queries without a value get
    NaN and no lane.

    Returns how many lanes are used, and the next query.
    """
    unjudged, levels, pool_offsets = gains.shape[1] - 2, documents.levels, documents.pool_offsets
    has_pool = pool_offsets.shape[0] > 0
    lane = 0
    while first < last and lane < lanes.queries.shape[0]:
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
        if summed.shape[0] > 0:
            total_lane(lane, judged, min(levels, unjudged), n_unjudged, gains, summed, assumed, totals)
        if skippable and no_level_gains(levels, scored, judged, lane, promising, totals[:, lane]):
            out[:, number] = np.nan
            continue
        lanes.queries[lane], lanes.starts[lane], lanes.stops[lane] = number, start, stop
        lanes.has_documents[lane], lanes.all_kept[lane] = has_documents, n_unjudged > 0 and condensing
        lane += 1
    return lane, first


@inlined
def rows_of(query: int, documents: Documents) -> tuple[int, int]:
    return documents.offsets[query] - documents.base, documents.offsets[query + 1] - documents.base


@apart
def total_lane(
    lane: int,
    judged: Array,
    levels: int,
    n_unjudged: int,
    gains: Array,
    summed: Array,
    assumed: Array,
    totals: Array,
) -> None:
    for i in range(summed.shape[0]):
        table = summed[i]
        totals[i, lane] = total_of_levels(judged, lane, levels, n_unjudged, gains[table], assumed[table])


@inlined
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


@inlined
def no_value_gains(plan: Plan, batch: Batch, lane: int) -> bool:
    """Whether a query has no value by any row, by the gains of its ideals."""
    if not plan.skippable:
        return False
    for i in range(plan.ideals.shape[0]):
        if batch.ideal_lengths[i, lane] > 0 and batch.ideals[i, 0, lane] > 0.0:
            return False
    return nothing_relevant(batch.totals[:, lane])


@inlined
def nothing_relevant(totals: Array) -> bool:
    counted = 0.0
    for i in range(totals.shape[0]):
        counted += totals[i]
    return counted == 0.0


@block
def quarter_of_next(first: int, last: int, documents: Documents) -> tuple[int, int]:
    """The first document of the next queries to score side by side, and a quarter of them, up to _FETCHED."""
    if first >= last:
        return 0, 0
    start, _ = rows_of(first, documents)
    _, stop = rows_of(min(first + SIDE_BY_SIDE, last) - 1, documents)
    return start, min(stop - start, _FETCHED) // 4


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


@inlined
def is_linear(v: int, lists: Array) -> bool:
    """Whether a list has gains or counts of all documents. Such lists are made side by side."""
    return lists[v, FOLD] in (GAIN, COUNT) and lists[v, CONDENSED] == 0


@inlined
def averages_exactly(v: int, lists: Array, exact: Array) -> bool:
    """Whether a list that is made side by side is also right for tied documents."""
    return (
        is_linear(v, lists)
        and lists[v, FOLD] == GAIN
        and lists[v, TIES] == AVERAGE
        and exact[lists[v, TABLE]]
    )


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


@inlined
def gather_lists(
    ranked: int,
    distinct: bool,
    unjudged: int,
    made: int,
    gains: Array,
    lists: Array,
    exact: Array,
    work: Work,
    out: Array,
    lengths: Array,
    lane: int,
) -> None:
    """Fill the lists of gains and counts of one lane, except those `made` for all queries side by side."""
    for v in range(lists.shape[0]):
        table, ties, condensed = lists[v, TABLE], lists[v, TIES], lists[v, CONDENSED] == 1
        if (made == ALL_MADE and is_linear(v, lists)) or (
            made == AVERAGED_MADE and averages_exactly(v, lists, exact)
        ):
            continue
        if lists[v, FOLD] == GAIN:
            lengths[v, lane] = gather(
                ranked, distinct, ties, condensed, unjudged, gains[table], exact[table], work, out[v], lane
            )
        elif lists[v, FOLD] == COUNT:
            lengths[v, lane] = gather_sums(
                ranked, ties, condensed, unjudged, gains[table], work.codes, work.sizes, work.group, out[v],
                lane
            )  # fmt: skip


@apart
def ideals_of_lists(
    placed: int,
    ideals: Array,
    top: Array,
    lists: Array,
    list_lengths: Array,
    out: Array,
    lengths: Array,
    gains: Array,
) -> None:
    """Fill the ideals that depend on returned documents; the lists and the other ideals are filled before."""
    for i in range(ideals.shape[0]):
        source, cutoff, of_list = ideals[i, SOURCE], ideals[i, IDEAL_CUTOFF], ideals[i, OF_LIST]
        if source not in (RETURNED, FULL):
            continue
        for lane in range(placed):
            length = list_lengths[of_list, lane]
            if source == RETURNED:
                length = min(cutoff, length)
                for rank in range(length):
                    gains[rank] = lists[of_list, rank, lane]
                sort_falling(gains, length)
                for rank in range(length):
                    out[i, rank, lane] = gains[rank]
            else:
                length = length if cutoff == UNCUT else cutoff
                best, pool = top[ideals[i, TABLE]], ideals[i, POOL]
                if np.isnan(best) and lengths[pool, lane] > 0:
                    best = out[pool, 0, lane]
                if np.isnan(best):
                    length = 0
                for rank in range(length):
                    out[i, rank, lane] = best
            lengths[i, lane] = length
