"""Rows of a CSV file, parsed by pyarrow: its header, columns of all rows or of blocks, faults of a row."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fastndcg.errors import ColumnError, SourceError
from fastndcg.sources.messages import reading
from fastndcg.sources.values import WORDS, integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from fastndcg.sources.paths import File, Stamp

_DELIMITERS = ",\t;"
_FAULT = r"(?:In CSV column #(\d+): |CSV parse error: )?(?:Row #(\d+): )?(.*)"
EXAMPLE = "query_id,relevance,score"
_LONGEST = 1 << 26  # bytes of the first line
_BLOCK = 1 << 20  # bytes that are parsed together; no row may be longer
_NULLS = [""]  # "nan" is a number, and a document may be called "NULL"


class Header(NamedTuple):
    """The first line of a file."""

    names: list[str]
    delimiter: str
    text: str
    stamp: Stamp  # of the file, taken before the header was read


def header_of(file: File) -> Header:
    """Read the names of the columns and their delimiter."""
    import pyarrow.csv as pa_csv

    with reading(file.path, "CSV"):
        stamp = file.stamp()
        text = _first_line(file).decode("utf-8-sig", "backslashreplace")
        if not text.strip():
            raise SourceError(
                f"{file.path} is empty, or begins with an empty line; "
                f'wanted the names of columns there, as in "{EXAMPLE}"'
            )
        delimiter = max(_DELIMITERS, key=text.count)  # a comma if there is no delimiter
        line = pa.py_buffer(f"{text}\n".encode())
        # by the parser that reads the rows, since parsers differ in how they read quotes
        names = pa_csv.read_csv(
            pa.BufferReader(line),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=line.size),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter),
        ).column_names
    return Header(names, delimiter, text, stamp)


def _first_line(file: File) -> bytes:
    """The text before the first line end of Unix, Windows or classic Mac OS."""
    pieces, size = [], 0
    with file.open_unpacking() as stream:
        while more := stream.read(1 << 16):
            line, *rest = re.split(rb"[\r\n]", more, maxsplit=1)
            pieces.append(line)
            size += len(line)
            if rest:
                break
            if size > _LONGEST:
                raise SourceError(
                    f"{file.path} begins with a line of more than {_LONGEST:,} bytes; "
                    f'is it a text file? Wanted the names of columns there, as in "{EXAMPLE}"'
                )
    return b"".join(pieces)


# ---- columns ----


def check_names(file: File, header: Header, names: Sequence[str]) -> None:
    """Raise `ColumnError` if the file has one of these columns more than once, or not at all."""
    for name in names:
        if name not in header.names:
            raise ColumnError(f'{file.path} has no column "{name}", which other files have')
        if header.names.count(name) > 1:
            raise ColumnError(f'{file.path} has two columns "{name}"; rename one of them')


def parse(
    file: File,
    header: Header,
    names: Sequence[str],
    types: dict[str, pa.DataType],
    *,
    use_threads: bool,
    block: int | None = None,
) -> Generator[pa.RecordBatch, None, None]:
    """Read the named columns of a file by blocks. Raises `MalformedError` if a row cannot be parsed."""
    import pyarrow.csv as pa_csv

    check_names(file, header, names)
    options = _options(header, names, types, use_threads, block)
    with (
        reading(file.path, "CSV"),
        file.unchanged(header.stamp),
        file.open_unpacking() as stream,
        _raise_malformed(),
        pa_csv.open_csv(stream, *options) as batches,
    ):
        yield from batches


def as_integers(ids: pa.ChunkedArray) -> pa.ChunkedArray:
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
        chunks.append(pa.RunEndEncodedArray.from_arrays(runs.run_ends, numbers))
    return pa.chunked_array(chunks)


def block_of(header: Header) -> int:
    """The bytes to parse together. A row is about as long as the header."""
    return max(_BLOCK, 4 * len(header.text))


def _options(
    header: Header,
    names: Sequence[str],
    types: dict[str, pa.DataType],
    use_threads: bool,
    block: int | None = None,
) -> Any:
    import pyarrow.csv as pa_csv

    return (
        pa_csv.ReadOptions(use_threads=use_threads, block_size=block or block_of(header)),
        pa_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
        pa_csv.ConvertOptions(
            include_columns=list(dict.fromkeys(names)),
            column_types=types,
            null_values=_NULLS,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


@contextmanager
def _raise_malformed() -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        fault = MalformedError(str(error))
    else:
        return
    raise fault


class MalformedError(Exception):
    """An error of pyarrow about a row, not about a file that cannot be read."""

    @property
    def is_of_length(self) -> bool:
        """Whether a row is longer than a block."""
        return "straddl" in str(self)

    def column(self, header: Header) -> str | None:
        """The column that the error is about, if pyarrow names one."""
        match = re.match(_FAULT, str(self), re.DOTALL)
        return header.names[int(match[1])] if match and match[1] else None


def fault_of(path: str, header: Header, message: str, grades: str | None) -> SourceError:
    """The error for a value that pyarrow could not read; it names the row and the column."""
    match = re.match(_FAULT, message, re.DOTALL)
    column, row, reason = match.groups() if match else (None, None, message)
    where = path if row is None else f"{path}, row {int(row):,} (the header is row 1)"
    if column is None:
        return SourceError(f"{where}: {reason}; wanted as many fields as the header has")
    name = header.names[int(column)]
    value = re.search(r"invalid value '(.*)'", reason, re.DOTALL)
    if value is None:
        return SourceError(f'{where}: column "{name}" cannot be read: {reason}; wanted UTF-8')
    return SourceError(
        f'{where}: column "{name}" has "{value[1]}"; wanted a number. Correct or drop that row',
        *((WORDS,) if name == grades else ()),
        ".",
    )
