"""Pages of Parquet.

A chunk of a column is a row of pages: a header in Thrift's compact protocol, then values. Values that stand in a dictionary are
codes of a fixed width, in runs of one code and in groups of eight that are packed. What a kernel does not know, or what would
lead out of the bytes that are there, it refuses: pyarrow then reads that column, or says what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.tables import Array

from .joining import digest
from .marks import block, driver
from .words import copy_8, copy_32, copy_widely, first_word, same_text, word_at

# columns of a table of pages: fields 1 to 4 of a header, those of the structure in it, and what they come to
PAGE_KIND, PAGE_BYTES, PAGE_STORED, PAGE_CHECKSUM = range(4)
(
    PAGE_VALUES,
    PAGE_NULLS,
    PAGE_ENCODING,
    PAGE_LEVELS,  # of definition: their encoding in DATA_PAGE, their length in DATA_PAGE_2
    PAGE_REPETITION,  # the same for levels of repetition
    PAGE_ROWS,
    PAGE_COMPRESSED,
    PAGE_FORM,  # the field with the structure that describes the values
    PAGE_START,  # of what is stored, after the levels of DATA_PAGE_2
    PAGE_NULLABLE,  # whether values begin with levels
    PAGE_FIELDS,
) = range(4, 15)
DATA_PAGE, DATA_PAGE_2, DICTIONARY_PAGE = 0, 3, 2
_FORMS = np.array([5, -1, 7, 8])  # the field that has the structure of each kind of page
PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY = 0, 2, 3, 4, 8
UNCOMPRESSED, SNAPPY = range(2)
ABSENT = -(1 << 40)  # no field of 32 bits
SPARE = 64  # bytes after a page that may be written, too
PADDED = 256  # entries that a dictionary has room for at least, so that no code of eight bits leads out of it
_NESTED = 8  # structures within structures
_SNAPPY_MOST = 22  # bytes that a byte of Snappy may become: 64 of 3
_LIMIT = 1 << 31  # of numbers in a header


@block
def variable_number(data: Array, at: Any) -> tuple[Any, Any]:
    """A number in groups of seven bits, the lowest first, and where it ends; that is past all data where it does not."""
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


# where a field of a header goes, by the field that holds its structure, 0 for the header itself, and by its own number
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
    """Set a field that is known; False where it is of another type than it should be, or stands there twice."""
    if 0 <= parent < _PAGE_PLACES.shape[0] and 0 <= field < _PAGE_PLACES.shape[1]:
        place = _PAGE_PLACES[parent, field]
        if place != _NOWHERE:
            # whether DATA_PAGE_2 is compressed; all others are integers of 32 bits
            fits = kind < 3 if place == PAGE_COMPRESSED else kind == 5 and -_LIMIT <= value < _LIMIT
            if not fits or page[place] != ABSENT:
                return False
            page[place] = value
    return True


@block
def read_page_header(data: Array, at: int, page: Array, fields: Array) -> int:
    """Set a page's fields; returns where the header ends: past all data where it does not, and -1 where it is none.

    `fields` is scratch: the last field of each structure that is open.
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
        elif kind > 2:  # lists and maps, which no header of a page has
            return -1
        if depth < 2 and not set_page_field(page, fields[0] if depth else 0, fields[depth], kind, value):
            return -1
    return data.shape[0] + 1


@block
def accepts_page(
    data: Array, page: Array, codec: int, optional: bool, most_values: int, most_bytes: int
) -> bool:
    """Whether a page is one that can be read, as far as its header tells; sets what its fields come to."""
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
        # a block says how many bytes it holds; what it does not fill would be left as it was
        size, _ = variable_number(data, page[PAGE_START])
        return size == page[PAGE_BYTES] and size <= _SNAPPY_MOST * page[PAGE_STORED]
    return is_packed or page[PAGE_STORED] == page[PAGE_BYTES]


@driver()
def find_pages(
    data: Array, pages: Array, codec: int, optional: bool, most_values: int, most_bytes: int
) -> tuple[int, int]:
    """List pages that lie in `data` whole; returns how many, and where the next one begins, or -1 where that cannot be read.

    No page has more values than its chunk, nor more bytes.
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
    """Where definition levels of n values end, all of which must be there; -1 where one is null."""
    if last - at < 4:
        return np.int64(-1)
    stop = at + 4 + little_number(page, at, 4)
    if stop > last or not are_levels_full(page, at + 4, stop, n):
        return np.int64(-1)
    return stop


@block
def are_levels_full(page: Array, at: Any, stop: Any, n: int) -> bool:
    """Whether definition levels are those of n values, none of which is null, and end where they should."""
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
    """The i-th code of a packed group; at most 32 bits wide."""
    at = start + (i * width >> 3)
    word = first_word(page, at, min(at + 8, page.shape[0])) >> np.uint64(i * width & 7)
    return np.int64(word & ((np.uint64(1) << np.uint64(width)) - np.uint64(1)))


@block
def run_of_codes(page: Array, at: Any, last: Any, width: Any, left: int) -> tuple[Any, Any, Any, Any]:
    """The next codes of a page that has `left` of them and ends before `last`: how many, the code that all are or -1 for packed
    ones, where they begin, and where the next ones do. No codes where these are not good.
    """
    header, at = variable_number(page, at)
    n = header >> 1
    if header & 1:
        if 8 * n >= left + 8 or n > last:  # only the last group is filled up
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
    """Fill `out` with the values of pages, as bits: entries of their dictionary, or numbers of `stored` bytes, cut to its width.

    `entries` has room for PADDED, `scratch` for the longest page that is compressed and SPARE bytes. Returns how many values
    there were, or -1 where pages are not good or `out` is too short.
    """
    done = 0
    for i in range(pages.shape[0]):
        page = pages[i]
        held = scratch if page[PAGE_COMPRESSED] else data
        start, stop = place_of_values(data, page, scratch, out.shape[0] - done, stored)
        if start < 0:
            return -1
        values = out[done : done + page[PAGE_VALUES]]
        if page[PAGE_ENCODING] == PLAIN:
            plain_values(held, start, stored, values)
        elif not values_of_codes(held, start, stop, entries, n_entries, values):
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
    """As `values_of_pages`, for int64: the value of each run of equal ones, and where it ends; returns how many runs there are."""
    found, done = 0, 0
    for i in range(pages.shape[0]):
        page = pages[i]
        n = page[PAGE_VALUES]
        held = scratch if page[PAGE_COMPRESSED] else data
        start, stop = place_of_values(data, page, scratch, n, stored)
        if start < 0:
            return -1
        if page[PAGE_ENCODING] == PLAIN:
            found = runs_of_plain(held, start, n, stored, done, found, values, ends)
        else:
            found = runs_of_codes(held, start, stop, n, entries, n_entries, done, found, values, ends)
        if found < 0:
            return -1
        done += n
    return found


# of a table of texts: how many it has, and whether its slots are empty all the same
FOUND, IS_NEW = range(2)
_LOW = (1 << 32) - 1


@driver()
def texts_of_pages(
    data: Array,
    pages: Array,
    scratch: Array,
    entries: Array,
    n_entries: int,
    slots: Array,
    ends: Array,
    store: Array,
    state: Array,
    out: Array,
) -> int:
    """As `values_of_pages`, for texts: the number of each, in order of first appearance in a table that is added to.

    Text `i` of the table is `store[ends[i]:ends[i + 1]]`; a slot has 31 bits of a hash, and a number from 1, or is 0.
    Returns how many pages are done; fewer than all where the table has no room left, and -1 where pages are not good.
    """
    if state[IS_NEW]:
        for code in range(state[FOUND]):
            put_in_slot(store, ends[code], ends[code + 1], slots, code)
        state[IS_NEW] = 0
    done, ahead = 0, np.empty((4, AHEAD), np.int64)
    for i in range(pages.shape[0]):
        page = pages[i]
        held = scratch if page[PAGE_COMPRESSED] else data
        start, stop = place_of_values(data, page, scratch, out.shape[0] - done, 0)
        if start < 0:
            return -1
        codes = out[done : done + page[PAGE_VALUES]]
        if page[PAGE_ENCODING] == PLAIN:
            found = codes_of_plain(held, start, stop, slots, ends, store, state[FOUND], codes, ahead)
            if found == -1:
                return -1
            state[FOUND] = found if found >= 0 else -2 - found
            if found < 0:
                return i
        elif not values_of_codes(held, start, stop, entries, n_entries, codes):
            return -1
        done += codes.shape[0]
    return pages.shape[0]


@block
def put_in_slot(data: Array, start: Any, stop: Any, slots: Array, code: Any) -> None:
    hashed, _ = digest(data, start, stop)
    slot = hashed & (slots.shape[0] - 1)
    while slots[slot] != 0:
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = (hashed >> 1 << 32) | (code + 1)


AHEAD = 64  # texts whose places in memory are asked for together: one after the other they took three times as long


@block
def codes_of_plain(
    data: Array,
    at: Any,
    last: Any,
    slots: Array,
    ends: Array,
    store: Array,
    found: Any,
    codes: Array,
    ahead: Array,
) -> Any:
    """Number texts, each after its length; returns how many the table has then; -2 less as many where it is full, -1 for bad texts."""
    for first in range(0, codes.shape[0], AHEAD):
        some = codes[first : first + AHEAD]
        at = hash_ahead(data, at, last, slots, ends, store, ahead[:, : some.shape[0]])
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
def hash_ahead(data: Array, at: Any, last: Any, slots: Array, ends: Array, store: Array, ahead: Array) -> Any:
    """Hash, start and stop of some texts, and a look at what they will be compared with; returns where they end, -1 for bad ones."""
    for i in range(ahead.shape[1]):
        if last - at < 4:
            return np.int64(-1)
        start = at + 4
        at = start + little_number(data, at, 4)
        if at > last:
            return np.int64(-1)
        hashed, _ = digest(data, start, at)
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
    """Where the values of a page begin and end, in `scratch` if it is compressed.

    They begin at -1 where they are not good, one is null, there are more than there is room for, or plain ones of `stored` bytes
    would lead out of the page.
    """
    n, size, start = page[PAGE_VALUES], page[PAGE_BYTES], page[PAGE_START]
    stop = start + page[PAGE_STORED]
    held = scratch if page[PAGE_COMPRESSED] else data
    has_levels = page[PAGE_NULLABLE] and page[PAGE_KIND] == DATA_PAGE
    # those of DATA_PAGE_2 stand before what is compressed
    levels_before = page[PAGE_NULLABLE] and not has_levels
    if n > room or (levels_before and not are_levels_full(data, start - page[PAGE_LEVELS], start, n)):
        return np.int64(-1), np.int64(-1)
    if page[PAGE_COMPRESSED]:
        if size > scratch.shape[0] - SPARE or not unpack_snappy(data, start, stop, scratch, size):
            return np.int64(-1), np.int64(-1)
        start, stop = np.int64(0), size
    if has_levels:
        start = end_of_levels(held, start, stop, n)
    if page[PAGE_ENCODING] == PLAIN and n * stored > stop - start:
        start = np.int64(-1)
    return start, stop


@block
def unpack_snappy(data: Array, at: Any, stop: Any, out: Array, size: Any) -> bool:
    """Undo Snappy's compression; False where that does not give `size` bytes. Writes up to SPARE bytes more.

    By a library, page by page, threads wait for Python's lock at each page: two read no faster than one.
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
            if wide > 0:  # how many is in the next one to four bytes
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
        else:  # bytes from before
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
    """Numbers of four or eight bytes, cut to the width of `values`."""
    n = values.shape[0]
    safe = (
        max(n - 1, 0) if start + n * stored + 4 > data.shape[0] else n
    )  # a word of the last one may lead out
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
    """List runs of numbers of four or eight bytes, going on from those that were found up to row `done`."""
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
    """Fill `out` with entries of the dictionary, by the codes that stand from `at` to before `stop`; False where these are not good."""
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
    """Entries of packed codes of at most eight bits: one word has eight of them."""
    bits, mask = np.uint64(width), (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    highest = np.uint64(0)
    whole = values.shape[0] >> 3
    if start + whole * width + 8 > page.shape[0]:
        whole = max(0, whole - 8)  # the last words would lead out of the page
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
    """As `runs_of_plain`, of the entries that n codes stand for; -1 where codes are not good, or for more runs than there is room."""
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
