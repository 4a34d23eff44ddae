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
from .codes import (
    are_levels_full,
    end_of_levels,
    little_number,
    plain_values,
    runs_of_codes,
    runs_of_plain,
    unpack_snappy,
    values_of_codes,
)
from .ids import Secret, digest
from .page_headers import (
    DATA_PAGE,
    NESTED,
    PAGE_BYTES,
    PAGE_COMPRESSED,
    PAGE_ENCODING,
    PAGE_KIND,
    PAGE_LEVELS,
    PAGE_NULLABLE,
    PAGE_START,
    PAGE_STORED,
    PAGE_VALUES,
    PLAIN,
    SPARE,
    accepts_page,
    read_page_header,
)
from .words import copy_widely, same_text

_LOW = (1 << 32) - 1
AHEAD = 64  # texts whose memory is fetched together; fetching one after the other took three times as long


@driver()
def find_pages(
    data: Array, pages: Array, codec: int, optional: bool, most_values: int, most_bytes: int
) -> tuple[int, int]:
    """List the pages that are complete in `data`; returns their number, and the start of the next page or -1
    if it is not readable.

    No page has more values or bytes than its chunk: `most_values` and `most_bytes`.
    """
    fields = np.empty(NESTED, np.int64)
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


@driver()
def values_of_pages(
    data: Array, pages: Array, scratch: Array, stored: int, entries: Array, n_entries: int, out: Array
) -> int:
    """Fill `out` with the values of pages, as bits: dictionary entries, or numbers of `stored` bytes cut to
    the width of `out`.

    `entries` has room for PADDED, `scratch` for the longest compressed page and SPARE bytes. Returns the
    number of values, or -1 where pages are malformed or `out` is too short.
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
    where the table is full, and -1 where pages are malformed.
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
def place_of_values(data: Array, page: Array, scratch: Array, room: Any, stored: int) -> tuple[Any, Any]:
    """Start and end of the values of a page; a compressed page is unpacked to `scratch`, and they are places
    in that.

    The start is -1 where the page is malformed, a value is null, there are more than `room` values, or plain
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


# ---- texts of plain pages, numbered by a hash table ----


@block
def put_in_slot(data: Array, start: Any, stop: Any, secret: Secret, slots: Array, code: Any) -> None:
    hashed, _ = digest(data, start, stop, secret)
    slot = hashed & (slots.shape[0] - 1)
    while slots[slot] != 0:
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = (hashed >> 1 << 32) | (code + 1)


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
    malformed.
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

    Returns the end of the last text, or -1 where texts are malformed.
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
