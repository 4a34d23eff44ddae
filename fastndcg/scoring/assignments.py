"""The grades of unjudged documents that make a measure least, and those that make it greatest.

An assignment gives every unjudged document a grade of a scale, so that every document is judged and has its
place in the ideal. Least and greatest values are always values of assignments, computed as all other values.
Few assignments have to be computed:

- With the same grades, moving better documents up never lowers a measure whose discounts do not rise. So in
  the greatest value the grades of unjudged documents fall down the list, and in the least value they rise.
- A measure of relevant documents then depends only on their number. Every number is tried: all in one pass
  over the documents (`numbers`), or one after the other. If a document with a higher grade can never lower
  the measure, few numbers are enough: none, one and all.
- nDCG is a ratio, DCG(x) / IDCG(x). Both are sums over thresholds of the gain, with a weight for each
  document above the threshold. For a guess r of the extreme ratio (Dinkelbach, On nonlinear fractional
  programming, Management Science 13(7), 1967), DCG(x) - r IDCG(x) is a sum over thresholds, and each term
  depends on the number of unjudged documents above the threshold. These numbers fall from threshold to
  threshold, so one pass finds the extreme. Its ratio is the next guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import offsets_from, parts_of, runs_of
from fastndcg.errors import InputError, MeasureError
from fastndcg.measures import DCG, IDCG, Measure
from fastndcg.measures.parameters import Function, Numbers
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, numbers, plan, ways

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_TOGETHER = 1 << 20  # documents of assignments that are scored together, and entries of a table of thresholds
_LARGEST = 1 << 24  # entries of the table of one query; each takes about a hundred bytes
_ROUNDING = 1e-15
_MOST_GUESSES = 100  # guesses of a ratio; they converge faster than linearly, and five are usual


class Unjudged(NamedTuple):
    """Documents of each query by falling score, and which of them are unjudged."""

    order: Int64  # (n_docs,): rows, by query and falling score
    query: Int64  # (n_docs,): query of each place of `order`; `rank`, `first` and `size` have the same places
    rank: Int64  # (n_docs,): from 0
    first: Int64  # rank of the first document of the tied group
    size: Int64  # documents of the tied group
    places: Int64  # (n_unjudged,): places that hold an unjudged document
    offsets: Int64  # (n_queries + 1,): of `places`

    @property
    def lengths(self) -> Int64:
        return np.diff(self.offsets)


class Scale(NamedTuple):
    """Gains that an unjudged document may have, ascending, and a grade that has each."""

    gains: Float64
    grades: Float64


def unjudged_of(rankings: Rankings) -> Unjudged:
    query = np.repeat(np.arange(rankings.n_queries), rankings.lengths)
    order = np.lexsort((-np.arange(rankings.n_docs), rankings.scores, -query))[::-1].astype(np.int64)
    rank = np.arange(rankings.n_docs) - rankings.offsets[query]
    scores = rankings.scores[order]
    begins = np.ones(rankings.n_docs, np.bool_)
    begins[1:] = (scores[1:] != scores[:-1]) | (query[1:] != query[:-1])
    starts, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    size = np.diff(np.append(starts, rankings.n_docs))[group]
    unjudged = (
        np.zeros(rankings.n_docs, np.bool_) if rankings.is_judged is None else ~rankings.is_judged[order]
    )
    offsets = offsets_from(unjudged)[rankings.offsets]
    return Unjudged(order, query, rank, rank[starts][group], size, np.flatnonzero(unjudged), offsets)


def grades_of_scale(rankings: Rankings, top: float | None) -> Float64:
    """The grades that an unjudged document may have, ascending: 0, all that occur, and `top`, the largest."""
    grades = np.asarray(rankings._distinct_grades, np.float64)
    if top is None:
        if not len(grades):
            raise InputError(
                "no document was judged, so nothing says what the highest grade is; name it, as in top=1"
            )
        return np.union1d(grades, [0.0])
    if isinstance(top, bool) or not isinstance(top, int | float | np.number) or not math.isfinite(top):
        raise InputError(
            f"top={top!r} is not a grade; wanted a finite number, the highest that a document may have"
        )
    return np.union1d(grades[grades <= top], [min(0.0, top), top])


def check(measure: Measure, rankings: Rankings, unjudged: Unjudged) -> None:
    """Raise for a measure whose bounds would not be exact, or that does not depend on grades."""
    definition, params = measure.definition, measure.params
    plan.check_complete(measure)
    if measure.cutoff_column is not None:
        raise MeasureError(
            f"{measure} has a cutoff for each query, for which no range is computed; "
            f"name one, as in {measure.name}@10"
        )
    if definition.over in ("judged", "residual"):
        raise MeasureError(
            f"{measure} counts judgments and not grades: when all documents are judged, it has one value. "
            "Ask for RBP, or another measure of what was found"
        )
    if definition.way == "intents":
        raise MeasureError(
            f"{measure} has no exact range: the grades for several intents of a document would have to be "
            "tried together. Ask for a measure of one grade for each document, as nDCG or ERR"
        )
    if definition.name == "infAP" and rankings._grades.lowest < 0:
        raise MeasureError(
            f"{measure} has no exact range beside negative grades, which are unjudged documents of the pool "
            "to it. Ask for AP, or drop these rows"
        )
    if params.get("ips") == "snips" and params["ties"] in ("worst", "best"):
        raise MeasureError(
            f"{measure} has no exact range: propensities decide which of tied documents comes first. "
            "Take ties='average' or 'input'"
        )
    discount = params.get("discount")
    if isinstance(discount, Numbers | Function):
        table = plan.discount_table(discount, int(ranks_of(measure, rankings, unjudged).max(initial=1)))
        rises = np.flatnonzero((np.diff(table) > 0) | (table[1:] < 0))
        if len(rises) or table[0] < 0:
            rank = int(rises[0]) + 2 if len(rises) else 1
            raise MeasureError(
                f"{measure} has no exact range: its discount is {table[rank - 1]:g} at rank {rank}; "
                "wanted discounts that do not rise and are not negative"
            )


def scale_of(measure: Measure, grades: Float64) -> Scale:
    worth = plan.worth_of(measure)
    if worth.gain == "judgment":  # a negative grade is not a judgment
        grades = grades[grades >= 0]
    gains = np.array([plan.gain_of(worth, grade) for grade in grades.tolist()], np.float64)
    if not np.isfinite(gains).all():
        raise MeasureError(
            f"{measure} has no gain for grade {grades[~np.isfinite(gains)][0]:g}, "
            "which an unjudged document may have; name the highest with top="
        )
    if _is_normalised(measure) and gains.min() < 0:
        raise MeasureError(
            f"{measure} has no exact range where gains are negative, as {gains.min():g} of grade "
            f"{grades[np.argmin(gains)]:g}"
        )
    distinct, places = np.unique(gains, return_index=True)
    return Scale(distinct, grades[places])


def _is_normalised(measure: Measure) -> bool:
    """Whether the measure is divided by a sum of gains."""
    return measure.params.get("ips") == "snips"


def depends_on_number(measure: Measure) -> bool:
    """Whether more relevant documents may lower the measure."""
    definition = measure.definition
    return (
        definition.over in ("relevant", "weighted", "set")
        or definition.fold == "interpolated"
        or bool(measure.params.get("relative"))
        or _is_normalised(measure)
    )


# ---- rankings with assigned grades ----


def assign(rankings: Rankings, unjudged: Unjudged, queries: Int64, grades: Float64) -> Rankings:
    """These queries, which may repeat, with `grades` for unjudged documents, in the order of `unjudged`."""
    lengths, numbers = rankings.lengths[queries], unjudged.lengths[queries]
    rows = runs_of(rankings.offsets[queries], lengths)
    offsets = offsets_from(lengths)
    fresh = grades.astype(np.int64) if (grades == np.floor(grades)).all() else grades
    pools = () if rankings.judged is None else (rankings.judged.relevance.dtype,)
    dtype = np.result_type(rankings.relevance.dtype, *pools, fresh.dtype)
    relevance = rankings.relevance[rows].astype(dtype)
    places = unjudged.places[runs_of(unjudged.offsets[queries], numbers)]
    relevance[unjudged.order[places] + np.repeat(offsets[:-1] - rankings.offsets[queries], numbers)] = fresh
    judged = None
    if rankings.judged is not None:
        kept = np.diff(rankings.judged.offsets)[queries]
        ends = offsets_from(kept + numbers)
        pool = np.empty(ends[-1], dtype)
        pool[runs_of(ends[:-1], kept)] = rankings.judged.relevance[
            runs_of(rankings.judged.offsets[queries], kept)
        ]
        pool[runs_of(ends[:-1] + kept, numbers)] = fresh
        judged = (ends, pool)
    propensity = None if rankings.propensity is None else rankings.propensity[rows]
    return Rankings._from_offsets(
        offsets, relevance, rankings.scores[rows], judged=judged, propensity=propensity
    )


def ends_of(unjudged: Unjudged, *, every: bool) -> Iterator[tuple[Int64, npt.NDArray[np.bool_]]]:
    """Assignments of the best grade to the first u, or to the last u, unjudged documents of each query.

    Yields queries, which may repeat, and for each of their unjudged documents whether it has the best grade.
    u takes `every` possible number, or 0, 1 and all. Each part has a bounded number of documents.
    """
    of_query = unjudged.lengths
    lengths = np.bincount(unjudged.query, minlength=len(of_query))
    queries = np.flatnonzero(of_query)
    n_tried = of_query[queries] + 1 if every else np.minimum(of_query[queries] + 1, 3)
    queries = np.repeat(queries, n_tried)
    number = runs_of(0, n_tried)
    if not every:
        number = np.where(number == 2, of_query[queries], number)
    for part in parts_of(lengths[queries], _TOGETHER):
        chosen, u = queries[part], number[part]
        n = of_query[chosen]
        yield chosen, runs_of(0, n) < np.repeat(u, n)
        some = (u > 0) & (u < n)  # with u = 0 or u = n both ends give the same assignment
        chosen, u, n = chosen[some], u[some], n[some]
        if len(chosen):
            yield chosen, runs_of(0, n) >= np.repeat(n - u, n)


# ---- nDCG: a ratio in which both parts depend on the assignment ----


class _Judged(NamedTuple):
    """Gains coded by their order, and the judged documents that count in the ideal and in each tied group."""

    values: Float64  # gain of each code, ascending
    scale: Int64  # codes of the scale's gains
    pool: Int64  # sorted query * len(values) + code, of documents of the ideal
    tied: Int64  # sorted tied group * len(values) + code, of the ranked documents that are judged


def extreme_grades(
    measure: Measure,
    rankings: Rankings,
    unjudged: Unjudged,
    scale: Scale,
    base: tuple[Float64, Float64],
    sign: int,
) -> Float64:
    """Grades of the unjudged documents that make nDCG greatest, for `sign` 1, or least, for -1,
    (n_unjudged,).

    `base` has the DCG and IDCG of each query when all its unjudged documents have the least gain.
    """
    grades = np.full(len(unjudged.places), scale.grades[0])
    moving = _moving(measure, rankings, unjudged)
    judged = _judged_gains(measure, rankings, unjudged, scale)
    some = np.flatnonzero(moving)
    levels = np.bincount(_cuts(judged, some)[0], minlength=len(some))
    sizes = (moving[some] + 1) * (levels + 1)
    if sizes.max(initial=0) > _LARGEST:
        query = some[np.argmax(sizes)]
        raise MeasureError(
            f"{measure} has no exact range for query {rankings._name_of(int(query))}, "
            f"which has {moving[query]} unjudged documents and {levels[np.argmax(sizes)]} distinct gains: "
            f"their product is more than {_LARGEST}. Round the grades"
        )
    # a table has queries with similar numbers of thresholds and documents
    alike = np.lexsort((moving[some], np.frexp(levels)[1]))
    some = some[alike]
    for part in parts_of(sizes[alike], _TOGETHER):
        table = _Table(measure, rankings, unjudged, judged, some[part], moving[some[part]], sign)
        places, codes = table.solve(tuple(part_of[some[part]] for part_of in base), sign)
        grades[places] = scale.grades[np.searchsorted(scale.gains, judged.values[codes])]
    return grades


def _moving(measure: Measure, rankings: Rankings, unjudged: Unjudged) -> Int64:
    """The number of unjudged documents of each query that count in the ranking or in the ideal."""
    if measure.ideal != "returned" or measure.cutoff is None:
        return unjudged.lengths
    places = unjudged.places
    across = (unjudged.first < measure.cutoff) & (measure.cutoff < unjudged.first + unjudged.size)
    across &= unjudged.lengths[unjudged.query] > 0
    if measure.ties != "input" and across.any():
        query = int(unjudged.query[np.argmax(across)])
        raise MeasureError(
            f"{measure} has no exact range where tied documents reach across rank {measure.cutoff}, "
            f"as in query {rankings._name_of(query)}: its ideal differs from order to order. "
            "Take ties='input', or ideal='judged'"
        )
    shown = unjudged.query[places[unjudged.rank[places] < measure.cutoff]]
    return np.bincount(shown, minlength=rankings.n_queries)


def _judged_gains(measure: Measure, rankings: Rankings, unjudged: Unjudged, scale: Scale) -> _Judged:
    of_judged = np.ones(rankings.n_docs, np.bool_)
    of_judged[unjudged.places] = False
    places = np.flatnonzero(of_judged)
    ranked = plan.gains_of_grades(measure, rankings.relevance[unjudged.order[places]])
    if measure.ideal in ("scored", "returned"):
        last = plan.ranks_shown(measure) if measure.ideal == "returned" else rankings._longest
        shown = unjudged.rank[places] < last
        query, pool = unjudged.query[places][shown], ranked[shown]
    else:
        offsets, relevance = laid_out.pool(rankings)
        query = np.repeat(np.arange(rankings.n_queries), np.diff(offsets))
        pool = plan.gains_of_grades(measure, relevance)
    values = np.unique(np.concatenate([scale.gains, ranked, pool]))
    group = (unjudged.rank == unjudged.first).cumsum()[places] - 1
    return _Judged(
        values,
        np.searchsorted(values, scale.gains),
        np.sort(query * len(values) + np.searchsorted(values, pool)),
        np.sort(group * len(values) + np.searchsorted(values, ranked)),
    )


def _cuts(judged: _Judged, queries: Int64) -> tuple[Int64, Int64]:
    """The gains between which the thresholds of each query lie, as places in `queries` and codes, ascending.

    They are the two ends of the scale, the gains of the query's judged documents between them, and the gains
    of the scale next to these.
    """
    n, scale = len(judged.values), judged.scale
    starts = np.searchsorted(judged.pool, queries * n)
    numbers = np.searchsorted(judged.pool, (queries + 1) * n) - starts
    place, code = np.repeat(np.arange(len(queries)), numbers), judged.pool[runs_of(starts, numbers)] % n
    within = (code > scale[0]) & (code < scale[-1])
    place, code = place[within], code[within]
    above = np.searchsorted(scale, code)
    below = np.searchsorted(scale, code, side="right") - 1
    every = np.arange(len(queries))
    places = np.concatenate([place, place, place, every, every])
    ends = np.repeat(scale[[0, -1]], len(queries))
    codes = np.concatenate([code, scale[above], scale[below], ends])
    keys = np.unique(places * n + codes)
    return keys // n, keys % n


class _Table:
    """The increase of DCG and of IDCG by u unjudged documents above each threshold, for several queries."""

    def __init__(
        self,
        measure: Measure,
        rankings: Rankings,
        unjudged: Unjudged,
        judged: _Judged,
        queries: Int64,
        moving: Int64,
        sign: int,
    ) -> None:
        most, n = int(moving.max()), len(judged.values)
        cut_place, cut_code = _cuts(judged, queries)
        upper = np.flatnonzero(cut_place[1:] == cut_place[:-1]) + 1
        place, high, low = cut_place[upper], cut_code[upper], cut_code[upper - 1]
        delta = (judged.values[high] - judged.values[low])[:, None]
        begins = np.flatnonzero(np.isin(low, judged.scale))
        # the unjudged documents of each query, in the order in which they get better grades
        column = np.arange(most)
        turn = np.where(sign > 0, column, moving[:, None] - 1 - column)
        there = (turn >= 0) & (turn < moving[:, None])
        which = unjudged.offsets[queries, None] + np.where(there, turn, 0)
        places = unjudged.places[which.ravel()].reshape(which.shape)
        discounts = plan.discount_table(
            measure.discount, int(ranks_of(measure, rankings, unjudged)[queries].max())
        )
        weights = np.where(
            there[place], _weights(measure, unjudged, judged, discounts, places, place, high), 0.0
        )
        counted = np.searchsorted(judged.pool, (queries[place] + 1) * n) - np.searchsorted(
            judged.pool, queries[place] * n + high
        )
        sums = np.concatenate([[0.0], np.cumsum(discounts)])
        ends = _ends(measure, rankings, queries, len(discounts))[place]
        ideal = sums[np.minimum(counted[:, None] + np.arange(most + 1), ends[:, None])]
        gained = np.zeros((len(place), most + 1))
        np.cumsum(weights, axis=1, out=gained[:, 1:])
        step, code = place[begins], high[np.append(begins[1:], len(place)) - 1]
        level = np.arange(len(step)) - np.searchsorted(step, step)
        shape = (int(level.max()) + 1, len(queries), most + 1)
        self.gained, self.ideal, self.closed = np.zeros(shape), np.zeros(shape), np.ones(shape, np.bool_)
        self.gained[level, step] = np.add.reduceat(delta * gained, begins)
        self.ideal[level, step] = np.add.reduceat(delta * (ideal - ideal[:, :1]), begins)
        self.closed[level, step] = np.arange(most + 1) > moving[step, None]
        self.closed[:, :, 0] = False
        self.codes = np.full((len(queries), shape[0] + 1), judged.scale[0])
        self.codes[step, level + 1] = code
        self.moving, self.which, self.there = moving, which, there

    def solve(self, base: tuple[Float64, ...], sign: int) -> tuple[Int64, Int64]:
        """The best assignment: places in `unjudged.places` of documents, and codes of their gains."""
        best = np.zeros(self.gained.shape[:2], np.int64)
        ratio = self._ratio(base, best)
        guess = np.where(self.closed[:, np.arange(len(self.moving)), self.moving], 0, self.moving)
        for turn in range(_MOST_GUESSES):
            other = self._ratio(base, guess)
            nearer = sign * other > sign * ratio + _ROUNDING * np.abs(ratio)
            nearer |= np.isnan(ratio) & ~np.isnan(other)
            if turn and not nearer.any():
                break
            best, ratio = np.where(nearer, guess, best), np.where(nearer, other, ratio)
            guess = self._best_numbers(sign * (self.gained - np.nan_to_num(ratio)[:, None] * self.ideal))
        above = (best[:, :, None] > np.arange(self.there.shape[1])).sum(axis=0)
        return self.which[self.there], np.take_along_axis(self.codes, above, axis=1)[self.there]

    def _best_numbers(self, worth: Float64) -> Int64:
        """The numbers of documents above thresholds with the greatest sum of `worth`; they do not rise."""
        worth[self.closed] = -np.inf
        levels, n, width = worth.shape
        last = np.empty(worth.shape, np.int64)
        top = np.zeros((n, width))
        for level in range(levels - 1, -1, -1):
            top = np.maximum.accumulate(worth[level] + top, axis=1)
            last[level, :, 0] = 0
            last[level, :, 1:] = np.where(top[:, 1:] > top[:, :-1], np.arange(1, width), 0)
            np.maximum.accumulate(last[level], axis=1, out=last[level])
        number, rows = self.moving, np.arange(n)
        for level in range(levels):
            number = last[level, rows, number]
            last[level, :, 0] = number
        return last[:, :, 0]

    def _ratio(self, base: tuple[Float64, ...], number: Int64) -> Float64:
        """nDCG of each query for these numbers of unjudged documents above thresholds; NaN if IDCG is 0."""
        dcg, idcg = (
            of_lowest + np.take_along_axis(part, number[:, :, None], axis=2)[:, :, 0].sum(axis=0)
            for of_lowest, part in zip(base, (self.gained, self.ideal), strict=True)
        )
        ratio: Float64 = np.divide(dcg, idcg, out=np.full(len(dcg), np.nan), where=idcg > 0)
        return ratio


def ranks_of(measure: Measure, rankings: Rankings, unjudged: Unjudged) -> Int64:
    """The number of ranks of each query that need a discount, in the ranking or in an ideal."""
    ranks: Int64 = np.maximum(rankings.lengths, 1)
    if rankings.judged is not None:
        ranks = np.maximum(ranks, np.diff(rankings.judged.offsets) + unjudged.lengths)
    if measure.cutoff is None or measure.params.get("ideal") == "judged_uncut":
        return ranks
    return np.minimum(ranks, measure.cutoff)


def _ends(measure: Measure, rankings: Rankings, queries: Int64, ranks: int) -> Int64:
    """The greatest number of ranks that the ideal of each query may have."""
    if measure.ideal == "judged_returned":
        return np.minimum(rankings.lengths[queries], ranks)
    return np.full(len(queries), ranks)


def _weights(
    measure: Measure,
    unjudged: Unjudged,
    judged: _Judged,
    discounts: Float64,
    places: Int64,
    place: Int64,
    high: Int64,
) -> Float64:
    """The increase of DCG by each further unjudged document above a threshold, (n_thresholds, n_moving)."""
    cut: Float64 = np.zeros(max(int((unjudged.first + unjudged.size).max(initial=0)), len(discounts)) + 1)
    shown = len(discounts) if measure.cutoff is None else min(measure.cutoff, len(discounts))
    cut[:shown] = discounts[:shown]
    first, size = unjudged.first[places], unjudged.size[places]
    weights: Float64
    if measure.ties == "input":
        return cut[unjudged.rank[places]][place]
    if measure.ties == "average":
        sums = np.concatenate([[0.0], np.cumsum(cut)])
        weights = (sums[first + size] - sums[first]) / size
        return weights[place]
    n = len(judged.values)
    group = ((unjudged.rank == unjudged.first).cumsum() - 1)[places]
    same = np.ones(group.shape, np.bool_)
    same[:, 1:] = group[:, 1:] != group[:, :-1]
    column = np.arange(group.shape[1])
    # the number of unjudged documents of the same group before it
    turn = column - np.maximum.accumulate(np.where(same, column, 0), axis=1)
    known = np.searchsorted(judged.tied, (group[place] + 1) * n) - np.searchsorted(
        judged.tied, group[place] * n + high[:, None]
    )
    above = turn[place] + known
    above = np.minimum(above, size[place] - 1)
    weights = cut[first[place] + (above if measure.ties == "best" else size[place] - 1 - above)]
    return weights


# ---- bounds of measures ----


def bounds(
    measures: tuple[Measure, ...], rankings: Rankings, top: float | None = None, threads: int | None = None
) -> list[tuple[Float64, Float64, Float64]]:
    """For each measure its least value over all assignments, its present value, and its greatest value, each
    (n_queries,).

    Raises `MeasureError` for a measure that `check` refuses, and as `fastndcg.evaluate` does.
    """
    unjudged = unjudged_of(rankings)
    for measure in measures:
        check(measure, rankings, unjudged)
    values = ways.score(measures, rankings, threads).values
    found = [(value.copy(), value, value.copy()) for value in values]
    some = np.flatnonzero(unjudged.lengths)
    if not len(some):
        return found
    for low, _, high in found:
        low[some] = high[some] = np.nan

    def take(rows: list[int], queries: Int64, grades: Float64) -> None:
        of_rows = tuple(measures[row] for row in rows)
        scored = ways.score(of_rows, assign(rankings, unjudged, queries, grades), threads).values
        for row, row_values in zip(rows, scored, strict=True):
            np.fmin.at(found[row][0], queries, row_values)
            np.fmax.at(found[row][2], queries, row_values)

    grades = grades_of_scale(rankings, top)
    alike: dict[Any, list[int]] = {}
    for row, measure in enumerate(measures):
        alike.setdefault((plan.worth_of(measure), depends_on_number(measure)), []).append(row)
    for (_, every), rows in alike.items():
        scale = scale_of(measures[rows[0]], grades)
        counted = [row for row in rows if every and numbers.is_counted(measures[row])]
        for tried, one_by_one in (([row for row in rows if row not in counted], every), (counted, False)):
            for queries, best in ends_of(unjudged, every=one_by_one) if tried else ():
                take(tried, queries, np.where(best, scale.grades[-1], scale.grades[0]))
        for row in counted:
            found_by_pass = numbers.extreme_numbers(measures[row], rankings, unjudged, some, _TOGETHER)
            for queries, best in found_by_pass:
                take([row], queries, np.where(best, scale.grades[-1], scale.grades[0]))
        for row in rows:
            measure = measures[row]
            if measure.name != "nDCG" or len(scale.gains) == 1:
                continue
            if measure.ideal == "full":
                for level in _beside_the_best(measure, rankings, scale, some):
                    take([row], some, np.repeat(scale.grades[level], unjudged.lengths[some]))
                continue
            parts = tuple(laid_out.part_of(measure, kind) for kind in (DCG, IDCG))
            lowest = np.full(len(unjudged.places), scale.grades[0])
            base = np.zeros((2, rankings.n_queries))
            base[:, some] = ways.score(parts, assign(rankings, unjudged, some, lowest), threads).values
            for sign in (1, -1):
                take(
                    [row], some, extreme_grades(measure, rankings, unjudged, scale, (base[0], base[1]), sign)
                )
    return found


def _beside_the_best(
    measure: Measure, rankings: Rankings, scale: Scale, queries: Int64
) -> tuple[Int64, Int64]:
    """Places in the scale of the gains just below and just above the best gain of each query.

    With ideal="full" and no fixed top gain, the ideal is k documents of the best gain that occurs. nDCG is
    then greatest where all unjudged documents have one of these two gains, or the best gain of the scale.
    """
    offsets, relevance = laid_out.pool(rankings)
    best = np.full(rankings.n_queries, -np.inf)
    query = np.repeat(np.arange(rankings.n_queries), np.diff(offsets))
    np.maximum.at(best, query, plan.gains_of_grades(measure, relevance))
    below = np.searchsorted(scale.gains, best[queries], side="right") - 1
    above = np.searchsorted(scale.gains, best[queries])
    return np.maximum(below, 0), np.minimum(above, len(scale.gains) - 1)
