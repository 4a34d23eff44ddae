"""Parquet to `Rankings`: a file, a folder, a glob, hive partitions, a list of them, or a URI."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, is_list, is_number
from fastndcg.common.progress import Progress, Task
from fastndcg.common.threads import check_threads
from fastndcg.errors import ColumnError, FastndcgError, InputTypeError, SourceError
from fastndcg.kernels.compile import worlds
from fastndcg.rankings.grouping import encode
from fastndcg.rankings.oddities import warn_of_oddities
from fastndcg.sources.arrow import Files, rankings_from_table
from fastndcg.sources.columns import Columns, Roles, find_columns, id_to_check, names_for, with_roles
from fastndcg.sources.messages import DAMAGE, reading, unreadable
from fastndcg.sources.values import first_line

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.footers import Footer
    from fastndcg.sources.pages import Leaf
    from fastndcg.sources.paths import File, Stamp
    from fastndcg.typing import Path as PathLike
    from fastndcg.typing import RoleKeywords

Item = TypeVar("Item")
Result = TypeVar("Result")

# mean rows of a row group from which pages are read here: Python takes 0.1 ms for a column of a group
LEAST_ROWS_OF_A_GROUP = 1 << 18
# row groups read by one task: enough of them for all threads, but long, since what is read at once needs no
# joining (a column of one file read whole costs 20 to 25 % less than in pieces)
_FEWEST_ROWS, _MOST_ROWS = 1 << 20, 1 << 26
# compressed bytes that pyarrow reads ahead of a column of a row group that is too large to be read at once
_BUFFER = 1 << 20
# a row of ids takes less than half a byte only where most repeat the one before: ids in any order take 10 to
# 20 bits
_BYTES_IN_RUNS, _MOST_ROWS_IN_RUNS = 0.5, np.iinfo(np.int32).max


@with_roles
def read_parquet(
    path: PathLike | Iterable[PathLike],
    *,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> Rankings:
    """Read rankings from Parquet. Only the needed columns are read.

    Parameters
    ----------
    path : str, path, or several of them
        A file; a folder, searched with its subfolders; a pattern with `*`, `?`, `[...]` or `**`; or a URI, as
        in `s3://bucket/predictions`. Folders named `key=value` (hive partitions) give a column `key`. Files
        are read in the order of their names, or of the list. In folders, names that begin with `.` or `_` are
        ignored.
    query, relevance, score, doc_id, is_judged : str, optional
        Names of columns. By default, query, relevance and score are found by their usual names. Long form has
        a row for each document, in any order. List-column form has a row for each query, with lists in the
        columns of relevance, score, doc_id and is_judged; without a query column, the row number is the id.
    keep : str or sequence of str
        Query-level columns or partition keys to carry into `queries`. Each must have one value within a
        query.
    weight : str, optional
        Query-level column with the weight of each query in the mean.
    intents : str, optional
        Column with a list for each document: its grade for intent 0, 1, ... of its query, null for an intent
        without judgment.
    propensity : str, optional
        Column with the probability that a document's relevance was observed.
    nan : "refuse" or "last"
        "last" ranks documents whose score is NaN or null below all others.
    rank : str, optional
        Column of ranks in place of scores: 1 is the best, and documents of one rank are tied.
    ascending : bool
        True: the lowest score is the best, as for distances.
    unjudged : "refuse" or "null"
        "null": a document whose grade is null or NaN is unjudged, as if its `is_judged` were false.
    grades : mapping, optional
        The grade of each word, if the column of grades holds words: `{"perfect": 2, "fair": 1, "bad": 0}`.
    threads : int, optional
        Number of threads that read and decode. Default: all that pyarrow has. The result does not depend on
        it.
    progress : callable or bool, optional
        By default, terminals and notebooks show the progress of long calls. False shows nothing. A function
        is called instead, as `progress(rows_done, rows_total)`, from the calling thread.

    Returns
    -------
    Rankings
        Dtypes are those of the file. A file without rows gives no queries.

    Raises
    ------
    SourceError
        A path that does not exist, is not Parquet, or cannot be read; files with columns that do not match.
    ColumnError
        A column is missing, or several columns could play a role.
    InputError, InputTypeError
        All that `Rankings.from_arrow` refuses. Each message names the path.

    See Also
    --------
    scan_parquet : read files that are larger than memory.
    read_csv : read the same columns from CSV.
    evaluate : compute measures of the rankings.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet as pq
    >>> table = pa.table({"qid": ["a", "b", "a"], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/predictions.parquet")
    ...     rankings = read_parquet(folder)
    >>> rankings.queries["qid"].to_pylist(), rankings.offsets
    (['a', 'b'], array([0, 2, 3]))
    """
    return read_dataset(open_parquet(path, threads).choose(Roles.of(roles, "read_parquet")), progress)


def open_parquet(path: PathLike | Iterable[PathLike], threads: int | None = None) -> Opened:
    """The files of a path: listed once, and the footer of each read once. Raises as `read_parquet` does."""
    # here: pyarrow's file systems bring ssl, a third of the import
    from fastndcg.sources.paths import find_files

    workers, paths = threads_of(threads), as_list(path)
    return open_files(paths, find_files(paths), workers)


def open_files(paths: list[PathLike], files: list[File], threads: int | None) -> Opened:
    workers = threads_of(threads)
    return Opened(paths, list(_in_order(part_of, files, workers)), workers)


def read_dataset(dataset: Dataset, progress: Progress = None) -> Rankings:
    """Rankings of all files. Raises as `read_parquet` does."""
    table = read_table(dataset, progress)
    with naming(dataset.paths), Task("Finding the rows of each query", progress=progress is None):
        rankings = rankings_from_table(
            table, dataset.columns, to_decode=dataset.encoded, files=files_of(dataset)
        )
    return warn_of_oddities(rankings, names_for(dataset.columns))


def files_of(dataset: Dataset) -> Files | None:
    """Several files, if they have a column of document ids that is not read anyway."""
    names = [name for name in dataset.parts[0].schema.names if all(part.has(name) for part in dataset.parts)]
    doc_id = id_to_check(names, dataset.columns) if len(dataset.parts) > 1 else None
    if doc_id is None:
        return None
    parts = dataset.parts
    kind = _without_views(_common_type(parts, doc_id))
    of_ids = Dataset(dataset.paths, parts, {doc_id: kind}, frozenset(), dataset.threads)
    ends = np.cumsum([part.footer.n_rows for part in parts]).tolist()
    return Files(ends, doc_id, partial(_rows_of, of_ids, doc_id))


def _rows_of(dataset: Dataset, name: str, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    """Ascending rows of a column; only row groups that have some of them are read."""
    tasks, taken, end = [], [], 0
    for span in spans_of(dataset, 1):
        start, end = end, end + span.rows
        first, stop = np.searchsorted(rows, (start, end))
        if first < stop:
            tasks.append((dataset, span, [name]))
            taken.append(pa.array(rows[first:stop] - start))
    columns = _in_order(read_span, tasks, dataset.threads)
    found = [column.take(places) for (column,), places in zip(columns, taken, strict=True)]
    return pa.chunked_array([chunk for each in found for chunk in each.chunks], dataset.types[name])


def read_columns(part: Part, names: Sequence[str], encoded: Sequence[str] = ()) -> pa.Table:
    """Columns of one file, as `read_parquet` reads them; `encoded` ones that are texts as dictionaries."""
    with reading(part.file.path):
        part.footer.check(names)
        types = {name: _without_views(part.schema.field(name).type) for name in names}
        texts = frozenset(name for name in encoded if _is_text(types[name]))
        return read_table(Dataset([part.file.path], [part], types, texts, threads_of(None)))


def as_list(path: PathLike | Iterable[PathLike]) -> list[PathLike]:
    if isinstance(path, str | os.PathLike):
        return [path]
    if isinstance(path, bytes | bytearray) or not isinstance(path, Iterable) or hasattr(path, "read"):
        raise InputTypeError(
            f"path is a {type(path).__name__}; wanted a path or a list of them. "
            "For an open file or bytes, give pyarrow.parquet.read_table(...) to Rankings.from_arrow."
        )
    return list(path)


# ---- footers and types ----


class Part(NamedTuple):
    """A file and its footer."""

    file: File
    footer: Footer
    stamp: Stamp
    leaves: Mapping[str, Leaf] = MappingProxyType({})  # wanted columns that are read from their pages

    @property
    def schema(self) -> pa.Schema:
        return self.footer.schema

    def has(self, name: str) -> bool:
        return name in self.schema.names or name in self.file.partition

    def type_of(self, name: str) -> pa.DataType | None:
        """Type of a column; None for a partition key, which is as wide as its values."""
        return self.schema.field(name).type if name in self.schema.names else None


class Opened(NamedTuple):
    """The files of a path, before the columns to read are known."""

    paths: list[PathLike]
    parts: list[Part]
    threads: int

    @property
    def first(self) -> str:
        return self.parts[0].file.path

    @property
    def schema(self) -> pa.Schema:
        return self.parts[0].schema

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def table(self, names: Sequence[str], *_: object) -> pa.Table:
        """The named columns of all files, in order; the first as dictionaries if it is text."""
        tables: list[pa.Table] = []
        for part in self.parts:
            path = part.file.path
            if absent := [name for name in names if name not in part.schema.names]:
                raise ColumnError(
                    f"{path} has no column {absent[0]}, which other files of {self.paths[0]} have"
                )
            tables.append(read_columns(part, names, names[:1]))
            for before, field in zip(tables[0].schema, tables[-1].schema, strict=True):
                if before.type != field.type:
                    raise SourceError(
                        f"column {field.name} is {field.type} in {path} and {before.type} in the files "
                        f"of {self.paths[0]} before it; write all of them alike"
                    )
        return pa.concat_tables(tables)

    @property
    def keys(self) -> list[str]:
        """Columns that occur only in the names of folders."""
        first = self.parts[0]
        return [key for key in first.file.partition if key not in first.schema.names]

    def choose(self, roles: Roles, *, with_doc_id: bool = False) -> Dataset:
        """The files with the columns of roles. Raises as `find_columns`, and for files that do not match."""
        first, keys = self.parts[0], self.keys

        def holds_lists(name: str) -> bool:
            kind = first.type_of(name)
            return kind is not None and is_list(kind)

        with naming(self.paths):
            columns = find_columns(
                [*first.schema.names, *keys],
                roles,
                is_list=holds_lists,
                second_choice=keys,
                with_doc_id=with_doc_id,
            )
            return _fit(self, columns)


class Dataset(NamedTuple):
    """Files that fit together, and how to read their columns."""

    paths: list[PathLike]  # as they were given, for messages
    parts: list[Part]
    types: dict[str, pa.DataType]  # of the columns wanted
    encoded: frozenset[str]  # columns read as dictionaries though they are none
    threads: int
    columns: Columns = Columns()
    runs: frozenset[str] = frozenset()  # columns read as runs of one value
    # columns that pyarrow reads until reading their pages pays, and the drivers that it stands for
    plain: Mapping[str, str] = MappingProxyType({})

    @property
    def n_rows(self) -> int:
        return sum(part.footer.n_rows for part in self.parts)

    def has_text_pages(self, name: str) -> bool:
        """Whether a column of texts is read from its pages."""
        return any(name in part.leaves and part.leaves[name].stored == np.uint8 for part in self.parts)

    def read(self, _: int | None = None) -> Rankings:
        """Rankings of all files, by as many threads as opened them. Raises as `read_parquet` does."""
        return read_dataset(self)


def part_of(file: File) -> Part:
    """A file and its footer, whose numbers agree with one another."""
    from fastndcg.sources.footers import read_footer

    with reading(file.path):
        stamp = file.stamp()  # before the footer: a file that changes in between is found out later
        with file.filesystem.open_input_file(file.path) as source:
            return Part(file, read_footer(source), stamp)


def _fit(opened: Opened, columns: Columns) -> Dataset:
    """One type for each column in all files. Raises `SourceError` where there is none."""
    parts = opened.parts
    for part in parts:
        with reading(part.file.path):
            part.footer.check(columns.names)
    types = {name: _without_views(_common_type(parts, name)) for name in columns.names}
    # a query id stands on each of its documents: a dictionary decodes five times as fast as the strings
    # themselves
    words = () if columns.grades is None else (columns.relevance,)
    repeated = () if is_list(types[columns.relevance]) else (columns.query, *columns.keep, *words)
    encoded = frozenset(name for name in repeated if name is not None and _is_text(types[name]))
    partitions = {name for name in columns.names if any(part.type_of(name) is None for part in parts)}
    return _with_leaves(Dataset(opened.paths, parts, types, encoded | partitions, opened.threads, columns))


def _with_leaves(dataset: Dataset) -> Dataset:
    """The same files, where it is known which columns are read from their pages, now or once that pays."""
    columns, n_groups = dataset.columns, sum(len(part.footer.rows) for part in dataset.parts)
    is_short = dataset.n_rows < LEAST_ROWS_OF_A_GROUP * max(n_groups, 1)
    # from afar pyarrow asks for all columns at once
    is_local = any(part.file.is_local for part in dataset.parts)
    if is_list(dataset.types[columns.relevance]) or is_short or not is_local:
        return dataset
    from fastndcg.sources.pages import leaves_of, way_of

    names = [name for name in columns.names if name not in dataset.encoded]
    query = columns.query
    texts = [] if query is None or query in names else [query]
    parts = [
        part._replace(leaves=leaves_of(part.footer, names, texts)) if part.file.is_local else part
        for part in dataset.parts
    ]
    runs = frozenset({query} if query is not None and _stands_in_runs(parts, query) else ())
    ways = {name: way_of(leaf) for part in parts for name, leaf in part.leaves.items()}
    by_pyarrow = set(runs) if texts else set()  # of texts in runs it makes dictionaries sooner
    plain: dict[str, str] = {}
    for way in dict.fromkeys(way for name, way in ways.items() if name not in by_pyarrow):
        values = [name for name in ways if ways[name] == way and name not in runs - {*names}]
        if not worlds.pays(way, dataset.n_rows * len(values)):
            plain |= dict.fromkeys(values, way)
    by_pyarrow |= plain.keys()
    parts = [
        part._replace(leaves={name: leaf for name, leaf in part.leaves.items() if name not in by_pyarrow})
        for part in parts
    ]
    return dataset._replace(parts=parts, runs=runs - by_pyarrow, plain=plain)


def _stands_in_runs(parts: list[Part], name: str) -> bool:
    """Whether a column of integers takes so few bytes that most rows must repeat the one before."""
    from fastndcg.sources.footers import STORED

    size, rows = 0, 0
    for part in parts:
        if name not in part.leaves or part.footer.n_rows > _MOST_ROWS_IN_RUNS:
            return False
        size += int(part.footer.chunks[:, part.leaves[name].place, STORED].sum())
        rows += part.footer.n_rows
    return size <= _BYTES_IN_RUNS * rows


def _common_type(parts: list[Part], name: str) -> pa.DataType:
    for part in parts:
        if not part.has(name):
            raise SourceError(
                f'column "{name}" is in {parts[0].file.path} but not in {part.file.path}; '
                "wanted it in all files. Name only files of one schema."
            )
    common, first = None, parts[0]
    for part in parts:
        kind = part.type_of(name)
        if kind is None:
            continue
        joined = kind if common is None else _joined_type(common, kind)
        if joined is None:
            raise SourceError(
                f'column "{name}" is {common} in {first.file.path} and {kind} in {part.file.path}; '
                "wanted types that fit together without loss. Write the files with one type."
            )
        if common is None or joined != common:
            common, first = joined, part
    if common is None:
        return _partition_type(part.file.partition[name] for part in parts)
    if any(part.type_of(name) is None for part in parts):
        raise SourceError(
            f'column "{name}" stands in some files and in the folder names of others; write it in one way'
        )
    return common


def _partition_type(values: Iterable[str | None]) -> pa.DataType:
    def is_integer(text: str) -> bool:
        return text.removeprefix("-").isdecimal() and str(int(text)) == text and -(2**63) <= int(text) < 2**63

    return pa.int64() if all(value is None or is_integer(value) for value in values) else pa.string()


def _joined_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both without loss, if there is one.

    >>> _joined_type(pa.int8(), pa.int32()), _joined_type(pa.int64(), pa.float64())
    (DataType(int32), None)
    """
    types = pa.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_dictionary(one) or types.is_dictionary(other):
        return _joined_type(
            *(kind.value_type if types.is_dictionary(kind) else kind for kind in (one, other))
        )
    if _is_text(one) and _is_text(other):
        return pa.large_string()
    if all(
        types.is_binary(kind) or types.is_large_binary(kind) for kind in map(_without_views, (one, other))
    ):
        return pa.large_binary()
    if is_list(one) and is_list(other):
        values = _joined_type(one.value_type, other.value_type)
        return None if values is None else pa.large_list(values)
    kinds = [array_of(pa.array([], kind)).dtype for kind in (one, other) if is_number(kind)]
    if len(kinds) < 2:
        return None
    joined = np.promote_types(*kinds)
    exact = all(
        kind.kind == joined.kind or kind.itemsize < 8 for kind in kinds
    )  # no float holds all 64-bit integers
    return pa.from_numpy_dtype(joined) if exact else None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The type as which values are held: not every function of pyarrow knows views.

    >>> _without_views(pa.list_(pa.binary_view()))
    LargeListType(large_list<item: large_binary>)
    """
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    if (
        is_list(kind)
        and not types.is_fixed_size_list(kind)
        and _without_views(kind.value_type) != kind.value_type
    ):
        return pa.large_list(_without_views(kind.value_type))
    return kind


# ---- reading ----


class Span(NamedTuple):
    """Row groups of one file that are read together."""

    part: Part
    groups: range
    rows: int


def read_table(dataset: Dataset, progress: Progress = None) -> pa.Table:
    """The wanted columns of all files, in order."""
    names, threads = list(dataset.types), dataset.threads
    share = dataset.n_rows // threads
    spans = _spans_within(dataset, share * len(names))
    if len(spans) >= 2 * threads:
        tasks = [(dataset, span, names) for span in spans]
    else:  # columns are separate tasks if spans would leave threads idle; texts take as long as the others
        shorter = _spans_within(dataset, share)
        tasks = [
            (dataset, span, [name])
            for name in names
            for span in (shorter if dataset.has_text_pages(name) else spans)
        ]
    chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
    done, total = 0, dataset.n_rows
    with Task("Reading", "rows", progress) as task:
        task.advance(0, total)
        for (_, span, columns), arrays in zip(tasks, _in_order(read_span, tasks, threads), strict=True):
            for name, column in zip(columns, arrays, strict=True):
                chunks[name].extend(column.chunks)
            done += span.rows * len(columns)
            task.advance(done // len(names), total)
    read_types = {name: read_type(dataset, name) for name in names}
    return pa.table({name: pa.chunked_array(chunks[name], read_types[name]) for name in names})


def _spans_within(dataset: Dataset, most: int) -> list[Span]:
    return list(spans_of(dataset, min(max(most, _FEWEST_ROWS), _MOST_ROWS)))


def spans_of(dataset: Dataset, most: int) -> Iterator[Span]:
    """Consecutive row groups of a file with at most `most` rows in all; a single row group may have more."""
    for part in dataset.parts:
        start, rows = 0, 0
        for group, size in enumerate(part.footer.rows):
            if rows and rows + size > most:
                yield Span(part, range(start, group), rows)
                start, rows = group, 0
            rows += size
        if rows:
            yield Span(part, range(start, len(part.footer.rows)), rows)


def read_span(task: tuple[Dataset, Span, list[str]]) -> list[pa.ChunkedArray]:
    """The named columns of a span."""
    dataset, span, names = task
    (table,) = read_steps(dataset, span, names, span.rows)  # to its end, where the file is looked at again
    return list(table.columns)


def read_steps(
    dataset: Dataset, span: Span, names: list[str], most: int, room: int = 0
) -> Generator[pa.Table, None, None]:
    """The named columns of a span, in tables of limited rows; from pages with room for rows before."""
    part = span.part
    with _open(part) as source:
        paged = {
            name: _FromPages(dataset, span, source, name, most, room) for name in names if name in part.leaves
        }
        by_pyarrow = [name for name in names if name not in paged and part.type_of(name) is not None]
        others = _ByPyarrow(dataset, span, source, by_pyarrow, most)

        def step(rows: int) -> pa.Table:
            table = others.read(rows) if by_pyarrow else pa.table({})
            fields, columns = [], []
            for name in names:
                before = 0
                if name in paged:
                    column, before = paged[name].read(rows)
                elif name in by_pyarrow:
                    column = table[name]
                else:
                    column = _partition_column(part.file.partition[name], rows, dataset.types[name])
                kind = read_type(dataset, name)
                if column.type != kind:
                    column, before = _cast(column, kind), 0
                fields.append(pa.field(name, kind, metadata={_ROWS_BEFORE: str(before)}))
                columns.append(column)
            return pa.table(columns, schema=pa.schema(fields))

        for done in range(0, span.rows, most):
            yield step(min(most, span.rows - done))  # which no name keeps while the next one is read


def join_tables(begun: pa.Table, table: pa.Table) -> pa.Table:
    """Rows of two tables. Columns of the second with room take in those of the first, without a copy."""
    columns = []
    for field, before, column in zip(table.schema, begun.columns, table.columns, strict=True):
        room = int((field.metadata or {}).get(_ROWS_BEFORE, 0))
        if len(before) <= room and not before.null_count:
            columns.append(pa.chunked_array([_put_before(before, column.chunk(0))]))
        else:
            columns.append(pa.chunked_array([*before.chunks, *column.chunks], field.type))
    return pa.table(columns, names=table.column_names)


def _put_before(begun: pa.ChunkedArray, rows: pa.Array) -> pa.Array:
    _, buffer = rows.buffers()
    start, dtype = rows.offset - len(begun), rows.type.to_pandas_dtype()
    np.frombuffer(buffer, dtype)[start : rows.offset] = array_of(begun)
    return pa.Array.from_buffers(rows.type, len(begun) + len(rows), [None, buffer], offset=start)


_ROWS_BEFORE = b"fastndcg.rows_before"  # of a field: rows for which its one chunk has room before it


class _ByPyarrow:
    """Columns of a span as pyarrow reads them, in steps of any number of rows."""

    def __init__(
        self, dataset: Dataset, span: Span, source: pa.NativeFile, names: list[str], most: int
    ) -> None:
        self._tables = self._decode(dataset, span, source, names, most)
        self._left: pa.Table | None = None
        self._ways = [dataset.plain[name] for name in names if name in dataset.plain]

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
            for chunk in column.chunks if _is_text(kind) else ():
                try:
                    chunk.validate(full=True)
                except pa.ArrowInvalid as error:
                    raise pa.ArrowInvalid(f'column "{name}": {first_line(error)}') from None
        return table

    @staticmethod
    def _decode(
        dataset: Dataset, span: Span, source: pa.NativeFile, names: list[str], most: int
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
        encoded = {name for name in names if name in dataset.encoded and span.part.footer.is_coded(name)}
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

    def __init__(
        self, dataset: Dataset, span: Span, source: pa.NativeFile, name: str, most: int, room: int
    ) -> None:
        from fastndcg.sources.pages import Runs, Texts, Values

        self._name, self._most = name, most
        at = source, span.part.footer, span.groups, span.part.leaves[name]
        is_runs, is_text = name in dataset.runs, at[3].stored == np.uint8
        self._room = 0 if is_runs or is_text else room
        self._pages: Runs | Values = Runs(*at) if is_runs else Texts(*at) if is_text else Values(*at, room)
        self._pyarrow = _ByPyarrow(dataset, span, source, [name], most)
        self._done: int | None = 0  # rows read from pages; None once pyarrow reads

    def read(self, rows: int) -> tuple[pa.ChunkedArray, int]:
        """The next rows, and for how many more there is room before them."""
        from fastndcg.sources.pages import NotReadError

        if self._done is not None:
            try:
                column = pa.chunked_array([self._pages.read(rows)])
                self._done += rows
                return column, self._room
            except NotReadError:
                for done in range(0, self._done, self._most):
                    self._pyarrow.read(min(self._most, self._done - done))
                self._done = None
        return self._pyarrow.read(rows)[self._name], 0


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


def read_type(dataset: Dataset, name: str) -> pa.DataType:
    kind = dataset.types[name]
    if name in dataset.runs:
        return pa.run_end_encoded(pa.int32(), kind)
    return pa.dictionary(pa.int32(), kind) if name in dataset.encoded else kind


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


# ---- threads and messages ----


def threads_of(threads: int | None) -> int:
    """How many threads read; all that pyarrow has where nothing is asked for."""
    return check_threads(threads) or int(pa.cpu_count())


def _in_order(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[Result]:
    """`map` on threads of its own: pyarrow's pool belongs to the whole process."""
    if threads == 1 or len(items) < 2:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(min(threads, len(items)), "fastndcg-parquet")
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)


def names_of(paths: Sequence[PathLike]) -> str:
    """The first of several paths, and how many more there are, as messages have them."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{os.fspath(paths[0])}{more}"


@contextmanager
def naming(paths: list[PathLike]) -> Iterator[None]:
    """Put the path before messages about its content."""
    try:
        yield
    except SourceError:
        raise
    except (FastndcgError, *DAMAGE) as error:
        name = names_of(paths)
        if not isinstance(error, FastndcgError):
            raise unreadable(name, error) from None
        raise error.within(f"{name}: ") from None
