"""From measures to tables: a gain for each grade, a discount for each rank, a row for each measure.

This is where a measure meets the data for the first time, so the grades that it cannot bear are refused here, by name.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError, MeasureError
from fastndcg.measures import Function, GradeGains, Measure, Numbers

if TYPE_CHECKING:
    from fastndcg.kernels import Plan
    from fastndcg.rankings import Grades, Rankings

Float64 = npt.NDArray[np.float64]

_LEVELS = 255  # codes of one byte; the last is kept for unjudged documents
_MOST_FULL = 2**24  # documents of a "full" ideal, which are summed one by one
_MOST_GAIN = 1e308  # of a whole list: sums beyond it overflow
_EXACT = 2**53  # whole numbers up to here are exact in float64


class Coding(NamedTuple):
    """How grades become gains: by their level above `lowest` where `levels`, each by its value otherwise."""

    levels: bool
    lowest: int
    n_levels: int


class Worth(NamedTuple):
    """What fixes a gain table: the measure's gain and its threshold."""

    gain: str | Numbers | GradeGains | Function
    rel: float | None


def coding_of(grades: Grades, *, bytes_already: bool) -> Coding:
    lowest = 0 if bytes_already or not grades.whole else int(grades.lowest)
    if grades.whole and grades.highest - lowest < _LEVELS:
        return Coding(True, lowest, int(grades.highest) - lowest + 1)
    return Coding(False, 0, 0)


def build(measures: tuple[Measure, ...], rankings: Rankings) -> tuple[Plan, Coding]:
    """Tables of the measures for these rankings.

    Raises `MeasureError` where a measure needs a discount of more ranks than it was given, and `InputError` where it has no
    gain for a grade that occurs.
    """
    grades = rankings.grades
    coding = coding_of(grades, bytes_already=rankings.relevance.dtype == np.uint8)
    distinct: tuple[float, ...] | None = None
    if any(_looks_at_each_grade(measure) for measure in measures):
        distinct = tuple(rankings.distinct_grades.tolist())
    for measure in measures:
        _check_gains(measure, grades, distinct, rankings)
        _check_discount(measure, rankings.longest)
        if measure.params.get("ideal") == "full" and (measure.cutoff or 0) > _MOST_FULL:
            raise MeasureError(
                f"{measure} has an ideal of {measure.cutoff} documents; wanted a cutoff of at most {_MOST_FULL}"
            )
    # a user's function is asked for the ranks that exist and no other
    asks_ranks = any(isinstance(measure.params.get("discount"), Function) for measure in measures)
    longest = max(rankings.longest, 1) if asks_ranks else _rounded_up(rankings.longest)
    # a function may answer differently in a later call, so tables made by asking one are not kept
    asks = asks_ranks or any(isinstance(worth_of(measure).gain, Function) for measure in measures)
    make_tables = _tables.__wrapped__ if asks else _tables
    return make_tables(measures, coding, distinct, longest), coding


# ---- gains ----


def worth_of(measure: Measure) -> Worth:
    rel = measure.params.get("rel")
    if measure.definition.worth == "found":
        return Worth("found", rel)
    gain = measure.gain
    return Worth(gain, 1.0 if gain == "binary" and rel is None else rel)


def gains_of_documents(measure: Measure, rankings: Rankings) -> Float64:
    """Gain of each scored document, (n_docs,)."""
    worth = worth_of(measure)
    judged = slice(None) if rankings.is_judged is None else rankings.is_judged
    distinct, position = np.unique(rankings.relevance[judged], return_inverse=True)
    gains = np.full(rankings.n_docs, _gain_of_unjudged(worth))
    gains[judged] = np.array([_gain(worth, grade) for grade in distinct.tolist()], dtype=np.float64)[position]
    return gains


def _gain_of_unjudged(worth: Worth) -> float:
    return 1.0 if worth.gain == "found" and worth.rel is None else 0.0


def _looks_at_each_grade(measure: Measure) -> bool:
    gain = worth_of(measure).gain
    return isinstance(gain, Function | Numbers | GradeGains)


def _gain(worth: Worth, grade: float) -> float:
    """Gain of one grade; NaN where the measure has none for it."""
    gain, rel = worth
    if rel is not None and grade < rel:
        return 0.0
    if gain in ("binary", "found"):
        return 1.0
    if gain == "linear":
        return float(grade)
    if gain == "exp2":
        return float(2.0**grade - 1.0) if grade <= 53 else math.inf
    if isinstance(gain, Numbers):
        return gain[int(grade)] if grade == int(grade) and 0 <= grade < len(gain) else math.nan
    if isinstance(gain, GradeGains):
        listed = dict(gain.gains).get(grade)
        return listed if listed is not None else float(grade) if gain.overrides or grade == 0 else math.nan
    whole = grade == int(grade)
    answer = gain.call(int(grade) if whole else grade)  # type: ignore[union-attr]
    try:
        return float(answer)
    except (TypeError, ValueError):
        raise MeasureError(f"{gain} returned {answer!r} for grade {grade:g}; a gain is a number") from None


def _check_gains(
    measure: Measure, grades: Grades, distinct: tuple[float, ...] | None, rankings: Rankings
) -> None:
    worth = worth_of(measure)
    occurring = distinct if distinct is not None else (grades.lowest, grades.highest)
    for grade in occurring:
        gain = _gain(worth, grade)
        shown = int(grade) if grade == int(grade) else grade
        if math.isnan(gain):
            raise InputError(
                f"{measure} has no gain for grade {shown}, which occurs at {_first_place(rankings, grade)}; it has one for "
                f"{_listed(worth.gain)}. Give a gain for each grade that occurs."
            )
        if math.isinf(gain) or (worth.gain == "linear" and abs(gain) > _EXACT):
            raise InputError(
                f"grade {shown} at {_first_place(rankings, grade)} has no exact gain in {measure}: beyond 2**53 float64 skips whole numbers. "
                "Use smaller grades, or give gain= a mapping."
            )
        if abs(gain) * rankings.longest > _MOST_GAIN:
            raise InputError(
                f"the gain {gain:g} of grade {shown} in {measure} is too large to sum over {rankings.longest} documents; "
                "use smaller gains, nDCG does not change with their scale"
            )
        if gain < 0 and measure.definition.over == "ideal":
            raise InputError(
                f"{measure} is not defined for the gain {gain:g} of grade {shown}, which occurs at {_first_place(rankings, grade)}. "
                "Map it to 0 or more, as in nDCG(rel=1), or drop those rows."
            )


def _listed(gain: object) -> str:
    if isinstance(gain, Numbers):
        return f"the grades 0 to {len(gain) - 1}"
    return f"{gain}"


def _first_place(rankings: Rankings, grade: float) -> str:
    there = rankings.relevance == grade
    rows = np.flatnonzero(there if rankings.is_judged is None else there & rankings.is_judged)
    return rankings.place(int(rows[0])) if len(rows) else "the judged pool"


# ---- discounts ----


def discount_table(discount: str | float | Numbers | Function, ranks: int) -> Float64:
    """Discount of the ranks 1, 2, 3, ..."""
    if isinstance(discount, Function):
        return _frozen([discount.call(rank) for rank in range(1, ranks + 1)], np.float64)
    return _known_discounts(discount, ranks)


@lru_cache(maxsize=64)
def _known_discounts(discount: str | float | Numbers, ranks: int) -> Float64:
    """Logarithms are taken in extended precision and rounded once, so that a table has the same bits on every processor."""
    if isinstance(discount, Numbers):
        return _frozen([*discount[:ranks], *([0.0] * (ranks - len(discount)))], np.float64)
    rank: npt.NDArray[np.floating] = np.arange(1, ranks + 1, dtype=np.longdouble)
    weights: npt.NDArray[np.floating]
    if discount == "none":
        weights = np.ones_like(rank)
    elif discount == "log2":
        weights = 1 / np.log2(rank + 1)
    elif discount == "jarvelin":
        weights = 1 / np.maximum(np.log2(np.maximum(rank, 2)), 1)
    elif discount == "reciprocal":
        weights = 1 / rank
    elif discount == "ln":
        weights = 1 / np.log(rank + np.exp(np.longdouble(1)))
    else:
        weights = np.log(np.longdouble(discount)) / np.log(rank + 1)
    return _frozen(weights, np.float64)


def _check_discount(measure: Measure, longest: int) -> None:
    discount = measure.params.get("discount")
    if not isinstance(discount, Numbers | Function):
        return
    cutoff = longest if measure.cutoff is None else measure.cutoff
    needed = cutoff if measure.params.get("ideal") == "full" else min(cutoff, longest)
    if isinstance(discount, Numbers):
        if len(discount) < needed:
            raise MeasureError(
                f"{measure} needs a discount for {needed} ranks and was given {len(discount)}; give more, or a smaller cutoff"
            )
        return
    table = discount_table(discount, needed)
    if not np.isfinite(table).all():
        rank = int(np.argmin(np.isfinite(table)))
        raise MeasureError(
            f"the discount of {measure} is {table[rank]} at rank {rank + 1}; wanted finite numbers"
        )


# ---- tables ----


class _Keys(list[Any]):
    """A list of distinct keys that tells the index of each."""

    def index_of(self, key: Any) -> int:
        if key not in self:
            self.append(key)
        return self.index(key)


def _rounded_up(ranks: int) -> int:
    """The next power of two, so that lists of nearly equal length share tables."""
    return 1 << max(ranks - 1, 15).bit_length()


@lru_cache(maxsize=128)
def _tables(
    measures: tuple[Measure, ...], coding: Coding, distinct: tuple[float, ...] | None, longest: int
) -> Plan:
    from fastndcg.kernels import (
        AVERAGE,
        BEST,
        FULL,
        INPUT,
        JUDGED,
        NEVER,
        NO_DOCUMENTS,
        NO_IDEAL,
        RETURNED,
        SCORED,
        UNCUT,
        WORST,
        Plan,
    )

    ties_of = {"average": AVERAGE, "input": INPUT, "worst": WORST, "best": BEST}
    source_of = {"judged": JUDGED, "scored": SCORED, "returned": RETURNED, "full": FULL}
    undefined_of = {"never": NEVER, "no documents": NO_DOCUMENTS, "no ideal": NO_IDEAL}
    worths, lists, ideals, discounts = _Keys(), _Keys(), _Keys(), _Keys()
    rows = []
    for out, measure in enumerate(measures):
        definition, params = measure.definition, measure.params
        table = worths.index_of(worth_of(measure))
        cutoff = UNCUT if measure.cutoff is None else min(measure.cutoff, UNCUT - 1)
        ranking = lists.index_of((table, ties_of[params["ties"]], int(params["judged_only"])))
        ideal = -1
        if definition.over == "ideal" or definition.ranking == "ideal":
            source = source_of[params["ideal"]]
            of_list = -1 if source == JUDGED else ranking
            pool = ideals.index_of((table, JUDGED, -1, UNCUT, -1)) if source == FULL else -1
            ideal = ideals.index_of(
                (table, source, of_list, cutoff if source in (RETURNED, FULL) else UNCUT, pool)
            )
        discount = discounts.index_of(params["discount"] if definition.discounted else "none")
        rows.append(
            (
                ranking if definition.ranking == "system" else -1,
                discount,
                ideal,
                cutoff,
                undefined_of[definition.undefined],
                out,
            )
        )
    rows.sort()

    cutoffs = [row[3] for row in rows]
    depth = min(max(cutoffs), longest)
    full = max(
        (
            min(row[3], 1 << 40)
            for row in rows
            if row[2] >= 0 and ideals[row[2]][1] == FULL and row[3] != UNCUT
        ),
        default=0,
    )
    ideal_depth = max(depth, full)
    table_of_discounts = np.array([discount_table(discount, ideal_depth) for discount in discounts]).reshape(
        len(discounts), ideal_depth
    )

    grades = (
        np.arange(coding.lowest, coding.lowest + coding.n_levels, dtype=np.float64)
        if coding.levels
        else np.array(distinct or (), np.float64)
    )
    gains = np.array([_gain_row(worth, grades, distinct) for worth in worths])
    finite = float(np.abs(gains).max(initial=0.0)) * max(longest, 1) < _EXACT
    return Plan(
        gains=_frozen(gains, np.float64),
        falling=_frozen(np.argsort(-gains, axis=1, kind="stable"), np.int64),
        unsigned=_frozen((gains >= 0).all(axis=1), np.bool_),
        exact=_frozen(
            [
                finite and bool((row == np.floor(row)).all()) and (coding.levels or _whole_when_coded(worth))
                for worth, row in zip(worths, gains, strict=True)
            ],
            np.bool_,
        ),
        top=_frozen([_top(worth) for worth in worths], np.float64),
        kinds=_frozen([_kind(worth) for worth in worths], np.int64),
        thresholds=_frozen([-math.inf if worth.rel is None else worth.rel for worth in worths], np.float64),
        grades=_frozen(grades, np.float64),
        lists=_frozen(lists, np.int64),
        ideals=_frozen(np.reshape(ideals, (len(ideals), 5)), np.int64),
        discounts=_frozen(table_of_discounts, np.float64),
        rows=_frozen(rows, np.int64),
        depth=depth,
        ideal_depth=ideal_depth,
        condensing=any(condensed for _, _, condensed in lists),
        first_wanted=0
        if not coding.levels or any(ties == INPUT for _, ties, _ in lists)
        else int(np.argmax((gains != 0).any(axis=0))),
        skippable=all(row[4] == NO_IDEAL for row in rows)
        and all(ideal[1] in (JUDGED, SCORED) for ideal in ideals),
    )


def _frozen(values: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array


def _gain_row(worth: Worth, grades: Float64, distinct: tuple[float, ...] | None) -> Float64:
    """Gain of each grade, and of an unjudged document; 0 for levels between the grades that occur."""
    occurring = None if distinct is None else set(distinct)
    row = [
        _gain(worth, grade) if occurring is None or grade in occurring else 0.0 for grade in grades.tolist()
    ]
    return np.array([*row, _gain_of_unjudged(worth), 0.0])


def _whole_when_coded(worth: Worth) -> bool:
    return worth.gain in ("binary", "found")


def _top(worth: Worth) -> float:
    gain = worth.gain
    if gain in ("binary", "found"):
        return 1.0
    if isinstance(gain, Numbers):
        return max(gain)
    if isinstance(gain, GradeGains) and not gain.overrides:
        return max(value for _, value in gain.gains)
    return math.nan


def _kind(worth: Worth) -> int:
    from fastndcg.kernels import EXP2, LINEAR, LOOKUP, ONE

    return (
        {"linear": LINEAR, "exp2": EXP2, "binary": ONE, "found": ONE}.get(worth.gain, LOOKUP)
        if isinstance(worth.gain, str)
        else LOOKUP
    )
