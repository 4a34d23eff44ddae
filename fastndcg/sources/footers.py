"""Parse the footers of Parquet files, and check them for consistency.

pyarrow crashes the process when it reads columns by a damaged footer. So a footer is parsed twice: first by
pyarrow, which refuses most damage, then here, from the same bytes, with every value checked. `Footer.check`
compares what the footer says about the columns that will be read with the row groups, the schema and the size
of the file.

Format: Thrift's compact protocol, https://parquet.apache.org/docs/file-format/metadata/
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.scores.signatures import KEY

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow.parquet as pq

    from fastndcg.common.arrays import Int64

# fields of `Footer.chunks`
TYPE, CODEC, VALUES, BYTES, STORED, DATA, DICTIONARY, ENCODINGS = range(8)
# of the size statistics: whether they have a size of texts, and the lengths of two histograms
TEXT_SIZE, REPETITIONS, DEFINITIONS = range(8, 11)
ENCRYPTED, PLACES = 11, 12
_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_BY_CODES = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8  # encodings that pyarrow reads as a dictionary
_ABSENT = -1
_TAIL = 1 << 16  # bytes of a file's end that are read at first; most footers are shorter
_MAGIC = b"PAR1"
# if a chunk claims more values than this, and more for each of its bytes, they are counted page by page
_PLAUSIBLE_VALUES, _PLAUSIBLE_VALUES_OF_BYTE = 1 << 20, 1 << 12
# Thrift: types of values, the bits of integers, and the bytes of what is skipped
_INT32, _INT64, _TEXT, _LIST, _SET, _STRUCTURE = 5, 6, 8, 9, 10, 12
_INTEGERS = {4: 16, _INT32: 32, _INT64: 64}
_WIDTHS = {1: 0, 2: 0, 3: 1, 7: 8}  # of booleans, which stand in lists alone as bytes, bytes and float64
_DEEPEST = 60  # levels of structures and lists within one another
_FORMS_OF_DATA = 5, 8  # fields of a page's header that describe values, in two versions


class Footer(NamedTuple):
    """A parsed footer: pyarrow's metadata and schema, and the numbers that were checked."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    at: int  # its position in the file
    n_rows: int
    rows: list[int]  # of each row group
    chunks: Int64  # (row groups, columns, PLACES); ENCODINGS has a bit for each encoding

    def places_of(self, names: Collection[str]) -> list[int]:
        """The indices of the leaf columns of the named columns, which may be nested."""
        schema = self.metadata.schema
        paths = [f"{schema.column(place).path}." for place in range(self.metadata.num_columns)]
        starts = tuple(f"{name}." for name in names)
        return [place for place, path in enumerate(paths) if path.startswith(starts)]

    def is_coded(self, name: str) -> bool:
        """Whether pyarrow can read all pages of a column as a dictionary."""
        encodings = self.chunks[:, self.places_of([name]), ENCODINGS]
        return not (encodings & ~_BY_CODES).any()

    def starts(self, place: int) -> Int64:
        """The position of each chunk of a column. A dictionary before the data belongs to the chunk."""
        data, dictionary = self.chunks[:, place, DATA], self.chunks[:, place, DICTIONARY]
        return np.where((dictionary > 0) & (dictionary < data), dictionary, data)

    def check(self, names: Collection[str]) -> None:
        """Raise `ArrowInvalid` where the footer contradicts itself about the named columns."""
        schema, rows = self.metadata.schema, np.array(self.rows, np.int64)
        for place in self.places_of(names):
            chunks, column, starts = self.chunks[:, place], schema.column(place), self.starts(place)
            values, stored, data = chunks[:, VALUES], chunks[:, STORED], chunks[:, DATA]
            levels = np.array((column.max_repetition_level, column.max_definition_level))
            lengths = chunks[:, [REPETITIONS, DEFINITIONS]]
            misfit = ((lengths != 0) & (lengths != levels + 1)).any(axis=1)
            misfit |= (chunks[:, TEXT_SIZE] != 0) & (column.physical_type != "BYTE_ARRAY")
            outside = (starts < len(_MAGIC)) | (stored <= 0) | (stored > self.at - starts)
            outside |= (data >= self.at) | (data - starts >= stored) | (chunks[:, BYTES] < 0)
            kind = _TYPES.index(column.physical_type)
            wrong_number = (values < rows) if levels[0] else (values != rows)
            for wrong, what in (
                (chunks[:, ENCRYPTED] != 0, "is encrypted"),
                (chunks[:, TYPE] != kind, "has another type than in its schema"),
                (wrong_number, "has a number of values that does not fit the number of rows"),
                (misfit, "has size statistics that do not fit its type"),
                ((values > 0) & outside, "has bytes that do not lie in the file"),
            ):
                if wrong.any():
                    group = int(np.argmax(wrong))
                    raise pa.ArrowInvalid(f"by its footer, column {column.path} of row group {group} {what}")


def read_footer(source: pa.NativeFile) -> Footer:
    """Parse the footer of an open file. Raises pyarrow's errors, and `ArrowInvalid` for contradictions."""
    import pyarrow.parquet as pq

    size = source.size()
    source.seek(max(size - _TAIL, 0))
    tail = source.read(_TAIL)
    length = int.from_bytes(tail[-8:-4], "little")
    at = size - 8 - length
    if tail[-4:] != _MAGIC or at < len(_MAGIC):
        pq.ParquetFile(source, pre_buffer=False)  # says what is wrong
        raise pa.ArrowInvalid("its footer is encrypted or damaged")
    if length + 8 > len(tail):
        source.seek(at)
        tail = source.read(length + 8)
    data = tail[-8 - length : -8]
    # pyarrow parses the same bytes that are parsed below
    file = pq.ParquetFile(pa.BufferReader(_MAGIC + data + tail[-8:]), pre_buffer=False)
    metadata, schema = file.metadata, file.schema_arrow
    if KEY in (metadata.metadata or {}):  # what was added once all rows were written is not in the schema
        schema = schema.with_metadata((schema.metadata or {}) | {KEY: metadata.metadata[KEY]})
    try:
        found, _ = _parsed(data, 0, _STRUCTURE)
        n_rows, groups = found[3, _INT64], found[4, _LIST]
        rows = [group[3, _INT64] for group in groups]
        numbers = [[_numbers_of(chunk) for chunk in group[1, _LIST]] for group in groups]
        shapes = {len(columns) for columns in numbers} | {metadata.num_columns}
        if len(rows) != metadata.num_row_groups or len(shapes) > 1:
            raise pa.ArrowInvalid("the row groups in its footer have other columns than its schema")
        chunks = np.array(numbers, np.int64).reshape(len(rows), metadata.num_columns, PLACES)
        if min(rows, default=0) < 0 or sum(rows) != n_rows or n_rows != metadata.num_rows:
            raise pa.ArrowInvalid(
                f"by its footer, the file has {n_rows:,} rows and its row groups have {sum(rows):,}"
            )
    except (IndexError, KeyError, TypeError, OverflowError) as error:
        raise pa.ArrowInvalid("its footer is cut off, or lacks a required field") from error
    footer = Footer(metadata, schema, at, n_rows, rows, chunks)
    values, stored = chunks[:, :, VALUES], chunks[:, :, STORED]
    doubtful = (values > _PLAUSIBLE_VALUES) & (values // _PLAUSIBLE_VALUES_OF_BYTE > stored)
    for group, place in np.argwhere(doubtful & (chunks[:, :, ENCRYPTED] == 0)).tolist():
        _check_pages(source, footer, group, place)
    return footer


def _numbers_of(chunk: _Structure) -> tuple[int, ...]:
    """The fields of a chunk for `Footer.chunks`. An encrypted chunk may lack its metadata."""
    is_encrypted = int((8, _STRUCTURE) in chunk or (9, _TEXT) in chunk)
    if (3, _STRUCTURE) not in chunk:
        return (_ABSENT,) * ENCRYPTED + (1,)
    known = chunk[3, _STRUCTURE]
    sizes = known.get((16, _STRUCTURE), {})
    encodings = 0
    for number in known[2, _LIST]:
        encodings |= 1 << number if 0 <= number < 32 else 1 << 32
    return (
        known[1, _INT32],
        known[4, _INT32],
        *(known[field, _INT64] for field in (5, 6, 7, 9)),
        known.get((11, _INT64), _ABSENT),
        encodings,
        int((1, _INT64) in sizes),
        len(sizes.get((2, _LIST), ())),
        len(sizes.get((3, _LIST), ())),
        is_encrypted,
    )


def _check_pages(source: pa.NativeFile, footer: Footer, group: int, place: int) -> None:
    """Raise `ArrowInvalid` if a chunk holds fewer values than the footer says, before allocating."""
    start, n = int(footer.starts(place)[group]), int(footer.chunks[group, place, STORED])
    if start < len(_MAGIC) or not 0 < n <= footer.at - start:
        return  # `check` refuses this column if it is needed
    source.seek(start)
    data, at, found = source.read(n), 0, 0
    while at < len(data):
        try:
            header, at = _parsed(data, at, _STRUCTURE)
            stored = header[3, _INT32]
            forms = (header.get((form, _STRUCTURE)) for form in _FORMS_OF_DATA)
            n_values = sum(form[1, _INT32] for form in forms if form)
        except (IndexError, KeyError) as error:
            raise _damage_error(f"the pages of column {place} are cut off") from error
        if min(stored, n_values) < 0:
            raise _damage_error(f"the pages of column {place} are cut off")
        at, found = at + stored, found + n_values
    values = int(footer.chunks[group, place, VALUES])
    if found != values:
        raise pa.ArrowInvalid(
            f"by its footer, column {place} of row group {group} has {values:,} values, "
            f"but its pages hold {found:,}"
        )


# ---- Thrift's compact protocol ----

_Structure = dict[tuple[int, int], Any]  # values by the number and the type of their fields


def _damage_error(what: str) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(f"its footer is damaged: {what}")


def _parsed(data: bytes, at: int, kind: int, depth: int = 0, *, in_list: bool = False) -> tuple[Any, int]:
    """A value, and its end: an integer, a list of values, or a `_Structure`; None for others."""
    if kind in _INTEGERS:
        byte = data[at]
        number, at = (byte, at + 1) if byte < 128 else _unsigned(data, at)
        if number >> _INTEGERS[kind]:
            raise _damage_error(f"a number has more than {_INTEGERS[kind]} bits")
        return (number >> 1) ^ -(number & 1), at
    if depth > _DEEPEST:
        raise _damage_error("structures are nested too deeply")
    if kind == _STRUCTURE:
        found: _Structure = {}
        field = 0
        while byte := data[at]:
            at += 1
            if byte > 15:
                field += byte >> 4
            else:
                number, at = _unsigned(data, at)
                field = (number >> 1) ^ -(number & 1)
            if (field, byte & 15) in found:
                raise _damage_error(f"field {field} occurs twice")
            found[field, byte & 15], at = _parsed(data, at, byte & 15, depth + 1)
        return found, at + 1
    if kind in (_LIST, _SET):
        byte = data[at]
        n, at = (byte >> 4, at + 1) if byte < 0xF0 else _unsigned(data, at + 1)
        if n > len(data) - at:  # each item takes at least one byte
            raise _damage_error(f"a list of {n:,} items is cut off")
        items = []
        for _ in range(n):
            item, at = _parsed(data, at, byte & 15, depth + 1, in_list=True)
            items.append(item)
        return items, at
    if kind == _TEXT:
        n, at = _unsigned(data, at)
        if n > len(data) - at:
            raise _damage_error("a text is cut off")
        return None, at + n
    if kind not in _WIDTHS:
        raise _damage_error(f"a value is of type {kind}")
    return None, at + (_WIDTHS[kind] or in_list)


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number that is stored in groups of seven bits, lowest first, and its end."""
    byte = number = data[at]
    shift = 7
    while byte > 127:
        at += 1
        byte = data[at]
        # of a number that is far too large, a few bits show it
        number = number & ((1 << shift) - 1) | byte << shift if shift <= 70 else number | (byte & 127) << 70
        shift += 7
    return number, at + 1
