"""Print what trec_eval prints, byte for byte: its measures, in its order, with its means and its rounding.

The package's own measures agree with trec_eval to 1e-12. That is not enough here: the last bit of a sum
decides whether the mean 0.09375 is printed as 0.0937 or 0.0938. So sums are added in the order of trec_eval's
loops, document by document and query by query, as `np.bincount` and `np.cumsum` add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrays import offsets_from, runs_of
from fastndcg.common.arrow_types import array_of, column_of
from fastndcg.errors import InputError, MeasureError, SourceError, suggest
from fastndcg.sources.formats import CSV, TABLE, TREC
from fastndcg.sources.joins import join
from fastndcg.sources.opening import path_of, report_progress
from fastndcg.sources.sides import Side, name_of
from fastndcg.sources.text_sides import format_of_side, text_side

if TYPE_CHECKING:
    from fastndcg.common.progress import Progress
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.typing import Path as PathLike

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Release = Literal[9, 10]

OUTSIDE, UNJUDGED = -1, -2  # grades of documents outside the pool, and of unjudged documents in it
_LEAST = 0.00001  # smaller values are raised to this for geometric means
_SHARE = 0.00001  # trec_eval's INFAP_EPSILON
_BLOCK = 1000  # queries that are printed at a time


# ---- rankings as trec_eval sees them ----


class Ranked:
    """Ranked documents of all queries, as arrays over documents and arrays over queries."""

    def __init__(
        self, offsets: Int64, grades: Int64, pool_offsets: Int64, pool: Int64, level: int, collection: int
    ) -> None:
        self.offsets, self.grades, self.pool_offsets, self.pool = offsets, grades, pool_offsets, pool
        self.level, self.collection = level, collection
        self.n_queries = len(offsets) - 1
        self.returned = np.diff(offsets)
        self.query = np.repeat(np.arange(self.n_queries), self.returned)
        self.place = np.arange(len(grades)) - offsets[:-1][self.query]  # rank - 1
        self.is_hit: Bools = grades >= level
        self.hit_query, self.hit_place = self.query[self.is_hit], self.place[self.is_hit]
        self.found = np.bincount(self.hit_query, minlength=self.n_queries)
        self.hit_offsets = offsets_from(self.found)
        pool_query = np.repeat(np.arange(self.n_queries), np.diff(pool_offsets))
        self.pool_query = pool_query
        self.relevant = np.bincount(pool_query[pool >= level], minlength=self.n_queries)
        self.known: dict[tuple[Any, ...], Any] = {}  # values that several measures use, see `_once`

    @cached_property
    def so_far(self) -> Int64:
        """The number of hits up to and including each hit, (n_hits,)."""
        before: Int64 = self.hit_offsets[:-1][self.hit_query]
        return np.arange(1, len(before) + 1) - before

    @cached_property
    def precision(self) -> Float64:
        """Precision at the rank of each hit, (n_hits,)."""
        return self.so_far / (self.hit_place + 1)

    @cached_property
    def best_precision(self) -> Float64:
        """The highest precision from each hit on, (n_hits,)."""
        values, codes = np.unique(self.precision, return_inverse=True)
        # keys of later queries are smaller, so the running maximum from the end restarts at each query
        keys = codes + (self.n_queries - self.hit_query) * len(values)
        best = np.maximum.accumulate(keys[::-1])[::-1] - (self.n_queries - self.hit_query) * len(values)
        return values[best]

    def count_within(self, of_documents: Bools) -> Int64:
        """Count the marked documents of a query up to and including each document."""
        counts = offsets_from(of_documents)
        within: Int64 = counts[1:] - counts[self.offsets[:-1]][self.query]
        return within

    def total(self, query: Int64, values: Float64) -> Float64:
        """Sum the values of each query in their order."""
        sums: Float64 = np.bincount(query, weights=values, minlength=self.n_queries).astype(np.float64)
        return sums

    def hits_before(self, cutoff: int | Int64) -> Int64:
        before = self.hit_place < (cutoff if isinstance(cutoff, int) else cutoff[self.hit_query])
        return np.bincount(self.hit_query[before], minlength=self.n_queries)


def _ratio(numerator: npt.NDArray[Any], denominator: npt.NDArray[Any]) -> Float64:
    """Divide; 0 where the divisor is 0."""
    out: Float64 = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


def _log2(values: npt.NDArray[Any]) -> Float64:
    """Return the C library's logarithms; NumPy's differ in the last bit."""
    if values.dtype.kind == "i" and len(values) and values.min() > 0 and values.max() <= len(values):
        distinct, places = np.arange(1, values.max() + 1), values - 1
    else:
        distinct, places = np.unique(values, return_inverse=True)
    logarithms = [
        math.log2(value) if value > 0 else -math.inf if value == 0 else math.nan
        for value in distinct.tolist()
    ]
    table: Float64 = np.array(logarithms, np.float64)
    taken: Float64 = table[places]
    return taken


def _log(values: Float64) -> Float64:
    return np.array([math.log(value) for value in values.tolist()], np.float64)


def _running(values: Float64, offsets: Int64) -> Float64:
    """Return running sums of values within each query."""
    if (values == np.rint(values)).all() and np.abs(values).sum() < 1 << 53:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        within: Float64 = sums[1:] - np.repeat(sums[offsets[:-1]], np.diff(offsets))
        return within
    out = np.empty(len(values))
    for start, stop in pairwise(offsets.tolist()):
        np.cumsum(values[start:stop], out=out[start:stop])
    return out


# ---- gains, of documents and of the ideal ranking ----


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
        if _is_whole(grade) and UNJUDGED <= int(grade) <= highest:
            gains[int(grade) - UNJUDGED] = gain
    levels, of_grade = np.unique(-gains, return_inverse=True)  # faster than to sort pairs
    of_pool = ranked.pool - UNJUDGED
    worth = gains[of_pool] > 0
    keys = np.sort(ranked.pool_query[worth] * len(levels) + of_grade[of_pool[worth]])
    query, level = np.divmod(keys, len(levels))
    sizes = np.bincount(query, minlength=ranked.n_queries)
    offsets = offsets_from(sizes)
    return Gained(gains[ranked.grades - UNJUDGED], -levels[level], query, offsets)


def _discount(gains: Float64, place: Int64) -> Float64:
    return gains / _log2(place + 2)


def _dcg(ranked: Ranked, named: Gains) -> Float64:
    gained = _gains_of_documents(ranked, named)
    rows = np.flatnonzero(gained.of_documents)  # adding 0 changes no sum
    return ranked.total(ranked.query[rows], _discount(gained.of_documents[rows], ranked.place[rows]))


def _ideal_dcg(ranked: Ranked, named: Gains) -> Float64:
    gained = _gains_of_documents(ranked, named)
    return ranked.total(gained.ideal_query, _discount(gained.ideal, gained.ideal_place))


def _ndcg(ranked: Ranked, named: Gains) -> Float64:
    return _ratio(_dcg(ranked, named), _ideal_dcg(ranked, named))


def _ndcg_cut(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    gained = _gains_of_documents(ranked, {})
    rows = np.flatnonzero(gained.of_documents)  # adding 0 changes no sum
    query, place = ranked.query[rows], ranked.place[rows]
    gain = _discount(gained.of_documents[rows], place)
    ideal = _discount(gained.ideal, gained.ideal_place)
    values = []
    for cutoff in cutoffs:
        kept, kept_ideal = place < cutoff, gained.ideal_place < cutoff
        dcg = ranked.total(query[kept], gain[kept])
        values.append(_ratio(dcg, ranked.total(gained.ideal_query[kept_ideal], ideal[kept_ideal])))
    return values


@_once
def _so_far(ranked: Ranked, named: Gains) -> tuple[Float64, Float64]:
    """Return the DCG up to and including each document, of the ranking and of the ideal ranking."""
    gained = _gains_of_documents(ranked, named)
    return (
        _running(_discount(gained.of_documents, ranked.place), ranked.offsets),
        _running(_discount(gained.ideal, gained.ideal_place), gained.ideal_offsets),
    )


def _dcg_at(running: Float64, offsets: Int64, query: Int64, ranks: Int64) -> Float64:
    """Return the DCG of the first `ranks` documents of each query, (n,); 0 for no ranks."""
    ranks = np.minimum(ranks, np.diff(offsets)[query])
    padded = np.append(running, 0.0)
    return np.where(ranks > 0, padded[np.where(ranks > 0, offsets[query] + ranks - 1, len(running))], 0.0)


def _ndcg_rel(ranked: Ranked, named: Gains) -> Float64:
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
    return np.where(total > 0, _ratio(total, wanted), 0.0)


def _rndcg(ranked: Ranked, named: Gains) -> Float64:
    """Average nDCG over the last rank and the ranks before which the ideal gain changes."""
    gained = _gains_of_documents(ranked, named)
    dcg, ideal = _so_far(ranked, named)
    wanted = np.diff(gained.ideal_offsets)
    changes = np.flatnonzero(
        (gained.ideal_query[1:] == gained.ideal_query[:-1]) & (gained.ideal[1:] != gained.ideal[:-1])
    )
    ends, to_the_end = (
        np.flatnonzero(wanted > 0),
        np.flatnonzero((wanted > 0) & (wanted + 1 < ranked.returned)),
    )
    query = np.concatenate([gained.ideal_query[changes], ends, to_the_end])
    ranks = np.concatenate([gained.ideal_place[changes] + 1, wanted[ends], ranked.returned[to_the_end]])
    order = np.lexsort((np.arange(len(query)), query))
    query, ranks = query[order], ranks[order]
    ndcg = _dcg_at(dcg, ranked.offsets, query, ranks) / _dcg_at(
        ideal, gained.ideal_offsets, query, np.minimum(ranks, wanted[query])
    )
    with np.errstate(invalid="ignore"):
        mean = ranked.total(query, ndcg) / np.bincount(query, minlength=ranked.n_queries)
    return np.where(ranked.relevant > 0, mean, 0.0)


def _g(ranked: Ranked, named: Gains) -> Float64:
    """Divide gains by the logarithm of the gains missed so far. An ideal rank counts at least 1."""
    gained = _gains_of_documents(ranked, named)
    within = ranked.place < np.diff(gained.ideal_offsets)[ranked.query]
    cost = np.ones(len(ranked.place))
    at = gained.ideal_offsets[:-1][ranked.query[within]] + ranked.place[within]
    cost[within] = np.maximum(gained.ideal[at], 1.0)
    missed = 2.0 + _running(cost, ranked.offsets) - _running(gained.of_documents, ranked.offsets)
    rows = gained.of_documents != 0
    values = ranked.total(ranked.query[rows], gained.of_documents[rows] / _log2(missed[rows]))
    return _ratio(values, ranked.total(gained.ideal_query, gained.ideal))


def _powers(ranked: Ranked, named: Gains) -> Float64:
    """Compute p^0, p^1, ... by repeated products, up to the length of the longest list."""
    factors = np.full(int(ranked.returned.max(initial=0)) + 1, named.get("p", 0.9))
    factors[0] = 1.0
    return np.multiply.accumulate(factors)


def _rbp(ranked: Ranked, named: Gains) -> Float64:
    gained = _scaled_gains(ranked, named)
    weights = _powers(ranked, named)[ranked.place]
    return (1.0 - named.get("p", 0.9)) * ranked.total(ranked.query, gained * weights)


def _scaled_gains(ranked: Ranked, named: Gains) -> Float64:
    """Return gains, scaled to 0 to 1 in queries that have a gain outside of this range.

    trec_eval starts its search for the least and the greatest gain from an uninitialised variable, which was
    0 in all recorded output.
    """
    gains = {int(grade): gain for grade, gain in named.items() if _is_whole(grade)}
    highest = np.zeros(ranked.n_queries, np.int64)
    np.maximum.at(highest, ranked.pool_query, ranked.pool)
    tops, of_query = np.unique(highest, return_inverse=True)
    table = np.zeros(
        (len(tops), max(int(highest.max(initial=0)), int(ranked.grades.max(initial=0))) - UNJUDGED + 1)
    )
    for row, top in zip(table, tops.tolist(), strict=True):
        of_grade = {grade: float(grade) for grade in range(top + 1)} | gains
        least, greatest = min(0.0, *of_grade.values()), max(0.0, *of_grade.values())
        beyond = least < 0 or greatest > 1
        for grade, gain in of_grade.items():
            if UNJUDGED <= grade < len(row) + UNJUDGED:
                row[grade - UNJUDGED] = (gain - least) / (greatest - least) if beyond else gain
    return table[of_query[ranked.query], ranked.grades - UNJUDGED]


def _rbp_resid(ranked: Ranked, named: Gains) -> Float64:
    powers, rows = _powers(ranked, named), ranked.grades < 0
    query = ranked.query[rows]
    beyond = powers[ranked.returned] + (1 - named.get("p", 0.9)) * ranked.total(
        query, powers[ranked.place[rows]]
    )
    return np.where(np.bincount(query, minlength=ranked.n_queries) > 0, beyond, 0.0)


# ---- measures of relevant documents ----


def _average_precision(ranked: Ranked) -> Float64:
    return _ratio(ranked.total(ranked.hit_query, ranked.precision), ranked.relevant)


def _map_cut(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    values = []
    for cutoff in cutoffs:
        kept = ranked.hit_place < cutoff
        values.append(_ratio(ranked.total(ranked.hit_query[kept], ranked.precision[kept]), ranked.relevant))
    return values


def _raised_logarithms(values: Float64) -> Float64:
    return _log(np.maximum(values, _LEAST))


def _r_precision(ranked: Ranked) -> Float64:
    return _ratio(ranked.hits_before(ranked.relevant), ranked.relevant)


def _preference(ranked: Ranked) -> Float64:
    """Compute bpref, from the number of judged non-relevant documents above each relevant one."""
    judged_not = (ranked.grades >= 0) & ~ranked.is_hit
    above = ranked.count_within(judged_not)[ranked.is_hit]
    relevant = ranked.relevant
    others = np.bincount(ranked.pool_query[ranked.pool < ranked.level], minlength=ranked.n_queries)
    most, at_most = relevant[ranked.hit_query], np.minimum(others, relevant)[ranked.hit_query]
    values = np.where(above > 0, 1.0 - _ratio(np.minimum(above, most), at_most), 1.0)
    return _ratio(ranked.total(ranked.hit_query, values), relevant)


def _reciprocal_rank(ranked: Ranked) -> Float64:
    values = np.zeros(ranked.n_queries)
    some = ranked.found > 0
    values[some] = 1.0 / (ranked.hit_place[ranked.hit_offsets[:-1][some]] + 1)
    return values


def _infer(ranked: Ranked) -> Float64:
    hits = ranked.is_hit
    above = ranked.so_far - 1
    judged_not = ranked.count_within((ranked.grades >= 0) & ~hits)[hits]
    pooled = ranked.count_within(ranked.grades == UNJUDGED)[hits]
    place = ranked.hit_place.astype(np.float64)
    in_pool = np.divide(above + judged_not + pooled, place, out=np.zeros(len(place)), where=place > 0)
    share = (above + _SHARE) / (above + judged_not + 2 * _SHARE)
    values = np.where(place == 0, 1.0, 1.0 / (place + 1) + place / (place + 1) * in_pool * share)
    total = ranked.total(ranked.hit_query, values)
    return np.where(ranked.relevant > 0, _ratio(total, ranked.relevant), total)


def _hits_needed(shares: float, relevant: Int64, release: Release) -> Int64:
    """Return the hits that a recall level needs: release 10 rounds, release 9 adds 0.9 and truncates."""
    wanted = shares * relevant
    if release == 9:
        return (wanted + 0.9).astype(np.int64)
    whole = np.trunc(wanted)
    rounded: Int64 = (whole + (wanted - whole >= 0.5)).astype(np.int64)
    return rounded


def _interpolate(ranked: Ranked, shares: Sequence[float], release: Release) -> list[Float64]:
    """Return the highest precision from each recall level on, for levels from the last to the first.

    A level above the one that comes after it, which only 11pt_avg accepts, counts as recall 0.
    """
    with np.errstate(invalid="ignore"):
        whole_list = ranked.found / ranked.returned  # NaN for an empty list, as in trec_eval
    overall = np.where(ranked.found > 0, 0.0, whole_list)
    some = ranked.found > 0
    overall[some] = ranked.best_precision[ranked.hit_offsets[:-1][some]]
    reached, is_met, is_first = (
        ranked.found.copy(),
        np.ones(ranked.n_queries, np.bool_),
        np.ones(ranked.n_queries, np.bool_),
    )
    values: list[Float64] = []
    for share in reversed(shares):
        needed = _hits_needed(share, ranked.relevant, release)
        beyond = is_first & (needed > ranked.found)
        is_first &= beyond
        is_met &= beyond | ((needed >= 1) & (needed <= reached))
        at = np.where(is_met & ~beyond, ranked.hit_offsets[:-1] + needed - 1, 0)
        best = ranked.best_precision[at] if len(ranked.best_precision) else np.zeros(ranked.n_queries)
        values.append(np.where(beyond, 0.0, np.where(is_met, best, overall)))
        reached = np.where(is_met & ~beyond, needed, reached)
    return values


def _iprec_at_recall(ranked: Ranked, shares: Sequence[float], release: Release) -> list[Float64]:
    return _interpolate(ranked, shares, release)[::-1]


def _eleven_points(ranked: Ranked, shares: Sequence[float], release: Release) -> Float64:
    return sum(_interpolate(ranked, shares, release), np.zeros(ranked.n_queries)) / float(len(shares))


def _rprec_mult(ranked: Ranked, multiples: Sequence[float]) -> list[Float64]:
    values = []
    for multiple in multiples:
        cutoff = (multiple * ranked.relevant + 0.9).astype(np.int64)
        values.append(_ratio(ranked.hits_before(cutoff), cutoff))
    return values


def _precision(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    return [ranked.hits_before(cutoff) / cutoff for cutoff in cutoffs]


def _recall(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    return [_ratio(ranked.hits_before(cutoff), ranked.relevant) for cutoff in cutoffs]


def _relative_precision(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    return [_ratio(ranked.hits_before(cutoff), np.minimum(ranked.relevant, cutoff)) for cutoff in cutoffs]


def _success(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    return [(ranked.hits_before(cutoff) > 0).astype(np.float64) for cutoff in cutoffs]


def _unjudged(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    query, place = ranked.query[ranked.grades < 0], ranked.place[ranked.grades < 0]
    return [np.bincount(query[place < cutoff], minlength=ranked.n_queries) / cutoff for cutoff in cutoffs]


def _bin_g(ranked: Ranked) -> Float64:
    values = 1.0 / _log2(3 + ranked.hit_place - ranked.so_far)
    return _ratio(ranked.total(ranked.hit_query, values), ranked.relevant)


def _utility(ranked: Ranked, worth: Sequence[float]) -> Float64:
    hits, returned, relevant = ranked.found, ranked.returned, ranked.relevant
    return (  # type: ignore[no-any-return]
        worth[0] * hits
        + worth[1] * (returned - hits)
        + worth[2] * (relevant - hits)
        + worth[3] * (ranked.collection + hits - returned - relevant)
    )


def _set_f(ranked: Ranked, beta: Sequence[float]) -> Float64:
    precision, recall = _ratio(ranked.found, ranked.returned), _ratio(ranked.found, ranked.relevant)
    return _ratio((beta[0] + 1.0) * precision * recall, beta[0] * precision + recall)


def _set_map(ranked: Ranked) -> Float64:
    return _ratio(
        ranked.found.astype(np.float64) * ranked.found, ranked.returned.astype(np.float64) * ranked.relevant
    )


def _yaap(ranked: Ranked) -> Float64:
    total = ranked.total(ranked.hit_query, ranked.precision)
    return _log((1.0 + total) / (1.0 + ranked.relevant - total))


def _judged_misses(ranked: Ranked) -> Int64:
    return np.bincount(ranked.query[(ranked.grades >= 0) & ~ranked.is_hit], minlength=ranked.n_queries)


def _relstring(ranked: Ranked, length: Sequence[float]) -> list[str]:
    """Return a character for each document: its grade, ">" above 9, "-" outside the pool, "." unjudged."""
    characters = np.frombuffer(b".-0123456789>", np.uint8)[np.minimum(ranked.grades, 10) - UNJUDGED]
    text = characters.tobytes().decode("ascii")
    most = max(int(length[0]), 0)
    return [text[start : min(stop, start + most)] for start, stop in pairwise(ranked.offsets.tolist())]


# ---- declarations, in the order in which trec_eval prints ----

Takes = Literal["nothing", "cutoffs", "shares", "numbers", "gains"]
Summed = Literal["mean", "sum", "geometric", "none"]


class Declared(NamedTuple):
    """A measure of trec_eval: its parameters, how it is computed, and how its values are summarised."""

    name: str
    summary: str
    compute: Callable[..., Any]
    takes: Takes = "nothing"
    default: tuple[float, ...] = ()
    summed: Summed = "mean"
    since: Release = 9
    differs: bool = False  # whether releases compute it differently
    is_standard: bool = True  # one of all_trec

    @property
    def is_shown_for_queries(self) -> bool:
        return self.summed != "geometric" and self.name not in ("runid", "num_q")


_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_TENTHS = tuple(tenth / 10 for tenth in range(11))
_COUNT: Any = {"summed": "sum"}

DECLARED = {
    each.name: each
    for each in (
        Declared("runid", "name of the run, from its last line", lambda _: None, summed="none"),
        Declared("num_q", "queries that are averaged over", lambda _: None, **_COUNT),
        Declared("num_ret", "returned documents", lambda ranked: ranked.returned, **_COUNT),
        Declared("num_rel", "relevant documents", lambda ranked: ranked.relevant, **_COUNT),
        Declared("num_rel_ret", "relevant documents returned", lambda ranked: ranked.found, **_COUNT),
        Declared("map", "mean average precision", _average_precision),
        Declared("gm_map", "geometric mean of average precision",
            lambda ranked: _raised_logarithms(_average_precision(ranked)), summed="geometric"),
        Declared("Rprec", "precision after as many ranks as there are relevant documents", _r_precision),
        Declared("bpref", "binary preference", _preference),
        Declared("recip_rank", "reciprocal rank of the first relevant document", _reciprocal_rank),
        Declared("iprec_at_recall", "interpolated precision at levels of recall", _iprec_at_recall, "shares",
            _TENTHS, differs=True),
        Declared("P", "precision at cutoffs", _precision, "cutoffs", _CUTOFFS),
        Declared("relstring", "grades of the first documents, for each query", _relstring, "numbers", (10,),
            summed="none"),
        Declared("recall", "recall at cutoffs", _recall, "cutoffs", _CUTOFFS),
        Declared("infAP", "inferred average precision", _infer),
        Declared("gm_bpref", "geometric mean of binary preference",
            lambda ranked: _raised_logarithms(_preference(ranked)), summed="geometric"),
        Declared("Rprec_mult", "precision at multiples of the number of relevant documents", _rprec_mult,
            "shares", tuple(fifth / 5 for fifth in range(1, 11))),
        Declared("utility", "worth of documents returned and relevant, returned, relevant, neither", _utility,
            "numbers", (1.0, -1.0, 0.0, 0.0)),
        Declared("11pt_avg", "interpolated precision averaged over levels of recall", _eleven_points,
            "numbers", _TENTHS, differs=True),
        Declared("binG", "gain discounted by what is not relevant above", _bin_g),
        Declared("G", "graded gain discounted by what was missed above", _g, "gains"),
        Declared("dcg", "discounted cumulative gain", _dcg, "gains", since=10, is_standard=False),
        Declared("ideal_dcg", "discounted cumulative gain of the ideal ranking", _ideal_dcg, "gains",
            since=10, is_standard=False),
        Declared("ndcg", "normalised discounted cumulative gain", _ndcg, "gains"),
        Declared("ndcg_rel", "nDCG averaged over the ranks of relevant documents", _ndcg_rel, "gains"),
        Declared("Rndcg", "nDCG averaged over the ranks at which the ideal gain changes", _rndcg, "gains"),
        Declared("ndcg_cut", "nDCG at cutoffs", _ndcg_cut, "cutoffs", _CUTOFFS),
        Declared("map_cut", "average precision at cutoffs", _map_cut, "cutoffs", _CUTOFFS),
        Declared("relative_P", "precision at cutoffs over the greatest possible", _relative_precision,
            "cutoffs", _CUTOFFS),
        Declared("success", "whether a relevant document stands above cutoffs", _success, "cutoffs",
            (1, 5, 10)),
        Declared("set_P", "precision of the returned set",
            lambda ranked: _ratio(ranked.found, ranked.returned)),
        Declared("set_relative_P", "precision of the returned set over the greatest possible",
            lambda ranked: _ratio(ranked.found, np.minimum(ranked.returned, ranked.relevant))),
        Declared("set_recall", "recall of the returned set",
            lambda ranked: _ratio(ranked.found, ranked.relevant)),
        Declared("set_map", "precision times recall of the returned set", _set_map),
        Declared("set_F", "harmonic mean of precision and recall of the returned set", _set_f, "numbers",
            (1,)),
        Declared("num_nonrel_judged_ret", "returned documents judged not relevant", _judged_misses, **_COUNT),
        Declared("yaap", "log odds of average precision", _yaap, is_standard=False),
        Declared("rbp", "rank-biased precision, p=0.9", _rbp, "gains", since=10),
        Declared("rbp_resid", "rank-biased precision that unjudged documents could add", _rbp_resid, "gains",
            since=10),
        Declared("unj", "share of unjudged documents at cutoffs", _unjudged, "cutoffs", (5, 10, 20),
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
    "all_trec": [each.name for each in DECLARED.values() if each.is_standard],
}  # fmt: skip

# trec_eval's other measures need files of preferences, or of judgments by several people
_OTHER_FILES = ("prefs", "qrels_jg", "avgjg")


# ---- names of measures ----


class Asked(NamedTuple):
    """A measure with its parameters, and the name of each of its values."""

    declared: Declared
    parameters: Any
    names: list[str]


def read_names(texts: Sequence[str], release: Release = 10) -> tuple[list[Asked], list[str]]:
    """Return measures in the order of the output, and notes about texts without effect.

    Each text is a name, or a name, a point and parameters separated by commas, as after trec_eval's -m. If a
    measure is named twice, its first parameters count, as in trec_eval.

    >>> [each.names for each in read_names(["ndcg_cut.10,5", "map"])[0]]
    [['map'], ['ndcg_cut_5', 'ndcg_cut_10']]

    Raise `MeasureError` if trec_eval or this package does not have a name or parameter.
    """
    wanted: dict[str, str] = {}
    notes = []
    known = {name: each for name, each in DECLARED.items() if each.since <= release}
    for text in texts or ["official"]:
        name, point, parameters = text.partition(".")
        if point and not parameters:
            raise MeasureError(f'"{text}" has no parameters after the point; name some, or leave it out')
        names = [each for each in SETS[name] if each in known] if name in SETS else [name]
        if names == [name] and name not in known:
            raise MeasureError(_unknown_in_words(name, known, release))
        if name in SETS and parameters:
            notes.append(f"{text}: a set of measures takes no parameters; they have no effect")
        for each in names:
            if name in SETS or not parameters:
                wanted.setdefault(each, "")
            elif wanted.get(each):
                notes.append(
                    f"{text}: {each} has the parameters {wanted[each]} already; these have no effect"
                )
            else:
                wanted[each] = parameters
    return [_with_parameters(known[name], wanted[name]) for name in known if name in wanted], notes


def _unknown_in_words(name: str, known: dict[str, Declared], release: Release) -> str:
    there_are = f"there are {', '.join(known)}, and the sets {', '.join(SETS)}"
    if name in DECLARED:
        return f'trec_eval {release} has no measure "{name}", release {DECLARED[name].since} has; {there_are}'
    if any(word in name for word in _OTHER_FILES):
        return (
            f'"{name}" needs preferences, or judgments of several people, which are not read here; '
            f"{there_are}"
        )
    return f'no measure of trec_eval is called "{name}"; {there_are}.{suggest(name, [*known, *SETS])}'


def _with_parameters(declared: Declared, text: str) -> Asked:
    name, takes = declared.name, declared.takes
    if takes == "nothing":
        if text:
            raise MeasureError(f"{name} takes no parameters, and was given {text}")
        return Asked(declared, None, [name])
    if takes == "gains":
        return Asked(declared, _gains_of(name, text), [f"{name}_{text}" if text else name])
    values = [_number(name, each) for each in text.split(",")] if text else list(declared.default)
    if takes == "numbers":
        if len(values) != len(declared.default) and name != "11pt_avg":
            raise MeasureError(
                f"{name} takes {len(declared.default)} parameter{'s' * (len(declared.default) > 1)}, "
                f"and was given {text}"
            )
        return Asked(declared, values, [f"{name}_{text}" if text else name])
    if takes == "cutoffs":
        values = [int(value) for value in values]
    values.sort()
    if takes == "cutoffs" and values[0] < 1:
        raise MeasureError(f"{name} was given the cutoff {values[0]}; wanted 1 or more")
    if len(set(values)) < len(values):
        raise MeasureError(f"{name} was given {text}, which repeats a value; name each once")
    return Asked(
        declared,
        values,
        [f"{name}_{value}" if takes == "cutoffs" else f"{name}_{value:.2f}" for value in values],
    )


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise MeasureError(f'{name} was given "{text}", which is not a number; as in {_example(name)}')
    return value


def _example(name: str) -> str:
    declared = DECLARED[name]
    if declared.takes == "gains":
        return f"{name}.1=3.5,2=9"
    return f"{name}.{','.join(f'{value:g}' for value in declared.default[:3])}"


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").removeprefix("+").isdecimal()


def _gains_of(name: str, text: str) -> Gains:
    gains: Gains = {}
    for pair in text.split(",") if text else []:
        key, equals, value = pair.partition("=")
        if not equals or not (_is_whole(key) or (key == "p" and name.startswith("rbp"))):
            raise MeasureError(
                f'{name} was given "{pair}"; wanted a grade and its gain, as in {_example(name)}'
            )
        gains.setdefault(str(int(key)) if key != "p" else key, _number(name, value))
    return gains


# ---- reading, computing, printing ----


class Run(NamedTuple):
    """Queries and their documents. Queries are ordered by the bytes of their ids, as in trec_eval."""

    name: str
    queries: list[str]
    is_returned: Bools
    ranked: Ranked
    notes: list[str]


def read_judgments(qrels: PathLike, threads: int | None = None) -> Side:
    """Read judgments once for several runs. `read` and `report` accept the result in place of a path."""
    return _side(qrels, False, threads)


def read(
    qrels: PathLike | Side,
    run: PathLike,
    *,
    complete: bool = False,
    judged_only: bool = False,
    level: int = 1,
    most: int | None = None,
    collection: int = 0,
    release: Release = 10,
    threads: int | None = None,
    progress: Progress = None,
) -> Run:
    """Read judgments and a run as trec_eval does.

    Parameters
    ----------
    qrels, run : paths
        As `read_trec` reads them; "-" is standard input. Judgments may be those of `read_judgments`.
    complete : bool
        -c: count judged queries that the run lacks.
    judged_only : bool
        -J: drop unjudged documents.
    level : int
        -l: the smallest grade that is relevant.
    most : int, optional
        -M: use at most this many documents of each query.
    collection : int
        -N: the number of documents in the collection, which `utility` can use.
    release : 9 or 10
        9 compares scores as float32, 10 as float64.
    threads, progress
        As in `read_trec`.

    Raises
    ------
    SourceError, InputError
        As in `read_trec`, also if no query is in both files.
    """
    if isinstance(qrels, Side):
        judged = qrels
        with report_progress(progress, run):
            scored = _side(run, True, threads)
    else:
        with report_progress(progress, qrels, run):
            judged, scored = _side(qrels, False, threads), _side(run, True, threads)
    missing = np.isnan(scored.values)
    if missing.any():
        row = int(np.argmax(missing))
        raise InputError(
            f"{scored.place(row)}: the score of {name_of(scored, row)} is NaN; {missing.sum():,} in all. "
            "trec_eval does not define the order of such documents: drop those rows."
        )
    notes = []
    if judged.values.dtype.kind == "f":
        fractions = judged.values != np.trunc(judged.values)
        if fractions.any():
            notes.append(
                f"{judged.name}: grades have a fraction, {int(fractions.sum()):,} in all, "
                f"the first is {judged.values[fractions][0]}; the fraction is dropped, as in trec_eval"
            )
        judged = judged._replace(values=np.trunc(judged.values).astype(np.int64))
    if release == 9:
        with np.errstate(over="ignore"):
            scored = scored._replace(values=scored.values.astype(np.float32))
    rankings = join(judged, scored, "zero" if complete else "skip", "docid_desc", "refuse", threads)
    names = rankings.query_ids.cast(pa.large_binary())
    order = array_of(pc.sort_indices(names)).astype(np.int64)
    is_returned = np.diff(rankings.offsets)[order] > 0
    ranked = _rank(rankings, order, judged_only, level, most, collection, stand_in=release == 10)
    queries = [name.decode("utf-8", "backslashreplace") for name in names.take(column_of(order)).to_pylist()]
    return Run(scored.tag, queries, is_returned, ranked, notes)


def _side(path: PathLike, has_rank: bool, threads: int | None) -> Side:
    name = "/dev/stdin" if path == "-" else path_of(path, "run" if has_rank else "qrels")
    kind = format_of_side(name, has_rank=has_rank)
    if kind not in (TREC, TABLE, CSV):  # the reader of lines reports what is wrong with text
        raise SourceError(
            f"{name} is {kind.name}; wanted a TREC file. fastndcg score --qrels --run reads {kind.name}."
        )
    return text_side(name, "score" if has_rank else "relevance", threads)


def _rank(
    rankings: Rankings,
    order: Int64,
    judged_only: bool,
    level: int,
    most: int | None,
    collection: int,
    *,
    stand_in: bool,
) -> Ranked:
    is_judged = rankings.is_judged
    grades = rankings.relevance.astype(np.int64)
    if is_judged is not None:
        grades = np.where(is_judged, grades, np.where(grades < 0, UNJUDGED, OUTSIDE))
    rows, sizes = _rows_of(rankings.offsets, order, most)
    grades = grades[rows]
    if stand_in and (sizes == 0).any() and most != 0:
        # if the run lacks a query, release 10 adds a document that is not in the pool
        grades = np.insert(grades, offsets_from(sizes)[:-1][sizes == 0], OUTSIDE)
        sizes = np.maximum(sizes, 1)
    if judged_only:
        query = np.repeat(np.arange(len(sizes)), sizes)
        grades, query = grades[grades >= 0], query[grades >= 0]
        sizes = np.bincount(query, minlength=len(sizes))
    pool_offsets, pool = rankings.judged if rankings.judged is not None else (rankings.offsets, grades[:0])
    pool_rows, pool_sizes = _rows_of(pool_offsets, order, None)
    return Ranked(
        offsets_from(sizes),
        grades,
        offsets_from(pool_sizes),
        pool[pool_rows].astype(np.int64),
        level,
        collection,
    )


def _rows_of(offsets: Int64, order: Int64, most: int | None) -> tuple[Int64, Int64]:
    """Return the first `most` rows of each query, queries in this order, and the number of rows of each."""
    sizes = np.diff(offsets)[order]
    if most is not None:
        sizes = np.minimum(sizes, most)
    return runs_of(offsets[:-1][order], sizes), sizes


class _Column(NamedTuple):
    """One printed value: its name, the value of each query, and the value over all queries."""

    declared: Declared
    name: str
    values: Any  # an array, strings, or None if queries have no value
    overall: str | None


def compute_values(each: Asked, ranked: Ranked, release: Release) -> list[Any]:
    """Return the values of all queries for each name of a measure: arrays, strings, or None."""
    arguments: list[Any] = [] if each.declared.takes == "nothing" else [each.parameters]
    if each.declared.differs:
        arguments.append(release)
    values = each.declared.compute(ranked, *arguments)
    return values if each.declared.takes in ("cutoffs", "shares") else [values]


def _columns(run: Run, wanted: list[Asked], n_judged: int, release: Release) -> list[_Column]:
    columns = []
    for each in wanted:
        declared = each.declared
        for name, values in zip(each.names, compute_values(each, run.ranked, release), strict=True):
            shown = _clear(name, values, run.is_returned)
            columns.append(_Column(declared, name, shown, _overall(declared, shown, run, n_judged)))
    return columns


def _clear(name: str, values: Any, is_returned: Bools) -> Any:
    """Clear values of queries that the run lacks, as release 10 does: by exact name, not with parameters."""
    if is_returned.all() or not (
        name in ("num_ret", "utility", "relstring", "rbp_resid") or name.startswith("unj")
    ):
        return values
    if isinstance(values, list):
        return [text if returned else "" for text, returned in zip(values, is_returned.tolist(), strict=True)]
    return np.where(is_returned, values, 0)


def _overall(declared: Declared, values: Any, run: Run, n_judged: int) -> str | None:
    if declared.name == "runid":
        return run.name
    if declared.name == "num_q":
        return str(n_judged)
    if declared.summed == "none":
        return None
    if declared.summed == "sum":
        return str(int(values.sum()))
    total = float(np.cumsum(values)[-1])
    if declared.summed == "geometric":
        total += (n_judged - len(values)) * math.log(_LEAST)
        return _print_value(math.exp(total / n_judged))
    return _print_value(total / n_judged)


def _print_value(value: float) -> str:
    # NaN of 0/0, whose sign bit is set on x86
    return "  -nan" if math.isnan(value) else f"{value:6.4f}"


def report(
    qrels: PathLike | Side,
    run: PathLike,
    measures: Sequence[str] = (),
    *,
    per_query: bool = False,
    summary: bool = True,
    complete: bool = False,
    release: Release = 10,
    note: Callable[[str], object] = lambda _: None,
    **options: Any,
) -> Iterator[str]:
    r"""Yield the text that trec_eval prints for these files, in parts.

    Parameters
    ----------
    qrels, run : paths of TREC files
        Judgments may be those of `read_judgments`.
    measures : as after trec_eval's -m; default "official"
    per_query, summary : bool
        `per_query` is -q; `summary=False` is -n.
    complete, release, and others
        As in `read`.
    note : callable
        Called with notes about input that trec_eval ignores silently.

    Raises
    ------
    MeasureError
        As in `read_names`.
    SourceError, InputError
        As in `read`.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "qrels").write_text("301 0 A 1\n301 0 B 2\n302 0 A 1\n")
    >>> _ = (folder / "run").write_text("301 Q0 C 1 2.5 me\n301 Q0 B 2 1.5 me\n")
    >>> print("".join(report(folder / "qrels", folder / "run", ["map", "ndcg_cut.5"])).expandtabs(), end="")
    map                     all     0.2500
    ndcg_cut_5              all     0.4796
    """
    wanted, notes = read_names(measures, release)
    scored = read(qrels, run, complete=complete, release=release, **options)
    for text in (*notes, *scored.notes):
        note(text)
    # release 9 does not show queries that the run lacks, but its means count them
    n_judged = len(scored.queries)
    if release == 9:
        scored = _run_of_returned(scored)
    columns = _columns(scored, wanted, n_judged, release)
    if per_query:
        shown = [column for column in columns if column.declared.is_shown_for_queries]
        for start in range(0, len(scored.queries), _BLOCK):
            yield _lines_of_queries(shown, scored.queries[start : start + _BLOCK], start)
    if summary:
        yield "".join(
            f"{column.name:<22}\tall\t{column.overall}\n" for column in columns if column.overall is not None
        )


def _run_of_returned(run: Run) -> Run:
    if run.is_returned.all():
        return run
    ranked, kept = run.ranked, np.flatnonzero(run.is_returned)
    rows, sizes = _rows_of(ranked.offsets, kept, None)
    pool_rows, pool_sizes = _rows_of(ranked.pool_offsets, kept, None)
    of_returned = Ranked(
        offsets_from(sizes),
        ranked.grades[rows],
        offsets_from(pool_sizes),
        ranked.pool[pool_rows],
        ranked.level,
        ranked.collection,
    )
    return run._replace(
        queries=[run.queries[at] for at in kept.tolist()],
        is_returned=run.is_returned[kept],
        ranked=of_returned,
    )


def _lines_of_queries(columns: list[_Column], queries: list[str], start: int) -> str:
    stop = start + len(queries)
    texts = []
    for column in columns:
        values = column.values[start:stop]
        if isinstance(values, list):
            shown = [f"'{text}'" for text in values]
        elif values.dtype.kind == "f":
            shown = [_print_value(value) for value in values.tolist()]
        else:
            shown = [str(value) for value in values.tolist()]
        texts.append(
            [f"{column.name:<22}\t{query}\t{text}\n" for query, text in zip(queries, shown, strict=True)]
        )
    return "".join(map("".join, zip(*texts, strict=True))) if texts else ""
