"""Charts of the values of queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.charts.theme import (
    BETTER,
    HEIGHT,
    MOST,
    SAME,
    STEPS,
    WIDTH,
    WORSE,
    add_looks,
    altair,
    by_name,
    chart_of,
    colours_of,
    dashes_of,
    text_of,
    title_of,
    unit_of,
)
from fastndcg.errors import ColumnError, InputError, count_of, library
from fastndcg.measures import as_measure
from fastndcg.scores.slices import check_kept

if TYPE_CHECKING:
    from fastndcg.analysis.comparison import Comparison
    from fastndcg.common.arrays import Float64
    from fastndcg.scores.scores import Scores
    from fastndcg.typing import Chart


def distribution(systems: Scores | Mapping[str, Scores], measure: object, bins: int = 40) -> Chart:
    """Plot a histogram of the values of queries, and below it the share of queries up to each value.

    Parameters
    ----------
    systems : Scores, or a mapping of names to them
    measure : Measure, notation, or ir_measures object
        One that was evaluated.
    bins : int
        Number of bars of the histogram, of equal width.

    Returns
    -------
    altair.VConcatChart
        Queries without a value are left out; the title says how many. Weights are ignored.

    Raises
    ------
    MeasureError, InputError
        The measure was not evaluated; no query has a value.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate, plot
    >>> chart = plot.distribution(evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "nDCG@2"), "nDCG@2")
    """
    asked, named = as_measure(measure), by_name(systems)
    values = {name: scores[asked] for name, scores in named.items()}
    defined = {name: each[~np.isnan(each)] for name, each in values.items()}
    every = np.concatenate(list(defined.values()))
    if not every.size:
        raise InputError(f"no query has a value of {asked}, so that there is nothing to draw")
    if bins < 1:
        raise InputError(f"bins must be a positive integer; got {bins!r}")
    edges = np.histogram_bin_edges(every, bins)
    alt, names, bars, curve, facts = altair(), list(named), [], [], []
    for name, each in defined.items():
        counts = np.histogram(each, edges)[0]
        for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True):
            bars.append({"system": name, "from": low, "to": high, "queries": count})
        # the share of values up to each distinct one, at most `STEPS` of them
        distinct, of_each = np.unique(each, return_counts=True)
        steps = np.array([distinct, np.cumsum(of_each) / max(len(each), 1)])
        if len(distinct) > STEPS:
            steps = steps[:, np.linspace(0, len(distinct) - 1, STEPS).astype(np.int64)]
        for value, share in [(float(every.min()), 0.0), *steps.T.tolist()]:
            curve.append({"system": name, "value": value, "share": share})
        without = len(values[name]) - len(each)
        facts.append(
            (f"{name}: " if len(named) > 1 else "")
            + f"{count_of(len(values[name]), 'query')}, median {np.median(each):.3f}"
            + (f", {without:,} without a value" if without else "")
        )
    title = title_of(f"{asked} ({unit_of(asked)})")
    histogram = chart_of(bars).encode(
        alt.X("from:Q", title=title, scale=alt.Scale(zero=False)),
        alt.Y("queries:Q", title="queries"),
        colours_of(names),
    )
    if len(named) > 1:
        histogram = histogram.mark_line(interpolate="step-after").encode(dashes_of(names))
    else:
        histogram = histogram.mark_bar().encode(alt.X2("to:Q"), y2=alt.Y2Datum(0))
    shares = chart_of(curve).mark_line(interpolate="step-after")
    shares = shares.encode(
        alt.X("value:Q", title=title, scale=alt.Scale(zero=False)),
        alt.Y("share:Q", title="share of queries up to it"),
        colours_of(names),
        dashes_of(names),
    )
    chart = alt.vconcat(*(each.properties(width=WIDTH, height=HEIGHT // 2) for each in (histogram, shares)))
    said = "; ".join(facts)
    return add_looks(chart, f"{asked} of queries", said, f"How {asked} is distributed. {said}.", height=None)


def against(scores: Scores, measure: object, column: str) -> Chart:
    """Plot the value of each query against a number that was measured online, with their rank correlation.

    Parameters
    ----------
    scores : Scores
    measure : Measure, notation, or ir_measures object
        One that was evaluated.
    column : str
        A kept column of numbers, such as the clicks, revenue or satisfaction of a query.

    Returns
    -------
    altair.Chart
        A point for each query that has both numbers. More than 5,000 queries are drawn as squares, coloured
        by how many queries they hold. The title gives Kendall's tau-b, which needs SciPy.

    Raises
    ------
    MeasureError, ColumnError, InputError, ExtraError
        The measure was not evaluated; the column was not kept, or does not hold numbers; no query has both
        numbers; SciPy is not installed.
    """
    asked = as_measure(measure)
    check_kept([column], scores.queries.column_names)
    try:
        online = scores.queries[column].cast(pa.float64()).to_numpy().astype(np.float64)  # NaN for null
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnError(
            f'column "{column}" has type {scores.queries[column].type}; name a column of numbers'
        ) from None
    values = scores[asked]
    both = ~np.isnan(values) & ~np.isnan(online)
    if not both.any():
        raise InputError(f"no query has both a value of {asked} and one of {column}")
    values, online = values[both], online[both]
    stats = library("scipy.stats", "SciPy", "plot", "plot.against")
    tau = stats.kendalltau(values, online).statistic
    said = f"Kendall's tau-b {tau:.3f} of {count_of(len(values), 'query')}"
    alt = altair()
    x = alt.X("value:Q", title=title_of(f"{asked} ({unit_of(asked)})"), scale=alt.Scale(zero=False))
    y = alt.Y("online:Q", title=title_of(f"{column} (as measured)"), scale=alt.Scale(zero=False))
    if len(values) <= MOST:
        pairs = zip(values.tolist(), online.tolist(), strict=True)
        chart = chart_of([{"value": value, "online": seen} for value, seen in pairs])
        chart = chart.mark_point(filled=True, opacity=0.5, size=25, color=BETTER).encode(x, y)
    else:
        queries = alt.Color("queries:Q", title="queries", scale=alt.Scale(scheme="viridis", type="log"))
        chart = chart_of(_squares(values, online)).mark_rect()
        chart = chart.encode(x, alt.X2("value_to:Q"), y, alt.Y2("online_to:Q"), queries)
    return add_looks(chart, f"{asked} and {column}", said, f"{asked} of each query beside {column}: {said}.")


def differences(
    comparison: Comparison, measure: object, system: str | None = None, *, baseline: str | None = None
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
        A bar for each query. More than 5,000 queries are drawn as 500 bars: each is the mean of equally many
        queries.

    Raises
    ------
    MeasureError, InputError
        The measure or systems were not compared; samples are independent; no query has a difference.
    """
    asked = as_measure(measure)
    found = comparison.differences(asked, system, baseline=baseline)["difference"].to_numpy()
    own, theirs = map(text_of, comparison.pair(system, baseline))
    found = -np.sort(-found[~np.isnan(found)])
    if not found.size:
        raise InputError(f"no query has a difference of {asked}, so that there is nothing to draw")
    bars = STEPS if len(found) > MOST else len(found)
    ends = np.linspace(0, len(found), bars + 1).astype(np.int64)
    heights = np.add.reduceat(found, ends[:-1]) / np.diff(ends)
    words = {1: f"{own} is better", 0: "equal", -1: f"{theirs} is better"}
    rows = [
        {"from": low, "to": high, "difference": height, "winner": words[int(np.sign(height))]}
        for low, high, height in zip(ends[:-1].tolist(), ends[1:].tolist(), heights.tolist(), strict=True)
    ]
    wins, losses = int((found > 0).sum()), int((found < 0).sum())
    alt = altair()
    scale = alt.Scale(domain=[words[1], words[-1], words[0]], range=[BETTER, WORSE, SAME])
    chart = chart_of(rows).mark_bar()
    chart = chart.encode(
        alt.X("from:Q", title="queries, by falling difference", scale=alt.Scale(nice=False)),
        alt.X2("to:Q"),
        alt.Y("difference:Q", title=title_of(f"difference of {asked} ({own} minus {theirs})")),
        alt.Y2Datum(0),
        alt.Color("winner:N", title=None, scale=scale, legend=alt.Legend(orient="top")),
    )
    equal = len(found) - wins - losses
    said = f"better for {count_of(wins, 'query')}, worse for {losses:,}, equal for {equal:,}"
    each = f"; a bar is the mean of about {len(found) // bars:,} queries" if bars < len(found) else ""
    return add_looks(
        chart,
        f"{asked}: {own} against {theirs}",
        said + each,
        f"Differences of {asked}, {own} minus {theirs}, of each query: {said}. "
        f"Greatest gain {found[0]:.3f}, greatest loss {found[-1]:.3f}.",
    )


def _squares(x: Float64, y: Float64, side: int = 40) -> list[dict[str, Any]]:
    """Return the squares of a grid that contain points, and the number of points in each.

    An axis has a bin for each value if there are few, else bins of equal width.
    """
    axes = []
    for values in (x, y):
        distinct = np.unique(values)
        edges: Float64 = np.histogram_bin_edges(values, side)
        if 1 < len(distinct) <= side:
            between = (distinct[1:] + distinct[:-1]) / 2
            ends = 2 * distinct[[0, -1]] - between[[0, -1]]
            edges = np.concatenate([ends[:1], between, ends[1:]])
        axes.append(edges)
    counts = np.histogram2d(x, y, axes)[0]
    xs, ys = (edges.tolist() for edges in axes)
    return [
        {"value": xs[i], "value_to": xs[i + 1], "online": ys[j], "online_to": ys[j + 1]}
        | {"queries": int(counts[i, j])}
        for i, j in np.argwhere(counts).tolist()
    ]
