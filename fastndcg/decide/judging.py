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
    {'group': 'all', 'name': 'all', 'grades': 6, 'alpha': 0.8333333333333334}
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
    nameless = array_of(columns["judge"].is_null(nan_is_null=True)).sum()
    if nameless:
        raise InputError(f"{count_of(int(nameless), 'grade')} without a judge; name the judge of each")
    (judges, judge_names), (queries, _) = _codes(columns["judge"]), _codes(columns["query"])
    documents, each_document = _codes(columns["doc_id"])
    items = np.unique(queries * len(each_document) + documents, return_inverse=True)[1]
    _, last = np.unique((items * len(judge_names) + judges)[::-1], return_index=True)
    counts = np.zeros(len(grades), np.bool_)
    counts[len(grades) - 1 - last] = True
    gold, moments = np.full((2, len(grades)), math.nan)
    if "gold" in columns:
        gold = _numbers("gold", columns["gold"])
    if "time" in columns:
        is_null = array_of(columns["time"].is_null(nan_is_null=True))
        moments = np.where(is_null, math.nan, _codes(columns["time"])[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, others = np.bincount(items[counts], grades[counts]), np.bincount(items[counts]) - 1
        beside_others = grades - (sums[items] - grades) / others[items]
    groups = [("all", "all", np.arange(len(grades)))]
    for role in ("batch", "judge"):
        codes, names = _codes(columns[role]) if role in columns else (np.zeros(0, np.int64), [])
        parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        groups += [(role, name, rows) for name, rows in zip(names, parts, strict=False)]
    of_judges = iter(alpha_of_pairs(items[counts], judges[counts], grades[counts], metric)[1].tolist())
    found = []
    for group, name, rows in groups:
        own = rows[counts[rows]]
        row: dict[str, Any] = {"group": group, "name": name, "grades": len(own)}
        row |= {"items": len(np.unique(items[own])), "repeated": len(rows) - len(own)}
        if group == "judge":
            row["alpha"] = next(of_judges, math.nan)
            is_known = np.count_nonzero(~np.isnan(gold[own])) > 1
            apart = grades[own] - gold[own] if is_known else beside_others[own]
            row |= _drift(moments[own], apart, confidence)
        else:
            row["alpha"] = alpha_of_pairs(items[own], judges[own], grades[own], metric)[0]
            row["kappa"] = _fleiss(items[own], grades[own])
        found.append(row | _beside_gold(grades[own], gold[own], confidence))
    kinds = pa.schema({"group": pa.string(), "name": pa.string(), **_NUMBERS})
    return Table(pa.Table.from_pylist(found, kinds), 2)


def _numbers(role: str, column: pa.ChunkedArray) -> Float64:
    """Grades as float64, NaN where there is none."""
    kind = column.type
    if not (is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise InputTypeError(
            f"the column for {role} holds {kind}; wanted numbers. Replace words by their grades"
        )
    numbers: Float64 = array_of(pc.fill_null(column.cast(pa.float64()), math.nan)).astype(np.float64)
    if np.isinf(numbers).any():
        raise InputError(f"the column for {role} has an infinite number; give finite grades, or none")
    return numbers


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


def _drift(moments: Float64, apart: Float64, confidence: float) -> dict[str, float]:
    """How much further above what they stand beside the second half of a judge's grades is than the first."""
    known = ~np.isnan(apart + moments)
    moments, apart = moments[known], apart[known]
    late = moments > np.sort(moments)[(len(moments) - 1) // 2 :][:1]
    if not 1 < late.sum() < len(late) - 1:
        return {}
    found = Difference.independent(Spread.of(apart[late]), Spread.of(apart[~late]))
    ends = t_interval(found.difference, found.error, found.freedom, confidence)
    return {"drift": found.difference, "drift_low": ends.low, "drift_high": ends.high}
