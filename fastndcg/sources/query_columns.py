"""Columns of one value within each query, and the ids of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, decode, plain
from fastndcg.errors import At, InputError, InputTypeError
from fastndcg.rankings.blame import Blame, shown
from fastndcg.rankings.grouping import changes_of, group_rows, take
from fastndcg.sources.values import ids_in, join_arrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastndcg.rankings.grouping import Grouped

Int64 = npt.NDArray[np.int64]


class QueryColumns:
    """Columns of one value within each query, cut down to a row for each query."""

    def __init__(self, grouped: Grouped, ids: pa.ChunkedArray, blame: Blame) -> None:
        self._ids, self._grouped, self._blame = ids, grouped, blame
        self._starts, self._first_rows = grouped.offsets[:-1], grouped.first_rows

    def column(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        column = plain(column)
        if pa.types.is_nested(column.type):
            raise InputTypeError(
                f'column "{name}" is {column.type}; keep and weight take one plain value for each query'
            )
        differing = None if self._surely_constant(column) else self._differing(column)
        if differing is not None:
            first = int(self._first_rows[np.searchsorted(self._starts, differing, side="right") - 1])
            other = differing if self._grouped.rows is None else int(self._grouped.rows[differing])
            raise InputError(
                f'column "{name}" differs within query {shown(self._ids[other])}: {shown(column[first])}',
                At(self._blame.number(first)),
                f", {shown(column[other])}",
                At(self._blame.number(other)),
                "; keep and weight take columns with one value for each query",
            )
        return take(
            column, self._first_rows
        )  # first rows ascend, as queries stand in order of first appearance

    def _surely_constant(self, column: pa.ChunkedArray) -> bool:
        """A quick check that is enough for nearly all columns of grouped rows."""
        most = len(self._starts) + column.num_chunks
        changes = changes_of(column, most) if self._grouped.rows is None else None
        if changes is None:
            return False
        within = changes[~np.isin(changes, self._starts, assume_unique=True)]
        return len(within) <= column.num_chunks and all(
            column[row - 1].as_py() == column[row].as_py() for row in within
        )

    def _differing(self, column: pa.ChunkedArray) -> int | None:
        """The place in query order of the first row of the data that differs from its query's row before."""
        encoded = decode(column).dictionary_encode(null_encoding="encode")
        codes = join_arrays([array_of(chunk.indices) for chunk in encoded.chunks], np.int32)
        rows = self._grouped.rows
        if rows is not None:
            codes = codes[rows]
        changes = codes[1:] != codes[:-1]
        changes[self._starts[1:] - 1] = False
        places = np.flatnonzero(changes) + 1
        if not len(places):
            return None
        return int(places[0 if rows is None else np.argmin(rows[places])])


def columns_of_queries(table: pa.Table, query: str, names: Sequence[str], first_row: int = 0) -> pa.Table:
    """Columns of one value within each query: a row for each query, in order of first appearance."""
    ids = ids_in(query, table[query])
    level = QueryColumns(group_rows(ids), ids, Blame(numbers=first_row))
    return pa.table({name: level.column(name, table[name]) for name in names})
