"""Read files as a stream of `Rankings`: decoded ahead, cut between queries, regrouped if necessary."""

from __future__ import annotations

import re
from abc import abstractmethod
from contextlib import ExitStack, closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, column_of, combine, is_list, is_number
from fastndcg.common.progress import Progress, advance
from fastndcg.errors import InputError, InputTypeError, SourceError
from fastndcg.rankings.grouping import SECRET, Grouped, text_of
from fastndcg.rankings.oddities import Oddities, warn_of_oddities
from fastndcg.sources import parquet
from fastndcg.sources.ahead import Reader, decoded_ahead
from fastndcg.sources.arrow import (
    Files,
    checked_ids,
    grouped_rows,
    plain_table,
    rankings_from_table,
    runs_of,
    several_rows_of_lists,
)
from fastndcg.sources.columns import Roles, names_for, with_roles
from fastndcg.sources.footers import BYTES, PLACES, VALUES
from fastndcg.sources.streams import NotGroupedError, RankingsStream

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.columns import Columns
    from fastndcg.typing import Path as PathLike
    from fastndcg.typing import RoleKeywords

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

_MEMORY = 128 << 20
_LEAST_MEMORY = 1 << 20
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
# bytes of a row that is scored, beside its columns: runs of ids, and what Arrow's allocator keeps
_SCORING = 24
# rows of a cut query for which each table has room, to have them put before its own instead of being copied
# behind them
_ROOM = 1 << 14
_LOOK = 1 << 16  # rows that usually show whether rows are grouped by query
_WHOLE = 48  # the same where all are read at once: numbers of their queries, and copies in the new order
_GROUPING = 64  # the same where rows are sorted by query: codes, orders and a copy in the new order


@with_roles
def scan_parquet(
    path: PathLike | Iterable[PathLike],
    *,
    grouped: bool | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> ParquetStream:
    """Open Parquet of any size as a stream of `Rankings`, to evaluate it in bounded memory.

    Files and row groups are read in order, and a query that is split between them is joined. `evaluate`
    returns the same bits in the same order as for `read_parquet`.

    Parameters
    ----------
    path, query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
    nan, rank, ascending, unjudged, grades
        As in `read_parquet`.
    grouped : bool, optional
        True: the rows of each query are contiguous; otherwise an error is raised. None: the stream finds out.
        Rows that are not contiguous are then regrouped in a temporary file (in the folder of `TMPDIR`), which
        is as large as the decoded columns and is removed at the end, even if the process is killed.
    memory : int or str, optional
        Memory for rows at a time, in bytes or as in "512 MB"; default 128 MiB. Each query must fit. The
        results need memory in addition: 8 bytes for each measure and query, and the ids.
    threads : int, optional
        Number of threads that decode ahead. Default: all that pyarrow has, up to four. The iterating thread
        is one of them: it decodes instead of waiting.
    progress : callable or bool, optional
        By default, terminals and notebooks show the progress of a long `evaluate`. False shows nothing. A
        function is called instead, as `progress(rows_done, rows_total)`, from the iterating thread.

    Returns
    -------
    ParquetStream
        Iterating it yields `Rankings` of whole queries, in order of first appearance. If rows are not
        grouped, it first reads all query ids, and then yields queries in another order; `evaluate` restores
        the order.

    Raises
    ------
    SourceError
        As in `read_parquet`; while iterating also for a file that changes or disappears, and for a full disk.
    ColumnError, InputError, InputTypeError
        As in `read_parquet`; with `grouped=True` also `InputError` for a query whose rows are not contiguous.

    See Also
    --------
    read_parquet : read all rows at once.
    evaluate : compute measures of the stream.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet as pq
    >>> from fastndcg import evaluate
    >>> table = pa.table({"qid": ["a", "b", "a"], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/predictions.parquet")
    ...     scores = evaluate(scan_parquet(folder), "nDCG@10")
    >>> scores.queries["qid"].to_pylist(), scores["nDCG@10"]
    (['a', 'b'], array([1., 0.]))
    """
    workers = threads_ahead(threads)
    dataset = parquet.open_parquet(path, workers).choose(Roles.of(roles, "scan_parquet"))
    return ParquetStream(dataset, grouped=grouped, memory=memory, threads=workers, progress=progress)


def threads_ahead(threads: int | None) -> int:
    """The number of threads that decode ahead."""
    return min(int(pa.cpu_count()), 4) if threads is None else parquet.threads_of(threads)


class StreamOptions(TypedDict, total=False):
    """Options of `FileStream`."""

    threads: Required[int]
    grouped: bool | None
    memory: int | str | None
    progress: Progress


class FileStream(RankingsStream):
    """A stream of rankings from files of any format.

    Attributes
    ----------
    columns : Columns
        Which column plays which role.
    n_rows : int
        Number of rows of all files.
    nbytes : int
        Approximate memory of all columns, in bytes.
    grouped : bool or None
    """

    n_rows: int
    _per_row: float  # about how many bytes a decoded row takes
    _types: dict[str, pa.DataType]  # of the columns, as they are read
    _encoded: frozenset[str] = frozenset()  # columns read as dictionaries though they are none
    _ends_at: int | None = None  # the number of rows, where it is known before they are read
    _first_row = 0  # what messages call the first row
    _decoders: int  # threads that decode the tables of `_readers`

    def __init__(
        self,
        paths: list[PathLike],
        columns: Columns,
        *,
        threads: int,
        grouped: bool | None = None,
        memory: int | str | None = None,
        progress: Progress = None,
    ) -> None:
        if grouped is not None and not isinstance(grouped, bool):
            raise InputTypeError(f"grouped={grouped!r} is not known; wanted True, or None to find out")
        self.grouped = grouped or None
        self._memory = bytes_of(memory)
        self.columns, self._paths, self._threads, self._progress = columns, paths, threads, progress
        # scoring with several threads on cores that also decode was a third slower than with one thread
        self._scoring_threads = max(1, pa.cpu_count() - threads)
        self._known_grouped = False
        self._files: Files | None = None  # which may hold the same documents

    @abstractmethod
    def _readers(self, names: list[str], most: int) -> Iterator[Reader]:
        """Readers of the named columns of all files, in order, in tables of about `most` rows."""

    @property
    def nbytes(self) -> int:
        return int(self._per_row * self.n_rows)

    def __iter__(self) -> Iterator[Rankings]:
        if self._stands_grouped():
            yield from self._in_order()
        else:
            for rankings, _ in self._regroup():
                yield rankings

    def _nothing(self) -> Rankings:
        """Rankings without queries, with the columns of this stream."""
        return self._rankings(pa.schema(list(self._types.items())).empty_table())

    # ---- rows grouped by query ----

    def _in_order(self) -> Generator[Rankings, None, None]:
        """Yield all rankings, in order. Raises `NotGroupedError` at the first query with scattered rows."""
        self._tell(0)
        oddities = Oddities(names_for(self.columns))
        with closing(self._tables(list(self._types))) as tables:
            parts = self._whole_lists(tables) if self._is_lists else self._whole_queries(tables)
            yield from map(oddities.add, parts)
        oddities.warn()
        self._known_grouped = True

    @property
    def _is_lists(self) -> bool:
        return is_list(self._types[self.columns.relevance])

    def _whole_lists(self, tables: Iterator[tuple[int, pa.Table]]) -> Iterator[Rankings]:
        groups = None if self.columns.query is None else _Groups(self)
        for first_row, table in tables:
            if len(table):
                if groups is not None:
                    ids, _, continues = groups.of(table, first_row)
                    if continues:
                        raise self._refuse(ids, first_row)
                yield self._rankings(table, first_row)
            self._tell(first_row + len(table))

    def _whole_queries(self, tables: Iterator[tuple[int, pa.Table]]) -> Iterator[Rankings]:
        """Yield the queries that each table completes; the last waits, as the next may continue it."""
        groups = _Groups(self)
        begun: list[pa.Table] = []
        begun_id, done = pa.nulls(0), 0
        for first_row, table in tables:
            if not len(table):
                continue
            ids, offsets, continues = groups.of(table, first_row)
            if begun:
                # scored together with the queries of this table: scoring it alone took as long as copying two
                # columns
                offsets = np.append(0, offsets[continues:] + len(begun[0]))
                ids = ids if continues else pa.concat_arrays([begun_id, ids])
            done = first_row + len(table)
            rows = parquet.join_tables(begun[0], table) if begun else table
            end = len(ids) if done == self._ends_at else len(ids) - 1
            if end:
                queries = Grouped(ids[:end], offsets[: end + 1])
                yield self._rankings(rows.slice(0, int(offsets[end])), done - len(rows), queries)
            begun, begun_id = [rows.slice(int(offsets[end]))], ids[end:]
            if end:
                begun = [_copy(table) for table in begun]  # or its slice would keep the whole table in memory
            del table, rows  # frees them before the next table is awaited
            self._tell(done)
        if begun_id:
            queries = Grouped(begun_id, np.array([0, len(begun[0])]))
            yield self._rankings(begun[0], done - len(begun[0]), queries)

    def _stands_grouped(self) -> bool:
        """Whether rows are grouped. Reads only the query ids, unless an earlier pass has found out."""
        if not (self.grouped or self._known_grouped):
            groups = _Groups(self)
            try:
                with closing(self._tables([str(self.columns.query)])) as tables:
                    for first_row, table in tables:
                        if len(table):
                            groups.of(table, first_row)
            except NotGroupedError:
                return False
            self._known_grouped = True
        return True

    # ---- rows in any order ----

    def _regroup(self) -> Generator[tuple[Rankings, Int64], None, None]:
        """All rankings and the first row of each query, in the order of the queries' hashes."""
        self._tell(0)
        spill, n_parts = self._set_aside()
        done, oddities = self.n_rows, Oddities(names_for(self.columns))
        with spill:
            if not done:
                yield self._nothing(), np.empty(0, np.int64)
            for part in range(n_parts):
                table, rows = spill.part(part)
                if not len(table):
                    continue
                table = self._with_categories(table)
                with parquet.naming(self._paths):
                    grouped = grouped_rows(table, self.columns, rows + self._first_row)
                yield oddities.add(self._part(table, rows, grouped)), rows[grouped.first_rows]
                done += len(table)
                self._tell(done // 2)
        oddities.warn()

    def _part(self, table: pa.Table, rows: Int64, grouped: Grouped) -> Rankings:
        """Rankings of rows that were set aside. A fault is that of the first faulty rows of the data."""
        try:
            return self._rankings(table, rows, grouped)
        except InputError:
            with closing(self._tables(list(self._types))) as tables:
                for first_row, beginning in tables:
                    if len(beginning):
                        self._rankings(beginning, first_row)
            raise  # what concerns rows that are far apart

    def _set_aside(self) -> tuple[_Spill, int]:
        """Write all rows to disk, in parts by hash of the query that fit into memory; returns these."""
        n_parts, done = self._parts_of(self.n_rows), 0
        with ExitStack() as stack:
            spill = stack.enter_context(_Spill(n_parts, int(self._per_row + 8) * self.n_rows))
            with closing(self._tables(list(self._types))) as tables:
                for first_row, table in tables:
                    if len(table):
                        with parquet.naming(self._paths):
                            ids = checked_ids(table, self.columns, first_row + self._first_row)
                        part_of_rows = np.concatenate([_part_of(chunk, n_parts) for chunk in ids.chunks])
                        spill.add(plain_table(table), part_of_rows, first_row)
                    done += len(table)
                    self._tell(done // 2)
            if self._parts_of(done) <= 2 * n_parts:  # twice as many as were expected still fit
                stack.pop_all()
                return spill, n_parts
        return self._set_aside()  # with the number of rows that is known by now

    def _parts_of(self, n_rows: int) -> int:
        return 1 + int((self._per_row + _GROUPING) * n_rows // (self._memory // 2))

    def _with_categories(self, table: pa.Table) -> pa.Table:
        """Convert kept columns that are dictionaries in the file back to dictionaries."""
        return table

    # ---- reading ----

    def _tables(self, names: list[str]) -> Generator[tuple[int, pa.Table], None, None]:
        """Tables of the named columns, in order, and the number of the first row of each."""
        in_flight = self._decoders + 4
        most = max(1, int(self._memory / (self._per_row * in_flight + _SCORING)))
        readers, done = self._readers(names, most), 0

        def number(table: pa.Table) -> tuple[int, pa.Table]:
            nonlocal done
            done += len(table)
            return done - len(table), table

        with closing(decoded_ahead(readers, self._decoders)) as tables:
            yield from map(number, tables)  # a loop would keep each table while the next is awaited
        self.n_rows = done

    def _rankings(
        self, table: pa.Table, numbers: int | Int64 = 0, grouped: Grouped | None = None
    ) -> Rankings:
        numbers = numbers + self._first_row
        with parquet.naming(self._paths):
            return rankings_from_table(
                table,
                self.columns,
                to_decode=self._encoded,
                numbers=numbers,
                grouped=grouped,
                files=self._files,
            )

    def _tell(self, done: int) -> None:
        if callable(self._progress):
            self._progress(done, self.n_rows)
        else:
            advance(done, self.n_rows)

    def _refuse(self, ids: pa.Array, row: int) -> InputError:
        """The error for a query whose rows are not contiguous."""
        name = ids[0].as_py()
        shown = f'"{name}"' if isinstance(name, str) else str(name)
        try:
            with parquet.naming(self._paths):
                if self._is_lists:
                    raise several_rows_of_lists(ids[0], self.columns)
                raise NotGroupedError(
                    f"query {shown} returns at row {row + self._first_row} after other queries, "
                    f'so rows are not grouped by "{self.columns.query}"; '
                    "sort them by it, or pass grouped=None to have them regrouped on disk"
                )
        except InputError as error:
            return error

    def _occurs_before(self, ids: pa.Array, row: int) -> bool:
        """Whether a query has rows before this row. Equal hashes only suggest it, so ids are compared."""
        import pyarrow.compute as pc

        with closing(self._queries_before(row)) as tables:
            return any(pc.any(pc.equal(plain_table(table).column(0), ids[0])).as_py() for _, table in tables)

    def _queries_before(self, row: int) -> Generator[tuple[int, pa.Table], None, None]:
        """Tables of the query ids before this row, and the number of the first row of each."""
        with closing(self._tables([str(self.columns.query)])) as tables:
            for first_row, table in tables:
                if first_row >= row:
                    return
                yield first_row, table.slice(0, row - first_row)


class ParquetStream(FileStream):
    """The result of `scan_parquet`.

    Attributes
    ----------
    columns : Columns
        Which column plays which role.
    n_rows : int
        Number of rows of all files, from their footers.
    nbytes : int
        Approximate memory of all columns, in bytes.
    grouped : bool or None
    """

    def __init__(self, dataset: parquet.Dataset, **options: Unpack[StreamOptions]) -> None:
        super().__init__(dataset.paths, dataset.columns, **options)
        self._dataset, self._decoders, self._encoded = dataset, self._threads, dataset.encoded
        self.n_rows = self._ends_at = dataset.n_rows
        self._types = {name: parquet.read_type(dataset, name) for name in dataset.types}
        self._known_grouped = self._is_lists
        with parquet.naming(self._paths):
            self._per_row = _bytes_of_a_row(dataset)
            self._files = parquet.files_of(dataset)

    def __repr__(self) -> str:
        files = len(self._dataset.parts)
        return f"ParquetStream({files} file{'s' if files > 1 else ''}, {self.n_rows:,} rows)"

    def _readers(self, names: list[str], most: int) -> Iterator[Reader]:
        spans = parquet.spans_of(self._dataset, most)
        return (parquet.read_steps(self._dataset, span, names, most, _ROOM) for span in spans)

    def _in_order(self) -> Generator[Rankings, None, None]:
        name = self.columns.query
        if not (name is None or self.grouped or self._known_grouped):
            # the first rows usually show that rows are not grouped, before threads decode others in vain
            for tables in islice(self._readers([name], _LOOK), 1):
                with closing(tables):
                    _Groups(self).of(next(tables), 0)
        yield from super()._in_order()

    def _regroup(self) -> Generator[tuple[Rankings, Int64], None, None]:
        if 0 < self._bytes_of_a_row_of_all() * self.n_rows <= self._memory:
            self._tell(0)
            yield self._whole()
        else:
            yield from super()._regroup()

    def _bytes_of_a_row_of_all(self) -> float:
        """Approximate memory for each row to bring all rows into query order at once, in bytes."""
        of_query, *others = (self._types[name] for name in self.columns.names)
        is_short = is_number(of_query) or pa.types.is_dictionary(of_query)
        if len(others) > 2 or not (is_short and all(map(is_number, others))):
            return self._per_row + _WHOLE
        # the number of its query twice, and its columns three times: as read, halfway, and in order
        return 8.0 + 3 * sum(float(kind.bit_width) / 8 for kind in others)

    def _whole(self) -> tuple[Rankings, Int64]:
        """All rankings at once, if memory holds all rows."""
        table = parquet.read_table(self._dataset, self._progress)
        with parquet.naming(self._paths):
            grouped = grouped_rows(table, self.columns)
        if grouped.codes is not None and not self.columns.keep:  # which are shorter than the ids
            ids = pa.DictionaryArray.from_arrays(column_of(grouped.codes), combine(grouped.query_ids))
            table = table.set_column(table.column_names.index(self.columns.query), self.columns.query, ids)
        return warn_of_oddities(
            self._rankings(table, 0, grouped), names_for(self.columns)
        ), grouped.first_rows

    def _with_categories(self, table: pa.Table) -> pa.Table:
        """Convert kept columns that are dictionaries in the file back to dictionaries."""
        for place, name in enumerate(table.column_names):
            kind = self._dataset.types[name]
            if pa.types.is_dictionary(kind) and name in self.columns.keep:
                table = table.set_column(place, name, table[name].dictionary_encode().cast(kind))
        return table


def _copy(table: pa.Table) -> pa.Table:
    return pa.table([_copied_column(column) for column in table.columns], names=table.column_names)


def _copied_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_run_end_encoded(kind):  # so small that it may be kept whole
        return column
    if is_number(kind) and not column.null_count:  # to take rows took half a millisecond beside other threads
        return pa.chunked_array([pa.array(array_of(column).copy(), kind)])
    return column.take(pa.array(np.arange(len(column))))


def bytes_of(memory: int | str | None) -> int:
    """A number of bytes, from a number or a text such as "2GB".

    >>> bytes_of("512 MB"), bytes_of("1.5g")
    (536870912, 1610612736)
    """
    number = float(_MEMORY)
    if isinstance(memory, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", memory, re.IGNORECASE)
        if found is None:
            raise InputError(f'memory="{memory}" is not an amount of memory; wanted bytes, or as in "512 MB"')
        number = float(found[1]) * (1 << _UNITS[found[2].lower()])
    elif memory is not None:
        if isinstance(memory, bool) or not isinstance(memory, int | float | np.number):
            raise InputTypeError(
                f'memory={memory!r} is not an amount of memory; wanted bytes, or as in "512 MB"'
            )
        number = float(memory)
    if not _LEAST_MEMORY <= number < 1 << 60:
        raise InputError(
            f"memory={memory!r} is too {'little' if number < _LEAST_MEMORY else 'much'}; "
            'wanted at least "1 MB"'
        )
    return int(number)


# ---- decoding ----


def _bytes_of_a_row(dataset: parquet.Dataset) -> float:
    """Approximate size of a decoded row in bytes, estimated from the first row groups."""
    total, rows = 0.0, 0
    for part in dataset.parts[:8]:
        rows += sum(part.footer.rows[:8])
        for name, kind in dataset.types.items():
            for chunk in part.footer.chunks[:8, part.footer.places_of([name])].reshape(-1, PLACES):
                total += _bytes_of_a_chunk(kind, chunk)
    return total / rows + 4 if rows else 4.0


def _bytes_of_a_chunk(kind: pa.DataType, chunk: Int64) -> float:
    if is_list(kind):
        kind = kind.value_type
    values = float(chunk[VALUES])
    try:
        return max(values * float(kind.bit_width) / 8, 1.0)
    except ValueError:  # strings: their own bytes and an offset, or the code of a dictionary
        return values * 8 + float(chunk[BYTES])


# ---- which queries were seen ----


class _Groups:
    """Find queries whose rows are not contiguous.

    While ids rise from query to query, no query can return, so only the last id is stored: for five million
    queries with text ids, this saves a hundred megabytes. When ids stop rising, the earlier ids are read
    again.
    """

    def __init__(self, stream: FileStream, *, rising: bool = True) -> None:
        self._stream = stream
        self._last: pa.Scalar | None = None
        self._rising = rising
        self._seen = _Seen()

    def of(self, table: pa.Table, first_row: int) -> tuple[pa.Array, Int64, bool]:
        """Ids and offsets of the queries of a table, and whether the first continues the table before."""
        stream = self._stream
        with parquet.naming(stream._paths):
            grouped = grouped_rows(table, stream.columns, first_row + stream._first_row)
        ids, offsets = grouped.query_ids, grouped.offsets
        if grouped.rows is not None:
            row = int(np.argmax(np.diff(grouped.rows) != 1)) + 1
            query = int(np.searchsorted(offsets, row, side="right")) - 1
            raise stream._refuse(ids[query:], first_row + int(grouped.rows[row]))
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
            # of equal hashes: where rows are regrouped, a false alarm only costs time
            if not (stream.grouped or stream._is_lists) or stream._occurs_before(ids[place:], row):
                raise stream._refuse(ids[place:], row)
        self._last = ids[-1]
        return ids, offsets, continues

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
        groups = _Groups(self._stream, rising=False)
        with closing(self._stream._queries_before(row)) as tables:
            for first_row, table in tables:
                if len(table):
                    groups.of(table, first_row)
        self._seen = groups._seen


_ORDERED = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal)
_LONG = 1 << 16


class _Seen:
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


_NO_SECRET = np.uint64(0)  # of parts, whose order a user may see


def keys_of(ids: pa.Array, secret: np.uint64 = _NO_SECRET) -> UInt64:
    """A key of 64 bits for each id: the integer itself, or a hash of the text, which depends on a secret.

    >>> keys_of(pa.array(["a", "b", "a"]))[[0, 2]] == keys_of(pa.array(["a"]))
    array([ True,  True])
    """
    kind = ids.type
    if pa.types.is_dictionary(kind):
        keys: UInt64 = keys_of(ids.dictionary, secret)[array_of(ids.indices)]
        return keys
    if pa.types.is_integer(kind):
        numbers = array_of(ids)
        wide: npt.NDArray[Any] = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
        return wide.view(np.uint64)
    if pa.types.is_temporal(kind):
        ids = ids.cast(pa.int32()) if kind.bit_width == 32 else ids
        return keys_of(ids.cast(pa.int64()))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        ids = ids if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else ids.cast(pa.string())
    return _hash(ids.cast(pa.large_binary()), secret)


def _hash(texts: pa.Array, secret: np.uint64) -> UInt64:
    """Hashes of texts, eight bytes of all of them at a time."""
    offsets, data = text_of(texts)
    padded = np.concatenate([data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8)])
    words = np.ndarray(len(padded) - 7, np.dtype("<u8"), padded.data, strides=(1,))
    starts, left = offsets[:-1] - offsets[0], np.diff(offsets)
    hashes = _mix(left.astype(np.uint64) ^ secret)
    rows = np.arange(len(texts))
    while len(rows):
        unread = left[rows] > 0
        if not unread.all():
            rows = rows[unread]
        short = np.minimum(left[rows], 8)
        word = words[starts[rows]] & _FIRST_BYTES[short]
        hashes[rows] = _mix(hashes[rows] ^ word) + np.uint64(0x9E3779B97F4A7C15)
        starts[rows] += 8
        left[rows] -= 8
    return hashes


_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def _mix(values: UInt64) -> UInt64:
    """Hash each number, so that each bit depends on all bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _part_of(ids: pa.Array, n_parts: int) -> npt.NDArray[Any]:
    """The part of each row."""
    if pa.types.is_run_end_encoded(ids.type):
        starts, values = runs_of(pa.chunked_array([ids]))
        return np.repeat(_part_of(values.chunk(0), n_parts), np.diff(np.append(starts, len(ids))))
    if pa.types.is_dictionary(ids.type):
        of_rows: npt.NDArray[Any] = _part_of(ids.dictionary, n_parts)[array_of(ids.indices)]
        return of_rows
    parts = _mix(keys_of(ids)) % np.uint64(n_parts)
    # NumPy sorts 16 bits by counting, in linear time
    return parts.astype(np.uint16 if n_parts <= 1 << 16 else np.int64)


# ---- rows on disk ----


class _Spill:
    """Rows of each part, as Arrow record batches in one temporary file.

    If the system allows it, the file has no name, so that it disappears even if the process is killed.
    """

    def __init__(self, n_parts: int, expected: int) -> None:
        self._expected = expected
        self._segments: list[list[tuple[int, int]]] = [[] for _ in range(n_parts)]
        self._schema = pa.schema([])
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

    def add(self, table: pa.Table, parts: npt.NDArray[Any], first_row: int) -> None:
        order = np.argsort(parts, kind="stable")
        rows = pa.array(order + first_row)
        table = pa.table([*table.take(pa.array(order)).columns, rows], names=[*table.column_names, ""])
        self._schema = table.schema
        ends = np.cumsum(np.bincount(parts, minlength=len(self._segments)))
        try:
            for part, (start, end) in enumerate(zip(np.append(0, ends), ends, strict=False)):
                if start == end:
                    continue
                for batch in table.slice(int(start), int(end - start)).combine_chunks().to_batches():
                    data = batch.serialize()
                    self._file.write(data)
                    self._segments[part].append((self._end, data.size))
                    self._end += data.size
        except OSError as error:
            raise self._refusal(error) from None

    def part(self, part: int) -> tuple[pa.Table, Int64]:
        """Rows of a part in their original order, and their row numbers."""
        batches = []
        try:
            for start, size in self._segments[part]:
                self._file.seek(start)
                data = pa.py_buffer(self._file.read(size))
                batches.append(pa.ipc.read_record_batch(data, self._schema))
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
