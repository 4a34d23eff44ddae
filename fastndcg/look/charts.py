"""A function for each plot. Each returns an Altair chart that can be restyled or saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.common.table import labels_of, name_of
from fastndcg.decide.rank_agreement import rank_agreement
from fastndcg.errors import ColumnError, InputError, MeasureError, count_of
from fastndcg.look.looks import (
    BETTER,
    HEIGHT,
    MOST,
    SAME,
    STEPS,
    WIDTH,
    WORSE,
    add_looks,
    altair,
    chart_of,
    colours_of,
    dashes_of,
    fills_of,
    shapes_of,
    text_of,
    title_of,
)
from fastndcg.measures import Measure, as_measure, as_measures
from fastndcg.measures.measure import hold_functions
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.scoring.plan import discount_of, discount_table, gain_of, worth_of
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.decide.anchoring import Anchors
    from fastndcg.decide.comparison import Comparison
    from fastndcg.decide.explanation import Explanation
    from fastndcg.decide.ranges import Ranges
    from fastndcg.scores.scores import Scores
    from fastndcg.typing import Chart

Float64 = npt.NDArray[np.float64]

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
_GROUPS = 40  # slices that are drawn at most

# ---- values of queries ----


def cutoffs(
    systems: Scores | Rankings | Mapping[str, Scores | Rankings],
    measure: object = "nDCG",
    confidence: float = 0.95,
) -> Chart:
    """Plot the mean of a measure at each cutoff: a line and a confidence band for each system.

    Parameters
    ----------
    systems : Scores or Rankings, or a mapping of names to them
        Scores are drawn at the cutoffs that were evaluated, Rankings at 1, 2, 3, 5, 10, 20, 50 and 100.
    measure : Measure, notation, or ir_measures object
        Its own cutoff is ignored.
    confidence : float
        Confidence of the bands: intervals by Student's t, separate for each cutoff.

    Returns
    -------
    altair.Chart

    Raises
    ------
    MeasureError, ExtraError
        The measure has no cutoff, or was evaluated at only one; Altair is not installed.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate, plot
    >>> scores = evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "nDCG@1,2,3")
    >>> type(plot.cutoffs({"bm25": scores})).__name__
    'LayerChart'
    """
    asked, rows = as_measure(measure), []
    if asked.definition.cut != "rank":
        raise MeasureError(f"{asked} has no cutoff, so that it has no curve over cutoffs; take nDCG")
    named = _by_name(systems)
    for name, given in named.items():
        scores = given
        if isinstance(given, Rankings):
            scores = evaluate(given, [asked @ k for k in CUTOFFS])
        at = {known.cutoff: known for known in scores if known.cutoff and asked @ known.cutoff == known}
        if len(at) < 2:
            raise MeasureError(
                f"{asked.name} was evaluated at {count_of(len(at), 'cutoff')}; evaluate at least two, as in "
                f'"{asked.name}@1,5,10"'
            )
        summary = {row["measure"]: row for row in scores.summary(confidence).rows}
        for k, known in sorted(at.items()):
            row = summary[str(known)]
            rows.append({"system": name, "cutoff": k} | {end: row[end] for end in ("mean", "low", "high")})
    alt, names = altair(), list(named)
    base = chart_of(rows).encode(
        alt.X(
            "cutoff:Q",
            title="cutoff k (ranks)",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=sorted({row["cutoff"] for row in rows})),
        ),
        colours_of(names),
    )
    at_k = str(asked @ 1).removesuffix("1") + "k"
    band = base.mark_area(opacity=0.2).encode(alt.Y("low:Q", scale=alt.Scale(zero=False)), alt.Y2("high:Q"))
    line = base.mark_line().encode(
        alt.Y("mean:Q", title=title_of(f"mean {at_k} ({_unit(asked)})")), dashes_of(names)
    )
    points = base.mark_point(filled=True, size=30).encode(alt.Y("mean:Q"), shapes_of(names))
    shown = _in_words(rows, lambda row: f"{row['mean']:.3f} at {row['cutoff']}")
    return add_looks(
        alt.layer(band, line, points),
        f"{at_k} at each cutoff",
        f"bands: intervals of {100 * confidence:g} %, for each cutoff by itself",
        f"Mean {at_k} over cutoffs k. {shown}.",
    )


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
    MeasureError, InputError, ExtraError
        The measure was not evaluated; no query has a value; Altair is not installed.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate, plot
    >>> chart = plot.distribution(evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "nDCG@2"), "nDCG@2")
    """
    asked, named = as_measure(measure), _by_name(systems)
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
        for value, share in _shares(each, every.min()):
            curve.append({"system": name, "value": value, "share": share})
        without = len(values[name]) - len(each)
        facts.append(
            (f"{name}: " if len(named) > 1 else "")
            + f"{count_of(len(values[name]), 'query')}, median {np.median(each):.3f}"
            + (f", {without:,} without a value" if without else "")
        )
    title = title_of(f"{asked} ({_unit(asked)})")
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


def slices(
    systems: Scores | Mapping[str, Scores], measure: object, by: str | Sequence[str], confidence: float = 0.95
) -> Chart:
    """Plot the mean of each group of queries with its interval, and the mean of all queries as a line.

    Parameters
    ----------
    systems : Scores, or a mapping of names to them
    measure : Measure, notation, or ir_measures object
        One that was evaluated.
    by : str or sequence of str
        Kept columns, as in `Scores.by`.
    confidence : float
        Confidence of the intervals, by Student's t.

    Returns
    -------
    altair.Chart
        Groups of fewer than 30 queries are hollow, since their intervals are unreliable. At most 40 groups
        are drawn, those with the most queries, in the order of `Scores.by`.

    Raises
    ------
    MeasureError, ColumnError, ExtraError
        The measure was not evaluated; the column was not kept; Altair is not installed.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate, plot
    >>> rankings = Rankings.from_lists([[1, 0], [0, 1], [1]], queries={"country": ["de", "fr", "de"]})
    >>> chart = plot.slices(evaluate(rankings, "RR"), "RR", by="country")
    """
    asked, named = as_measure(measure), _by_name(systems)
    columns = column_names(by)
    names, keys, numbers = [], [], []
    for name, scores in named.items():
        of, found = scores._find(asked).label, scores.by(columns, confidence)
        keys.append(found.select(columns))
        numbers += found.select(["queries", "small", of, f"{of}_low", f"{of}_high"]).to_pylist()
        names += [name] * len(found)
    if not names:
        raise InputError("there are no queries, so that there is nothing to draw")
    every = pa.concat_tables(keys, promote_options="permissive")
    distinct, groups = groups_of([every[column] for column in columns])
    slices = list(zip(*(map(name_of, column.to_pylist()) for column in distinct), strict=True))
    sizes = [sum(numbers[place]["queries"] for place in group.tolist()) for group in groups]
    most = sorted(np.argsort(np.negative(sizes), kind="stable")[:_GROUPS].tolist())
    labels = labels_of(slices[group] for group in most)
    rows = []
    for group in most:
        for place in groups[group].tolist():
            queries, small, *ends = numbers[place].values()
            row = dict(zip(("mean", "low", "high"), ends, strict=True)) | {
                "queries": queries,
                "small": _size(small),
            }
            rows.append({"system": names[place], "slice": labels[slices[group]]} | row)
    left_out = f"; {len(groups) - len(most):,} smaller ones are not shown" if len(groups) > len(most) else ""
    chart = _intervals(
        rows, list(labels.values()), "slice", ", ".join(columns), f"mean {asked} ({_unit(asked)})"
    )
    if len(named) == 1:
        chart = _with_line(chart, {"system": name, "mean": scores.mean()[str(asked)]}, "mean")
    worst = min(rows, key=lambda row: (math.isnan(row["mean"]), row["mean"]))
    return add_looks(
        chart,
        f"{asked} by {', '.join(columns)}",
        f"intervals of {100 * confidence:g} %; hollow: {_size(True)}{left_out}",
        f"Mean {asked} of {count_of(len(groups), 'group')} by {', '.join(columns)}; lowest: "
        f"{worst['slice']}, {_text_of(worst['mean'])}.",
        height=None,
    )


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
        numbers; Altair or SciPy is not installed.
    """
    asked = as_measure(measure)
    values, online = scores[asked], _numbers(scores.queries, column)
    both = ~np.isnan(values) & ~np.isnan(online)
    if not both.any():
        raise InputError(f"no query has both a value of {asked} and one of {column}")
    values, online = values[both], online[both]
    said = f"Kendall's tau-b {rank_agreement(values, online):.3f} of {count_of(len(values), 'query')}"
    alt = altair()
    x = alt.X("value:Q", title=title_of(f"{asked} ({_unit(asked)})"), scale=alt.Scale(zero=False))
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


# ---- two systems ----


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
    MeasureError, InputError, ExtraError
        The measure or systems were not compared; samples are independent; no query has a difference; Altair
        is not installed.
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


def effects(comparison: Comparison, measure: object = None) -> Chart:
    """Plot the mean difference of each pair of systems with its confidence interval, and a line at 0.

    Parameters
    ----------
    comparison : Comparison
    measure : Measure, notation, or ir_measures object, optional
        Default: every measure that was compared.

    Returns
    -------
    altair.Chart

    Raises
    ------
    MeasureError, ExtraError
        The measure was not compared; Altair is not installed.
    """
    name = None if measure is None else str(as_measure(measure))
    labels = labels_of((f"{row['system']} − {row['baseline']}",) for row in comparison.rows)
    rows = [
        {
            "measure": row["measure"],
            "system": labels[f"{row['system']} − {row['baseline']}",],
            "mean": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "small": _size(row["queries"] < SMALL),
        }
        for row in comparison.rows
        if name in (None, row["measure"])
    ]
    if not rows:
        comparison.differences(measure)  # raises an error that names the measures that were compared
    measures = _names(rows, "measure")
    chart = _intervals(rows, measures, "measure", "", "difference of means")
    said = "; ".join(
        (
            f"{row['measure']}, {row['system']}: {_text_of(row['mean'])} ({_text_of(row['low'])} "
            f"to {_text_of(row['high'])})"
        )
        for row in rows
    )
    return add_looks(
        _with_line(chart, {"none": 0}, "none"),
        "Differences of means",
        f"intervals of {100 * comparison.confidence:g} %",
        f"Differences of means. {said}.",
        height=None,
    )


# ---- measures themselves ----


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
    return _curves(
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
    return _curves(rows, "grade", "grade", "gain", "gain (units of the measure)", "Gains by grade")


def ties(systems: Ranges | Mapping[str, Ranges]) -> Chart:
    """Plot the worst, expected and best mean of each measure, over ties or missing judgments.

    Parameters
    ----------
    systems : Ranges, or a mapping of names to them
        What `tie_range` or `judgment_range` returned.

    Returns
    -------
    altair.Chart

    Raises
    ------
    ExtraError
        Altair is not installed.

    Examples
    --------
    >>> from fastndcg import Rankings, plot, tie_range
    >>> chart = plot.ties(tie_range(Rankings.from_lists([[3, 0]], [[0.5, 0.5]]), "nDCG@1"))
    """
    named, rows = _by_name(systems), []
    for name, ranges in named.items():
        summary = ranges.summary()
        words = summary.column_names[1:4]
        for row in summary.to_pylist():
            of_row = dict(zip(("low", "mean", "high"), (row[word] for word in words), strict=True))
            rows.append({"system": name, "measure": row["measure"]} | of_row)
    measures = _names(rows, "measure")
    chart = _intervals(rows, measures, "measure", "", "mean (units of the measure)")
    said = "; ".join(
        f"{row['measure']}{' of ' + row['system'] if len(named) > 1 else ''}: {_text_of(row['low'])}, "
        f"{_text_of(row['mean'])}, {_text_of(row['high'])}"
        for row in rows
    )
    title = ", ".join(words)
    return add_looks(chart, title.capitalize(), "means over all queries", f"{title}. {said}.", height=None)


def anchors(systems: Anchors | Mapping[str, Anchors]) -> Chart:
    """Plot the mean of each measure for the worst, a random, the actual and the best order.

    Parameters
    ----------
    systems : Anchors, or a mapping of names to them
        What `fastndcg.anchors` returned.

    Returns
    -------
    altair.Chart

    Raises
    ------
    ExtraError
        Altair is not installed.

    Examples
    --------
    >>> from fastndcg import Rankings, anchors, plot
    >>> chart = plot.anchors(anchors(Rankings.from_lists([[3, 0, 2], [0, 1]]), "nDCG@2"))
    """
    named, kinds = _by_name(systems), ["actual", "best", "random", "worst"]
    rows: list[dict[str, Any]] = []
    said = []
    for name, found in named.items():
        for measure, means in found.means().items():
            of = f"{measure}, {name}" if len(named) > 1 else measure
            rows += [{"of": of, "order": kind, "mean": means[kind]} for kind in kinds]
            said.append(f"{of}: {', '.join(f'{kind} {means[kind]:.3f}' for kind in reversed(kinds))}")
    alt, order = altair(), sorted({row["of"] for row in rows})
    base = chart_of(rows).encode(alt.Y("of:N", sort=order, title=None))
    line = base.mark_line(color=SAME, strokeWidth=2)
    line = line.encode(alt.X("mean:Q", title="mean (units of the measure)"), alt.Detail("of:N"))
    points = base.mark_point(filled=True, size=70, opacity=1)
    points = points.encode(alt.X("mean:Q"), colours_of(kinds, "order"), shapes_of(kinds, "order"))
    return add_looks(
        alt.layer(line, points),
        "Worst, random, actual and best order",
        "of the returned documents; means over all queries",
        f"Means of the worst, a random, the actual and the best order. {'; '.join(said)}.",
        height=max(28 * len(order), 60),
    )


# ---- documents ----


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
    chart = _bars(rows, x, y, "ranking")
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
    alt, names = altair(), _names(rows)
    order = _names(rows, "grade")
    x = alt.X("grade:N", sort=order, title="grade", axis=alt.Axis(labelAngle=0))
    chart = _bars(rows, x, alt.Y("documents:Q", title="documents"), "system")
    said = "; ".join(
        (f"{row['system']}, " if len(names) > 1 else "") + f"grade {row['grade']}: {row['documents']:,}"
        for row in rows
    )
    return add_looks(chart, "Grades", subtitle, f"Documents of each grade. {said}.")


# ---- parts ----


def _curves(rows: list[dict[str, Any]], x: str, x_title: str, y: str, y_title: str, title: str) -> Chart:
    """For each measure, a line with a point at each step."""
    alt, names = altair(), _names(rows)
    base = chart_of(rows).encode(
        alt.X(f"{x}:Q", title=x_title, axis=alt.Axis(tickMinStep=1), scale=alt.Scale(zero=False, nice=False)),
        alt.Y(f"{y}:Q", title=y_title),
        colours_of(names),
    )
    points = base.mark_point(filled=True, size=30).encode(shapes_of(names))
    chart = alt.layer(base.mark_line().encode(dashes_of(names)), points)
    said = _in_words(rows, lambda row: f"{row[y]:.3g} at {row[x]:g}", most=5)
    return add_looks(chart, title, ", ".join(names), f"{title}. {said}.")


def _bars(rows: list[dict[str, Any]], x: Any, y: Any, field: str) -> Chart:
    """Bars side by side, one for each value of a column."""
    names = _names(rows, field)
    return (
        chart_of(rows)
        .mark_bar()
        .encode(x, altair().XOffset(f"{field}:N", sort=names), y, colours_of(names, field))
    )


def _intervals(rows: list[dict[str, Any]], order: list[str], field: str, title: str, x_title: str) -> Chart:
    """A point and its interval for each system, in a separate row for each value of a column."""
    alt, names = altair(), _names(rows)
    base = chart_of(rows).encode(
        alt.Y(f"{field}:N", sort=order, title=title_of(title) or None),
        colours_of(names),
        alt.YOffset("system:N", sort=names),
    )
    rule = base.mark_rule(strokeWidth=2)
    rule = rule.encode(alt.X("low:Q", title=title_of(x_title), scale=alt.Scale(zero=False)), alt.X2("high:Q"))
    points = base.mark_point(size=50, opacity=1, filled="small" not in rows[0])
    points = points.encode(alt.X("mean:Q"), shapes_of(names))
    if "small" in rows[0]:
        hollow = alt.condition(alt.datum.small == _size(True), alt.value(0), alt.value(1))
        points = points.encode(fills_of(names), fillOpacity=hollow)
    height = max(24 * len(order) * max(1.0, len(names) * 0.6), 60)
    return alt.layer(rule, points).properties(width=WIDTH, height=height)


def _with_line(chart: Chart, row: dict[str, Any], field: str) -> Chart:
    """Draw a dashed line at a number behind the chart."""
    alt = altair()
    line = chart_of([row]).mark_rule(strokeDash=[4, 4], color=SAME).encode(alt.X(f"{field}:Q"))
    return alt.layer(line, chart)


def _names(rows: list[dict[str, Any]], field: str = "system") -> list[str]:
    """Values of a column as they are shown, in order of their first appearance."""
    return list(dict.fromkeys(text_of(row[field]) for row in rows))


def _in_words(rows: list[dict[str, Any]], say: Callable[[Any], str], most: int | None = None) -> str:
    """Describe the first rows of each system in words."""
    of_systems = {
        name: [say(row) for row in rows if text_of(row["system"]) == name][:most] for name in _names(rows)
    }
    return "; ".join(f"{name}: {', '.join(said)}" for name, said in of_systems.items())


def _shares(values: Float64, least: float) -> Iterable[tuple[float, float]]:
    """Return distinct values, at most `STEPS`, and the share of values up to each."""
    ordered = np.sort(values)
    last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))  # the last of equal values
    if len(last) > STEPS:
        last = last[np.linspace(0, len(last) - 1, STEPS).astype(np.int64)]
    return [
        (float(least), 0.0),
        *zip(ordered[last].tolist(), ((last + 1) / max(len(ordered), 1)).tolist(), strict=True),
    ]


def _squares(x: Float64, y: Float64, side: int = 40) -> list[dict[str, Any]]:
    """Return the squares of a grid that contain points, and the number of points in each."""
    counts, x_edges, y_edges = np.histogram2d(x, y, [_edges(x, side), _edges(y, side)])
    return [
        {
            "value": float(x_edges[i]),
            "value_to": float(x_edges[i + 1]),
            "online": float(y_edges[j]),
            "online_to": float(y_edges[j + 1]),
            "queries": int(counts[i, j]),
        }
        for i, j in zip(*(axis.tolist() for axis in np.nonzero(counts)), strict=True)
    ]


def _edges(values: Float64, most: int) -> Float64:
    """Return the edges of bins: one bin for each value if there are few, else bins of equal width."""
    distinct = np.unique(values)
    if 1 < len(distinct) <= most:
        between = (distinct[1:] + distinct[:-1]) / 2
        first, last = 2 * distinct[0] - between[0], 2 * distinct[-1] - between[-1]
        return np.concatenate([[first], between, [last]])
    edges: Float64 = np.histogram_bin_edges(values, most)
    return edges


def _by_name(systems: Any) -> dict[str, Any]:
    if not isinstance(systems, Mapping):
        return {"system": systems}
    if not systems:
        raise InputError('no system is given; wanted a mapping of names, as in {"bm25": scores}')
    labels = labels_of((str(name),) for name in systems)
    if len(labels) < len(systems):
        raise InputError(
            f"two systems have the same name as text: {', '.join(map(repr, systems))}; rename one"
        )
    return {labels[str(name),]: each for name, each in systems.items()}


def _numbers(queries: pa.Table, column: str) -> Float64:
    """Return a kept column as float64, with NaN for null."""
    check_kept([column], queries.column_names)
    try:
        numbers = queries[column].cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ColumnError(
            f'column "{column}" has type {queries[column].type}; name a column of numbers'
        ) from None
    found: Float64 = numbers.to_numpy().astype(np.float64)
    return found


def _unit(measure: Measure) -> str:
    """Return the range of a measure's values, as a label of an axis."""
    return measure.definition.range.partition(";")[0].partition(" for ")[0]


def _size(small: bool) -> str:
    return f"fewer than {SMALL} queries" if small else f"{SMALL} queries or more"


def _text_of(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3f}"
