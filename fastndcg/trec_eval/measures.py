"""The measures of trec_eval: how each is computed, in the order in which it prints them; and their names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from fastndcg.common.arrays import Float64, Int64, offsets_from
from fastndcg.errors import MeasureError, suggest
from fastndcg.trec_eval.ranking import UNJUDGED, Ranked, Release, is_whole, log, log2, ratio, running

Gains = dict[str, float]  # gains of grades that are not the grade itself, and "p" of rbp
Takes = Literal["nothing", "cutoffs", "shares", "numbers", "gains"]
Summed = Literal["mean", "sum", "geometric", "none"]


class Definition(NamedTuple):
    """A measure of trec_eval: how it is computed, its parameters, and how its values are summarised.

    `compute` takes rankings alone, with each cutoff, with all parameters, or, of "gains", a `Gained`.
    """

    name: str
    summary: str
    compute: Callable[..., Any]
    takes: Takes = "nothing"
    default: tuple[float, ...] = ()
    summed: Summed = "mean"
    since: Release = 9
    is_standard: bool = True  # one of all_trec


# ---- of relevant documents ----

_SHARE = 0.00001  # trec_eval's INFAP_EPSILON
LEAST = 0.00001  # smaller values are raised to this for geometric means


def average_precision(ranked: Ranked) -> Float64:
    return ratio(ranked.total(ranked.hit_query, ranked.precision), ranked.relevant)


def map_cut(ranked: Ranked, cutoff: int) -> Float64:
    kept = ranked.hit_place < cutoff
    return ratio(ranked.total(ranked.hit_query[kept], ranked.precision[kept]), ranked.relevant)


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
    in_pool = ratio(above + judged_not + pooled, place)
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


def unjudged(ranked: Ranked, cutoff: int) -> Float64:
    counts = np.bincount(
        ranked.query[(ranked.grades < 0) & (ranked.place < cutoff)], minlength=ranked.n_queries
    )
    return counts / cutoff


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
    hits, returned = ranked.found.astype(np.float64), ranked.returned.astype(np.float64)
    return ratio(hits * ranked.found, returned * ranked.relevant)


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


class Gained:
    """Gains of ranked documents. A grade is its own gain unless `overrides` has another; -1 and -2 have none.

    `ideal` are the positive gains of each query's judged documents in descending order.
    """

    def __init__(self, ranked: Ranked, overrides: Gains) -> None:
        self.ranked, self.overrides = ranked, overrides
        highest = max(int(ranked.pool.max(initial=0)), int(ranked.grades.max(initial=0)))
        gains = np.maximum(np.arange(UNJUDGED, highest + 1), 0).astype(np.float64)
        for grade, gain in overrides.items():
            if is_whole(grade) and UNJUDGED <= int(grade) <= highest:
                gains[int(grade) - UNJUDGED] = gain
        levels, of_grade = np.unique(-gains, return_inverse=True)  # faster than to sort pairs
        of_pool = ranked.pool - UNJUDGED
        gaining = gains[of_pool] > 0
        keys = np.sort(ranked.pool_query[gaining] * len(levels) + of_grade[of_pool[gaining]])
        self.of_documents: Float64 = gains[ranked.grades - UNJUDGED]
        self.n_ideal = np.bincount(ranked.pool_query[gaining], minlength=ranked.n_queries)
        self.ideal_query = np.repeat(np.arange(ranked.n_queries), self.n_ideal)
        self.ideal: Float64 = -levels[keys - self.ideal_query * len(levels)]
        self.ideal_offsets = offsets_from(self.n_ideal)
        self.ideal_place = np.arange(len(self.ideal)) - self.ideal_offsets[:-1][self.ideal_query]

    @cached_property
    def terms(self) -> list[tuple[Int64, Int64, Float64]]:
        """The query, the rank - 1 and the discounted gain of documents, and of the ideal ranking."""
        rows = np.flatnonzero(self.of_documents)  # adding 0 changes no sum
        place = self.ranked.place[rows]
        return [
            (self.ranked.query[rows], place, self.of_documents[rows] / log2(place + 2)),
            (self.ideal_query, self.ideal_place, self.ideal / log2(self.ideal_place + 2)),
        ]

    def dcg(self, *, ideal: bool = False, cutoff: int | None = None) -> Float64:
        query, place, values = self.terms[ideal]
        kept = slice(None) if cutoff is None else place < cutoff
        return self.ranked.total(query[kept], values[kept])

    @cached_property
    def so_far(self) -> tuple[Float64, Float64]:
        """The DCG up to and including each document, of the ranking and of the ideal ranking."""
        of_documents = self.of_documents / log2(self.ranked.place + 2)
        return running(of_documents, self.ranked.offsets), running(self.terms[1][2], self.ideal_offsets)


def gained(ranked: Ranked, overrides: Gains) -> Gained:
    """The gains of a ranking, made once for several measures."""
    key = tuple(sorted(overrides.items()))
    if key not in ranked.known:
        ranked.known[key] = Gained(ranked, overrides)
    return ranked.known[key]  # type: ignore[no-any-return]


def ndcg_cut(ranked: Ranked, cutoff: int) -> Float64:
    gained_documents = gained(ranked, {})
    return ratio(gained_documents.dcg(cutoff=cutoff), gained_documents.dcg(ideal=True, cutoff=cutoff))


def _dcg_at(running: Float64, offsets: Int64, query: Int64, ranks: Int64) -> Float64:
    """Return the DCG of the first `ranks` documents of each query, (n,); 0 for no ranks."""
    ranks = np.minimum(ranks, np.diff(offsets)[query])
    padded = np.append(running, 0.0)
    return np.where(ranks > 0, padded[np.where(ranks > 0, offsets[query] + ranks - 1, len(running))], 0.0)


def ndcg_rel(gained: Gained) -> Float64:
    ranked, (dcg, ideal) = gained.ranked, gained.so_far
    rows = gained.of_documents > 0
    query, all_queries = ranked.query[rows], np.arange(ranked.n_queries)
    with np.errstate(divide="ignore", invalid="ignore"):
        ndcg = dcg[rows] / _dcg_at(ideal, gained.ideal_offsets, query, ranked.place[rows] + 1)
        total = ranked.total(query, ndcg)
        dcg_of_all = _dcg_at(dcg, ranked.offsets, all_queries, ranked.returned)
        ideal_of_all = _dcg_at(ideal, gained.ideal_offsets, all_queries, gained.n_ideal)
        missed = (gained.n_ideal - np.bincount(query, minlength=ranked.n_queries)).astype(np.float64)
        total += missed * dcg_of_all / ideal_of_all
    return np.where(total > 0, ratio(total, gained.n_ideal), 0.0)


def rndcg(gained: Gained) -> Float64:
    """Average nDCG over the last rank and the ranks before which the ideal gain changes."""
    ranked, (dcg, ideal) = gained.ranked, gained.so_far
    changes = np.flatnonzero(
        (gained.ideal_query[1:] == gained.ideal_query[:-1]) & (gained.ideal[1:] != gained.ideal[:-1])
    )
    ends = np.flatnonzero(gained.n_ideal > 0)
    to_the_end = np.flatnonzero((gained.n_ideal > 0) & (gained.n_ideal + 1 < ranked.returned))
    query = np.concatenate([gained.ideal_query[changes], ends, to_the_end])
    ranks = np.concatenate(
        [gained.ideal_place[changes] + 1, gained.n_ideal[ends], ranked.returned[to_the_end]]
    )
    order = np.argsort(query, kind="stable")
    query, ranks = query[order], ranks[order]
    best = _dcg_at(ideal, gained.ideal_offsets, query, np.minimum(ranks, gained.n_ideal[query]))
    ndcg = _dcg_at(dcg, ranked.offsets, query, ranks) / best
    with np.errstate(invalid="ignore"):
        mean = ranked.total(query, ndcg) / np.bincount(query, minlength=ranked.n_queries)
    return np.where(ranked.relevant > 0, mean, 0.0)


def graded_gain(gained: Gained) -> Float64:
    """Divide gains by the logarithm of the gains missed so far. An ideal rank counts at least 1."""
    ranked = gained.ranked
    within = ranked.place < gained.n_ideal[ranked.query]
    cost = np.ones(len(ranked.place))
    at = gained.ideal_offsets[:-1][ranked.query[within]] + ranked.place[within]
    cost[within] = np.maximum(gained.ideal[at], 1.0)
    missed = 2.0 + running(cost, ranked.offsets) - running(gained.of_documents, ranked.offsets)
    rows = gained.of_documents != 0
    values = ranked.total(ranked.query[rows], gained.of_documents[rows] / log2(missed[rows]))
    return ratio(values, ranked.total(gained.ideal_query, gained.ideal))


def _powers(gained: Gained) -> tuple[float, Float64]:
    """Return p, and p^0, p^1, ... by repeated products, up to the length of the longest list."""
    p = gained.overrides.get("p", 0.9)
    factors = np.full(int(gained.ranked.returned.max(initial=0)) + 1, p)
    factors[0] = 1.0
    return p, np.multiply.accumulate(factors)


def rbp(gained: Gained) -> Float64:
    """Sum gains, scaled to 0 to 1 in queries that have a gain outside of this range.

    trec_eval starts its search for the least and the greatest gain from an uninitialised variable, which was
    0 in all recorded output.
    """
    ranked, (p, powers) = gained.ranked, _powers(gained)
    gains = {int(grade): gain for grade, gain in gained.overrides.items() if is_whole(grade)}
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
    scaled = table[of_query[ranked.query], ranked.grades - UNJUDGED]
    return (1.0 - p) * ranked.total(ranked.query, scaled * powers[ranked.place])


def rbp_resid(gained: Gained) -> Float64:
    ranked, (p, powers) = gained.ranked, _powers(gained)
    rows = ranked.grades < 0
    query = ranked.query[rows]
    beyond = powers[ranked.returned] + (1 - p) * ranked.total(query, powers[ranked.place[rows]])
    return np.where(np.bincount(query, minlength=ranked.n_queries) > 0, beyond, 0.0)


# ---- all ----

_CUTOFFS = ("cutoffs", (5, 10, 15, 20, 30, 100, 200, 500, 1000))
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_FIFTHS = tuple(fifth / 5 for fifth in range(1, 11))
_SUM: Any = ("nothing", (), "sum")
_ROWS: list[Any] = [
    ("runid", "name of the run, from its last line", lambda _: None, "nothing", (), "none"),
    ("num_q", "queries that are averaged over", lambda _: None, *_SUM),
    ("num_ret", "returned documents", lambda r: r.returned, *_SUM),
    ("num_rel", "relevant documents", lambda r: r.relevant, *_SUM),
    ("num_rel_ret", "relevant documents returned", lambda r: r.found, *_SUM),
    ("map", "mean average precision", average_precision),
    ("gm_map", "geometric mean of average precision", lambda r: raised_logarithms(average_precision(r)),
        "nothing", (), "geometric"),
    ("Rprec", "precision after as many ranks as there are relevant documents",
        lambda r: ratio(r.hits_before(r.relevant), r.relevant)),
    ("bpref", "binary preference", preference),
    ("recip_rank", "reciprocal rank of the first relevant document", reciprocal_rank),
    ("iprec_at_recall", "interpolated precision at levels of recall",
        lambda r, shares: interpolated(r, shares)[::-1], "shares", _TENTHS),
    ("P", "precision at cutoffs", lambda r, k: r.hits_before(k) / k, *_CUTOFFS),
    ("relstring", "grades of the first documents, for each query", relstring, "numbers", (10,), "none"),
    ("recall", "recall at cutoffs", lambda r, k: ratio(r.hits_before(k), r.relevant), *_CUTOFFS),
    ("infAP", "inferred average precision", inferred),
    ("gm_bpref", "geometric mean of binary preference", lambda r: raised_logarithms(preference(r)),
        "nothing", (), "geometric"),
    ("Rprec_mult", "precision at multiples of the number of relevant documents", rprec_mult, "shares",
        _FIFTHS),
    ("utility", "weights of documents returned and relevant, returned, relevant, neither", utility,
        "numbers", (1.0, -1.0, 0.0, 0.0)),
    ("11pt_avg", "interpolated precision averaged over levels of recall", eleven_points, "numbers", _TENTHS),
    ("binG", "gain discounted by what is not relevant above", bin_g),
    ("G", "graded gain discounted by what was missed above", graded_gain, "gains"),
    ("dcg", "discounted cumulative gain", Gained.dcg, "gains", (), "mean", 10, False),
    ("ideal_dcg", "discounted cumulative gain of the ideal ranking", lambda g: g.dcg(ideal=True), "gains", (),
        "mean", 10, False),
    ("ndcg", "normalised discounted cumulative gain", lambda g: ratio(g.dcg(), g.dcg(ideal=True)),
        "gains"),
    ("ndcg_rel", "nDCG averaged over the ranks of relevant documents", ndcg_rel, "gains"),
    ("Rndcg", "nDCG averaged over the ranks at which the ideal gain changes", rndcg, "gains"),
    ("ndcg_cut", "nDCG at cutoffs", ndcg_cut, *_CUTOFFS),
    ("map_cut", "average precision at cutoffs", map_cut, *_CUTOFFS),
    ("relative_P", "precision at cutoffs over the greatest possible",
        lambda r, k: ratio(r.hits_before(k), np.minimum(r.relevant, k)), *_CUTOFFS),
    ("success", "whether a relevant document stands above cutoffs",
        lambda r, k: (r.hits_before(k) > 0).astype(np.float64), "cutoffs", (1, 5, 10)),
    ("set_P", "precision of the returned set", lambda r: ratio(r.found, r.returned)),
    ("set_relative_P", "precision of the returned set over the greatest possible",
        lambda r: ratio(r.found, np.minimum(r.returned, r.relevant))),
    ("set_recall", "recall of the returned set", lambda r: ratio(r.found, r.relevant)),
    ("set_map", "precision times recall of the returned set", set_map),
    ("set_F", "harmonic mean of precision and recall of the returned set", set_f, "numbers", (1,)),
    ("num_nonrel_judged_ret", "returned documents judged not relevant",
        lambda r: np.bincount(r.query[r.is_miss], minlength=r.n_queries), *_SUM),
    ("yaap", "log odds of average precision", yaap, "nothing", (), "mean", 9, False),
    ("rbp", "rank-biased precision, p=0.9", rbp, "gains", (), "mean", 10),
    ("rbp_resid", "rank-biased precision that unjudged documents could add", rbp_resid, "gains", (),
        "mean", 10),
    ("unj", "share of unjudged documents at cutoffs", unjudged, "cutoffs", (5, 10, 20), "mean", 10),
]  # fmt: skip
DEFINITIONS = {row[0]: Definition(*row) for row in _ROWS}
SETS = {
    "official": [*DEFINITIONS][:12],
    "set": [*[*DEFINITIONS][:5], "utility", "set_P", "set_recall", "set_relative_P", "set_map", "set_F"],
    "all_trec": [each.name for each in DEFINITIONS.values() if each.is_standard],
}


# ---- names, as after trec_eval's -m ----


class Request(NamedTuple):
    """A measure with its parameters, and the name of each of its values."""

    definition: Definition
    parameters: Any
    names: list[str]

    def values(self, ranked: Ranked) -> list[Any]:
        """Return the values of all queries for each name: arrays, strings, or None."""
        compute, takes, parameters = self.definition.compute, self.definition.takes, self.parameters
        if takes == "cutoffs":
            return [compute(ranked, cutoff) for cutoff in parameters]
        if takes == "shares":
            return compute(ranked, parameters)  # type: ignore[no-any-return]
        if takes == "gains":
            return [compute(gained(ranked, parameters))]
        return [compute(ranked) if takes == "nothing" else compute(ranked, parameters)]


def read_names(texts: Sequence[str], release: Release = 10) -> tuple[list[Request], list[str]]:
    """Return measures in the order of the output, and notes about texts without effect.

    Each text is a name, or a name, a point and parameters separated by commas, as after trec_eval's -m. If a
    measure is named twice, its first parameters count, as in trec_eval.

    >>> [each.names for each in read_names(["ndcg_cut.10,5", "map"])[0]]
    [['map'], ['ndcg_cut_5', 'ndcg_cut_10']]

    Raise `MeasureError` if trec_eval or this package does not have a name or parameter.
    """
    chosen: dict[str, str | None] = {}  # None without a point
    notes = []
    known = {name: each for name, each in DEFINITIONS.items() if each.since <= release}
    for text in texts or ["official"]:
        name, point, parameters = text.partition(".")
        if name in SETS:
            for each in SETS[name]:
                chosen.setdefault(each, None)
            notes += [f"{text}: a set of measures takes no parameters; they have no effect"] * bool(point)
        elif name not in known:
            advice = " trec_eval itself computes measures of preferences, with -R prefs." * ("prefs" in name)
            raise MeasureError(
                f'trec_eval {release} has no measure "{name}".{suggest(name, [*known, *SETS])}{advice} '
                "`fastndcg trec_eval --measures` lists all names."
            )
        elif point and chosen.get(name) is not None:
            notes.append(f"{text}: {name} has the parameters {chosen[name]} already; these have no effect")
        elif point or name not in chosen:
            chosen[name] = parameters if point else None
    return [_with_parameters(known[name], chosen[name]) for name in known if name in chosen], notes


def _with_parameters(definition: Definition, text: str | None) -> Request:
    name, takes = definition.name, definition.takes
    written = name if text is None else f"{name}_{text}"
    try:
        if takes == "gains":
            return Request(definition, {} if text is None else _gains_of(name, text), [written])
        values = list(definition.default) if text is None else list(map(_number, text.split(",")))
        if takes == "nothing" and text is None:
            return Request(definition, None, [name])
        if takes == "numbers" and (len(values) == len(definition.default) or name == "11pt_avg"):
            return Request(definition, values, [written])
        values = sorted(map(int, values)) if takes == "cutoffs" else sorted(values)
        least = {"shares": -math.inf, "cutoffs": 1}.get(takes, math.inf)
        if min(values) < least or len(set(values)) < len(values):
            raise ValueError
    except ValueError:
        default = ",".join(f"{value:g}" for value in definition.default[:4])
        example = {"gains": f"{name}.1=3.5,2=9", "nothing": name}.get(takes, f"{name}.{default}")
        raise MeasureError(f'{name} got the parameters "{text}"; expected for example {example}') from None
    form = "" if takes == "cutoffs" else ".2f"
    return Request(definition, values, [f"{name}_{value:{form}}" for value in values])


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _gains_of(name: str, text: str) -> Gains:
    gains: Gains = {}
    for pair in text.split(","):
        key, _, value = pair.partition("=")
        if not is_whole(key) and not (key == "p" and name.startswith("rbp")):
            raise ValueError
        gains.setdefault(key if key == "p" else str(int(key)), _number(value))
    return gains
