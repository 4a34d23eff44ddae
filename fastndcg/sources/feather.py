"""Arrow files and streams, as Feather is one: read by record batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastndcg.common.arrow_types import without_views
from fastndcg.sources.dataset import OpenedFiles, in_tables
from fastndcg.sources.open_file import Format, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.sources.paths import File
    from fastndcg.sources.prefetch import Reader

_FILE = b"ARROW1"  # an Arrow file begins so, and an Arrow stream with four bytes 0xFF


@dataclass(frozen=True, kw_only=True)
class FeatherFiles(OpenedFiles):
    """Arrow files and their schemas."""

    @staticmethod
    def begin(file: File) -> pa.Schema:
        with file.filesystem.open_input_file(file.path) as stream:
            return _open(stream).schema

    def schemas(self, names: Sequence[str]) -> Iterator[pa.Schema]:  # noqa: ARG002
        for schema in self.begun:
            yield pa.schema([(field.name, without_views(field.type)) for field in schema])

    def first_rows(self) -> tuple[pa.Table, float]:
        file, names = self.files[0], list(self.types)
        with reading(file.path, FEATHER.name), file.filesystem.open_input_file(file.path) as stream:
            reader = _open(stream, self.begun[0], names)
            table = next(_tables(reader, names), pa.Table.from_batches([], self.begun[0]))
            batches = getattr(reader, "num_record_batches", 0)
            return table, (self.stamps[0].size or 1) / batches if batches else stream.tell()

    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:
        yield self._reader(number, names, most)

    def _reader(self, number: int, names: Sequence[str], most: int) -> Reader:
        file, target = self.files[number], pa.schema([(name, self.types[name]) for name in names])
        with (
            reading(file.path, FEATHER.name),
            file.unchanged(self.stamps[number]),
            file.filesystem.open_input_file(file.path) as stream,
        ):
            tables = _tables(_open(stream, self.begun[number], names), names)
            yield from in_tables((each.cast(target) for each in tables), most)


FEATHER: Format = Format(
    "Feather",
    (".feather", ".arrow", ".arrows", ".ipc"),
    _FILE + rb"|\xff\xff\xff\xff",
    open=lambda *given: FeatherFiles.open(FEATHER, *given),
)


def _open(stream: pa.NativeFile, schema: pa.Schema | None = None, names: Sequence[str] = ()) -> Any:
    """A reader of the named columns, or of all."""
    is_file = stream.read(len(_FILE)) == _FILE
    stream.seek(0)
    fields = {} if schema is None else {"included_fields": [schema.get_field_index(name) for name in names]}
    options = pa.ipc.IpcReadOptions(use_threads=True, **fields)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream, options=options)


def _tables(reader: Any, names: Sequence[str]) -> Iterator[pa.Table]:
    """The named columns of each batch, checked: pyarrow does not notice all damage while it reads."""

    def checked(batch: pa.RecordBatch) -> pa.Table:
        table = pa.Table.from_batches([batch]).select(names)
        table.validate(full=True)
        return table

    count = getattr(reader, "num_record_batches", None)  # of files, not of streams
    return map(checked, reader if count is None else map(reader.get_batch, range(count)))
