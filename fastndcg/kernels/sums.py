"""Ideal rankings, sums over ranks, and their divisors."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels import schema
from fastndcg.kernels.schema import Array, Plan

from .compile.decorators import block
from .compile.llvm import SIDE_BY_SIDE
from .sorting import sort_falling
from .vectors.sums import (
    fill_ideals,
    fill_ideals_of_one,
    normalise,
    sum_row,
    sum_row_of_one,
)
from .workspace import Batch

# ---- ideals ----


@block
def ideals_of_levels(scored: Array, judged: Array, plan: Plan, batch: Batch) -> None:
    """Fill the ideals of scored and of judged documents for each lane of a batch, from counts by level."""
    ideals, falling, earning, gains = plan.ideals, plan.falling, plan.earning, plan.gains
    out, lengths = batch.ideals, batch.ideal_lengths
    for i in range(ideals.shape[0]):
        table, source = ideals[i, schema.TABLE], ideals[i, schema.SOURCE]
        if source not in (schema.SCORED, schema.JUDGED):
            continue
        left_out = gains.shape[1] - 2 if ideals[i, schema.LEAVES_OUT] == 1 else -1
        counts, depth = scored if source == schema.SCORED else judged, out.shape[1]
        if lengths.shape[1] == SIDE_BY_SIDE:
            fill_ideals(
                counts, falling[table], gains[table], earning[table], left_out, depth, out[i], lengths[i]
            )
        else:
            fill_ideals_of_one(
                counts, falling[table], gains[table], earning[table], left_out, depth, out[i], lengths[i]
            )


@block
def ideals_of_lists(placed: int, plan: Plan, batch: Batch, gains: Array) -> None:
    """Fill the ideals that depend on returned documents; the lists and the other ideals are filled before."""
    ideals, lists, out, lengths = plan.ideals, batch.lists, batch.ideals, batch.ideal_lengths
    for i in range(ideals.shape[0]):
        row = ideals[i]
        source, cutoff, of_list = row[schema.SOURCE], row[schema.IDEAL_CUTOFF], row[schema.OF_LIST]
        if source not in (schema.RETURNED, schema.FULL):
            continue
        for lane in range(placed):
            length = batch.lengths[of_list, lane]
            if source == schema.RETURNED:
                length = min(cutoff, length)
                for rank in range(length):
                    gains[rank] = lists[of_list, rank, lane]
                sort_falling(gains, length)
                for rank in range(length):
                    out[i, rank, lane] = gains[rank]
            else:
                length = length if cutoff == schema.UNCUT else cutoff
                best, pool = plan.top[row[schema.TABLE]], row[schema.POOL]
                if np.isnan(best) and lengths[pool, lane] > 0:
                    best = out[pool, 0, lane]
                if np.isnan(best):
                    length = 0
                for rank in range(length):
                    out[i, rank, lane] = best
            lengths[i, lane] = length


# ---- sums ----


@block
def sum_discounted(gains: Array, length: int, discounts: Array) -> float:
    total = 0.0
    for i in range(length):
        total += gains[i] * discounts[i]
    return total


@block
def divide(
    divisor: int,
    total: float,
    ideal: float,
    cutoff: int,
    shown: int,
    relevant: float,
    weight: float,
    tail: float,
) -> float:
    """The value of a row from its `total`; `divisor` is the divisor, `tail` the first discount not shown."""
    if divisor == schema.BY_IDEAL:
        return normalise(total, ideal)
    if divisor == schema.AS_IS:
        return total
    if divisor in (schema.SCALED, schema.RESIDUAL):
        return weight * total + tail
    if divisor in (schema.LEFT, schema.SHARE_LEFT):
        total = shown - total
    if divisor in (schema.LEFT, schema.POOL_TOTAL):
        return relevant if divisor == schema.POOL_TOTAL else total
    places = 1.0 * (shown if cutoff == schema.UNCUT or divisor >= schema.BY_FEWER_RETURNED else cutoff)
    if divisor == schema.BY_RELEVANT:
        places = relevant
    elif divisor in (schema.BY_FEWER, schema.BY_FEWER_RETURNED):
        places = min(places, relevant)
    elif divisor == schema.BY_BOTH:
        total, places = total * total, relevant * max(places, 1.0)
    elif divisor == schema.WEIGHTED:
        total, places = (1.0 + weight) * total, weight * relevant + places
    return normalise(total, places)


@block
def sum_rows(placed: int, plan: Plan, batch: Batch, out: Array) -> None:
    """Write the values of all rows for the `placed` queries of a batch: sums up to cutoffs.
    Rows with the same list, discount and ideal continue the sums of the row before.
    """
    rows, discounts = plan.rows, plan.discounts
    totals, lists, ideals = batch.totals, batch.lists, batch.ideals
    own = batch.sums
    cutoffs, sums, summed, stops, values = own.cutoffs, own.sums, own.summed, own.stops, own.values
    for r in range(rows.shape[0]):
        row, before = rows[r], rows[max(r - 1, 0)]
        source, discount, ideal = row[schema.LIST], row[schema.DISCOUNT], row[schema.IDEAL]
        divisor, cutoff, total = row[schema.DIVISOR], row[schema.CUTOFF], row[schema.TOTAL]
        anew = r == 0 or source != before[schema.LIST] or ideal != before[schema.IDEAL]
        anew = anew or discount != before[schema.DISCOUNT]
        if cutoff == schema.AT_RELEVANT:
            for lane in range(placed):
                cutoffs[lane] = np.int64(totals[total, lane])
        elif r == 0 or cutoff != before[schema.CUTOFF]:
            for lane in range(placed):
                cutoffs[lane] = cutoff
        if discount < 0:  # the list holds sums
            for lane in range(placed):
                stop = min(cutoffs[lane], batch.lengths[source, lane]) if source >= 0 else 0
                stops[0, lane], sums[0, lane] = stop, lists[source, stop - 1, lane] if stop > 0 else 0.0
        else:
            # a side that the row does not have has no ranks
            one, other, sides = max(source, 0), max(ideal, 0), (source >= 0) + 2 * (ideal >= 0)
            if values.shape[0] == SIDE_BY_SIDE:
                sum_row(
                    placed, sides, lists[one], batch.lengths[one], ideals[other], batch.ideal_lengths[other],
                    discounts[discount], cutoffs, anew, stops, summed, sums, values,
                )  # fmt: skip
            else:
                sum_row_of_one(
                    placed, sides, lists[one], batch.lengths[one], ideals[other], batch.ideal_lengths[other],
                    discounts[discount], cutoffs, anew, stops, summed, sums, values,
                )  # fmt: skip
        if discount < 0 or source < 0 or divisor != schema.BY_IDEAL:
            of_row = 0 if source >= 0 else 1
            for lane in range(placed):
                relevant = totals[total, lane] if total >= 0 else 0.0
                tail = discounts[discount, stops[0, lane]] if divisor == schema.RESIDUAL else 0.0
                values[lane] = divide(
                    divisor, sums[of_row, lane], sums[1, lane], cutoffs[lane], stops[0, lane], relevant,
                    plan.weights[r], tail,
                )  # fmt: skip
        undefined = row[schema.UNDEFINED]
        if undefined != schema.NEVER:
            for lane in range(placed):
                if (
                    not batch.queries.has_documents[lane]
                    or (undefined == schema.NO_RELEVANT and (total < 0 or totals[total, lane] == 0.0))
                    or (undefined == schema.NO_PAIR and stops[0, lane] == 0)
                ):
                    values[lane] = np.nan
        for lane in range(placed):
            out[row[schema.OUT], batch.queries.numbers[lane]] = values[lane]
