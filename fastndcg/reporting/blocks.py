"""The blocks of a page, for its template: texts, tables, pictures, and blocks that open on a click."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.common.table import name_of, shorten
from fastndcg.reporting.drawing import drawn

if TYPE_CHECKING:
    from fastndcg.typing import Chart

LONGEST = 200  # characters of a name on the page


class Cell(NamedTuple):
    text: str
    value: float | None  # the number to sort by; None for texts


class Table(NamedTuple):
    """Rows of cells. A column is numeric if all of its cells are numbers or empty."""

    caption: str
    header: list[str]
    rows: list[list[Cell]]
    sorts: bool = True

    @property
    def numeric(self) -> list[bool]:
        return [
            all(row[place].value is not None or not row[place].text for row in self.rows)
            for place in range(len(self.header))
        ]


@dataclass
class Picture:
    title: str
    text: str  # a description
    spec: dict[str, Any]
    tables: list[Table]
    uri: str = ""  # the image, as a data URI
    width: int = 0
    missing: str = ""  # the reason why there is no image


class Section(NamedTuple):
    """Blocks under a title. Those within a section have no id, and are hidden until the reader opens them."""

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
        {name: shorten(name_of(value), LONGEST) if name in names else value for name, value in row.items()}
        for row in rows
    ]


def picture_of(chart: Chart) -> Picture:
    """Return a chart that is still to be drawn, and its data as tables."""
    spec, found = chart.to_dict(validate=False), tables(chart)
    title = spec["title"]["text"]
    shown = [
        table_of(title if len(found) == 1 else f"{title}, {place} of {len(found)}", rows)
        for place, rows in enumerate(found, 1)
    ]
    return Picture(title, spec["description"], spec, shown)


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


def draw(blocks: Iterable[Any]) -> list[Picture]:
    """Draw all pictures, as SVG images without scripts and links. Return those that are missing."""
    pictures = list(_pictures_in(blocks))
    for picture, (svg, why) in zip(pictures, drawn([each.spec for each in pictures]), strict=True):
        picture.missing = why
        picture.uri = "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
        picture.width = int(float(svg.partition('width="')[2].partition('"')[0] or 0))
    return [picture for picture in pictures if picture.missing]


def _pictures_in(blocks: Iterable[Any]) -> Iterator[Picture]:
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Section):
            yield from _pictures_in(block.blocks)
