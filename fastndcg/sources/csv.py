"""Text files of fields, separated by commas, tabs or anything else, parsed by pyarrow.

The first line of a file names its columns, unless the caller does. Lines before it are skipped if they are
comments, that is, begin with # and have another number of fields.
"""

from __future__ import annotations

import io
import re
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fastndcg.common.arrow_types import in_runs
from fastndcg.errors import ColumnError, SourceError, count_of, warn
from fastndcg.sources.dataset import LOOK, FileDataset, permissive_type
from fastndcg.sources.open_file import Format
from fastndcg.sources.text_lines import is_number
from fastndcg.tables.roles import OF_TEXT, USUAL_NAMES, fitting
from fastndcg.tables.values import WORDS, integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from fastndcg.sources.open_file import File
    from fastndcg.tables.roles import Dialect

# the most frequent one in the first line, or else blanks; commas may belong to decimals
_SEPARATORS = ("\t", ";", "|", "::", ",")
_BLANKS = r"\s+"
_INSTEAD = "\x1f"  # replaces separators of several bytes, which pyarrow does not support
_NULLS = ("NA", "N/A", "<NA>", "None", "NULL", "null")  # in columns of numbers only: they may be ids
_MOST_COMMENTS = 100  # most lines before the header
_FAULT = r"(?:In CSV column #(\d+): |CSV parse error: )?(?:Row #(\d+): )?(.*)"
_EXPECTED = 'expected column names, as in "query_id,relevance,score"'
_LONGEST = 1 << 26  # most bytes of the first line, and of a row
_SHOWN = 100  # most characters of a value in a message
_BLOCK = 1 << 18  # bytes parsed together; with four times as many, parsing took a quarter longer
_NUMBERS = (pa.null(), pa.int64(), pa.bool_(), pa.float64())


class Header(NamedTuple):
    """The first lines of a file: column names, and how fields are written."""

    names: list[str]
    sep: str
    text: str  # the first line after comments
    skipped: int  # number of lines before the first row
    decimal: str
    is_named: bool  # the caller names the columns, so that the file has no header

    @property
    def first_row(self) -> int:
        """Number of the first row in messages."""
        return self.skipped + 1

    @property
    def parsing(self) -> dict[str, Any]:
        """Options of pyarrow's parser."""
        if _is_plain(self.sep):
            return {"delimiter": self.sep, "newlines_in_values": True}
        return {"delimiter": _INSTEAD, "newlines_in_values": False, "quote_char": False}

    def open(self, file: File) -> pa.NativeFile:
        """Open the unpacked text as a stream, with separators that pyarrow supports."""
        stream = file.open_unpacking()
        if _is_plain(self.sep):
            return stream
        rest = b""

        def rewrite(block: pa.Buffer) -> bytes:
            nonlocal rest
            text = rest + bytes(block)
            end = text.rfind(b"\n") + 1 if len(block) else len(text)
            rest = text[end:]
            return _with_separators(text[:end], self.sep)

        return pa.TransformInputStream(stream, rewrite)


def _is_plain(sep: str) -> bool:
    """Return whether pyarrow supports a separator."""
    return len(sep.encode()) == 1


def _with_separators(text: bytes, sep: str) -> bytes:
    if sep != _BLANKS:
        return text.replace(sep.encode(), _INSTEAD.encode())
    text = text.replace(b"\t", b" ")  # ten times as fast as a regular expression
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    for end in (b"\n", b"\r"):
        text = text.replace(b" " + end, end).replace(end + b" ", end)
    return text.removeprefix(b" ").removesuffix(b" ").replace(b" ", _INSTEAD.encode())


def _count(line: str, sep: str) -> int:
    return len(line.split()) - 1 if sep == _BLANKS else line.count(sep)


def _separator(line: str, dialect: Dialect) -> str:
    if dialect.sep is not None:
        return dialect.sep
    expected = -1 if dialect.columns is None else len(dialect.columns) - 1
    fitting_ones = [sep for sep in (*_SEPARATORS, _BLANKS) if _count(line, sep) == expected]
    best = fitting_ones[0] if fitting_ones else max(_SEPARATORS, key=line.count)
    parts = line.split()
    has_commas = best == "," and all(re.fullmatch(r"-?\d+,\d+", each) for each in parts if "," in each)
    return _BLANKS if len(parts) > 1 and (has_commas or not line.count(best)) else best


@dataclass(frozen=True, kw_only=True)
class CsvDataset(FileDataset):
    """CSV files and their headers."""

    looks = LOOK

    @staticmethod
    def begin(file: File) -> Header:
        """Read the column names and the separator."""
        dialect, lines = file.dialect, list[str]()
        with file.open_unpacking() as stream:
            begun = io.BufferedReader(stream)
            while len(lines) < _MOST_COMMENTS and (not lines or lines[-1].startswith("#")):
                line = begun.readline(_LONGEST + 1)
                start = re.split(rb"[\r\n]", line, maxsplit=1)[0]  # Unix, Windows or classic Mac OS
                lines.append(start.decode("utf-8-sig" if not lines else "utf-8", "backslashreplace"))
                if len(lines) == 1 and (excel := re.fullmatch('"?sep=(.)"?', lines[0])):
                    dialect, lines[0] = dialect._replace(sep=dialect.sep or excel[1]), "#"
                if not line:
                    lines.pop()
                    break
        text = lines[-1] if lines else ""
        if len(text) > _LONGEST or not text.strip():
            wrong = f"begins with a line of more than {_LONGEST:,} bytes; is it a text file?"
            wrong = wrong if text.strip() else "is empty, or begins with an empty line;"
            raise SourceError(f"{file.path} {wrong} {_EXPECTED}")
        sep = _separator(text, dialect)
        skipped, plain = len(lines) - 1, [re.sub(r"^#\s+", "", line) for line in lines]
        if dialect.is_named or any(map(is_number, text.split(None if sep == _BLANKS else sep))):  # of a row
            skipped = next(at for at, line in enumerate(plain) if _count(line, sep) == _count(text, sep))
        text = lines[skipped] if dialect.is_named else plain[skipped]  # as NumPy writes a header
        header = Header([], sep, text, skipped, dialect.decimal, dialect.is_named)
        fields = _fields(header)
        if dialect.columns is None and fields[fields[0] == "" :] == _counted(fields[fields[0] == "" :]):
            header = header._replace(is_named=False)  # pandas writes a frame without names like this
        if header.is_named:
            return header._replace(names=_names(file.path, header, fields, dialect.columns))
        return header._replace(names=fields, skipped=skipped + 1)

    @staticmethod
    def schema_of(begun: Header) -> pa.Schema:
        return pa.schema([(name, pa.null()) for name in begun.names])

    def explain(self, error: ColumnError, role: str | None = None) -> ColumnError | SourceError:
        header, n = self.begun[0], len(self.names)
        if header.is_named or any(fitting(self.names, each) for each in USUAL_NAMES):
            return error
        if n == 1:
            return ColumnError(f"{error}. If something else separates its fields, pass it as sep=")
        usual = f"query_id doc_id {role} time" if role else f"query_id {'doc_id ' * (n == 4)}relevance score"
        names = usual.split()[:n] if n <= 4 else [f"field{place}" for place in range(n)]
        step = f"pass the name of each field, columns={str(names).replace(chr(39), chr(34))}"
        step += ", and grades=1, the grade of all" if role == "relevance" and n == 2 else ""
        step = (
            "write the score or the rank of each document as its third field"
            if role == "score" and n == 2
            else step
        )
        text = header.text[:120]
        if any(map(is_number, self.names)):
            return SourceError(
                f'{self.first} has no header: its first line is "{text}"; {_EXPECTED}. Or {step}.'
            )
        return ColumnError(f'{error}. If its first line, "{text}", is no header, {step}')

    # ---- types ----

    def schema_of_rows(self, number: int, names: Sequence[str]) -> pa.Schema:
        first, text = self._first_rows(number, names), self.text
        kinds = {name: first[name].type for name in names}
        for name in names:
            if name in text.ids and name not in text.types:
                kinds[name] = integers_if_written_so(first[name]).type
            elif name in text.numbers and name not in text.types and kinds[name] not in _NUMBERS:
                kinds[name] = self._numbers(number, 0, name, first[name], None).type
        return pa.schema(kinds)

    def joined_type(self, name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
        return permissive_type(one, other) or (None if name in self.text.numbers else pa.string())

    def first_rows(self) -> tuple[pa.Table, float]:
        return self._first_rows(0, list(self.types)), LOOK

    def _first_rows(self, number: int, names: Sequence[str]) -> pa.Table:
        """Parse the first block of a file, ids as text."""
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
            for place, (name, read) in enumerate(zip(table.column_names, table.columns, strict=True)):
                column, kind = read, self.types[name]
                if name in ids and kind == pa.int64():
                    column = _as_integers(read)
                    if column.type == pa.string():
                        texts = read.to_pylist()
                        row = next(row for row, text in enumerate(texts) if not _is_integer(text))
                        raise self._misfit(number, done + row, name, texts[row], pa.int64())
                elif column.type != kind and name in self.text.numbers:  # some values are NA or None
                    column = self._numbers(number, done, name, column, kind)
                if column is not read:
                    table = table.set_column(place, name, column)
            done += len(table)
            del batch
            yield table

    def _numbers(
        self, number: int, before: int, name: str, texts: pa.ChunkedArray, kind: pa.DataType | None
    ) -> pa.ChunkedArray:
        """Convert a column of numbers that was read as text because some values are NA, None or the like.

        Without `kind`, numbers are integers if all of them are whole.
        """
        import pyarrow.compute as pc

        plain = texts.cast(pa.string())
        none = pc.is_in(plain, pa.array(_NULLS, pa.string()))
        plain = pc.if_else(none, pa.nulls(1, pa.string())[0], plain)
        decimal = self.begun[number].decimal
        plain = plain if decimal == "." else pc.replace_substring(plain, decimal, ".")
        for each in (pa.int64(), pa.float64()) if kind is None else (kind,):
            with suppress(pa.ArrowInvalid):
                return plain.cast(each)
        values = plain.to_pylist()
        row = next((row for row, value in enumerate(values) if not is_number(value or "0")), 0)
        raise self._misfit(number, before + row, name, values[row] or "", kind or pa.string())

    def _parse(
        self,
        number: int,
        names: Sequence[str],
        types: Mapping[str, pa.DataType],
        block: int = _BLOCK,
        *,
        threads: bool = False,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Parse the named columns of a file block by block; blocks grow if a row is longer."""
        import pyarrow.csv as pa_csv

        file, header, done = self.files[number], self.begun[number], 0
        for name in names:
            if header.names.count(name) != 1:
                wrong = f'two columns "{name}"; rename one of them'
                wrong = wrong if name in header.names else f'no column "{name}", which other files have'
                raise ColumnError(f"{file.path} has {wrong}")
        of_lines, types = pa_csv.ParseOptions(**header.parsing), dict(types)
        block = max(block, 4 * len(header.text))  # in UTF-8
        while True:
            of_values = pa_csv.ConvertOptions(
                include_columns=list(dict.fromkeys(names)),
                column_types=types,
                null_values=["", r"\N"],  # "nan" is a number, and a document may be called "NULL"
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                decimal_point=header.decimal,
            )
            of_file = pa_csv.ReadOptions(
                use_threads=threads, block_size=block, column_names=header.names,
                skip_rows=header.skipped, skip_rows_after_names=done,
            )  # fmt: skip
            try:
                # not closed here: after an error pyarrow's threads may still read ahead, from whatever file
                # the system opens next under the same descriptor
                with pa_csv.open_csv(header.open(file), of_file, of_lines, of_values) as batches:
                    for batch in batches:
                        done += len(batch)
                        yield batch
                return
            except pa.ArrowInvalid as error:
                fault = str(error)
            column, _, value = _parts(fault)
            faulty = "" if column is None else header.names[int(column)]
            if "straddl" in fault and block < _LONGEST:
                block *= 4
            elif value in _NULLS and faulty in self.text.numbers and types.get(faulty) != pa.string():
                types[faulty] = pa.string()
            elif threads and "Row #" not in fault:  # pyarrow numbers rows only on one thread
                threads = False
            else:
                raise self._fault(number, fault, types)

    # ---- faults ----

    def _fault(self, number: int, fault: str, types: Mapping[str, pa.DataType]) -> SourceError:
        """Return the error for a row that pyarrow could not parse."""
        column, row, value = _parts(fault)
        reason = re.fullmatch(_FAULT, fault, re.DOTALL)[3]  # type: ignore[index]
        line = None if row is None else int(row) - self.begun[number].first_row
        where = self._row(number, line)
        if column is None:
            first = "the first line" if self.begun[number].is_named else "the header"
            return SourceError(f"{where}: {reason}; expected as many fields as {first} has")
        name = self.begun[number].names[int(column)]
        if value is None:
            return SourceError(f'{where}: column "{name}" cannot be read: {reason}; expected UTF-8')
        return self._misfit(number, line, name, value, types.get(name, pa.null()))

    def _row(self, number: int, row: int | None) -> str:
        path, header = self.files[number].path, self.begun[number]
        if row is None:
            return path
        of_header = "" if header.is_named else f" (the header is row {header.skipped:,})"
        return f"{path}, row {row + header.first_row:,}{of_header}"

    def _misfit(self, number: int, row: int | None, name: str, value: str, kind: pa.DataType) -> SourceError:
        """Return the error for a value that does not fit the type of its column."""
        said, text = f'{self._row(number, row)}: column "{name}" has "{value[:_SHOWN]}"', self.text
        header = self.begun[number]
        decimal = {".": ",", ",": "."}[header.decimal]
        if name in text.numbers and value.count(decimal) == 1 and is_number(value.replace(decimal, ".")):
            return SourceError(f'{said}; expected a number. Pass decimal="{decimal}".')
        if row == 0 and header.is_named and name in text.numbers:
            return SourceError(
                f"{said}; expected a number. If this line is a header, give no columns=, and name columns as "
                "it does."
            )
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
    open=lambda *arguments: CsvDataset.open(CSV, *arguments),
    options=(*OF_TEXT, "columns"),
    has_lists=False,
    unpacks=True,
)


def _fields(header: Header) -> list[str]:
    """Split the first line with the parser that reads the rows, since parsers differ about quotes."""
    import pyarrow.csv as pa_csv

    text = f"{header.text}\n".encode()
    text = text if _is_plain(header.sep) else _with_separators(text, header.sep)
    return pa_csv.read_csv(  # type: ignore[no-any-return]
        pa.BufferReader(text),
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=4 * len(text) + 2),
        parse_options=pa_csv.ParseOptions(**header.parsing),
    ).column_names


def _counted(fields: list[str]) -> list[str]:
    return [str(place) for place in range(max(len(fields), 2))]


def _names(path: str, header: Header, fields: list[str], columns: tuple[str, ...] | None) -> list[str]:
    """Return the column names of a file without header: `columns=`, or their positions."""
    names = [str(place) for place in range(len(fields))] if columns is None else list(columns)
    text = header.text[:120]
    if len(names) != len(fields):
        raise SourceError(
            f'{path} has {count_of(len(fields), "field")} in its first line, "{text}", and columns= names '
            f'{len(names)}; give each field a name, or those of one file, as in columns={{"run": [...]}}'
        )
    looks = [each in names or any(fitting([each], role) for role in USUAL_NAMES) for each in fields]
    if sum(looks) >= max(2, len(fields) - 1) and not any(map(is_number, fields)):
        how = "its columns by it" if columns is None else "no columns="
        raise SourceError(f'{path} has a header, "{text}"; give {how}, as in query="{fields[0]}"')
    if fields == _counted(fields):
        warn(
            f'{path}: the first line, "{text}", counts as a row. If it is a header, give no columns=, and '
            'name columns by it, as in query="0".'
        )
    return names


def _parts(fault: str) -> tuple[str | None, str | None, str | None]:
    """Return the column, the row and the value that an error of pyarrow names."""
    column, row, reason = re.fullmatch(_FAULT, fault, re.DOTALL).groups()  # type: ignore[union-attr]
    value = re.search(r"invalid value '(.*)'", reason, re.DOTALL)
    return column, row, None if value is None else value[1]


def _is_integer(text: str | None) -> bool:
    return bool(integers_if_written_so(pa.array([text], pa.string())).type == pa.int64())


def _as_integers(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids as run-end encoded integers if each is written like an integer, otherwise unchanged."""
    import pyarrow.compute as pc

    chunks = []
    for chunk in ids.chunks:
        runs = pc.run_end_encode(chunk)  # converting each id took four times as long
        numbers = integers_if_written_so(runs.values)
        if numbers.type != pa.int64():
            return ids
        chunks.append(in_runs(runs.run_ends, numbers))
    return pa.chunked_array(chunks) if chunks else integers_if_written_so(ids)
