"""`check_judges`: how far judges agree, with one another and with known grades, and whether one drifts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import array_of, is_number, places_of
from fastndcg.common.table import Table, name_of
from fastndcg.errors import InputError, InputTypeError, check_choice, count_of
from fastndcg.sources.columns import check_column, find_column, normalised
from fastndcg.sources.given import read_columns
from fastndcg.statistics.agreement import METRICS, alpha_of_pairs, cohen_kappa, fleiss_kappa
from fastndcg.statistics.intervals import check_confidence, t_interval
from fastndcg.statistics.paired import Difference, Spread

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

# names by which columns are found, without case and separators
_NAMES = {
    "judge": ("judge", "judgeid", "annotator", "annotatorid", "assessor", "assessorid", "rater", "worker"),
    "batch": ("batch", "batchid"),
    "time": ("time", "timestamp", "date", "day", "judgedat"),
    "gold": ("gold", "goldgrade", "goldlabel", "truth"),
}
_NUMBERS = {
    **dict.fromkeys(("grades", "items", "repeated"), pa.int64()),
    **dict.fromkeys(("alpha", "kappa"), pa.float64()),
    "gold": pa.int64(),
    **dict.fromkeys(("gold_kappa", "bias", "bias_low", "bias_high"), pa.float64()),
    **dict.fromkeys(("drift", "drift_low", "drift_high"), pa.float64()),
}


def check_judges(
    data: Any,
    *,
    query: str | None = None,
    doc_id: str | None = None,
    judge: str | None = None,
    relevance: str | None = None,
    batch: str | None = None,
    time: str | None = None,
    gold: str | None = None,
    metric: str = "ordinal",
    confidence: float = 0.95,
) -> Table:
    """Measure how far judges agree: all of them, in each batch, and each judge with the others; with known
    grades; and whether a judge drifts. Judges are people or models.

    Parameters
    ----------
    data : a table of any library, a mapping of columns, or the path of a file
        A row for each grade that a judge gave to a document of a query.
    query, doc_id, judge, relevance : column, optional
        Default: the columns with usual names, such as query, document, judge and grade.
    batch, time, gold : column, optional
        The batch that a grade belongs to; when it was given, as dates, times, numbers or texts that ascend;
        and the known grade, null where there is none. Default: columns of these names, if there are any.
    metric : "ordinal", "nominal", "interval" or "ratio"
        How far apart two grades are, as in `krippendorff_alpha`.
    confidence : float
        Confidence of the intervals of bias and drift.

    Returns
    -------
    Table
        A row for all grades, then for each batch and each judge, with these columns:

        - group, which is all, batch or judge, and name;
        - grades; items, the judged documents of queries; repeated, grades that a judge gave again, of which
          the last counts;
        - alpha: Krippendorff's; for a judge 1 - (disagreement with the others) / (that expected of all
          grades). kappa: Fleiss', where all items have as many grades, else null;
        - gold: the number of items with a known grade; gold_kappa: Cohen's kappa with it, of quadratic
          weights; bias: the mean of grade - known grade, and its interval;
        - drift of a judge: by how much its grades rose from the first half of its time to the second, beside
          known grades or, without these, beside the mean of the other judges, and Welch's interval.

    Raises
    ------
    ColumnError
        A column that is missing, or that several could be.
    InputError
        No grades; a grade without a judge; an unknown metric; a confidence that is not between 0 and 1.
    InputTypeError
        Grades that are no numbers; data that is no table.

    See Also
    --------
    krippendorff_alpha, fleiss_kappa, cohen_kappa : the same of matrices.
    prediction_powered : what to do with a judge that errs.

    References
    ----------
    Krippendorff, Content Analysis, 2004; Fleiss, Psychological Bulletin 1971; Cohen, Psychological Bulletin
    1968.

    Examples
    --------
    >>> table = {
    ...     "query": ["q1", "q1", "q1", "q2", "q2", "q2"],
    ...     "document": ["a", "a", "b", "a", "a", "b"],
    ...     "judge": ["ann", "bob", "ann", "ann", "bob", "bob"],
    ...     "grade": [2, 2, 0, 1, 0, 3],
    ... }
    >>> check_judges(table).select(["group", "name", "grades", "alpha"]).to_pylist()[0]
    {'group': 'all', 'name': 'all', 'grades': 6, 'alpha': 0.5714285714285714}
    """
    check_choice("metric", metric, METRICS)
    confidence = check_confidence(confidence)
    named = {"judge": judge, "batch": batch, "time": time, "gold": gold}

    def find(names: list[str]) -> dict[str, str]:
        usual = {"query": query, "doc_id": doc_id, "relevance": relevance}
        roles = {role: find_column(names, role, given) for role, given in usual.items()}
        for role, given in named.items():
            known = next((name for name in names if normalised(str(name)) in _NAMES[role]), None)
            if given is not None or known is not None or role == "judge":
                roles[role] = check_column(names, role, given if given is not None else known or role)
        return roles

    return _checked(read_columns(data, find, ("relevance", "gold")), metric, confidence)


def _checked(columns: dict[str, pa.ChunkedArray], metric: str, confidence: float) -> Table:
    grades = _numbers("relevance", columns["relevance"])
    graded = np.flatnonzero(~np.isnan(grades))
    if not len(graded):
        raise InputError("there are no grades, so that judges neither agree nor differ; give a row for each")
    grades, columns = grades[graded], {role: each.take(pa.array(graded)) for role, each in columns.items()}
    if columns["judge"].null_count:
        raise InputError(
            f"{count_of(columns['judge'].null_count, 'grade')} without a judge; name the judge of each"
        )
    judges, judge_names = _codes(columns["judge"])
    (queries, _), (documents, each_document) = _codes(columns["query"]), _codes(columns["doc_id"])
    items = np.unique(queries * len(each_document) + documents, return_inverse=True)[1]
    _, last = np.unique((items * len(judge_names) + judges)[::-1], return_index=True)
    counts = np.zeros(len(grades), np.bool_)
    counts[len(grades) - 1 - last] = True
    gold = _numbers("gold", columns["gold"]) if "gold" in columns else np.full(len(grades), math.nan)
    groups = [("all", "all", np.ones(len(grades), np.bool_))]
    if "batch" in columns:
        batches, batch_names = _codes(columns["batch"])
        groups += [("batch", name, batches == place) for place, name in enumerate(batch_names)]
    groups += [("judge", name, judges == place) for place, name in enumerate(judge_names)]
    of_judges = alpha_of_pairs(items[counts], judges[counts], grades[counts], metric).of_judges
    rows = []
    for place, (group, name, there) in enumerate(groups):
        own = there & counts
        row: dict[str, Any] = {"group": group, "name": name, "grades": int(own.sum())}
        row |= {"items": len(np.unique(items[own])), "repeated": int((there & ~counts).sum())}
        if group == "judge":
            number = place - len(groups) + len(judge_names)
            row["alpha"] = float(of_judges[number]) if number < len(of_judges) else math.nan
            row |= _drift(columns.get("time"), own, _apart(items, grades, gold, own, counts), confidence)
        else:
            row["alpha"] = alpha_of_pairs(items[own], judges[own], grades[own], metric).alpha
            row["kappa"] = _fleiss(items[own], grades[own])
        rows.append(row | _beside_gold(grades[own], gold[own], confidence))
    return Table(
        pa.Table.from_pylist(rows, pa.schema({"group": pa.string(), "name": pa.string(), **_NUMBERS})), 2
    )


def _numbers(role: str, column: pa.ChunkedArray) -> Float64:
    """Grades as float64, NaN where there is none."""
    if not is_number(column.type) and not pa.types.is_null(column.type):
        raise InputTypeError(
            f"the column for {role} holds {column.type}; wanted numbers. Replace words by their grades"
        )
    return array_of(pc.fill_null(column.cast(pa.float64()), math.nan)).astype(np.float64)


def _codes(column: pa.ChunkedArray) -> tuple[Int64, list[str]]:
    """The number of each value, in rising order, and their names."""
    found = pa.chunked_array(column).combine_chunks().dictionary_encode(null_encoding="encode")
    places = places_of(found.dictionary)
    names = [name_of(value) for value in found.dictionary.take(pa.array(np.argsort(places))).to_pylist()]
    return places[array_of(found.indices)], names


def _fleiss(items: Int64, grades: Float64) -> float | None:
    """Fleiss' kappa, if all items have as many grades, two or more."""
    judged = np.unique(items, return_counts=True)[1]
    if not len(judged) or judged[0] < 2 or (judged != judged[0]).any():
        return None
    levels, codes = np.unique(grades, return_inverse=True)
    places = np.unique(items, return_inverse=True)[1] * len(levels) + codes
    return fleiss_kappa(np.bincount(places, minlength=len(judged) * len(levels)).reshape(len(judged), -1))


def _beside_gold(grades: Float64, gold: Float64, confidence: float) -> dict[str, Any]:
    known = ~np.isnan(gold)
    numbers: dict[str, Any] = {"gold": int(known.sum())}
    if known.any():
        numbers["gold_kappa"] = cohen_kappa(grades[known], gold[known], "quadratic")
        spread = Spread.of(grades[known] - gold[known])
        ends = t_interval(spread.mean, spread.error, spread.freedom, confidence)
        numbers |= {"bias": spread.mean, "bias_low": ends.low, "bias_high": ends.high}
    return numbers


def _apart(
    items: Int64, grades: Float64, gold: Float64, own: npt.NDArray[np.bool_], counts: npt.NDArray[np.bool_]
) -> Float64:
    """How far above the known grade each grade of a judge is, or above the mean of the other judges."""
    if np.count_nonzero(own & ~np.isnan(gold)) > 1:
        return (grades - gold)[own]
    others = np.bincount(items[counts]) - 1
    sums = np.bincount(items[counts], grades[counts])
    with np.errstate(divide="ignore", invalid="ignore"):
        return grades[own] - (sums[items[own]] - grades[own]) / others[items[own]]


def _drift(
    time: pa.ChunkedArray | None, own: npt.NDArray[np.bool_], apart: Float64, confidence: float
) -> dict[str, float]:
    """How much further above it the second half of a judge's time is than the first."""
    if time is None:
        return {}
    moments, _ = _codes(time)
    known = ~np.isnan(apart) & ~array_of(time.is_null().combine_chunks())[own]
    moments, apart = moments[own][known], apart[known]
    if not len(moments):
        return {}
    late = moments > np.sort(moments)[(len(moments) - 1) // 2]
    if not 1 < late.sum() < len(late) - 1:
        return {}
    found = Difference.independent(Spread.of(apart[late]), Spread.of(apart[~late]))
    ends = t_interval(found.difference, found.error, found.freedom, confidence)
    return {"drift": found.difference, "drift_low": ends.low, "drift_high": ends.high}
