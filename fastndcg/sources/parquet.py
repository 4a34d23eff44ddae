"""Read Parquet through pyarrow.

None of 60,000 damaged files crashed pyarrow. It does not check that strings are UTF-8 and that codes lie
within their dictionary, so this module does.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, is_list, is_number, is_text, without_views
from fastndcg.common.progress import Task
from fastndcg.common.threads import in_threads
from fastndcg.errors import SourceError
from fastndcg.sources.dataset import Dataset, common_type
from fastndcg.sources.open_file import Format, reading
from fastndcg.tables.values import first_line, integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow.parquet as pq

    from fastndcg.common.progress import Progress
    from fastndcg.sources.open_file import File, Stamp
    from fastndcg.sources.prefetch import Reader
    from fastndcg.tables.roles import Columns
    from fastndcg.typing import Path as PathLike

# rows of the row groups that one task reads: few enough to occupy all threads, but many, because reading a
# column at once takes 20 to 25 % less time than joining pieces
_FEWEST_ROWS, _MOST_ROWS = 1 << 20, 1 << 26
# compressed bytes that pyarrow buffers per column, for row groups that are too large to read at once
_BUFFER = 1 << 20
_CODED = {"PLAIN", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "RLE_DICTIONARY"}
# most bytes of a dictionary, its assumed compression ratio, and bytes of a code
_DICTIONARY, _UNPACKED, _CODE = 1 << 20, 16, 3


class _Unread:
    """A file of unknown size that is never read: pyarrow opens columns of a row group to read zero rows.

    That raises an error if the metadata of a chunk contradicts the schema, whereas asking for the metadata
    crashes the process, with 27 of 30,000 damaged files.
    """

    closed = False

    def seek(self, *_: int) -> None:
        pass

    def tell(self) -> int:
        return 1 << 62

    def close(self) -> None:
        pass


class Part(NamedTuple):
    """A file, its footer, and the row groups to read."""

    file: File
    stamp: Stamp
    metadata: pq.FileMetaData
    schema: pa.Schema
    rows: list[int]  # per row group
    groups: range

    @property
    def n_rows(self) -> int:
        return sum(self.rows[group] for group in self.groups)

    def chunks(self, name: str, groups: Sequence[int]) -> list[pq.ColumnChunkMetaData]:
        """Return the chunks of a column, which may be nested, in these row groups. Raises `SourceError`."""
        import pyarrow.parquet as pq

        metadata, schema = self.metadata, self.metadata.schema
        paths = [f"{schema.column(place).path}." for place in range(metadata.num_columns)]
        places = [place for place, path in enumerate(paths) if path.startswith(f"{name}.")]
        with reading(self.file.path):
            unread = pa.PythonFile(_Unread(), "r")
            file = pq.ParquetFile(unread, metadata=metadata, buffer_size=1, pre_buffer=False)
            for group in groups:
                next(file.reader.iter_batches(0, [group], places), None)
        return [metadata.row_group(group).column(place) for group in groups for place in places]

    @contextmanager
    def open(self) -> Iterator[pa.NativeFile]:
        """Open the file. Raises `SourceError` if it is damaged or changes before the end of the block."""
        # not memory-mapped: that saved 3 to 7 %, but truncating a mapped file kills the process
        with (
            reading(self.file.path),
            self.file.unchanged(self.stamp),
            self.file.open() as source,
        ):
            yield source


def read_footer(file: File) -> Part:
    """Parse the footer of a file. Raises `SourceError` if it is damaged."""
    import pyarrow.parquet as pq

    with reading(file.path):
        stamp = file.stamp()  # before the footer, so that a change in between is detected
        with file.open() as source:
            footer = pq.ParquetFile(source, pre_buffer=False)
            metadata, schema = footer.metadata, footer.schema_arrow
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
            raise pa.ArrowInvalid(
                f"its footer counts {metadata.num_rows:,} rows, but {sum(rows):,} in its row groups"
            )
    return Part(file, stamp, metadata, schema, rows, range(len(rows)))


def open_files(paths: list[PathLike], files: list[File], threads: int) -> ParquetFiles:
    """Read the footer of each file, once. Raises as `read_parquet` does."""
    parts = list(in_threads(read_footer, files, threads))
    schema = parts[0].schema
    keys = [key for key in files[0].partition if key not in schema.names]  # in folder names only
    return ParquetFiles(
        format=PARQUET, paths=paths, threads=threads, decoders=threads, schema=schema, keys=keys, parts=parts
    )


PARQUET = Format("Parquet", (".parquet", ".parq", ".pq"), b"PAR[1E]", open_files)  # plain and encrypted


@dataclass(frozen=True, kw_only=True)
class ParquetFiles(Dataset):
    """Parquet files and their footers."""

    parts: list[Part]

    is_exact = True

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self.parts)

    @property
    def first(self) -> str:
        return self.parts[0].file.path

    @property
    def names(self) -> list[str]:
        return [*self.schema.names, *self.keys]

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return the types of columns in all files. Raises `SourceError` if they do not fit together."""
        types = {}
        for name in names:
            in_files, in_folders = list[tuple[str, pa.DataType]](), list[str | None]()
            for part in self.parts:
                if name in part.schema.names:
                    in_files.append((part.file.path, part.schema.field(name).type))
                elif name in part.file.partition:
                    in_folders.append(part.file.partition[name])
                else:
                    raise SourceError(
                        f'column "{name}" is in {self.first} but not in {part.file.path}; '
                        "expected it in every file. Name only files of one schema."
                    )
            if in_files and in_folders:
                raise SourceError(
                    f'column "{name}" is in some files and in the folder names of others; write it in one way'
                )
            if in_files:
                types[name] = without_views(common_type(name, in_files))
            else:
                types[name] = integers_if_written_so(pa.array(in_folders, pa.string())).type
        return types

    def only(self, groups: Sequence[range]) -> Self:
        """Return the same files, restricted to these row groups of each."""
        parts = [part._replace(groups=each) for part, each in zip(self.parts, groups, strict=True)]
        return replace(self, parts=parts)

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        types = self.types_of(columns.names) if types is None else dict(types)
        in_lists = is_list(types[columns.relevance])
        # ids repeat for each document of a query: dictionaries decode five times as fast as strings
        words = () if columns.grades is None else (columns.relevance,)
        repeated = () if in_lists else (*columns.id_columns, *columns.keep, *words)
        encoded = {name for name in repeated if name is not None and is_text(types[name])}
        encoded |= {name for name in types if name in self.keys}
        types |= {name: pa.dictionary(pa.int32(), types[name]) for name in encoded}
        return replace(self, columns=columns, types=types, encoded=frozenset(encoded))

    def size(self) -> tuple[int, float]:
        """Estimate the size of a row from the first row groups; the number of rows is exact."""
        total = rows = 0.0
        for part in self.parts[:8]:
            n = sum(part.rows[group] for group in part.groups[:8])
            rows += n
            for name, kind in self.types.items():
                if pa.types.is_primitive(kind):
                    total += n * kind.bit_width / 8
                elif name in part.schema.names:
                    numbers = is_list(kind) and pa.types.is_primitive(kind.value_type)
                    for chunk in part.chunks(name, part.groups[:8]):
                        # strings: their bytes and an offset, or the code of a dictionary
                        total += chunk.num_values * (kind.value_type.bit_width / 8 if numbers else 8)
                        total += 0 if numbers else chunk.total_uncompressed_size
        return self.n_rows, total / rows + 4 if rows else 4.0

    def _spans(self, most: int) -> Iterator[Part]:
        """Yield consecutive row groups of a file with at most `most` rows, or a single larger one."""
        for part in self.parts:
            start, rows = part.groups.start, 0
            for group in part.groups:
                size = part.rows[group]
                if rows and rows + size > most:
                    yield part._replace(groups=range(start, group))
                    start, rows = group, 0
                rows += size
            if rows:
                yield part._replace(groups=range(start, part.groups.stop))

    def readers(self, names: Sequence[str], most: int) -> Iterator[Reader]:
        return (read_steps(self.types, span, list(names), most) for span in self._spans(most))

    def table(
        self,
        names: Sequence[str],
        progress: Progress = None,
    ) -> pa.Table:
        """Read the named columns of all files. Threads read spans of row groups, or single columns."""
        types = self.types
        if list(types) != list(names):
            types = self.types_of(names)
            types |= {
                name: pa.dictionary(pa.int32(), types[name]) for name in names[:1] if is_text(types[name])
            }
        coded = {name for name, kind in types.items() if pa.types.is_dictionary(kind)}
        total = self.n_rows
        share = total // self.threads
        most, shorter = (min(max(n, _FEWEST_ROWS), _MOST_ROWS) for n in (share * len(names), share))
        spans = list(self._spans(most))
        if len(spans) >= 2 * self.threads:
            tasks = [(types, span, list(names)) for span in spans]
        else:
            # one task per column if spans would leave threads idle; strings take as long as all others
            short = list(self._spans(shorter)) if coded else []
            tasks = [(types, span, [name]) for name in names for span in (short if name in coded else spans)]
        chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
        done, tables = 0, in_threads(read_span, tasks, self.threads)
        with Task("Reading", "rows", progress) as task:
            task.advance(0, total)
            for table in tables:
                for name, column in zip(table.column_names, table.columns, strict=True):
                    chunks[name].extend(column.chunks)
                done += len(table) * table.num_columns
                task.advance(done // len(names), total)
        for name in {*self.columns.id_columns, self.columns.relevance, self.columns.score} & {*names}:
            if self.threads > 1 and len(chunks[name]) > 1:
                chunks[name] = self._joined(chunks[name])
        return pa.table({name: pa.chunked_array(chunks[name], types[name]) for name in names})

    def _joined(self, chunks: list[pa.Array]) -> list[pa.Array]:
        """Join numbers to one chunk, as scoring needs them. All threads copy: a single one, which faults in
        all of the memory, took a third of the time on 16 cores.
        """
        kind = chunks[0].type
        if not is_number(kind) or any(chunk.null_count for chunk in chunks):
            return chunks
        ends = np.cumsum([len(chunk) for chunk in chunks])
        memory = pa.allocate_buffer(int(ends[-1]) * kind.bit_width // 8)
        values = np.frombuffer(memory, kind.to_pandas_dtype())

        def copy(place: int) -> None:
            values[ends[place] - len(chunks[place]) : ends[place]] = array_of(chunks[place])

        list(in_threads(copy, range(len(chunks)), self.threads))
        return [pa.Array.from_buffers(kind, int(ends[-1]), [None, memory])]


# ---- a span of row groups ----


def read_span(task: tuple[Mapping[str, pa.DataType], Part, list[str]]) -> pa.Table:
    """Read the named columns of a span as these types."""
    types, span, names = task
    with span.open() as source:
        file, stored = _open(source, types, span, names)
        table = file.read_row_groups(list(span.groups), columns=stored, use_threads=False)
        if len(table) != span.n_rows:
            raise _miscounted(span, len(table))
        return _finish(table, types, span, names)


def read_steps(types: Mapping[str, pa.DataType], span: Part, names: list[str], most: int) -> Reader:
    """Read the named columns of a span in tables of at most `most` rows."""
    if span.n_rows <= most:
        yield read_span((types, span, names))
        return
    with span.open() as source:
        file, stored = _open(source, types, span, names, _BUFFER)
        rows = 0

        def finish(batch: pa.RecordBatch) -> pa.Table:
            nonlocal rows
            rows += len(batch)
            return _finish(pa.Table.from_batches([batch]), types, span, names)

        batches = file.iter_batches(most, row_groups=list(span.groups), columns=stored, use_threads=False)
        yield from map(finish, batches)  # a loop would keep a batch while the next one is read
        if rows != span.n_rows:
            raise _miscounted(span, rows)


def _open(
    source: pa.NativeFile, types: Mapping[str, pa.DataType], span: Part, names: list[str], buffer: int = 0
) -> tuple[pq.ParquetFile, list[str]]:
    """Open the file. Also returns the columns that are stored in it rather than in folder names."""
    import pyarrow.parquet as pq

    stored = [name for name in names if name in span.schema.names]
    file = pq.ParquetFile(
        source,
        metadata=span.metadata,
        read_dictionary=[
            name
            for name in stored
            if pa.types.is_dictionary(types[name]) and all(map(_is_coded, span.chunks(name, span.groups)))
        ],
        pre_buffer=not (span.file.is_local or buffer),
        buffer_size=buffer,
        page_checksum_verification=True,  # if the writer stored checksums
    )
    return file, stored


def _is_coded(chunk: pq.ColumnChunkMetaData) -> bool:
    """Return whether all pages of a chunk seem to be dictionary-encoded, by their size.

    If the dictionary was full and plain values follow, each batch of pyarrow has a dictionary of all values
    of the row group so far. That takes 50 to 300 ns a row, reading and encoding plain values 40 to 240.
    """
    if not chunk.has_dictionary_page or not _CODED.issuperset(chunk.encodings):
        return False
    dictionary = _UNPACKED * (chunk.data_page_offset - chunk.dictionary_page_offset)
    return chunk.total_uncompressed_size <= min(dictionary, _DICTIONARY) + _CODE * chunk.num_values  # type: ignore[no-any-return]


def _miscounted(span: Part, rows: int) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"its columns have {rows:,} rows where its footer says {span.n_rows:,}")


def _finish(table: pa.Table, types: Mapping[str, pa.DataType], span: Part, names: list[str]) -> pa.Table:
    """Cast columns to these types, and add those of folder names."""
    columns = {}
    for name in names:
        kind = types[name]
        if name in table.column_names:
            column = table[name]
            stored = column.type
            if is_text(stored.value_type if is_list(stored) or pa.types.is_dictionary(stored) else stored):
                _check_texts(name, column)
        else:
            column = _partition_column(span.file.partition[name], len(table), kind)
        if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
            column = column.cast(kind.value_type).dictionary_encode()
        columns[name] = column if column.type == kind else column.cast(kind)
    return pa.table(columns)


def _check_texts(name: str, column: pa.ChunkedArray) -> None:
    """Raise `ArrowInvalid` for strings that are not UTF-8, and for codes beyond the end of a dictionary."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f'column "{name}": {first_line(error)}') from None


def _partition_column(value: str | None, rows: int, kind: pa.DataType) -> pa.ChunkedArray:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    known = [] if value is None else [int(value) if pa.types.is_integer(kind) else value]
    indices = pa.nulls(rows, pa.int32()) if value is None else pa.array(np.zeros(rows, np.int32))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, pa.array(known, kind))])
