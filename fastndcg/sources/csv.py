"""CSV and tab-separated files, parsed by pyarrow. The first line of a file names its columns.

Types settle late: the first rows decide whether ids are integers, and the types of numbers. Where a later row
does not fit, its column takes the next type that pyarrow tries, and everything is read again.
"""

from __future__ import annotations

import re
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import pyarrow as pa

from fastndcg.common.arrow_types import in_runs
from fastndcg.errors import ColumnError, SourceError
from fastndcg.sources.columns import Columns
from fastndcg.sources.opened import OfText, OpenedFiles, in_tables
from fastndcg.sources.opening import Format, reading
from fastndcg.sources.streams import ReadAgainError
from fastndcg.sources.values import WORDS, integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from fastndcg.common.progress import Progress
    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.columns import Roles
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike

_DELIMITERS = ",\t;"
_FAULT = r"(?:In CSV column #(\d+): |CSV parse error: )?(?:Row #(\d+): )?(.*)"
_EXAMPLE = "query_id,relevance,score"
_LONGEST = 1 << 26  # bytes of the first line
_BLOCK = 1 << 20  # bytes that are parsed together; no row may be longer
_STREAMED_BLOCK = 1 << 18  # the same in streams: of four times as many parsing took a quarter longer
_ROWS = 1 << 18  # of a table in streams: to score fewer at a time takes longer for each
_NULLS = [""]  # "nan" is a number, and a document may be called "NULL"
# the types that pyarrow tries, in its order: of columns of numbers, and of others that are no text
_NUMBERS = (pa.null(), pa.int64(), pa.bool_(), pa.float64())
_TIMES = (pa.date32(), pa.time32("s"), pa.timestamp("s"), pa.timestamp("ns"))
_ANY = (*_NUMBERS[:3], *_TIMES, pa.float64(), pa.string())


class Header(NamedTuple):
    """The first line of a file."""

    names: list[str]
    delimiter: str
    text: str

    @property
    def block(self) -> int:
        """The bytes to parse together. A row is about as long as the header."""
        return max(_BLOCK, 4 * len(self.text))


def open_files(paths: list[PathLike], files: list[File], threads: int) -> CsvFiles:
    """Read the header of each file, once."""
    stamps, headers = [], []
    for file in files:
        with reading(file.path, "CSV"):
            stamps.append(file.stamp())
            headers.append(_header_of(file))
    return CsvFiles(
        format=CSV,
        paths=paths,
        threads=threads,
        first_row=2 if len(files) == 1 else 0,  # after the header
        schema=pa.schema([(name, pa.null()) for name in headers[0].names]),
        files=files,
        stamps=stamps,
        schemas=[],
        headers=headers,
    )


CSV = Format("CSV", (".csv", ".tsv"), open=open_files, in_text=True, has_lists=False, unpacks=True)


def _header_of(file: File) -> Header:
    """Read the names of the columns and their delimiter."""
    import pyarrow.csv as pa_csv

    pieces = list[bytes]()
    with file.open_unpacking() as stream:
        while more := stream.read(1 << 16):
            line, *rest = re.split(rb"[\r\n]", more, maxsplit=1)  # of Unix, Windows or classic Mac OS
            pieces.append(line)
            if rest:
                break
            if sum(map(len, pieces)) > _LONGEST:
                raise SourceError(
                    f"{file.path} begins with a line of more than {_LONGEST:,} bytes; "
                    f'is it a text file? Wanted the names of columns there, as in "{_EXAMPLE}"'
                )
    text = b"".join(pieces).decode("utf-8-sig", "backslashreplace")
    if not text.strip():
        raise SourceError(
            f"{file.path} is empty, or begins with an empty line; "
            f'wanted the names of columns there, as in "{_EXAMPLE}"'
        )
    delimiter = max(_DELIMITERS, key=text.count)  # a comma if there is no delimiter
    buffer = pa.py_buffer(f"{text}\n".encode())
    # by the parser that reads the rows, since parsers differ in how they read quotes
    names = pa_csv.read_csv(
        pa.BufferReader(buffer),
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=buffer.size),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter),
    ).column_names
    return Header(names, delimiter, text)


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
                f'wanted the names of columns there, as in "{_EXAMPLE}"'
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
        if pa.null() in opened.types.values():
            opened.size()  # settles the types
        return super(CsvFiles, opened).table(names, progress=progress)

    def size(self) -> tuple[int, float]:
        """Estimated from the first block, which also settles the first types."""
        file, header = self.files[0], self.headers[0]
        types = {name: kind for name, kind in self._parsed_types().items() if kind != pa.null()}
        is_all = False
        with closing(self._parse(0, list(self.types), types)) as batches:
            try:
                batch = next(batches, None)
            except MalformedError as error:
                self.block.clear()  # where a row is longer than a block, a smaller one is no help
                raise self._misfit(0, list(self.types), error) from None
            with suppress(MalformedError):  # of other types than the first block, or what iterating will say
                is_all = next(batches, None) is None
        if batch is None:
            return 0, 4.0
        for name in batch.schema.names:
            kind, tried = batch[name].type, self._tried(name)
            if name in self._ids and self.types[name] == pa.int64():
                self.types[name] = integers_if_written_so(batch[name]).type
            elif self.types[name] == pa.null() != kind:
                self.types[name] = kind if kind in tried else tried[-1]
        times = file.unpacks_to()
        parsed = times * (self.stamps[0].size or 1) if is_all else header.block
        return int(len(batch) * times * self.n_bytes / parsed), batch.nbytes / len(batch) + 4

    def _tried(self, name: str) -> tuple[pa.DataType, ...]:
        """The types that a column may have that is no text, in the order in which they are tried."""
        if self.of_text is not None:
            return _NUMBERS if name in self.of_text.numbers else _ANY
        return (*_NUMBERS, pa.string()) if name == self.columns.is_judged else _NUMBERS

    def _parsed_types(self) -> dict[str, pa.DataType]:
        """Types as which pyarrow reads the columns."""
        return self.types | dict.fromkeys(self._ids, pa.string())

    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:
        yield self._reader(number, names, min(most, _ROWS))

    def _reader(self, number: int, names: Sequence[str], most: int) -> Reader:
        block = next(iter(self.block), None)
        batches = self._parse(number, names, self._parsed_types(), block, threads=self.threads > 1)
        tables = (pa.Table.from_batches([each]) for each in batches)
        try:
            yield from map(self._with_ids, in_tables(tables, most))
        except MalformedError as error:
            raise self._misfit(number, names, error) from None

    def _with_ids(self, table: pa.Table) -> pa.Table:
        for name in self._ids & set(table.column_names):
            if self.types[name] == pa.int64():
                ids = _as_integers(table[name])
                if ids.type == pa.string():
                    raise ReadAgainError(partial(self.types.__setitem__, name, pa.string()))
                table = table.set_column(table.column_names.index(name), name, ids)
        return table

    def _parse(
        self,
        number: int,
        names: Sequence[str],
        types: dict[str, pa.DataType],
        block: int | None = None,
        *,
        threads: bool = False,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Read the named columns of a file by blocks. Raises `MalformedError` if a row cannot be parsed."""
        import pyarrow.csv as pa_csv

        file, header = self.files[number], self.headers[number]
        for name in names:
            if name not in header.names:
                raise ColumnError(f'{file.path} has no column "{name}", which other files have')
            if header.names.count(name) > 1:
                raise ColumnError(f'{file.path} has two columns "{name}"; rename one of them')
        options = (
            pa_csv.ReadOptions(use_threads=threads, block_size=block or header.block),
            pa_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
            pa_csv.ConvertOptions(
                include_columns=list(dict.fromkeys(names)),
                column_types=types,
                null_values=_NULLS,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        with reading(file.path, "CSV"), file.unchanged(self.stamps[number]):
            try:
                # not closed here: after an error pyarrow's threads may still read ahead of it, and would
                # then read from the file that the system opens next under its number
                with pa_csv.open_csv(file.open_unpacking(), *options) as batches:
                    yield from batches
            except pa.ArrowInvalid as error:
                fault = MalformedError(str(error))
            else:
                return
            raise fault

    def _misfit(self, number: int, names: Sequence[str], error: MalformedError) -> Exception:
        """The error for a row that does not parse, or what lets it fit when everything is read again."""
        if "straddl" in str(error) and self.block:  # a row is longer than a block
            return ReadAgainError(self.block.clear)
        names_of_file = self.headers[number].names
        column, _, _ = error.parts()
        if column is not None:
            name = names_of_file[column]
            kind, tried = self._parsed_types().get(name, pa.null()), self._tried(name)
            if kind in tried[:-1]:
                return ReadAgainError(partial(self.types.__setitem__, name, tried[tried.index(kind) + 1]))
        try:  # pyarrow numbers rows only on one thread
            for _ in self._parse(number, names, self._parsed_types()):
                pass
        except MalformedError as numbered:
            error = numbered
        column, row, reason = error.parts()
        path = self.files[number].path
        where = path if row is None else f"{path}, row {row:,} (the header is row 1)"
        if column is None:
            return SourceError(f"{where}: {reason}; wanted as many fields as the header has")
        name = names_of_file[column]
        value = re.search(r"invalid value '(.*)'", reason, re.DOTALL)
        if value is None:
            return SourceError(f'{where}: column "{name}" cannot be read: {reason}; wanted UTF-8')
        grades = self.columns.relevance if self.of_text is None else self.of_text.grades
        return SourceError(
            f'{where}: column "{name}" has "{value[1]}"; wanted a number. Correct or drop that row'
            f"{WORDS if name == grades else ''}."
        )


class MalformedError(Exception):
    """An error of pyarrow about a row, not about a file that cannot be read."""

    def parts(self) -> tuple[int | None, int | None, str]:
        """The places of the column and of the row that it is about, if pyarrow says them, and the reason."""
        column, row, reason = re.fullmatch(_FAULT, str(self), re.DOTALL).groups()  # type: ignore[union-attr]
        return None if column is None else int(column), None if row is None else int(row), reason


def _as_integers(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids as run-end encoded integers if each is written like an integer; otherwise unchanged."""
    import pyarrow.compute as pc

    if not len(ids):
        return integers_if_written_so(ids)
    chunks = []
    for chunk in ids.chunks:
        runs = pc.run_end_encode(chunk)  # converting every id took four times as long
        numbers = integers_if_written_so(runs.values)
        if numbers.type != pa.int64():
            return ids
        chunks.append(in_runs(runs.run_ends, numbers))
    return pa.chunked_array(chunks)
