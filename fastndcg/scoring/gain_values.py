"""Gain functions: gains of grades, and the grades for which a measure has none."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.errors import InputError, MeasureError
from fastndcg.kernels import schema
from fastndcg.kernels.powers import exp2, gain_by
from fastndcg.measures.gains_and_discounts import GAINS
from fastndcg.measures.parameters import Function, GradeGains, Numbers
from fastndcg.scoring.discount_tables import call_function, discount_table, exceeds_int64, ranks_discounted

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings

_MOST_GAIN = 1e308  # sums of larger gains over a list would overflow
_SORTED = 10_000  # more grades are hashed instead of sorted: sorting ten million took a second
EXACT = 2**53  # float64 holds all whole numbers up to here


class GainFunction(NamedTuple):
    """How grades become gains: the key of a gain table.

    Besides gains of measures there are "relevant" (1 from the grade `rel` on), "nonrelevant" (1 below it),
    "judgment" (1 for relevant, 0 for nonrelevant, -1 for unjudged in the pool, -2 for outside the pool),
    "unjudged" (1 without a judgment), "stop" (the probability to stop, on a scale up to the grade `top`),
    "scaled" (from 0 at the grade `bottom` to 1 at `top`) and "best" (rises with the grade from `rel` on).
    """

    gain: str | Numbers | GradeGains | Function
    rel: float | None = None
    unjudged: float | None = None  # grade of unjudged documents; None: they gain nothing
    bottom: float = 0.0
    top: float = 0.0


def gain_function_of(measure: Measure) -> GainFunction:
    kind, params = measure.definition.gain, measure.params
    rel, unjudged = params.get("rel"), params.get("unjudged")
    if kind == "parameter":
        gain = params["gain"]
        return GainFunction(gain, 1.0 if gain == "binary" and rel is None else rel, unjudged)
    if kind == "grade":
        return GainFunction("linear", None, unjudged)
    if kind == "found":
        return GainFunction("relevant", math.inf if rel is None else rel, unjudged)
    if kind == "unjudged":
        return GainFunction("unjudged", math.inf)
    if kind == "stop":
        if params["stop"] != "exp2":
            return GainFunction(params["stop"], None, unjudged)
        return GainFunction("stop", None, unjudged, 0.0, params["max_rel"])
    if kind == "scaled":
        return GainFunction("scaled", None, unjudged, params["min_rel"], params["max_rel"])
    return GainFunction(kind, rel, unjudged)


def code_grades(grades: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the distinct grades, in any order, and the index of each grade among them."""
    if grades.dtype.kind in "iu" and len(grades) > _SORTED:
        import pyarrow as pa

        encoded = pa.array(grades).dictionary_encode()
        return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()
    return np.unique(grades, return_inverse=True)


def gains_of_grades(measure: Measure, grades: npt.NDArray[Any]) -> Float64:
    """Return the gain of each grade; a function is called once for each distinct grade."""
    distinct, places = code_grades(grades)
    function = gain_function_of(measure)
    gains: Float64 = np.array([gain_of(function, grade) for grade in distinct.tolist()], np.float64)[places]
    return gains


def gains_of_documents(measure: Measure, rankings: Rankings) -> Float64:
    """Return the gain of each scored document, (n_docs,)."""
    judged = slice(None) if rankings.is_judged is None else rankings.is_judged
    gains = np.full(rankings.n_docs, gain_of_unjudged(gain_function_of(measure)))
    gains[judged] = gains_of_grades(measure, rankings.relevance[judged])
    return gains


def gain_of_unjudged(function: GainFunction) -> float:
    if function.unjudged is not None:
        return gain_of(function, function.unjudged)
    return (
        {"unjudged": 1.0, "judgment": -2.0}.get(function.gain, 0.0) if isinstance(function.gain, str) else 0.0
    )


ONES = ("binary", "relevant", "unjudged")


def gain_of(function: GainFunction, grade: float) -> float:
    """Return the gain of one grade; NaN if the measure has none for it."""
    gain, rel, _, bottom, top = function
    if gain == "judgment":
        return 1.0 if grade >= rel else 0.0 if grade >= 0 else -1.0  # type: ignore[operator]
    if gain == "nonrelevant":
        return 1.0 if 0 <= grade < rel else 0.0  # type: ignore[operator]
    if rel is not None and grade < rel:
        return 0.0
    if gain in ONES:
        return 1.0
    if gain == "best":
        return float(grade) if rel > 0 else grade - rel + 1.0  # type: ignore[operator]
    if gain == "stop":
        return float(gain_by(schema.EXP2, max(grade, 0.0))) / exp2(top) if grade <= 53 else math.inf
    if gain == "scaled":
        half = 1.0 if math.isfinite(top - bottom) else 0.5  # the scale is wider than float64
        return (half * min(max(grade, bottom), top) - half * bottom) / (half * top - half * bottom)
    if gain in GAINS:
        return float(GAINS[gain].value(grade))
    if isinstance(gain, Numbers):
        return gain[int(grade)] if grade == int(grade) and 0 <= grade < len(gain) else math.nan
    if isinstance(gain, GradeGains):
        place = bisect_left(gain.gains, (grade,))
        if place < len(gain.gains) and gain.gains[place][0] == grade:
            return gain.gains[place][1]
        return float(grade) if gain.overrides or grade == 0 else math.nan
    return call_function(gain, int(grade) if grade == int(grade) else grade, "grade")  # type: ignore[arg-type]


class NoGainError(Exception):
    """Return the text around the location of a grade for which a measure is not defined."""

    def __init__(self, grade: float, what: str, why: str) -> None:
        super().__init__(grade, what, why)
        self.grade, self.what, self.why = grade, what, why

    def in_rankings(self, rankings: Rankings) -> InputError:
        matches = rankings.relevance == self.grade
        rows = np.flatnonzero(matches if rankings.is_judged is None else matches & rankings.is_judged)
        at = rankings._locator.at(int(rows[0])) if len(rows) else " in the judged pool, or as unjudged="
        return InputError(f"{self.what}{at}{self.why}")


def check_gains(measure: Measure, function: GainFunction, occurring: tuple[float, ...], longest: int) -> None:
    """Raise `NoGainError` for a grade without a gain, and `InputError` for sums that would overflow."""
    most: tuple[float, float] = 0.0, 0
    for grade in (*occurring, *(() if function.unjudged is None else (function.unjudged,))):
        gain = gain_of(function, grade)
        shown = int(grade) if grade == int(grade) else grade
        what = why = ""
        if math.isnan(gain):
            listed = (
                f"the grades 0 to {len(function.gain) - 1}"
                if isinstance(function.gain, Numbers)
                else function.gain
            )
            what = f"{measure} has no gain for grade {shown}, which occurs"
            why = f"; it has one for {listed}. Give a gain for each grade that occurs."
        elif math.isinf(gain) or (function.gain == "linear" and abs(gain) > EXACT):
            what = f"grade {shown}"
            why = (
                f" has no exact gain in {measure}: float64 does not represent every integer above 2**53. "
                "Use smaller grades, or give gain= a mapping."
            )
        elif function.gain == "stop" and gain > 1:
            why = f": the scale ends at {function.top:g}. Name the scale, as in ERR(max_rel={shown})."
        elif measure.definition.gain == "stop" and not 0 <= gain <= 1:
            why = (
                f": the stopping probability would be {gain:g}. Give one from 0 to 1 for each grade, as in "
                f"{measure.name}(stop={{0: 0, 1: 0.2, 2: 0.7}})."
            )
        elif gain < 0 and measure.definition.divisor == "ideal" and measure.params.get("floor") != "worst":
            what = f"{measure} is not defined for the gain {gain:g} of grade {shown}, which occurs"
            why = ". Map it to 0 or more, as in nDCG(rel=1), drop those rows, or take nDCG(floor='worst')."
        if why:
            raise NoGainError(grade, what or f"{measure} is not defined for grade {shown}, which occurs", why)
        most = max(most, (abs(gain), shown))
    check_sum(measure, most[0], f"grade {most[1]}", longest)


def check_sum(measure: Measure, gain: float, of: str, longest: int, terms: int = 0) -> None:
    """Raise for a gain whose sum over ranks or `terms`, or product with a discount, would overflow."""
    ranks = max(longest, ranks_discounted(measure, longest), terms)
    if abs(gain) * ranks > _MOST_GAIN:
        raise InputError(
            f"the gain {gain:g} of {of} in {measure} is too large to sum over {ranks} documents; "
            "use smaller gains, nDCG does not change with their scale"
        )
    discount, largest = measure.params.get("discount"), 1.0
    if isinstance(discount, Numbers | Function):
        table = discount_table(discount, ranks_discounted(measure, longest))
        largest = float(np.abs(table).max(initial=0.0)) if np.isfinite(table).all() else 0.0
    elif isinstance(discount, float):
        largest = math.log2(discount)  # the discount of the first rank
    if largest > _MOST_GAIN / (max(abs(gain), 1.0) * max(ranks, 1)):
        raise InputError(
            f"the discount {largest:g} of {measure} times the gain {gain:g} of {of} is too large to sum "
            f"over {ranks} ranks; use smaller discounts, nDCG does not change with their scale"
        )


def check(measure: Measure, rankings: Rankings) -> None:
    """Raise, like `build`, for an incomplete measure and for grades for which it is not defined."""
    check_complete(measure)
    try:
        distinct = tuple(rankings._distinct_grades.tolist())
        check_gains(measure, gain_function_of(measure), distinct, rankings._longest)
    except NoGainError as error:
        raise error.in_rankings(rankings) from None


def check_complete(measure: Measure) -> None:
    """Raise for missing and contradictory parameters. Forgets results of users' functions."""
    params = measure.params
    for value in params.values():
        if isinstance(value, Function):
            value.forget()
    if params.get("clip") and not params["ips"]:
        raise MeasureError(
            f"{measure} has clip= but does not use propensities; "
            f"add ips=True, as in {measure.name}(ips=True, clip={params['clip']:g})"
        )
    plain = params.get("denominator") == "n_relevant" and params.get("score_above") is None
    if params.get("ties") == "block" and (measure.is_cut or not plain):
        raise MeasureError(
            f"{measure} counts a tied group as a whole, so it takes no cutoff, no score threshold and "
            "no other denominator than 'n_relevant'. Remove them, or use another rule for ties"
        )
    if params.get("stop", "exp2") != "exp2" and params.get("max_rel", 4) != 4:
        raise MeasureError(
            f"{measure} takes its probabilities from stop, so "
            f"max_rel={params['max_rel']:g} has no effect; pass only one"
        )
    if measure.definition.discount == "harmonic" and not measure.is_cut:
        raise MeasureError(
            f"{measure} is the mean of precisions up to a cutoff; name one, as in {measure}@10"
        )
    if measure.is_cut and params.get("ideal") == "returned" and params["ties"] == "average":
        raise MeasureError(
            f"{measure} has a different ideal for each order of tied documents; "
            f'use ties="input", as in {measure(ties="input")}, or ties="worst" or "best"'
        )
    if params.get("floor") == "worst" and params["ideal"] != "judged":
        raise MeasureError(f"{measure} has no worst ranking, except with ideal='judged'")
    if "recall" in params and params["recall"] is None:
        raise MeasureError(f"{measure} needs a recall level, as in {measure.name}@0.1")
    if measure.definition.gain == "scaled" and (
        params["max_rel"] is None or params["max_rel"] <= params["min_rel"]
    ):
        raise MeasureError(
            f"{measure} needs max_rel=, the highest grade of its scale, "
            f"above min_rel={params['min_rel']:g}; as in SDCG(max_rel=4)@10"
        )
    if measure.definition.divisor == "weighted" and exceeds_int64(measure):
        raise MeasureError(f"{measure} divides by its cutoff; expected one of at most {schema.UNCUT - 1}")
    if params.get("pairs") == "graded" and (
        params["rel"] != 1 or params["max_fp"] is not None or measure.is_cut
    ):
        raise MeasureError(
            f"{measure} compares documents of all grades and ranks; expected it without rel, max_fp and "
            "cutoff, or pairs='relevant'"
        )
    if params.get("judged_only") and params.get("unjudged") is not None:
        raise MeasureError(
            f"{measure} both drops unjudged documents and grades them; "
            f"use judged_only=True or unjudged={params['unjudged']:g}"
        )


def check_best_known(measure: Measure) -> None:
    """Raise for a measure whose best ranking does not begin with relevant documents: AUC with a cutoff."""
    if measure.definition.term == "pairs" and measure.is_cut:
        at = measure.cutoff or measure.cutoff_column
        raise MeasureError(
            f"{measure} has no known worst or best order: a relevant document that leaves the first {at} "
            "ranks may raise it. Ask for it without a cutoff"
        )


# ---- a gain as a table ----


def gain_row(function: GainFunction, grades: Float64, distinct: tuple[float, ...] | None) -> Float64:
    """Return the gain of each grade, and of an unjudged document; 0 for levels that do not occur."""
    occurring = None if distinct is None else set(distinct)
    row = [
        gain_of(function, grade) if occurring is None or grade in occurring else 0.0
        for grade in grades.tolist()
    ]
    return np.array([*row, gain_of_unjudged(function), 0.0])


def top_of(function: GainFunction) -> float:
    """Return the greatest gain of the measure's scale; NaN if each query's best gain counts instead."""
    gain = function.gain
    if gain in ONES or gain == "scaled":
        return 1.0
    scale: Sequence[float] = ()
    if isinstance(gain, Numbers):
        scale = range(len(gain))
    elif isinstance(gain, GradeGains) and not gain.overrides:
        scale = [grade for grade, _ in gain.gains]
    return max((gain_of(function, grade) for grade in scale), default=math.nan)


_KINDS = {"linear": schema.LINEAR, "exp2": schema.EXP2} | dict.fromkeys(ONES, schema.ONE)


def kind_of(function: GainFunction) -> int:
    return _KINDS.get(function.gain, schema.LOOKUP) if isinstance(function.gain, str) else schema.LOOKUP


def threshold_of(function: GainFunction) -> float:
    # tables with a gain for each grade already include the threshold
    return -math.inf if function.rel is None or kind_of(function) == schema.LOOKUP else function.rel
