"""Values of a page: plain ones, and codes of a dictionary, in runs of one code and in packed groups; and
Snappy, which packs them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block
from .page_headers import variable_number
from .words import copy_8, copy_32, first_word, word_at


@block
def end_of_levels(page: Array, at: Any, last: Any, n: int) -> Any:
    """The end of the definition levels of n values; -1 where a value is null or the levels are malformed."""
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
    start of the next run. The number is 0 where the run is malformed.
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


# ---- compression ----


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
