"""CSV and tab-separated files, parsed by pyarrow. The first line of a file names its columns.

Types settle late: the first rows decide whether ids are integers, and the types of numbers. Where a later row
does not fit, its column takes the next type that pyarrow tries, and everything is read again.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from fastndcg.errors import ColumnError, SourceError
from fastndcg.sources.columns import Columns
from fastndcg.sources.csv_rows import (
    EXAMPLE,
    Header,
    MalformedError,
    as_integers,
    block_of,
    fault_of,
    header_of,
    parse,
)
from fastndcg.sources.messages import reading
from fastndcg.sources.opened import Format, OfText, OpenedFiles
from fastndcg.sources.opening import unpack
from fastndcg.sources.streams import ReadAgainError
from fastndcg.sources.values import integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.common.progress import Progress
    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.columns import Roles
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike

_STREAMED_BLOCK = 1 << 18  # the same in streams: of four times as many parsing took a quarter longer
_ROWS = 1 << 18  # of a table in streams: to score fewer at a time takes longer for each
_SAMPLE = 8 << 20  # unpacked bytes that tell how much the rest of a file unpacks to
# the types that pyarrow tries, in its order: of columns of numbers, and of others that are no text
_NUMBERS = (pa.null(), pa.int64(), pa.bool_(), pa.float64())
_TIMES = (pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns"))
_ANY = (*_NUMBERS[:3], *_TIMES, pa.float64(), pa.string())


def open_files(paths: list[PathLike], files: list[File], threads: int) -> CsvFiles:
    """Read the header of each file, once."""
    headers = [header_of(file) for file in files]
    schema = pa.schema([(name, pa.null()) for name in headers[0].names])
    return CsvFiles(
        format=CSV,
        paths=paths,
        threads=threads,
        schema=schema,
        files=files,
        stamps=[header.stamp for header in headers],
        schemas=[],
        headers=headers,
    )


CSV = Format("CSV", (".csv", ".tsv"), opener=open_files, in_text=True, has_lists=False, unpacks=True)


def is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class CsvFiles(OpenedFiles):
    """CSV files and their headers. `types` are those that fit all rows so far."""

    headers: list[Header]
    of_text: OfText | None = None  # what is said of columns, if they have other roles than `columns`
    # the bytes that streams parse together; none after a row that is longer: as many as whole reads do
    block: list[int] = field(default_factory=lambda: [_STREAMED_BLOCK])

    @property
    def first(self) -> str:
        return self.files[0].path

    @property
    def names(self) -> list[str]:
        return self.headers[0].names

    def type_of(self, name: str) -> pa.DataType:  # noqa: ARG002 - a name may stand there twice
        return pa.null()

    @property
    def first_row(self) -> int:  # type: ignore[override]
        """2 after the header of one file, 0 for several files."""
        return 2 if len(self.files) == 1 else 0

    @property
    def _ids(self) -> set[str]:
        """The columns of ids: integers if all values are written like integers, and text otherwise."""
        columns = self.columns if self.of_text is None else Columns()
        return {name for name in (*columns.id_columns, columns.doc_id, *columns.keep) if name is not None}

    def choose(self, roles: Roles, *, with_doc_id: bool = False) -> Self:
        if roles.intents is not None:
            raise ColumnError(
                f"{self.first} is CSV, which has no lists; give a column of intents in Parquet, "
                "or judgments and a run"
            )
        return super().choose(roles, with_doc_id=with_doc_id)

    def explain(self, error: ColumnError) -> ColumnError | SourceError:
        header = self.headers[0]
        if any(map(is_number, header.names)):
            return SourceError(
                f'{self.first} has no header: its first line is "{header.text[:120]}"; '
                f'wanted the names of columns there, as in "{EXAMPLE}"'
            )
        return error

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        if self.of_text is not None:
            return {name: pa.string() if self.of_text.is_text(name) else pa.null() for name in names}
        # of ids, whether they are integers is found out from their text
        types = {name: pa.int64() if name in self._ids else pa.null() for name in names}
        if self.columns.grades is not None:
            types[self.columns.relevance] = pa.string()
        return types

    def table(
        self, names: Sequence[str], of_text: OfText | None = None, progress: Progress = None
    ) -> pa.Table:
        opened = replace(self, of_text=of_text, block=[])  # all rows at once, in blocks that are larger
        if of_text is not None or not set(names) <= set(self.types):
            opened = replace(opened, types=opened.types_of(names))
        if pa.null() in opened.types.values() and self.n_bytes > block_of(self.headers[0]):
            opened.size()  # settles the types: to infer them while all rows are read took a third longer
        return super(CsvFiles, opened).table(names, progress=progress)

    def rows_of(self, name: str, rows: Any) -> pa.ChunkedArray:
        """Rows of a column as text."""
        return self.table([name], OfText((), [name]))[name].take(pa.array(rows))

    def size(self) -> tuple[int, float]:
        """Estimated from the first block, which also settles the first types."""
        file, header, names = self.files[0], self.headers[0], list(self.types)
        with closing(parse(file, header, names, self._read_types(), use_threads=False)) as batches:
            try:
                batch = next(batches, None)
            except MalformedError as error:
                self.block.clear()  # where a row is longer than a block, a smaller one is no help
                raise self._misfit(file, header, names, error) from None
            try:
                is_all = next(batches, None) is None
            except MalformedError:  # of other types than the first block, or what iterating will say
                is_all = False
        if batch is None:
            return 0, 4.0
        self._settle(batch)
        times = 1.0  # that a file unpacks to its size
        with reading(file.path, "CSV"):
            stream, packed = unpack(file.filesystem.open_input_file(file.path))
            with stream:
                if packed is not None and (read := len(stream.read(_SAMPLE))):
                    times = read / packed.tell()
        parsed = times * (header.stamp.size or 1) if is_all else block_of(header)
        return int(len(batch) * times * self.n_bytes / parsed), batch.nbytes / len(batch) + 4

    def _tried(self, name: str) -> tuple[pa.DataType, ...]:
        """The types that a column may have that is no text, in the order in which they are tried."""
        if self.of_text is not None:
            return _NUMBERS if name in self.of_text.numbers else _ANY
        return (*_NUMBERS, pa.string()) if name == self.columns.is_judged else _NUMBERS

    def _read_types(self) -> dict[str, pa.DataType]:
        """Types as which pyarrow reads the columns; those of others are inferred from the first rows."""
        known = {name: kind for name, kind in self.types.items() if kind != pa.null()}
        return known | dict.fromkeys(self._ids, pa.string())

    def _settle(self, batch: pa.RecordBatch) -> bool:
        """Take the types of the first rows, and say whether they have these types already."""
        for name in batch.schema.names:
            kind, found, tried = self.types[name], batch[name].type, self._tried(name)
            if name in self._ids and kind == pa.int64():
                self.types[name] = integers_if_written_so(batch[name]).type
            elif kind == pa.null() and found != kind:
                self.types[name] = found if found in tried else tried[-1]
        return all(name in self._ids or batch[name].type == self.types[name] for name in batch.schema.names)

    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:
        yield self._reader(self.files[number], self.headers[number], names, min(most, _ROWS))

    def _reader(self, file: File, header: Header, names: Sequence[str], most: int) -> Reader:
        block, rows = next(iter(self.block), None), 0
        batches: list[pa.RecordBatch] = []
        types = self._read_types()
        try:
            for batch in parse(file, header, names, types, use_threads=self.threads > 1, block=block):
                if not rows and pa.null() in self.types.values() and not self._settle(batch):
                    raise ReadAgainError(lambda: None)
                batches.append(batch)
                rows += len(batch)
                if rows >= most:
                    yield self._table_of(batches)
                    batches, rows = [], 0
        except MalformedError as error:
            raise self._misfit(file, header, names, error) from None
        if batches:
            yield self._table_of(batches)

    def _table_of(self, batches: list[pa.RecordBatch]) -> pa.Table:
        table = pa.Table.from_batches(batches)
        for name in self._ids & set(table.column_names):
            if self.types[name] == pa.int64():
                ids = as_integers(table[name])
                if ids.type == pa.string():
                    raise ReadAgainError(partial(self.types.__setitem__, name, pa.string()))
                table = table.set_column(table.column_names.index(name), name, ids)
        return table

    def _misfit(self, file: File, header: Header, names: Sequence[str], error: MalformedError) -> Exception:
        """The error for a row that does not parse, or what lets it fit when everything is read again."""
        if error.is_of_length and self.block:
            return ReadAgainError(self.block.clear)
        name = error.column(header)
        kind = None if name is None else self._read_types().get(name, pa.null())
        tried = () if name is None else self._tried(name)
        if name is not None and kind in tried[:-1]:
            return ReadAgainError(partial(self.types.__setitem__, name, tried[tried.index(kind) + 1]))
        try:  # pyarrow numbers rows only on one thread
            for _ in parse(file, header, names, self._read_types(), use_threads=False):
                pass
        except MalformedError as numbered:
            error = numbered
        grades = self.columns.relevance if self.of_text is None else self.of_text.grades
        return fault_of(file.path, header, str(error), grades)
