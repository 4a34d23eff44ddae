"""Measures of several intents as tables, and orders of their documents: by score, within tied groups, and the
greedy ideal.
"""

from __future__ import annotations

from typing import NamedTuple

from fastndcg.kernels.schema import Array

from .compile.decorators import block
from .sorting import sort_by_key_stably, sort_falling

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
