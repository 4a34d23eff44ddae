"""What charts share: curves, bars, intervals, and names and numbers in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastndcg.common.table import labels_of
from fastndcg.errors import InputError
from fastndcg.look.looks import (
    SAME,
    WIDTH,
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
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.typing import Chart


def curves(
    rows: list[dict[str, Any]],
    x: str,
    x_title: str,
    y: str,
    y_title: str,
    title: str,
    said: str = "",
    layers: Sequence[Chart] = (),
    *,
    zero: bool = True,
) -> Chart:
    """For each measure, a line with a point at each step; `layers` are drawn over them.

    `zero` says whether the axis of `y` begins at 0.
    """
    alt, names = altair(), names_of(rows)
    base = chart_of(rows).encode(
        alt.X(f"{x}:Q", title=x_title, axis=alt.Axis(tickMinStep=1), scale=alt.Scale(zero=False, nice=False)),
        alt.Y(f"{y}:Q", title=y_title, scale=alt.Scale(zero=zero)),
        colours_of(names),
    )
    points = base.mark_point(filled=True, size=30).encode(shapes_of(names))
    chart = alt.layer(base.mark_line().encode(dashes_of(names)), points, *layers)
    in_full = said or in_words(rows, lambda row: f"{row[y]:.3g} at {row[x]:g}", most=5)
    return add_looks(chart, title, said or ", ".join(names), f"{title}. {in_full}.")


def bars_of(rows: list[dict[str, Any]], x: Any, y: Any, field: str) -> Chart:
    """Bars side by side, one for each value of a column."""
    names = names_of(rows, field)
    return (
        chart_of(rows)
        .mark_bar()
        .encode(x, altair().XOffset(f"{field}:N", sort=names), y, colours_of(names, field))
    )


def intervals_of(rows: list[dict[str, Any]], order: list[str], field: str, title: str, x_title: str) -> Chart:
    """A point and its interval for each system, in a separate row for each value of a column."""
    alt, names = altair(), names_of(rows)
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
        hollow = alt.condition(alt.datum.small == size_text(True), alt.value(0), alt.value(1))
        points = points.encode(fills_of(names), fillOpacity=hollow)
    layers = [rule, points]
    if "stable" in rows[0]:
        layers.append(base.mark_tick(thickness=3, size=16).encode(alt.X("stable:Q")))
    height = max(24 * len(order) * max(1.0, len(names) * 0.6), 60)
    return alt.layer(*layers).properties(width=WIDTH, height=height)


def with_line(chart: Chart, row: dict[str, Any], field: str) -> Chart:
    """Draw a dashed line at a number behind the chart."""
    alt = altair()
    line = chart_of([row]).mark_rule(strokeDash=[4, 4], color=SAME).encode(alt.X(f"{field}:Q"))
    return alt.layer(line, chart)


def names_of(rows: list[dict[str, Any]], field: str = "system") -> list[str]:
    """Values of a column as they are shown, in order of their first appearance."""
    return list(dict.fromkeys(text_of(row[field]) for row in rows))


def in_words(rows: list[dict[str, Any]], say: Callable[[Any], str], most: int | None = None) -> str:
    """Describe the first rows of each system in words."""
    of_systems = {
        name: [say(row) for row in rows if text_of(row["system"]) == name][:most] for name in names_of(rows)
    }
    return "; ".join(f"{name}: {', '.join(said)}" for name, said in of_systems.items())


def by_name(systems: Any, what: str = "scores", longest: int = 60) -> dict[str, Any]:
    """Systems by their names as they are shown; one without a name is called "system"."""
    if not isinstance(systems, Mapping):
        return {"system": systems}
    if not systems:
        raise InputError(f'no system is given; wanted a mapping of names, as in {{"bm25": {what}}}')
    labels = labels_of(((str(name),) for name in systems), longest)
    if len(labels) < len(systems):
        raise InputError(
            f"two systems have the same name as text: {', '.join(map(repr, systems))}; rename one"
        )
    return dict(zip(labels.values(), systems.values(), strict=True))


def unit_of(measure: Measure) -> str:
    """Return the range of a measure's values, as a label of an axis."""
    return measure.definition.range.partition(";")[0].partition(" for ")[0]


def size_text(small: bool) -> str:
    return f"fewer than {SMALL} queries" if small else f"{SMALL} queries or more"


def number_text(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3f}"
