"""Detect queries whose rows are not contiguous in a stream, by hashes of ids, and group them on disk."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import offsets_from
from fastndcg.common.arrow_types import array_of, column_of, decode, is_list, plain
from fastndcg.common.hashes import UInt64, keys_of, mix
from fastndcg.errors import InputError, SourceError
from fastndcg.sources.dataset import ANEW
from fastndcg.sources.open_file import naming
from fastndcg.tables.arrow import grouped_rows
from fastndcg.tables.lists import several_rows_of_lists

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from fastndcg.common.arrays import Int64
    from fastndcg.sources.dataset import Dataset

_LONG = 1 << 16


class NotGroupedError(InputError):
    """The rows of a query are not contiguous."""


class Groups:
    """The queries of the tables so far, as hashes of 8 bytes.

    Equal hashes only suggest that a query returns: two of a hundred million ids collide once in four thousand
    times. Rows are then regrouped, which only costs time, unless `is_gone` says that they cannot be read
    again.
    """

    def __init__(self, dataset: Dataset, *, is_gone: bool = False) -> None:
        self._dataset, self._is_gone = dataset, is_gone
        self._last: pa.Scalar | None = None
        self._seen = SeenKeys()

    def of(self, table: pa.Table, first_row: int) -> tuple[pa.Array, Int64, bool]:
        """Return ids and offsets of the queries of a table, and whether the first began in the last table."""
        dataset = self._dataset
        with naming(dataset.paths):
            grouped = grouped_rows(table, dataset.columns, first_row + dataset.first_row)
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
        """Return the error for a query whose rows are not contiguous."""
        columns, name = self._dataset.columns, ids[0].as_py()
        shown = f'"{name}"' if isinstance(name, str) else str(name)
        try:
            with naming(self._dataset.paths):
                if columns.are_ids or is_list(self._dataset.types[columns.relevance]):
                    raise several_rows_of_lists(ids[0], [columns.relevance, columns.score])
                instead = f"{ANEW}," if self._is_gone else "pass grouped=None"
                raise (InputError if self._is_gone else NotGroupedError)(
                    f"query {shown} returns at row {row + self._dataset.first_row} after other queries, "
                    f'so rows are not grouped by "{columns.query}"; '
                    f"sort them by it, or {instead} to have them regrouped on disk"
                )
        except InputError as error:
            return error


class SeenKeys:
    """A set of hashes, as sorted arrays. Of overlapping ones, each is at least twice as long as the next."""

    def __init__(self) -> None:
        self._sorted: list[UInt64] = []

    def add(self, keys: UInt64) -> Int64:
        """Add keys. Returns the positions of keys that were in the set already, or are added twice."""
        order = np.argsort(keys, kind="stable")
        new = keys[order]
        is_known = np.zeros(len(new), np.bool_)
        is_known[1:] = new[1:] == new[:-1]
        for old in self._sorted:
            if len(new) and old[0] <= new[-1] and new[0] <= old[-1]:
                place = np.searchsorted(old, new)
                is_known |= old[np.minimum(place, len(old) - 1)] == new
        if len(new):
            self._sorted.append(new)
        while len(self._sorted) > 1:
            one, other = self._sorted[-2:]
            is_disjoint = bool(one[-1] < other[0] or other[-1] < one[0])
            if len(one) > 2 * len(other) or (len(one) >= _LONG and is_disjoint):
                break
            merged = np.concatenate([one, other])
            del self._sorted[-2:], one, other  # frees memory for the sort, which needs half as much again
            merged.sort(kind="stable")  # merges the two sorted runs
            self._sorted.append(merged)
        return np.sort(order[is_known])


# ---- rows on disk ----


class Spill:
    """Rows on disk, partitioned by query: a temporary file of Arrow streams, one per table and part.

    A part can be divided again with another `turn` of the hash. Where the system allows it, the file has no
    name and disappears even if the process is killed.
    """

    def __init__(self, n_parts: int, expected: int, turn: int = 0) -> None:
        import tempfile  # slow to import

        self._expected, self._turn = expected, turn  # bytes of all rows
        self._starts: list[list[int]] = [[] for _ in range(n_parts)]  # positions of the streams of each part
        self.rows = [0] * n_parts  # rows of each part
        with self._refusing("written"):
            self._file: Any = tempfile.TemporaryFile(prefix="fastndcg-", suffix=".arrow")  # noqa: SIM115
        self._sink = pa.output_stream(pa.PythonFile(self._file, "w"), buffer_size=1 << 20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self._sink, self._file):
            with suppress(OSError):
                file.close()

    def add(self, table: pa.Table, ids: pa.ChunkedArray, numbers: int | Int64) -> None:
        """Write rows to the parts of their ids. `numbers` are their row numbers, or that of the first."""
        parts = parts_of(ids, len(self.rows), self._turn)
        order = np.argsort(parts, kind="stable")
        starts = offsets_from(np.bincount(parts, minlength=len(self.rows)))
        rows = order + numbers if isinstance(numbers, int) else numbers[order]
        table = pa.table([*map(plain, table.columns)], names=table.column_names)
        table = table.unify_dictionaries().take(column_of(order)).append_column("", column_of(rows))
        for part in np.flatnonzero(np.diff(starts)).tolist():
            piece = table.slice(starts[part], starts[part + 1] - starts[part])
            # dictionaries of the values that occur, so that each string is written once
            kept = [decode(each).dictionary_encode() if _is_coded(each) else each for each in piece.columns]
            piece = pa.table(kept, names=table.column_names).combine_chunks()
            self.rows[part] += len(piece)
            with self._refusing("written"):
                self._starts[part].append(self._sink.tell())
                with pa.ipc.new_stream(self._sink, piece.schema) as writer:
                    writer.write_table(piece)

    def tables(self, part: int, count: int | None = None) -> Iterator[tuple[Int64, pa.Table]]:
        """Yield row numbers and rows of a part, in order: `count` of its pieces at a time, or all at once."""
        starts = iter(self._starts[part])
        while some := list(islice(starts, count)):
            with self._refusing("read back"):
                self._sink.flush()
                source, pieces = pa.PythonFile(self._file, "r"), []
                for start in some:
                    source.seek(start)
                    pieces.append(pa.ipc.open_stream(source).read_all())
            table = pa.concat_tables(pieces)
            last = table.num_columns - 1
            yield array_of(table.column(last)), table.select(range(last))

    @contextmanager
    def _refusing(self, action: str) -> Iterator[None]:
        """Word the errors of a full or broken disk."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            import tempfile

            reason = getattr(error, "strerror", None) or error
            raise SourceError(
                f"a temporary file in {tempfile.gettempdir()} cannot be {action}: {reason}. "
                f"Rows are not grouped by query, so about {max(self._expected / 1e9, 0.1):.1f} GB of them "
                "are set aside there; free so much, set TMPDIR to a folder on another disk, "
                "or sort the rows by query."
            ) from None


def _is_coded(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def parts_of(ids: pa.Array | pa.ChunkedArray, n_parts: int, turn: int = 0) -> npt.NDArray[Any]:
    """Return the part of each row; another turn divides ids differently."""
    if isinstance(ids, pa.ChunkedArray):
        return np.concatenate([parts_of(chunk, n_parts, turn) for chunk in ids.chunks])
    if pa.types.is_dictionary(ids.type):
        of_rows: npt.NDArray[Any] = parts_of(ids.dictionary, n_parts, turn)[array_of(ids.indices)]
        return of_rows
    keys = keys_of(plain(ids))
    for _ in range(turn + 1):
        keys = mix(keys)
    parts = keys % np.uint64(n_parts)
    # NumPy sorts 16 bits in linear time
    return parts.astype(np.uint16 if n_parts <= 1 << 16 else np.int64)
