"""Plots of what this package returns: the rows of each, and how they are drawn. Public in `fastndcg.plot`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec

import numpy as np

from fastndcg.charts import theme
from fastndcg.charts.theme import Layer, Rows, Spec, by_name, by_system, nominal, quantity
from fastndcg.common.table import labels_of, name_of, shorten
from fastndcg.errors import InputError, InputTypeError, MeasureError, check_choice, count_of
from fastndcg.measures import as_measure
from fastndcg.statistics.significance import SMALL
from fastndcg.typing import Chart, Result

if TYPE_CHECKING:
    from fastndcg.common.table import Table
    from fastndcg.measures import Measure

__all__ = [
    "Chart", "ComparisonPlots", "ScoresPlots", "contributions", "cutoffs", "differences", "distribution",
    "effects", "history", "over_time", "slices", "ties",
]  # fmt: skip

_GROUPS = 40  # most slices in a plot
_STEPS = 500  # most bars, about as many as pixels; more values share them

_SCORES = "Scores, as evaluate returns them", "summary"
_P = ParamSpec("_P")


# ---- scores ----


def cutoffs(
    systems: Result | Mapping[str, Result], measure: object = "nDCG", confidence: float = 0.95
) -> Chart:
    """Plot the mean of a measure at each cutoff: a line and a confidence band for each system.

    Parameters
    ----------
    systems : Scores, or a mapping of names to them
        They are drawn at the cutoffs that were evaluated.
    measure : Measure, notation, or ir_measures object
        Its own cutoff is ignored.
    confidence : float
        Confidence of the bands: intervals by Student's t, separate for each cutoff.

    Raises
    ------
    MeasureError
        The measure has no cutoff, or was evaluated at only one.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate, plot
    >>> scores = evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "nDCG@1,2,3")
    >>> type(plot.cutoffs({"bm25": scores})).__name__
    'LayerChart'
    """
    asked = as_measure(measure)
    if asked.definition.cut != "rank":
        raise MeasureError(f"{asked} has no cutoff and therefore no curve over cutoffs; take nDCG")
    rows: Rows = []
    for name, scores in by_name(systems, *_SCORES).items():
        by_cutoff = zip(scores, scores.summary(confidence).rows, strict=True)
        at = {known.cutoff: row for known, row in by_cutoff if known.cutoff and asked @ known.cutoff == known}
        if len(at) < 2:
            raise MeasureError(
                f"{asked.name} was evaluated at {count_of(len(at), 'cutoff')}; evaluate at least two, as in "
                f'"{asked.name}@1,5,10"'
            )
        for k, row in sorted(at.items()):
            rows.append({"system": name, "cutoff": k} | {end: row[end] for end in ("mean", "low", "high")})
    at_k = str(asked @ 1).removesuffix("1") + "k"
    ticks = {"values": sorted({row["cutoff"] for row in rows})}
    across = quantity("cutoff", "cutoff k (ranks)", scale={"type": "log", "nice": False}, axis=ticks)
    said = f"bands: intervals of {100 * confidence:g} %, for each cutoff by itself"
    height = quantity("mean", f"mean {at_k} ({_range_of(asked)})")
    return _lines(rows, across, height, f"{at_k} at each cutoff", said)


def slices(
    systems: Result | Mapping[str, Result], measure: object, by: str | Sequence[str], confidence: float = 0.95
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
    MeasureError, ColumnError
        The measure was not evaluated; the column was not kept.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate, plot
    >>> rankings = Rankings.from_lists([[1, 0], [0, 1], [1]], queries={"country": ["de", "fr", "de"]})
    >>> chart = plot.slices(evaluate(rankings, "RR"), "RR", by="country")
    """
    asked, named = as_measure(measure), by_name(systems, *_SCORES)
    columns = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    rows: Rows = []
    sizes: Counter[tuple[str, ...]] = Counter()
    for name, scores in named.items():
        label = scores._find(asked).label
        for group in scores.by(columns, confidence).to_pylist():
            key = tuple(name_of(group[column]) for column in columns)
            sizes[key] += group["queries"]
            ends = {"mean": group[label], "low": group[f"{label}_low"], "high": group[f"{label}_high"]}
            rows.append({"system": name, "slice": key} | ends | {"small": group["small"]})
    if not rows:
        raise InputError("there are no queries, so there is nothing to draw")
    largest = {key for key, _ in sizes.most_common(_GROUPS)}
    labels = labels_of(key for key in sizes if key in largest)
    rows = [row | {"slice": labels[row["slice"]]} for row in rows if row["slice"] in largest]
    left_out = f"; {len(sizes) - len(labels):,} smaller ones are not shown" * (len(sizes) > len(labels))
    shown = ", ".join(columns)
    said = f"intervals of {100 * confidence:g} %; hollow: fewer than {SMALL} queries{left_out}"
    at = scores.mean()[str(asked)] if len(named) == 1 else None
    title = f"mean {asked} ({_range_of(asked)})"
    return _intervals(rows, nominal("slice", shown), title, f"{asked} by {shown}", said, at)


def distribution(systems: Result | Mapping[str, Result], measure: object, bins: int = 40) -> Chart:
    """Plot a histogram of the values of queries: bars of one system, steps of several.

    Parameters
    ----------
    systems : Scores, or a mapping of names to them
    measure : Measure, notation, or ir_measures object
        One that was evaluated.
    bins : int
        Number of bars of the histogram, of equal width.

    Returns
    -------
    altair.Chart
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
    asked, named = as_measure(measure), by_name(systems, *_SCORES)
    values = {name: scores[asked] for name, scores in named.items()}
    defined = {name: each[~np.isnan(each)] for name, each in values.items()}
    every = np.concatenate(list(defined.values()))
    if not every.size:
        raise InputError(f"no query has a value of {asked}, so there is nothing to draw")
    if bins < 1:
        raise InputError(f"bins must be a positive integer; got {bins!r}")
    edges, names, facts = np.histogram_bin_edges(every, bins), list(named), []
    rows: Rows = []
    for name, each in defined.items():
        counts = np.histogram(each, edges)[0].tolist()
        sides = zip(edges[:-1].tolist(), edges[1:].tolist(), counts, strict=True)
        rows += [{"system": name, "from": low, "to": high, "queries": count} for low, high, count in sides]
        without = len(values[name]) - len(each)
        facts.append(
            (f"{name}: " if len(named) > 1 else "")
            + f"{count_of(len(values[name]), 'query')}, median {np.median(each):.3f}"
            + (f", {without:,} without a value" if without else "")
        )
    encoding = {"x": quantity("from", f"{asked} ({_range_of(asked)})"), "color": theme.colours_of(names)}
    encoding["y"] = quantity("queries", "queries", scale={})
    layer: Layer = {"type": "bar"}, encoding | {"x2": {"field": "to"}, "y2": {"datum": 0}}
    if len(named) > 1:
        dashes = {"strokeDash": by_system(names, theme.DASHES)}
        layer = {"type": "line", "interpolate": "step-after"}, encoding | dashes
    return theme.draw(rows, [layer], f"{asked} of queries", "; ".join(facts))


def _range_of(measure: Measure) -> str:
    """Return the range of a measure's values as the label of an axis."""
    return measure.definition.range.partition(";")[0].partition(" for ")[0]


# ---- comparisons ----


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
    values = of.movers(asked, system, None, baseline=baseline)["difference"].to_numpy()
    system_name, theirs = map(theme.text_of, of.pair(system, baseline))
    values = -np.sort(-values[~np.isnan(values)])
    if not values.size:
        raise InputError(f"no query has a difference of {asked}, so there is nothing to draw")
    n = min(len(values), _STEPS)
    ends = np.linspace(0, len(values), n + 1).astype(np.int64)
    heights = np.add.reduceat(values, ends[:-1]) / np.diff(ends)
    words = {
        1: theme.text_of(f"{system_name} is better"),
        -1: theme.text_of(f"{theirs} is better"),
        0: "equal",
    }
    rows = [
        {"from": low, "to": high, "difference": height, "system": words[int(np.sign(height))]}
        for low, high, height in zip(ends[:-1].tolist(), ends[1:].tolist(), heights.tolist(), strict=True)
    ]
    encoding = {
        "x": quantity("from", "queries, by descending difference", scale={"nice": False}),
        "x2": {"field": "to"},
        "y": quantity("difference", f"difference of {asked}", scale={}),
        "y2": {"datum": 0},
        "color": theme.colours_of([*words.values()], [theme.BETTER, theme.WORSE, theme.SAME]),
    }
    wins, losses = int((values > 0).sum()), int((values < 0).sum())
    equal = len(values) - wins - losses
    said = f"better for {count_of(wins, 'query')}, worse for {losses:,}, equal for {equal:,}"
    each = f"; a bar is the mean of about {len(values) // n:,} queries" if n < len(values) else ""
    bar = {"type": "bar", "aria": False}  # a description of each bar would fill most of the SVG
    return theme.draw(rows, [(bar, encoding)], f"{asked}: {system_name} minus {theirs}", said + each)


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
    effects_of = [row for row in of.rows if name in (None, row["measure"])]
    if not effects_of:
        of.movers(measure)  # raises an error that names the measures that were compared
    pairs = labels_of((f"{row['system']} minus {row['baseline']}",) for row in effects_of)
    rows: Rows = []
    for row in effects_of:
        ends = {"mean": row["difference"], "low": row["low"], "high": row["high"]}
        pair = pairs[f"{row['system']} minus {row['baseline']}",]
        rows.append({"measure": row["measure"], "system": pair} | ends | {"small": row["queries"] < SMALL})
    only = next(iter(pairs.values())) if len(pairs) == 1 else "system minus baseline"
    title, axis = f"Differences of means: {only}", f"difference of means ({only})"
    better = effects_of[0]["system"] if len(pairs) == 1 else "the system"
    said = f"intervals of {100 * of.confidence:g} %; right of 0 {better} is better"
    return _intervals(rows, nominal("measure"), axis, title, said, 0.0)


def _comparison(result: Any) -> Any:
    return theme.check_result("comparison", result, "a Comparison, as compare returns it", "pair")


# ---- orders and explanations ----


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
    return _intervals(rows, nominal("measure"), "mean (units of the measure)", title, said)


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
    names, added = theme.names_of(rows), f"added to {measure}" if unit == "share" else "discounted gain"
    field, title, across = "rank", "rank (1 is the first)", {"labelAngle": 0, "labelOverlap": True}
    if any(each is not None for each in ids):
        field, title, across = "document", "rank and document", {"labelAngle": -60}
    order = theme.names_of(rows, field)
    encoding = {
        "x": nominal(field, title, axis=across, sort=order),
        "xOffset": {"field": "system", "type": "nominal", "sort": names},
        "y": quantity("contribution", added, scale={}),
        "color": theme.colours_of(names),
    }
    title = f"What each rank adds to {measure}"
    return theme.draw(rows, [({"type": "bar"}, encoding)], title, of.heading())


# ---- over time ----


def history(
    rounds: Any, baseline: float | Mapping[str, float] | None = None, measure: str = "measure"
) -> Chart:
    """Plot a measure by round of training: a line for each set of data, such as train and test.

    Parameters
    ----------
    rounds : mapping of names to values of each round, or a table or list of dicts with a row for each round
        Or what LightGBM's `record_evaluation` and XGBoost's `evals_result` fill: a mapping of names of data
        to mappings of names of metrics to values, or to tables or lists of dicts.
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
    >>> chart = plot.history([{"train": 0.61, "test": 0.60}, {"train": 0.68, "test": 0.64}])
    """
    flat: dict[str, Any] = {}
    for name, columns in by_name(_columns(rounds), "lists of numbers").items():
        values = _columns(columns)
        if isinstance(values, Mapping):
            flat |= {f"{name} {metric}": numbers for metric, numbers in values.items()}
        else:
            flat[name] = values
    rows: Rows = []
    best = []
    for name, values in flat.items():
        try:
            numbers = np.array(list(values), np.float64)
        except (TypeError, ValueError):
            numbers = np.empty((0, 0))
        if numbers.ndim != 1:
            raise InputError(
                f'"{name}" is not a list of numbers; expected one for each round, as [0.61, 0.68]'
            )
        rows += [
            {"system": name, "round": at, "value": value} for at, value in enumerate(numbers.tolist(), 1)
        ]
        finite = np.where(np.isfinite(numbers), numbers, -np.inf)
        if np.isfinite(numbers).any():
            best.append(f"{name}: {finite.max():.4g} in round {finite.argmax() + 1}")
    if not best:
        raise InputError("no round has a value, so there is nothing to draw")
    layers: list[Layer] = []
    if baseline is not None:
        named = baseline if isinstance(baseline, Mapping) else {"baseline": baseline}
        try:
            levels = [{"baseline": str(name), "value": float(value)} for name, value in named.items()]
        except (TypeError, ValueError):
            raise InputTypeError(
                f"baseline is {baseline!r}; expected a number, or a mapping of names to numbers"
            ) from None
        text = {"type": "text", "align": "left", "dx": 4, "dy": -6, "color": theme.TEXT}
        words = {"y": quantity("value"), "text": nominal("baseline"), "x": {"value": 0}}
        layers = [(theme.DASHED, {"y": quantity("value")}, levels), (text, words, levels)]
        best += [f"{row['baseline']}: {row['value']:.4g}" for row in levels]
    last = max(row["round"] for row in rows)
    axis = {"tickCount": min(max(last - 1, 1), 10), "format": "d"}
    across = quantity("round", "round of training", axis=axis, scale={"nice": False})
    said = f"Highest: {'; '.join(best)}"
    return _lines(rows, across, quantity("value", measure), f"{measure} by round", said, layers)


def _columns(data: Any) -> Any:
    """Return the columns of a table or of a list of dicts by name; anything else unchanged."""
    if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
        keys = dict.fromkeys(key for row in data for key in row)
        return {str(key): [row.get(key) for row in data] for key in keys}
    names = getattr(data, "column_names", getattr(data, "columns", None))
    if names is None or isinstance(data, Mapping):
        return data
    return {str(name): data[name].to_numpy() for name in names}


def over_time(table: Table | Rows) -> Chart:
    """Plot a measure by date: a line with intervals for each system.

    Parameters
    ----------
    table : Table or list of dicts
        What `History.table` returns, for one measure. Where a time differs in its definition from the time
        before, a new line starts.

    Raises
    ------
    InputError, InputTypeError
        Something other than such a table; several measures.

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
    dated = table if isinstance(table, list) else table.to_pylist()
    measures = dict.fromkeys(row["measure"] for row in dated)
    if len(measures) != 1:
        raise InputError(f"the table has {', '.join(measures) or 'no measure'}; name one to draw")
    (measure,) = measures
    started: dict[str, str] = {}  # name of the line of a system whose definition changed
    rows = []
    for row in dated:
        name = row.get("name") or row["measure"]
        if row["differs"] is not None:
            started[name] = f"{name} from {row['at']:%Y-%m-%d}"
        numbers = {key: row[key] for key in ("mean", "low", "high", "queries", "sure")}
        rows.append({"system": started.get(name, name), "date": row["at"].isoformat()} | numbers)
    notes = ["bands: intervals of means", first_sure(dated)]
    if started:
        notes.append(f"not comparable with the time before: {', '.join(started.values())}")
    names = {row.get("name") or "" for row in dated}
    of = f" of {''.join(names)}" if len(names) == 1 and any(names) else ""
    height = quantity("mean", f"mean {measure}")
    across = {"field": "date", "type": "temporal", "title": "date"}
    return _lines(rows, across, height, f"{measure}{of} by date", "; ".join(notes))


def first_sure(rows: Rows) -> str:
    """Return since when the first changed series is sure to have changed."""
    for row in rows:
        if row["sure"]:
            direction = "fell" if row["change"] < 0 else "rose"
            name = row.get("name") or row["measure"]
            return f"{name} {direction}, which is sure since {row['at']:%Y-%m-%d}"
    return "no change is sure"


# ---- how they are drawn ----


def _lines(
    rows: Rows, across: Spec, height: Spec, title: str, subtitle: str, layers: Sequence[Layer] = ()
) -> Chart:
    """Draw a line for each system, a point for each row, and a band if rows have `low` and `high`."""
    names = theme.names_of(rows)
    base = {"x": across, "color": theme.colours_of(names)}
    points = {"type": "point", "filled": True, "size": 30}
    # dashes and shapes help readers who do not see colours
    drawn: list[Layer] = [
        ({"type": "area", "opacity": 0.2}, base | {"y": quantity("low"), "y2": {"field": "high"}}),
        ({"type": "line"}, base | {"y": height, "strokeDash": by_system(names, theme.DASHES)}),
        (points, base | {"y": height, "shape": by_system(names, theme.SHAPES)}),
    ]
    return theme.draw(rows, [*drawn, *layers], title, subtitle)


def _intervals(
    rows: Rows, field: Spec, x_title: str, title: str, subtitle: str, at: float | None = None
) -> Chart:
    """For each value of a column a line from `low` to `high` for each system, and a point at its `mean`.

    Points are hollow where `small` is true, and a tick is at `tick`, if rows have such columns. A dashed
    line is at the number `at`.
    """
    names, order = theme.names_of(rows), theme.names_of(rows, field["field"])
    base = {"y": field | {"sort": order}, "color": theme.colours_of(names)}
    base["yOffset"] = {"field": "system", "type": "nominal", "sort": names}
    points = base | {"x": quantity("mean"), "shape": by_system(names, theme.SHAPES)}
    if "small" in rows[0]:
        hollow = {"condition": {"test": "datum.small", "value": 0}, "value": 1}
        points |= {"fill": by_system(names), "fillOpacity": hollow}
    drawn: list[Layer] = [
        ({"type": "rule", "strokeWidth": 2}, base | {"x": quantity("low", x_title), "x2": {"field": "high"}}),
        ({"type": "point", "size": 50, "opacity": 1, "filled": "small" not in rows[0]}, points),
        ({"type": "tick", "thickness": 3, "size": 16}, base | {"x": quantity("tick")}),
    ]
    if at is not None:
        drawn.insert(0, (theme.DASHED, {"x": quantity("at")}, [{"at": at}]))
    height = max(24 * len(order) * max(1.0, len(names) * 0.6), 60)
    return theme.draw(rows, drawn, title, subtitle, height)


# ---- as methods of results ----


def _method(draw: Callable[Concatenate[Any, _P], Chart]) -> Callable[Concatenate[_Plots, _P], Chart]:
    @wraps(draw)
    def method(self: _Plots, /, *arguments: _P.args, **options: _P.kwargs) -> Chart:
        return draw(self._result, *arguments, **options)

    return method


class _Plots:
    def __init__(self, result: Result) -> None:
        self._result = result


class ScoresPlots(_Plots):
    """Plots of `Scores`: the functions of `fastndcg.plot` with these names, of one result."""

    cutoffs, distribution, slices = _method(cutoffs), _method(distribution), _method(slices)


class ComparisonPlots(_Plots):
    """Plots of a `Comparison`: the functions of `fastndcg.plot` with these names, of one result."""

    differences, effects = _method(differences), _method(effects)
