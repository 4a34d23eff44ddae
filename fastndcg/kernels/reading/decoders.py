"""Pages of Parquet.

A chunk of a column is a sequence of pages. A page is a header in Thrift's compact protocol, then values.
Values of a dictionary are stored as codes of a fixed width, in runs of one code and in packed groups of
eight. A kernel refuses a page that it does not know, or that would need bytes outside the data: pyarrow then
reads that column, or reports the error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block, driver
from .joining import Secret, digest
from .words import copy_8, copy_32, copy_widely, first_word, same_text, word_at

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
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 2, 3, 4, 8
UNCOMPRESSED, SNAPPY = range(2)
ABSENT = -(1 << 40)  # a value that no field of 32 bits has
SPARE = 64  # bytes after a page that may be overwritten
PADDED = 256  # least size of the array of a dictionary, so that every code of eight bits is inside it
_NESTED = 8  # structures within structures
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
            if depth == _NESTED:
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


@driver()
def find_pages(
    data: Array, pages: Array, codec: int, optional: bool, most_values: int, most_bytes: int
) -> tuple[int, int]:
    """List the pages that are complete in `data`; returns their number, and the start of the next page or -1
    if it is not readable.

    No page has more values or bytes than its chunk: `most_values` and `most_bytes`.
    """
    fields = np.empty(_NESTED, np.int64)
    found, at = 0, 0
    while found < pages.shape[0]:
        page = pages[found]
        start = read_page_header(data, at, page, fields)
        if start > data.shape[0]:
            break
        stored = page[PAGE_STORED]
        if start < 0 or stored < 0:
            return found, -1
        if stored > data.shape[0] - start:
            break
        page[PAGE_START] = start
        if not accepts_page(data, page, codec, optional, most_values, most_bytes):
            return found, -1
        at = start + stored
        found += 1
    return found, at


@block
def end_of_levels(page: Array, at: Any, last: Any, n: int) -> Any:
    """The end of the definition levels of n values; -1 where a value is null or the levels are not good."""
    if last - at < 4:
        return np.int64(-1)
    stop = at + 4 + little_number(page, at, 4)
    if stop > last or not are_levels_full(page, at + 4, stop, n):
        return np.int64(-1)
    return stop


@block
def are_levels_full(page: Array, at: Any, stop: Any, n: int) -> bool:
    """Whether the definition levels from `at` to `stop` are those of n values, none of them null."""
    known = 0
    while known < n:
        header, at = variable_number(page, at)
        if at >= stop:
            return False
        if header & 1:
            for _ in range(header >> 1):
                wanted = (1 << min(n - known, 8)) - 1
                if at >= stop or known >= n or page[at] & wanted != wanted:
                    return False
                known += 8
                at += 1
        else:
            if page[at] != 1 or header == 0 or header >> 1 > n - known:
                return False
            known += header >> 1
            at += 1
    return at == stop


@block
def packed_code(page: Array, start: Any, width: Any, i: int) -> Any:
    """Code `i` of packed codes from `start` on; `width` is at most 32 bits."""
    at = start + (i * width >> 3)
    word = first_word(page, at, min(at + 8, page.shape[0])) >> np.uint64(i * width & 7)
    return np.int64(word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@block
def run_of_codes(page: Array, at: Any, last: Any, width: Any, left: int) -> tuple[Any, Any, Any, Any]:
    """Read the header of a run of codes; `left` codes of the page remain, and the page ends before `last`.

    Returns the number of codes, their common code or -1 if they are packed, the start of the codes, and the
    start of the next run. The number is 0 where the run is not good.
    """
    header, at = variable_number(page, at)
    n = header >> 1
    if header & 1:
        if 8 * n >= left + 8 or n > last:  # only the last group may have codes beyond `left`
            return 0, 0, 0, 0
        stop = at + n * width
        n = min(8 * n, left)
        if at + ((n * width + 7) >> 3) > last:  # the last group may end with its last value
            return 0, 0, 0, 0
        return n, -1 if width > 0 else 0, at, stop  # codes of no bits are all 0
    stop = at + ((width + 7) >> 3)
    if stop > last:
        return 0, 0, 0, 0
    return min(n, left), little_number(page, at, stop - at), at, stop


@driver()
def values_of_pages(
    data: Array, pages: Array, scratch: Array, stored: int, entries: Array, n_entries: int, out: Array
) -> int:
    """Fill `out` with the values of pages, as bits: dictionary entries, or numbers of `stored` bytes cut to
    the width of `out`.

    `entries` has room for PADDED, `scratch` for the longest compressed page and SPARE bytes. Returns the
    number of values, or -1 where pages are not good or `out` is too short.
    """
    done = 0
    for i in range(pages.shape[0]):
        page = pages[i]
        source = scratch if page[PAGE_COMPRESSED] else data
        start, stop = place_of_values(data, page, scratch, out.shape[0] - done, stored)
        if start < 0:
            return -1
        values = out[done : done + page[PAGE_VALUES]]
        if page[PAGE_ENCODING] == PLAIN:
            plain_values(source, start, stored, values)
        elif not values_of_codes(source, start, stop, entries, n_entries, values):
            return -1
        done += values.shape[0]
    return done


@driver()
def runs_of_pages(
    data: Array,
    pages: Array,
    scratch: Array,
    stored: int,
    entries: Array,
    n_entries: int,
    values: Array,
    ends: Array,
) -> int:
    """As `values_of_pages`, for int64: writes the value and end of each run; returns the number of runs."""
    found, done = 0, 0
    for i in range(pages.shape[0]):
        page = pages[i]
        n = page[PAGE_VALUES]
        source = scratch if page[PAGE_COMPRESSED] else data
        start, stop = place_of_values(data, page, scratch, n, stored)
        if start < 0:
            return -1
        if page[PAGE_ENCODING] == PLAIN:
            found = runs_of_plain(source, start, n, stored, done, found, values, ends)
        else:
            found = runs_of_codes(source, start, stop, n, entries, n_entries, done, found, values, ends)
        if found < 0:
            return -1
        done += n
    return found


# entries of the state of a table of texts: how many texts it has, and whether its slots are still to be
# filled
FOUND, IS_NEW = range(2)
_LOW = (1 << 32) - 1


@driver()
def texts_of_pages(
    data: Array,
    pages: Array,
    scratch: Array,
    entries: Array,
    n_entries: int,
    secret: Secret,
    slots: Array,
    ends: Array,
    store: Array,
    state: Array,
    out: Array,
) -> int:
    """As `values_of_pages`, for texts: adds new texts to a table, and fills `out` with the number of each
    text in it.

    Text `i` of the table is `store[ends[i]:ends[i + 1]]`; texts are numbered by first appearance. A free slot
    is 0; others hold 31 bits of a hash and a number from 1. Returns how many pages were read: fewer than all
    where the table is full, and -1 where pages are not good.
    """
    if state[IS_NEW]:
        for code in range(state[FOUND]):
            put_in_slot(store, ends[code], ends[code + 1], secret, slots, code)
        state[IS_NEW] = 0
    done, ahead = 0, np.empty((4, AHEAD), np.int64)
    for i in range(pages.shape[0]):
        page = pages[i]
        source = scratch if page[PAGE_COMPRESSED] else data
        start, stop = place_of_values(data, page, scratch, out.shape[0] - done, 0)
        if start < 0:
            return -1
        codes = out[done : done + page[PAGE_VALUES]]
        if page[PAGE_ENCODING] == PLAIN:
            found = codes_of_plain(
                source, start, stop, secret, slots, ends, store, state[FOUND], codes, ahead
            )
            if found == -1:
                return -1
            state[FOUND] = found if found >= 0 else -2 - found
            if found < 0:
                return i
        elif not values_of_codes(source, start, stop, entries, n_entries, codes):
            return -1
        done += codes.shape[0]
    return pages.shape[0]


@block
def put_in_slot(data: Array, start: Any, stop: Any, secret: Secret, slots: Array, code: Any) -> None:
    hashed, _ = digest(data, start, stop, secret)
    slot = hashed & (slots.shape[0] - 1)
    while slots[slot] != 0:
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = (hashed >> 1 << 32) | (code + 1)


AHEAD = 64  # texts whose memory is fetched together; fetching one after the other took three times as long


@block
def codes_of_plain(
    data: Array,
    at: Any,
    last: Any,
    secret: Secret,
    slots: Array,
    ends: Array,
    store: Array,
    found: Any,
    codes: Array,
    ahead: Array,
) -> Any:
    """Write the number of each text of a plain page, in which a text follows its length; new texts are added
    to the table.

    Returns the number of texts in the table; -2 minus that number where it is full, and -1 where texts are
    not good.
    """
    for first in range(0, codes.shape[0], AHEAD):
        some = codes[first : first + AHEAD]
        at = hash_ahead(data, at, last, secret, slots, ends, store, ahead[:, : some.shape[0]])
        if at < 0:
            return np.int64(-1)
        for i in range(some.shape[0]):
            hashed, start, stop = ahead[0, i], ahead[1, i], ahead[2, i]
            slot = hashed & (slots.shape[0] - 1)
            code = np.int64(-1)
            while slots[slot] != 0:
                if slots[slot] >> 32 == hashed >> 1:
                    other = (slots[slot] & _LOW) - 1
                    if same_text(data, start, stop, store, ends[other], ends[other + 1]):
                        code = other
                        break
                slot = (slot + 1) & (slots.shape[0] - 1)
            if code < 0:
                end, length = ends[found], stop - start
                if found + 2 > ends.shape[0] or length > store.shape[0] - end:
                    return -2 - np.int64(found)
                code = np.int64(found)
                slots[slot] = (hashed >> 1 << 32) | (code + 1)
                has_room = start + 64 <= data.shape[0] and end + 64 <= store.shape[0]
                copy_widely(data, start, length, store, end, has_room)
                ends[found + 1] = end + length
                found += 1
            some[i] = code
    return np.int64(found)


@block
def hash_ahead(
    data: Array, at: Any, last: Any, secret: Secret, slots: Array, ends: Array, store: Array, ahead: Array
) -> Any:
    """Write hash, start and stop of some texts to `ahead`, and fetch the texts that they will be compared
    with.

    Returns the end of the last text, or -1 where texts are not good.
    """
    for i in range(ahead.shape[1]):
        if last - at < 4:
            return np.int64(-1)
        start = at + 4
        at = start + little_number(data, at, 4)
        if at > last:
            return np.int64(-1)
        hashed, _ = digest(data, start, at, secret)
        ahead[0, i], ahead[1, i], ahead[2, i] = hashed, start, at
    for i in range(ahead.shape[1]):
        ahead[3, i] = slots[ahead[0, i] & (slots.shape[0] - 1)]
    for i in range(ahead.shape[1]):
        ahead[3, i] = ends[max((ahead[3, i] & _LOW) - 1, 0)]
    for i in range(ahead.shape[1]):
        ahead[3, i] = store[min(ahead[3, i], store.shape[0] - 1)]
    return at


@block
def place_of_values(data: Array, page: Array, scratch: Array, room: Any, stored: int) -> tuple[Any, Any]:
    """Start and end of the values of a page; a compressed page is unpacked to `scratch`, and they are places
    in that.

    The start is -1 where the page is not good, a value is null, there are more than `room` values, or plain
    values of `stored` bytes would not fit into the page.
    """
    n, size, start = page[PAGE_VALUES], page[PAGE_BYTES], page[PAGE_START]
    stop = start + page[PAGE_STORED]
    source = scratch if page[PAGE_COMPRESSED] else data
    has_levels = page[PAGE_NULLABLE] and page[PAGE_KIND] == DATA_PAGE
    # levels of DATA_PAGE_2 stand before the compressed bytes
    levels_before = page[PAGE_NULLABLE] and not has_levels
    if n > room or (levels_before and not are_levels_full(data, start - page[PAGE_LEVELS], start, n)):
        return np.int64(-1), np.int64(-1)
    if page[PAGE_COMPRESSED]:
        if size > scratch.shape[0] - SPARE or not unpack_snappy(data, start, stop, scratch, size):
            return np.int64(-1), np.int64(-1)
        start, stop = np.int64(0), size
    if has_levels:
        start = end_of_levels(source, start, stop, n)
    if page[PAGE_ENCODING] == PLAIN and n * stored > stop - start:
        start = np.int64(-1)
    return start, stop


@block
def unpack_snappy(data: Array, at: Any, stop: Any, out: Array, size: Any) -> bool:
    """Unpack Snappy's compression; returns False where that does not give `size` bytes. Writes up to SPARE
    bytes more.

    With a library, threads wait for Python's lock at each page: two threads read no faster than one.
    Format: https://github.com/google/snappy/blob/main/format_description.txt
    """
    _, at = variable_number(data, at)
    done = np.int64(0)
    while at < stop:
        tag = np.int64(data[at])
        at += 1
        kind = tag & 3
        n: Any = (tag >> 2) + 1
        if kind == 0:  # bytes as they are
            wide = n - 60
            if wide > 0:  # their number is in the next one to four bytes
                if wide > stop - at:
                    return False
                n = little_number(data, at, wide) + 1
                at += wide
            if n > stop - at or n > size - done:
                return False
            copied = 0
            while copied < n and at + copied + 32 <= data.shape[0]:
                copy_32(data, at + copied, out, done + copied)
                copied += 32
            for i in range(copied, n):
                out[done + i] = data[at + i]
            at += n
        else:  # a copy of earlier bytes
            wide = kind if kind < 3 else 4
            if wide > stop - at:
                return False
            back = little_number(data, at, wide)
            at += wide
            if kind == 1:
                n = (tag >> 2 & 7) + 4
                back |= tag >> 5 << 8
            if back == 0 or back > done or n > size - done:
                return False
            if back >= 32:
                for copied in range(0, n, 32):
                    copy_32(out, done + copied - back, out, done + copied)
            elif back >= 8:
                for copied in range(0, n, 8):
                    copy_8(out, done + copied - back, out, done + copied)
            else:
                for i in range(n):
                    out[done + i] = out[done + i - back]
        done += n
    return done == size


@block
def little_number(data: Array, at: Any, n: Any) -> Any:
    number = np.int64(0)
    for i in range(n):
        number |= np.int64(data[at + i]) << (8 * i)
    return number


@block
def plain_values(data: Array, start: Any, stored: int, values: Array) -> None:
    """Fill `values` with numbers of four or eight bytes, cut to its width."""
    n = values.shape[0]
    # a word read at the last number may reach beyond the data
    safe = max(n - 1, 0) if start + n * stored + 4 > data.shape[0] else n
    if stored == 4:
        for i in range(safe):
            values[i] = word_at(data, start + 4 * i)
    else:
        for i in range(safe):
            values[i] = word_at(data, start + 8 * i)
    for i in range(safe, n):
        values[i] = first_word(data, start + stored * i, start + stored * (i + 1))


@block
def runs_of_plain(
    data: Array, start: Any, n: int, stored: int, done: int, found: int, values: Array, ends: Array
) -> int:
    """Append runs of equal numbers of four or eight bytes to the `found` runs; returns how many, or -1."""
    for i in range(n):
        word = np.int64(first_word(data, start + stored * i, start + stored * (i + 1)))
        value = word if stored == 8 else word << 32 >> 32
        if found == 0 or value != values[found - 1]:
            if found == ends.shape[0]:
                return -1
            values[found] = value
            found += 1
        ends[found - 1] = done + i + 1
    return found


@block
def values_of_codes(page: Array, at: Any, stop: Any, dictionary: Array, n_entries: int, out: Array) -> bool:
    """Fill `out` with dictionary entries, by codes from `at` to before `stop`; returns False if invalid."""
    if at >= stop or page[at] > 32:
        return False
    width, done = np.int64(page[at]), 0
    at += 1
    while done < out.shape[0]:
        n, code, start, at = run_of_codes(page, at, stop, width, out.shape[0] - done)
        if n == 0 or code >= n_entries:
            return False
        values = out[done : done + n]
        done += n
        if code >= 0:
            values[:] = dictionary[code]
        elif width <= 8:
            if not unpack_narrow(page, start, width, dictionary, n_entries, values):
                return False
        else:
            for i in range(n):
                code = packed_code(page, start, width, i)
                if code >= n_entries:
                    return False
                values[i] = dictionary[code]
    return True


@block
def unpack_narrow(
    page: Array, start: Any, width: Any, dictionary: Array, n_entries: int, values: Array
) -> Any:
    """Fill `values` with dictionary entries of packed codes of at most eight bits; returns False where a code
    has no entry.

    It reads eight codes at a time, as one word.
    """
    bits, mask = np.uint64(width), (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    highest = np.uint64(0)
    whole = values.shape[0] >> 3
    if start + whole * width + 8 > page.shape[0]:
        whole = max(0, whole - 8)  # the last words would reach beyond the page
    for group in range(whole):
        word = word_at(page, start + group * width)
        for i in range(8):
            code = word & mask
            highest = max(highest, code)
            values[8 * group + i] = dictionary[code]
            word >>= bits
    for i in range(8 * whole, values.shape[0]):
        code = np.uint64(packed_code(page, start, width, i))
        highest = max(highest, code)
        values[i] = dictionary[code]
    return highest < np.uint64(n_entries)


@block
def runs_of_codes(
    page: Array,
    at: Any,
    stop: Any,
    n: int,
    dictionary: Array,
    n_entries: int,
    done: int,
    found: int,
    values: Array,
    ends: Array,
) -> int:
    """As `runs_of_plain`, for dictionary entries of n codes; -1 for invalid codes or lack of room."""
    if at >= stop or page[at] > 32:
        return -1
    width, last, end = np.int64(page[at]), -1, done + n
    at += 1
    while done < end:
        count, same, start, at = run_of_codes(page, at, stop, width, end - done)
        if count == 0:
            return -1
        for i in range(count if same < 0 else 1):
            code = packed_code(page, start, width, i) if same < 0 else same
            if code != last:
                if code >= n_entries:
                    return -1
                last = code
                if found == 0 or dictionary[code] != values[found - 1]:
                    if found == ends.shape[0]:
                        return -1
                    if found:
                        ends[found - 1] = done + i
                    values[found] = dictionary[code]
                    found += 1
        done += count
    if found:
        ends[found - 1] = end
    return found
