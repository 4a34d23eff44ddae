"""Keys of query ids, of 8 bytes each; and rows on disk, in parts with all rows of their queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.errors import SourceError
from fastndcg.rankings.grouping import runs_of, text_of

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


def parts_of(ids: pa.Array, n_parts: int) -> npt.NDArray[Any]:
    """The part of each row."""
    if pa.types.is_run_end_encoded(ids.type):
        starts, values = runs_of(pa.chunked_array([ids]))
        return np.repeat(parts_of(values.chunk(0), n_parts), np.diff(np.append(starts, len(ids))))
    if pa.types.is_dictionary(ids.type):
        of_rows: npt.NDArray[Any] = parts_of(ids.dictionary, n_parts)[array_of(ids.indices)]
        return of_rows
    parts = mix(keys_of(ids)) % np.uint64(n_parts)
    # NumPy sorts 16 bits by counting, in linear time
    return parts.astype(np.uint16 if n_parts <= 1 << 16 else np.int64)


class Spill:
    """Rows of each part, as Arrow record batches in one temporary file.

    If the system allows it, the file has no name, so that it disappears even if the process is killed.
    """

    def __init__(self, n_parts: int, expected: int) -> None:
        self._expected = expected
        self._segments: list[list[tuple[int, int]]] = [[] for _ in range(n_parts)]
        self._schema = pa.schema([])
        self._end = 0
        import tempfile  # here, as in `files`

        try:
            self._file = tempfile.TemporaryFile(prefix="fastndcg-", suffix=".arrow")  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise self._refusal(error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError:
            if kind is None:
                raise

    def add(self, table: pa.Table, parts: npt.NDArray[Any], first_row: int) -> None:
        order = np.argsort(parts, kind="stable")
        rows = pa.array(order + first_row)
        table = pa.table([*table.take(pa.array(order)).columns, rows], names=[*table.column_names, ""])
        self._schema = table.schema
        ends = np.cumsum(np.bincount(parts, minlength=len(self._segments)))
        try:
            for part, (start, end) in enumerate(zip(np.append(0, ends), ends, strict=False)):
                if start == end:
                    continue
                for batch in table.slice(int(start), int(end - start)).combine_chunks().to_batches():
                    data = batch.serialize()
                    self._file.write(data)
                    self._segments[part].append((self._end, data.size))
                    self._end += data.size
        except OSError as error:
            raise self._refusal(error) from None

    def part(self, part: int) -> tuple[pa.Table, Int64]:
        """Rows of a part in their original order, and their row numbers."""
        batches = []
        try:
            for start, size in self._segments[part]:
                self._file.seek(start)
                data = pa.py_buffer(self._file.read(size))
                batches.append(pa.ipc.read_record_batch(data, self._schema))
        except (OSError, pa.ArrowException) as error:
            import tempfile

            raise SourceError(
                f"a temporary file in {tempfile.gettempdir()} cannot be read back: {error}. "
                "Set TMPDIR to a folder on another disk."
            ) from None
        if not batches:
            return pa.table({}), np.empty(0, np.int64)
        table = pa.Table.from_batches(batches)
        rows = array_of(table.column(table.num_columns - 1))
        return table.select(range(table.num_columns - 1)), rows

    def _refusal(self, error: OSError) -> SourceError:
        import tempfile

        return SourceError(
            f"a temporary file in {tempfile.gettempdir()} cannot be written: {error.strerror or error}. "
            f"Rows are not grouped by query, so about {max(self._expected / 1e9, 0.1):.1f} GB of them are "
            "set aside there; free so much, set TMPDIR to a folder on another disk, "
            "or sort the rows by query."
        )


# ---- keys ----

_NO_SECRET = np.uint64(0)  # of parts, whose order a user may see


def keys_of(ids: pa.Array, secret: np.uint64 = _NO_SECRET) -> UInt64:
    """A key of 64 bits for each id: the integer itself, or a hash of the text, which depends on a secret.

    >>> keys_of(pa.array(["a", "b", "a"]))[[0, 2]] == keys_of(pa.array(["a"]))
    array([ True,  True])
    """
    kind = ids.type
    if pa.types.is_dictionary(kind):
        keys: UInt64 = keys_of(ids.dictionary, secret)[array_of(ids.indices)]
        return keys
    if pa.types.is_integer(kind):
        numbers = array_of(ids)
        wide: npt.NDArray[Any] = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
        return wide.view(np.uint64)
    if pa.types.is_temporal(kind):
        ids = ids.cast(pa.int32()) if kind.bit_width == 32 else ids
        return keys_of(ids.cast(pa.int64()))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        is_bytes = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
        ids = ids if any(is_kind(kind) for is_kind in is_bytes) else ids.cast(pa.string())
    return _hash(ids.cast(pa.large_binary()), secret)


def _hash(texts: pa.Array, secret: np.uint64) -> UInt64:
    """Hashes of texts, eight bytes of all of them at a time."""
    offsets, data = text_of(texts)
    padded = np.concatenate([data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8)])
    words = np.ndarray(len(padded) - 7, np.dtype("<u8"), padded.data, strides=(1,))
    starts, left = offsets[:-1] - offsets[0], np.diff(offsets)
    hashes = mix(left.astype(np.uint64) ^ secret)
    rows = np.arange(len(texts))
    while len(rows):
        unread = left[rows] > 0
        if not unread.all():
            rows = rows[unread]
        short = np.minimum(left[rows], 8)
        word = words[starts[rows]] & _FIRST_BYTES[short]
        hashes[rows] = mix(hashes[rows] ^ word) + np.uint64(0x9E3779B97F4A7C15)
        starts[rows] += 8
        left[rows] -= 8
    return hashes


_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def mix(values: UInt64) -> UInt64:
    """Hash each number, so that each bit depends on all bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
