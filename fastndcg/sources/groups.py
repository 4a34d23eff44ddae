"""Find queries whose rows are not contiguous in the tables of a stream."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import is_list
from fastndcg.errors import InputError
from fastndcg.rankings.grouping import SECRET
from fastndcg.sources.arrow import grouped_rows, plain_table, several_rows_of_lists
from fastndcg.sources.messages import naming
from fastndcg.sources.spill import keys_of
from fastndcg.sources.streams import NotGroupedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from fastndcg.sources.opened import Opened

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

_ORDERED = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal)


_LONG = 1 << 16


class SeenKeys:
    """A set of keys of 8 bytes, as sorted arrays. Of overlapping arrays, each is twice the next or more."""

    def __init__(self) -> None:
        self._sorted: list[UInt64] = []

    def add(self, keys: UInt64) -> Int64:
        """Add keys. Returns the positions of keys that were in the set already, or that are added twice."""
        order = np.argsort(keys, kind="stable")
        new = keys[order]
        found = np.zeros(len(new), np.bool_)
        found[1:] = new[1:] == new[:-1]
        for old in self._sorted:
            if len(new) and old[0] <= new[-1] and new[0] <= old[-1]:
                place = np.searchsorted(old, new)
                found |= old[np.minimum(place, len(old) - 1)] == new
        if len(new):
            self._sorted.append(new)
        while len(self._sorted) > 1 and self._worth_merging(*self._sorted[-2:]):
            merged = np.concatenate(self._sorted[-2:])
            del self._sorted[-2:]  # frees memory for the sort, which needs half as much again
            merged.sort(kind="stable")  # which merges integers that are sorted already
            self._sorted.append(merged)
        return np.sort(order[found])

    @staticmethod
    def _worth_merging(one: UInt64, other: UInt64) -> bool:
        """Whether to merge two arrays. Long arrays that do not overlap stay apart."""
        apart = bool(one[-1] < other[0] or other[-1] < one[0])
        return len(one) <= 2 * len(other) and (len(one) < _LONG or not apart)


class Groups:
    """The queries of the tables so far.

    While ids rise from query to query, no query can return, so only the last id is stored: for five million
    queries with text ids, this saves a hundred megabytes. When ids stop rising, the earlier ids are read
    again, by `queries_before`: tables of the query ids before a row, and the number of the first row of each.

    Equal hashes only suggest that a query returns: `is_certain` compares the ids before it says so. Where
    rows are regrouped then, a false alarm only costs time.
    """

    def __init__(
        self,
        opened: Opened,
        queries_before: Callable[[int], Generator[tuple[int, pa.Table], None, None]],
        *,
        is_certain: bool,
        rising: bool = True,
    ) -> None:
        self._opened, self._queries_before, self._is_certain = opened, queries_before, is_certain
        self._last: pa.Scalar | None = None
        self._rising = rising
        self._seen = SeenKeys()

    def of(self, table: pa.Table, first_row: int) -> tuple[pa.Array, Int64, bool]:
        """Ids and offsets of the queries of a table, and whether the first continues the table before."""
        opened = self._opened
        with naming(opened.paths):
            grouped = grouped_rows(table, opened.columns, first_row + opened.first_row)
        ids, offsets = grouped.query_ids, grouped.offsets
        if grouped.rows is not None:
            row = int(np.argmax(np.diff(grouped.rows) != 1)) + 1
            query = int(np.searchsorted(offsets, row, side="right")) - 1
            raise self.refuse(ids[query:], first_row + int(grouped.rows[row]))
        continues = bool(self._last is not None and ids[0] == self._last)
        new = int(continues)
        if self._rising and not self._rise(ids[new:]):
            self._rising = False
            self._recall(first_row)
        repeated = (
            np.empty(0, np.int64) if self._rising else self._seen.add(keys_of(ids, SECRET[0])[new:]) + new
        )
        for place in repeated.tolist():
            row = first_row + int(offsets[place])
            if not self._is_certain or self._occurs_before(ids[place:], row):
                raise self.refuse(ids[place:], row)
        self._last = ids[-1]
        return ids, offsets, continues

    def refuse(self, ids: pa.Array, row: int) -> InputError:
        """The error for a query whose rows are not contiguous."""
        columns, name = self._opened.columns, ids[0].as_py()
        shown = f'"{name}"' if isinstance(name, str) else str(name)
        try:
            with naming(self._opened.paths):
                if is_list(self._opened.types[columns.relevance]):
                    raise several_rows_of_lists(ids[0], columns)
                raise NotGroupedError(
                    f"query {shown} returns at row {row + self._opened.first_row} after other queries, "
                    f'so rows are not grouped by "{columns.query}"; '
                    "sort them by it, or pass grouped=None to have them regrouped on disk"
                )
        except InputError as error:
            return error

    def _rise(self, ids: pa.Array) -> bool:
        """Whether each id is greater than the previous one."""
        if not any(is_kind(ids.type) for is_kind in _ORDERED):
            return False
        import pyarrow.compute as pc

        if self._last is not None and len(ids) and not pc.less(self._last, ids[0]).as_py():
            return False
        return len(ids) < 2 or bool(pc.all(pc.less(ids[:-1], ids[1:])).as_py())

    def _recall(self, row: int) -> None:
        """Read and store the ids of all rows before this one."""
        if not row:
            return
        groups = Groups(self._opened, self._queries_before, is_certain=self._is_certain, rising=False)
        with closing(self._queries_before(row)) as tables:
            for first_row, table in tables:
                if len(table):
                    groups.of(table, first_row)
        self._seen = groups._seen

    def _occurs_before(self, ids: pa.Array, row: int) -> bool:
        """Whether a query has rows before this row."""
        import pyarrow.compute as pc

        with closing(self._queries_before(row)) as tables:
            return any(pc.any(pc.equal(plain_table(table).column(0), ids[0])).as_py() for _, table in tables)
