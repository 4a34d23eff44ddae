"""The scoring of grades that are not coded as levels: a document's code is its place in the query."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels import schema
from fastndcg.kernels.schema import Array, Documents, Plan

from .accumulation import fill_lists
from .batches import FETCHED, nothing_relevant, rows_of
from .compile.decorators import block
from .compile.llvm import LANES, SIDE_BY_SIDE
from .powers import gain_by
from .ranking import is_bounded, keep_top, rank_documents
from .sorting import sort_falling
from .sums import ideals_of_lists, sum_rows
from .vectors.ranking import rank_distinct, rank_tied
from .vectors.selection import bound_of_top, fetch, keep_values_from
from .workspace import Batch, Scratch, Work


@block
def score_queries_of_values(
    first: int, last: int, documents: Documents, plan: Plan, scratch: Scratch, work: Work, batch: Batch,
    out: Array,
) -> None:  # fmt: skip
    gains, queries, has_pool = scratch.gains, batch.queries, documents.pool_offsets.shape[0] > 0
    while first < last:
        lane, tied = 0, False
        while first < last and lane < queries.numbers.shape[0]:
            number = first
            first += 1
            start, stop = rows_of(number, documents)
            n = unjudged = stop - start
            # the next list is fetched, as if it were as long as this one
            ahead = stop + min(n, FETCHED // SIDE_BY_SIDE)
            fetch(documents.relevance, stop, ahead)
            codes = scratch.codes[:n]
            any_unjudged = code_by_row(start, stop, documents, plan, gains, codes)
            fill_ideals_and_totals(number, any_unjudged, codes, documents, plan, scratch, work, batch, lane)
            has_documents = n > 0
            if has_pool:
                pool = documents.pool_offsets[first] - documents.pool_offsets[number]
                has_documents = has_documents or pool > 0
            if no_value_gains(plan, batch, lane):
                out[:, number] = np.nan
                continue
            fetch(documents.scores, stop, ahead)
            depth = n if any_unjudged and plan.condensing else min(plan.depth, n)
            kept = keep_top(
                codes, documents.scores[start:stop], depth, scratch.scores[lane], scratch.kept[lane]
            )
            tied = rank_documents(kept, tied, unjudged + 1, lane, documents, plan, scratch, work)
            fill_lists(kept, not tied, unjudged, schema.NONE_MADE, gains, plan, scratch, work, batch, lane)
            queries.numbers[lane], queries.has_documents[lane], queries.kept[lane] = (
                number,
                has_documents,
                kept,
            )
            lane += 1
        ideals_of_lists(lane, plan, batch, work.group)
        sum_rows(lane, plan, batch, out)


@block
def code_by_row(start: int, stop: int, documents: Documents, plan: Plan, gains: Array, codes: Array) -> bool:
    """Fill the gains and codes of the documents of a query; returns whether any document is unjudged, and has
    the code after the last place.
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


@block
def fill_gains(relevance: Array, table: int, plan: Plan, gains: Array) -> None:
    kind, threshold = plan.kinds[table], plan.thresholds[table]
    if kind == schema.LINEAR and threshold == -np.inf:
        for i in range(relevance.shape[0]):
            gains[i] = relevance[i]
        return
    for i in range(relevance.shape[0]):
        grade = np.float64(relevance[i])
        if grade < threshold:
            gains[i] = 0.0
        elif kind == schema.LOOKUP:
            gains[i] = plan.gains[table, place_of(grade, plan.grades)]
        else:
            gains[i] = gain_by(kind, grade)


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
def fill_ideals_and_totals(
    number: int, any_unjudged: bool, codes: Array, documents: Documents, plan: Plan, scratch: Scratch,
    work: Work, batch: Batch, lane: int,
) -> None:  # fmt: skip
    """Fill the ideals of scored and of judged documents of a query, and the totals of the judged ones."""
    values, totals, n = scratch.values, batch.totals, codes.shape[0]
    all_judged = not any_unjudged and documents.pool_offsets.shape[0] == 0
    for i in range(plan.ideals.shape[0]):
        table, source = plan.ideals[i, schema.TABLE], plan.ideals[i, schema.SOURCE]
        gains, found = scratch.gains[table], values[:0]
        if all_judged and source in (schema.JUDGED, schema.SCORED):
            found = gains[:n]
        elif source == schema.JUDGED:
            found = values[: gains_of_judged(number, table, codes, gains, documents, plan, values)]
        elif source == schema.SCORED:
            size = 0
            for place in range(n):
                if plan.ideals[i, schema.LEAVES_OUT] == 0 or codes[place] != n:
                    values[size] = gains[codes[place]]
                    size += 1
            found = values[:size]
        batch.ideal_lengths[i, lane] = ideal_of_gains(
            found, plan.ideal_depth, values, scratch.kept[lane], work, batch.ideals[i], lane
        )
    for i in range(plan.totals.shape[0]):
        table = plan.totals[i]
        size = gains_of_judged(number, table, codes, scratch.gains[table], documents, plan, values)
        totals[i, lane] = 0.0
        for j in range(size):
            totals[i, lane] += values[j]


@block
def gains_of_judged(
    query: int, table: int, codes: Array, gains: Array, documents: Documents, plan: Plan, out: Array
) -> int:
    """Gains of judged documents, and of scored ones of assumed grades; returns how many."""
    size, pool_offsets = 0, documents.pool_offsets
    if pool_offsets.shape[0] > 0:
        pool = documents.pool_relevance[
            pool_offsets[query] - documents.pool_base : pool_offsets[query + 1] - documents.pool_base
        ]
        fill_gains(pool, table, plan, out)
        size = pool.shape[0]
    for i in range(codes.shape[0]):
        if codes[i] == codes.shape[0]:
            counts = plan.assumed[table]
        else:
            counts = pool_offsets.shape[0] == 0
        if counts:
            out[size] = gains[codes[i]]
            size += 1
    return size


@block
def ideal_of_gains(
    values: Array, depth: int, gains: Array, spare: Array, work: Work, ideals: Array, lane: int
) -> int:
    """Write the `depth` greatest of `values` to a lane of `ideals`, in falling order; returns how many.
    `gains` and `spare` are scratch memory; `gains` may be the same array as `values`.
    """
    n = values.shape[0]
    if is_bounded(n, depth):
        n = keep_values_from(values, bound_of_top(values, depth), gains)
    else:
        for i in range(n):
            gains[i] = values[i]
    filled = min(n, depth)
    if n > 2 * LANES:
        sort_falling(gains, n)
        for i in range(filled):
            ideals[i, lane] = gains[i]
        return filled
    for i in range(2 * LANES):
        spare[i] = i
    if not rank_distinct(gains, spare, n, -np.inf, work.codes):
        rank_tied(gains, spare, n, -np.inf, work.codes, work.sizes)
    for i in range(filled):
        ideals[i, lane] = gains[work.codes[i]]
    return filled


@block
def no_value_gains(plan: Plan, batch: Batch, lane: int) -> bool:
    """Whether a query has no value by any row, by the gains of its ideals."""
    if not plan.skippable:
        return False
    for i in range(plan.ideals.shape[0]):
        if batch.ideal_lengths[i, lane] > 0 and batch.ideals[i, 0, lane] > 0.0:
            return False
    return nothing_relevant(batch.totals[:, lane])
