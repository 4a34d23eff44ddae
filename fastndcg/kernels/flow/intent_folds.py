"""Measures of several intents: rank the documents of a query once, fold each intent over its documents."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow.tables import AVERAGE, BEST, GAIN, STOP, UNCUT, WORST, Array

from ..compile.marks import allocating, block, driver, empty, inlined, stoppable
from ..vectors.summing import normalise
from .expectations import stop_chances
from .intent_orders import arrange_ties, bucket_entries, greedy_order, rank_by_key
from .intent_tables import (
    DEPTH,
    INTENT_CUTOFF,
    INTENT_DISCOUNT,
    INTENT_FOLD,
    INTENT_OUT,
    INTENT_OVER,
    INTENT_TABLE,
    INTENT_TIES,
    MEAN_OF_INTENTS,
    OF_EACH_IDEAL,
    OF_GREEDY,
    OF_PERFECT,
    WEIGHED,
    Buckets,
    IntentDocuments,
    IntentRows,
    IntentWork,
)
from .sorting import sort_falling
from .sums import sum_discounted


@block
def sum_of_intent(
    intent: int,
    fold: int,
    averaged: bool,
    cutoff: int,
    worth: Array,
    discounts: Array,
    sizes: Array,
    firsts: Array,
    buckets: Buckets,
    group: Array,
    chances: Array,
) -> float:
    """Discounted sum of the worth of the ranks to one intent; expected over orders of ties if `averaged`."""
    at, stop = buckets.starts[intent], buckets.starts[intent + 1]
    total, going = 0.0, 1.0
    while at < stop:
        rank = buckets.ranks[at]
        first, size = (firsts[rank], sizes[rank]) if averaged else (rank, 1)
        if first >= cutoff:
            break
        able = 0
        while at < stop and buckets.ranks[at] < first + size:
            gain = worth[buckets.entries[at]]
            if gain > 0.0:
                group[able] = gain
                able += 1
            at += 1
        if able == 0:
            continue
        filled = min(size, cutoff - first)
        if size > 1:
            sort_falling(group, able)
        if able == size and group[0] == group[size - 1]:  # then all orders give the same sum
            for i in range(filled):
                total += going * group[i] * discounts[first + i]
                if fold == STOP:
                    going *= 1.0 - group[i]
        elif fold == GAIN:
            mean = 0.0
            for i in range(able):
                mean += group[i]
            mean /= size
            for i in range(filled):
                total += mean * discounts[first + i]
        else:
            stop_chances(group, able, size, filled, chances)
            for i in range(filled):
                total += going * chances[3, i] * discounts[first + i]
            for i in range(able):
                going *= 1.0 - group[i]
    return total


@block
def ideal_of_intent(
    intent: int, cutoff: int, worth: Array, discounts: Array, buckets: Buckets, group: Array
) -> float:
    """Discounted sum of an intent's gains, greatest first."""
    n = 0
    for at in range(buckets.starts[intent], buckets.starts[intent + 1]):
        group[n] = worth[buckets.entries[at]]
        n += 1
    sort_falling(group, n)
    return sum_discounted(group, min(n, cutoff), discounts)


@block
def perfect_sum(worth: float, fold: int, length: int, discounts: Array) -> float:
    """The sum of an intent over a ranking of documents that are all perfect for it."""
    total, going = 0.0, 1.0
    for i in range(length):
        total += going * worth * discounts[i]
        if fold == STOP:
            going *= 1.0 - worth
    return total


@inlined
def work_of(memory: tuple[Array, ...]) -> IntentWork:
    """Working memory, as parts of a few arrays: many arrays take long to allocate and count references to."""
    ranks, of_ranks, active, of_intents, starts, of_entries, of_judged, of_pool, chances = memory
    return IntentWork(
        order=ranks[0],
        sizes=ranks[1],
        firsts=ranks[2],
        rearranged=ranks[3],
        keys=ranks[4],
        spare=ranks[5],
        spare_keys=ranks[6],
        values=of_ranks[0],
        spare_values=of_ranks[1],
        ranked=Buckets(starts[0], of_entries[0], of_entries[1]),
        arranged=Buckets(starts[1], of_entries[2], of_entries[3]),
        judged=Buckets(starts[2], of_judged[0], of_judged[1]),
        greedy=Buckets(starts[3], of_judged[2], of_judged[3]),
        ideal_order=of_pool[0],
        kinds=of_pool[1:3],
        following=of_pool[3],
        weights=of_intents[0],
        active=active,
        best=of_intents[1],
        going=of_intents[2],
        terms=of_intents[3],
        group=chances[4],
        chances=chances[:4],
    )


@inlined
def weigh_intents(weighed: bool, chances: Array, worth: Array, work: IntentWork) -> float:
    """Set `work.active` for intents with a judged document of worth; returns the sum of their weights."""
    whole = 0.0
    for t in range(work.weights.shape[0]):
        work.active[t] = False
        for at in range(work.judged.starts[t], work.judged.starts[t + 1]):
            if worth[work.judged.entries[at]] > 0.0:
                work.active[t] = True
                break
        work.weights[t] = chances[t] if weighed and chances.shape[0] > 0 else 1.0
        if work.active[t]:
            whole += work.weights[t]
    return whole


@inlined
def total_of_intents(
    fold: int,
    averaged: bool,
    over: int,
    cutoff: int,
    worth: Array,
    discounts: Array,
    buckets: Buckets,
    work: IntentWork,
) -> float:
    """Weighted total of the sums of the intents, each over its intent's ideal if `over` is OF_EACH_IDEAL."""
    total = 0.0
    for t in range(work.weights.shape[0]):
        if work.active[t]:
            gained = sum_of_intent(
                t, fold, averaged, cutoff, worth, discounts, work.sizes, work.firsts, buckets, work.group,
                work.chances
            )  # fmt: skip
            if over == OF_EACH_IDEAL:
                gained = normalise(gained, work.best[t]) if work.best[t] > 0.0 else 0.0
            total += work.weights[t] * gained
    return total


@inlined
def shares_greedy_ideal(row: Array, other: Array) -> bool:
    alike = row[INTENT_TABLE] == other[INTENT_TABLE] and row[INTENT_FOLD] == other[INTENT_FOLD]
    return alike and row[WEIGHED] == other[WEIGHED]


@block
def score_rows(
    query: int,
    keys: Array,
    scored: IntentDocuments,
    pool: IntentDocuments,
    ordered: bool,
    chances: Array,
    plan: IntentRows,
    memory: tuple[Array, ...],
    out: Array,
) -> None:
    """Values of one query by every row; NaN where no document of the pool has a worth above 0."""
    work = work_of(memory)
    first, n, n_intents = scored.offsets[query], work.order.shape[0], work.weights.shape[0]
    pool_first, n_pool = pool.offsets[query], work.ideal_order.shape[0]
    work.best[:] = 0.0
    for document in range(n_pool):
        work.ideal_order[document] = document
    rank_by_key(keys[first : first + n], work)
    bucket_entries(work.order, n, first, scored, work.ranked)
    bucket_entries(work.ideal_order, n_pool, pool_first, pool, work.judged)
    last = -1  # last row for which a greedy ideal was built
    for r in range(plan.rows.shape[0]):
        row = plan.rows[r]
        table, fold, ties, cutoff = row[INTENT_TABLE], row[INTENT_FOLD], row[INTENT_TIES], row[INTENT_CUTOFF]
        over, discounts = row[INTENT_OVER], plan.discounts[row[INTENT_DISCOUNT]]
        worth, pool_worth = scored.worth[table], pool.worth[table]
        whole = weigh_intents(row[WEIGHED] == 1, chances, pool_worth, work)
        if whole == 0.0:
            out[row[INTENT_OUT], query] = np.nan
            continue
        if over == OF_EACH_IDEAL:
            for t in range(n_intents):
                work.best[t] = 0.0
                if work.active[t]:
                    work.best[t] = ideal_of_intent(t, cutoff, pool_worth, discounts, work.judged, work.group)
        buckets = work.ranked
        if ties in (WORST, BEST):
            arrange_ties(first, n, ties == BEST, scored, worth, work)
            buckets = work.arranged
        total = total_of_intents(fold, ties == AVERAGE, over, min(cutoff, n), worth, discounts, buckets, work)
        value = total * plan.scale[r]
        if over in (MEAN_OF_INTENTS, OF_EACH_IDEAL):
            value = total / whole
        elif over == OF_PERFECT:
            length = n if cutoff == UNCUT else cutoff
            perfect = whole * perfect_sum(plan.perfect[r], fold, length, discounts)
            value = normalise(total, perfect) if length > 0 else 0.0
        elif over == OF_GREEDY:
            if last < 0 or not shares_greedy_ideal(plan.rows[last], row):
                placed = greedy_order(
                    pool_first, n_pool, row[DEPTH], fold == STOP, ordered, pool, pool_worth, work
                )
                bucket_entries(work.ideal_order, placed, pool_first, pool, work.greedy)
                last = r
            perfect = total_of_intents(fold, False, over, cutoff, pool_worth, discounts, work.greedy, work)
            value = normalise(total, perfect)
        out[row[INTENT_OUT], query] = value


@stoppable
@allocating
def score_intents_of_query(
    query: int,
    keys: Array,
    scored: IntentDocuments,
    pool: IntentDocuments,
    ordered: bool,
    chance_offsets: Array,
    chances: Array,
    plan: IntentRows,
    out: Array,
) -> None:
    """As `score_rows`, with working memory for the size of the query."""
    first, stop = scored.offsets[query], scored.offsets[query + 1]
    pool_first, pool_stop = pool.offsets[query], pool.offsets[query + 1]
    n_intents = 0
    for side, start, end in ((scored, first, stop), (pool, pool_first, pool_stop)):
        for e in range(side.entries[start], side.entries[end]):
            n_intents = max(n_intents, side.numbers[e] + 1)
    n, n_pool = stop - first, pool_stop - pool_first
    n_entries = scored.entries[stop] - scored.entries[first]
    n_judged = pool.entries[pool_stop] - pool.entries[pool_first]
    memory = (
        empty((7, n), np.int64), empty((2, n), np.float64), empty(n_intents, np.bool_),
        empty((4, n_intents), np.float64),
        empty((4, n_intents + 1), np.int64), empty((4, n_entries), np.int64), empty((4, n_judged), np.int64),
        empty((4, n_pool), np.int64), empty((5, max(n, n_pool) + 2), np.float64),
    )  # fmt: skip
    own = chances[chance_offsets[query] :] if chances.shape[0] > 0 else chances
    score_rows(query, keys, scored, pool, ordered, own, plan, memory, out)


@driver()
def score_intents(
    start: int,
    stop: int,
    keys: Array,
    scored: IntentDocuments,
    pool: IntentDocuments,
    ordered: bool,
    chance_offsets: Array,
    chances: Array,
    plan: IntentRows,
    out: Array,
) -> None:
    """Write the values of the queries from `start` to before `stop`; documents are ranked by rising key."""
    for query in range(start, stop):
        score_intents_of_query(query, keys, scored, pool, ordered, chance_offsets, chances, plan, out)
