"""Turns measures into tables: a gain for each grade, a discount for each rank, a row for each measure.

This is the first step that sees both the measures and the data, so grades for which a measure has no gain are
refused here.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import offsets_of
from fastndcg.errors import At, InputError, MeasureError
from fastndcg.kernels.flow import tables
from fastndcg.kernels.flow.powers import exp2, gain_by
from fastndcg.kernels.flow.tables import Plan
from fastndcg.measures.parameters import Function, GradeGains, Numbers

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.rankings.value import Grades

Float64 = npt.NDArray[np.float64]

_LEVELS = 255  # codes of one byte; the last code is for unjudged documents
MOST_PERFECT = 2**24  # most documents of an ideal of perfect documents, which are summed one by one
_MOST_GAIN = 1e308  # sums of gains over a list beyond it would overflow
_SORTED = 10_000  # more grades are hashed, not sorted: sorting ten million took a second
EXACT = 2**53  # whole numbers up to here are exact in float64


class Coding(NamedTuple):
    """How grades are coded: as levels from the grade `lowest` on where `levels`, and otherwise not at all."""

    levels: bool
    lowest: int
    n_levels: int


class Worth(NamedTuple):
    """The key of a gain table.

    Besides gains of measures there are "relevant" (1 from the grade `rel` on), "nonrelevant" (1 below it),
    "judgment" (1 for relevant, 0 for nonrelevant, -1 for unjudged in the pool, -2 for outside the pool),
    "unjudged" (1 without a judgment), "stop" (the probability to stop, on a scale up to the grade `top`) and
    "scaled" (from 0 at the grade `bottom` to 1 at `top`).
    """

    gain: str | Numbers | GradeGains | Function
    rel: float | None = None
    unjudged: float | None = None  # grade of documents without a judgment; None where they gain nothing
    bottom: float = 0.0
    top: float = 0.0


class Power(NamedTuple):
    """The discount base^(i - 1) of rank i."""

    base: float


def coding_of(grades: Grades, *, bytes_already: bool) -> Coding:
    if grades.whole and grades.lowest >= -EXACT and grades.highest <= EXACT:
        lowest, highest = int(grades.lowest), int(grades.highest)
        if bytes_already and lowest > 0:  # bytes are used as levels without a cast
            lowest = 0
        if highest - lowest < _LEVELS:
            return Coding(True, lowest, highest - lowest + 1)
    return Coding(False, 0, 0)


def build(measures: tuple[Measure, ...], rankings: Rankings) -> tuple[Plan, Coding]:
    """Tables of the measures for these rankings.

    Raises `MeasureError` where a measure lacks a discount for some ranks, and `InputError` where it has no
    gain for a grade that occurs.
    """
    for measure in measures:
        check_complete(measure)
    grades, worths = rankings._grades, [worth_of(measure) for measure in measures]
    coding = coding_of(grades, bytes_already=rankings.relevance.dtype == np.uint8)
    distinct: tuple[float, ...] | None = None
    if any(_looks_at_each_grade(worth, coding) for worth in worths):
        distinct = tuple(rankings._distinct_grades.tolist())
    longest, functions = 1, dict[Function, int]()
    for measure, worth in zip(measures, worths, strict=True):
        _check_gains(measure, worth, grades, distinct, rankings)
        ranks = _ranks(worth, rankings)
        needed = ranks_discounted(measure, ranks)
        if needed > max(ranks, MOST_PERFECT):
            raise MeasureError(
                f"{measure} has an ideal of {measure.cutoff} documents; "
                f"wanted a cutoff of at most {MOST_PERFECT}"
            )
        check_discount(measure, ranks)
        longest = max(longest, ranks)
        if isinstance(discount := measure.params.get("discount"), Function):
            functions[discount] = max(needed, functions.get(discount, 0))
    # tables of functions are not cached, because a function may return another value in a later call
    asks = functions or any(isinstance(worth.gain, Function) for worth in worths)
    make_tables = _tables.__wrapped__ if asks else _tables
    # the next power of two, so that rankings of similar length share tables
    longest = 1 << max(longest - 1, 15).bit_length()
    return make_tables(measures, coding, distinct, longest, tuple(functions.items())), coding


def _ranks(worth: Worth, rankings: Rankings) -> int:
    """The number of documents of the longest list or ideal."""
    if rankings.judged is None or rankings.is_judged is None or worth.unjudged is None:
        return rankings._longest
    assumed = np.diff(rankings.judged.offsets) + np.diff(offsets_of(~rankings.is_judged, rankings.offsets))
    return max(rankings._longest, int(assumed.max(initial=0)))


# ---- gains ----


def worth_of(measure: Measure) -> Worth:
    kind, params = measure.definition.worth, measure.params
    rel, unjudged = params.get("rel"), params.get("unjudged")
    if kind == "gain":
        gain = params["gain"]
        return Worth(gain, 1.0 if gain == "binary" and rel is None else rel, unjudged)
    if kind == "found":
        return Worth("relevant", math.inf if rel is None else rel, unjudged)
    if kind == "unjudged":
        return Worth("unjudged", math.inf)
    if kind == "stop":
        return Worth("stop", None, unjudged, 0.0, params["max_rel"])
    if kind == "scaled":
        return Worth("scaled", None, unjudged, params["min_rel"], params["max_rel"])
    return Worth(kind, rel, unjudged)


def gains_of_grades(measure: Measure, grades: npt.NDArray[Any]) -> Float64:
    """Gain of each grade; a function is called once for each distinct grade."""
    if grades.dtype.kind in "iu" and len(grades) > _SORTED:
        import pyarrow as pa

        encoded = pa.array(grades).dictionary_encode()
        distinct, places = encoded.dictionary.to_numpy(), encoded.indices.to_numpy()
    else:
        distinct, places = np.unique(grades, return_inverse=True)
    worth = worth_of(measure)
    gains: Float64 = np.array([gain_of(worth, grade) for grade in distinct.tolist()], np.float64)[places]
    return gains


def gains_of_documents(measure: Measure, rankings: Rankings) -> Float64:
    """Gain of each scored document, (n_docs,)."""
    judged = slice(None) if rankings.is_judged is None else rankings.is_judged
    gains = np.full(rankings.n_docs, _gain_of_unjudged(worth_of(measure)))
    gains[judged] = gains_of_grades(measure, rankings.relevance[judged])
    return gains


def _gain_of_unjudged(worth: Worth) -> float:
    if worth.unjudged is not None:
        return gain_of(worth, worth.unjudged)
    return {"unjudged": 1.0, "judgment": -2.0}.get(worth.gain, 0.0) if isinstance(worth.gain, str) else 0.0


def _looks_at_each_grade(worth: Worth, coding: Coding) -> bool:
    return not isinstance(worth.gain, str) or (not coding.levels and _kind(worth) == tables.LOOKUP)


_ONES = ("binary", "relevant", "unjudged")
_WHOLE_WHEN_CODED = (*_ONES, "judgment", "nonrelevant")


def gain_of(worth: Worth, grade: float) -> float:
    """Gain of one grade; NaN where the measure has none for it."""
    gain, rel, _, bottom, top = worth
    if gain == "judgment":
        return 1.0 if grade >= rel else 0.0 if grade >= 0 else -1.0  # type: ignore[operator]
    if gain == "nonrelevant":
        return 1.0 if 0 <= grade < rel else 0.0  # type: ignore[operator]
    if rel is not None and grade < rel:
        return 0.0
    if gain in _ONES:
        return 1.0
    if gain == "stop":
        return float(gain_by(tables.EXP2, max(grade, 0.0))) / exp2(top) if grade <= 53 else math.inf
    if gain == "scaled":
        half = 1.0 if math.isfinite(top - bottom) else 0.5  # scales that are wider than float64
        return (half * min(max(grade, bottom), top) - half * bottom) / (half * top - half * bottom)
    if gain == "linear":
        return float(grade)
    if gain == "exp2":
        return float(gain_by(tables.EXP2, grade)) if grade <= 53 else math.inf
    if isinstance(gain, Numbers):
        return gain[int(grade)] if grade == int(grade) and 0 <= grade < len(gain) else math.nan
    if isinstance(gain, GradeGains):
        place = bisect_left(gain.gains, (grade,))
        if place < len(gain.gains) and gain.gains[place][0] == grade:
            return gain.gains[place][1]
        return float(grade) if gain.overrides or grade == 0 else math.nan
    return _ask_for_number(gain, int(grade) if grade == int(grade) else grade, "grade")  # type: ignore[arg-type]


def _check_gains(
    measure: Measure, worth: Worth, grades: Grades, distinct: tuple[float, ...] | None, rankings: Rankings
) -> None:
    occurring, most = distinct if distinct is not None else (grades.lowest, grades.highest), (0.0, 0)
    for grade in (*occurring, *(() if worth.unjudged is None else (worth.unjudged,))):
        gain = gain_of(worth, grade)
        shown = int(grade) if grade == int(grade) else grade
        if math.isnan(gain):
            listed = (
                f"the grades 0 to {len(worth.gain) - 1}" if isinstance(worth.gain, Numbers) else worth.gain
            )
            raise InputError(
                f"{measure} has no gain for grade {shown}, which occurs",
                _first(rankings, grade),
                f"; it has one for {listed}. Give a gain for each grade that occurs.",
            )
        if math.isinf(gain) or (worth.gain == "linear" and abs(gain) > EXACT):
            raise InputError(
                f"grade {shown}",
                _first(rankings, grade),
                f" has no exact gain in {measure}: beyond 2**53 float64 skips whole numbers. "
                "Use smaller grades, or give gain= a mapping.",
            )
        if worth.gain == "stop" and gain > 1:
            raise InputError(
                f"{measure} is not defined for grade {shown}, which occurs",
                _first(rankings, grade),
                f": the highest of its scale is {worth.top:g}. Name the scale, as in ERR(max_rel={shown}).",
            )
        most = max(most, (abs(gain), shown))
        if gain < 0 and measure.definition.over == "ideal":
            raise InputError(
                f"{measure} is not defined for the gain {gain:g} of grade {shown}, which occurs",
                _first(rankings, grade),
                ". Map it to 0 or more, as in nDCG(rel=1), or drop those rows.",
            )
    check_sum(measure, most[0], f"grade {most[1]}", rankings._longest)


def check_sum(measure: Measure, gain: float, of: str, longest: int, terms: int = 0) -> None:
    """Raise for a gain whose sum over ranks or `terms`, or product with a discount, would overflow."""
    ranks = max(longest, ranks_discounted(measure, longest), terms)
    if abs(gain) * ranks > _MOST_GAIN:
        raise InputError(
            f"the gain {gain:g} of {of} in {measure} is too large to sum over {ranks} documents; "
            "use smaller gains, nDCG does not change with their scale"
        )
    largest = _largest_discount(measure, longest)
    if largest > _MOST_GAIN / (max(abs(gain), 1.0) * max(ranks, 1)):
        raise InputError(
            f"the discount {largest:g} of {measure} times the gain {gain:g} of {of} is too large to sum "
            f"over {ranks} ranks; use smaller discounts, nDCG does not change with their scale"
        )


def _largest_discount(measure: Measure, longest: int) -> float:
    discount = measure.params.get("discount")
    if isinstance(discount, Numbers | Function):
        table = discount_table(discount, ranks_discounted(measure, longest))
        return float(np.abs(table).max(initial=0.0)) if np.isfinite(table).all() else 0.0
    return math.log2(discount) if isinstance(discount, float) else 1.0  # the discount of the first rank


def _first(rankings: Rankings, grade: float) -> At | str:
    there = rankings.relevance == grade
    rows = np.flatnonzero(there if rankings.is_judged is None else there & rankings.is_judged)
    return rankings._at(int(rows[0])) if len(rows) else " in the judged pool, or as unjudged="


def check(measure: Measure, rankings: Rankings) -> None:
    """Raise for an incomplete measure, and for grades for which it is not defined. Raises as `build` does."""
    check_complete(measure)
    distinct = tuple(rankings._distinct_grades.tolist())
    _check_gains(measure, worth_of(measure), rankings._grades, distinct, rankings)


def check_complete(measure: Measure) -> None:
    """Raise for missing parameters and contradictions. Forgets results of users' functions."""
    params = measure.params
    for value in params.values():
        if isinstance(value, Function):
            value.forget()
    if params.get("clip") and not params["ips"]:
        raise MeasureError(
            f"{measure} cuts propensities that it does not use; "
            f"take ips=True with it, as in {measure.name}(ips=True, clip={params['clip']:g})"
        )
    if "recall" in params and params["recall"] is None:
        raise MeasureError(f"{measure} needs a recall level, as in {measure.name}@0.1")
    if measure.definition.worth == "scaled" and (
        params["max_rel"] is None or params["max_rel"] <= params["min_rel"]
    ):
        raise MeasureError(
            f"{measure} needs max_rel=, the highest grade of its scale, "
            f"above min_rel={params['min_rel']:g}; as in SDCG(max_rel=4)@10"
        )
    if measure.definition.over == "weighted" and _is_beyond(measure):
        raise MeasureError(f"{measure} divides by its cutoff; wanted one of at most {tables.UNCUT - 1}")
    if params.get("judged_only") and params.get("unjudged") is not None:
        raise MeasureError(
            f"{measure} both drops unjudged documents and gives them a grade; "
            f"take judged_only=True or unjudged={params['unjudged']:g}"
        )


# ---- discounts ----


def discount_table(discount: str | float | Numbers | Function | Power, ranks: int) -> Float64:
    """Discounts of the ranks 1, 2, 3, ..., (ranks,)."""
    if isinstance(discount, Function):
        return freeze([_ask_for_number(discount, rank, "rank") for rank in range(1, ranks + 1)], np.float64)
    return _known_discounts(discount, ranks)


def _ask_for_number(function: Function, argument: float, of: str) -> float:
    answer = function.ask(argument)
    try:
        return float(answer)
    except (TypeError, ValueError, OverflowError):
        kind = "gain" if of == "grade" else "discount"
        raise MeasureError(
            f"{function} returned {answer!r} for {of} {argument:g}; a {kind} is a number"
        ) from None


_WEIGHTS: dict[str, Callable[[Any], Any]] = {
    "none": np.ones_like,
    "log2": lambda rank: 1 / np.log2(rank + 1),
    "jarvelin": lambda rank: 1 / np.maximum(np.log2(np.maximum(rank, 2)), 1),
    "reciprocal": lambda rank: 1 / rank,
    "ln": lambda rank: 1 / np.log(rank + np.exp(np.longdouble(1))),
}


@lru_cache(maxsize=64)
def _known_discounts(discount: str | float | Numbers | Power, ranks: int) -> Float64:
    """As `discount_table`. Extended precision is rounded once, so all processors have equal bits."""
    if isinstance(discount, Numbers):
        return freeze([*discount[:ranks], *([0.0] * (ranks - len(discount)))], np.float64)
    rank = np.arange(1, ranks + 1, dtype=np.longdouble)
    if isinstance(discount, str):
        return freeze(_WEIGHTS[discount](rank), np.float64)
    if isinstance(discount, Power):
        return freeze(np.longdouble(discount.base) ** (rank - 1), np.float64)
    return freeze(np.log(np.longdouble(discount)) / np.log(rank + 1), np.float64)


def ranks_discounted(measure: Measure, longest: int) -> int:
    """The number of ranks whose discount a measure needs, for lists and ideals of up to `longest`."""
    if measure.cutoff is None:
        return longest
    params = measure.params
    has_perfect = params.get("ideal") == "full" or params.get("denominator") == "perfect"
    has_perfect = has_perfect or measure.definition.worth == "scaled"
    return measure.cutoff if has_perfect else min(measure.cutoff, longest)


def check_discount(measure: Measure, longest: int) -> None:
    discount = measure.params.get("discount")
    if not isinstance(discount, Numbers | Function):
        return
    needed = ranks_discounted(measure, longest)
    if isinstance(discount, Numbers):
        if len(discount) < needed:
            raise MeasureError(
                f"{measure} needs a discount for {needed} ranks and was given {len(discount)}; "
                "give more, or a smaller cutoff"
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
    """Distinct keys, and the index of each."""

    def index_of(self, key: Any) -> int:
        if key not in self:
            self.append(key)
        return self.index(key)


class _List(NamedTuple):
    """A row of `Plan.lists`, and the parameter of its fold."""

    table: int
    ties: int
    condensed: int
    fold: int
    relevant: int = -1  # totals that the fold needs
    nonrelevant: int = -1
    parameter: float = 0.0


class _Entries(NamedTuple):
    """The tables that rows of a plan refer to by number; equal tables are shared."""

    worths: _Keys
    lists: _Keys
    ideals: _Keys
    discounts: _Keys
    totals: _Keys

    def row_of(self, out: int, measure: Measure) -> tuple[int, ...]:
        """The row of a plan for a measure whose values go to row `out` of the result."""
        definition = measure.definition
        worth = worth_of(measure)
        total = nonrelevant = ranking = ideal = -1
        if (
            definition.undefined == "no relevant"
            or definition.ranking == "none"
            or measure.params.get("relative")
        ):
            total = self.totals.index_of(self.worths.index_of(worth._replace(gain="relevant")))
        if definition.fold == "preference":
            nonrelevant = self.totals.index_of(self.worths.index_of(worth._replace(gain="nonrelevant")))
        table = self.worths.index_of(worth)
        if definition.ranking != "none":
            ranking = self.lists.index_of(_list_of(measure, table, total, nonrelevant))
        if definition.over == "ideal" or definition.ranking == "ideal":
            ideal = self._ideal_of(measure, table, ranking)
        discount = -1 if definition.fold in _CUMULATIVE else self.discounts.index_of(discount_of(measure))
        ranked = ranking if definition.ranking == "system" else -1
        undefined, over = _UNDEFINED[definition.undefined], _OVER[_over(measure)]
        return ranked, discount, ideal, _cutoff(measure), undefined, out, over, total

    def _ideal_of(self, measure: Measure, table: int, ranking: int) -> int:
        source = tables.FULL if measure.definition.worth == "scaled" else _SOURCE[measure.params["ideal"]]
        of_list = -1 if source == tables.JUDGED else ranking
        pool = -1
        if source == tables.FULL:
            pool = self.ideals.index_of((table, tables.JUDGED, -1, tables.UNCUT, -1))
        cutoff = _cutoff(measure) if source in (tables.RETURNED, tables.FULL) else tables.UNCUT
        return self.ideals.index_of((table, source, of_list, cutoff, pool))


def _list_of(measure: Measure, table: int, total: int, nonrelevant: int) -> _List:
    fold, params = measure.definition.fold, measure.params
    parameter = params["recall"] if fold == "interpolated" else 0.0
    needs = (total, nonrelevant) if fold in ("preference", "interpolated") else (-1, -1)
    return _List(
        table, ties_of(measure), int(params.get("judged_only", False)), _FOLD[fold], *needs, parameter
    )


def _depths(rows: Sequence[tuple[int, ...]], ideals: _Keys, longest: int) -> tuple[int, int]:
    """The greatest number of ranks that a row needs, of rankings and of ideals."""
    depth = min(max(tables.UNCUT if row[3] == tables.AT_RELEVANT else row[3] for row in rows), longest)
    full = [
        min(row[3], 1 << 40)
        for row in rows
        if row[2] >= 0 and ideals[row[2]][1] == tables.FULL and row[3] != tables.UNCUT
    ]
    return depth, max(depth, *full, 0)


def _discount_rows(
    discounts: _Keys, ideal_depth: int, functions: tuple[tuple[Function, int], ...]
) -> npt.NDArray[np.float64]:
    found = np.zeros((max(len(discounts), 1), ideal_depth + 1))
    for place, discount in enumerate(discounts):
        # a residual needs the discount of the rank after the last
        width = dict(functions).get(discount, ideal_depth + isinstance(discount, Power))
        found[place, :width] = discount_table(discount, width)
    return found


@lru_cache(maxsize=128)
def _tables(
    measures: tuple[Measure, ...],
    coding: Coding,
    distinct: tuple[float, ...] | None,
    longest: int,
    functions: tuple[tuple[Function, int], ...],
) -> Plan:
    """Tables for lists of up to `longest` documents; functions are called only for ranks that are needed."""
    entries = _Entries(_Keys(), _Keys(), _Keys(), _Keys(), _Keys())
    weighted = sorted(
        (entries.row_of(out, measure), _weight(measure)) for out, measure in enumerate(measures)
    )
    rows = [row for row, _ in weighted]
    worths, lists, ideals, discounts, totals = entries
    depth, ideal_depth = _depths(rows, ideals, longest)
    grades = (
        np.arange(coding.lowest, coding.lowest + coding.n_levels, dtype=np.float64)
        if coding.levels
        else np.array(distinct or (), np.float64)
    )
    gains = np.array([_gain_row(worth, grades, distinct) for worth in worths])
    finite = float(np.abs(gains).max(initial=0.0)) * max(longest, 1) < EXACT
    worthy = (gains != 0).any(axis=0)
    leave_out = _leave_out_unjudged(ideals, lists, worths)
    return Plan(
        gains=freeze(gains, np.float64),
        falling=freeze(np.argsort(-gains, axis=1, kind="stable"), np.int64),
        earning=freeze(np.where((gains >= 0).all(axis=1), (gains > 0).sum(axis=1), gains.shape[1]), np.int64),
        exact=freeze(
            [
                finite
                and bool((row == np.floor(row)).all())
                and (coding.levels or worth.gain in _WHOLE_WHEN_CODED)
                for worth, row in zip(worths, gains, strict=True)
            ],
            np.bool_,
        ),
        assumed=freeze([worth.unjudged is not None for worth in worths], np.bool_),
        top=freeze([_top(worth) for worth in worths], np.float64),
        kinds=freeze([_kind(worth) for worth in worths], np.int64),
        thresholds=freeze([_threshold(worth) for worth in worths], np.float64),
        grades=freeze(grades, np.float64),
        lists=freeze(np.reshape([row[:6] for row in lists], (len(lists), 6)), np.int64),
        folds=freeze([row.parameter for row in lists], np.float64)
        if any(row.fold > tables.COUNT for row in lists)
        else None,
        ideals=freeze(
            np.reshape(
                [(*ideal, leaves) for ideal, leaves in zip(ideals, leave_out, strict=True)], (len(ideals), 6)
            ),
            np.int64,
        ),
        totals=freeze(totals, np.int64),
        discounts=freeze(_discount_rows(discounts, ideal_depth, functions), np.float64),
        rows=freeze(rows, np.int64),
        weights=freeze([weight for _, weight in weighted], np.float64),
        depth=depth,
        ideal_depth=ideal_depth,
        condensing=any(row.condensed for row in lists),
        first_wanted=_first_wanted(worthy, any(row.condensed for row in lists))
        if coding.levels and all(row.ties != tables.INPUT for row in lists)
        else 0,
        promising=freeze(_promising(gains, ideals, leave_out), np.bool_),
        skippable=all(row[4] in tables.SKIPPABLE for row in rows)
        and all(ideal[1] in (tables.JUDGED, tables.SCORED) for ideal in ideals),
    )


def _leave_out_unjudged(ideals: list[Any], lists: list[_List], worths: list[Worth]) -> list[bool]:
    """For each ideal, whether it leaves out unjudged documents."""
    return [
        bool(lists[of_list].condensed) if source == tables.SCORED else worths[table].unjudged is None
        for table, source, of_list, *_ in ideals
    ]


def _promising(
    gains: npt.NDArray[np.float64], ideals: list[Any], leave_out: list[bool]
) -> npt.NDArray[np.bool_]:
    """Which levels, and "unjudged", have a gain in ideals of scored and of judged documents."""
    promising = np.zeros((2, gains.shape[1] - 1), np.bool_)
    for (table, source, *_), leaves in zip(ideals, leave_out, strict=True):
        if source in (tables.SCORED, tables.JUDGED):
            counted = gains[table, :-1] > 0
            counted[-1] &= not leaves
            promising[int(source == tables.JUDGED)] |= counted
    return promising


def _first_wanted(worthy: npt.NDArray[np.bool_], condensing: bool) -> int:
    first = int(np.argmax(worthy)) if worthy.any() else len(worthy)
    # where a list drops unjudged documents, they need a rank
    return min(first, len(worthy) - 2) if condensing else first


# names in declarations, and their numbers in kernels
_SOURCE = {"judged": tables.JUDGED, "scored": tables.SCORED, "returned": tables.RETURNED, "full": tables.FULL}
_TIES = {"average": tables.AVERAGE, "input": tables.INPUT, "worst": tables.WORST, "best": tables.BEST}
_UNDEFINED = {
    "never": tables.NEVER,
    "no documents": tables.NO_DOCUMENTS,
    "no ideal": tables.NO_IDEAL,
    "no relevant": tables.NO_RELEVANT,
}
_FOLD = {
    "gain": tables.GAIN,
    "count": tables.COUNT,
    "reached": tables.REACHED,
    "first": tables.FIRST,
    "hits": tables.HITS,
    "stop": tables.STOP,
    "preference": tables.PREFERENCE,
    "inferred": tables.INFERRED,
    "interpolated": tables.INTERPOLATED,
}
# folds whose lists hold the sum so far
_CUMULATIVE = ("count", "reached", "preference", "inferred", "interpolated")
_OVER = {
    "nothing": tables.AS_IS,
    "ideal": tables.BY_IDEAL,
    "cutoff": tables.BY_CUTOFF,
    "relevant": tables.BY_RELEVANT,
    "fewer": tables.BY_FEWER,
    "fewer returned": tables.BY_FEWER_RETURNED,
    "weighted": tables.WEIGHTED,
    "set": tables.BY_BOTH,
    "judged": tables.SHARE_LEFT,
    "left": tables.LEFT,
    "power": tables.SCALED,
    "residual": tables.RESIDUAL,
    "pool": tables.POOL_TOTAL,
}


def _cutoff(measure: Measure) -> int:
    if measure.definition.ranking == "none":
        return 1
    if measure.definition.cut == "relevant":
        return tables.AT_RELEVANT
    return ranks_shown(measure)


def ranks_shown(measure: Measure) -> int:
    """The measure's cutoff in the form that kernels take."""
    return tables.UNCUT if measure.cutoff is None else min(measure.cutoff, tables.UNCUT - 1)


def ties_of(measure: Measure) -> int:
    ties = measure.params["ties"]
    if measure.definition.over == "judged":  # it counts unjudged documents: the best order has the fewest
        ties = {"best": "worst", "worst": "best"}.get(ties, ties)
    return _TIES[ties]


def discount_of(measure: Measure) -> Any:
    kind = measure.definition.discount
    return measure.discount if kind == "parameter" else Power(measure.p) if kind == "power" else "none"


def _over(measure: Measure) -> str:
    over = measure.definition.over
    if measure.definition.worth == "found" and measure.rel is None:
        return "left"
    if measure.params.get("relative"):
        return "fewer returned"
    if measure.params.get("denominator") == "min(n_relevant, k)" and measure.cutoff is not None:
        return "fewer"
    # kernels hold cutoffs as int64: beyond it what divides by the cutoff is multiplied by 1 / cutoff
    return "power" if over == "cutoff" and _is_beyond(measure) else over


def _is_beyond(measure: Measure) -> bool:
    return measure.cutoff is not None and measure.cutoff >= tables.UNCUT


def _weight(measure: Measure) -> float:
    if measure.definition.over == "cutoff" and _is_beyond(measure):
        return 1.0 / float(measure.cutoff)  # type: ignore[arg-type]
    if "beta" in measure.params:
        return float(measure.beta) ** 2
    return 1.0 - float(measure.p) if "p" in measure.params else 0.0


def freeze(values: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array


def _gain_row(worth: Worth, grades: Float64, distinct: tuple[float, ...] | None) -> Float64:
    """Gain of each grade, and of an unjudged document; 0 for levels between the grades that occur."""
    occurring = None if distinct is None else set(distinct)
    row = [
        gain_of(worth, grade) if occurring is None or grade in occurring else 0.0 for grade in grades.tolist()
    ]
    return np.array([*row, _gain_of_unjudged(worth), 0.0])


def _top(worth: Worth) -> float:
    """The greatest gain of the measure's scale; NaN if it has no scale and each query's best gain counts."""
    gain = worth.gain
    if gain in _ONES or gain == "scaled":
        return 1.0
    scale: Sequence[float] = ()
    if isinstance(gain, Numbers):
        scale = range(len(gain))
    elif isinstance(gain, GradeGains) and not gain.overrides:
        scale = [grade for grade, _ in gain.gains]
    return max((gain_of(worth, grade) for grade in scale), default=math.nan)


def _kind(worth: Worth) -> int:
    if worth.gain in _ONES:
        return tables.ONE
    known = {"linear": tables.LINEAR, "exp2": tables.EXP2}
    return known.get(worth.gain, tables.LOOKUP) if isinstance(worth.gain, str) else tables.LOOKUP


def _threshold(worth: Worth) -> float:
    # tables with a gain for each grade contain the threshold
    return -math.inf if worth.rel is None or _kind(worth) == tables.LOOKUP else worth.rel
