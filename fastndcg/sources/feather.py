"""Arrow files and streams, as Feather is one: read by record batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastndcg.sources.opened import OpenedFiles, in_tables
from fastndcg.sources.opening import Format, reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike

_FILE = b"ARROW1"  # an Arrow file begins so, and an Arrow stream with four bytes 0xFF
_ROWS = 1 << 18  # of a table: small batches are put together


def open_files(paths: list[PathLike], files: list[File], threads: int) -> FeatherFiles:
    """Read the schema of each file, once."""
    schemas, stamps = [], []
    for file in files:
        with reading(file.path, FEATHER.name):
            stamps.append(file.stamp())
            with file.filesystem.open_input_file(file.path) as stream:
                schemas.append(_open(stream).schema)
    return FeatherFiles(
        format=FEATHER,
        paths=paths,
        threads=threads,
        schema=schemas[0],
        files=files,
        schemas=schemas,
        stamps=stamps,
    )


FEATHER = Format(
    "Feather", (".feather", ".arrow", ".arrows", ".ipc"), _FILE + rb"|\xff\xff\xff\xff", open=open_files
)


@dataclass(frozen=True, kw_only=True)
class FeatherFiles(OpenedFiles):
    """Arrow files and their schemas."""

    def size(self) -> tuple[int, float]:
        """Estimated from the first batch of the first file."""
        file = self.files[0]
        with reading(file.path, FEATHER.name), file.filesystem.open_input_file(file.path) as stream:
            reader = _open(stream, self.schemas[0], list(self.types))
            batch = next(_batches(reader), None)
            if batch is None or not len(batch):
                return 0, 4.0
            size = self.stamps[0].size or 1
            share = 1 / getattr(reader, "num_record_batches", size / max(stream.tell(), 1))
        times = self.n_bytes / size / share
        return int(len(batch) * times), batch.nbytes / len(batch) + 4

    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:
        yield self._reader(number, names, min(most, _ROWS))

    def _reader(self, number: int, names: Sequence[str], most: int) -> Reader:
        file, schema = self.files[number], self.schemas[number]
        with (
            reading(file.path, FEATHER.name),
            file.unchanged(self.stamps[number]),
            file.filesystem.open_input_file(file.path) as stream,
        ):
            batches = _batches(_open(stream, schema, names))
            for table in in_tables((pa.Table.from_batches([each]).select(names) for each in batches), most):
                table.validate(full=True)  # finds damage that pyarrow does not notice while it reads
                yield table


def _open(stream: pa.NativeFile, schema: pa.Schema | None = None, names: Sequence[str] = ()) -> Any:
    """A reader of the named columns, or of all."""
    is_file = stream.read(len(_FILE)) == _FILE
    stream.seek(0)
    fields = {} if schema is None else {"included_fields": [schema.get_field_index(name) for name in names]}
    options = pa.ipc.IpcReadOptions(use_threads=True, **fields)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream, options=options)


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    count = getattr(reader, "num_record_batches", None)  # of files, not of streams
    return iter(reader) if count is None else map(reader.get_batch, range(count))
