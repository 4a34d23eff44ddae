"""Sums over ranks, and their divisors."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow import tables
from fastndcg.kernels.flow.tables import Array, Plan

from ..compile.llvm import SIDE_BY_SIDE
from ..compile.marks import apart, block, inlined
from ..vectors.summing import add_discounted, add_discounted_of_one, normalise, sum_row
from .memory import Batch


@block
def sum_discounted(gains: Array, length: int, discounts: Array) -> float:
    total = 0.0
    for i in range(length):
        total += gains[i] * discounts[i]
    return total


@block
def divide(
    over: int,
    total: float,
    ideal: float,
    cutoff: int,
    shown: int,
    relevant: float,
    weight: float,
    tail: float,
) -> float:
    """The value of a row from its `total`; `over` is the divisor, `tail` the first discount not shown."""
    if over == tables.BY_IDEAL:
        return normalise(total, ideal)
    if over == tables.AS_IS:
        return total
    if over in (tables.SCALED, tables.RESIDUAL):
        return weight * total + tail
    if over in (tables.LEFT, tables.SHARE_LEFT):
        total = shown - total
    if over in (tables.LEFT, tables.POOL_TOTAL):
        return relevant if over == tables.POOL_TOTAL else total
    places = 1.0 * (shown if cutoff == tables.UNCUT or over >= tables.BY_FEWER_RETURNED else cutoff)
    if over == tables.BY_RELEVANT:
        places = relevant
    elif over in (tables.BY_FEWER, tables.BY_FEWER_RETURNED):
        places = min(places, relevant)
    elif over == tables.BY_BOTH:
        total, places = total * total, relevant * max(places, 1.0)
    elif over == tables.WEIGHTED:
        total, places = (1.0 + weight) * total, weight * relevant + places
    return normalise(total, places)


@apart
def fold_rows(placed: int, plan: Plan, batch: Batch, out: Array) -> None:
    """Write the values of all rows for the `placed` queries of a batch: sums of lists and ideals up to the
    cutoff of the row.

    Rows with the same list, discount and ideal continue the sums of the row before.
    """
    rows, weights, discounts, totals = plan.rows, plan.weights, plan.discounts, batch.totals
    lists, lengths, ideals, ideal_lengths = batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths
    cutoffs, sums, summed, stops, values = batch.sums
    queries, has_documents = batch.lanes.queries, batch.lanes.has_documents
    for r in range(rows.shape[0]):
        source, discount, ideal, over = (
            rows[r, tables.LIST],
            rows[r, tables.DISCOUNT],
            rows[r, tables.IDEAL],
            rows[r, tables.OVER],
        )
        anew = (
            r == 0
            or source != rows[r - 1, tables.LIST]
            or ideal != rows[r - 1, tables.IDEAL]
            or discount != rows[r - 1, tables.DISCOUNT]
        )
        if rows[r, tables.CUTOFF] == tables.AT_RELEVANT:
            for lane in range(placed):
                cutoffs[lane] = np.int64(totals[rows[r, tables.TOTAL], lane])
        elif r == 0 or rows[r, tables.CUTOFF] != rows[r - 1, tables.CUTOFF]:
            for lane in range(placed):
                cutoffs[lane] = rows[r, tables.CUTOFF]
        is_ratio = source >= 0 and ideal >= 0 and discount >= 0 and values.shape[0] == SIDE_BY_SIDE
        if is_ratio:
            sum_row(
                placed, lists[source], lengths[source], ideals[ideal], ideal_lengths[ideal],
                discounts[discount],
                cutoffs, anew, stops, summed, sums, values,
            )  # fmt: skip
        else:
            sum_sides(placed, source, discount, ideal, anew, discounts, batch)
        if not (is_ratio and over == tables.BY_IDEAL):
            of_row = 0 if source >= 0 else 1
            for lane in range(placed):
                relevant = totals[rows[r, tables.TOTAL], lane] if rows[r, tables.TOTAL] >= 0 else 0.0
                tail = discounts[discount, stops[0, lane]] if over == tables.RESIDUAL else 0.0
                values[lane] = divide(
                    over, sums[of_row, lane], sums[1, lane], cutoffs[lane], stops[0, lane], relevant,
                    weights[r], tail
                )  # fmt: skip
        if rows[r, tables.UNDEFINED] != tables.NEVER:
            for lane in range(placed):
                if not has_documents[lane]:
                    values[lane] = np.nan
        if rows[r, tables.UNDEFINED] == tables.NO_RELEVANT:
            for lane in range(placed):
                if rows[r, tables.TOTAL] < 0 or totals[rows[r, tables.TOTAL], lane] == 0.0:
                    values[lane] = np.nan
        elif rows[r, tables.UNDEFINED] == tables.NO_PAIR:
            for lane in range(placed):
                if stops[0, lane] == 0:
                    values[lane] = np.nan
        found = out[rows[r, tables.OUT]]
        for lane in range(placed):
            found[queries[lane]] = values[lane]


@apart
def sum_sides(
    placed: int,
    source: int,
    discount: int,
    ideal: int,
    anew: bool,
    discounts: Array,
    batch: Batch,
) -> None:
    """As `sum_row` without division, for lists without an ideal or the reverse, of sums, or of one lane."""
    lists, lengths, ideals, ideal_lengths = batch.lists, batch.lengths, batch.ideals, batch.ideal_lengths
    cutoffs, sums, summed, stops, _ = batch.sums
    stops[:, :] = 0
    if anew:
        sums[:, :] = 0.0
        summed[:, :] = 0
    if source >= 0:
        for lane in range(placed):
            stops[0, lane] = min(cutoffs[lane], lengths[source, lane])
    if discount < 0:  # the list holds sums
        for lane in range(placed):
            stop = stops[0, lane]
            sums[0, lane] = lists[source, stop - 1, lane] if stop > 0 else 0.0
    elif source >= 0:
        add_to_sums(lists[source], discounts[discount], stops[0], summed[0], sums[0])
    if ideal >= 0 and discount >= 0:
        for lane in range(placed):
            stops[1, lane] = min(cutoffs[lane], ideal_lengths[ideal, lane])
        add_to_sums(ideals[ideal], discounts[discount], stops[1], summed[1], sums[1])


@inlined
def add_to_sums(gains: Array, discounts: Array, stops: Array, summed: Array, sums: Array) -> None:
    if sums.shape[0] == SIDE_BY_SIDE:
        add_discounted(gains, discounts, stops, summed, sums)
    else:
        add_discounted_of_one(gains, discounts, stops, summed, sums)
