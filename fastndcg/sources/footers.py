"""Footers of Parquet files: read from their bytes, and checked for consistency.

pyarrow ends the process where it is asked for a column of a row group whose footer is damaged. So a footer is read here: first by
pyarrow, which refuses most damage, then once more from the same bytes, without believing any of them. `Footer.check` compares what
it says of the columns that will be read with the row groups, the schema and the size of the file.

Format: Thrift's compact protocol, https://parquet.apache.org/docs/file-format/metadata/
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Int64 = npt.NDArray[np.int64]

# columns of a table of chunks
(
    TYPE, CODEC, VALUES, BYTES, STORED, DATA, DICTIONARY, ENCODINGS,
    TEXT_SIZE, REPETITIONS, DEFINITIONS,  # of its size statistics: whether there is one of texts, and lengths of histograms
    SECRET,  # whether it is encrypted
    PLACES,
) = range(13)  # fmt: skip
_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_BY_CODES = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8  # encodings that pyarrow reads as a dictionary
_ABSENT = -1
_TAIL = 1 << 16  # bytes read at once: most footers are shorter
_MAGIC = b"PAR1"
# values of a chunk that are believed, and those for each byte of a larger one: others are counted page by page
_BELIEVED, _BELIEVED_OF_A_BYTE = 1 << 20, 1 << 12
_NESTED = 60  # structures and lists in one another
_BOOLEANS, _BYTE, _INT16, _INT32, _INT64, _FLOAT64, _TEXT, _LIST, _SET, _MAP, _STRUCTURE = (
    (1, 2), 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
)  # fmt: skip


class Footer(NamedTuple):
    """A footer as pyarrow holds it, and its numbers."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    at: int  # where it begins in the file
    rows: list[int]  # of each row group
    chunks: (
        Int64  # (row groups, columns, PLACES): what is said of each chunk, ENCODINGS as bits by their numbers
    )

    @property
    def n_rows(self) -> int:
        return sum(self.rows)

    def places_of(self, names: Collection[str]) -> list[int]:
        """Columns of the file that belong to the named ones, which may be nested."""
        schema = self.metadata.schema
        paths = [f"{schema.column(place).path}." for place in range(self.metadata.num_columns)]
        return [
            place for place, path in enumerate(paths) if any(path.startswith(f"{name}.") for name in names)
        ]

    def is_coded(self, name: str) -> bool:
        """Whether all pages of a column can be read as codes of a dictionary."""
        encodings = self.chunks[:, self.places_of([name]), ENCODINGS]
        return not (encodings & ~_BY_CODES).any()

    def starts(self, place: int) -> Int64:
        """Where the chunks of a column begin: with their dictionary, if they have one before their data."""
        data, dictionary = self.chunks[:, place, DATA], self.chunks[:, place, DICTIONARY]
        return np.where((dictionary > 0) & (dictionary < data), dictionary, data)

    def check(self, names: Collection[str]) -> None:
        """Raise `ArrowInvalid` where the footer contradicts itself about the named columns."""
        schema = self.metadata.schema
        rows = np.array(self.rows, np.int64)
        for place in self.places_of(names):
            chunks, column = self.chunks[:, place], schema.column(place)
            values, stored = chunks[:, VALUES], chunks[:, STORED]
            self._refuse(chunks[:, SECRET] != 0, column.path, "bytes that are encrypted")
            kind = _TYPES.index(column.physical_type)
            self._refuse(chunks[:, TYPE] != kind, column.path, "another type than its schema")
            wrong = (values < rows) if column.max_repetition_level else (values != rows)
            self._refuse(wrong, column.path, "numbers of values and of rows that differ")
            most = (column.max_repetition_level, column.max_definition_level)
            lengths = chunks[:, [REPETITIONS, DEFINITIONS]]
            misfit = ((lengths != 0) & (lengths != np.array(most) + 1)).any(axis=1)
            misfit |= (chunks[:, TEXT_SIZE] != 0) & (column.physical_type != "BYTE_ARRAY")
            self._refuse(misfit, column.path, "statistics of sizes that do not fit its type")
            starts, is_held = self.starts(place), values > 0
            outside = (
                (starts < len(_MAGIC))
                | (stored <= 0)
                | (stored > self.at - starts)
                | (chunks[:, DATA] >= self.at)
            )
            outside |= (chunks[:, DATA] - starts >= stored) | (chunks[:, BYTES] < 0)
            self._refuse(is_held & outside, column.path, "bytes that do not lie in the file")

    @staticmethod
    def _refuse(wrong: npt.NDArray[np.bool_], path: str, what: str) -> None:
        if wrong.any():
            raise pa.ArrowInvalid(
                f"its footer gives column {path} of row group {int(np.argmax(wrong))} {what}"
            )


def read_footer(source: pa.NativeFile) -> Footer:
    """The footer of an open file. Raises pyarrow's errors, and `ArrowInvalid` where its parts disagree."""
    import pyarrow.parquet as pq

    data, at = _bytes_of_footer(source)
    # from the very bytes that are read below
    reader = (
        source if data is None else pa.BufferReader(_MAGIC + data + len(data).to_bytes(4, "little") + _MAGIC)
    )
    file = pq.ParquetFile(reader, pre_buffer=False)
    metadata, schema = file.metadata, file.schema_arrow
    if data is None:
        raise pa.ArrowInvalid("its footer is not plain")
    try:
        found, _ = _structure(data, 0, _FOOTER)
        rows = [group[3] for group in found[4]]
        numbers = [[_numbers_of(chunk) for chunk in group[1]] for group in found[4]]
        n_rows = found[3]
    except (IndexError, KeyError) as error:
        raise pa.ArrowInvalid("its footer ends before it should, or lacks what it must have") from error
    n_columns = metadata.num_columns
    if len(rows) != metadata.num_row_groups or any(len(columns) != n_columns for columns in numbers):
        raise pa.ArrowInvalid("its footer has row groups of other columns than its schema")
    if min(rows, default=0) < 0 or sum(rows) != n_rows or n_rows != metadata.num_rows:
        raise pa.ArrowInvalid(f"its footer gives the file {n_rows:,} rows and its row groups {sum(rows):,}")
    chunks = np.array(numbers, np.int64).reshape(len(rows), n_columns, PLACES)
    footer = Footer(metadata, schema, at, rows, chunks)
    _check_pages(source, footer)
    return footer


def _check_pages(source: pa.NativeFile, footer: Footer) -> None:
    """Raise `ArrowInvalid` where chunks of few bytes hold less values than the footer says, before there is memory for them."""
    values, stored = footer.chunks[:, :, VALUES], footer.chunks[:, :, STORED]
    doubtful = (
        (values > _BELIEVED) & (values // _BELIEVED_OF_A_BYTE > stored) & (footer.chunks[:, :, SECRET] == 0)
    )
    for group, place in np.argwhere(doubtful).tolist():
        start, n = int(footer.starts(place)[group]), int(stored[group, place])
        if start < len(_MAGIC) or not 0 < n <= footer.at - start:
            continue  # no column that is wanted, or `check` refuses it
        source.seek(start)
        data, at, found = source.read(n), 0, 0
        try:
            while at < len(data):
                header, at = _structure(data, at, _PAGE)
                at += header[3]
                found += header.get(5, header.get(8, {1: 0}))[1]
                if header[3] < 0:
                    raise IndexError
        except (IndexError, KeyError):
            raise _damage(f"the pages of column {place} end before they should") from None
        if found != values[group, place]:
            raise pa.ArrowInvalid(
                f"its footer gives column {place} of row group {group} {values[group, place]:,} values, and its pages hold {found:,}"
            )


def _bytes_of_footer(source: pa.NativeFile) -> tuple[bytes | None, int]:
    """The bytes of a footer, and where they begin; None where pyarrow has to say what is wrong with the file."""
    size = source.size()
    source.seek(max(size - _TAIL, 0))
    tail = source.read(_TAIL)
    length = int.from_bytes(tail[-8:-4], "little")
    at = size - 8 - length
    if tail[-4:] != _MAGIC or at < len(_MAGIC):
        return None, 0
    if length + 8 > len(tail):
        source.seek(at)
        tail = source.read(length + 8)
    return tail[-8 - length : -8], at


def _numbers_of(chunk: dict[int, Any]) -> tuple[int, ...]:
    """A row of a table of chunks; without metadata where they are encrypted."""
    is_secret = int(8 in chunk or 9 in chunk)
    if 3 not in chunk:
        return (_ABSENT,) * SECRET + (1,)
    known = chunk[3]
    sizes = known.get(16, {})
    encodings = 0
    for number in known[2]:
        encodings |= 1 << number if 0 <= number < 32 else 1 << 32
    return (
        known[1], known[4], known[5], known[6], known[7], known[9], known.get(11, _ABSENT), encodings,
        int(1 in sizes), len(sizes.get(2, ())), len(sizes.get(3, ())), is_secret,
    )  # fmt: skip


# ---- Thrift's compact protocol ----


class _List(NamedTuple):
    """Lists of numbers of a kind, or of structures with these fields."""

    of: int | dict[int, Any]


# fields that are read, by their numbers: of a kind, or a structure with fields of its own
_SIZES: dict[int, Any] = {1: _INT64, 2: _List(_INT64), 3: _List(_INT64)}
_COLUMN = {
    1: _INT32, 2: _List(_INT32), 4: _INT32, 5: _INT64, 6: _INT64, 7: _INT64, 9: _INT64, 11: _INT64, 16: _SIZES,
}  # fmt: skip
_CHUNK: dict[int, Any] = {3: _COLUMN, 8: {}, 9: _TEXT}
_GROUP: dict[int, Any] = {1: _List(_CHUNK), 3: _INT64}
_PAGE: dict[int, Any] = {3: _INT32, 5: {1: _INT32}, 8: {1: _INT32}}
_FOOTER: dict[int, Any] = {3: _INT64, 4: _List(_GROUP)}


def _damage(what: str) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"its footer is damaged: {what}")


def _structure(data: bytes, at: int, wanted: dict[int, Any], depth: int = 0) -> tuple[dict[int, Any], int]:
    """The wanted fields of a structure, and where it ends. Raises `ArrowInvalid`, and `IndexError` past the end."""
    if depth > _NESTED:
        raise _damage("structures lie in one another too deeply")
    found: dict[int, Any] = {}
    field = 0
    while byte := data[at]:
        at += 1
        kind = byte & 15
        if byte > 15:
            field += byte >> 4
        else:
            number, at = _read_unsigned(data, at)
            field = (number >> 1) ^ -(number & 1)
        if field not in wanted:
            at = _past(data, at, kind, depth)
            continue
        is_known = wanted[field]
        if field in found:
            raise _damage(f"field {field} stands there twice")
        if isinstance(is_known, dict) and kind == _STRUCTURE:
            found[field], at = _structure(data, at, is_known, depth + 1)
        elif isinstance(is_known, _List) and kind == _LIST:
            found[field], at = _items(data, at, is_known.of, depth + 1)
        elif kind != is_known:
            raise _damage(f"field {field} is of type {kind}")
        elif kind == _TEXT:
            at, found[field] = _past(data, at, kind, depth), None
        else:
            number, at = _read_unsigned(data, at)
            found[field] = value = (number >> 1) ^ -(number & 1)
            if kind == _INT32 and not -(1 << 31) <= value < 1 << 31:
                raise _damage(f"field {field} is {value}")
    return found, at + 1


def _items(data: bytes, at: int, of: int | dict[int, Any], depth: int) -> tuple[list[Any], int]:
    n, kind, at = _head(data, at)
    if kind != (_STRUCTURE if isinstance(of, dict) else of):
        if n:
            raise _damage(f"a list holds type {kind}")
        return [], at
    items = []
    for _ in range(n):
        item: Any
        if isinstance(of, dict):
            item, at = _structure(data, at, of, depth + 1)
        else:
            number, at = _read_unsigned(data, at)
            item = (number >> 1) ^ -(number & 1)
        items.append(item)
    return items, at


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """How many items a list has, of which kind, and where they begin. Each takes a byte at least."""
    byte = data[at]
    n, at = (byte >> 4, at + 1) if byte < 0xF0 else _read_unsigned(data, at + 1)
    if n > len(data) - at:
        raise _damage(f"a list of {n:,} items goes on past its end")
    return n, byte & 15, at


def _read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first."""
    number, shift = data[at] & 127, 7
    while data[at] > 127:
        at += 1
        number |= (data[at] & 127) << shift
        shift += 7
        if shift > 70:
            break
    if number >> 64:
        raise _damage("a number has more than 64 bits")
    return number, at + 1


def _past(data: bytes, at: int, kind: int, depth: int, *, in_list: bool = False) -> int:
    """Where a value of a kind ends."""
    if kind in _BOOLEANS:
        return at + in_list
    if kind == _BYTE:
        return at + 1
    if kind in (_INT16, _INT32, _INT64):
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == _FLOAT64:
        return at + 8
    if kind == _TEXT:
        n, at = _read_unsigned(data, at)
        if n > len(data) - at:
            raise _damage("a text goes on past its end")
        return at + n
    if kind == _STRUCTURE:
        return _structure(data, at, {}, depth + 1)[1]
    if kind in (_LIST, _SET):
        if depth > _NESTED:
            raise _damage("lists lie in one another too deeply")
        n, kind, at = _head(data, at)
        for _ in range(n):
            at = _past(data, at, kind, depth + 1, in_list=True)
        return at
    raise _damage(f"a value is of type {kind}")
