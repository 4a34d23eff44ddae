"""Queries side by side: each step of a batch is done for all of its queries before the next one.

A vector holds one document of each query. So bounds are sorted, rows are summed, and lists are ranked if they
are short or need most of their ranks.
"""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow import tables
from fastndcg.kernels.flow.tables import Array, Documents, Plan

from ..compile.llvm import SIDE_BY_SIDE
from ..compile.marks import block, inlined
from ..vectors.keeping import fetch
from ..vectors.side_by_side import rank_side_by_side
from .folds import fold_lists
from .gains import fill_gains
from .ideals import gains_of_judged, ideal_of_gains, ideals_of_levels, ideals_of_lists
from .lanes import (
    FETCHED,
    keep_of_lanes,
    lists_by_rank,
    nothing_relevant,
    quarter_of_next,
    rows_of,
    rows_to_rank,
    take_column,
    take_queries,
)
from .lists import averages_exactly, collect, gather_lists, is_linear
from .memory import Batch, Scratch, Work
from .ranking import keep_top, rank_documents
from .sums import fold_rows


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
    unjudged, judged = gains.shape[1] - 2, batch.counts[1]
    scored = batch.counts[0] if documents.pool_offsets.shape[0] > 0 else judged
    lanes_are_many = lanes.queries.shape[0] == SIDE_BY_SIDE
    linear = averaged = True
    keeps_order = documents.scores.itemsize == 4  # of tied documents that are ranked side by side
    for v in range(lists.shape[0]):
        linear = linear and is_linear(v, lists)
        averaged = averaged and averages_exactly(v, lists, plan.exact)
    while first < last:
        placed, first = take_queries(first, last, documents, plan, scored, judged, batch, out)
        # fetched in parts: a processor that waits for some twenty cache lines accepts no more requests
        ahead, quarter = quarter_of_next(first, last, documents)
        fetch(documents.scores, ahead, ahead + quarter)
        keep_of_lanes(placed, plan.depth, documents, lanes, scratch)
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
            lists_by_rank(rows, tied_lanes != 0, plan, batch)
        fetch(documents.scores, ahead + 2 * quarter, ahead + 3 * quarter)
        tied = tied_lanes != 0
        all_made = all_ranked and (averaged or (linear and not tied))
        for lane in range(0 if all_made else placed):
            kept, is_tied = lanes.kept[lane], tied_lanes >> lane & 1 == 1
            is_ranked, made = rows > 0 and kept <= rows, tables.NONE_MADE
            if is_ranked:
                made = tables.AVERAGED_MADE if is_tied else tables.ALL_MADE
            if (made == tables.ALL_MADE and linear) or (made == tables.AVERAGED_MADE and averaged):
                continue
            if is_ranked and (keeps_order or not is_tied):
                is_tied = take_column(ranked, lane, kept, work)
            else:
                is_tied = tied = rank_documents(
                    kept, tied, unjudged + 1, lane, documents, plan, scratch, work
                )
            gather_lists(kept, not is_tied, unjudged, made, gains, plan, work, batch, lane)
            fold_lists(
                plan.folds, kept, not is_tied, unjudged, gains, plan, scratch.chances, work, batch, lane
            )
        fetch(documents.scores, ahead + 3 * quarter, ahead + 4 * quarter)
        ideals_of_levels(scored, judged, plan, batch)
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
            # the next list is fetched, as if it were as long as this one
            ahead = stop + min(n, FETCHED // SIDE_BY_SIDE)
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
            tied = rank_documents(kept, tied, unjudged + 1, lane, documents, plan, scratch, work)
            gather_lists(kept, not tied, unjudged, tables.NONE_MADE, gains, plan, work, batch, lane)
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
        table, source = plan.ideals[i, tables.TABLE], plan.ideals[i, tables.SOURCE]
        gains, found = scratch.gains[table], values[:0]
        if all_judged and source in (tables.JUDGED, tables.SCORED):
            found = gains[:n]
        elif source == tables.JUDGED:
            found = values[: gains_of_judged(number, table, codes, n, gains, documents, plan, values)]
        elif source == tables.SCORED:
            condensed = plan.ideals[i, tables.LEAVES_OUT] == 1
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
    ideals_of_lists(placed, plan, batch, work.group)
    fold_rows(placed, plan, batch, out)


@inlined
def no_value_gains(plan: Plan, batch: Batch, lane: int) -> bool:
    """Whether a query has no value by any row, by the gains of its ideals."""
    if not plan.skippable:
        return False
    for i in range(plan.ideals.shape[0]):
        if batch.ideal_lengths[i, lane] > 0 and batch.ideals[i, 0, lane] > 0.0:
            return False
    return nothing_relevant(batch.totals[:, lane])
