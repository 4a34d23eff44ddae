"""Row groups of Parquet files to tables: whole columns by several threads, or a few rows at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import is_list, is_text
from fastndcg.common.progress import Progress, Task
from fastndcg.kernels.compile import worlds
from fastndcg.rankings.grouping import encode
from fastndcg.sources.messages import reading
from fastndcg.sources.values import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from fastndcg.sources.footers import Footer
    from fastndcg.sources.pages import Leaf
    from fastndcg.sources.paths import File, Stamp

Item = TypeVar("Item")
Result = TypeVar("Result")

# row groups read by one task: enough of them for all threads, but long, since what is read at once needs no
# joining (a column of one file read whole costs 20 to 25 % less than in pieces)
_FEWEST_ROWS, _MOST_ROWS = 1 << 20, 1 << 26
# compressed bytes that pyarrow reads ahead of a column of a row group that is too large to be read at once
_BUFFER = 1 << 20


class Part(NamedTuple):
    """A file and its footer."""

    file: File
    footer: Footer
    stamp: Stamp
    groups: range  # those that are read
    leaves: Mapping[str, Leaf] = MappingProxyType({})  # wanted columns that are read from their pages

    def has(self, name: str) -> bool:
        return name in self.footer.schema.names or name in self.file.partition

    def type_of(self, name: str) -> pa.DataType | None:
        """Type of a column; None for a partition key, which is as wide as its values."""
        return self.footer.schema.field(name).type if name in self.footer.schema.names else None


class Wanted(NamedTuple):
    """Files that fit together, and how to read their columns."""

    parts: list[Part]
    types: dict[str, pa.DataType]  # of the columns wanted
    encoded: frozenset[str]  # columns read as dictionaries though they are none
    threads: int
    runs: frozenset[str] = frozenset()  # columns read as runs of one value
    # columns that pyarrow reads until reading their pages pays, and the drivers that it stands for
    plain: Mapping[str, str] = MappingProxyType({})


def part_of(file: File) -> Part:
    """A file and its footer, whose numbers agree with one another."""
    from fastndcg.sources.footers import read_footer

    with reading(file.path):
        stamp = file.stamp()  # before the footer: a file that changes in between is found out later
        with file.filesystem.open_input_file(file.path) as source:
            footer = read_footer(source)
    return Part(file, footer, stamp, range(len(footer.rows)))


class Span(NamedTuple):
    """Row groups of one file that are read together."""

    part: Part
    groups: range
    rows: int


def read_table(wanted: Wanted, progress: Progress = None) -> pa.Table:
    """The wanted columns of all files, in order."""
    names, threads = list(wanted.types), wanted.threads
    total = sum(part.footer.n_rows for part in wanted.parts)
    share = total // threads
    spans = _spans_within(wanted, share * len(names))
    if len(spans) >= 2 * threads:
        tasks = [(wanted, span, names) for span in spans]
    else:  # columns are separate tasks if spans would leave threads idle; texts take as long as the others
        shorter = _spans_within(wanted, share)
        texts = {
            name for part in wanted.parts for name in part.leaves if part.leaves[name].stored == np.uint8
        }
        tasks = [(wanted, span, [name]) for name in names for span in (shorter if name in texts else spans)]
    chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
    done = 0
    with Task("Reading", "rows", progress) as task:
        task.advance(0, total)
        for (_, span, columns), arrays in zip(tasks, in_order(read_span, tasks, threads), strict=True):
            for name, column in zip(columns, arrays, strict=True):
                chunks[name].extend(column.chunks)
            done += span.rows * len(columns)
            task.advance(done // len(names), total)
    read_types = {name: read_type(wanted, name) for name in names}
    return pa.table({name: pa.chunked_array(chunks[name], read_types[name]) for name in names})


def _spans_within(wanted: Wanted, most: int) -> list[Span]:
    return list(spans_of(wanted, min(max(most, _FEWEST_ROWS), _MOST_ROWS)))


def spans_of(wanted: Wanted, most: int) -> Iterator[Span]:
    """Consecutive row groups of a file with at most `most` rows in all; a single row group may have more."""
    for part in wanted.parts:
        start, rows = part.groups.start, 0
        for group in part.groups:
            size = part.footer.rows[group]
            if rows and rows + size > most:
                yield Span(part, range(start, group), rows)
                start, rows = group, 0
            rows += size
        if rows:
            yield Span(part, range(start, part.groups.stop), rows)


def read_span(task: tuple[Wanted, Span, list[str]]) -> list[pa.ChunkedArray]:
    """The named columns of a span."""
    wanted, span, names = task
    (table,) = read_steps(wanted, span, names, span.rows)  # to its end, where the file is looked at again
    return list(table.columns)


def read_steps(wanted: Wanted, span: Span, names: list[str], most: int) -> Generator[pa.Table, None, None]:
    """The named columns of a span, in tables of limited rows."""
    part = span.part
    with _open(part) as source:
        paged = {name: _FromPages(wanted, span, source, name, most) for name in names if name in part.leaves}
        by_pyarrow = [name for name in names if name not in paged and part.type_of(name) is not None]
        others = _ByPyarrow(wanted, span, source, by_pyarrow, most)

        def step(rows: int) -> pa.Table:
            table = others.read(rows) if by_pyarrow else pa.table({})
            columns = {}
            for name in names:
                if name in paged:
                    column = paged[name].read(rows)
                elif name in by_pyarrow:
                    column = table[name]
                else:
                    column = _partition_column(part.file.partition[name], rows, wanted.types[name])
                kind = read_type(wanted, name)
                columns[name] = column if column.type == kind else _cast(column, kind)
            return pa.table(columns)

        for done in range(0, span.rows, most):
            yield step(min(most, span.rows - done))  # which no name keeps while the next one is read


class _ByPyarrow:
    """Columns of a span as pyarrow reads them, in steps of any number of rows."""

    def __init__(
        self, wanted: Wanted, span: Span, source: pa.NativeFile, names: list[str], most: int
    ) -> None:
        self._tables = self._decode(wanted, span, source, names, most)
        self._left: pa.Table | None = None
        self._ways = [wanted.plain[name] for name in names if name in wanted.plain]

    def read(self, rows: int) -> pa.Table:
        tables = [] if self._left is None else [self._left]
        size = rows * len(self._ways)
        while sum(map(len, tables)) < rows:
            # of numbers and a text as the text, which takes longer
            with worlds.counted(min(self._ways), size) if self._ways else nullcontext():
                table = next(self._tables, None)
            if table is None:
                raise pa.ArrowInvalid("a column has fewer rows than its footer says")
            tables.append(table)
        table = pa.concat_tables(tables)
        self._left = table.slice(rows) if len(table) > rows else None
        return table.slice(0, rows)

    @staticmethod
    def _check(table: pa.Table) -> pa.Table:
        """Check that texts are UTF-8 and codes in their dictionaries, which pyarrow does not."""
        for name, column in zip(table.column_names, table.columns, strict=True):
            kind = (
                column.type.value_type
                if is_list(column.type) or pa.types.is_dictionary(column.type)
                else column.type
            )
            for chunk in column.chunks if is_text(kind) else ():
                try:
                    chunk.validate(full=True)
                except pa.ArrowInvalid as error:
                    raise pa.ArrowInvalid(f'column "{name}": {first_line(error)}') from None
        return table

    @staticmethod
    def _decode(
        wanted: Wanted, span: Span, source: pa.NativeFile, names: list[str], most: int
    ) -> Iterator[pa.Table]:
        import pyarrow.parquet as pq

        buffer = 0 if span.rows <= most else _BUFFER

        def open_file(encoded: Collection[str]) -> pq.ParquetFile:
            return pq.ParquetFile(
                source,
                metadata=span.part.footer.metadata,
                read_dictionary=encoded,
                pre_buffer=not (span.part.file.is_local or buffer),
                buffer_size=buffer,
                page_checksum_verification=True,  # where the writer left checksums
            )

        # of other encodings pyarrow makes no dictionary
        encoded = {name for name in names if name in wanted.encoded and span.part.footer.is_coded(name)}
        file, groups, grown = open_file(encoded), list(span.groups), set[str]()
        if not buffer:
            yield _ByPyarrow._check(file.read_row_groups(groups, columns=names, use_threads=False))
            return
        for group in groups:
            done = 0
            while True:
                read = 0
                for batch in file.iter_batches(most, row_groups=[group], columns=names, use_threads=False):
                    rows = batch.slice(min(max(done - read, 0), len(batch)))
                    read += len(batch)
                    if not len(rows):
                        continue
                    done = read
                    yield _ByPyarrow._check(_encode(pa.Table.from_batches([rows]), grown))
                    # pyarrow's dictionary has all ids of the group so far: one for each row took 3.3 us
                    long = {name for name in encoded - grown if len(batch[name].dictionary) > len(batch)}
                    if long:
                        grown |= long
                        file = open_file(encoded - grown)
                        break
                else:
                    break


def _encode(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """The same table with these columns of texts as dictionaries."""
    for name in names:
        column = pa.chunked_array([encode(chunk) for chunk in table[name].chunks])
        table = table.set_column(table.column_names.index(name), name, column)
    return table


class _FromPages:
    """A column of a span from its pages; by pyarrow if they contain something that `pages` does not read."""

    def __init__(self, wanted: Wanted, span: Span, source: pa.NativeFile, name: str, most: int) -> None:
        from fastndcg.sources.pages import Runs, Texts, Values

        self._name, self._most = name, most
        at = source, span.part.footer, span.groups, span.part.leaves[name]
        reader = Runs if name in wanted.runs else Texts if at[3].stored == np.uint8 else Values
        self._pages = reader(*at)
        self._pyarrow = _ByPyarrow(wanted, span, source, [name], most)
        self._done: int | None = 0  # rows read from pages; None once pyarrow reads

    def read(self, rows: int) -> pa.ChunkedArray:
        from fastndcg.sources.pages import NotReadError

        if self._done is not None:
            try:
                column = pa.chunked_array([self._pages.read(rows)])
                self._done += rows
                return column
            except NotReadError:
                for done in range(0, self._done, self._most):
                    self._pyarrow.read(min(self._most, self._done - done))
                self._done = None
        return self._pyarrow.read(rows)[self._name]


@contextmanager
def _open(part: Part) -> Iterator[pa.NativeFile]:
    """A file that is about to be read. Raises `SourceError` where it is no longer the file that was found."""
    # not memory-mapped: it spared 3 to 7 %, and a file cut short meanwhile would kill the process
    with (
        reading(part.file.path),
        part.file.unchanged(part.stamp),
        part.file.filesystem.open_input_file(part.file.path) as source,
    ):
        yield source


def read_type(wanted: Wanted, name: str) -> pa.DataType:
    kind = wanted.types[name]
    if name in wanted.runs:
        return pa.run_end_encoded(pa.int32(), kind)
    return pa.dictionary(pa.int32(), kind) if name in wanted.encoded else kind


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        if not pa.types.is_run_end_encoded(column.type):
            return pc.run_end_encode(column.cast(kind.value_type), run_end_type=kind.run_end_type)
        chunks = [
            pa.RunEndEncodedArray.from_arrays(chunk.run_ends, chunk.values.cast(kind.value_type))
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, kind)
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        return column.cast(kind.value_type).dictionary_encode()
    if pa.types.is_dictionary(kind):
        chunks = [
            pa.DictionaryArray.from_arrays(
                chunk.indices.cast(kind.index_type), chunk.dictionary.cast(kind.value_type)
            )
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, kind)
    return column.cast(kind)


def _partition_column(value: str | None, rows: int, kind: pa.DataType) -> pa.ChunkedArray:
    known = [] if value is None else [int(value) if pa.types.is_integer(kind) else value]
    indices = pa.nulls(rows, pa.int32()) if value is None else pa.array(np.zeros(rows, np.int32))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array(known, kind))])


def in_order(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """`map` on threads of its own: pyarrow's pool belongs to the whole process."""
    if threads == 1 or len(items) < 2:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(min(threads, len(items)), "fastndcg-parquet")
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
