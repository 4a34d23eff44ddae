"""Measures by round of training and by date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fastndcg.charts.marks import lines
from fastndcg.charts.theme import COLOURS, SAME, TEXT, WORSE, Rows, altair, by_name, chart_of, names_of
from fastndcg.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from fastndcg.common.table import Table
    from fastndcg.typing import Chart


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
    for name, given in by_name(_columns(rounds), "lists of numbers").items():
        values = _columns(given)
        if isinstance(values, Mapping):
            flat |= {f"{name} {metric}": found for metric, found in values.items()}
        else:
            flat[name] = values
    rows: Rows = []
    best = []
    for name, values in flat.items():
        try:
            found = np.array(list(values), np.float64)
        except (TypeError, ValueError):
            found = np.empty((0, 0))
        if found.ndim != 1:
            raise InputError(
                f'"{name}" is not a list of numbers; expected one for each round, as [0.61, 0.68]'
            )
        rows += [{"system": name, "round": at, "value": value} for at, value in enumerate(found.tolist(), 1)]
        finite = np.where(np.isfinite(found), found, -np.inf)
        if np.isfinite(found).any():
            best.append(f"{name}: {finite.max():.4g} in round {finite.argmax() + 1}")
    if not best:
        raise InputError("no round has a value, so there is nothing to draw")
    layers = []
    if baseline is not None:
        named = baseline if isinstance(baseline, Mapping) else {"baseline": baseline}
        try:
            levels = [{"baseline": str(name), "value": float(value)} for name, value in named.items()]
        except (TypeError, ValueError):
            raise InputTypeError(
                f"baseline is {baseline!r}; expected a number, or a mapping of names to numbers"
            ) from None
        base = chart_of(levels).encode(altair().Y("value:Q"))
        text = base.mark_text(align="left", dx=4, dy=-6, color=TEXT)
        layers = [
            base.mark_rule(strokeDash=[4, 4], color=SAME),
            text.encode(altair().Text("baseline:N"), x=altair().XValue(0)),
        ]
        best += [f"{row['baseline']}: {row['value']:.4g}" for row in levels]
    titles = "round of training", "value", measure, f"{measure} by round", f"Highest: {'; '.join(best)}"
    last = max(row["round"] for row in rows)
    options = {"axis": {"tickCount": min(max(last - 1, 1), 10), "format": "d"}, "scale": {"nice": False}}
    return lines(rows, "round:Q", *titles, layers, options)


def _columns(given: Any) -> Any:
    """The columns of a table or of a list of dicts by name; anything else as it is."""
    if isinstance(given, list) and given and all(isinstance(row, Mapping) for row in given):
        keys = dict.fromkeys(key for row in given for key in row)
        return {str(key): [row.get(key) for row in given] for key in keys}
    names = getattr(given, "column_names", getattr(given, "columns", None))
    if names is None or isinstance(given, Mapping):
        return given
    return {str(name): given[name].to_numpy() for name in names}


def over_time(table: Table | Rows, threshold: float | None = None) -> Chart:
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
    started: dict[str, str] = {}  # the name of the line of a system whose definition changed
    rows = []
    for row in found:
        name = row.get("name") or row["measure"]
        if row["differs"] is not None:
            started[name] = f"{name} from {row['at']:%Y-%m-%d}"
        numbers = {key: row[key] for key in ("mean", "low", "high", "queries", "sure")}
        rows.append({"system": started.get(name, name), "date": row["at"].isoformat()} | numbers)
    if len(names_of(rows)) > len(COLOURS):
        raise InputError(f"{len(names_of(rows))} lines are too many for a picture; name one system")
    layers = []
    if threshold is not None:
        rule = chart_of([{"threshold": float(threshold)}]).mark_rule(color=WORSE, strokeWidth=2)
        layers.append(rule.encode(altair().Y("threshold:Q")))
    notes = ["bands: intervals of means", first_sure(found)]
    if started:
        notes.append(f"not comparable with the time before: {', '.join(started.values())}")
    names = {row.get("name") or "" for row in found}
    of = f" of {''.join(names)}" if len(names) == 1 and any(names) else ""
    titles = "date", "mean", f"mean {measures[0]}", f"{measures[0]}{of} by date", "; ".join(notes)
    return lines(rows, "date:T", *titles, layers)


def first_sure(rows: Rows) -> str:
    """Since when the first of the series that changed is sure to have changed."""
    for row in rows:
        if row["sure"]:
            direction = "fell" if row["change"] < 0 else "rose"
            name = row.get("name") or row["measure"]
            return f"{name} {direction}, which is sure since {row['at']:%Y-%m-%d}"
    return "no change is sure"
