"""Plots of comparisons and other results: their rows, and the charts that are drawn of them. Public in
`fastndcg.plot`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastndcg.charts import marks, theme
from fastndcg.charts.theme import Rows, altair, by_name
from fastndcg.common.table import labels_of, shorten
from fastndcg.errors import InputError, MeasureError, check_choice, count_of
from fastndcg.measures import as_measure
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.typing import Chart, Result

_GRADES = 20  # distinct grades that are counted separately, at most


class ComparisonPlots:
    """Plots of a `Comparison`. Each method returns an Altair chart and needs the extra `plot`."""

    def __init__(self, comparison: Result) -> None:
        self._comparison = comparison

    def differences(
        self, measure: object, system: str | None = None, *, baseline: str | None = None
    ) -> Chart:
        """The difference of each query, largest gain first. See `fastndcg.plot.differences`."""
        return differences(self._comparison, measure, system, baseline=baseline)

    def effects(self, measure: object = None) -> Chart:
        """The mean difference of each pair, with its interval. See `fastndcg.plot.effects`."""
        return effects(self._comparison, measure)


def differences(
    comparison: Result, measure: object, system: str | None = None, *, baseline: str | None = None
) -> Chart:
    """Plot the difference between two systems for each query, from the largest gain to the largest loss.

    Parameters
    ----------
    comparison : Comparison
    measure : Measure, notation, or ir_measures object
        One that was compared.
    system, baseline : str, optional
        As in `Comparison.movers`.

    Returns
    -------
    altair.Chart
        A bar for each query. More than 500 queries are drawn as 500 bars: each is the mean of equally many
        queries.

    Raises
    ------
    MeasureError, InputError
        The measure or systems were not compared; samples are independent; no query has a difference.
    """
    of, asked = _comparison(comparison), as_measure(measure)
    found = of.differences(asked, system, baseline=baseline)["difference"].to_numpy()
    own, theirs = map(theme.text_of, of.pair(system, baseline))
    found = -np.sort(-found[~np.isnan(found)])
    if not found.size:
        raise InputError(f"no query has a difference of {asked}, so there is nothing to draw")
    n = min(len(found), theme.STEPS)
    ends = np.linspace(0, len(found), n + 1).astype(np.int64)
    heights = np.add.reduceat(found, ends[:-1]) / np.diff(ends)
    words = {1: theme.text_of(f"{own} is better"), 0: "equal", -1: theme.text_of(f"{theirs} is better")}
    rows = [
        {"from": low, "to": high, "difference": height, "winner": words[int(np.sign(height))]}
        for low, high, height in zip(ends[:-1].tolist(), ends[1:].tolist(), heights.tolist(), strict=True)
    ]
    wins, losses = int((found > 0).sum()), int((found < 0).sum())
    alt, colours = altair(), [theme.BETTER, theme.WORSE, theme.SAME]
    scale = alt.Scale(domain=[words[1], words[-1], words[0]], range=colours)
    chart = theme.chart_of(rows).mark_bar(aria=False)  # words for each bar would be most of an SVG
    chart = chart.encode(
        alt.X("from:Q", title="queries, by descending difference", scale=alt.Scale(nice=False)),
        alt.X2("to:Q"),
        alt.Y("difference:Q", title=theme.title_of(f"difference of {asked}")),
        alt.Y2Datum(0),
        alt.Color("winner:N", title=None, scale=scale, legend=alt.Legend(orient="top")),
    )
    equal = len(found) - wins - losses
    said = f"better for {count_of(wins, 'query')}, worse for {losses:,}, equal for {equal:,}"
    each = f"; a bar is the mean of about {len(found) // n:,} queries" if n < len(found) else ""
    greatest = f"Greatest gain {found[0]:.3f}, greatest loss {found[-1]:.3f}."
    return theme.finish(chart, f"{asked}: {own} minus {theirs}", said + each, greatest)


def effects(comparison: Result, measure: object = None) -> Chart:
    """Plot the mean difference of each pair of systems with its confidence interval, and a line at 0.

    Parameters
    ----------
    comparison : Comparison
    measure : Measure, notation, or ir_measures object, optional
        Default: every measure that was compared.

    Returns
    -------
    altair.Chart
        Differences of fewer than 30 queries are hollow, since their intervals are unreliable.

    Raises
    ------
    MeasureError
        The measure was not compared.
    """
    of = _comparison(comparison)
    name = None if measure is None else str(as_measure(measure))
    found = [row for row in of.rows if name in (None, row["measure"])]
    if not found:
        of.differences(measure)  # raises an error that names the measures that were compared
    pairs = labels_of((f"{row['system']} minus {row['baseline']}",) for row in found)
    rows: Rows = []
    for row in found:
        ends = {"mean": row["difference"], "low": row["low"], "high": row["high"]}
        pair = pairs[f"{row['system']} minus {row['baseline']}",]
        rows.append({"measure": row["measure"], "system": pair} | ends | {"small": row["queries"] < SMALL})
    only = next(iter(pairs.values())) if len(pairs) == 1 else "system minus baseline"
    title, axis = f"Differences of means: {only}", f"difference of means ({only})"
    better = found[0]["system"] if len(pairs) == 1 else "the system"
    said = f"intervals of {100 * of.confidence:g} %; right of 0 {better} is better"
    return marks.intervals(rows, "measure", "", axis, title, said, at=0.0)


def _comparison(given: Any) -> Any:
    return theme.check_result("comparison", given, "a Comparison, as compare returns it", "pair")


def ties(systems: Result | Mapping[str, Result]) -> Chart:
    """Plot the worst, expected and best mean of each measure, over ties or missing judgments. Over ties, a
    tick is the mean of the stable order, in which tied documents stand as in the data.

    Parameters
    ----------
    systems : Ranges, or a mapping of names to them
        What `tie_range` or `judgment_range` returned.

    Examples
    --------
    >>> from fastndcg import Rankings, plot, tie_range
    >>> chart = plot.ties(tie_range(Rankings.from_lists([[3, 0]], [[0.5, 0.5]]), "nDCG@1"))
    """
    rows: Rows = []
    for name, ranges in by_name(systems, "Ranges, as tie_range returns them", "_stable").items():
        summary = ranges.summary()
        words = summary.column_names[1:4]
        for row in summary.to_pylist():
            ends = dict(zip(("low", "mean", "high"), (row[word] for word in words), strict=True))
            ends |= {"tick": ranges._stable[row["measure"]]} if ranges._stable else {}
            rows.append({"system": name, "measure": row["measure"]} | ends)
    said = "means over all queries" + "; tick: the stable order, as in the data" * ("tick" in rows[0])
    title = f"{words[0]}, {words[1]} and {words[2]}".capitalize()
    return marks.intervals(rows, "measure", "", "mean (units of the measure)", title, said)


def anchors(systems: Result | Mapping[str, Result]) -> Chart:
    """Plot the mean of each measure for the worst, a random, the actual and the best order.

    Parameters
    ----------
    systems : Anchors, or a mapping of names to them
        What `fastndcg.anchors` returned.

    Examples
    --------
    >>> from fastndcg import Rankings, anchors, plot
    >>> chart = plot.anchors(anchors(Rankings.from_lists([[3, 0, 2], [0, 1]]), "nDCG@2"))
    """
    rows: Rows = []
    for name, found in by_name(systems, "Anchors, as anchors returns them", "means").items():
        for measure, means in found.means().items():
            ends = {"low": means["worst"], "mean": means["actual"], "high": means["best"]}
            rows.append({"system": name, "measure": measure} | ends | {"tick": means["random"]})
    said = "line: from the worst to the best order of the returned documents; tick: a random order"
    titles = "", "mean (units of the measure)", "Worst, random, actual and best order", said
    return marks.intervals(rows, "measure", *titles)


def contributions(explanation: Result, ranks: int = 50, unit: Literal["share", "gain"] = "share") -> Chart:
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
        `unit="gain"` for a measure that is not a sum of discounted gains, such as AP.

    Examples
    --------
    >>> from fastndcg import Rankings, explain, plot
    >>> chart = plot.contributions(explain(Rankings.from_lists([[3, 0, 2]]), "nDCG@2", query=0))
    """
    check_choice("unit", unit, ("share", "gain"))
    of = theme.check_result("explanation", explanation, "an Explanation, as explain returns it", "is_empty")
    measure, factor = of.measure, 1.0
    if unit == "gain":
        divided = math.isfinite(of.ideal) and measure.params.get("floor", "zero") == "zero"
        if not divided and measure.name not in ("DCG", "CG"):
            raise MeasureError(
                f'{measure} is not a sum of discounted gains; draw it with unit="share", or nDCG'
            )
        factor = of.ideal if divided else 1.0
    table = of.to_arrow().slice(0, max(ranks, 1))
    ids = table["doc_id"].to_pylist()
    documents = [f"{rank}  {shorten(str(each or ''), 24)}".rstrip() for rank, each in enumerate(ids, 1)]
    rows: Rows = []
    for column, kind in (("contribution", "predicted"), ("ideal_contribution", "ideal")):
        rows += [
            {"system": kind, "rank": rank, "contribution": value * factor, "document": documents[rank - 1]}
            for rank, value in enumerate(table[column].to_pylist(), 1)
            if value is not None
        ]
    last = max((row["rank"] for row in rows if row["contribution"]), default=1)
    rows = [row for row in rows if row["rank"] <= last]
    if of.is_empty or not rows:
        raise InputError(f"{of.heading()}, so there is nothing to draw")
    added = f"added to {measure}" if unit == "share" else "discounted gain"
    titles = "contribution", added, f"What each rank adds to {measure}", of.heading()
    if any(each is not None for each in ids):
        across: dict[str, Any] = {"axis": {"labelAngle": -60}, "sort": documents[:last]}
        return marks.bars(rows, "document:N", "rank and document", *titles, across)
    across = {"axis": {"labelAngle": 0, "labelOverlap": True}}
    return marks.bars(rows, "rank:O", "rank (1 is the first)", *titles, across)


def grades(systems: Rankings | Mapping[str, Rankings]) -> Chart:
    """Plot the number of documents of each grade: a bar for each system.

    Parameters
    ----------
    systems : Rankings, or a mapping of names to them
        Unjudged documents are left out, and more than 20 distinct grades are counted in 20 ranges.

    Raises
    ------
    InputError, InputTypeError
        There is no document; a system is no Rankings.

    Examples
    --------
    >>> from fastndcg import Rankings, plot
    >>> chart = plot.grades({"bm25": Rankings.from_lists([[3, 0, 0], [1]])})
    """
    named = by_name(systems, "Rankings, as read_parquet returns them", "relevance")
    rows = [
        {"system": name, "grade": grade, "documents": n}
        for name, rankings in named.items()
        for grade, n in grade_counts(rankings)
    ]
    if not rows:
        raise InputError("no document has a grade, so there is nothing to draw")
    across = {"axis": {"labelAngle": 0}, "sort": theme.names_of(rows, "grade")}
    titles = "documents", "documents", "Grades", "judged documents of each grade"
    return marks.bars(rows, "grade:N", "grade", *titles, across)


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
