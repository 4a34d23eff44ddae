"""JSON Lines, parsed by pyarrow a block of lines at a time; arrays of objects become lines first.

Which columns there are, and of which types, is known only once all rows were seen: files are parsed for that,
and again for the values of the chosen columns, unless the first tables are small and have their types.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import is_list
from fastndcg.common.progress import Task
from fastndcg.sources.ahead import decoded_ahead
from fastndcg.sources.joined import permissive_type
from fastndcg.sources.lines import whole_lines
from fastndcg.sources.opened import OpenedFiles, in_tables
from fastndcg.sources.opening import Format, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.paths import File, Stamp
    from fastndcg.typing import Path as PathLike

_LOOK = 1 << 16  # bytes that show whether a file has an object on each line
_BLOCK = 1 << 22  # bytes that are parsed together; a block grows until it has a line
_KEPT = 1 << 27  # bytes of a file's first tables that are kept
_DEEPEST = 500  # levels of nested values that pyarrow, which is recursive, parses safely in any thread
_BLANK = re.compile(r"\s*")
_BOM = b"\xef\xbb\xbf"


def open_files(paths: list[PathLike], files: list[File], threads: int) -> JsonFiles:
    """Find the columns of each file, by parsing all of its rows."""
    stamps, seen = [], []
    with Task("Reading"):
        for file in files:
            with reading(file.path, JSON.name):
                stamps.append(file.stamp())
                seen.append(_look_through(file, stamps[-1], threads))
    return JsonFiles(
        format=JSON,
        paths=paths,
        threads=threads,
        decoders=threads,
        schema=seen[0].schema,
        files=files,
        stamps=stamps,
        schemas=[each.schema for each in seen],
        ends=np.cumsum([each.rows for each in seen]).tolist(),
        seen=seen,
    )


JSON = Format(
    "JSON Lines",
    (".jsonl", ".ndjson", ".json"),
    rb"(?:\xef\xbb\xbf)?\s*\[?\s*\{",
    open=open_files,
    in_text=True,
    unpacks=True,
)


class Seen(NamedTuple):
    """What is known of a file once all of its rows were seen."""

    schema: pa.Schema
    rows: int
    sizes: Counter[str]  # bytes of the values of each column
    lines: pa.Buffer | None  # the rows as lines, where the file has none
    tables: list[pa.Table]  # the rows, if they are few and all blocks have the same types


@dataclass(frozen=True, kw_only=True)
class JsonFiles(OpenedFiles):
    """Files of JSON Lines, and what is known of each."""

    seen: list[Seen]

    is_exact = True

    def size(self) -> tuple[int, float]:
        rows = self.ends[-1]
        return rows, sum(each.sizes[name] for each in self.seen for name in self.types) / max(rows, 1) + 4

    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:
        file, stamp, seen = self.files[number], self.stamps[number], self.seen[number]
        schema = pa.schema([(name, self.types[name]) for name in names])
        if seen.tables and all(seen.schema.field(name).type == self.types[name] for name in names):
            return iter([in_tables([table.select(names)], most) for table in seen.tables])
        size = min(_BLOCK, most * (1 + (stamp.size or 1) // max(seen.rows, 1)))
        return (_reader(file, block, schema, most) for block in _blocks(file, stamp, seen.lines, size))


def _reader(file: File, block: bytes, schema: pa.Schema, most: int) -> Reader:
    with reading(file.path, JSON.name):
        table = _parse(block, explicit_schema=schema, unexpected_field_behavior="ignore").select(schema.names)
        table.validate(full=True)
    yield from in_tables([table], most)


def _look_through(file: File, stamp: Stamp, threads: int) -> Seen:
    """Parse all rows for their columns. Raises what pyarrow does."""
    start = file.start(_LOOK)[0].removeprefix(_BOM).lstrip()
    line, newline, _ = start.partition(b"\n")
    is_lines = start.startswith(b"{") and (not newline or line.rstrip().endswith(b"}"))
    lines = None if is_lines else _lines_of_values(file)
    rows, sizes, kept = 0, Counter[str](), list[pa.Table]()

    def look(block: bytes) -> Reader:
        _check_depth(block)
        yield _parse(block)

    types: dict[str, pa.DataType] = {}
    readers = (look(block) for block in _blocks(file, stamp, lines, _BLOCK))
    with closing(decoded_ahead(readers, threads)) as tables:
        for table in tables:
            rows += len(table)
            sizes.update({name: table[name].nbytes for name in table.column_names})
            if sizes.total() <= _KEPT:
                kept.append(table)
            for found in table.schema:
                # pyarrow reads texts that look like times as times, and different texts may become the same
                kind = _without_times(found.type)
                known = types.setdefault(found.name, kind)
                joined = permissive_type(known, kind)
                if joined is not None:
                    types[found.name] = joined
                elif not (pa.types.is_struct(known) and pa.types.is_struct(kind)):  # which play no role
                    raise pa.ArrowInvalid(f'column "{found.name}" changes from {known} to {kind}')
    schema = pa.schema(list(types.items()))
    is_kept = sizes.total() <= _KEPT and all(table.schema.equals(schema) for table in kept)
    for table in kept if is_kept else ():
        table.validate(full=True)
    return Seen(schema, rows, sizes, lines, kept if is_kept else [])


def _blocks(file: File, stamp: Stamp, lines: pa.Buffer | None, size: int) -> Iterator[bytes]:
    """Whole lines of a file, about `size` bytes of them at a time."""
    with (
        reading(file.path, JSON.name),
        file.unchanged(stamp),
        file.open_unpacking() if lines is None else pa.BufferReader(lines) as stream,
    ):
        yield from (block for block in whole_lines(stream, size) if not block.isspace())


def _parse(block: bytes, **options: Any) -> pa.Table:
    import pyarrow.json as pa_json

    return pa_json.read_json(
        pa.BufferReader(block),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pa_json.ParseOptions(**options),
    )


def _lines_of_values(file: File) -> pa.Buffer:
    """The objects of a file, one on each line, from arrays of objects or objects of several lines."""
    with file.open_unpacking() as stream:
        text = stream.read().decode("utf-8-sig")
    decoder, at, rows = json.JSONDecoder(), 0, []
    while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr] # it always matches
        value, at = decoder.raw_decode(text, at)
        rows += value if isinstance(value, list) else [value]
    return pa.py_buffer("\n".join(map(json.dumps, rows)).encode())


def _check_depth(block: bytes) -> None:
    """Raise `RecursionError` for a line whose values are nested so deeply that pyarrow would crash."""
    if block.count(b"{") + block.count(b"[") <= _DEEPEST:
        return
    data = np.frombuffer(block, np.uint8)
    opens = np.flatnonzero((data == ord("{")) | (data == ord("[")))
    ends = np.flatnonzero(data == ord("\n"))
    for line in np.flatnonzero(np.bincount(np.searchsorted(ends, opens)) > _DEEPEST).tolist():
        json.loads(block.split(b"\n")[line])


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    return pa.list_(_without_times(kind.value_type)) if is_list(kind) else kind
