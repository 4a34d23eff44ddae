"""Queries whose rows are not contiguous: found in the tables of a stream by keys of their ids, of 8 bytes
each, and their rows put together on disk.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, column_of, combine, has_wide_codes, is_list
from fastndcg.common.hashes import UInt64, keys_of, mix
from fastndcg.errors import InputError, SourceError
from fastndcg.sources.dataset import ANEW
from fastndcg.sources.open_file import naming
from fastndcg.sources.streams import NotGroupedError
from fastndcg.tables.arrow import grouped_rows, several_rows_of_lists
from fastndcg.tables.grouping import runs_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Self

    from fastndcg.common.arrays import Int64
    from fastndcg.sources.dataset import Opened

_LONG = 1 << 16


class Groups:
    """The queries of the tables so far, of which a key of 8 bytes is kept.

    Equal hashes only suggest that a query returns: of a hundred million texts two have equal hashes once in
    four thousand times. Rows are then regrouped, which costs time, unless `is_gone` says that they cannot be
    read again.
    """

    def __init__(self, opened: Opened, *, is_gone: bool = False) -> None:
        self._opened, self._is_gone = opened, is_gone
        self._last: pa.Scalar | None = None
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
        returned = self._seen.add(keys_of(ids[int(continues) :])) + continues
        if len(returned):
            raise self.refuse(ids[returned[0] :], first_row + int(offsets[returned[0]]))
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


class Spill:
    """Rows of each part, as batches of Arrow in a temporary file, and in another the ids whose codes these
    have, if any, so that the text of an id is written once for many rows.

    If the system allows it, the files have no names, so that they disappear even if the process is killed.
    """

    def __init__(self, n_parts: int, expected: int) -> None:
        self._expected = expected
        self._batches: list[list[int]] = [[] for _ in range(n_parts)]  # the numbers of each part's
        self._n_batches = 0
        self._coded: int | None = None  # the column that is a dictionary
        self._files: list[Any] = []
        self._sinks: list[pa.NativeFile] = []
        self._writers: list[pa.RecordBatchFileWriter] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sink in self._sinks:  # which close their files, after what they have not written yet
            with suppress(OSError):
                sink.close()
        for file in self._files:
            with suppress(OSError):
                file.close()

    def add(self, table: pa.Table, ids: pa.ChunkedArray, numbers: int | Int64) -> None:
        """Write rows to the parts of their ids, with their numbers, or the number of the first.

        A dictionary, of which there is at most one, holds these ids. It remains one, of which each part gets
        its own ids.
        """
        n_parts, own = len(self._batches), list[pa.Array]()
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
            if not self._writers:
                schemas = [table.schema, *(pa.schema([("", each.type)]) for each in own[:1])]
                self._writers += map(self._open, schemas)
            for part in np.flatnonzero(np.diff(starts)).tolist():
                of_part = table.slice(starts[part], starts[part + 1] - starts[part]).combine_chunks()
                batches = [*of_part.to_batches(), *([pa.record_batch([own[part]], [""])] if own else [])]
                for writer, batch in zip(self._writers, batches, strict=True):
                    writer.write_batch(batch)
                self._batches[part].append(self._n_batches)
                self._n_batches += 1
        except OSError as error:
            raise self._refusal(error) from None

    def _open(self, schema: pa.Schema) -> pa.RecordBatchFileWriter:
        import tempfile  # here, as in `files`

        file = tempfile.TemporaryFile(prefix="fastndcg-", suffix=".arrow")  # noqa: SIM115 - closed by __exit__
        self._files.append(file)
        self._sinks.append(pa.output_stream(pa.PythonFile(file, "w"), buffer_size=1 << 20))
        return pa.ipc.new_file(self._sinks[-1], schema)

    def part(self, part: int) -> tuple[pa.Table, Int64]:
        """Rows of a part in their original order, and their row numbers."""
        return self._joined(self._batches[part])

    def tables(self) -> Generator[tuple[Int64, pa.Table], None, None]:
        """All rows in about the tables in which they were added, after their row numbers."""
        batches = iter(sorted(chain.from_iterable(self._batches)))
        while some := list(islice(batches, len(self._batches))):
            table, rows = self._joined(some)
            yield rows, table

    @cached_property
    def _readers(self) -> list[pa.RecordBatchFileReader]:
        try:
            for writer, sink in zip(self._writers, self._sinks, strict=True):
                writer.close()
                sink.flush()
        except OSError as error:
            raise self._refusal(error) from None
        return [pa.ipc.open_file(pa.PythonFile(file, "r")) for file in self._files]

    def _joined(self, numbers: list[int]) -> tuple[pa.Table, Int64]:
        if not numbers:
            return pa.table({}), np.empty(0, np.int64)
        batches = []
        try:
            for number in numbers:
                batch, *ids = (reader.get_batch(number) for reader in self._readers)
                if self._coded is not None:
                    name = batch.schema.names[self._coded]
                    coded = pa.DictionaryArray.from_arrays(batch.column(self._coded), ids[0].column(0))
                    batch = batch.set_column(self._coded, name, coded)
                batches.append(batch)
        except (OSError, pa.ArrowException) as error:
            import tempfile

            raise SourceError(
                f"a temporary file in {tempfile.gettempdir()} cannot be read back: {error}. "
                "Set TMPDIR to a folder on another disk."
            ) from None
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
