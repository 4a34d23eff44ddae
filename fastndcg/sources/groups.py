"""Queries whose rows are not contiguous: found in the tables of a stream by keys of their ids, of 8 bytes
each, and their rows put together on disk.
"""

from __future__ import annotations

from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, column_of, combine, has_wide_codes, is_list
from fastndcg.common.hashes import UInt64, keys_of, mix
from fastndcg.errors import InputError, SourceError
from fastndcg.rankings.grouping import runs_of
from fastndcg.sources.arrow import grouped_rows, several_rows_of_lists
from fastndcg.sources.opened import ANEW
from fastndcg.sources.opening import naming
from fastndcg.sources.streams import NotGroupedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Self

    from fastndcg.common.arrays import Int64
    from fastndcg.sources.opened import Opened

_ORDERED = (pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal)
_LONG = 1 << 16


class Groups:
    """The queries of the tables so far.

    While ids rise from query to query, no query can return, so only the last id is stored: for five million
    queries with text ids, this saves a hundred megabytes. When ids stop rising, the earlier ids are read
    again, by `queries_before`: tables of the query ids before a row, and the number of the first row of each.
    Where rows come from a stream, which cannot be read twice at once, all are stored from the beginning.

    Equal hashes only suggest that a query returns: `is_certain` compares the ids before it says so, but not
    those of a stream: of a hundred million texts two have equal hashes once in four thousand times. Where
    rows are regrouped then, a false alarm only costs time. `is_gone` says that rows cannot be read again to
    regroup them.
    """

    def __init__(
        self,
        opened: Opened,
        queries_before: Callable[[int], Generator[tuple[int, pa.Table], None, None]],
        *,
        is_certain: bool,
        is_gone: bool = False,
    ) -> None:
        self._opened, self._queries_before = opened, queries_before
        self._is_certain, self._is_gone = is_certain, is_gone
        self._last: pa.Scalar | None = None
        self._seen = SeenKeys() if opened.is_stream else None  # None while ids rise

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
        new = ids[int(continues) :]
        if self._seen is None and not self._rise(new):
            self._seen = SeenKeys()
            with closing(self._queries_before(first_row)) as tables:
                last = None
                for _, before in tables if first_row else ():
                    if len(before):
                        earlier = grouped_rows(before, opened.columns).query_ids
                        self._seen.add(keys_of(earlier[int(earlier[0] == last) :]))
                        last = earlier[-1]
        repeated = [] if self._seen is None else self._seen.add(keys_of(new)).tolist()
        for place in (each + continues for each in repeated):
            row = first_row + int(offsets[place])
            if self._is_certain and not opened.is_stream:
                import pyarrow.compute as pc

                with closing(self._queries_before(row)) as tables:
                    earlier_ids = (grouped_rows(before, opened.columns).query_ids for _, before in tables)
                    if not any(pc.any(pc.equal(each, ids[place])).as_py() for each in earlier_ids):
                        continue
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
                instead = f"{ANEW}," if self._is_gone else "pass grouped=None"
                raise (InputError if self._is_gone else NotGroupedError)(
                    f"query {shown} returns at row {row + self._opened.first_row} after other queries, "
                    f'so rows are not grouped by "{columns.query}"; '
                    f"sort them by it, or {instead} to have them regrouped on disk"
                )
        except InputError as error:
            return error

    def _rise(self, ids: pa.Array) -> bool:
        """Whether each id is greater than the previous one."""
        if pa.types.is_integer(ids.type):
            numbers = array_of(ids)
            follow = self._last is None or not len(ids) or bool(self._last.as_py() < numbers[0])
            return follow and bool((numbers[1:] > numbers[:-1]).all())
        if not any(is_kind(ids.type) for is_kind in _ORDERED):
            return False
        import pyarrow.compute as pc

        if self._last is not None and len(ids) and not pc.less(self._last, ids[0]).as_py():
            return False
        return len(ids) < 2 or bool(pc.all(pc.less(ids[:-1], ids[1:])).as_py())


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
        while len(self._sorted) > 1:
            one, other = self._sorted[-2:]
            apart = bool(one[-1] < other[0] or other[-1] < one[0])
            if len(one) > 2 * len(other) or (len(one) >= _LONG and apart):  # long arrays stay apart then
                break
            merged = np.concatenate([one, other])
            del self._sorted[-2:], one, other  # frees memory for the sort, which needs half as much again
            merged.sort(kind="stable")  # which merges integers that are sorted already
            self._sorted.append(merged)
        return np.sort(order[found])


# ---- rows on disk ----

_Segment = tuple[int, list[int]]


class Spill:
    """Rows of each part, as Arrow record batches in one temporary file.

    If the system allows it, the file has no name, so that it disappears even if the process is killed.
    """

    def __init__(self, n_parts: int, expected: int) -> None:
        self._expected = expected
        # for each part, where batches begin in the file, and the bytes of each: rows, and the ids whose codes
        # these have, if any
        self._segments: list[list[_Segment]] = [[] for _ in range(n_parts)]
        self._schema = pa.schema([])
        self._coded: int | None = None  # the column that is a dictionary
        self._end = 0
        import tempfile  # here, as in `files`

        try:
            self._file = tempfile.TemporaryFile(prefix="fastndcg-", suffix=".arrow")  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise self._refusal(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError:
            if kind is None:
                raise

    def add(self, table: pa.Table, ids: pa.ChunkedArray, numbers: int | Int64) -> None:
        """Write rows to the parts of their ids, with their numbers, or the number of the first.

        A dictionary, of which there is at most one, holds these ids. It remains one, of which each part gets
        its own ids, so that the text of an id is written once for many rows.
        """
        n_parts, own = len(self._segments), list[pa.Array]()
        self._schema = table.schema.append(pa.field("", pa.int64()))
        self._coded = next((at for at, kind in enumerate(table.schema.types) if has_wide_codes(kind)), None)
        if self._coded is None:
            parts = np.concatenate([parts_of(chunk, n_parts) for chunk in ids.chunks])
        else:
            parts, codes, own = _coded_by_part(combine(table.column(self._coded)), n_parts)
            table = table.set_column(self._coded, table.column_names[self._coded], column_of(codes))
        order = np.argsort(parts, kind="stable")
        rows = column_of(order + numbers if isinstance(numbers, int) else numbers[order])
        table = pa.table([*table.take(column_of(order)).columns, rows], names=[*table.column_names, ""])
        starts = _starts(parts, n_parts)
        try:
            for part in np.flatnonzero(np.diff(starts)).tolist():
                ids_of_part = [pa.record_batch([own[part]], [""])] if own else []
                rows_of_part = table.slice(starts[part], starts[part + 1] - starts[part])
                for batch in rows_of_part.combine_chunks().to_batches():
                    pieces = [each.serialize() for each in (batch, *ids_of_part)]
                    for piece in pieces:
                        self._file.write(piece)
                    sizes = [piece.size for piece in pieces]
                    self._segments[part].append((self._end, sizes))
                    self._end += sum(sizes)
        except OSError as error:
            raise self._refusal(error) from None

    def part(self, part: int) -> tuple[pa.Table, Int64]:
        """Rows of a part in their original order, and their row numbers."""
        return self._joined(self._segments[part])

    def tables(self) -> Generator[tuple[Int64, pa.Table], None, None]:
        """All rows in about the tables in which they were added, after their row numbers."""
        segments = iter(sorted(chain.from_iterable(self._segments)))
        while some := list(islice(segments, len(self._segments))):
            table, rows = self._joined(some)
            yield rows, table

    def _joined(self, segments: list[_Segment]) -> tuple[pa.Table, Int64]:
        batches, stored = [], self._schema
        if (place := self._coded) is not None:
            coded = self._schema.field(place)
            stored = self._schema.set(place, coded.with_type(pa.int32()))
            of_ids = pa.schema([("", coded.type.value_type)])
        try:
            for start, sizes in segments:
                self._file.seek(start)
                rows, *ids = [pa.py_buffer(self._file.read(size)) for size in sizes]
                batch = pa.ipc.read_record_batch(rows, stored)
                if place is not None:
                    own = pa.ipc.read_record_batch(ids[0], of_ids).column(0)
                    ids_of_rows = pa.DictionaryArray.from_arrays(batch.column(place), own)
                    batch = batch.set_column(place, coded, ids_of_rows)
                batches.append(batch)
        except (OSError, pa.ArrowException) as error:
            import tempfile

            raise SourceError(
                f"a temporary file in {tempfile.gettempdir()} cannot be read back: {error}. "
                "Set TMPDIR to a folder on another disk."
            ) from None
        if not batches:
            return pa.table({}), np.empty(0, np.int64)
        table = pa.Table.from_batches(batches)
        rows = array_of(table.column(table.num_columns - 1))
        return table.select(range(table.num_columns - 1)), rows

    def _refusal(self, error: OSError) -> SourceError:
        import tempfile

        return SourceError(
            f"a temporary file in {tempfile.gettempdir()} cannot be written: {error.strerror or error}. "
            f"Rows are not grouped by query, so about {max(self._expected / 1e9, 0.1):.1f} GB of them are "
            "set aside there; free so much, set TMPDIR to a folder on another disk, "
            "or sort the rows by query."
        )


def _coded_by_part(
    ids: pa.DictionaryArray, n_parts: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32], list[pa.Array]]:
    """The part of each row, its code among the ids of its part, and these ids for each part."""
    of_ids, codes = parts_of(ids.dictionary, n_parts), array_of(ids.indices)
    order, starts = np.argsort(of_ids, kind="stable"), _starts(of_ids, n_parts)
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
    values = ids.dictionary.take(column_of(order))
    own = [values.slice(start, n) for start, n in zip(starts, np.diff(starts), strict=False)]
    return of_ids[codes], places[codes], own


def _starts(parts: npt.NDArray[Any], n_parts: int) -> Int64:
    """Where each part begins once it stands together, and the end of the last."""
    return np.append(0, np.cumsum(np.bincount(parts, minlength=n_parts)))


def parts_of(ids: pa.Array, n_parts: int) -> npt.NDArray[Any]:
    """The part of each row."""
    if pa.types.is_run_end_encoded(ids.type):
        starts, values = runs_of(pa.chunked_array([ids]))
        return np.repeat(parts_of(values.chunk(0), n_parts), np.diff(np.append(starts, len(ids))))
    if pa.types.is_dictionary(ids.type):
        of_rows: npt.NDArray[Any] = parts_of(ids.dictionary, n_parts)[array_of(ids.indices)]
        return of_rows
    parts = mix(keys_of(ids)) % np.uint64(n_parts)
    # NumPy sorts 16 bits by counting, in linear time
    return parts.astype(np.uint16 if n_parts <= 1 << 16 else np.int64)
