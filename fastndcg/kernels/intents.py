"""Measures of several intents: a query's documents are ranked once, and each intent is folded over its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastndcg.kernels.tables import AVERAGE, BEST, GAIN, STOP, UNCUT, WORST, Array

from .folds import stop_chances
from .marks import allocating, block, driver, stoppable
from .sorting import sort_by_key_stably, sort_falling
from .sums import discounted
from .vectors.summing import normalised

# columns of IntentRows.rows; a fold is GAIN, or STOP where each document that an intent has seen takes from later ones
(
    INTENT_TABLE,
    INTENT_FOLD,
    INTENT_TIES,
    INTENT_DISCOUNT,
    INTENT_CUTOFF,
    INTENT_OVER,
    INTENT_OUT,
    WEIGHED,
    DEPTH,
) = range(9)
# what the intents' sums become
TOTAL_OF_INTENTS, MEAN_OF_INTENTS, OF_PERFECT, OF_GREEDY, OF_EACH_IDEAL = range(5)


class IntentDocuments(NamedTuple):
    """Documents of queries with their entries: a worth for some of the query's intents, which ascend."""

    offsets: Array  # int64 (n_queries + 1,)
    entries: Array  # int64 (n_docs + 1,): entries of each document
    numbers: Array  # int64 (n_entries,): intent of each entry
    worth: Array  # float64 (n_tables, n_entries)


class IntentRows(NamedTuple):
    """Measures as tables."""

    rows: Array  # int64 (n_rows, 9): see the names of columns
    perfect: Array  # float64 (n_rows,): worth of a document that is perfect for an intent
    scale: Array  # float64 (n_rows,): what a total is multiplied by
    discounts: Array  # float64 (n_discounts, ranks)


class Buckets(NamedTuple):
    """Entries of a ranking by intent: intent `t` owns `starts[t]:starts[t + 1]`, by rising rank."""

    starts: Array  # int64 (n_intents + 1,)
    ranks: Array  # int64
    entries: Array  # int64


@block
def bucket_entries(order: Array, n: int, first: int, documents: IntentDocuments, buckets: Buckets) -> None:
    """Fill the buckets with the entries of the first `n` documents of `order`, whose numbers count from `first`."""
    starts = buckets.starts
    n_intents = starts.shape[0] - 1
    starts[:] = 0
    for rank in range(n):
        document = first + order[rank]
        for e in range(documents.entries[document], documents.entries[document + 1]):
            starts[documents.numbers[e] + 1] += 1
    for t in range(n_intents):
        starts[t + 1] += starts[t]
    for rank in range(n):
        document = first + order[rank]
        for e in range(documents.entries[document], documents.entries[document + 1]):
            t = documents.numbers[e]
            buckets.ranks[starts[t]], buckets.entries[starts[t]] = rank, e
            starts[t] += 1
    for t in range(n_intents, 0, -1):
        starts[t] = starts[t - 1]
    starts[0] = 0


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
    """Discounted sum of what the ranks are worth to one intent, or the expectation of it over the orders of ties."""
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
        if able == size and group[0] == group[size - 1]:  # then no order differs from another
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
    return discounted(group, min(n, cutoff), discounts)


@block
def next_worthy(entry: int, stop: int, worth: Array) -> int:
    while entry < stop and worth[entry] == 0.0:
        entry += 1
    return entry


@block
def compare_entries(one: int, other: int, documents: IntentDocuments, worth: Array) -> int:
    """0 where two documents are worth the same to every intent, else -1 or 1 in an order of their entries."""
    at, stop = documents.entries[one], documents.entries[one + 1]
    of_other, other_stop = documents.entries[other], documents.entries[other + 1]
    while True:
        at, of_other = next_worthy(at, stop, worth), next_worthy(of_other, other_stop, worth)
        if at == stop or of_other == other_stop:
            return int(at == stop) - int(of_other == other_stop)
        if documents.numbers[at] != documents.numbers[of_other]:
            return -1 if documents.numbers[at] < documents.numbers[of_other] else 1
        if worth[at] != worth[of_other]:
            return -1 if worth[at] > worth[of_other] else 1
        at += 1
        of_other += 1


@block
def greedy_order(
    first: int,
    n: int,
    depth: int,
    decaying: bool,
    ordered: bool,
    weights: Array,
    documents: IntentDocuments,
    worth: Array,
    going: Array,
    terms: Array,
    kinds: Array,
    following: Array,
    order: Array,
) -> int:
    """The greedy ideal: on each rank the document that gains most there, given those above; returns how many gain at all.

    Documents of one kind, worth the same to every intent, are interchangeable, so that kinds compete and not documents. Of
    equal gains the document that comes first wins where the documents are `ordered`, and else the kind that comes first in
    an order of their entries. Rows of `kinds`: first document of the kind that is left, and the last one; -1 for none.
    """
    n_kinds = 0
    for document in range(n):
        entry = documents.entries[first + document]
        if (
            next_worthy(entry, documents.entries[first + document + 1], worth)
            == documents.entries[first + document + 1]
        ):
            continue
        following[document] = -1
        kind = 0
        while (
            kind < n_kinds
            and compare_entries(first + kinds[1, kind], first + document, documents, worth) != 0
        ):
            kind += 1
        if kind == n_kinds:
            kinds[0, kind] = document
            n_kinds += 1
        else:
            following[kinds[1, kind]] = document
        kinds[1, kind] = document
    going[:] = 1.0
    placed = 0
    while placed < depth:
        best, most = -1, 0.0
        for kind in range(n_kinds):
            document = kinds[0, kind]
            if document < 0:
                continue
            gain, n_terms = 0.0, 0
            for e in range(documents.entries[first + document], documents.entries[first + document + 1]):
                t = documents.numbers[e]
                terms[n_terms] = weights[t] * going[t] * worth[e]
                n_terms += 1
            sort_falling(terms, n_terms)  # gains of equal terms are equal to the last bit
            for i in range(n_terms):
                gain += terms[i]
            better = best < 0 or gain > most
            if not better and gain == most:
                other = kinds[0, best]
                better = (
                    document < other
                    if ordered
                    else compare_entries(first + document, first + other, documents, worth) < 0
                )
            if better:
                best, most = kind, gain
        if best < 0:
            break
        document = kinds[0, best]
        order[placed] = document
        placed += 1
        kinds[0, best] = following[document]
        if decaying:
            for e in range(documents.entries[first + document], documents.entries[first + document + 1]):
                going[documents.numbers[e]] *= 1.0 - worth[e]
    return placed


@block
def worth_to(intent: int, document: int, documents: IntentDocuments, worth: Array) -> float:
    for e in range(documents.entries[document], documents.entries[document + 1]):
        if documents.numbers[e] == intent:
            return worth[e]
    return 0.0


@block
def order_within_ties(
    n: int, best: bool, n_intents: int, first: int, documents: IntentDocuments, worth: Array, values: Array, sizes: Array,
    order: Array, spare_values: Array, spare: Array,
) -> None:  # fmt: skip
    """Order the documents of each tied group by their values, greatest first where `best`, least first otherwise.

    Those of equal values, which are not worth the same to each intent, stand in an order of their entries: sums are rounded as
    they are made, and their bits may not depend on the order of rows.
    """
    if best:
        for i in range(n):
            values[i] *= -1.0
    start = 0
    while start < n:
        stop = start + sizes[start]
        if stop - start > 1:
            sort_by_key_stably(values[start:stop], order[start:stop], spare_values, spare)
        while start < stop:
            end, alike = start + 1, True
            while end < stop and values[end] == values[start]:
                one, other = first + order[start], first + order[end]
                alike = alike and compare_entries(one, other, documents, worth) == 0
                end += 1
            for t in range(0 if alike else n_intents):  # by the first intent in the end
                for i in range(start, end):
                    values[i] = -worth_to(n_intents - 1 - t, first + order[i], documents, worth)
                sort_by_key_stably(values[start:end], order[start:end], spare_values, spare)
            start = end


@block
def perfect_sum(worth: float, fold: int, length: int, discounts: Array) -> float:
    """The sum of an intent over a ranking of documents that are all perfect for it."""
    total, going = 0.0, 1.0
    for i in range(length):
        total += going * worth * discounts[i]
        if fold == STOP:
            going *= 1.0 - worth
    return total


@allocating
def buckets_for(n_intents: int, n_entries: int) -> Buckets:
    return Buckets(
        np.zeros(n_intents + 1, np.int64), np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
    )


@stoppable
@allocating
def score_intents_of_query(
    query: int,
    keys: Array,
    scored: IntentDocuments,
    pool: IntentDocuments,
    ordered: bool,
    chance_offsets: Array,
    chances_of_intents: Array,
    plan: IntentRows,
    out: Array,
) -> None:
    """Values of one query by every row; NaN where no document of the pool is worth anything to any intent."""
    first, n = scored.offsets[query], scored.offsets[query + 1] - scored.offsets[query]
    pool_first, pool_n = pool.offsets[query], pool.offsets[query + 1] - pool.offsets[query]
    n_intents = 0
    for side, start, stop in ((scored, first, first + n), (pool, pool_first, pool_first + pool_n)):
        for e in range(side.entries[start], side.entries[stop]):
            n_intents = max(n_intents, side.numbers[e] + 1)
    order, spare, falling, spare_keys = (
        np.arange(n),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )
    falling[:] = keys[first : first + n]
    sort_by_key_stably(falling, order, spare_keys, spare)
    sizes, firsts = np.empty(n, np.int64), np.empty(n, np.int64)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and falling[stop] == falling[start]:
            stop += 1
        sizes[start:stop], firsts[start:stop] = stop - start, start
        start = stop
    ranked = buckets_for(n_intents, scored.entries[first + n] - scored.entries[first])
    bucket_entries(order, n, first, scored, ranked)
    judged = buckets_for(n_intents, pool.entries[pool_first + pool_n] - pool.entries[pool_first])
    bucket_entries(np.arange(pool_n), pool_n, pool_first, pool, judged)
    arranged = buckets_for(n_intents, ranked.ranks.shape[0])
    greedy = buckets_for(n_intents, judged.ranks.shape[0])
    most = max(n, pool_n)
    group, chances = np.empty(most + 1), np.empty((4, most + 2))
    weights, active, best = np.ones(n_intents), np.zeros(n_intents, np.bool_), np.zeros(n_intents)
    values, spare_values, rearranged = np.empty(n), np.empty(n), np.empty(n, np.int64)
    kinds, following, ideal_order = (
        np.empty((2, pool_n), np.int64),
        np.empty(pool_n, np.int64),
        np.empty(pool_n, np.int64),
    )
    going, terms = np.empty(n_intents), np.empty(n_intents)
    last = -1  # row that the greedy ideal was made for
    for r in range(plan.rows.shape[0]):
        table, fold, ties, cutoff = (
            plan.rows[r, INTENT_TABLE],
            plan.rows[r, INTENT_FOLD],
            plan.rows[r, INTENT_TIES],
            plan.rows[r, INTENT_CUTOFF],
        )
        over, discounts = plan.rows[r, INTENT_OVER], plan.discounts[plan.rows[r, INTENT_DISCOUNT]]
        worth, pool_worth = scored.worth[table], pool.worth[table]
        whole = 0.0
        for t in range(n_intents):
            active[t] = False
            for at in range(judged.starts[t], judged.starts[t + 1]):
                if pool_worth[judged.entries[at]] > 0.0:
                    active[t] = True
                    break
            weights[t] = 1.0
            if plan.rows[r, WEIGHED] == 1 and chances_of_intents.shape[0] > 0:
                weights[t] = chances_of_intents[chance_offsets[query] + t]
            if active[t]:
                whole += weights[t]
        if whole == 0.0:
            out[plan.rows[r, INTENT_OUT], query] = np.nan
            continue
        if over == OF_EACH_IDEAL:
            for t in range(n_intents):
                best[t] = (
                    ideal_of_intent(t, cutoff, pool_worth, discounts, judged, group) if active[t] else 0.0
                )
        buckets = ranked
        if ties in (WORST, BEST):
            for rank in range(n):
                document = first + order[rank]
                values[rank], rearranged[rank] = 0.0, order[rank]
                for e in range(scored.entries[document], scored.entries[document + 1]):
                    t = scored.numbers[e]
                    if active[t] and best[t] > 0.0:
                        values[rank] += weights[t] * worth[e] / best[t]
            order_within_ties(
                n,
                ties == BEST,
                n_intents,
                first,
                scored,
                worth,
                values,
                sizes,
                rearranged,
                spare_values,
                spare,
            )
            bucket_entries(rearranged, n, first, scored, arranged)
            buckets = arranged
        total = 0.0
        for t in range(n_intents):
            if not active[t]:
                continue
            gained = sum_of_intent(
                t,
                fold,
                ties == AVERAGE,
                min(cutoff, n),
                worth,
                discounts,
                sizes,
                firsts,
                buckets,
                group,
                chances,
            )
            if over == OF_EACH_IDEAL:
                gained = normalised(gained, best[t]) if best[t] > 0.0 else 0.0
            total += weights[t] * gained
        value = total * plan.scale[r]
        if over in (MEAN_OF_INTENTS, OF_EACH_IDEAL):
            value = total / whole
        elif over == OF_PERFECT:
            length = n if cutoff == UNCUT else cutoff
            value = (
                0.0
                if length == 0
                else normalised(total, whole * perfect_sum(plan.perfect[r], fold, length, discounts))
            )
        elif over == OF_GREEDY:
            same = (
                last >= 0 and table == plan.rows[last, INTENT_TABLE] and fold == plan.rows[last, INTENT_FOLD]
            )
            if not (same and plan.rows[last, WEIGHED] == plan.rows[r, WEIGHED]):
                placed = greedy_order(
                    pool_first, pool_n, plan.rows[r, DEPTH], fold == STOP, ordered, weights, pool, pool_worth,
                    going, terms, kinds, following, ideal_order,
                )  # fmt: skip
                bucket_entries(ideal_order, placed, pool_first, pool, greedy)
                last = r
            perfect = 0.0
            for t in range(n_intents):
                if active[t]:
                    perfect += weights[t] * sum_of_intent(
                        t, fold, False, cutoff, pool_worth, discounts, sizes, firsts, greedy, group, chances
                    )
            value = normalised(total, perfect)
        out[plan.rows[r, INTENT_OUT], query] = value


@driver()
def score_intents(
    start: int,
    stop: int,
    keys: Array,
    scored: IntentDocuments,
    pool: IntentDocuments,
    ordered: bool,
    chance_offsets: Array,
    chances_of_intents: Array,
    plan: IntentRows,
    out: Array,
) -> None:
    """Values of the queries from `start` to `stop`; documents by rising key."""
    for query in range(start, stop):
        score_intents_of_query(
            query, keys, scored, pool, ordered, chance_offsets, chances_of_intents, plan, out
        )
