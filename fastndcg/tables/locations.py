"""Which row and query of the user's data a message is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.table import quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastndcg.common.arrays import Int64
    from fastndcg.common.lazy import pa
    from fastndcg.tables.grouping import Grouped


class Blame(NamedTuple):
    """How columns, documents and queries are called in messages.

    >>> Blame(np.array([0, 2, 3]), numbers=5).at(2), Blame(None, ["a", "b"]).at(1, first=True)
    (' at row 7, query 1', '; the first is at row 1, query "b"')
    """

    offsets: Any = None  # of the documents of queries; None where each row has its own id, or none is known
    query_ids: pa.Array | pa.ChunkedArray | list[Any] | None = None  # None: queries are numbered from 0
    # of the rows of the data, or of the first, or a function of rows; None: they stand otherwise
    numbers: int | Int64 | Callable[[int], int] | None = 0
    names: tuple[str, str] = ("relevance", "scores")
    grouped: Grouped | None = None  # documents stand in its order, and not in that of the data
    in_lists: bool = False  # documents are called by their positions in lists, of which each query has one
    positions: Int64 | None = None  # in lists with gaps
    unit: str = "row"  # what `numbers` are of
    ranks: str | None = None  # the column of ranks beside that of scores

    def at(self, row: int, *, first: bool = False) -> str:
        """Where a document is, to end a clause with; `first` says that it is the first of several."""
        query, name = row, ""
        if self.offsets is not None:
            query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        if self.offsets is not None or self.query_ids is not None:
            name = self.name_of(query)
        number, place = None if self.in_lists else self.number(row), f" in query {name}" if name else ""
        if self.in_lists:
            start = 0 if self.offsets is None else int(self.offsets[query])
            position = row - start if self.positions is None else int(self.positions[row])
            place = f" at position {position} of query {name}"
        elif number is not None:
            place = at_row(number, self.unit) + (f", query {name}" if name else "")
        return f"; the first is{place}" if first and place else place

    def first(self, chosen: npt.NDArray[np.bool_]) -> int:
        """The chosen document whose row is the first in the data."""
        rows = None if self.grouped is None else self.grouped.rows
        if rows is None:
            return int(np.argmax(chosen))
        found = np.flatnonzero(chosen)
        return int(found[np.argmin(rows[found])])

    def number(self, row: int) -> int | None:
        """The number of a document's row in the user's data."""
        if self.grouped is not None and self.grouped.rows is not None:
            row = int(self.grouped.rows[row])
        if self.numbers is None or isinstance(self.numbers, int):
            return None if self.numbers is None else row + self.numbers
        return self.numbers(row) if callable(self.numbers) else int(self.numbers[row])

    def name_of(self, query: int) -> str:
        """The id of a query: strings are quoted."""
        found: Any = query if self.query_ids is None else self.query_ids[query]
        return shown(found)


BY_ROW = Blame()


def at_row(number: int | None, unit: str = "row") -> str:
    return "" if number is None else f" at {unit} {number}"


def shown(value: Any) -> str:
    """A value of a column for messages: text is quoted, and the middle of a long text is left out.

    >>> shown("q-1"), shown(7), shown(b"q-2")
    ('"q-1"', '7', '"q-2"')
    """
    value = value.as_py() if hasattr(value, "as_py") else value
    return quoted(value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value)
