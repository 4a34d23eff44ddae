"""What all charts share: colours, axes, texts and limits of size. The only module that imports Altair."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from fastndcg.common.exports import without_nan
from fastndcg.common.table import labels_of, shorten
from fastndcg.errors import InputError, InputTypeError, library

if TYPE_CHECKING:
    from fastndcg.typing import Chart

Rows = list[dict[str, Any]]
STEPS = 500  # bars or steps of a curve at most, about as many as pixels; more values share them

# Okabe and Ito's colours for colour-blind readers, the light ones darkened to a contrast of 3 on white
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#3d97cc", "#c2669a", "#a67c00", "#7f7f7f")
BETTER, WORSE, SAME = COLOURS[0], COLOURS[1], COLOURS[6]
TEXT = "#767676"  # readable on white and on near black
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3], [10, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

WIDTH, HEIGHT = 560, 280
# characters of a text, a title, a line of the subtitle, all of it, and a description
_LONGEST, _TITLE, _LINE, _SUBTITLE, _DESCRIPTION = 70, 75, 95, 570, 5_000


def altair() -> Any:
    """Import Altair. Raise `ExtraError` if it is not installed."""
    return library("altair", "Altair", "plot", "a picture")


def finish(chart: Chart, title: str, subtitle: str, description: str, height: float | None = HEIGHT) -> Chart:
    """Add a title, a description in words and the common style to a chart. `height=None` keeps its size."""
    alt, words = altair(), {"labelColor": TEXT, "titleColor": TEXT, "titleFontWeight": "normal"}
    config = {
        "background": "transparent",
        # space for fonts that are wider than the one used to measure text
        "font": "Arial, Helvetica, 'Liberation Sans', sans-serif",
        "padding": {"left": 24, "right": 24, "top": 8, "bottom": 8},
        "view": {"stroke": None},
        "title": {"color": TEXT, "subtitleColor": TEXT, "fontSize": 14, "offset": 12},
        "axis": words
        | {"domainColor": TEXT, "tickColor": TEXT, "gridColor": TEXT, "gridOpacity": 0.2}
        | {"titlePadding": 10, "labelLimit": 0, "labelSeparation": 4},
        "legend": words | {"columnPadding": 32, "labelLimit": 0},
    }
    if height is not None:
        chart = chart.properties(width=WIDTH, height=height)
    lines = textwrap.wrap(shorten(subtitle, _SUBTITLE), _LINE)
    return chart.properties(
        title=alt.TitleParams(shorten(title, _TITLE), subtitle=lines, anchor="start"),
        description=shorten(f"{title}. {subtitle}. {description}".strip(), _DESCRIPTION),
        config=alt.Config.from_dict(config),
    )


def chart_of(rows: Rows) -> Chart:
    """Return a chart of rows. Its encodings give the type of each column. NaN becomes null, as in JSON, and
    texts become visible, since vl-convert ends the process at some characters.
    """
    alt = altair()
    shown = [{name: text_of(value) for name, value in row.items()} for row in rows]
    return alt.Chart(alt.InlineData(values=without_nan(shown)))


def colours_of(names: list[str]) -> Any:
    """Return a colour for each name, in the order of the names. A single name has no legend."""
    # opaque, also where the colours fill bands that one can see through
    legend = altair().Legend(orient="top", symbolOpacity=1) if len(names) > 1 else None
    return altair().Color("system:N", title=None, scale=scale_of(names), legend=legend)


def scale_of(names: list[str], choices: Sequence[Any] = COLOURS) -> Any:
    """Return a choice for each name. When all are used, start again with the first."""
    return altair().Scale(domain=names, range=[choice for _, choice in zip(names, cycle(choices))])


def names_of(rows: Rows, field: str = "system") -> list[str]:
    """Values of a column as they are shown, in order of their first appearance."""
    return list(dict.fromkeys(text_of(row[field]) for row in rows))


def text_of(value: Any) -> Any:
    """Return a text as charts show it: control characters escaped, and long texts shortened."""
    return shorten(value, _LONGEST) if isinstance(value, str) else value


def title_of(text: str) -> str:
    """Return a title of an axis. Vega-Lite writes it into expressions, in which a backslash would escape."""
    return str(text_of(text)).replace("\\", "\N{SET MINUS}")


def check_result(name: str, given: Any, expected: str, attribute: str) -> Any:
    """Raise `InputTypeError` for an argument without the attribute that an `expected` result has."""
    if not hasattr(given, attribute):
        raise InputTypeError(f"{name} is a {type(given).__name__}; expected {expected}")
    return given


def by_name(systems: Any, expected: str, attribute: str = "__class__", longest: int = 60) -> dict[str, Any]:
    """Results by the names of their systems, as they are shown; one without a name is called "system"."""
    named = systems if isinstance(systems, Mapping) else {"system": systems}
    if not named:
        raise InputError(
            f'no system is given; expected a mapping of names to {expected}, as in {{"bm25": ...}}'
        )
    for name, each in named.items():
        check_result(f'"{name}"', each, expected, attribute)
    labels = labels_of(((str(name),) for name in named), longest)
    if len(labels) < len(named):
        raise InputError(f"two systems have the same name as text: {', '.join(map(repr, named))}; rename one")
    return dict(zip(labels.values(), named.values(), strict=True))
