"""Tables of results: `Table`, which holds an Arrow table, and functions that fit rows of texts to a terminal.

Each table says which columns a narrow terminal may leave out, and in which order. All others are always
shown, and a last line names what is left out and how to see it. If the others do not fit either, they are
split into several tables. Without a terminal nothing is left out.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, count
from typing import Any

from fastndcg.common.arrow_types import is_list, is_text
from fastndcg.common.exports import AsFrame
from fastndcg.common.lazy import pa
from fastndcg.common.markup import Texts, html_table
from fastndcg.errors import visible

_NARROW = 40  # narrowest column of text beside a name
_ROWS = 40  # most rows of a table that are shown
_LONGEST = 60  # most characters of a text that is not a measure


class Table(AsFrame):
    """A table of results that prints as text. It holds a `pyarrow.Table`, and has the same attributes and
    methods.

    `table["mean"]` is a column, and `len(table)` the number of rows. Libraries that read Arrow accept it
    directly, as in `polars.DataFrame(table)` and `pyarrow.table(table)`.

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate
    >>> kept = {"country": ["de", "fr", "de"]}
    >>> scores = evaluate(Rankings.from_lists([[1, 0], [0, 1], [0, 1]], queries=kept), ["RR", "P@1"])
    >>> scores.by("country")
    country  queries        RR       P@1
    de             2  0.750000  0.500000
    fr             1  0.500000  0.000000
    """

    def __init__(self, table: pa.Table, keys: int = 1) -> None:
        self._arrow = table
        self._keys = keys  # leading columns that every page repeats

    def to_arrow(self) -> pa.Table:
        """The table as a `pyarrow.Table`."""
        return self._arrow

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self._arrow, name)

    def __getitem__(self, name: Any) -> Any:
        return self._arrow[name]

    def __len__(self) -> int:
        return len(self._arrow)

    def __eq__(self, other: object) -> bool:
        theirs = other._arrow if isinstance(other, Table) else other
        return bool(self._arrow.equals(theirs)) if isinstance(theirs, pa.Table) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def text(self, width: int = 0, see: str = "to_arrow()") -> str:
        """Return the table as text with lines of at most `width` characters; 0 means no limit. A last line
        names `see` as the way to see omitted rows and columns.
        """
        hidden = len(self) - _ROWS
        notes = [f"... and {hidden:,} more rows; {see} has all"] if hidden > 0 else []
        return "\n".join([fit(self._texts(), self._keys, (), width, see, self._left()), *notes])

    def _left(self) -> set[str]:
        """Names of left-aligned columns."""
        are_text = (is_text, is_list, pa.types.is_dictionary)
        return {field.name for field in self._arrow.schema if any(each(field.type) for each in are_text)}

    def _texts(self) -> Texts:
        shown = self._arrow.slice(0, _ROWS)
        left, columns = self._left(), []
        for place, (name, column) in enumerate(zip(shown.column_names, shown.columns, strict=True)):
            names = (name in left and not is_list(column.type)) or (
                place < self._keys and name not in ("queries", "small")
            )
            columns.append(
                [shorten(name_of(value)) if names else shown_value(value) for value in column.to_pylist()]
            )
        return [self._arrow.column_names, *map(list, zip(*columns, strict=True))]

    def __repr__(self) -> str:
        return self.text(terminal_width())

    def _repr_html_(self) -> str:
        texts, left = self._texts(), self._left()
        hidden = len(self) - len(texts) + 1
        more = f"<p>... and {hidden:,} more rows</p>" if hidden > 0 else ""
        return html_table(texts, {place for place, name in enumerate(texts[0]) if name in left}) + more


def name_of(value: object) -> str:
    """Return the value of an id or a slice as text. Null is `null`; empty texts and those that look
    like null are quoted.

    >>> [name_of(value) for value in (None, "null", "", "de", 1234567, 0.5, False, float("nan"))]
    ['null', '"null"', '""', 'de', '1234567', '0.5', 'false', 'NaN']
    """
    if isinstance(value, str):
        return f'"{value}"' if value.strip('"') in ("", "null") else value
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return "NaN" if value != value else str(value)  # noqa: PLR0124 - NaN alone differs from itself


def quoted(value: object) -> str:
    """Return an id for a sentence: quoted text; long ones lose their middle."""
    text = shorten(str(value))
    return f'"{text}"' if isinstance(value, str) else text


def labels_of(names: Iterable[tuple[str, ...]], longest: int = _LONGEST) -> dict[tuple[str, ...], str]:
    """A label for each name, or for names side by side: visible, short, and different where names differ.

    >>> labels_of([("a", "tv"), ("a, tv",), ("x" * 99,)]).values()
    dict_values(['a, tv', 'a, tv (2)', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxx'])
    """
    labels: dict[tuple[str, ...], str] = {}
    taken: set[str] = set()
    for name in dict.fromkeys(names):
        text = shorten(", ".join(name), longest)
        further = (f"{text} ({place})" for place in count(2))
        labels[name] = next(label for label in chain([text], further) if label not in taken)
        taken.add(labels[name])
    return labels


def digits(value: float, form: str = ".6f") -> str:
    """Format a float; decides how NaN is shown."""
    return "NaN" if math.isnan(value) else format(value, form)


def shown_value(value: object) -> str:
    """Format a value for tables: numbers with 6 decimals or 6 digits, long texts without their middle.

    >>> [shown_value(value) for value in (0.5, 1e-9, 3, None, True, float("nan"), ["a", "b"])]
    ['0.500000', '1e-09', '3', '', 'yes', 'NaN', 'a, b']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return digits(value, ".6f" if value == 0 or 1e-4 <= abs(value) < 1e7 else ".6g")
    return shorten(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def shorten(text: str, longest: int = _LONGEST) -> str:
    """Return text on one line, control characters escaped; long text loses its middle."""
    line = visible(text)
    if len(line) <= longest:
        return line
    tail = (longest - 3) // 2
    return f"{line[: longest - 3 - tail]}...{line[len(line) - tail :]}"


# ---- rows of texts ----


def terminal_width() -> int:
    """Return the width of the terminal in characters; 0 if standard output is not a terminal."""
    try:
        if not sys.stdout.isatty():
            return 0
        columns = os.environ.get("COLUMNS", "")
        return int(columns) if columns.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, OSError, ValueError):
        return 0


def fit(
    rows: Texts,
    keys: int,
    drops: Sequence[Collection[str]],
    width: int,
    see: str = "to_arrow()",
    left: Collection[str] = (),
) -> str:
    """Format rows of texts as a table with lines of at most `width` characters; 0 means no limit.

    The first `keys` columns are names; they and the columns in `left` are left-aligned. If there is no room,
    columns of `drops` are left out in this order, and a last line names them and `see`, which shows them. If
    that is not enough, further columns follow as further tables, each with the names.
    """
    rows, gone = [[visible(text) for text in row] for row in rows], list[str]()
    names, marked = rows[0], set(map(visible, left))
    shown = list(range(len(names)))
    for dropped in drops if width else ():
        if _width(rows, shown) <= width:
            break
        gone += [names[place] for place in shown if names[place] in dropped]
        shown = [place for place in shown if names[place] not in dropped]
    named = [place for place in shown if place < keys]
    pages = [list(named)]
    for place in shown[len(named) :]:
        if width and pages[-1] != named and _width(rows, [*pages[-1], place]) > width:
            pages.append(list(named))
        pages[-1].append(place)
    at_left = {place for place, name in enumerate(names) if place < keys or name in marked}
    text = "\n\n".join(_columns(rows, page, at_left) for page in pages)
    them = "it" if len(gone) == 1 else "them"
    said = f"Left out: {', '.join(gone)}; {see} or a wider terminal shows {them}."
    return f"{text}\n{wrapped(said, width)}" if gone else text


def _width(rows: Texts, places: Sequence[int]) -> int:
    return sum(max(len(row[place]) for row in rows) + 2 for place in places) - 2


def _columns(rows: Texts, places: Sequence[int], left: Collection[int]) -> str:
    """Format columns side by side, left- or right-aligned."""
    widths = {place: max(len(row[place]) for row in rows) for place in places}
    return "\n".join(
        "  ".join(
            row[place].ljust(width) if place in left else row[place].rjust(width)
            for place, width in widths.items()
        ).rstrip()
        for row in rows
    )


def entries(rows: Sequence[tuple[str, str]], width: int) -> str:
    """Format names with texts beside them; width 0 means no wrapping."""
    size = max((len(name) for name, _ in rows), default=0) + 2
    indent = size if width - size >= _NARROW else 4
    return "\n".join(wrapped(f"{name:<{size}}{text}", width, indent) for name, text in rows)


def wrapped(text: str, width: int, indent: int = 2) -> str:
    """Wrap a text, with all lines but the first indented; width 0 means no wrapping."""
    import textwrap

    if not width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
