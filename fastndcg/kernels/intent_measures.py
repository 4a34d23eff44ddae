"""Measures of several intents: rank the documents of a query once, add up each intent over its documents."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.schema import AVERAGE, BEST, GAIN, STOP, UNCUT, WORST, Array

from .compile.decorators import block, driver, empty
from .intent_orders import (
    DEPTH,
    INTENT_CUTOFF,
    INTENT_DISCOUNT,
    INTENT_DIVISOR,
    INTENT_OUT,
    INTENT_TABLE,
    INTENT_TERM,
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
    arrange_ties,
    bucket_entries,
    greedy_order,
    rank_by_key,
)
from .sorting import sort_falling
from .sums import sum_discounted
from .tie_expectations import stop_chances
from .vectors.sums import normalise


@block
def sum_of_intent(
    intent: int, term: int, averaged: bool, cutoff: int, gains: Array, discounts: Array, buckets: Buckets,
    work: IntentWork,
) -> float:  # fmt: skip
    """Discounted sum of the gains of the ranks for one intent; expected over orders of ties if `averaged`."""
    at, stop = buckets.starts[intent], buckets.starts[intent + 1]
    group, chances = work.group, work.chances
    total, going = 0.0, 1.0
    while at < stop:
        rank = buckets.ranks[at]
        first, size = (work.firsts[rank], work.sizes[rank]) if averaged else (rank, 1)
        if first >= cutoff:
            break
        able = 0
        while at < stop and buckets.ranks[at] < first + size:
            gain = gains[buckets.entries[at]]
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
                if term == STOP:
                    going *= 1.0 - group[i]
        elif term == GAIN:
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
def total_of_intents(
    term: int, averaged: bool, divisor: int, cutoff: int, gains: Array, discounts: Array, buckets: Buckets,
    work: IntentWork,
) -> float:  # fmt: skip
    """Weighted total of the sums of the intents, each divided by its ideal for OF_EACH_IDEAL."""
    total = 0.0
    for t in range(work.weights.shape[0]):
        if work.active[t]:
            gained = sum_of_intent(t, term, averaged, cutoff, gains, discounts, buckets, work)
            if divisor == OF_EACH_IDEAL:
                gained = normalise(gained, work.best[t]) if work.best[t] > 0.0 else 0.0
            total += work.weights[t] * gained
    return total


@block
def weigh_intents(row: Array, chances: Array, gains: Array, discounts: Array, work: IntentWork) -> float:
    """Set `work.active` for intents with a judged document that gains, and their ideals where they are asked
    for; returns the sum of their weights.
    """
    whole, judged, group = 0.0, work.judged, work.group
    for t in range(work.weights.shape[0]):
        n, active = 0, False
        for at in range(judged.starts[t], judged.starts[t + 1]):
            group[n] = gains[judged.entries[at]]
            active = active or group[n] > 0.0
            n += 1
        work.active[t], work.best[t] = active, 0.0
        work.weights[t] = chances[t] if row[WEIGHED] == 1 and chances.shape[0] > 0 else 1.0
        if active:
            whole += work.weights[t]
        if active and row[INTENT_DIVISOR] == OF_EACH_IDEAL:
            sort_falling(group, n)
            work.best[t] = sum_discounted(group, min(n, row[INTENT_CUTOFF]), discounts)
    return whole


@block
def score_rows(
    query: int, keys: Array, scored: IntentDocuments, pool: IntentDocuments, ordered: bool, chances: Array,
    plan: IntentRows, work: IntentWork, out: Array,
) -> None:  # fmt: skip
    """Values of one query by every row; NaN where no document of the pool has a gain above 0."""
    first, n = scored.offsets[query], work.order.shape[0]
    pool_first, n_pool = pool.offsets[query], work.ideal_order.shape[0]
    for document in range(n_pool):
        work.ideal_order[document] = document
    rank_by_key(keys[first : first + n], work)
    bucket_entries(work.order, n, first, scored, work.ranked)
    bucket_entries(work.ideal_order, n_pool, pool_first, pool, work.judged)
    last = -1  # last row for which a greedy ideal was built
    for r in range(plan.rows.shape[0]):
        row = plan.rows[r]
        table, term, ties, cutoff = row[INTENT_TABLE], row[INTENT_TERM], row[INTENT_TIES], row[INTENT_CUTOFF]
        divisor, discounts = row[INTENT_DIVISOR], plan.discounts[row[INTENT_DISCOUNT]]
        gains, pool_gains = scored.gains[table], pool.gains[table]
        whole = weigh_intents(row, chances, pool_gains, discounts, work)
        if whole == 0.0:
            out[row[INTENT_OUT], query] = np.nan
            continue
        buckets = work.ranked
        if ties in (WORST, BEST):
            arrange_ties(first, n, ties == BEST, scored, gains, work)
            buckets = work.arranged
        total = total_of_intents(
            term, ties == AVERAGE, divisor, min(cutoff, n), gains, discounts, buckets, work
        )
        value = total * plan.scale[r]
        if divisor in (MEAN_OF_INTENTS, OF_EACH_IDEAL):
            value = total / whole
        elif divisor == OF_PERFECT:
            # the sum of an intent over documents that are all perfect for it
            length, perfect, going = n if cutoff == UNCUT else cutoff, 0.0, 1.0
            for i in range(length):
                perfect += going * plan.perfect[r] * discounts[i]
                if term == STOP:
                    going *= 1.0 - plan.perfect[r]
            value = normalise(total, whole * perfect) if length > 0 else 0.0
        elif divisor == OF_GREEDY:
            other = plan.rows[max(last, 0)]
            alike = table == other[INTENT_TABLE] and term == other[INTENT_TERM]
            if last < 0 or not alike or row[WEIGHED] != other[WEIGHED]:
                placed = greedy_order(
                    pool_first, n_pool, row[DEPTH], term == STOP, ordered, pool, pool_gains, work
                )
                bucket_entries(work.ideal_order, placed, pool_first, pool, work.greedy)
                last = r
            perfect = total_of_intents(term, False, divisor, cutoff, pool_gains, discounts, work.greedy, work)
            value = normalise(total, perfect)
        out[row[INTENT_OUT], query] = value


@driver()
def score_intents(
    start: int, stop: int, keys: Array, scored: IntentDocuments, pool: IntentDocuments, ordered: bool,
    chance_offsets: Array, chances: Array, plan: IntentRows, out: Array,
) -> None:  # fmt: skip
    """Write the values of the queries from `start` to before `stop`; documents are ranked by rising key."""
    for query in range(start, stop):
        n = scored.offsets[query + 1] - scored.offsets[query]
        n_pool = pool.offsets[query + 1] - pool.offsets[query]
        n_intents = n_entries = n_judged = 0
        for documents in (scored, pool):
            begin, end = documents.offsets[query], documents.offsets[query + 1]
            n_entries, n_judged = n_judged, documents.entries[end] - documents.entries[begin]
            for e in range(documents.entries[begin], documents.entries[end]):
                n_intents = max(n_intents, documents.numbers[e] + 1)
        # memory is parts of a few arrays: many take long to allocate and to count references to
        ranks, of_pool = empty((7, n), np.int64), empty((4, n_pool), np.int64)
        starts, active = empty((4, n_intents + 1), np.int64), empty(n_intents, np.bool_)
        ranked, judged = empty((4, n_entries), np.int64), empty((4, n_judged), np.int64)
        of_ranks, of_intents = empty((2, n), np.float64), empty((4, n_intents), np.float64)
        of_groups = empty((5, max(n, n_pool) + 2), np.float64)
        work = IntentWork(
            order=ranks[0],
            sizes=ranks[1],
            firsts=ranks[2],
            rearranged=ranks[3],
            keys=ranks[4],
            spare=ranks[5],
            spare_keys=ranks[6],
            values=of_ranks[0],
            spare_values=of_ranks[1],
            ranked=Buckets(starts[0], ranked[0], ranked[1]),
            arranged=Buckets(starts[1], ranked[2], ranked[3]),
            judged=Buckets(starts[2], judged[0], judged[1]),
            greedy=Buckets(starts[3], judged[2], judged[3]),
            ideal_order=of_pool[0],
            kinds=of_pool[1:3],
            following=of_pool[3],
            weights=of_intents[0],
            best=of_intents[1],
            going=of_intents[2],
            terms=of_intents[3],
            active=active,
            group=of_groups[4],
            chances=of_groups[:4],
        )
        own = chances[chance_offsets[query] :] if chances.shape[0] > 0 else chances
        score_rows(query, keys, scored, pool, ordered, own, plan, work, out)
