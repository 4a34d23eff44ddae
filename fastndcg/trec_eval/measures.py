"""The measures of trec_eval: how each is computed, and all in the order in which it prints them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from fastndcg.common.arrays import Float64, Int64, offsets_from
from fastndcg.trec_eval.ranking import (
    UNJUDGED,
    Form,
    Ranked,
    Release,
    is_whole,
    log,
    log2,
    ratio,
    running,
)

Gains = dict[str, float]  # gains of grades that are not the grade itself, and "p" of rbp
Takes = Literal["nothing", "cutoffs", "shares", "numbers", "gains"]
Summed = Literal["mean", "sum", "geometric", "none"]


class Definition(NamedTuple):
    """A measure of trec_eval: its parameters, how it is computed, and how its values are summarised."""

    name: str
    summary: str
    compute: Callable[..., Any]
    takes: Takes = "nothing"
    default: tuple[float, ...] = ()
    summed: Summed = "mean"
    since: Release = 9
    is_standard: bool = True  # one of all_trec
    form: Form | None = "qrels"  # of judgments, as `FORMS` has it; None for any


# ---- of relevant documents ----

_SHARE = 0.00001  # trec_eval's INFAP_EPSILON
LEAST = 0.00001  # smaller values are raised to this for geometric means


def average_precision(ranked: Ranked) -> Float64:
    return ratio(ranked.total(ranked.hit_query, ranked.precision), ranked.relevant)


def map_cut(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    values = []
    for cutoff in cutoffs:
        kept = ranked.hit_place < cutoff
        values.append(ratio(ranked.total(ranked.hit_query[kept], ranked.precision[kept]), ranked.relevant))
    return values


def raised_logarithms(values: Float64) -> Float64:
    return log(np.maximum(values, LEAST))


def preference(ranked: Ranked) -> Float64:
    """Compute bpref, from the number of judged non-relevant documents above each relevant one."""
    above = ranked.count_within(ranked.is_miss)[ranked.is_hit]
    others = np.bincount(ranked.pool_query[ranked.pool < ranked.level], minlength=ranked.n_queries)
    most = ranked.relevant[ranked.hit_query]
    at_most = np.minimum(others, ranked.relevant)[ranked.hit_query]
    values = np.where(above > 0, 1.0 - ratio(np.minimum(above, most), at_most), 1.0)
    return ratio(ranked.total(ranked.hit_query, values), ranked.relevant)


def reciprocal_rank(ranked: Ranked) -> Float64:
    values = np.zeros(ranked.n_queries)
    some = ranked.found > 0
    values[some] = 1.0 / (ranked.hit_place[ranked.hit_offsets[:-1][some]] + 1)
    return values


def inferred(ranked: Ranked) -> Float64:
    above = ranked.so_far - 1
    judged_not = ranked.count_within(ranked.is_miss)[ranked.is_hit]
    pooled = ranked.count_within(ranked.grades == UNJUDGED)[ranked.is_hit]
    place = ranked.hit_place.astype(np.float64)
    in_pool = np.divide(above + judged_not + pooled, place, out=np.zeros(len(place)), where=place > 0)
    share = (above + _SHARE) / (above + judged_not + 2 * _SHARE)
    values = np.where(place == 0, 1.0, 1.0 / (place + 1) + place / (place + 1) * in_pool * share)
    total = ranked.total(ranked.hit_query, values)
    return np.where(ranked.relevant > 0, ratio(total, ranked.relevant), total)


def interpolated(ranked: Ranked, shares: Sequence[float]) -> list[Float64]:
    """Return the highest precision from each recall level on, for levels from the last to the first.

    A level above the one that comes after it, which only 11pt_avg accepts, counts as recall 0.
    """
    with np.errstate(invalid="ignore"):
        whole_list = ranked.found / ranked.returned  # NaN for an empty list, as in trec_eval
    some = ranked.found > 0
    overall = np.where(some, 0.0, whole_list)
    overall[some] = ranked.best_precision[ranked.hit_offsets[:-1][some]]
    reached = ranked.found.copy()
    is_met, is_first = np.ones(ranked.n_queries, np.bool_), np.ones(ranked.n_queries, np.bool_)
    values: list[Float64] = []
    for share in reversed(shares):
        # the hits that a level needs: release 10 rounds, release 9 adds 0.9 and truncates
        exact = share * ranked.relevant
        rounded = np.trunc(exact) + (exact - np.trunc(exact) >= 0.5)
        needed = (exact + 0.9 if ranked.release == 9 else rounded).astype(np.int64)
        beyond = is_first & (needed > ranked.found)
        is_first &= beyond
        is_met &= beyond | ((needed >= 1) & (needed <= reached))
        at = np.where(is_met & ~beyond, ranked.hit_offsets[:-1] + needed - 1, 0)
        best = ranked.best_precision[at] if len(ranked.best_precision) else np.zeros(ranked.n_queries)
        values.append(np.where(beyond, 0.0, np.where(is_met, best, overall)))
        reached = np.where(is_met & ~beyond, needed, reached)
    return values


def eleven_points(ranked: Ranked, shares: Sequence[float]) -> Float64:
    return sum(interpolated(ranked, shares), np.zeros(ranked.n_queries)) / float(len(shares))


def rprec_mult(ranked: Ranked, multiples: Sequence[float]) -> list[Float64]:
    cutoffs = ((multiple * ranked.relevant + 0.9).astype(np.int64) for multiple in multiples)
    return [ratio(ranked.hits_before(cutoff), cutoff) for cutoff in cutoffs]


def unjudged(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    query, place = ranked.query[ranked.grades < 0], ranked.place[ranked.grades < 0]
    return [np.bincount(query[place < cutoff], minlength=ranked.n_queries) / cutoff for cutoff in cutoffs]


def bin_g(ranked: Ranked) -> Float64:
    values = 1.0 / log2(3 + ranked.hit_place - ranked.so_far)
    return ratio(ranked.total(ranked.hit_query, values), ranked.relevant)


def utility(ranked: Ranked, weights: Sequence[float]) -> Float64:
    hits, returned, relevant = ranked.found, ranked.returned, ranked.relevant
    total: Float64 = weights[0] * hits + weights[1] * (returned - hits) + weights[2] * (relevant - hits)
    return total + weights[3] * (ranked.collection + hits - returned - relevant)


def set_f(ranked: Ranked, beta: Sequence[float]) -> Float64:
    precision, recall = ratio(ranked.found, ranked.returned), ratio(ranked.found, ranked.relevant)
    return ratio((beta[0] + 1.0) * precision * recall, beta[0] * precision + recall)


def set_map(ranked: Ranked) -> Float64:
    found, returned = ranked.found.astype(np.float64), ranked.returned.astype(np.float64)
    return ratio(found * ranked.found, returned * ranked.relevant)


def yaap(ranked: Ranked) -> Float64:
    total = ranked.total(ranked.hit_query, ranked.precision)
    return log((1.0 + total) / (1.0 + ranked.relevant - total))


def relstring(ranked: Ranked, length: Sequence[float]) -> list[str]:
    """Return a character for each document: its grade, ">" above 9, "-" outside the pool, "." unjudged."""
    characters = np.frombuffer(b".-0123456789>", np.uint8)[np.minimum(ranked.grades, 10) - UNJUDGED]
    text = characters.tobytes().decode("ascii")
    most = max(int(length[0]), 0)
    return [text[start : min(stop, start + most)] for start, stop in pairwise(ranked.offsets.tolist())]


# ---- of gains ----


class Gained(NamedTuple):
    """Gains of documents by rank, and positive gains of each query's judged documents in descending order."""

    of_documents: Float64
    ideal: Float64
    ideal_query: Int64
    ideal_offsets: Int64

    @property
    def ideal_place(self) -> Int64:
        return np.arange(len(self.ideal)) - self.ideal_offsets[:-1][self.ideal_query]


def _once(compute: Callable[[Ranked, Gains], Any]) -> Callable[[Ranked, Gains], Any]:
    """Compute the function once for a ranking and gains."""

    def compute_once(ranked: Ranked, overrides: Gains) -> Any:
        key = compute, *sorted(overrides.items())
        if key not in ranked.known:
            ranked.known[key] = compute(ranked, overrides)
        return ranked.known[key]

    return compute_once


@_once
def _gains_of_documents(ranked: Ranked, overrides: Gains) -> Gained:
    """Return gains. A grade is its own gain unless `overrides` has another; -1 and -2 are unjudged."""
    highest = max(int(ranked.pool.max(initial=0)), int(ranked.grades.max(initial=0)))
    gains = np.maximum(np.arange(UNJUDGED, highest + 1), 0).astype(np.float64)
    for grade, gain in overrides.items():
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
def _discounted(ranked: Ranked, overrides: Gains) -> tuple[Terms, Terms]:
    """Return discounted gains of documents and of the ideal ranking."""
    gained = _gains_of_documents(ranked, overrides)
    rows = np.flatnonzero(gained.of_documents)  # adding 0 changes no sum
    place, ideal_place = ranked.place[rows], gained.ideal_place
    return (
        Terms(ranked.query[rows], place, _discount(gained.of_documents[rows], place)),
        Terms(gained.ideal_query, ideal_place, _discount(gained.ideal, ideal_place)),
    )


def dcg(ranked: Ranked, overrides: Gains) -> Float64:
    gained: Terms = _discounted(ranked, overrides)[0]
    return gained.total(ranked)


def ideal_dcg(ranked: Ranked, overrides: Gains) -> Float64:
    ideal: Terms = _discounted(ranked, overrides)[1]
    return ideal.total(ranked)


def ndcg(ranked: Ranked, overrides: Gains) -> Float64:
    return ratio(dcg(ranked, overrides), ideal_dcg(ranked, overrides))


def ndcg_cut(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    gained, ideal = _discounted(ranked, {})
    return list(map(ratio, gained.totals(ranked, cutoffs), ideal.totals(ranked, cutoffs)))


@_once
def _so_far(ranked: Ranked, overrides: Gains) -> tuple[Float64, Float64]:
    """Return the DCG up to and including each document, of the ranking and of the ideal ranking."""
    gained = _gains_of_documents(ranked, overrides)
    return (
        running(_discount(gained.of_documents, ranked.place), ranked.offsets),
        running(_discount(gained.ideal, gained.ideal_place), gained.ideal_offsets),
    )


def _dcg_at(running: Float64, offsets: Int64, query: Int64, ranks: Int64) -> Float64:
    """Return the DCG of the first `ranks` documents of each query, (n,); 0 for no ranks."""
    ranks = np.minimum(ranks, np.diff(offsets)[query])
    padded = np.append(running, 0.0)
    return np.where(ranks > 0, padded[np.where(ranks > 0, offsets[query] + ranks - 1, len(running))], 0.0)


def ndcg_rel(ranked: Ranked, overrides: Gains) -> Float64:
    gained = _gains_of_documents(ranked, overrides)
    dcg, ideal = _so_far(ranked, overrides)
    rows = gained.of_documents > 0
    query, all_queries = ranked.query[rows], np.arange(ranked.n_queries)
    n_gaining = np.diff(gained.ideal_offsets)
    with np.errstate(divide="ignore", invalid="ignore"):
        ndcg = dcg[rows] / _dcg_at(ideal, gained.ideal_offsets, query, ranked.place[rows] + 1)
        total = ranked.total(query, ndcg)
        dcg_of_all = _dcg_at(dcg, ranked.offsets, all_queries, ranked.returned)
        ideal_of_all = _dcg_at(ideal, gained.ideal_offsets, all_queries, n_gaining)
        missed = (n_gaining - np.bincount(query, minlength=ranked.n_queries)).astype(np.float64)
        total += missed * dcg_of_all / ideal_of_all
    return np.where(total > 0, ratio(total, n_gaining), 0.0)


def rndcg(ranked: Ranked, overrides: Gains) -> Float64:
    """Average nDCG over the last rank and the ranks before which the ideal gain changes."""
    gained = _gains_of_documents(ranked, overrides)
    dcg, ideal = _so_far(ranked, overrides)
    n_gaining = np.diff(gained.ideal_offsets)
    changes = np.flatnonzero(
        (gained.ideal_query[1:] == gained.ideal_query[:-1]) & (gained.ideal[1:] != gained.ideal[:-1])
    )
    ends = np.flatnonzero(n_gaining > 0)
    to_the_end = np.flatnonzero((n_gaining > 0) & (n_gaining + 1 < ranked.returned))
    query = np.concatenate([gained.ideal_query[changes], ends, to_the_end])
    ranks = np.concatenate([gained.ideal_place[changes] + 1, n_gaining[ends], ranked.returned[to_the_end]])
    order = np.argsort(query, kind="stable")
    query, ranks = query[order], ranks[order]
    best = _dcg_at(ideal, gained.ideal_offsets, query, np.minimum(ranks, n_gaining[query]))
    ndcg = _dcg_at(dcg, ranked.offsets, query, ranks) / best
    with np.errstate(invalid="ignore"):
        mean = ranked.total(query, ndcg) / np.bincount(query, minlength=ranked.n_queries)
    return np.where(ranked.relevant > 0, mean, 0.0)


def graded_gain(ranked: Ranked, overrides: Gains) -> Float64:
    """Divide gains by the logarithm of the gains missed so far. An ideal rank counts at least 1."""
    gained = _gains_of_documents(ranked, overrides)
    within = ranked.place < np.diff(gained.ideal_offsets)[ranked.query]
    cost = np.ones(len(ranked.place))
    at = gained.ideal_offsets[:-1][ranked.query[within]] + ranked.place[within]
    cost[within] = np.maximum(gained.ideal[at], 1.0)
    missed = 2.0 + running(cost, ranked.offsets) - running(gained.of_documents, ranked.offsets)
    rows = gained.of_documents != 0
    values = ranked.total(ranked.query[rows], gained.of_documents[rows] / log2(missed[rows]))
    return ratio(values, ranked.total(gained.ideal_query, gained.ideal))


def _powers(ranked: Ranked, overrides: Gains) -> Float64:
    """Compute p^0, p^1, ... by repeated products, up to the length of the longest list."""
    factors = np.full(int(ranked.returned.max(initial=0)) + 1, overrides.get("p", 0.9))
    factors[0] = 1.0
    return np.multiply.accumulate(factors)


def rbp(ranked: Ranked, overrides: Gains) -> Float64:
    gained = _scaled_gains(ranked, overrides)
    weights = _powers(ranked, overrides)[ranked.place]
    return (1.0 - overrides.get("p", 0.9)) * ranked.total(ranked.query, gained * weights)


def _scaled_gains(ranked: Ranked, overrides: Gains) -> Float64:
    """Return gains, scaled to 0 to 1 in queries that have a gain outside of this range.

    trec_eval starts its search for the least and the greatest gain from an uninitialised variable, which was
    0 in all recorded output.
    """
    gains = {int(grade): gain for grade, gain in overrides.items() if is_whole(grade)}
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


def rbp_resid(ranked: Ranked, overrides: Gains) -> Float64:
    powers, rows = _powers(ranked, overrides), ranked.grades < 0
    query = ranked.query[rows]
    total = ranked.total(query, powers[ranked.place[rows]])
    beyond = powers[ranked.returned] + (1 - overrides.get("p", 0.9)) * total
    return np.where(np.bincount(query, minlength=ranked.n_queries) > 0, beyond, 0.0)


# ---- all ----

_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_FIFTHS = tuple(fifth / 5 for fifth in range(1, 11))
_COUNT: Any = {"summed": "sum"}
_BY_GROUP: Any = {"is_standard": False, "form": "qrels_jg"}
DEFINITIONS = {
    each.name: each
    for each in (
        Definition("runid", "name of the run, from its last line", lambda _: None, summed="none", form=None),
        Definition("num_q", "queries that are averaged over", lambda _: None, **_COUNT, form=None),
        Definition("num_ret", "returned documents", lambda ranked: ranked.returned, **_COUNT),
        Definition("num_rel", "relevant documents", lambda ranked: ranked.relevant, **_COUNT),
        Definition("num_rel_ret", "relevant documents returned", lambda ranked: ranked.found, **_COUNT),
        Definition("map", "mean average precision", average_precision),
        Definition("gm_map", "geometric mean of average precision",
            lambda ranked: raised_logarithms(average_precision(ranked)), summed="geometric"),
        Definition("Rprec", "precision after as many ranks as there are relevant documents",
            lambda ranked: ratio(ranked.hits_before(ranked.relevant), ranked.relevant)),
        Definition("bpref", "binary preference", preference),
        Definition("recip_rank", "reciprocal rank of the first relevant document", reciprocal_rank),
        Definition("iprec_at_recall", "interpolated precision at levels of recall",
            lambda ranked, shares: interpolated(ranked, shares)[::-1], "shares", _TENTHS),
        Definition("P", "precision at cutoffs",
            lambda ranked, cutoffs: [ranked.hits_before(k) / k for k in cutoffs], "cutoffs", _CUTOFFS),
        Definition("relstring", "grades of the first documents, for each query", relstring, "numbers", (10,),
            summed="none"),
        Definition("recall", "recall at cutoffs",
            lambda ranked, cutoffs: [ratio(ranked.hits_before(k), ranked.relevant) for k in cutoffs],
            "cutoffs", _CUTOFFS),
        Definition("infAP", "inferred average precision", inferred),
        Definition("gm_bpref", "geometric mean of binary preference",
            lambda ranked: raised_logarithms(preference(ranked)), summed="geometric"),
        Definition("Rprec_mult", "precision at multiples of the number of relevant documents", rprec_mult,
            "shares", _FIFTHS),
        Definition("utility", "weights of documents returned and relevant, returned, relevant, neither",
            utility, "numbers", (1.0, -1.0, 0.0, 0.0)),
        Definition("11pt_avg", "interpolated precision averaged over levels of recall", eleven_points,
            "numbers", _TENTHS),
        Definition("binG", "gain discounted by what is not relevant above", bin_g),
        Definition("G", "graded gain discounted by what was missed above", graded_gain, "gains"),
        Definition("dcg", "discounted cumulative gain", dcg, "gains", since=10, is_standard=False),
        Definition("ideal_dcg", "discounted cumulative gain of the ideal ranking", ideal_dcg, "gains",
            since=10, is_standard=False),
        Definition("ndcg", "normalised discounted cumulative gain", ndcg, "gains"),
        Definition("ndcg_rel", "nDCG averaged over the ranks of relevant documents", ndcg_rel, "gains"),
        Definition("Rndcg", "nDCG averaged over the ranks at which the ideal gain changes", rndcg,
            "gains"),
        Definition("ndcg_cut", "nDCG at cutoffs", ndcg_cut, "cutoffs", _CUTOFFS),
        Definition("map_cut", "average precision at cutoffs", map_cut, "cutoffs", _CUTOFFS),
        Definition("relative_P", "precision at cutoffs over the greatest possible",
            lambda ranked, cutoffs: [
                ratio(ranked.hits_before(k), np.minimum(ranked.relevant, k)) for k in cutoffs],
            "cutoffs", _CUTOFFS),
        Definition("success", "whether a relevant document stands above cutoffs",
            lambda ranked, cutoffs: [(ranked.hits_before(k) > 0).astype(np.float64) for k in cutoffs],
            "cutoffs", (1, 5, 10)),
        Definition("set_P", "precision of the returned set",
            lambda ranked: ratio(ranked.found, ranked.returned)),
        Definition("set_relative_P", "precision of the returned set over the greatest possible",
            lambda ranked: ratio(ranked.found, np.minimum(ranked.returned, ranked.relevant))),
        Definition("set_recall", "recall of the returned set",
            lambda ranked: ratio(ranked.found, ranked.relevant)),
        Definition("set_map", "precision times recall of the returned set", set_map),
        Definition("set_F", "harmonic mean of precision and recall of the returned set", set_f, "numbers",
            (1,)),
        Definition("num_nonrel_judged_ret", "returned documents judged not relevant",
            lambda ranked: np.bincount(ranked.query[ranked.is_miss], minlength=ranked.n_queries), **_COUNT),
        Definition("map_avgjg", "mean of map by each group of judges", average_precision, **_BY_GROUP),
        Definition("P_avgjg", "mean of P by each group of judges",
            lambda ranked, cutoffs: [ranked.hits_before(k) / k for k in cutoffs], "cutoffs", _CUTOFFS,
            **_BY_GROUP),
        Definition("Rprec_mult_avgjg", "mean of Rprec_mult by each group of judges", rprec_mult, "shares",
            _FIFTHS, **_BY_GROUP),
        Definition("yaap", "log odds of average precision", yaap, is_standard=False),
        Definition("rbp", "rank-biased precision, p=0.9", rbp, "gains", since=10),
        Definition("rbp_resid", "rank-biased precision that unjudged documents could add", rbp_resid,
            "gains", since=10),
        Definition("unj", "share of unjudged documents at cutoffs", unjudged, "cutoffs", (5, 10, 20),
            since=10),
    )
}  # fmt: skip
SETS = {
    "official": [
        "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref",
        "recip_rank",
        "iprec_at_recall", "P",
    ],
    "set": [
        "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "utility", "set_P", "set_recall",
        "set_relative_P", "set_map",
        "set_F",
    ],
    "qrels_jg": ["runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"],
    "all_trec": [each.name for each in DEFINITIONS.values() if each.is_standard],
}  # fmt: skip
