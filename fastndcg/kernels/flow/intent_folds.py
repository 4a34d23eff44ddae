"""Measures of several intents: rank the documents of a query once, fold each intent over its documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastndcg.kernels.flow.tables import AVERAGE, BEST, GAIN, STOP, UNCUT, WORST, Array

from ..compile.marks import allocating, block, driver, empty, inlined, stoppable
from ..vectors.summing import normalise
from .folds import stop_chances
from .sorting import sort_by_key_stably, sort_falling
from .sums import sum_discounted

# columns of IntentRows.rows; a fold is GAIN, or STOP where each document lowers the worth of later ones to
# the same intent
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
# how the sums of the intents become one value
TOTAL_OF_INTENTS, MEAN_OF_INTENTS, OF_PERFECT, OF_GREEDY, OF_EACH_IDEAL = range(5)


class IntentDocuments(NamedTuple):
    """Documents of queries. Each has entries: its worth to some intents of the query, by rising intent."""

    offsets: Array  # int64 (n_queries + 1,)
    entries: Array  # int64 (n_docs + 1,): entries of each document
    numbers: Array  # int64 (n_entries,): intent of each entry
    worth: Array  # float64 (n_tables, n_entries)


class IntentRows(NamedTuple):
    """Measures as tables."""

    rows: Array  # int64 (n_rows, 9): see the names of columns
    perfect: Array  # float64 (n_rows,): worth of a document that is perfect for an intent
    scale: Array  # float64 (n_rows,): factor of a total
    discounts: Array  # float64 (n_discounts, ranks)


class Buckets(NamedTuple):
    """Entries of a ranking by intent: intent `t` owns `starts[t]:starts[t + 1]`, by rising rank."""

    starts: Array  # int64 (n_intents + 1,)
    ranks: Array  # int64
    entries: Array  # int64


class IntentWork(NamedTuple):
    """Working memory of one query of n documents; rankings hold their numbers, from 0."""

    order: Array  # int64 (n,): documents by falling score
    sizes: Array  # int64 (n,): documents of the tied group of each rank
    firsts: Array  # int64 (n,): first rank of that tied group
    rearranged: Array  # int64 (n,): documents, with those of each tied group in the worst or best order
    values: Array  # float64 (n,): sort keys of `rearranged` within tied groups
    keys: Array  # int64 (n,)
    spare: Array  # int64 (n,)
    spare_keys: Array  # int64 (n,)
    spare_values: Array  # float64 (n,)
    ranked: Buckets  # of `order`
    arranged: Buckets  # of `rearranged`
    judged: Buckets  # of the pool
    greedy: Buckets  # of `ideal_order`
    ideal_order: Array  # int64 (n_pool,): the greedy ideal
    # documents of a kind are worth the same to every intent
    kinds: Array  # int64 (2, n_pool): first document left and last document of each kind
    following: Array  # int64 (n_pool,): the next document of the kind; -1 for none
    weights: Array  # float64 (n_intents,)
    active: Array  # bool (n_intents,): whether the intent has a judged document of worth above 0
    best: Array  # float64 (n_intents,): sum of each intent's own ideal
    going: Array  # float64 (n_intents,): probability that the documents above have not satisfied each intent
    terms: Array  # float64 (n_intents,)
    group: Array  # float64: gains of one tied group
    chances: Array  # float64 (4, ...): probabilities within it


@block
def bucket_entries(order: Array, n: int, first: int, documents: IntentDocuments, buckets: Buckets) -> None:
    """Fill the buckets with entries of the first `n` documents of `order`, whose numbers begin at `first`."""
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
def next_worthy(entry: int, stop: int, worth: Array) -> int:
    while entry < stop and worth[entry] == 0.0:
        entry += 1
    return entry


@block
def compare_entries(one: int, other: int, documents: IntentDocuments, worth: Array) -> int:
    """0 where two documents are worth the same to every intent; else -1 or 1, by comparing their entries."""
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


@inlined
def greedy_order(
    first: int,
    n: int,
    depth: int,
    decaying: bool,
    ordered: bool,
    documents: IntentDocuments,
    worth: Array,
    work: IntentWork,
) -> int:
    """Fill `work.ideal_order` with the greedy ideal; returns how many documents gain something.

    Each rank takes the document that gains most there, given the documents above. Documents of one kind,
    worth the same to every intent, are interchangeable, so kinds are compared, not documents. Of equal gains
    the first document wins where the documents are `ordered`, and otherwise the kind that `compare_entries`
    puts first.
    """
    kinds, following, going, terms = work.kinds, work.following, work.going, work.terms
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
                terms[n_terms] = work.weights[t] * going[t] * worth[e]
                n_terms += 1
            sort_falling(terms, n_terms)  # so that the same terms give the same gain to the last bit
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
        work.ideal_order[placed] = document
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


@inlined
def order_within_ties(
    n: int, best: bool, n_intents: int, first: int, documents: IntentDocuments, worth: Array, work: IntentWork
) -> None:
    """Order the documents of each tied group by their values, greatest first where `best`, least first
    otherwise.

    Documents of equal value that are not worth the same to each intent are ordered by their entries: sums are
    rounded at each addition, and their bits must not depend on the order of rows.
    """
    values, order, spare_values, spare = work.values, work.rearranged, work.spare_values, work.spare
    if best:
        for i in range(n):
            values[i] *= -1.0
    start = 0
    while start < n:
        stop = start + work.sizes[start]
        if stop - start > 1:
            sort_by_key_stably(values[start:stop], order[start:stop], spare_values, spare)
        while start < stop:
            end, alike = start + 1, True
            while end < stop and values[end] == values[start]:
                one, other = first + order[start], first + order[end]
                alike = alike and compare_entries(one, other, documents, worth) == 0
                end += 1
            for t in range(0 if alike else n_intents):  # sorted by the first intent last, so it decides
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
def rank_by_key(keys: Array, work: IntentWork) -> None:
    """Order the documents by rising key, and find the tied groups."""
    start, n = 0, keys.shape[0]
    for i in range(n):
        work.order[i], work.keys[i] = i, keys[i]
    sort_by_key_stably(work.keys, work.order, work.spare_keys, work.spare)
    while start < n:
        stop = start + 1
        while stop < n and work.keys[stop] == work.keys[start]:
            stop += 1
        work.sizes[start:stop], work.firsts[start:stop] = stop - start, start
        start = stop


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
def arrange_ties(
    first: int, n: int, best: bool, documents: IntentDocuments, worth: Array, work: IntentWork
) -> None:
    """Fill `work.arranged` with the worst or best order of ties, for sums divided by each intent's ideal."""
    for rank in range(n):
        document = first + work.order[rank]
        work.values[rank], work.rearranged[rank] = 0.0, work.order[rank]
        for e in range(documents.entries[document], documents.entries[document + 1]):
            t = documents.numbers[e]
            if work.active[t] and work.best[t] > 0.0:
                work.values[rank] += work.weights[t] * worth[e] / work.best[t]
    order_within_ties(n, best, work.weights.shape[0], first, documents, worth, work)
    bucket_entries(work.rearranged, n, first, documents, work.arranged)


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
