"""How every picture looks: colours, axes, text, and where they are kept small. The only module that imports Altair."""

from __future__ import annotations

from typing import Any, TypeAlias

from fastndcg.errors import library

Chart: TypeAlias = (
    Any  # an altair.Chart, or several side by side: Altair is imported where a picture is asked for
)

MOST = 5_000  # points that are drawn one by one
STEPS = 500  # bars or steps of a curve that stands for more values than that

# Okabe and Ito's, told apart by the colour-blind, the light ones darker, so that each has a contrast of 3 on white and on near black
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#3d97cc", "#c2669a", "#a67c00", "#7f7f7f")
BETTER, WORSE, SAME = COLOURS[0], COLOURS[1], COLOURS[6]
TEXT = "#767676"  # read on white and on near black
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3], [10, 4])
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

WIDTH, HEIGHT = 560, 280


def altair() -> Any:
    """The library. Raises `ExtraError` where it is not installed."""
    return library("altair", "Altair", "plot", "a picture")


def add_looks(chart: Chart, title: str, subtitle: str, description: str) -> Chart:
    """The chart with a title, what it says in words, and the looks of all pictures."""
    alt, words = altair(), {"labelColor": TEXT, "titleColor": TEXT, "titleFontWeight": "normal"}
    config = {
        "background": "transparent",
        # room for fonts that are wider than the one that text was measured with
        "font": "Arial, Helvetica, 'Liberation Sans', sans-serif",
        "padding": {"left": 24, "right": 24, "top": 8, "bottom": 8},
        "view": {"stroke": None},
        "title": {"color": TEXT, "subtitleColor": TEXT, "fontSize": 14, "offset": 12},
        "axis": words
        | {"domainColor": TEXT, "tickColor": TEXT, "gridColor": TEXT, "gridOpacity": 0.2}
        | {"titlePadding": 10, "labelLimit": 240},
        "legend": words | {"columnPadding": 32, "labelLimit": 240},
    }
    return chart.properties(
        title=alt.TitleParams(title, subtitle=subtitle, anchor="start"),
        description=description,
        config=alt.Config.from_dict(config),
    )


def data(rows: list[dict[str, Any]]) -> Any:
    """Rows as the data of a chart, whose encodings name the type of each column."""
    return altair().InlineData(values=rows)


def colours_of(names: list[str], field: str = "system") -> Any:
    """A colour for each name, in their order; one name needs no legend."""
    alt = altair()
    return alt.Color(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=names, range=_each(COLOURS, len(names))),
        legend=alt.Legend(orient="top") if len(names) > 1 else None,
    )


def dashes_of(names: list[str]) -> Any:
    """A dash for each name, for those who do not see colours."""
    alt = altair()
    return alt.StrokeDash(
        "system:N", scale=alt.Scale(domain=names, range=_each(_DASHES, len(names))), legend=None
    )


def shapes_of(names: list[str], field: str = "system") -> Any:
    """A shape for each name, for those who do not see colours."""
    alt = altair()
    return alt.Shape(
        f"{field}:N", scale=alt.Scale(domain=names, range=_each(_SHAPES, len(names))), legend=None
    )


def _each(choices: Any, count: int) -> list[Any]:
    return [choices[place % len(choices)] for place in range(count)]


def tables(chart: Chart) -> list[list[dict[str, Any]]]:
    """The data of a chart: rows of each table that it is drawn from."""
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
