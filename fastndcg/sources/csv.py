"""CSV and tab-separated files, parsed by pyarrow. The first line of a file names its columns."""

from __future__ import annotations

import io
import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import pyarrow as pa

from fastndcg.common.arrow_types import in_runs
from fastndcg.errors import ColumnError, SourceError
from fastndcg.sources.dataset import LOOK, OpenedFiles, in_tables
from fastndcg.sources.open_file import Format, reading
from fastndcg.sources.schemas import permissive_type
from fastndcg.tables.values import WORDS, integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from fastndcg.sources.paths import File
    from fastndcg.sources.prefetch import Reader
    from fastndcg.tables.roles import Roles

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
class CsvFiles(OpenedFiles):
    """CSV files and their headers."""

    after_header = 2

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

    def type_of(self, name: str) -> pa.DataType:  # noqa: ARG002 - a name may appear there twice
        return pa.null()

    def choose(self, roles: Roles, *, with_doc_id: bool = False) -> Self:
        if roles.intents is not None:
            raise ColumnError(
                f"{self.first} is CSV, which has no lists; give a column of intents in Parquet, "
                "or judgments and a run"
            )
        return super().choose(roles, with_doc_id=with_doc_id)

    def explain(self, error: ColumnError) -> ColumnError | SourceError:
        if not any(map(is_number, self.names)):
            return error
        text = self.begun[0].text[:120]
        return SourceError(f'{self.first} has no header: its first line is "{text}"; {_EXPECTED}')

    # ---- types ----

    def schemas(self, names: Sequence[str]) -> Iterator[pa.Schema]:
        looked, of = 0, self.of_text
        for number, stamp in enumerate(self.stamps):
            first, kinds = self._first_rows(number, names), dict[str, pa.DataType]()
            for name in names:
                kinds[name] = kind = first[name].type
                if name in of.types:
                    kinds[name] = of.types[name]
                elif name in of.ids:
                    kinds[name] = integers_if_written_so(first[name]).type
                elif name in of.numbers and kind not in _NUMBERS:
                    values = first[name].cast(pa.string()).to_pylist()
                    row = next(row for row, value in enumerate(values) if not is_number(value or "0"))
                    raise self._misfit(number, row + 2, name, values[row], kind)
            yield pa.schema(list(kinds.items()))
            looked += min(stamp.size or LOOK, LOOK)
            if looked >= LOOK:
                return

    def joined_type(self, name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
        texts = None if name in self.of_text.numbers else pa.string()
        return permissive_type(one, other) or texts

    def first_rows(self) -> tuple[pa.Table, float]:
        return self._first_rows(0, list(self.types)), LOOK

    def _first_rows(self, number: int, names: Sequence[str]) -> pa.Table:
        """The rows of the first block of a file: ids as text."""
        of = self.of_text
        texts = {name: pa.string() for name in names if name in of.ids or of.is_text(name)}
        types = texts | {name: kind for name, kind in of.types.items() if name in names}
        with closing(self._parse(number, names, types, LOOK)) as batches:
            for batch in batches:
                return pa.Table.from_batches([batch])
        return pa.table({name: pa.nulls(0, types.get(name, pa.null())) for name in names})

    # ---- rows ----

    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:
        yield self._reader(number, names, most)

    def _reader(self, number: int, names: Sequence[str], most: int) -> Reader:
        ids = [name for name in names if name in self.of_text.ids and name not in self.of_text.types]
        types = {name: pa.string() if name in ids else self.types[name] for name in names}
        done = 0

        def with_ids(table: pa.Table) -> pa.Table:
            nonlocal done
            for name in ids:
                if self.types[name] == pa.int64():
                    numbers = _as_integers(table[name])
                    if numbers.type == pa.string():
                        texts = table[name].to_pylist()
                        row = next(row for row, text in enumerate(texts) if not _is_integer(text))
                        raise self._misfit(number, done + row + 2, name, texts[row], pa.int64())
                    table = table.set_column(table.column_names.index(name), name, numbers)
            done += len(table)
            return table

        batches = self._parse(number, names, types, threads=self.threads > 1)
        yield from map(with_ids, in_tables((pa.Table.from_batches([each]) for each in batches), most))

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
            if name not in header.names:
                raise ColumnError(f'{file.path} has no column "{name}", which other files have')
            if header.names.count(name) > 1:
                raise ColumnError(f'{file.path} has two columns "{name}"; rename one of them')
        of_lines = pa_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
        of_values = pa_csv.ConvertOptions(
            include_columns=list(dict.fromkeys(names)),
            column_types=types,
            null_values=[""],  # "nan" is a number, and a document may be called "NULL"
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        block = max(block, 4 * len(header.text))  # in UTF-8
        with reading(file.path, "CSV"), file.unchanged(self.stamps[number]):
            while True:
                of_file = pa_csv.ReadOptions(
                    use_threads=threads, block_size=block, skip_rows_after_names=done
                )
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
        said, of = f'{self._row(number, row)}: column "{name}" has "{value[:_SHOWN]}"', self.of_text
        if name in of.types or (name in of.numbers and not is_number(value)):
            expected, words = of.types.get(name, "a number"), WORDS if name == of.grades else ""
            return SourceError(f"{said}; expected {expected}. Correct or drop that row{words}.")
        better = "float64" if name in of.numbers and kind != pa.bool_() else "string"
        return SourceError(
            f"{said}; expected {kind}, the type of the first rows; give another, as in "
            f'types={{"{name}": "{better}"}}.'
        )


CSV: Format = Format(
    "CSV",
    (".csv", ".tsv"),
    open=lambda *given: CsvFiles.open(CSV, *given),
    in_text=True,
    has_lists=False,
    unpacks=True,
)


def _is_integer(text: str | None) -> bool:
    return bool(integers_if_written_so(pa.array([text], pa.string())).type == pa.int64())


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
