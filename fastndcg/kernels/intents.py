"""Measures of several intents: their tables, orders of a query's documents (by score, within tied groups, the
greedy ideal), and sums over the documents of each intent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastndcg.kernels.schema import AVERAGE, BEST, GAIN, STOP, UNCUT, WORST, Array

from .compile.decorators import block, driver, empty
from .sorting import sort_by_key_stably, sort_falling
from .sums import sum_discounted
from .tie_expectations import stop_chances
from .vectors.sums import normalise

# columns of IntentRows.rows; a term is GAIN, or STOP where each document lowers the gains of later ones for
# the same intent
INTENT_TABLE, INTENT_TERM, INTENT_TIES, INTENT_DISCOUNT = range(4)
INTENT_CUTOFF, INTENT_DIVISOR, INTENT_OUT, WEIGHED, DEPTH = range(4, 9)
# how the sums of the intents become one value
TOTAL_OF_INTENTS, MEAN_OF_INTENTS, OF_PERFECT, OF_GREEDY, OF_EACH_IDEAL = range(5)


class IntentDocuments(NamedTuple):
    """Documents of queries. Each has entries: its gains for some intents of the query, by rising intent."""

    offsets: Array  # int64 (n_queries + 1,)
    entries: Array  # int64 (n_docs + 1,): entries of each document
    numbers: Array  # int64 (n_entries,): intent of each entry
    gains: Array  # float64 (n_tables, n_entries)


class IntentRows(NamedTuple):
    """Measures as tables."""

    rows: Array  # int64 (n_rows, 9): see the names of columns
    perfect: Array  # float64 (n_rows,): gain of a document that is perfect for an intent
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
    # documents of a kind have equal gains for every intent
    kinds: Array  # int64 (2, n_pool): first document left and last document of each kind
    following: Array  # int64 (n_pool,): the next document of the kind; -1 for none
    weights: Array  # float64 (n_intents,)
    active: Array  # bool (n_intents,): whether the intent has a judged document with a gain above 0
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
def next_gaining(entry: int, stop: int, gains: Array) -> int:
    while entry < stop and gains[entry] == 0.0:
        entry += 1
    return entry


@block
def compare_entries(one: int, other: int, documents: IntentDocuments, gains: Array) -> int:
    """0 where two documents have equal gains for every intent; else -1 or 1, by comparing their entries."""
    at, stop = documents.entries[one], documents.entries[one + 1]
    of_other, other_stop = documents.entries[other], documents.entries[other + 1]
    while True:
        at, of_other = next_gaining(at, stop, gains), next_gaining(of_other, other_stop, gains)
        if at == stop or of_other == other_stop:
            return int(at == stop) - int(of_other == other_stop)
        if documents.numbers[at] != documents.numbers[of_other]:
            return -1 if documents.numbers[at] < documents.numbers[of_other] else 1
        if gains[at] != gains[of_other]:
            return -1 if gains[at] > gains[of_other] else 1
        at += 1
        of_other += 1


@block
def greedy_order(
    first: int, n: int, depth: int, decaying: bool, ordered: bool, documents: IntentDocuments, gains: Array,
    work: IntentWork,
) -> int:  # fmt: skip
    """Fill `work.ideal_order` with the greedy ideal; returns how many documents gain something.

    Each rank takes the document that gains most there, given the documents above. Documents of one kind have
    equal gains for every intent, so kinds are compared, not documents. Of equal gains the first document wins
    where the documents are `ordered`, and otherwise the kind that `compare_entries` puts first.
    """
    entries, numbers = documents.entries, documents.numbers
    kinds, following, going, terms = work.kinds, work.following, work.going, work.terms
    n_kinds = 0
    for document in range(n):
        stop = entries[first + document + 1]
        if next_gaining(entries[first + document], stop, gains) == stop:
            continue
        following[document] = -1
        kind = 0
        while kind < n_kinds:
            if compare_entries(first + kinds[1, kind], first + document, documents, gains) == 0:
                break
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
            for e in range(entries[first + document], entries[first + document + 1]):
                terms[n_terms] = work.weights[numbers[e]] * going[numbers[e]] * gains[e]
                n_terms += 1
            sort_falling(terms, n_terms)  # so that the same terms give the same gain to the last bit
            for i in range(n_terms):
                gain += terms[i]
            better = best < 0 or gain > most
            if not better and gain == most:
                other = kinds[0, best]
                if ordered:
                    better = document < other
                else:
                    better = compare_entries(first + document, first + other, documents, gains) < 0
            if better:
                best, most = kind, gain
        if best < 0:
            break
        document = kinds[0, best]
        work.ideal_order[placed] = document
        placed += 1
        kinds[0, best] = following[document]
        if decaying:
            for e in range(entries[first + document], entries[first + document + 1]):
                going[numbers[e]] *= 1.0 - gains[e]
    return placed


@block
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


@block
def arrange_ties(
    first: int, n: int, best: bool, documents: IntentDocuments, gains: Array, work: IntentWork
) -> None:
    """Fill `work.arranged` with the worst or best order of ties, for sums divided by each intent's ideal.

    Documents of equal value whose gains for the intents differ are ordered by their entries: sums are
    rounded at each addition, and their bits must not depend on the order of rows.
    """
    values, order, spare_values, spare = work.values, work.rearranged, work.spare_values, work.spare
    entries, numbers, n_intents = documents.entries, documents.numbers, work.weights.shape[0]
    for rank in range(n):
        document = first + work.order[rank]
        values[rank], order[rank] = 0.0, work.order[rank]
        for e in range(entries[document], entries[document + 1]):
            t = numbers[e]
            if work.active[t] and work.best[t] > 0.0:
                values[rank] += work.weights[t] * gains[e] / work.best[t]
        if best:
            values[rank] *= -1.0
    start = 0
    while start < n:
        stop = start + work.sizes[start]
        if stop - start > 1:
            sort_by_key_stably(values[start:stop], order[start:stop], spare_values, spare)
        while start < stop:
            end, alike = start + 1, True
            while end < stop and values[end] == values[start]:
                one, other = first + order[start], first + order[end]
                alike = alike and compare_entries(one, other, documents, gains) == 0
                end += 1
            for t in range(0 if alike else n_intents):  # sorted by the first intent last, so it decides
                for i in range(start, end):
                    values[i] = 0.0
                    for e in range(entries[first + order[i]], entries[first + order[i] + 1]):
                        if numbers[e] == n_intents - 1 - t:
                            values[i] = -gains[e]
                sort_by_key_stably(values[start:end], order[start:end], spare_values, spare)
            start = end
    bucket_entries(order, n, first, documents, work.arranged)


# ---- sums ----


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
