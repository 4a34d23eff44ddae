"""CSV and tab-separated files, parsed by pyarrow. The first line of a file names its columns.

Types settle late: the first rows decide whether ids are integers, and the types of numbers. Where a later row
does not fit, its column takes the next type that pyarrow tries, and everything is read again.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from fastndcg.common.progress import Progress, Task
from fastndcg.errors import ColumnError, SourceError
from fastndcg.sources.csv_rows import (
    EXAMPLE,
    Header,
    MalformedError,
    as_integers,
    block_of,
    fault_of,
    header_of,
    parse,
    read_columns,
)
from fastndcg.sources.messages import reading
from fastndcg.sources.opened import Format, OfText, Opened
from fastndcg.sources.opening import unpack
from fastndcg.sources.streams import ReadAgainError
from fastndcg.sources.values import integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.columns import Columns, Roles
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike

_STREAMED_BLOCK = 1 << 18  # the same in streams: of four times as many parsing took a quarter longer
_ROWS = 1 << 18  # of a table in streams: to score fewer at a time takes longer for each
_SAMPLE = 8 << 20  # unpacked bytes that tell how much the rest of a file unpacks to
_SMALL = 1 << 24  # bytes; files up to this size fit into memory even if they are packed
# the types that pyarrow tries, in its order, of columns that are neither ids nor text
_NUMBERS = (pa.null(), pa.int64(), pa.bool_(), pa.float64())


def open_files(paths: list[PathLike], files: list[File], threads: int) -> CsvFiles:
    """Read the header of each file, once."""
    headers = [header_of(file) for file in files]
    schema = pa.schema([(name, pa.null()) for name in headers[0].names])
    return CsvFiles(format=CSV, paths=paths, threads=threads, schema=schema, files=files, headers=headers)


CSV = Format("CSV", (".csv", ".tsv"), opener=open_files, in_text=True, has_lists=False, unpacks=True)


def is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class CsvFiles(Opened):
    """CSV files and their headers. `types` are those that fit all rows so far."""

    files: list[File]
    headers: list[Header]
    # the bytes that streams parse together; none after a row that is longer: as many as whole reads do
    block: list[int] = field(default_factory=lambda: [_STREAMED_BLOCK])

    @property
    def first(self) -> str:
        return self.files[0].path

    @property
    def n_files(self) -> int:
        return len(self.files)

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
    def is_small(self) -> bool:  # type: ignore[override]
        return self._bytes < _SMALL

    @property
    def _bytes(self) -> int:
        return sum(header.stamp.size or 0 for header in self.headers)

    @property
    def _ids(self) -> set[str]:
        """The columns of ids: integers if all values are written like integers, and text otherwise."""
        columns = self.columns
        return {name for name in (columns.query, columns.doc_id, *columns.keep) if name is not None}

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

    def with_columns(self, columns: Columns) -> Self:
        chosen = replace(self, columns=columns)
        return replace(chosen, types=chosen.types_of(columns.names))

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        # of ids, whether they are integers is found out from their text
        types = {name: pa.int64() if name in self._ids else pa.null() for name in names}
        if self.columns.grades is not None:
            types[self.columns.relevance] = pa.string()
        return types

    # ---- all rows at once ----

    def table(
        self, names: Sequence[str], of_text: OfText | None = None, progress: Progress = None
    ) -> pa.Table:
        columns, ids = self.columns, self._ids
        if of_text is None:
            words = {columns.relevance} if columns.grades is not None else set()
            texts = [name for name in names if name in ids or name in words]
            numbers = [name for name in names if name not in texts and name != columns.is_judged]
            of_text = OfText(numbers, texts, columns.relevance)
        else:
            ids = set()
        with Task("Reading", progress=progress):
            tables = [
                read_columns(file, header, names, of_text, use_threads=self.threads != 1)
                for file, header in zip(self.files, self.headers, strict=True)
            ]
        self.ends[:] = np.cumsum([len(each) for each in tables]).tolist()
        table = pa.concat_tables(tables, promote_options="permissive")
        for name in ids & set(names):
            table = table.set_column(table.column_names.index(name), name, as_integers(table[name]))
        return table

    def rows_of(self, name: str, rows: Any) -> pa.ChunkedArray:
        """Rows of a column as text."""
        return self.table([name], OfText((), [name]))[name].take(pa.array(rows))

    # ---- a part at a time ----

    def size(self) -> tuple[int, float]:
        """Estimated from the first block, which also settles the first types."""
        file, header, names = self.files[0], self.headers[0], list(self.types)
        inferred = {name: kind for name, kind in self._read_types().items() if kind != pa.null()}
        with closing(parse(file, header, names, inferred, use_threads=False)) as batches:
            try:
                batch = next(batches, None)
            except MalformedError as error:
                raise self._misfit(file, header, names, error) from None
            try:
                is_all = next(batches, None) is None
            except MalformedError:  # of other types than the first block, or what iterating will say
                is_all = False
        if batch is None:
            return 0, 4.0
        for name, kind in self.types.items():
            if name in self._ids and kind == pa.int64():
                self.types[name] = integers_if_written_so(batch[name]).type
            elif kind == pa.null():
                found = batch[name].type
                self.types[name] = found if found in _NUMBERS else self._last(name)
        with reading(file.path, "CSV"):
            stream, packed = unpack(file.filesystem.open_input_file(file.path))
            with stream:
                read = len(stream.read(_SAMPLE))
                times = 1.0 if packed is None or not read else read / packed.tell()
        parsed = times * (header.stamp.size or 1) if is_all else block_of(header)
        return int(len(batch) * times * self._bytes / parsed), batch.nbytes / len(batch) + 4

    def _last(self, name: str) -> pa.DataType:
        """The type that is tried last."""
        return pa.string() if name == self.columns.is_judged else pa.float64()

    def _read_types(self) -> dict[str, pa.DataType]:
        """Types as which pyarrow reads the columns."""
        return self.types | dict.fromkeys(self._ids, pa.string())

    def readers_of_files(self, names: Sequence[str], most: int) -> Iterator[Iterator[Reader]]:
        for file, header in zip(self.files, self.headers, strict=True):
            yield iter([self._reader(file, header, names, min(most, _ROWS))])

    def _reader(self, file: File, header: Header, names: Sequence[str], most: int) -> Reader:
        types, block, rows = self._read_types(), next(iter(self.block), None), 0
        batches: list[pa.RecordBatch] = []
        try:
            for batch in parse(file, header, names, types, use_threads=self.threads > 1, block=block):
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
        kind = self._read_types().get(name) if name is not None else None
        if name is not None and kind in _NUMBERS and kind != self._last(name):
            wider = [*_NUMBERS, pa.string()][_NUMBERS.index(kind) + 1]
            return ReadAgainError(partial(self.types.__setitem__, name, wider))
        try:  # pyarrow numbers rows only on one thread
            for _ in parse(file, header, names, self._read_types(), use_threads=False):
                pass
        except MalformedError as numbered:
            error = numbered
        return fault_of(file.path, header, str(error), self.columns.relevance)
