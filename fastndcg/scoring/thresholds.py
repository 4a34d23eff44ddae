"""Grades of unjudged documents that make nDCG least or greatest: both parts of the ratio depend on them.

DCG(x) / IDCG(x): both are sums over thresholds of the gain, with a weight for each document above the
threshold. For a guess r of the extreme ratio (Dinkelbach, On nonlinear fractional programming, Management
Science 13(7), 1967), DCG(x) - r IDCG(x) is a sum over thresholds, and each term depends on the number of
unjudged documents above the threshold. These numbers fall from threshold to threshold, so one pass finds the
extreme. Its ratio is the next guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastndcg.common.arrays import Float64, Int64, offsets_from, parts_of, runs_of
from fastndcg.errors import MeasureError
from fastndcg.scoring import laid_out, worths
from fastndcg.scoring.discounts import discount_table, ranks_shown
from fastndcg.scoring.unjudged import Scale, Unjudged, ranks_of, refuse_across

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings

_LARGEST = 1 << 24  # entries of the table of one query; each takes about a hundred bytes
_ROUNDING = 1e-15
_MOST_GUESSES = 100  # guesses of a ratio; they converge faster than linearly, and five are usual


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
    together: int,
) -> Float64:
    """Grades of the unjudged documents that make nDCG greatest, for `sign` 1, or least, for -1.

    `base` has the DCG and IDCG of each query when all its unjudged documents have the least gain.
    Tables have about `together` entries at a time.
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
    for part in parts_of(offsets_from(sizes[alike]), together):
        table = _Table(measure, rankings, unjudged, judged, some[part], moving[some[part]], sign)
        places, codes = table.solve(tuple(part_of[some[part]] for part_of in base), sign)
        grades[places] = scale.grades[np.searchsorted(scale.gains, judged.values[codes])]
    return grades


def _moving(measure: Measure, rankings: Rankings, unjudged: Unjudged) -> Int64:
    """The number of unjudged documents of each query that count in the ranking or in the ideal."""
    if measure.ideal != "returned" or measure.cutoff is None:
        return unjudged.lengths
    refuse_across(measure, rankings, unjudged, "its ideal", "ideal='judged'")
    places = unjudged.places
    shown = unjudged.query[places[unjudged.rank[places] < measure.cutoff]]
    return np.bincount(shown, minlength=rankings.n_queries)


def _judged_gains(measure: Measure, rankings: Rankings, unjudged: Unjudged, scale: Scale) -> _Judged:
    of_judged = np.ones(rankings.n_docs, np.bool_)
    of_judged[unjudged.places] = False
    places = np.flatnonzero(of_judged)
    ranked = worths.gains_of_grades(measure, rankings.relevance[unjudged.order[places]])
    if measure.ideal in ("scored", "returned"):
        last = ranks_shown(measure) if measure.ideal == "returned" else rankings._longest
        shown = unjudged.rank[places] < last
        query, pool = unjudged.query[places][shown], ranked[shown]
    else:
        offsets, relevance = laid_out.pool(rankings)
        query = np.repeat(np.arange(rankings.n_queries), np.diff(offsets))
        pool = worths.gains_of_grades(measure, relevance)
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
        discounts = discount_table(
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
