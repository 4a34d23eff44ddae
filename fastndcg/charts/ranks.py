"""Charts over ranks, grades, rounds of training and dates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastndcg.charts.theme import (
    SAME,
    TEXT,
    WORSE,
    add_looks,
    altair,
    bars_of,
    by_name,
    chart_of,
    check_rankings,
    curves,
    in_words,
    means_of,
    names_of,
    number_text,
    title_of,
)
from fastndcg.common.table import shorten
from fastndcg.errors import InputError, InputTypeError, MeasureError, check_choice
from fastndcg.measures import as_measures
from fastndcg.measures.measure import hold_functions
from fastndcg.scoring.discounts import discount_of, discount_table
from fastndcg.scoring.gain_values import gain_function_of, gain_of

if TYPE_CHECKING:
    from fastndcg.analysis.explain import Explanation
    from fastndcg.common.table import Table
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.typing import Chart

_GRADES = 20  # distinct grades that are counted separately, at most
_SERIES = 7  # lines of one picture, at most: as many as there are colours


def discounts(measures: Any = "nDCG", ranks: int = 20) -> Chart:
    """Plot the discount of each rank, by which gains are multiplied: a line for each measure.

    Parameters
    ----------
    measures : one or several of Measure, notation, or ir_measures object
        Measures with a discount, such as nDCG, DCG and RBP.
    ranks : int
        How many ranks to draw.

    Raises
    ------
    MeasureError
        A measure has no discount, or a sequence of discounts that is shorter than `ranks`.

    Examples
    --------
    >>> from fastndcg import nDCG, plot
    >>> chart = plot.discounts([nDCG, nDCG(discount="reciprocal")])
    """
    asked, rows = as_measures(measures), []
    if ranks < 1:
        raise InputError(f"ranks must be a positive integer; got {ranks!r}")
    with hold_functions(asked):
        for measure in asked:
            discount = discount_of(measure)
            if discount == "none":
                raise MeasureError(f"{measure} has no discount; take nDCG, DCG or RBP")
            # a measure ignores ranks beyond its cutoff
            table = discount_table(discount, ranks)[: measure.cutoff]
            rows += [
                {"system": str(measure), "rank": rank, "discount": value}
                for rank, value in enumerate(table.tolist(), 1)
            ]
    return curves(
        rows, "rank", "rank (1 is the first)", "discount", "discount (share of the gain)", "Discounts by rank"
    )


def gains(measures: Any = "nDCG", grades: Iterable[float] = range(5)) -> Chart:
    """Plot the gain of each grade: a line for each measure.

    Parameters
    ----------
    measures : one or several of Measure, notation, or ir_measures object
    grades : numbers

    Raises
    ------
    MeasureError
        No measure has a gain for any of the grades; a measure has several intents.

    Examples
    --------
    >>> from fastndcg import nDCG, plot
    >>> chart = plot.gains([nDCG, nDCG(gain="exp2")])
    """
    asked, rows = as_measures(measures), []
    with hold_functions(asked):
        for measure in asked:
            if measure.definition.method == "intents":
                raise MeasureError(f"{measure} is of several intents and has no gain for a grade; take nDCG")
            for grade in grades:
                gain = gain_of(gain_function_of(measure), float(grade))
                if np.isfinite(gain):
                    rows.append({"system": str(measure), "grade": grade, "gain": gain})
    if not rows:
        raise MeasureError(f"{', '.join(map(str, asked))} have no gain for these grades; name others")
    return curves(rows, "grade", "grade", "gain", "gain (units of the measure)", "Gains by grade")


def contributions(
    explanation: Explanation, ranks: int = 50, unit: Literal["share", "gain"] = "share"
) -> Chart:
    """Plot what each rank adds to the value of a query, and what it adds in the ideal ranking.

    Parameters
    ----------
    explanation : Explanation
        What `explain` returned.
    ranks : int
        How many ranks to draw, at most. Ranks beyond the last that counts are left out.
    unit : "share" or "gain"
        "share": parts of the value. "gain": discounted gains, for nDCG those of DCG beside those of IDCG.

    Returns
    -------
    altair.Chart
        The axis names the documents where they have ids.

    Raises
    ------
    InputError
        The measure is undefined for the query; another unit.
    MeasureError
        `unit="gain"` for a measure that is no sum of discounted gains, such as AP.

    Examples
    --------
    >>> from fastndcg import Rankings, explain, plot
    >>> chart = plot.contributions(explain(Rankings.from_lists([[3, 0, 2]]), "nDCG@2", query=0))
    """
    check_choice("unit", unit, ("share", "gain"))
    measure, factor = explanation.measure, 1.0
    if unit == "gain":
        divided = math.isfinite(explanation.ideal) and measure.params.get("floor", "zero") == "zero"
        if not divided and measure.name not in ("DCG", "CG"):
            raise MeasureError(f'{measure} is no sum of discounted gains; draw it with unit="share", or nDCG')
        factor = explanation.ideal if divided else 1.0
    table, rows = explanation.to_arrow().slice(0, max(ranks, 1)), []
    kinds = {"contribution": "predicted", "ideal_contribution": "ideal"}
    documents = [None if each is None else shorten(str(each), 24) for each in table["doc_id"].to_pylist()]
    for column, kind in kinds.items():
        rows += [
            {"ranking": kind, "rank": rank, "contribution": value * factor}
            | ({} if set(documents) == {None} else {"document": f"{rank}  {document or ''}".rstrip()})
            for rank, (value, document) in enumerate(
                zip(table[column].to_pylist(), documents, strict=True), 1
            )
            if value is not None
        ]
    last = max((row["rank"] for row in rows if row["contribution"]), default=0)
    rows = [row for row in rows if row["rank"] <= max(last, 1)]
    if explanation.is_empty or not rows:
        raise InputError(f"{explanation.heading()}, so that there is nothing to draw")
    alt = altair()
    if "document" in rows[0]:
        order = list(dict.fromkeys(row["document"] for row in sorted(rows, key=lambda row: row["rank"])))
        x = alt.X("document:N", sort=order, title="rank and document", axis=alt.Axis(labelAngle=-60))
    else:
        x = alt.X("rank:O", title="rank (1 is the first)", axis=alt.Axis(labelAngle=0, labelOverlap=True))
    added = f"added to {measure}" if unit == "share" else "discounted gain"
    y = alt.Y("contribution:Q", title=title_of(added))
    chart = bars_of(rows, x, y, "ranking")
    said = ", ".join(
        f"{row['contribution']:.3f} at {row['rank']}"
        for row in rows
        if row["ranking"] == "predicted" and row["contribution"]
    )
    return add_looks(
        chart,
        f"What each rank adds to {measure}",
        explanation.heading(),
        f"{explanation.heading()}. Predicted: {said or 'nothing'}.",
    )


def grades(systems: Any, subtitle: str = "judged documents of each grade") -> Chart:
    """Plot the number of documents of each grade: a bar for each system.

    Parameters
    ----------
    systems : Rankings, a mapping of names to them, or a list of dicts
        A dict has the keys `system`, `grade` (a string) and `documents`; in the order to draw. Of Rankings,
        unjudged documents are left out, and more than 20 distinct grades are counted in 20 ranges.
    subtitle : str

    Raises
    ------
    InputError, InputTypeError
        There is no document; a system is no Rankings.

    Examples
    --------
    >>> from fastndcg import Rankings, plot
    >>> chart = plot.grades({"bm25": Rankings.from_lists([[3, 0, 0], [1]])})
    """
    if isinstance(systems, list):
        rows = systems
    else:
        rows = []
        for name, rankings in by_name(systems, "rankings").items():
            counts = grade_counts(check_rankings(name, rankings))
            rows += [{"system": name, "grade": grade, "documents": n} for grade, n in counts]
    if not rows:
        raise InputError("no document has a grade, so that there is nothing to draw")
    alt, names = altair(), names_of(rows)
    order = names_of(rows, "grade")
    x = alt.X("grade:N", sort=order, title="grade", axis=alt.Axis(labelAngle=0))
    chart = bars_of(rows, x, alt.Y("documents:Q", title="documents"), "system")
    said = "; ".join(
        (f"{row['system']}, " if len(names) > 1 else "") + f"grade {row['grade']}: {row['documents']:,}"
        for row in rows
    )
    return add_looks(chart, "Grades", subtitle, f"Documents of each grade. {said}.")


def grade_counts(rankings: Rankings) -> list[tuple[str, int]]:
    """The grades of judged documents as texts, or ranges where there are many, and how many have each."""
    relevance = rankings.relevance
    if rankings.is_judged is not None:
        relevance = relevance[rankings.is_judged]
    if not len(relevance):
        return []
    distinct, counts = np.unique(relevance, return_counts=True)
    if len(distinct) <= _GRADES:
        return [(f"{grade:g}", n) for grade, n in zip(distinct.tolist(), counts.tolist(), strict=True)]
    found, edges = np.histogram(relevance, _GRADES)
    ranges = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [(f"{low:g} to {high:g}", n) for (low, high), n in zip(ranges, found.tolist(), strict=True)]


def history(
    rounds: Mapping[str, Any], baseline: float | Mapping[str, float] | None = None, measure: str = "measure"
) -> Chart:
    """Plot a measure by round of training: a line for each set of data, such as train and test.

    Parameters
    ----------
    rounds : mapping of names to values of each round, or a table with a row for each round
        Or what LightGBM's `record_evaluation` and XGBoost's `evals_result` fill: a mapping of names of data
        to mappings of names of metrics to values, or to tables.
    baseline : number, or mapping of names to numbers, optional
        Drawn as dashed lines, for example what a simpler ranker reaches.
    measure : str
        The title of the axis.

    Returns
    -------
    altair.Chart
        Values that are NaN or None leave a gap. The title says which round of each line is the highest.

    Raises
    ------
    InputError, InputTypeError
        There is no value; something else than numbers.

    Examples
    --------
    >>> from fastndcg import plot
    >>> chart = plot.history({"train": [0.61, 0.68, 0.74], "test": [0.60, 0.64, 0.63]}, baseline=0.58)
    """
    flat: dict[str, Any] = {}
    for name, given in by_name(_columns(rounds), "[0.61, 0.68]").items():
        values = _columns(given)
        if isinstance(values, Mapping):
            flat |= {f"{name} {metric}": found for metric, found in values.items()}
        else:
            flat[name] = values
    rows: list[dict[str, Any]] = []
    best = []
    for name, values in flat.items():
        try:
            found = np.array(list(values), np.float64)
        except (TypeError, ValueError):
            found = np.empty((0, 0))
        if found.ndim != 1:
            raise InputError(f'"{name}" has no list of numbers; wanted one for each round, as [0.61, 0.68]')
        rows += [
            {"system": name, "round": place, "value": value} for place, value in enumerate(found.tolist(), 1)
        ]
        if np.isfinite(found).any():
            top = int(np.nanargmax(np.where(np.isfinite(found), found, np.nan)))
            best.append(f"{name}: {found[top]:.4g} in round {top + 1}")
    if not best:
        raise InputError("no round has a value, so that there is nothing to draw")
    layers = []
    if baseline is not None:
        named = baseline if isinstance(baseline, Mapping) else {"baseline": baseline}
        try:
            lines = [{"baseline": str(name), "value": float(value)} for name, value in named.items()]
        except (TypeError, ValueError):
            raise InputTypeError(
                f"baseline is {baseline!r}; wanted a number, or a mapping of names to numbers"
            ) from None
        base = chart_of(lines).encode(altair().Y("value:Q"))
        text = base.mark_text(align="left", dx=4, dy=-6, color=TEXT)
        layers = [
            base.mark_rule(strokeDash=[4, 4], color=SAME),
            text.encode(altair().Text("baseline:N"), x=altair().XValue(0)),
        ]
        best += [f"{row['baseline']}: {row['value']:.4g}" for row in lines]
    labels = "round", "round of training", "value", title_of(measure)
    return curves(rows, *labels, f"{measure} by round", f"Highest: {'; '.join(best)}", layers, zero=False)


def over_time(table: Table | list[dict[str, Any]], threshold: float | None = None) -> Chart:
    """Plot a measure by date: a line with intervals for each system.

    Parameters
    ----------
    table : Table or list of dicts
        What `History.table` returns, for one measure. Where a time differs in its definition from the time
        before, a new line starts.
    threshold : number, optional
        Drawn as a line, for example the least that is accepted.

    Raises
    ------
    InputError, InputTypeError
        Something other than such a table; several measures, or more than seven lines.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastndcg import History, Rankings, evaluate, plot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = History(os.path.join(folder, "search"))
    ...     history.add(evaluate(Rankings.from_lists([[1, 0], [0, 1]]), "RR"), at="2026-11-24")
    ...     chart = plot.over_time(history.table())
    """
    if not isinstance(table, list) and not hasattr(table, "to_pylist"):
        raise InputTypeError(f"table is a {type(table).__name__}; expected History(path).table()")
    found = table if isinstance(table, list) else table.to_pylist()
    measures = list(dict.fromkeys(row["measure"] for row in found))
    if len(measures) != 1:
        raise InputError(f"the table has {', '.join(measures) or 'no measure'}; name one to draw")
    lines: dict[str, str] = {}
    rows = []
    for row in found:
        name = row.get("name") or row["measure"]
        if row["differs"] is not None:
            lines[name] = f"{name} from {row['at']:%Y-%m-%d}"
        numbers = {key: row[key] for key in ("mean", "low", "high", "queries", "sure")}
        rows.append({"system": lines.get(name, name), "date": row["at"].isoformat()} | numbers)
    if len(names_of(rows)) > _SERIES:
        raise InputError(f"{len(names_of(rows))} lines are too many for a picture; name one system")
    alt = altair()
    layers = means_of(rows, alt.X("date:T", title="date"), f"mean {measures[0]}")
    if threshold is not None:
        rule = chart_of([{"threshold": float(threshold)}]).mark_rule(color=WORSE, strokeWidth=2)
        layers.append(rule.encode(alt.Y("threshold:Q")))
    said = in_words(rows, lambda row: f"{number_text(row['mean'])} on {row['date'][:10]}", most=40)
    notes = [first_sure(found)]
    if lines:
        notes.append(f"not comparable with the time before: {', '.join(lines.values())}")
    return add_looks(
        alt.layer(*layers),
        f"{measures[0]} by date",
        f"bands: intervals of means; {'; '.join(notes)}",
        f"Mean {measures[0]} by date. {said}. {'. '.join(notes)}.",
    )


def first_sure(rows: list[dict[str, Any]]) -> str:
    """Since when the first of the series that changed is sure to have changed."""
    for row in rows:
        if row["sure"]:
            direction = "fell" if row["change"] < 0 else "rose"
            name = row.get("name") or row["measure"]
            return f"{name} {direction}, which is sure since {row['at']:%Y-%m-%d}"
    return "no change is sure"


def _columns(given: Any) -> Any:
    """The columns of a table by name; what is no table as it is."""
    names = getattr(given, "column_names", getattr(given, "columns", None))
    if names is None or isinstance(given, Mapping):
        return given
    return {str(name): given[name].to_numpy() for name in names}
