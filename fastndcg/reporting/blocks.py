"""The blocks of a page, for its template: text, tables, pictures, and blocks that open on a click."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fastndcg.plot.looks import Chart, tables


class Cell(NamedTuple):
    text: str
    value: float | None  # the number to sort by; None for texts


class Table(NamedTuple):
    """Rows of cells. A column is numeric if all of its cells are numbers or empty."""

    caption: str
    header: list[str]
    rows: list[list[Cell]]
    sorts: bool = True
    kind: str = "table"

    @property
    def numeric(self) -> list[bool]:
        return [
            all(row[place].value is not None or not row[place].text for row in self.rows)
            for place in range(len(self.header))
        ]


class Picture(NamedTuple):
    title: str
    text: str  # a description
    uri: str  # the image, as a data URI
    width: int
    tables: list[Table]
    kind: str = "picture"


class Text(NamedTuple):
    text: str
    kind: str = "text"


class Folded(NamedTuple):
    """Blocks that are hidden until the reader opens them."""

    title: str
    blocks: list[Any]
    kind: str = "folded"


class Section(NamedTuple):
    id: str
    title: str
    blocks: list[Any]


def table_of(
    caption: str,
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, str] | None = None,
    *,
    sorts: bool = True,
) -> Table:
    """Return a table of rows with the same keys. `names` maps keys to other titles of columns."""
    header = list(rows[0]) if rows else []
    cells = [[cell_of(row[name]) for name in header] for row in rows]
    return Table(caption, [(names or {}).get(name, name) for name in header], cells, sorts)


def cell_of(value: Any) -> Cell:
    """Return the cell of a value: its text, and the number to sort by.

    >>> cell_of(0.123456), cell_of(1234567), cell_of(1e-9).text, cell_of("q-1").value
    (Cell(text='0.1235', value=0.123456), Cell(text='1,234,567', value=1234567.0), '1e-09', None)
    """
    if isinstance(value, bool):
        return Cell("yes" if value else "no", None)
    if isinstance(value, int):
        return Cell(f"{value:,}", float(value) if abs(value) < 1 << 53 else None)
    if isinstance(value, float):
        if math.isnan(value):
            return Cell("", None)
        small = 0 < abs(value) < 0.0005
        return Cell(f"{value:.2g}" if small else f"{value:.4f}", value if math.isfinite(value) else None)
    return Cell("" if value is None else str(value), None)


def id_cells(rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> list[dict[str, Any]]:
    """Return rows with the named columns as text, so that the id 1234567 is not shown as 1,234,567."""
    names = set(columns)
    return [
        {name: _text_of(value) if name in names else value for name, value in row.items()} for row in rows
    ]


def _text_of(value: Any) -> str:
    return "" if value is None else str(value)


def picture_of(chart: Chart) -> Picture:
    """Return a chart as an embedded SVG image, without scripts and links, and its data as tables."""
    import vl_convert as converter

    spec = chart.to_dict(validate=False)
    svg = converter.vegalite_to_svg(spec, allowed_base_urls=[])
    uri = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
    title = spec["title"]["text"]
    width = int(float(svg.partition('width="')[2].partition('"')[0]))
    shown = [
        table_of(title if len(found) == 1 else f"{title}, {place} of {len(found)}", rows)
        for found in [tables(chart)]
        for place, rows in enumerate(found, 1)
    ]
    return Picture(title, spec["description"], uri, width, shown)
