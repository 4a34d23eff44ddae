"""Charts of one kind of mark: lines, intervals and bars, from a list of rows.

A row has the name of a `system`, and numbers; NaN and None leave a gap. Axes are named as Vega-Lite names
them, `cutoff:Q` for a quantity and `grade:N` for names, with its options as dicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastndcg.charts.theme import (
    DASHES,
    HEIGHT,
    SAME,
    SHAPES,
    Rows,
    altair,
    chart_of,
    colours_of,
    finish,
    names_of,
    scale_of,
    title_of,
)

if TYPE_CHECKING:
    from fastndcg.typing import Chart

_SAID = 60  # rows of a description in words


def lines(
    rows: Rows,
    x: str,
    x_title: str,
    y: str,
    y_title: str,
    title: str,
    subtitle: str = "",
    layers: Sequence[Chart] = (),
    options: dict[str, Any] | None = None,
) -> Chart:
    """A line for each system, a point for each row, and a band if rows have `low` and `high`.

    `layers` are drawn over them; `options` are those of the horizontal axis.
    """
    alt, names = altair(), names_of(rows)
    base = chart_of(rows).encode(alt.X(x, title=x_title, **(options or {})), colours_of(names))
    height = alt.Y(f"{y}:Q", title=title_of(y_title), scale=alt.Scale(zero=False))
    # dashes and shapes are for readers who do not see colours
    dashes = alt.StrokeDash("system:N", scale=scale_of(names, DASHES), legend=None)
    shapes = alt.Shape("system:N", scale=scale_of(names, SHAPES), legend=None)
    points = base.mark_point(filled=True, size=30).encode(height, shapes)
    drawn = [base.mark_line().encode(height, dashes), points, *layers]
    if "low" in rows[0]:
        ends = alt.Y("low:Q", scale=alt.Scale(zero=False)), alt.Y2("high:Q")
        drawn.insert(0, base.mark_area(opacity=0.2).encode(*ends))
    said = in_words(rows, [x.partition(":")[0]], y)
    return finish(alt.layer(*drawn), title, subtitle or ", ".join(names), said)


def intervals(
    rows: Rows, field: str, field_title: str, x_title: str, title: str, subtitle: str, at: float | None = None
) -> Chart:
    """For each value of a column a line from `low` to `high` for each system, and a point at its `mean`.

    Points are hollow where `small` is true, and a tick is at `tick`, if rows have such columns. A dashed
    line is at the number `at`.
    """
    alt, names, order = altair(), names_of(rows), names_of(rows, field)
    base = chart_of(rows).encode(
        alt.Y(f"{field}:N", sort=order, title=title_of(field_title) or None),
        colours_of(names),
        alt.YOffset("system:N", sort=names),
    )
    rule = base.mark_rule(strokeWidth=2)
    rule = rule.encode(alt.X("low:Q", title=title_of(x_title), scale=alt.Scale(zero=False)), alt.X2("high:Q"))
    points = base.mark_point(size=50, opacity=1, filled="small" not in rows[0])
    points = points.encode(alt.X("mean:Q"), alt.Shape("system:N", scale=scale_of(names, SHAPES), legend=None))
    if "small" in rows[0]:
        fills = alt.Fill("system:N", scale=scale_of(names), legend=None)
        points = points.encode(fills, fillOpacity=alt.condition(alt.datum.small, alt.value(0), alt.value(1)))
    drawn = [rule, points]
    if "tick" in rows[0]:
        drawn.append(base.mark_tick(thickness=3, size=16).encode(alt.X("tick:Q")))
    if at is not None:
        dashed = chart_of([{"at": at}]).mark_rule(strokeDash=[4, 4], color=SAME)
        drawn.insert(0, dashed.encode(alt.X("at:Q")))
    height = max(24 * len(order) * max(1.0, len(names) * 0.6), 60)
    return finish(alt.layer(*drawn), title, subtitle, in_words(rows, [field], "mean"), height)


def bars(
    rows: Rows,
    x: str,
    x_title: str,
    y: str,
    y_title: str,
    title: str,
    subtitle: str,
    options: dict[str, Any] | None = None,
) -> Chart:
    """Bars side by side, one for each system; `options` are those of the horizontal axis."""
    alt, names = altair(), names_of(rows)
    across = alt.X(x, title=x_title, **(options or {})), alt.XOffset("system:N", sort=names)
    height = alt.Y(f"{y}:Q", title=title_of(y_title))
    chart = chart_of(rows).mark_bar().encode(*across, height, colours_of(names))
    return finish(chart, title, subtitle, in_words(rows, [x.partition(":")[0]], y), HEIGHT)


def in_words(rows: Rows, fields: Sequence[str], y: str) -> str:
    """Describe the first rows in a sentence, for readers who cannot see the chart.

    >>> in_words([{"system": "a", "k": 3, "mean": 0.5, "low": 0.25, "high": None}], ["k"], "mean")
    '3: 0.5 (0.25 to none).'
    """
    fields = ["system", *fields] if len(names_of(rows)) > 1 else fields
    said = []
    for row in rows[:_SAID]:
        text = f"{', '.join(str(row[field]) for field in fields)}: {_number_text(row[y])}"
        ends = " ({} to {})".format(*map(_number_text, (row["low"], row["high"]))) if "low" in row else ""
        said.append(text + ends)
    return "; ".join(said) + (f"; and {len(rows) - _SAID:,} more." if len(rows) > _SAID else ".")


def _number_text(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
