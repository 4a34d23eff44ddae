"""What all plots share: colours, axes, text, limits of size, and parts such as curves, bars and intervals.

The only module that imports Altair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from fastndcg.common.exports import without_nan
from fastndcg.common.table import labels_of, shorten
from fastndcg.errors import InputError, InputTypeError, library
from fastndcg.rankings.rankings import Rankings
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.typing import Chart

MOST = 5_000  # points that are drawn one by one
STEPS = 500  # bars or steps of a curve at most; more values share them

# Okabe and Ito's colours for colour-blind readers, the light ones darkened to a contrast of 3 on white
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#3d97cc", "#c2669a", "#a67c00", "#7f7f7f")
BETTER, WORSE, SAME = COLOURS[0], COLOURS[1], COLOURS[6]
TEXT = "#767676"  # readable on white and on near black
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3], [10, 4])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

WIDTH, HEIGHT = 560, 280
# characters of a text; Vega's own limits cut it within a surrogate pair, at which vl-convert fails
_LONGEST, _LONGEST_LINE, _LONGEST_DESCRIPTION = 70, 150, 5_000


def altair() -> Any:
    """Import Altair. Raise `ExtraError` if it is not installed."""
    return library("altair", "Altair", "plot", "a picture")


def add_looks(
    chart: Chart, title: str, subtitle: str, description: str, *, height: float | None = HEIGHT
) -> Chart:
    """Add a title, a description in words and the common style to a chart. `height=None` keeps its size."""
    alt, words = altair(), {"labelColor": TEXT, "titleColor": TEXT, "titleFontWeight": "normal"}
    config = {
        "background": "transparent",
        # room for fonts that are wider than the one used to measure text
        "font": "Arial, Helvetica, 'Liberation Sans', sans-serif",
        "padding": {"left": 24, "right": 24, "top": 8, "bottom": 8},
        "view": {"stroke": None},
        "title": {"color": TEXT, "subtitleColor": TEXT, "fontSize": 14, "offset": 12},
        "axis": words
        | {"domainColor": TEXT, "tickColor": TEXT, "gridColor": TEXT, "gridOpacity": 0.2}
        | {"titlePadding": 10, "labelLimit": 0},
        "legend": words | {"columnPadding": 32, "labelLimit": 0},
    }
    if height is not None:
        chart = chart.properties(width=WIDTH, height=height)
    return chart.properties(
        title=alt.TitleParams(
            shorten(title, _LONGEST_LINE), subtitle=shorten(subtitle, _LONGEST_LINE), anchor="start"
        ),
        description=shorten(description, _LONGEST_DESCRIPTION),
        config=alt.Config.from_dict(config),
    )


def chart_of(rows: list[dict[str, Any]]) -> Chart:
    """Return a chart of rows. Its encodings give the type of each column. NaN becomes null, as in JSON, and
    texts become visible, since vl-convert ends the process at some characters.
    """
    alt = altair()
    shown = [{name: text_of(value) for name, value in row.items()} for row in rows]
    return alt.Chart(alt.InlineData(values=without_nan(shown)))


def colours_of(names: list[str], field: str = "system") -> Any:
    """Return a colour for each name, in the order of the names. A single name has no legend."""
    # opaque, also where the colours fill bands that one can see through
    legend = altair().Legend(orient="top", symbolOpacity=1) if len(names) > 1 else None
    return altair().Color(f"{field}:N", title=None, scale=_scale_of(names, COLOURS), legend=legend)


def dashes_of(names: list[str]) -> Any:
    """Return a dash pattern for each name, for readers who do not see colours."""
    return altair().StrokeDash("system:N", scale=_scale_of(names, _DASHES), legend=None)


def shapes_of(names: list[str], field: str = "system") -> Any:
    """Return a shape for each name, for readers who do not see colours."""
    return altair().Shape(f"{field}:N", scale=_scale_of(names, _SHAPES), legend=None)


def _scale_of(names: list[str], choices: Sequence[Any]) -> Any:
    """Return a choice for each name. When all are used, start again with the first."""
    return altair().Scale(
        domain=list(map(text_of, names)), range=[choice for _, choice in zip(names, cycle(choices))]
    )


def text_of(value: Any) -> Any:
    """Texts as pictures show them: visible, and without the middle of what would take minutes to draw."""
    return shorten(value, _LONGEST) if isinstance(value, str) else value


def title_of(text: str) -> str:
    """The title of an axis, which Vega-Lite writes into expressions: a backslash would escape there."""
    return str(text_of(text)).replace("\\", "\N{SET MINUS}")


def tables(chart: Chart) -> list[list[dict[str, Any]]]:
    """Return the data of a chart: the rows of each of its tables."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    datasets, found = spec.get("datasets", {}), []

    def visit(node: dict[str, Any]) -> None:
        given = node.get("data", {})
        rows = given.get("values") or datasets.get(given.get("name"))
        if rows and rows not in found:
            found.append(rows)
        for child in ("layer", "hconcat", "vconcat"):
            for each in node.get(child, ()):
                visit(each)

    visit(spec)
    return found


# ---- parts of charts ----


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


def means_of(rows: list[dict[str, Any]], x: Any, y_title: str) -> list[Chart]:
    """Layers of a line for each system through its means, a band of their intervals, and a point for each."""
    alt, names = altair(), names_of(rows)
    base = chart_of(rows).encode(x, colours_of(names))
    band = base.mark_area(opacity=0.2).encode(alt.Y("low:Q", scale=alt.Scale(zero=False)), alt.Y2("high:Q"))
    line = base.mark_line().encode(alt.Y("mean:Q", title=title_of(y_title)), dashes_of(names))
    points = base.mark_point(filled=True, size=30)
    return [band, line, points.encode(alt.Y("mean:Q"), shapes_of(names))]


def bars_of(rows: list[dict[str, Any]], x: Any, y: Any, field: str) -> Chart:
    """Bars side by side, one for each value of a column."""
    names = names_of(rows, field)
    beside = altair().XOffset(f"{field}:N", sort=names)
    return chart_of(rows).mark_bar().encode(x, beside, y, colours_of(names, field))


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
        fills = alt.Fill("system:N", scale=_scale_of(names, COLOURS), legend=None)
        points = points.encode(fills, fillOpacity=hollow)
    layers = [rule, points]
    if "stable" in rows[0]:
        layers.append(base.mark_tick(thickness=3, size=16).encode(alt.X("stable:Q")))
    height = max(24 * len(order) * max(1.0, len(names) * 0.6), 60)
    return alt.layer(*layers).properties(width=WIDTH, height=height)


def rule_at(row: dict[str, Any], field: str, axis: str = "X") -> Chart:
    """A dashed line at a number of a row."""
    at = getattr(altair(), axis)(f"{field}:Q")
    return chart_of([row]).mark_rule(strokeDash=[4, 4], color=SAME).encode(at)


# ---- names and numbers in words ----


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


def check_rankings(name: str, given: Any) -> Rankings:
    if isinstance(given, Rankings):
        return given
    raise InputTypeError(
        f'"{name}" is a {type(given).__name__}; wanted Rankings, as read_parquet returns them'
    )


def unit_of(measure: Measure) -> str:
    """Return the range of a measure's values, as a label of an axis."""
    return measure.definition.range.partition(";")[0].partition(" for ")[0]


def size_text(small: bool) -> str:
    return f"fewer than {SMALL} queries" if small else f"{SMALL} queries or more"


def number_text(value: float) -> str:
    return "none" if math.isnan(value) else f"{value:.3f}"
