"""Name rows, documents and queries of the user's data in error messages."""

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


class Locator(NamedTuple):
    """Names columns, rows and queries in error messages.

    >>> Locator(np.array([0, 2, 3]), numbers=5).at(2), Locator(None, ["a", "b"]).at(1, first=True)
    (' at row 7, query 1', '; the first is at row 1, query "b"')
    """

    offsets: Any = None  # CSR offsets of the queries; None where each row has an id, or queries are unknown
    query_ids: pa.Array | pa.ChunkedArray | list[Any] | None = None  # None: queries are numbered from 0
    # row numbers in the data: of each row, of the first one, or a function; None: messages name no rows
    numbers: int | Int64 | Callable[[int], int] | None = 0
    names: tuple[str, str] = ("relevance", "scores")
    grouped: Grouped | None = None  # set where documents are in query order, not in the order of the data
    in_lists: bool = False  # name documents by their position in the list of their query
    positions: Int64 | None = None  # of documents in lists with gaps
    unit: str = "row"  # what `numbers` count
    ranks: str | None = None  # an unused column of ranks beside the scores

    def at(self, row: int, *, first: bool = False) -> str:
        """Return " at row 7, query 1", or "; the first is at row 7 ..." if `first`."""
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
        """Return the chosen document whose row comes first in the data."""
        rows = None if self.grouped is None else self.grouped.rows
        if rows is None:
            return int(np.argmax(chosen))
        documents = np.flatnonzero(chosen)
        return int(documents[np.argmin(rows[documents])])

    def number(self, row: int) -> int | None:
        """Return the number of a document's row in the user's data."""
        if self.grouped is not None and self.grouped.rows is not None:
            row = int(self.grouped.rows[row])
        if self.numbers is None or isinstance(self.numbers, int):
            return None if self.numbers is None else row + self.numbers
        return self.numbers(row) if callable(self.numbers) else int(self.numbers[row])

    def name_of(self, query: int) -> str:
        """Return the id of a query, quoted if it is a string."""
        return shown(query if self.query_ids is None else self.query_ids[query])


BY_ROW = Locator()


def at_row(number: int | None, unit: str = "row") -> str:
    return "" if number is None else f" at {unit} {number}"


def shown(value: Any) -> str:
    """Format a value for messages: text is quoted, and long text is shortened in the middle.

    >>> shown("q-1"), shown(7), shown(b"q-2")
    ('"q-1"', '7', '"q-2"')
    """
    value = value.as_py() if hasattr(value, "as_py") else value
    return quoted(value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value)
