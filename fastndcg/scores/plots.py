"""Plots of scores: rows, and charts drawn from them. Public in `fastndcg.plot`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fastndcg.charts import marks, theme
from fastndcg.charts.theme import Rows, altair, by_name, chart_of
from fastndcg.common.table import labels_of, name_of
from fastndcg.errors import InputError, MeasureError, count_of
from fastndcg.measures import as_measure
from fastndcg.scores.slices import column_names
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.typing import Chart, Result

_GROUPS = 40  # most slices in a plot

_SCORES = "Scores, as evaluate returns them", "summary"


class ScoresPlots:
    """Plots of `Scores`. Each method returns an Altair chart and needs the extra `plot`."""

    def __init__(self, scores: Result) -> None:
        self._scores = scores

    def distribution(self, measure: object, bins: int = 40) -> Chart:
        """A histogram of the values of queries. See `fastndcg.plot.distribution`."""
        return distribution(self._scores, measure, bins)

    def cutoffs(self, measure: object = "nDCG", confidence: float = 0.95) -> Chart:
        """The mean at each cutoff that was evaluated. See `fastndcg.plot.cutoffs`."""
        return cutoffs(self._scores, measure, confidence)

    def slices(self, measure: object, by: str | Sequence[str], confidence: float = 0.95) -> Chart:
        """The mean of each group of queries, with its interval. See `fastndcg.plot.slices`."""
        return slices(self._scores, measure, by, confidence)


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
        found = zip(scores, scores.summary(confidence).rows, strict=True)
        at = {known.cutoff: row for known, row in found if known.cutoff and asked @ known.cutoff == known}
        if len(at) < 2:
            raise MeasureError(
                f"{asked.name} was evaluated at {count_of(len(at), 'cutoff')}; evaluate at least two, as in "
                f'"{asked.name}@1,5,10"'
            )
        numbers = ({end: row[end] for end in ("mean", "low", "high")} for _, row in sorted(at.items()))
        rows += [{"system": name, "cutoff": k} | each for k, each in zip(sorted(at), numbers, strict=True)]
    at_k = str(asked @ 1).removesuffix("1") + "k"
    return marks.lines(
        rows,
        "cutoff:Q",
        "cutoff k (ranks)",
        "mean",
        f"mean {at_k} ({_range_of(asked)})",
        f"{at_k} at each cutoff",
        f"bands: intervals of {100 * confidence:g} %, for each cutoff by itself",
        options={
            "scale": {"type": "log", "nice": False},
            "axis": {"values": sorted({row["cutoff"] for row in rows})},
        },
    )


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
    asked, named, columns = as_measure(measure), by_name(systems, *_SCORES), column_names(by)
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
    return marks.intervals(
        rows,
        "slice",
        shown,
        f"mean {asked} ({_range_of(asked)})",
        f"{asked} by {shown}",
        f"intervals of {100 * confidence:g} %; hollow: fewer than {SMALL} queries{left_out}",
        at=scores.mean()[str(asked)] if len(named) == 1 else None,
    )


def distribution(systems: Result | Mapping[str, Result], measure: object, bins: int = 40) -> Chart:
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
    asked, named = as_measure(measure), by_name(systems, *_SCORES)
    values = {name: scores[asked] for name, scores in named.items()}
    defined = {name: each[~np.isnan(each)] for name, each in values.items()}
    every = np.concatenate(list(defined.values()))
    if not every.size:
        raise InputError(f"no query has a value of {asked}, so there is nothing to draw")
    if bins < 1:
        raise InputError(f"bins must be a positive integer; got {bins!r}")
    edges, least = np.histogram_bin_edges(every, bins), float(every.min())
    alt, names, bars, curve, facts = altair(), list(named), [], [], []
    for name, each in defined.items():
        counts = np.histogram(each, edges)[0].tolist()
        sides = zip(edges[:-1].tolist(), edges[1:].tolist(), counts, strict=True)
        bars += [{"system": name, "from": low, "to": high, "queries": count} for low, high, count in sides]
        distinct, of_each = np.unique(each, return_counts=True)
        steps = np.array([distinct, np.cumsum(of_each) / max(len(each), 1)])
        if len(distinct) > theme.STEPS:
            steps = steps[:, np.linspace(0, len(distinct) - 1, theme.STEPS).astype(np.int64)]
        pairs = [(least, 0.0), *steps.T.tolist()]
        curve += [{"system": name, "value": value, "share": share} for value, share in pairs]
        without = len(values[name]) - len(each)
        facts.append(
            (f"{name}: " if len(named) > 1 else "")
            + f"{count_of(len(values[name]), 'query')}, median {np.median(each):.3f}"
            + (f", {without:,} without a value" if without else "")
        )
    title, colours = theme.title_of(f"{asked} ({_range_of(asked)})"), theme.colours_of(names)
    dashes = alt.StrokeDash("system:N", scale=theme.scale_of(names, theme.DASHES), legend=None)
    x = alt.X("from:Q", title=title, scale=alt.Scale(zero=False))
    histogram = chart_of(bars).encode(x, alt.Y("queries:Q", title="queries"), colours)
    if len(named) > 1:
        histogram = histogram.mark_line(interpolate="step-after").encode(dashes)
    else:
        histogram = histogram.mark_bar().encode(alt.X2("to:Q"), y2=alt.Y2Datum(0))
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False))
    shares = chart_of(curve).mark_line(interpolate="step-after")
    shares = shares.encode(x, alt.Y("share:Q", title="share of queries up to it"), colours, dashes)
    both = (each.properties(width=theme.WIDTH, height=theme.HEIGHT // 2) for each in (histogram, shares))
    return theme.finish(alt.vconcat(*both), f"{asked} of queries", "; ".join(facts), "", None)


def _range_of(measure: Measure) -> str:
    """Return the range of a measure's values as the label of an axis."""
    return measure.definition.range.partition(";")[0].partition(" for ")[0]
