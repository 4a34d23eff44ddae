"""Measures by date: a control chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastndcg.errors import InputError, InputTypeError
from fastndcg.look.chart_parts import in_words, names_of, number_text
from fastndcg.look.looks import (
    SAME,
    WORSE,
    add_looks,
    altair,
    chart_of,
    colours_of,
    dashes_of,
    shapes_of,
    title_of,
)

if TYPE_CHECKING:
    from fastndcg.decide.over_time import History
    from fastndcg.typing import Chart

_SERIES = 7  # lines of one picture, at most: as many as there are colours


def over_time(
    history: History,
    measure: object = None,
    *,
    name: str | None = None,
    by: str | None = None,
    confidence: float = 0.95,
    threshold: float | None = None,
) -> Chart:
    """Plot a measure by date: a line with intervals for each system or slice.

    Parameters
    ----------
    history : History
    measure, name, by, confidence
        As in `History.table`. Without `measure` the history must have only one.
    threshold : number, optional
        Drawn as a line, for example the least that is accepted.

    Returns
    -------
    altair.Chart
        Of one line, the centre and limits of its control chart are drawn too; means beyond them are large.

    Raises
    ------
    InputError, InputTypeError, ExtraError
        As in `History.table`; something else than a History; several measures, or more than seven lines;
        Altair is not installed.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastndcg import History, Rankings, evaluate, plot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = History(os.path.join(folder, "search.parquet"))
    ...     history.add(evaluate(Rankings.from_lists([[1, 0], [0, 1]]), "RR"), at="2026-11-24")
    ...     chart = plot.over_time(history)
    """
    if not hasattr(history, "table"):
        raise InputTypeError(f"history is a {type(history).__name__}; wanted History(path)")
    found = history.table(measure, name=name, by=by, confidence=confidence).to_pylist()
    measures = list(dict.fromkeys(row["measure"] for row in found))
    if len(measures) > 1:
        raise InputError(f"the history has {', '.join(measures)}; name one to draw")
    rows = [
        {"system": _name_of(row), "date": row["at"].isoformat()}
        | {key: row[key] for key in ("mean", "low", "high", "queries")}
        | {"outside": bool(row["outside"]), "sure": bool(row["sure"])}
        for row in found
    ]
    names = names_of(rows)
    if len(names) > _SERIES:
        raise InputError(f"{len(names)} lines are too many for a picture; name one system, or draw no slices")
    alt = altair()
    base = chart_of(rows).encode(alt.X("date:T", title="date"), colours_of(names))
    band = base.mark_area(opacity=0.2).encode(alt.Y("low:Q", scale=alt.Scale(zero=False)), alt.Y2("high:Q"))
    line = base.mark_line().encode(alt.Y("mean:Q", title=title_of(f"mean {measures[0]}")), dashes_of(names))
    size = alt.condition(alt.datum.outside, alt.value(140), alt.value(35))
    points = base.mark_point(filled=True, opacity=1).encode(alt.Y("mean:Q"), shapes_of(names), size=size)
    layers = [band, line, points]
    if len(names) == 1 and found[0]["centre"] is not None:
        for key in ("centre", "limit_low", "limit_high"):
            rule = chart_of([{key: found[0][key]}]).mark_rule(strokeDash=[4, 4], color=SAME)
            layers.append(rule.encode(alt.Y(f"{key}:Q")))
    if threshold is not None:
        rule = chart_of([{"threshold": float(threshold)}]).mark_rule(color=WORSE, strokeWidth=2)
        layers.append(rule.encode(alt.Y("threshold:Q")))
    said = in_words(rows, lambda row: f"{number_text(row['mean'])} on {row['date'][:10]}", most=40)
    since = first_sure(found)
    return add_looks(
        alt.layer(*layers),
        f"{measures[0]} by date",
        f"bands: intervals of {100 * confidence:g} %; {since}",
        f"Mean {measures[0]} by date. {said}. {since}.",
    )


def _name_of(row: dict[str, Any]) -> str:
    return ", ".join(row[key] for key in ("name", "slice") if row.get(key)) or row["measure"]


def first_sure(rows: list[dict[str, Any]]) -> str:
    """Since when the first of the series that changed is sure to have changed."""
    for row in rows:
        if row["sure"]:
            way = "fell" if row["change"] < 0 else "rose"
            return f"{_name_of(row)} {way}, which is sure since {row['at']:%Y-%m-%d}"
    return "no change is sure"
