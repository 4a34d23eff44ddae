"""Read rankings from JSON Lines and Arrow files, which are read whole."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import is_list
from fastndcg.common.progress import Task
from fastndcg.errors import ColumnError
from fastndcg.rankings.oddities import warn_of_oddities
from fastndcg.sources.arrow import Files, rankings_from_table
from fastndcg.sources.columns import Columns, Roles, find_columns, id_to_check, names_for
from fastndcg.sources.formats import ARROW, ARROW_FILE, JSON, Format, start_of, stream_of
from fastndcg.sources.messages import reading
from fastndcg.sources.parquet import naming

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike

# the schema of a file, and a function that reads the named columns
SchemaAndReader = tuple[pa.Schema, Callable[[Sequence[str]], pa.Table]]

# bytes of JSON that are parsed together; a block grows until its rows fit
_BLOCK, _LARGEST_BLOCK = 1 << 22, 1 << 30
_DEEPEST = 500  # levels of nested values that pyarrow, which is recursive, parses safely in any thread
_BLANK = re.compile(r"\s*")


class Opened(NamedTuple):
    """Files of JSON Lines or Arrow, the schema of the first, and a function that reads columns of all."""

    paths: list[PathLike]
    format: Format
    schema: pa.Schema
    read_table: Callable[[Sequence[str]], pa.Table]
    columns: Columns = Columns()
    ends: Sequence[int] = ()  # the number of rows up to the end of each file, once they are read

    @property
    def first(self) -> str:
        return os.fspath(self.paths[0])

    @property
    def names(self) -> list[str]:
        names: list[str] = self.schema.names
        return names

    def table(self, names: Sequence[str], *_: Any) -> pa.Table:
        """The named columns of all files."""
        return self.read_table(names)

    def choose(self, roles: Roles, *, with_doc_id: bool = False) -> Opened:
        """The same files, with the columns for these roles. Raises as `find_columns` does."""

        def holds_lists(name: str) -> bool:
            return is_list(self.schema.field(name).type)

        with naming(self.paths):
            found = find_columns(self.schema.names, roles, is_list=holds_lists, with_doc_id=with_doc_id)
        return self._replace(columns=found)

    def read(self, _: int | None = None) -> Rankings:
        """Read all files. Raises as `Rankings.from_arrow` does, and `SourceError` for unreadable files."""
        with naming(self.paths):
            table = self.read_table(self.columns.names)
            doc_id = id_to_check(self.names, self.columns) if len(self.ends) > 1 else None
            files = None
            if doc_id is not None:
                files = Files(
                    self.ends, doc_id, lambda rows: self.read_table([doc_id])[doc_id].take(pa.array(rows))
                )
            return warn_of_oddities(
                rankings_from_table(table, self.columns, files=files), names_for(self.columns)
            )


def open_files(paths: list[PathLike], files: list[File], kind: Format) -> Opened:
    """Open files of one format. Raises `SourceError` if one cannot be read."""
    with Task("Reading"):
        opened = [(_json if kind is JSON else _arrow)(file) for file in files]

    ends: list[int] = []

    def table(names: Sequence[str]) -> pa.Table:
        tables: list[pa.Table] = []
        for file, (schema, read) in zip(files, opened, strict=True):
            for name in names:
                if name not in schema.names:
                    raise ColumnError(f'{file.path} has no column "{name}", which other files have')
            with reading(file.path, kind.name):
                tables.append(read(names))
                tables[-1].validate(full=True)  # finds damage that pyarrow does not notice while it reads
        ends[:] = np.cumsum([len(each) for each in tables]).tolist()
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")

    return Opened(paths, kind, opened[0][0], table, ends=ends)


def _json(file: File) -> SchemaAndReader:
    with reading(file.path, JSON.name):
        start = start_of(file)[0].lstrip(b"\xef\xbb\xbf \t\r\n")
        line, newline, _ = start.partition(b"\n")
        is_lines = start.startswith(b"{") and (not newline or line.rstrip().endswith(b"}"))
        rows = None if is_lines else _rows_of_values(file)
        if is_lines:
            _check_depth(file)
        table = _parse(file, rows)
        # pyarrow reads texts that look like times as times, and different texts may become the same time
        fields = {field.name: field.with_type(_without_times(field.type)) for field in table.schema}
        if texts := [field for name, field in fields.items() if field.type != table.schema.field(name).type]:
            table = _parse(file, rows, explicit_schema=pa.schema(texts)).select(table.column_names)
    return table.schema, table.select


def _rows_of_values(file: File) -> pa.Buffer:
    """The objects of a file, one on each line, from arrays of objects or objects of several lines."""
    with stream_of(file) as stream:
        text = stream.read().decode("utf-8-sig")
    decoder, at, rows = json.JSONDecoder(), 0, []
    while (at := _BLANK.match(text, at).end()) < len(text):  # type: ignore[union-attr] # it always matches
        value, at = decoder.raw_decode(text, at)
        rows += value if isinstance(value, list) else [value]
    return pa.py_buffer("\n".join(map(json.dumps, rows)).encode())


def _check_depth(file: File) -> None:
    """Raise `RecursionError` for a line whose values are nested so deeply that pyarrow would crash."""
    with stream_of(file) as stream, io.BufferedReader(stream) as lines:
        for line in lines:
            if line.count(b"{") + line.count(b"[") > _DEEPEST:
                json.loads(line)


def _parse(file: File, rows: pa.Buffer | None, block: int = _BLOCK, **options: Any) -> pa.Table:
    import pyarrow.json as pa_json

    with stream_of(file) if rows is None else pa.BufferReader(rows) as stream:
        try:
            return pa_json.read_json(
                stream,
                read_options=pa_json.ReadOptions(block_size=block),
                parse_options=pa_json.ParseOptions(**options),
            )
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error) or block >= _LARGEST_BLOCK:
                raise
    return _parse(file, rows, block << 4, **options)


def _without_times(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    return pa.list_(_without_times(kind.value_type)) if is_list(kind) else kind


def _arrow(file: File) -> SchemaAndReader:
    def open_ipc(stream: pa.NativeFile, **options: Any) -> Any:
        is_file = stream.read(len(ARROW_FILE)) == ARROW_FILE
        stream.seek(0)
        found = pa.ipc.IpcReadOptions(use_threads=True, **options)
        return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream, options=found)

    def read(names: Sequence[str]) -> pa.Table:
        places = [schema.get_field_index(name) for name in names]
        with file.filesystem.open_input_file(file.path) as stream:
            return open_ipc(stream, included_fields=places).read_all().select(names)

    with reading(file.path, ARROW.name), file.filesystem.open_input_file(file.path) as stream:
        schema = open_ipc(stream).schema
    return schema, read
