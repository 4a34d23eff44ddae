"""Charts over ranks and grades: what measures make of them, and what documents have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastndcg.errors import InputError, MeasureError
from fastndcg.look.chart_parts import (
    bars_of,
    curves,
    names_of,
)
from fastndcg.look.looks import (
    add_looks,
    altair,
    title_of,
)
from fastndcg.measures import as_measures
from fastndcg.measures.measure import hold_functions
from fastndcg.scoring.discounts import discount_of, discount_table
from fastndcg.scoring.worths import gain_of, worth_of

if TYPE_CHECKING:
    from fastndcg.decide.explanation import Explanation
    from fastndcg.typing import Chart


def discounts(measures: Any = "nDCG", ranks: int = 20) -> Chart:
    """Plot the discount of each rank, by which gains are multiplied: a line for each measure.

    Parameters
    ----------
    measures : one or several of Measure, notation, or ir_measures object
        Measures with a discount, such as nDCG, DCG and RBP.
    ranks : int
        How many ranks to draw.

    Returns
    -------
    altair.Chart

    Raises
    ------
    MeasureError, ExtraError
        A measure has no discount, or a sequence of discounts that is shorter than `ranks`; Altair is not
        installed.

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

    Returns
    -------
    altair.Chart

    Raises
    ------
    MeasureError, ExtraError
        No measure has a gain for any of the grades; a measure has several intents; Altair is not installed.

    Examples
    --------
    >>> from fastndcg import nDCG, plot
    >>> chart = plot.gains([nDCG, nDCG(gain="exp2")])
    """
    asked, rows = as_measures(measures), []
    with hold_functions(asked):
        for measure in asked:
            if measure.way == "intents":
                raise MeasureError(f"{measure} is of several intents and has no gain for a grade; take nDCG")
            for grade in grades:
                gain = gain_of(worth_of(measure), float(grade))
                if np.isfinite(gain):
                    rows.append({"system": str(measure), "grade": grade, "gain": gain})
    if not rows:
        raise MeasureError(f"{', '.join(map(str, asked))} have no gain for these grades; name others")
    return curves(rows, "grade", "grade", "gain", "gain (units of the measure)", "Gains by grade")


def contributions(explanation: Explanation, ranks: int = 50) -> Chart:
    """Plot what each rank adds to the value of a query, and what it adds in the ideal ranking.

    Parameters
    ----------
    explanation : Explanation
        What `explain` returned.
    ranks : int
        How many ranks to draw, at most. Ranks beyond the last that counts are left out.

    Returns
    -------
    altair.Chart

    Raises
    ------
    InputError, ExtraError
        The measure is undefined for the query; Altair is not installed.

    Examples
    --------
    >>> from fastndcg import Rankings, explain, plot
    >>> chart = plot.contributions(explain(Rankings.from_lists([[3, 0, 2]]), "nDCG@2", query=0))
    """
    table, rows = explanation.to_arrow().slice(0, max(ranks, 1)), []
    kinds = {"contribution": "predicted", "ideal_contribution": "ideal"}
    for column, kind in kinds.items():
        rows += [
            {"ranking": kind, "rank": rank, "contribution": value}
            for rank, value in enumerate(table[column].to_pylist(), 1)
            if value is not None
        ]
    last = max((row["rank"] for row in rows if row["contribution"]), default=0)
    rows = [row for row in rows if row["rank"] <= max(last, 1)]
    if explanation.is_empty or not rows:
        raise InputError(f"{explanation.heading()}, so that there is nothing to draw")
    alt = altair()
    x = alt.X("rank:O", title="rank (1 is the first)", axis=alt.Axis(labelAngle=0, labelOverlap=True))
    y = alt.Y("contribution:Q", title=title_of(f"added to {explanation.measure}"))
    chart = bars_of(rows, x, y, "ranking")
    said = ", ".join(
        f"{row['contribution']:.3f} at {row['rank']}"
        for row in rows
        if row["ranking"] == "predicted" and row["contribution"]
    )
    return add_looks(
        chart,
        f"What each rank adds to {explanation.measure}",
        explanation.heading(),
        f"{explanation.heading()}. Predicted: {said or 'nothing'}.",
    )


def grades(rows: list[dict[str, Any]], subtitle: str = "judged documents of each grade") -> Chart:
    """Plot the number of documents of each grade: a bar for each system.

    Parameters
    ----------
    rows : list of dict
        Each has the keys `system`, `grade` (a string) and `documents`; in the order to draw.
    subtitle : str

    Returns
    -------
    altair.Chart

    Raises
    ------
    ExtraError
        Altair is not installed.

    Examples
    --------
    >>> from fastndcg import plot
    >>> chart = plot.grades([{"system": "bm25", "grade": "0", "documents": 7}])
    """
    alt, names = altair(), names_of(rows)
    order = names_of(rows, "grade")
    x = alt.X("grade:N", sort=order, title="grade", axis=alt.Axis(labelAngle=0))
    chart = bars_of(rows, x, alt.Y("documents:Q", title="documents"), "system")
    said = "; ".join(
        (f"{row['system']}, " if len(names) > 1 else "") + f"grade {row['grade']}: {row['documents']:,}"
        for row in rows
    )
    return add_looks(chart, "Grades", subtitle, f"Documents of each grade. {said}.")
