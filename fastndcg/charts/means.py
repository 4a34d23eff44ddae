"""Charts of means: at each cutoff, of groups of queries, of pairs of systems, over orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.charts.theme import (
    SAME,
    add_looks,
    altair,
    by_name,
    chart_of,
    colours_of,
    in_words,
    intervals_of,
    means_of,
    names_of,
    number_text,
    rule_at,
    shapes_of,
    size_text,
    unit_of,
)
from fastndcg.common.table import labels_of, name_of
from fastndcg.errors import InputError, MeasureError, count_of
from fastndcg.measures import as_measure
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.slices import column_names, groups_of
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.analysis.anchors import Anchors
    from fastndcg.analysis.comparison import Comparison
    from fastndcg.analysis.ranges import Ranges
    from fastndcg.scores.scores import Scores
    from fastndcg.typing import Chart


CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
_GROUPS = 40  # slices that are drawn at most


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
    asked, rows = as_measure(measure), []
    if asked.definition.cut != "rank":
        raise MeasureError(f"{asked} has no cutoff, so that it has no curve over cutoffs; take nDCG")
    for name, given in by_name(systems).items():
        of_usual = isinstance(given, Rankings)
        scores = evaluate(given, [asked @ k for k in CUTOFFS]) if of_usual else given
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
    alt = altair()
    ticks = alt.Axis(values=sorted({row["cutoff"] for row in rows}))
    scale = alt.Scale(type="log", nice=False)
    at_k = str(asked @ 1).removesuffix("1") + "k"
    x = alt.X("cutoff:Q", title="cutoff k (ranks)", scale=scale, axis=ticks)
    layers = means_of(rows, x, f"mean {at_k} ({unit_of(asked)})")
    shown = in_words(rows, lambda row: f"{row['mean']:.3f} at {row['cutoff']}")
    return add_looks(
        alt.layer(*layers),
        f"{at_k} at each cutoff",
        f"bands: intervals of {100 * confidence:g} %, for each cutoff by itself",
        f"Mean {at_k} over cutoffs k. {shown}.",
    )


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
    MeasureError, ColumnError
        The measure was not evaluated; the column was not kept.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate, plot
    >>> rankings = Rankings.from_lists([[1, 0], [0, 1], [1]], queries={"country": ["de", "fr", "de"]})
    >>> chart = plot.slices(evaluate(rankings, "RR"), "RR", by="country")
    """
    asked, named = as_measure(measure), by_name(systems)
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
            row: dict[str, Any] = {"system": names[place], "slice": labels[slices[group]]}
            row |= dict(zip(("mean", "low", "high"), ends, strict=True))
            rows.append(row | {"queries": queries, "small": size_text(small)})
    left_out = f"; {len(groups) - len(most):,} smaller ones are not shown" if len(groups) > len(most) else ""
    chart = intervals_of(
        rows, list(labels.values()), "slice", ", ".join(columns), f"mean {asked} ({unit_of(asked)})"
    )
    if len(named) == 1:
        line = rule_at({"system": name, "mean": scores.mean()[str(asked)]}, "mean")
        chart = altair().layer(line, chart)
    worst = min(rows, key=lambda row: (math.isnan(row["mean"]), row["mean"]))
    return add_looks(
        chart,
        f"{asked} by {', '.join(columns)}",
        f"intervals of {100 * confidence:g} %; hollow: {size_text(True)}{left_out}",
        f"Mean {asked} of {count_of(len(groups), 'group')} by {', '.join(columns)}; lowest: "
        f"{worst['slice']}, {number_text(worst['mean'])}.",
        height=None,
    )


def effects(comparison: Comparison, measure: object = None) -> Chart:
    """Plot the mean difference of each pair of systems with its confidence interval, and a line at 0.

    Parameters
    ----------
    comparison : Comparison
    measure : Measure, notation, or ir_measures object, optional
        Default: every measure that was compared.

    Raises
    ------
    MeasureError
        The measure was not compared.
    """
    name = None if measure is None else str(as_measure(measure))
    labels = labels_of((f"{row['system']} − {row['baseline']}",) for row in comparison.rows)
    rows = [
        {"measure": row["measure"], "system": labels[f"{row['system']} − {row['baseline']}",]}
        | {"mean": row["difference"], "low": row["low"], "high": row["high"]}
        | {"small": size_text(row["queries"] < SMALL)}
        for row in comparison.rows
        if name in (None, row["measure"])
    ]
    if not rows:
        comparison.differences(measure)  # raises an error that names the measures that were compared
    measures = names_of(rows, "measure")
    chart = intervals_of(rows, measures, "measure", "", "difference of means")
    said = "; ".join(
        f"{row['measure']}, {row['system']}: {number_text(row['mean'])} ({number_text(row['low'])} "
        f"to {number_text(row['high'])})"
        for row in rows
    )
    return add_looks(
        altair().layer(rule_at({"none": 0}, "none"), chart),
        "Differences of means",
        f"intervals of {100 * comparison.confidence:g} %",
        f"Differences of means. {said}.",
        height=None,
    )


def ties(systems: Ranges | Mapping[str, Ranges]) -> Chart:
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
    named, rows = by_name(systems), []
    for name, ranges in named.items():
        summary = ranges.summary()
        words = summary.column_names[1:4]
        for row in summary.to_pylist():
            of_row = dict(zip(("low", "mean", "high"), (row[word] for word in words), strict=True))
            of_row |= {"stable": ranges._stable[row["measure"]]} if ranges._stable else {}
            rows.append({"system": name, "measure": row["measure"]} | of_row)
    measures = names_of(rows, "measure")
    chart = intervals_of(rows, measures, "measure", "", "mean (units of the measure)")
    said = "; ".join(
        f"{row['measure']}{' of ' + row['system'] if len(named) > 1 else ''}: {number_text(row['low'])}, "
        f"{number_text(row['mean'])}, {number_text(row['high'])}"
        + (f", stable {number_text(row['stable'])}" if "stable" in row else "")
        for row in rows
    )
    title = ", ".join(words) + ("; the stable order as a tick" if "stable" in rows[0] else "")
    return add_looks(chart, title.capitalize(), "means over all queries", f"{title}. {said}.", height=None)


def anchors(systems: Anchors | Mapping[str, Anchors]) -> Chart:
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
    named, kinds = by_name(systems), ["actual", "best", "random", "worst"]
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
