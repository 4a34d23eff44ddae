"""Read JSON Lines with pyarrow, a block of lines at a time. Arrays of objects are rewritten to lines first.

Columns and their types are inferred from the first rows.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import is_list
from fastndcg.errors import SourceError
from fastndcg.sources.dataset import LOOK, FileDataset
from fastndcg.sources.open_file import Format, MemoryFile
from fastndcg.sources.text_lines import whole_lines
from fastndcg.tables.values import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.sources.open_file import File

_START = 1 << 16  # bytes that show whether each line is an object
_BLOCK = 1 << 22  # bytes parsed together; a block grows until it has a line
_LINE = 64  # bytes of a short line
_SHOWN = 100  # most characters of a value in a message
_DEEPEST = 500  # levels of nesting that pyarrow, which recurses, parses safely in any thread
_BLANK = re.compile(r"\s*")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True)
class JsonDataset(FileDataset):
    """Files of JSON Lines, and the columns of their first rows."""

    in_blocks = True

    @staticmethod
    def begin(file: File) -> pa.Schema:
        block = _first_lines(file)
        try:
            inferred = _parse(block).schema
        except pa.ArrowInvalid as error:
            raise _fault(file, block, None, 0, error) from None
        return pa.schema([(field.name, _without_times(field.type)) for field in inferred])

    def first_rows(self) -> tuple[pa.Table, float]:
        block = _first_lines(self.files[0])
        return _parse(block, pa.schema(self.types)), len(block)

    def parsers(self, number: int, names: Sequence[str], most: int) -> Iterator[Iterator[pa.Table]]:
        file, before = self.files[number], 0
        target = pa.schema([(name, self.types[name]) for name in names])
        for block in _blocks(file, min(_BLOCK, most * _LINE)):
            yield _tables(file, block, target, before)
            before += block.count(b"\n")


JSON: Format = Format(
    "JSON Lines",
    (".jsonl", ".ndjson", ".json"),
    rb"(?:\xef\xbb\xbf)?\s*\[?\s*\{",
    open=lambda paths, files, threads: JsonDataset.open(JSON, paths, [*map(_with_lines, files)], threads),
    options=("types",),
    unpacks=True,
)


def _with_lines(file: File) -> File:
    """Return a file with one object per line, also for arrays of objects and objects of several lines."""
    start = file.start(_START)[0].removeprefix(_BOM).lstrip()
    line, newline, _ = start.partition(b"\n")
    if start.startswith(b"{") and (not newline or line.rstrip().endswith(b"}")):
        return file

    def read() -> bytes:
        with file.open_unpacking() as stream:
            text = stream.read().decode("utf-8-sig")
        decoder, at, rows = json.JSONDecoder(), 0, []
        while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr] # it always matches
            value, at = decoder.raw_decode(text, at)
            rows += value if isinstance(value, list) else [value]
        return "\n".join(map(json.dumps, rows)).encode()

    return file._replace(filesystem=_Objects(file.path, read))


class _Objects(MemoryFile):
    """A file in memory whose lines are objects of another layout."""


def _blocks(file: File, size: int) -> Iterator[bytes]:
    """Yield whole lines of a file, about `size` bytes at a time."""
    with file.open_unpacking() as stream:
        yield from (block for block in whole_lines(stream, size) if not block.isspace())


def _first_lines(file: File) -> bytes:
    start, _ = file.start(LOOK)
    return next(_blocks(file, LOOK)) if len(start) == LOOK else start + b"\n"


def _tables(file: File, block: bytes, schema: pa.Schema, before: int) -> Iterator[pa.Table]:
    try:
        table = _parse(block, schema)
    except pa.ArrowInvalid as error:
        raise _fault(file, block, schema, before, error) from None
    yield table


def _parse(block: bytes, schema: pa.Schema | None = None) -> pa.Table:
    """Parse rows, with the columns of a schema or with all columns."""
    import pyarrow.json as pa_json

    _check_depth(block)
    chosen = {} if schema is None else {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
    table = pa_json.read_json(
        pa.BufferReader(b"{}\n" + block.removeprefix(_BOM)),  # a null as the first row would crash pyarrow
        read_options=pa_json.ReadOptions(use_threads=False, block_size=len(block) + 4),
        parse_options=pa_json.ParseOptions(**chosen),
    ).slice(1)
    if schema is not None:
        table = table.select(schema.names)
        table.validate(full=True)  # checks UTF-8
    return table


def _fault(
    file: File, block: bytes, schema: pa.Schema | None, before: int, error: pa.ArrowInvalid
) -> Exception:
    """Return the error for the first line of a block that cannot be parsed; `before` lines precede it."""

    def is_faulty(text: bytes, schema: pa.Schema | None) -> bool:
        try:
            _parse(text, schema)
        except pa.ArrowInvalid:
            return True
        return False

    lines = block.splitlines(keepends=True)
    ends = range(len(lines) - 1)
    row = bisect_left(ends, True, key=lambda row: is_faulty(b"".join(lines[: row + 1]), schema))
    unit = "object" if isinstance(file.filesystem, _Objects) else "line"
    line, where = lines[row], f"{unit} {before + row + 1:,}"
    fields = [] if schema is None or is_faulty(line, pa.schema([])) else schema
    for field in (each for each in fields if is_faulty(line, pa.schema([each]))):
        value, kind = json.loads(line.decode(errors="replace"))[field.name], field.type
        expected = "string in UTF-8" if kind == pa.string() else kind
        said = (
            f'{file.path}, {where}: column "{field.name}" has {json.dumps(value)[:_SHOWN]}; '
            f"expected {expected}"
        )
        is_wider = kind == pa.null() or (kind == pa.int64() and isinstance(value, float))
        better = "string" if isinstance(value, str) else "float64"
        step = f', the type of the first rows; give another, as in types={{"{field.name}": "{better}"}}'
        return SourceError(f"{said}{step if is_wider else ''}.")
    reason = re.sub(r" in row \d+$", "", first_line(error)).removeprefix("JSON parse error: ")
    reason = re.sub(r"Column\(/(.*?)\)", r'column "\1"', reason)
    return SourceError(
        f"{file.path}, {where}: {reason}; expected one object per line, with values of one type per column"
    )


def _check_depth(block: bytes) -> None:
    """Raise `RecursionError` for a line that is nested so deeply that pyarrow would crash."""
    if block.count(b"{") + block.count(b"[") <= _DEEPEST:
        return
    data = np.frombuffer(block, np.uint8)
    opens = np.flatnonzero((data == ord("{")) | (data == ord("[")))
    ends = np.flatnonzero(data == ord("\n"))
    for line in np.flatnonzero(np.bincount(np.searchsorted(ends, opens)) > _DEEPEST).tolist():
        json.loads(block.split(b"\n")[line])


def _without_times(kind: pa.DataType) -> pa.DataType:
    """Replace timestamps by strings: pyarrow infers them from text, and different text may become equal."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    return pa.list_(_without_times(kind.value_type)) if is_list(kind) else kind
