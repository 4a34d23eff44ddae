"""Measures of gains, of documents and of the ideal ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastndcg.common.arrays import Float64, Int64, offsets_from
from fastndcg.trec_eval.ranking import UNJUDGED, Ranked, is_whole, log2, ratio, running

Gains = dict[str, float]


class Gained(NamedTuple):
    """Gains of documents by rank, and positive gains of each query's judged documents in falling order."""

    of_documents: Float64
    ideal: Float64
    ideal_query: Int64
    ideal_offsets: Int64

    @property
    def ideal_place(self) -> Int64:
        return np.arange(len(self.ideal)) - self.ideal_offsets[:-1][self.ideal_query]


def _once(compute: Callable[[Ranked, Gains], Any]) -> Callable[[Ranked, Gains], Any]:
    """Compute the function once for a ranking and gains."""

    def compute_once(ranked: Ranked, named: Gains) -> Any:
        key = compute, *sorted(named.items())
        if key not in ranked.known:
            ranked.known[key] = compute(ranked, named)
        return ranked.known[key]

    return compute_once


@_once
def _gains_of_documents(ranked: Ranked, named: Gains) -> Gained:
    """Return gains. A grade is its own gain unless `named` has another; -1 and -2 are unjudged."""
    highest = max(int(ranked.pool.max(initial=0)), int(ranked.grades.max(initial=0)))
    gains = np.maximum(np.arange(UNJUDGED, highest + 1), 0).astype(np.float64)
    for grade, gain in named.items():
        if is_whole(grade) and UNJUDGED <= int(grade) <= highest:
            gains[int(grade) - UNJUDGED] = gain
    levels, of_grade = np.unique(-gains, return_inverse=True)  # faster than to sort pairs
    of_pool = ranked.pool - UNJUDGED
    gaining = gains[of_pool] > 0
    keys = np.sort(ranked.pool_query[gaining] * len(levels) + of_grade[of_pool[gaining]])
    sizes = np.bincount(ranked.pool_query[gaining], minlength=ranked.n_queries)
    query = np.repeat(np.arange(ranked.n_queries), sizes)
    ideal = -levels[keys - query * len(levels)]
    return Gained(gains[ranked.grades - UNJUDGED], ideal, query, offsets_from(sizes))


def _discount(gains: Float64, place: Int64) -> Float64:
    return gains / log2(place + 2)


class Terms(NamedTuple):
    """The terms of a sum, by query and rank - 1."""

    query: Int64
    place: Int64
    values: Float64

    def total(self, ranked: Ranked) -> Float64:
        """Sum the terms of each query."""
        return ranked.total(self.query, self.values)

    def totals(self, ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
        """Sum the terms of each query up to each cutoff."""
        terms, sums = self, {}
        for cutoff in sorted(cutoffs, reverse=True):  # so that a shorter one looks at fewer terms
            kept = terms.place < cutoff
            if not kept.all():
                terms = Terms(terms.query[kept], terms.place[kept], terms.values[kept])
            sums[cutoff] = terms.total(ranked)
        return [sums[cutoff] for cutoff in cutoffs]


@_once
def _discounted(ranked: Ranked, named: Gains) -> tuple[Terms, Terms]:
    """Return discounted gains of documents and of the ideal ranking."""
    gained = _gains_of_documents(ranked, named)
    rows = np.flatnonzero(gained.of_documents)  # adding 0 changes no sum
    place, ideal_place = ranked.place[rows], gained.ideal_place
    return (
        Terms(ranked.query[rows], place, _discount(gained.of_documents[rows], place)),
        Terms(gained.ideal_query, ideal_place, _discount(gained.ideal, ideal_place)),
    )


def dcg(ranked: Ranked, named: Gains) -> Float64:
    gained: Terms = _discounted(ranked, named)[0]
    return gained.total(ranked)


def ideal_dcg(ranked: Ranked, named: Gains) -> Float64:
    ideal: Terms = _discounted(ranked, named)[1]
    return ideal.total(ranked)


def ndcg(ranked: Ranked, named: Gains) -> Float64:
    return ratio(dcg(ranked, named), ideal_dcg(ranked, named))


def ndcg_cut(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    gained, ideal = _discounted(ranked, {})
    return list(map(ratio, gained.totals(ranked, cutoffs), ideal.totals(ranked, cutoffs)))


@_once
def _so_far(ranked: Ranked, named: Gains) -> tuple[Float64, Float64]:
    """Return the DCG up to and including each document, of the ranking and of the ideal ranking."""
    gained = _gains_of_documents(ranked, named)
    return (
        running(_discount(gained.of_documents, ranked.place), ranked.offsets),
        running(_discount(gained.ideal, gained.ideal_place), gained.ideal_offsets),
    )


def _dcg_at(running: Float64, offsets: Int64, query: Int64, ranks: Int64) -> Float64:
    """Return the DCG of the first `ranks` documents of each query, (n,); 0 for no ranks."""
    ranks = np.minimum(ranks, np.diff(offsets)[query])
    padded = np.append(running, 0.0)
    return np.where(ranks > 0, padded[np.where(ranks > 0, offsets[query] + ranks - 1, len(running))], 0.0)


def ndcg_rel(ranked: Ranked, named: Gains) -> Float64:
    gained = _gains_of_documents(ranked, named)
    dcg, ideal = _so_far(ranked, named)
    rows = gained.of_documents > 0
    query, all_queries = ranked.query[rows], np.arange(ranked.n_queries)
    wanted = np.diff(gained.ideal_offsets)
    with np.errstate(divide="ignore", invalid="ignore"):
        ndcg = dcg[rows] / _dcg_at(ideal, gained.ideal_offsets, query, ranked.place[rows] + 1)
        total = ranked.total(query, ndcg)
        dcg_of_all = _dcg_at(dcg, ranked.offsets, all_queries, ranked.returned)
        ideal_of_all = _dcg_at(ideal, gained.ideal_offsets, all_queries, wanted)
        missed = (wanted - np.bincount(query, minlength=ranked.n_queries)).astype(np.float64)
        total += missed * dcg_of_all / ideal_of_all
    return np.where(total > 0, ratio(total, wanted), 0.0)


def rndcg(ranked: Ranked, named: Gains) -> Float64:
    """Average nDCG over the last rank and the ranks before which the ideal gain changes."""
    gained = _gains_of_documents(ranked, named)
    dcg, ideal = _so_far(ranked, named)
    wanted = np.diff(gained.ideal_offsets)
    changes = np.flatnonzero(
        (gained.ideal_query[1:] == gained.ideal_query[:-1]) & (gained.ideal[1:] != gained.ideal[:-1])
    )
    ends = np.flatnonzero(wanted > 0)
    to_the_end = np.flatnonzero((wanted > 0) & (wanted + 1 < ranked.returned))
    query = np.concatenate([gained.ideal_query[changes], ends, to_the_end])
    ranks = np.concatenate([gained.ideal_place[changes] + 1, wanted[ends], ranked.returned[to_the_end]])
    order = np.argsort(query, kind="stable")
    query, ranks = query[order], ranks[order]
    best = _dcg_at(ideal, gained.ideal_offsets, query, np.minimum(ranks, wanted[query]))
    ndcg = _dcg_at(dcg, ranked.offsets, query, ranks) / best
    with np.errstate(invalid="ignore"):
        mean = ranked.total(query, ndcg) / np.bincount(query, minlength=ranked.n_queries)
    return np.where(ranked.relevant > 0, mean, 0.0)


def graded_gain(ranked: Ranked, named: Gains) -> Float64:
    """Divide gains by the logarithm of the gains missed so far. An ideal rank counts at least 1."""
    gained = _gains_of_documents(ranked, named)
    within = ranked.place < np.diff(gained.ideal_offsets)[ranked.query]
    cost = np.ones(len(ranked.place))
    at = gained.ideal_offsets[:-1][ranked.query[within]] + ranked.place[within]
    cost[within] = np.maximum(gained.ideal[at], 1.0)
    missed = 2.0 + running(cost, ranked.offsets) - running(gained.of_documents, ranked.offsets)
    rows = gained.of_documents != 0
    values = ranked.total(ranked.query[rows], gained.of_documents[rows] / log2(missed[rows]))
    return ratio(values, ranked.total(gained.ideal_query, gained.ideal))


def _powers(ranked: Ranked, named: Gains) -> Float64:
    """Compute p^0, p^1, ... by repeated products, up to the length of the longest list."""
    factors = np.full(int(ranked.returned.max(initial=0)) + 1, named.get("p", 0.9))
    factors[0] = 1.0
    return np.multiply.accumulate(factors)


def rbp(ranked: Ranked, named: Gains) -> Float64:
    gained = _scaled_gains(ranked, named)
    weights = _powers(ranked, named)[ranked.place]
    return (1.0 - named.get("p", 0.9)) * ranked.total(ranked.query, gained * weights)


def _scaled_gains(ranked: Ranked, named: Gains) -> Float64:
    """Return gains, scaled to 0 to 1 in queries that have a gain outside of this range.

    trec_eval starts its search for the least and the greatest gain from an uninitialised variable, which was
    0 in all recorded output.
    """
    gains = {int(grade): gain for grade, gain in named.items() if is_whole(grade)}
    highest = np.zeros(ranked.n_queries, np.int64)
    np.maximum.at(highest, ranked.pool_query, ranked.pool)
    tops, of_query = np.unique(highest, return_inverse=True)
    most = max(int(highest.max(initial=0)), int(ranked.grades.max(initial=0)))
    table = np.zeros((len(tops), most - UNJUDGED + 1))
    for row, top in zip(table, tops.tolist(), strict=True):
        of_grade = {grade: float(grade) for grade in range(top + 1)} | gains
        least, greatest = min(0.0, *of_grade.values()), max(0.0, *of_grade.values())
        beyond = least < 0 or greatest > 1
        for grade, gain in of_grade.items():
            if UNJUDGED <= grade < len(row) + UNJUDGED:
                row[grade - UNJUDGED] = (gain - least) / (greatest - least) if beyond else gain
    return table[of_query[ranked.query], ranked.grades - UNJUDGED]


def rbp_resid(ranked: Ranked, named: Gains) -> Float64:
    powers, rows = _powers(ranked, named), ranked.grades < 0
    query = ranked.query[rows]
    total = ranked.total(query, powers[ranked.place[rows]])
    beyond = powers[ranked.returned] + (1 - named.get("p", 0.9)) * total
    return np.where(np.bincount(query, minlength=ranked.n_queries) > 0, beyond, 0.0)
