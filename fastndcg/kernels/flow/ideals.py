"""Ideal rankings."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow import tables
from fastndcg.kernels.flow.tables import Array, Documents, Plan

from ..compile.llvm import LANES, SIDE_BY_SIDE
from ..compile.marks import apart, block, inlined
from ..vectors.bounds import bound_of_top
from ..vectors.keeping import keep_values_from
from ..vectors.ordering import rank_distinct, rank_tied
from ..vectors.summing import fill_ideals, fill_ideals_of_one
from .gains import fill_gains
from .memory import Batch, Work
from .ranking import is_bounded
from .sorting import sort_falling


@apart
def ideals_of_levels(scored: Array, judged: Array, plan: Plan, batch: Batch) -> None:
    """Fill the ideals of scored and of judged documents for each lane of a batch, from counts by level."""
    ideals, falling, earning, gains = plan.ideals, plan.falling, plan.earning, plan.gains
    out, lengths = batch.ideals, batch.ideal_lengths
    for i in range(ideals.shape[0]):
        table, source = ideals[i, tables.TABLE], ideals[i, tables.SOURCE]
        if source not in (tables.SCORED, tables.JUDGED):
            continue
        left_out = gains.shape[1] - 2 if ideals[i, tables.LEAVES_OUT] == 1 else -1
        counts, depth = scored if source == tables.SCORED else judged, out.shape[1]
        if lengths.shape[1] == SIDE_BY_SIDE:
            fill_ideals(
                counts, falling[table], gains[table], earning[table], left_out, depth, out[i], lengths[i]
            )
        else:
            fill_ideals_of_one(
                counts, falling[table], gains[table], earning[table], left_out, depth, out[i], lengths[i]
            )


@inlined
def ideal_of_gains(
    values: Array, depth: int, gains: Array, spare: Array, work: Work, ideals: Array, lane: int
) -> int:
    """Write the `depth` greatest of `values` to a lane of `ideals`, in falling order; returns how many there
    are.

    `gains` is scratch memory, and may be the same array as `values`.
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
        rank_tied(gains, spare, n, -np.inf, work.codes, work.firsts, work.sizes)
    for i in range(filled):
        ideals[i, lane] = gains[work.codes[i]]
    return filled


@block
def gains_of_judged(
    query: int,
    table: int,
    codes: Array,
    unjudged: int,
    gains: Array,
    documents: Documents,
    plan: Plan,
    out: Array,
) -> int:
    """Gains of judged documents, and of scored ones of assumed grades, without levels; returns how many."""
    size, pool_offsets = 0, documents.pool_offsets
    if pool_offsets.shape[0] > 0:
        pool = documents.pool_relevance[
            pool_offsets[query] - documents.pool_base : pool_offsets[query + 1] - documents.pool_base
        ]
        fill_gains(pool, table, plan, out)
        size = pool.shape[0]
    for i in range(codes.shape[0]):
        if codes[i] == unjudged:
            counts = plan.assumed[table]
        else:
            counts = pool_offsets.shape[0] == 0
        if counts:
            out[size] = gains[codes[i]]
            size += 1
    return size


@inlined
def total_of_levels(
    counts: Array, lane: int, levels: int, n_unjudged: int, gains: Array, assumed: bool
) -> float:
    total = 0.0
    for level in range(levels):
        total += counts[level, lane] * gains[level]
    if assumed and n_unjudged > 0:
        total += n_unjudged * gains[gains.shape[0] - 2]
    return total


@apart
def ideals_of_lists(placed: int, plan: Plan, batch: Batch, gains: Array) -> None:
    """Fill the ideals that depend on returned documents; the lists and the other ideals are filled before."""
    ideals, lists, out, lengths = plan.ideals, batch.lists, batch.ideals, batch.ideal_lengths
    for i in range(ideals.shape[0]):
        source, cutoff, of_list = (
            ideals[i, tables.SOURCE],
            ideals[i, tables.IDEAL_CUTOFF],
            ideals[i, tables.OF_LIST],
        )
        if source not in (tables.RETURNED, tables.FULL):
            continue
        for lane in range(placed):
            length = batch.lengths[of_list, lane]
            if source == tables.RETURNED:
                length = min(cutoff, length)
                for rank in range(length):
                    gains[rank] = lists[of_list, rank, lane]
                sort_falling(gains, length)
                for rank in range(length):
                    out[i, rank, lane] = gains[rank]
            else:
                length = length if cutoff == tables.UNCUT else cutoff
                best, pool = plan.top[ideals[i, tables.TABLE]], ideals[i, tables.POOL]
                if np.isnan(best) and lengths[pool, lane] > 0:
                    best = out[pool, 0, lane]
                if np.isnan(best):
                    length = 0
                for rank in range(length):
                    out[i, rank, lane] = best
            lengths[i, lane] = length
