"""Unjudged documents in the order of their ranking, and the grades that they may have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastndcg.common.arrays import Float64, Int64, offsets_from
from fastndcg.errors import InputError, MeasureError
from fastndcg.measures.accepted import Function, Numbers
from fastndcg.scoring import worths
from fastndcg.scoring.discounts import discount_table

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings


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
    worths.check_complete(measure)
    worths.check_best_known(measure)
    if params.get("pairs") == "graded":
        raise MeasureError(
            f"{measure} has no exact range: all grades of unjudged documents would have to be tried "
            "together. Ask for AUC of relevant documents"
        )
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
    if definition.way == "blocks":
        raise MeasureError(f"{measure} has no exact range: ask for AP with another rule for ties")
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
    if definition.fold == "mean of hits" and measure.cutoff is not None:
        refuse_across(measure, rankings, unjudged, "the number of hits", "denominator='n_relevant'")
    if params.get("floor") == "worst":
        raise MeasureError(
            f"{measure} has no exact range: grades change the worst ranking too. Ask for floor='zero', or DCG"
        )
    if params.get("ips") == "snips" and params["ties"] in ("worst", "best"):
        raise MeasureError(
            f"{measure} has no exact range: propensities decide which of tied documents comes first. "
            "Take ties='average' or 'input'"
        )
    discount = params.get("discount")
    if isinstance(discount, Numbers | Function):
        table = discount_table(discount, int(ranks_of(measure, rankings, unjudged).max(initial=1)))
        rises = np.flatnonzero((np.diff(table) > 0) | (table[1:] < 0))
        if len(rises) or table[0] < 0:
            rank = int(rises[0]) + 2 if len(rises) else 1
            raise MeasureError(
                f"{measure} has no exact range: its discount is {table[rank - 1]:g} at rank {rank}; "
                "wanted discounts that do not rise and are not negative"
            )


def refuse_across(measure: Measure, rankings: Rankings, unjudged: Unjudged, what: str, instead: str) -> None:
    """Raise if a tied group of a query with unjudged documents lies across the cutoff."""
    cutoff: int = measure.cutoff  # type: ignore[assignment]
    across = (unjudged.first < cutoff) & (cutoff < unjudged.first + unjudged.size)
    across &= unjudged.lengths[unjudged.query] > 0
    if measure.ties != "input" and across.any():
        query = int(unjudged.query[np.argmax(across)])
        raise MeasureError(
            f"{measure} has no exact range where tied documents reach across rank {cutoff}, "
            f"as in query {rankings._name_of(query)}: {what} differs from order to order. "
            f"Take ties='input', or {instead}"
        )


def scale_of(measure: Measure, grades: Float64) -> Scale:
    worth = worths.worth_of(measure)
    if worth.gain == "judgment":  # a negative grade is not a judgment
        grades = grades[grades >= 0]
    gains = np.array([worths.gain_of(worth, grade) for grade in grades.tolist()], np.float64)
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
        definition.over in ("relevant", "weighted", "set", "capped", "fewer", "fewer returned")
        or definition.fold in ("interpolated", "mean of hits", "pairs")
        or _is_normalised(measure)
    )


def ranks_of(measure: Measure, rankings: Rankings, unjudged: Unjudged) -> Int64:
    """The number of ranks of each query that need a discount, in the ranking or in an ideal."""
    ranks: Int64 = np.maximum(rankings.lengths, 1)
    if rankings.judged is not None:
        ranks = np.maximum(ranks, np.diff(rankings.judged.offsets) + unjudged.lengths)
    if measure.cutoff is None or measure.params.get("ideal") == "judged_uncut":
        return ranks
    return np.minimum(ranks, measure.cutoff)
