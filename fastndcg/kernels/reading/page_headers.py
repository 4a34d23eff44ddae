"""Headers of pages of Parquet, in Thrift's compact protocol, and whether a page can be read."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block

# columns of a table of pages: fields 1 to 4 of a header, fields of the structure inside it, and values
# derived from both
PAGE_KIND, PAGE_BYTES, PAGE_STORED, PAGE_CHECKSUM = range(4)
(
    PAGE_VALUES,
    PAGE_NULLS,
    PAGE_ENCODING,
    PAGE_LEVELS,  # definition levels: their encoding in DATA_PAGE, their length in DATA_PAGE_2
    PAGE_REPETITION,  # the same for levels of repetition
    PAGE_ROWS,
    PAGE_COMPRESSED,
    PAGE_FORM,  # the field with the structure that describes the values
    PAGE_START,  # place of the stored bytes, after the levels of DATA_PAGE_2
    PAGE_NULLABLE,  # whether values begin with levels
    PAGE_FIELDS,
) = range(4, 15)
DATA_PAGE, DATA_PAGE_2, DICTIONARY_PAGE = 0, 3, 2
_FORMS = np.array([5, -1, 7, 8])  # the field that has the structure of each kind of page
DATA_FORMS = (5, 8)
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 2, 3, 4, 8
UNCOMPRESSED, SNAPPY = range(2)
ABSENT = -(1 << 40)  # a value that no field of 32 bits has
SPARE = 64  # bytes after a page that may be overwritten
PADDED = 256  # least size of the array of a dictionary, so that every code of eight bits is inside it
NESTED = 8  # structures within structures
_SNAPPY_MOST = 22  # most bytes from one byte of Snappy: 3 bytes may stand for 64
_LIMIT = 1 << 31  # numbers in a header are below it


@block
def variable_number(data: Array, at: Any) -> tuple[Any, Any]:
    """Read a number in groups of seven bits, lowest first; returns it and its end, past all if cut off."""
    value, shift = np.int64(0), np.int64(0)
    while at < data.shape[0] and shift < 63:
        byte = np.int64(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return np.int64(0), data.shape[0] + 1


@block
def zigzag(value: Any) -> Any:
    return (value >> 1) ^ -(value & 1)


# the column for a field of a header, by the number of the field that holds its structure (0: the header) and
# by its own number
_NOWHERE = -1
_PAGE_PLACES = np.full((9, 8), _NOWHERE)
_PAGE_PLACES[0, 1:5] = PAGE_KIND, PAGE_BYTES, PAGE_STORED, PAGE_CHECKSUM
_PAGE_PLACES[5, 1:5] = PAGE_VALUES, PAGE_ENCODING, PAGE_LEVELS, PAGE_REPETITION  # DATA_PAGE
_PAGE_PLACES[7, 1:3] = PAGE_VALUES, PAGE_ENCODING  # DICTIONARY_PAGE
_PAGE_PLACES[8, 1:] = (  # DATA_PAGE_2
    PAGE_VALUES, PAGE_NULLS, PAGE_ROWS, PAGE_ENCODING, PAGE_LEVELS, PAGE_REPETITION, PAGE_COMPRESSED,
)  # fmt: skip


@block
def set_page_field(page: Array, parent: int, field: int, kind: Any, value: Any) -> bool:
    """Set a field of a page if it is a known one; returns False where it has a wrong type or occurs twice."""
    if 0 <= parent < _PAGE_PLACES.shape[0] and 0 <= field < _PAGE_PLACES.shape[1]:
        place = _PAGE_PLACES[parent, field]
        if place != _NOWHERE:
            # the field that says whether DATA_PAGE_2 is compressed is a boolean; all others are integers of
            # 32 bits
            fits = kind < 3 if place == PAGE_COMPRESSED else kind == 5 and -_LIMIT <= value < _LIMIT
            if not fits or page[place] != ABSENT:
                return False
            page[place] = value
    return True


@block
def read_page_header(data: Array, at: int, page: Array, fields: Array) -> int:
    """Set the fields of a page; returns the end of the header: past all data if it is cut off, -1 if it is
    not a header.

    `fields` is scratch memory: the last field of each open structure.
    """
    page[:] = ABSENT
    depth = 0
    fields[0] = 0
    while at < data.shape[0]:
        byte = np.int64(data[at])
        at += 1
        if byte == 0:
            if depth == 0:
                return at
            depth -= 1
            continue
        kind = byte & 15
        if byte >> 4:
            fields[depth] += byte >> 4
        else:
            number, at = variable_number(data, at)
            fields[depth] = zigzag(number)
        value = np.int64(kind == 1)  # kinds 1 and 2 are true and false
        if 4 <= kind <= 6:  # integers
            number, at = variable_number(data, at)
            value = zigzag(number)
        elif kind == 3:  # a byte
            at += 1
        elif kind == 7:  # a float64
            at += 8
        elif kind == 8:  # bytes
            number, at = variable_number(data, at)
            if number > data.shape[0]:
                return data.shape[0] + 1
            at += number
        elif kind == 12:  # a structure
            if depth == 0 and (fields[0] == 5 or fields[0] == 7 or fields[0] == 8):
                if page[PAGE_FORM] != ABSENT:
                    return -1
                page[PAGE_FORM] = fields[0]
            depth += 1
            if depth == NESTED:
                return -1
            fields[depth] = 0
            continue
        elif kind == 0 or kind > 2:  # lists and maps, which do not occur in headers of pages, and no type
            return -1
        if depth < 2 and not set_page_field(page, fields[0] if depth else 0, fields[depth], kind, value):
            return -1
    return data.shape[0] + 1


@block
def accepts_page(
    data: Array, page: Array, codec: int, optional: bool, most_values: int, most_bytes: int
) -> bool:
    """Whether a page can be read, by its header; sets the derived columns of the page."""
    kind, encoding, levels = page[PAGE_KIND], page[PAGE_ENCODING], page[PAGE_LEVELS]
    if not (0 < page[PAGE_VALUES] <= most_values and 0 <= page[PAGE_BYTES] <= most_bytes):
        return False
    if not 0 <= kind < _FORMS.shape[0] or page[PAGE_FORM] != _FORMS[kind]:
        return False
    is_coded = encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY)
    is_packed = codec != UNCOMPRESSED
    page[PAGE_NULLABLE] = kind != DICTIONARY_PAGE and optional
    if kind == DICTIONARY_PAGE:
        if encoding not in (PLAIN, PLAIN_DICTIONARY):
            return False
        page[PAGE_ENCODING] = PLAIN
    elif not is_coded and encoding != PLAIN:
        return False
    if kind == DATA_PAGE_2:
        if page[PAGE_NULLS] != 0 or page[PAGE_REPETITION] != 0 or page[PAGE_ROWS] != page[PAGE_VALUES]:
            return False
        if not 0 <= levels <= min(page[PAGE_STORED], page[PAGE_BYTES]) or (levels > 0) != optional:
            return False
        page[PAGE_START] += levels
        page[PAGE_STORED] -= levels
        page[PAGE_BYTES] -= levels
        is_packed = is_packed and page[PAGE_COMPRESSED] != 0
    elif kind == DATA_PAGE and (
        levels not in (RLE, BIT_PACKED)
        or page[PAGE_REPETITION] not in (RLE, BIT_PACKED)
        or (optional and levels != RLE)
    ):
        return False
    else:
        page[PAGE_LEVELS] = 0
    page[PAGE_COMPRESSED] = is_packed
    if is_packed and codec == SNAPPY:
        # a block of Snappy says how many bytes it holds; fewer would leave a part of the page unwritten
        size, _ = variable_number(data, page[PAGE_START])
        return size == page[PAGE_BYTES] and size <= _SNAPPY_MOST * page[PAGE_STORED]
    return is_packed or page[PAGE_STORED] == page[PAGE_BYTES]
