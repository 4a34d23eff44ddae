"""Measures of several intents as tables, their documents, and the working memory of one query."""

from __future__ import annotations

from typing import NamedTuple

from fastndcg.kernels.flow.tables import Array

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
