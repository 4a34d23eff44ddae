"""What all charts share: colours, axes, texts and limits of size, and how rows become a chart.

A chart is rows and layers: each layer is a mark of Vega-Lite and its encodings of columns. A row has the name
of a `system`, and numbers; NaN and None leave a gap. The only module that imports Altair.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from fastndcg.common.exports import without_nan
from fastndcg.common.table import labels_of, shorten
from fastndcg.errors import InputError, InputTypeError, library

if TYPE_CHECKING:
    from fastndcg.typing import Chart

Rows = list[dict[str, Any]]
Spec = dict[str, Any]
Layer = tuple[Spec, Spec] | tuple[Spec, Spec, Rows]  # a mark, its encodings, and rows if it has its own

# Okabe and Ito's colours for colour-blind readers, the light ones darkened to a contrast of 3 on white
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#3d97cc", "#c2669a", "#a67c00", "#7f7f7f")
BETTER, WORSE, SAME = COLOURS[0], COLOURS[1], COLOURS[6]
TEXT = "#767676"  # readable on white and on near black
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3], [10, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
DASHED = {"type": "rule", "strokeDash": [4, 4], "color": SAME}

WIDTH, HEIGHT = 560, 280
# most characters of a text, title, subtitle line, subtitle and description; most rows of a description
_LONGEST, _TITLE, _LINE, _SUBTITLE, _DESCRIPTION, _SAID = 70, 75, 95, 570, 5_000, 40

_WORDS = {"labelColor": TEXT, "titleColor": TEXT, "titleFontWeight": "normal"}
_CONFIG = {
    "background": "transparent",
    # space for fonts that are wider than the one used to measure text
    "font": "Arial, Helvetica, 'Liberation Sans', sans-serif",
    "padding": {"left": 24, "right": 24, "top": 8, "bottom": 8},
    "view": {"stroke": None},
    "title": {"color": TEXT, "subtitleColor": TEXT, "fontSize": 14, "offset": 12},
    "axis": _WORDS
    | {"domainColor": TEXT, "tickColor": TEXT, "gridColor": TEXT, "gridOpacity": 0.2}
    | {"titlePadding": 10, "labelLimit": 0, "labelSeparation": 4},
    "legend": _WORDS | {"columnPadding": 32, "labelLimit": 0},
}


def draw(rows: Rows, layers: Sequence[Layer], title: str, subtitle: str, height: float = HEIGHT) -> Chart:
    """Draw rows. A layer of columns that the rows lack is left out. The description has the first rows in
    words, for readers who cannot see the chart. Raises `ExtraError` if Altair is not installed.
    """
    drawn = []
    for mark, encoding, *own_table in layers:
        table = own_table[0] if own_table else rows
        if all(each.get("field") in (None, *table[0]) for each in encoding.values()):
            drawn.append(
                {"mark": mark, "encoding": encoding} | ({"data": _data_of(table)} if own_table else {})
            )
    spec = {"data": _data_of(rows), "width": WIDTH, "height": height, "config": _CONFIG}
    spec |= drawn[0] if len(drawn) == 1 else {"layer": drawn}
    lines = textwrap.wrap(shorten(subtitle, _SUBTITLE), _LINE)
    spec["title"] = {"text": shorten(title, _TITLE), "subtitle": lines, "anchor": "start"}
    texts = (
        [f"{each:.4g}" if isinstance(each, float) else str(each) for each in row.values()] for row in rows
    )
    said = "; ".join(map(", ".join, islice(texts, _SAID)))
    spec["description"] = shorten(f"{title}. {subtitle}. {', '.join(rows[0])}: {said}.", _DESCRIPTION)
    return library("altair", "Altair", "report", "a picture").Chart.from_dict(spec)


def _data_of(rows: Rows) -> Spec:
    """NaN becomes null, as in JSON; texts become visible, since some characters end vl-convert."""
    return {"values": without_nan([{name: text_of(each) for name, each in row.items()} for row in rows])}


def quantity(field: str, title: str | None = None, **options: Any) -> Spec:
    """Encode a column of numbers. Its axis need not begin at 0."""
    named = {} if title is None else {"title": title_of(title)}
    return {"field": field, "type": "quantitative", "scale": {"zero": False}} | named | options


def nominal(field: str, title: str = "", **options: Any) -> Spec:
    """Encode a column of names."""
    return {"field": field, "type": "nominal", "title": title_of(title) or None} | options


def by_system(names: Sequence[str], choices: Sequence[Any] = COLOURS, **options: Any) -> Spec:
    """Encode a choice for each system, in the order of the names. When all are used, start again."""
    chosen = [choice for _, choice in zip(names, cycle(choices))]
    return nominal("system", scale={"domain": list(names), "range": chosen}) | {"legend": None} | options


def colours_of(names: Sequence[str], choices: Sequence[str] = COLOURS) -> Spec:
    """Encode a colour for each system. A single name has no legend."""
    # opaque, even where the colours fill translucent bands
    return by_system(names, choices, legend={"orient": "top", "symbolOpacity": 1} if len(names) > 1 else None)


def names_of(rows: Rows, field: str = "system") -> list[str]:
    """Return the values of a column as shown, in order of first appearance."""
    return list(dict.fromkeys(text_of(row[field]) for row in rows))


def text_of(value: Any) -> Any:
    """Return a text as charts show it: control characters escaped, and long texts shortened."""
    return shorten(value, _LONGEST) if isinstance(value, str) else value


def title_of(text: str) -> str:
    """Return a title of an axis. Vega-Lite writes it into expressions, in which a backslash would escape."""
    return str(text_of(text)).replace("\\", "\N{SET MINUS}")


def check_result(name: str, result: Any, expected: str, attribute: str) -> Any:
    """Raise `InputTypeError` for an argument without the attribute that an `expected` result has."""
    if not hasattr(result, attribute):
        raise InputTypeError(f"{name} is a {type(result).__name__}; expected {expected}")
    return result


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
