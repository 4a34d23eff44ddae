"""The style of all plots: colours, axes, text, and limits of size. The only module that imports Altair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from fastndcg.common.exports import without_nan
from fastndcg.common.table import shorten
from fastndcg.errors import library

if TYPE_CHECKING:
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


def fills_of(names: list[str]) -> Any:
    """Return the same colours, as fills of points."""
    return altair().Fill("system:N", scale=_scale_of(names, COLOURS), legend=None)


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
