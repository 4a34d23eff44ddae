"""Read rankings from CSV and tab-separated files, by pyarrow. The first line of a file names its columns."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from fastndcg.common.progress import Task
from fastndcg.errors import ColumnError, SourceError
from fastndcg.rankings.oddities import warn_of_oddities
from fastndcg.sources.arrow import Files, integers_if_written_so, rankings_from_table
from fastndcg.sources.columns import Columns, Roles, find_columns, id_to_check, names_for, with_roles
from fastndcg.sources.formats import CSV, is_number, stream_of
from fastndcg.sources.messages import reading
from fastndcg.sources.parquet import as_list, naming, threads_of
from fastndcg.sources.values import WORDS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.paths import File, Stamp
    from fastndcg.typing import Path as PathLike
    from fastndcg.typing import RoleKeywords

_DELIMITERS = ",\t;"
_FAULT = r"(?:In CSV column #(\d+): |CSV parse error: )?(?:Row #(\d+): )?(.*)"
_EXAMPLE = "query_id,relevance,score"
_LONGEST = 1 << 26  # bytes of the first line
_BLOCK = 1 << 20  # bytes that are parsed together; no row may be longer
_NULLS = [""]  # "nan" is a number, and a document may be called "NULL"


@with_roles
def read_csv(
    path: PathLike | Iterable[PathLike], *, threads: int | None = None, **roles: Unpack[RoleKeywords]
) -> Rankings:
    r"""Read rankings from CSV or tab-separated files with a row for each document.

    Ids and kept columns are integers if every value of the column is written like one, without leading zeros;
    otherwise they are text, so that 007 stays 007. An empty field is null.

    Parameters
    ----------
    path : str, path, or several of them
        A file, plain, gzip, bzip2 or Zstandard; a pattern with `*`, `?`, `[...]` or `**`; or a URI, as in
        `s3://bucket/predictions.csv`. The first line of each file has the names of columns. Fields are
        separated by commas, tabs or semicolons, and may be quoted.
    query, relevance, score, keep, weight, doc_id, is_judged, propensity, nan, rank, ascending
        As in `read_parquet`.
    unjudged, grades
        As in `read_parquet`.
    intents
        CSV has no lists, so `intents` is refused.
    threads : int, optional
        1 reads on the calling thread; otherwise pyarrow's threads read. The result does not depend on it.

    Returns
    -------
    Rankings
        Queries in order of first appearance.

    Raises
    ------
    SourceError
        A path that does not exist or cannot be read; a file without a header; a row with another number of
        fields, or with text where a number is needed.
    ColumnError
        A column is missing, or several columns could play a role.
    InputError, InputTypeError
        All that `Rankings.from_arrow` refuses. Each message names the path.

    See Also
    --------
    read_parquet : read the same columns from Parquet.
    read_qrels_run : read judgments and predictions from two files.
    evaluate : compute measures of the rankings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.csv").write_text("qid,label,score\n007,1,0.5\n7,0,0.1\n007,2,0.9\n")
    ...     rankings = read_csv(f"{folder}/a.csv")
    >>> rankings.queries["qid"].to_pylist(), rankings.offsets
    (['007', '7'], array([0, 2, 3]))
    """
    threads_of(threads)
    return open_csv(path).choose(Roles.of(roles, "read_csv")).read(threads)


class Opened(NamedTuple):
    """The files of a path, listed once, and the header of each, read once."""

    paths: list[PathLike]
    files: list[File]
    headers: list[Header]
    columns: Columns = Columns()

    @property
    def first(self) -> str:
        return self.files[0].path

    @property
    def names(self) -> list[str]:
        return self.headers[0].names

    @property
    def first_row(self) -> int:
        """The number of the first row in messages: 2 after the header of one file, 0 for several files."""
        return 2 if len(self.files) == 1 else 0

    def table(
        self, names: Sequence[str], numbers: Sequence[str], threads: int | None, grades: str | None = None
    ) -> pa.Table:
        """The named columns of all files, as numbers or as text. `grades` may hold words."""
        texts = [name for name in names if name not in numbers]
        tables = [
            read_columns(file, header, names, texts, numbers, threads, grades)
            for file, header in zip(self.files, self.headers, strict=True)
        ]
        return pa.concat_tables(tables, promote_options="permissive")

    @property
    def size(self) -> int:
        """Bytes of all files on disk."""
        return sum(header.stamp.size or 0 for header in self.headers)

    @property
    def ids(self) -> set[str]:
        """The columns of ids: integers if all values are written like integers, and text otherwise."""
        columns = self.columns
        return {name for name in (columns.query, columns.doc_id, *columns.keep) if name is not None}

    def choose(self, roles: Roles, *, with_doc_id: bool = False) -> Opened:
        """The same files, with the columns for these roles. Raises as `find_columns` does."""
        file, header = self.files[0], self.headers[0]
        if roles.intents is not None:
            raise ColumnError(
                f"{file.path} is CSV, which has no lists; give a column of intents in Parquet, "
                "or judgments and a run"
            )
        try:
            return self._replace(columns=find_columns(header.names, roles, with_doc_id=with_doc_id))
        except ColumnError as error:
            raise no_such_columns(file.path, header, error.within(f"{file.path}: ")) from None

    def read(self, threads: int | None) -> Rankings:
        """Read all files. Raises as `read_csv` does."""
        columns = self.columns
        ids = self.ids
        texts = ids if columns.grades is None else {*ids, columns.relevance}
        numbers = [name for name in columns.names if name not in texts and name != columns.is_judged]
        with Task("Reading"):
            tables = [
                read_columns(file, header, columns.names, texts, numbers, threads, columns.relevance)
                for file, header in zip(self.files, self.headers, strict=True)
            ]
        table = pa.concat_tables(tables, promote_options="permissive")
        with naming(self.paths):
            for name in ids:
                table = table.set_column(table.column_names.index(name), name, as_integers(table[name]))
            ends = np.cumsum([len(each) for each in tables]).tolist()
            doc_id = id_to_check(self.names, columns) if len(ends) > 1 else None
            files = None if doc_id is None else Files(ends, doc_id, partial(self._texts, doc_id, threads))
            rankings = rankings_from_table(table, columns, numbers=self.first_row, files=files)
            return warn_of_oddities(rankings, names_for(columns))

    def _texts(self, name: str, threads: int | None, rows: Any) -> pa.ChunkedArray:
        """Rows of a column as text."""
        return self.table([name], (), threads)[name].take(pa.array(rows))


def open_csv(path: PathLike | Iterable[PathLike]) -> Opened:
    """Find the files of a path, and read their headers. Raises as `read_csv` does."""
    from fastndcg.sources.paths import find_files

    paths = as_list(path)
    return open_files(paths, find_files(paths, CSV))


def open_files(paths: list[PathLike], files: list[File]) -> Opened:
    return Opened(paths, files, [header_of(file) for file in files])


# ---- files and their headers ----


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
                f'wanted the names of columns there, as in "{_EXAMPLE}"'
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
    with stream_of(file) as stream:
        while more := stream.read(1 << 16):
            line, *rest = re.split(rb"[\r\n]", more, maxsplit=1)
            pieces.append(line)
            size += len(line)
            if rest:
                break
            if size > _LONGEST:
                raise SourceError(
                    f"{file.path} begins with a line of more than {_LONGEST:,} bytes; "
                    f'is it a text file? Wanted the names of columns there, as in "{_EXAMPLE}"'
                )
    return b"".join(pieces)


def no_such_columns(path: str, header: Header, error: ColumnError) -> ColumnError | SourceError:
    """The error for a missing column: `error`, or one that says that the first line is not a header."""
    if any(map(is_number, header.names)):
        return SourceError(
            f'{path} has no header: its first line is "{header.text[:120]}"; '
            f'wanted the names of columns there, as in "{_EXAMPLE}"'
        )
    return error


# ---- columns ----


def read_columns(
    file: File,
    header: Header,
    names: Sequence[str],
    texts: Iterable[str],
    numbers: Iterable[str],
    threads: int | None,
    grades: str | None = None,
) -> pa.Table:
    """Read columns: `texts` as text, `numbers` as numbers, and others with the types that pyarrow infers.

    `grades` is the column that may hold words, for the message about a value that is not a number.
    """
    check_names(file, header, names)
    types = dict.fromkeys(texts, pa.string())
    try:
        table = _read(file, header, names, types, threads != 1)
        if unlike := [name for name in numbers if not _holds_numbers(table[name].type)]:
            # this raises an error that names the row and the value that is not a number
            table = _read(file, header, names, types | dict.fromkeys(unlike, pa.float64()), False)
        return table
    except MalformedError as error:
        fault = str(error)
    try:  # pyarrow numbers rows only on one thread
        _read(file, header, names, types | dict.fromkeys(numbers, pa.float64()), False)
    except MalformedError as error:
        fault = str(error)
    raise fault_of(file.path, header, fault, grades)


def check_names(file: File, header: Header, names: Sequence[str]) -> None:
    """Raise `ColumnError` if the file has one of these columns more than once, or not at all."""
    for name in names:
        if name not in header.names:
            raise ColumnError(f'{file.path} has no column "{name}", which other files have')
        if header.names.count(name) > 1:
            raise ColumnError(f'{file.path} has two columns "{name}"; rename one of them')


def _holds_numbers(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)
    )


def _read(
    file: File, header: Header, names: Sequence[str], types: dict[str, pa.DataType], use_threads: bool
) -> pa.Table:
    import pyarrow.csv as pa_csv

    with (
        reading(file.path, "CSV"),
        file.unchanged(header.stamp),
        stream_of(file) as stream,
        _raise_malformed(),
    ):
        return pa_csv.read_csv(stream, *_options(header, names, types, use_threads))


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
        stream_of(file) as stream,
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
