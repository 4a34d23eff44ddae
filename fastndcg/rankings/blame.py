"""Which row and query of the user's data a message is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.table import quoted
from fastndcg.errors import At

if TYPE_CHECKING:
    from fastndcg.common.later import pa


class Blame(NamedTuple):
    """How documents and queries of rankings are called in messages, by row and by id.

    >>> str(Blame(np.array([0, 2, 3]), None, first_row=5).at(2))
    ' at row 7, query 1'
    """

    offsets: npt.NDArray[np.int64]
    query_ids: pa.Array | pa.ChunkedArray | None  # None: queries are numbered from 0
    first_row: int | None = 0  # its number in the user's data; None where that has another order of rows

    def at(self, row: int, *, first: bool = False) -> At:
        query = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return At(None if self.first_row is None else row + self.first_row, self.name_of(query), first)

    def name_of(self, query: int) -> str:
        """The id of a query: strings are quoted."""
        found: Any = query if self.query_ids is None else self.query_ids[query].as_py()
        return quoted(found)
