"""Takes the next queries of a batch into its lanes, and leaves out those that have no value."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow.tables import (
    Array,
    Documents,
)

from ..compile.llvm import SIDE_BY_SIDE
from ..compile.marks import apart, block, inlined, stoppable
from .gains import count_levels
from .ideals import total_of_levels
from .memory import Lanes

FETCHED = 2048  # documents of the next queries that are fetched from memory while a batch is scored


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
