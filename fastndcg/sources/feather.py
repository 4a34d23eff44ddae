"""Read Arrow files (Feather) and Arrow streams batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastndcg.common.arrow_types import without_views
from fastndcg.errors import ColumnError
from fastndcg.sources.dataset import FileDataset, joined_type
from fastndcg.sources.open_file import Format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.sources.open_file import File

_FILE = b"ARROW1"  # first bytes of an Arrow file; an Arrow stream begins with four bytes 0xFF


@dataclass(frozen=True, kw_only=True)
class FeatherDataset(FileDataset):
    """Arrow files and their schemas."""

    @staticmethod
    def begin(file: File) -> pa.Schema:
        with file.open() as source:
            schema = _open(source).schema
        fields = [field.with_type(without_views(field.type)) for field in schema]
        return pa.schema(fields, metadata=schema.metadata)  # stored results keep their notation there

    def joined_type(self, name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType | None:  # noqa: ARG002
        return joined_type(one, other)

    def first_rows(self) -> tuple[pa.Table, float]:
        names = list(self.types)
        with self.files[0].open() as source:
            for batch, count in _batches(self.files[0], source, names):
                return pa.Table.from_batches([batch]), source.size() / count if count else source.tell()
        return pa.table({}), 0.0

    def parsers(self, number: int, names: Sequence[str], most: int) -> Iterator[Iterator[pa.Table]]:  # noqa: ARG002
        yield self._tables(self.files[number], names)

    def _tables(self, file: File, names: Sequence[str]) -> Iterator[pa.Table]:
        target = pa.schema([(name, self.types[name]) for name in names])
        with file.open() as source:
            for batch, _ in _batches(file, source, names):
                table = pa.Table.from_batches([batch])
                table.validate(full=True)  # pyarrow does not detect all damage while reading
                yield table.cast(target)


FEATHER: Format = Format(
    "Feather",
    (".feather", ".arrow", ".arrows", ".ipc"),
    _FILE + rb"|\xff\xff\xff\xff",
    open=lambda *arguments: FeatherDataset.open(FEATHER, *arguments),
)


def _open(source: pa.NativeFile, **options: Any) -> Any:
    """Return a reader of the file, or of the stream that begins at the current position."""
    at = source.tell()
    is_file = source.read(len(_FILE)) == _FILE
    source.seek(at)
    read = pa.ipc.open_file if is_file else pa.ipc.open_stream
    return read(source, options=pa.ipc.IpcReadOptions(use_threads=True, **options))


def _batches(file: File, source: pa.NativeFile, names: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the named columns of each batch, and the number of batches in the file; 0 for streams.

    Several streams may be concatenated.
    """
    count = None
    while count is None and (at := source.tell()) < source.size():
        known = _open(source).schema.names
        if missing := [name for name in names if name not in known]:
            raise ColumnError(f'{file.path} has a stream without the column "{missing[0]}" at byte {at:,}')
        source.seek(at)
        reader = _open(source, included_fields=[known.index(name) for name in names])
        count = getattr(reader, "num_record_batches", None)
        for batch in reader if count is None else map(reader.get_batch, range(count)):
            yield batch.select(list(names)), count or 0
