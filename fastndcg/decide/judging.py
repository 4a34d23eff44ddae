"""`check_judges`: how far judges agree, and whether one drifts; `sample_queries`: which queries to judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import array_of, column_of, is_number, places_of, plain
from fastndcg.common.table import Table, name_of
from fastndcg.errors import InputError, InputTypeError, check_choice, check_whole, count_of
from fastndcg.scores.slices import column_names, groups_of
from fastndcg.sources.columns import check_column, find_column
from fastndcg.sources.given import open_any, read_columns, usual_columns
from fastndcg.sources.opened import OfText
from fastndcg.statistics.agreement import METRICS, alpha_of_pairs, cohen_kappa, fleiss_kappa
from fastndcg.statistics.intervals import check_confidence
from fastndcg.statistics.paired import Spread

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64, Int64

# names by which columns are found, without case and separators
_NAMES = {
    "judge": ("judge", "judgeid", "annotator", "annotatorid", "assessor", "assessorid", "rater", "worker"),
    "batch": ("batch", "batchid"),
    "time": ("time", "timestamp", "date", "day", "judgedat"),
    "gold": ("gold", "goldgrade", "goldlabel", "truth"),
}
_KINDS = {
    **dict.fromkeys(("group", "name"), pa.string()),
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
    query, doc_id, judge, relevance, batch, time, gold : column, optional
        Default: the columns with usual names, such as query, document, judge and grade; of the last three, if
        there are any: the batch that a grade belongs to; when it was given, as dates, times, numbers or texts
        that ascend; and the known grade, null where there is none.
    metric, confidence : "ordinal", "nominal", "interval" or "ratio"; float
        How far apart two grades are, as in `krippendorff_alpha`. Confidence of the intervals of bias and
        drift.

    Returns
    -------
    Table
        A row for all grades, then for each batch and each judge: group, which is all, batch or judge, and
        name; grades; items, the judged documents of queries; repeated, grades that a judge gave again, of
        which the last counts; and

        - alpha: Krippendorff's; for a judge 1 - (disagreement with the others) / (that expected of all
          grades). kappa: Fleiss', where all items have as many grades, else null;
        - gold: the number of items with a known grade; gold_kappa: Cohen's kappa with it, of quadratic
          weights; bias: the mean of grade - known grade, and its interval;
        - drift of a judge: by how much its grades rose from the first half of its time to the second, beside
          known grades or, without these, beside the mean of the other judges, and Welch's interval.

    Raises
    ------
    InputError, InputTypeError, ColumnError
        No grades, or such as are no numbers; a grade without a judge; data that is no table; a column that is
        missing, or that several could be; an unknown metric.

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

    def find(names: list[str]) -> dict[str, str]:
        usual = {"query": query, "doc_id": doc_id, "relevance": relevance}
        roles = {role: find_column(names, role, given) for role, given in usual.items()}
        named = {"judge": judge, "batch": batch, "time": time, "gold": gold}
        return roles | usual_columns(names, _NAMES, named, "judge")

    columns = read_columns(data, find, ("relevance", "gold"))
    grades = _numbers("relevance", columns["relevance"])
    graded = np.flatnonzero(~np.isnan(grades))
    if not len(graded):
        raise InputError("there are no grades, so that judges neither agree nor differ; give a row for each")
    grades, columns = grades[graded], {role: each.take(pa.array(graded)) for role, each in columns.items()}
    nameless = array_of(columns["judge"].is_null(nan_is_null=True)).sum()
    if nameless:
        raise InputError(f"{count_of(int(nameless), 'grade')} without a judge; name the judge of each")
    judges, queries, documents = (_codes(columns[role]) for role in ("judge", "query", "doc_id"))
    items = np.unique(queries * (documents.max() + 1) + documents, return_inverse=True)[1]
    _, last = np.unique((items * (judges.max() + 1) + judges)[::-1], return_index=True)
    counts = np.zeros(len(grades), np.bool_)
    counts[len(grades) - 1 - last] = True
    known, moments = np.full((2, len(grades)), math.nan)
    if "gold" in columns:
        known = _numbers("gold", columns["gold"])
    if "time" in columns:
        is_null = array_of(columns["time"].is_null(nan_is_null=True))
        moments = np.where(is_null, math.nan, _codes(columns["time"]))
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, others = np.bincount(items[counts], grades[counts]), np.bincount(items[counts]) - 1
        beside_others = grades - (sums[items] - grades) / others[items]
    groups = [("all", "all", np.arange(len(grades)))]
    for role in ("batch", "judge"):
        if role in columns:
            (values,), parts = groups_of([columns[role]])
            groups += [(role, name_of(each.as_py()), rows) for each, rows in zip(values, parts, strict=True)]
    of_judges = iter(alpha_of_pairs(items[counts], judges[counts], grades[counts], metric)[1].tolist())
    found = []
    for group, name, rows in groups:
        own = rows[counts[rows]]
        row: dict[str, Any] = {"group": group, "name": name, "grades": len(own)}
        row |= {"items": len(np.unique(items[own])), "repeated": len(rows) - len(own)}
        if group == "judge":
            row["alpha"] = next(of_judges, math.nan)
            is_known = np.count_nonzero(~np.isnan(known[own])) > 1
            apart = grades[own] - known[own] if is_known else beside_others[own]
            row |= _drift(moments[own], apart, confidence)
        else:
            row["alpha"] = alpha_of_pairs(items[own], judges[own], grades[own], metric)[0]
            row["kappa"] = _fleiss(items[own], grades[own])
        own = own[~np.isnan(known[own])]
        row["gold"] = len(own)
        if len(own):
            row["gold_kappa"] = cohen_kappa(grades[own], known[own], "quadratic")
            row |= _with_interval("bias", Spread.of(grades[own] - known[own]), confidence)
        found.append(row)
    return Table(pa.Table.from_pylist(found, pa.schema(_KINDS)), 2)


def _numbers(role: str, column: pa.ChunkedArray, above: float | None = None) -> Float64:
    """Finite numbers as float64, all above a number; without one they are grades, NaN where there is none."""
    kind, are_grades = column.type, above is None
    if not (is_number(kind) or pa.types.is_boolean(kind) or (are_grades and pa.types.is_null(kind))):
        advice = ". Replace words by their grades" if are_grades else ""
        raise InputTypeError(f"the column for {role} holds {kind}; wanted numbers{advice}")
    numbers: Float64 = array_of(pc.fill_null(column.cast(pa.float64()), math.nan)).astype(np.float64)
    if above is None:
        if np.isinf(numbers).any():
            raise InputError(f"the column for {role} has an infinite number; give finite grades, or none")
        return numbers
    bad = ~(np.isfinite(numbers) & (numbers > above))
    if bad.any():
        wanted = "numbers above 0; drop queries that nobody asks" if above == 0 else "finite numbers"
        found = f"{numbers[bad][0]:g} at row {int(np.argmax(bad))}"
        raise InputError(f"the column for {role} has {found}; wanted {wanted}")
    return numbers


def _codes(column: pa.ChunkedArray) -> Int64:
    """The number of each value, in rising order."""
    found = pa.chunked_array(column).combine_chunks().dictionary_encode(null_encoding="encode")
    return places_of(found.dictionary)[array_of(found.indices)]


def _fleiss(items: Int64, grades: Float64) -> float | None:
    """Fleiss' kappa, if all items have as many grades, two or more."""
    judged = np.unique(items, return_counts=True)[1]
    if not len(judged) or judged[0] < 2 or (judged != judged[0]).any():
        return None
    levels, codes = np.unique(grades, return_inverse=True)
    places = np.unique(items, return_inverse=True)[1] * len(levels) + codes
    return fleiss_kappa(np.bincount(places, minlength=len(judged) * len(levels)).reshape(len(judged), -1))


def _drift(moments: Float64, apart: Float64, confidence: float) -> dict[str, float]:
    """How much further above what they stand beside the second half of a judge's grades is than the first."""
    known = ~np.isnan(apart + moments)
    moments, apart = moments[known], apart[known]
    late = moments > np.sort(moments)[(len(moments) - 1) // 2 :][:1]
    if not 1 < late.sum() < len(late) - 1:
        return {}
    found = Spread.independent(Spread.of(apart[late]), Spread.of(apart[~late]))
    return _with_interval("drift", found, confidence)


def _with_interval(name: str, spread: Spread, confidence: float) -> dict[str, float]:
    low, high = spread.interval(confidence)
    return {name: spread.mean, f"{name}_low": low, f"{name}_high": high}


def sample_queries(
    table: Any,
    n: int,
    *,
    by: str | Sequence[str] = (),
    weight: str | None = None,
    allocation: Literal["proportional", "neyman"] = "proportional",
    value: str | None = None,
    of: Literal["queries", "traffic"] = "queries",
    seed: int = 0,
) -> pa.Table:
    """Draw queries without replacement, by stratum and traffic, with weights that undo how they were drawn.

    Parameters
    ----------
    table, n : a table of any library, a mapping of columns, or the path of a file; int
        A row for each query, and how many queries are drawn.
    by : columns, optional
        Strata: combinations of their values, each of which has one query or more.
    weight : column, optional
        Traffic of each query, above 0: a query is drawn with a probability in proportion to it; those that
        are asked so often that this would exceed 1 are all drawn. Default: all queries of a stratum alike.
    allocation, value : "proportional" or "neyman"; column, optional
        How many queries each stratum has: in proportion to its traffic, or its number of queries; or to that
        times the standard deviation in it of `value`, a number that varies as the measure will, such as its
        value last month.
    of : "queries" or "traffic"
        What the weighted mean of the sample estimates: the mean over all rows, or the mean weighted by
        traffic.
    seed : int
        The same seed draws the same rows of the same table.

    Returns
    -------
    pyarrow.Table
        The rows drawn, in the order of the table, and as the last column `weight`, float64, which
        `Rankings` and readers take as weight=. Another column of this name is replaced.

    Raises
    ------
    InputError, InputTypeError, ColumnError
        More queries than rows, or fewer than strata; traffic that is not above 0; values that are missing;
        data that is no table; a column that is missing, or holds no numbers.

    See Also
    --------
    evaluate : takes the weights of queries.
    judge_next : which documents to judge of them.

    Notes
    -----
    A query that is drawn with probability p has the weight 1/p (Horvitz and Thompson), or traffic / p. The
    draw is systematic over a random order, so that p is exact and each stratum has its number of queries.
    Without traffic, and of "traffic", the weights of each draw have one sum, and the weighted mean is
    unbiased. Of "queries" drawn by traffic the sum varies: the mean is a ratio, whose bias falls as 1/n (in a
    simulation with n = 100 it was 0.012, a fifth of the standard deviation).

    References
    ----------
    Horvitz and Thompson, JASA 1952; Neyman, Journal of the Royal Statistical Society 1934; Madow, Annals of
    Mathematical Statistics 1949.

    Examples
    --------
    >>> log = {"qid": [1, 2, 3, 4, 5, 6], "lang": ["de", "de", "de", "de", "fr", "fr"]}
    >>> sample_queries(log, 3, by="lang").select(["lang", "weight"]).to_pylist()
    [{'lang': 'de', 'weight': 2.0}, {'lang': 'de', 'weight': 2.0}, {'lang': 'fr', 'weight': 2.0}]
    """
    n, seed = check_whole("n", n, 1), check_whole("seed", seed, 0)
    check_choice("allocation", allocation, ("proportional", "neyman"))
    check_choice("of", of, ("queries", "traffic"))
    if (allocation == "neyman") != (value is not None):
        raise InputError(
            'allocation="neyman" and value= go together: a number that varies as the measure will'
        )
    opened = open_any(table, named=True)
    strata, numbers = column_names(by), [name for name in (weight, value) if name is not None]
    for argument, name in [*(("by", name) for name in strata), ("weight", weight), ("value", value)]:
        if name is not None:
            check_column(opened.names, argument, name)
    rows = opened.table(list(opened.names), OfText(numbers, None))
    rows = pa.table([plain(column) for column in rows.columns], names=rows.column_names)
    if not len(rows) or n > len(rows):
        raise InputError(f"n={n:,} queries of {len(rows):,} rows; wanted no more than there are")
    traffic = np.ones(len(rows)) if weight is None else _numbers("weight", rows[weight], above=0.0)
    values = None if value is None else _numbers("value", rows[value], above=-math.inf)
    groups = groups_of([rows[name] for name in strata])[1] if strata else [np.arange(len(rows))]
    if n < len(groups):
        raise InputError(f"n={n:,} queries of {len(groups):,} strata; wanted one of each at least")
    with np.errstate(over="ignore"):
        sizes = np.array([traffic[group].sum() for group in groups])
        total = sizes.sum()
    if not math.isfinite(total):
        raise InputError("the column for weight sums up to more than a float64 holds; divide it by a number")
    if values is not None:
        sizes = sizes * [values[group].std() for group in groups]
    random, chance, drawn = np.random.default_rng(seed), np.zeros(len(rows)), np.zeros(len(rows), np.bool_)
    for group, number in zip(groups, _allocate(sizes, [len(group) for group in groups], n), strict=True):
        chance[group] = _chances(traffic[group], number)
        order = group[random.permutation(len(group))]
        # systematic: a query is drawn where the sum of chances passes a whole number plus one random start
        start = random.random()
        ends = np.round(np.cumsum(chance[order]), 9) + start
        drawn[order] = np.floor(ends) > np.floor(np.append(start, ends[:-1]))
    chosen = np.flatnonzero(drawn)
    weights = (traffic if of == "traffic" else np.ones(len(rows)))[chosen] / chance[chosen]
    kept = rows.select([name for name in rows.column_names if name != "weight"])
    return kept.take(column_of(chosen)).append_column("weight", pa.array(weights))


def _allocate(sizes: Float64, most: Sequence[int], n: int) -> Int64:
    """How many queries each stratum has: one or more, up to all, otherwise in proportion to the sizes."""
    limits: Int64 = np.array(most)
    sizes = np.where(sizes > 0, sizes, 0.0) if sizes.sum() > 0 else limits.astype(np.float64)
    found: Int64 = np.clip(np.floor(n * sizes / sizes.sum()), 1, limits).astype(np.int64)
    while (left := n - found.sum()) != 0:  # by the highest average, as seats are given to parties
        room = found < limits if left > 0 else found > 1
        each = np.where(room, sizes / found, -1.0 if left > 0 else np.inf)
        if left > 0 and (whole := np.floor(left * room * sizes / max((room * sizes).sum(), 1e-300))).any():
            found = np.minimum(found + whole.astype(np.int64), limits)
        else:
            found[int(np.argmax(each) if left > 0 else np.argmin(each))] += 1 if left > 0 else -1
    return found


def _chances(traffic: Float64, number: int) -> Float64:
    """The probability of each query, in proportion to traffic, 1 at most; they sum up to the number."""
    chances, free = np.ones(len(traffic)), np.ones(len(traffic), np.bool_)
    while number < len(traffic):
        left = number - np.count_nonzero(~free)
        chances[free] = left * traffic[free] / traffic[free].sum()
        above = free & (chances > 1)
        if not above.any():
            break
        chances[above], free[above] = 1.0, False
    return chances
