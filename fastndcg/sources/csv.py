"""CSV and tab-separated files, parsed by pyarrow. The first line of a file names its columns."""

from __future__ import annotations

import io
import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from fastndcg.common.arrow_types import in_runs
from fastndcg.errors import ColumnError, SourceError
from fastndcg.sources.dataset import LOOK, FileDataset
from fastndcg.sources.open_file import Format
from fastndcg.sources.schemas import permissive_type
from fastndcg.tables.values import WORDS, integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from fastndcg.sources.open_file import File

_DELIMITERS = ",\t;"
_FAULT = r"(?:In CSV column #(\d+): |CSV parse error: )?(?:Row #(\d+): )?(.*)"
_EXPECTED = 'expected the names of columns there, as in "query_id,relevance,score"'
_LONGEST = 1 << 26  # bytes of the first line, and of a row
_SHOWN = 100  # signs of a value in a message
_BLOCK = 1 << 18  # bytes that are parsed together: of four times as many parsing took a quarter longer
_NUMBERS = (pa.null(), pa.int64(), pa.bool_(), pa.float64())


class Header(NamedTuple):
    """The first line of a file."""

    names: list[str]
    delimiter: str
    text: str


def is_number(text: str | bytes) -> bool:
    """Whether pyarrow parses a number. Python's `float` takes 1_0, and more than ASCII."""
    text = text.decode(errors="replace") if isinstance(text, bytes) else text
    try:
        pa.scalar(text.strip(" \t")).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class CsvDataset(FileDataset):
    """CSV files and their headers."""

    after_header = 2
    looks = LOOK

    @staticmethod
    def begin(file: File) -> Header:
        """Read the names of the columns and their delimiter."""
        import pyarrow.csv as pa_csv

        with file.open_unpacking() as stream:
            line = io.BufferedReader(stream).readline(_LONGEST + 1)
        start = re.split(rb"[\r\n]", line, maxsplit=1)[0]  # of Unix, Windows or classic Mac OS
        text = start.decode("utf-8-sig", "backslashreplace")
        if len(start) > _LONGEST or not text.strip():
            wrong = f"begins with a line of more than {_LONGEST:,} bytes; is it a text file?"
            wrong = wrong if text else "is empty, or begins with an empty line;"
            raise SourceError(f"{file.path} {wrong} {_EXPECTED}")
        delimiter = max(_DELIMITERS, key=text.count)  # a comma if there is no delimiter
        # by the parser that reads the rows, since parsers differ in how they read quotes
        names = pa_csv.read_csv(
            pa.BufferReader(f"{text}\n".encode()),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=4 * len(text) + 2),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter),
        ).column_names
        return Header(names, delimiter, text)

    @staticmethod
    def schema_of(begun: Header) -> pa.Schema:
        return pa.schema([(name, pa.null()) for name in begun.names])

    def explain(self, error: ColumnError) -> ColumnError | SourceError:
        if not any(map(is_number, self.names)):
            return error
        text = self.begun[0].text[:120]
        return SourceError(f'{self.first} has no header: its first line is "{text}"; {_EXPECTED}')

    # ---- types ----

    def schema_of_rows(self, number: int, names: Sequence[str]) -> pa.Schema:
        first, text = self._first_rows(number, names), self.text
        kinds = {name: first[name].type for name in names}
        for name in names:
            if name in text.ids and name not in text.types:
                kinds[name] = integers_if_written_so(first[name]).type
            elif name in text.numbers and name not in text.types and kinds[name] not in _NUMBERS:
                values = first[name].cast(pa.string()).to_pylist()
                row = next(row for row, value in enumerate(values) if not is_number(value or "0"))
                raise self._misfit(number, row + 2, name, values[row], kinds[name])
        return pa.schema(kinds)

    def joined_type(self, name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
        return permissive_type(one, other) or (None if name in self.text.numbers else pa.string())

    def first_rows(self) -> tuple[pa.Table, float]:
        return self._first_rows(0, list(self.types)), LOOK

    def _first_rows(self, number: int, names: Sequence[str]) -> pa.Table:
        """The rows of the first block of a file: ids as text."""
        types = {name: pa.string() for name in names if self.text.is_text(name)}
        types |= {name: kind for name, kind in self.text.types.items() if name in names}
        with closing(self._parse(number, names, types, LOOK)) as batches:
            for batch in batches:
                return pa.Table.from_batches([batch])
        return pa.table({name: pa.nulls(0, types.get(name, pa.null())) for name in names})

    # ---- rows ----

    def parsers(self, number: int, names: Sequence[str], most: int) -> Iterator[Iterator[pa.Table]]:  # noqa: ARG002
        yield self._tables(number, names)

    def _tables(self, number: int, names: Sequence[str]) -> Iterator[pa.Table]:
        ids = [name for name in names if name in self.text.ids and name not in self.text.types]
        types = {name: pa.string() if name in ids else self.types[name] for name in names}
        done = 0
        for batch in self._parse(number, names, types, threads=self.threads > 1):
            table = pa.Table.from_batches([batch])
            for place, name in enumerate(table.column_names):
                if name in ids and self.types[name] == pa.int64():
                    column = _as_integers(table[name])
                    if column.type == pa.string():
                        texts = table[name].to_pylist()
                        row = next(row for row, text in enumerate(texts) if not _is_integer(text))
                        raise self._misfit(number, done + row + 2, name, texts[row], pa.int64())
                    table = table.set_column(place, name, column)
            done += len(table)
            del batch
            yield table

    def _parse(
        self,
        number: int,
        names: Sequence[str],
        types: Mapping[str, pa.DataType],
        block: int = _BLOCK,
        *,
        threads: bool = False,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Read the named columns of a file by blocks, larger ones where a row is longer."""
        import pyarrow.csv as pa_csv

        file, header, done = self.files[number], self.begun[number], 0
        for name in names:
            if header.names.count(name) != 1:
                wrong = f'two columns "{name}"; rename one of them'
                wrong = wrong if name in header.names else f'no column "{name}", which other files have'
                raise ColumnError(f"{file.path} has {wrong}")
        of_lines = pa_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
        of_values = pa_csv.ConvertOptions(
            include_columns=list(dict.fromkeys(names)),
            column_types=types,
            null_values=[""],  # "nan" is a number, and a document may be called "NULL"
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        block = max(block, 4 * len(header.text))  # in UTF-8
        while True:
            of_file = pa_csv.ReadOptions(use_threads=threads, block_size=block, skip_rows_after_names=done)
            try:
                # not closed here: after an error pyarrow's threads may still read ahead of it, and would
                # then read from the file that the system opens next under its number
                with pa_csv.open_csv(file.open_unpacking(), of_file, of_lines, of_values) as batches:
                    for batch in batches:
                        done += len(batch)
                        yield batch
                return
            except pa.ArrowInvalid as error:
                fault = str(error)
            if "straddl" in fault and block < _LONGEST:
                block *= 4
            elif threads and "Row #" not in fault:  # pyarrow numbers rows only on one thread
                threads = False
            else:
                raise self._fault(number, fault, types)

    # ---- faults ----

    def _fault(self, number: int, fault: str, types: Mapping[str, pa.DataType]) -> SourceError:
        """The error for a row that pyarrow does not parse."""
        column, row, reason = re.fullmatch(_FAULT, fault, re.DOTALL).groups()  # type: ignore[union-attr]
        value = re.search(r"invalid value '(.*)'", reason, re.DOTALL)
        where = self._row(number, row)
        if column is None:
            return SourceError(f"{where}: {reason}; expected as many fields as the header has")
        name = self.begun[number].names[int(column)]
        if value is None:
            return SourceError(f'{where}: column "{name}" cannot be read: {reason}; expected UTF-8')
        return self._misfit(number, row, name, value[1], types.get(name, pa.null()))

    def _row(self, number: int, row: int | str | None) -> str:
        path = self.files[number].path
        return path if row is None else f"{path}, row {int(row):,} (the header is row 1)"

    def _misfit(
        self, number: int, row: int | str | None, name: str, value: str, kind: pa.DataType
    ) -> SourceError:
        """The error for a value that does not fit the type of its column."""
        said, text = f'{self._row(number, row)}: column "{name}" has "{value[:_SHOWN]}"', self.text
        if name in text.types or (name in text.numbers and not is_number(value)):
            expected, words = text.types.get(name, "a number"), WORDS if name == text.grades else ""
            return SourceError(f"{said}; expected {expected}. Correct or drop that row{words}.")
        better = "float64" if name in text.numbers and kind != pa.bool_() else "string"
        return SourceError(
            f"{said}; expected {kind}, the type of the first rows; give another, as in "
            f'types={{"{name}": "{better}"}}.'
        )


CSV: Format = Format(
    "CSV",
    (".csv", ".tsv"),
    open=lambda *given: CsvDataset.open(CSV, *given),
    in_text=True,
    has_lists=False,
    unpacks=True,
)


def _is_integer(text: str | None) -> bool:
    return bool(integers_if_written_so(pa.array([text], pa.string())).type == pa.int64())


def _as_integers(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids as run-end encoded integers if each is written like an integer; otherwise unchanged."""
    import pyarrow.compute as pc

    chunks = []
    for chunk in ids.chunks:
        runs = pc.run_end_encode(chunk)  # converting every id took four times as long
        numbers = integers_if_written_so(runs.values)
        if numbers.type != pa.int64():
            return ids
        chunks.append(in_runs(runs.run_ends, numbers))
    return pa.chunked_array(chunks) if chunks else integers_if_written_so(ids)
