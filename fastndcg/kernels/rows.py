"""Grouping of rows by query, and the order in which another tool would rank them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.schema import Array

from .compile.decorators import block, driver

_PART = 1 << 18  # rows numbered together by NumPy, which the caches hold


def plain_codes_by_first_appearance(
    indices: Array, numbers: Array, codes: Array, first_rows: Array, counts: Array
) -> int:
    """As `codes_by_first_appearance`, a part at a time; only rows of new values are looked at again."""
    found, row_of = 0, np.empty(numbers.shape[0], np.int64)
    for start in range(0, indices.shape[0], _PART):
        values, own = indices[start : start + _PART], codes[start : start + _PART]
        numbers.take(values, 0, out=own, mode="clip")
        new = np.flatnonzero(own < 0)
        row_of[values[new[::-1]]] = new[::-1]  # reversed, so that the first row is assigned last
        firsts = new[row_of[values[new]] == new]
        first_rows[found : found + len(firsts)] = firsts + start
        numbers[values[firsts]] = np.arange(found, found + len(firsts))
        own[new] = numbers[values[new]]
        found += len(firsts)
    counts[:found] = np.bincount(codes, minlength=found)
    return found


@driver(plain=plain_codes_by_first_appearance)
def codes_by_first_appearance(
    indices: Array, numbers: Array, codes: Array, first_rows: Array, counts: Array
) -> int:
    """Number the distinct values by first appearance; returns how many there are.

    Writes the number of each row to `codes`, and for each number its first row and its count of rows.
    `indices` are values from 0; `numbers` is scratch memory, -1 for each possible value.
    """
    found = 0
    for row in range(indices.shape[0]):
        value = indices[row]
        if numbers[value] < 0:
            numbers[value] = found
            first_rows[found], counts[found] = row, 0
            found += 1
        codes[row] = numbers[value]
        counts[numbers[value]] += 1
    return found


def plain_rows_by_code(codes: Array, n_codes: int) -> tuple[Array, Array]:
    offsets = np.append(0, np.cumsum(np.bincount(codes, minlength=n_codes)))
    return offsets, np.argsort(codes, kind="stable")


@driver(plain=plain_rows_by_code)
def rows_by_code(codes: Array, n_codes: int) -> tuple[Array, Array]:
    """Offsets of the codes, and rows sorted by code, in their order within a code (a counting sort)."""
    offsets = np.zeros(n_codes + 1, np.int64)
    for row in range(codes.shape[0]):
        offsets[codes[row] + 1] += 1
    for code in range(n_codes):
        offsets[code + 1] += offsets[code]
    ends = offsets.copy()
    rows = np.empty(codes.shape[0], np.int64)
    for row in range(codes.shape[0]):
        code = codes[row]
        rows[ends[code]] = row
        ends[code] += 1
    return offsets, rows


@block
def scale_of(width: Any) -> Any:
    return np.uint64(((1 << 58) + width - 1) // width)


@block
def bucket_of(code: Any, scale: Any) -> Any:
    """`code // width` as a product, because a division takes ten times as long; `scale` is that of
    `scale_of(width)`.

    The scale is too large by at most `width - 1`, in units of `1 / width`. The quotient is exact while `code
    * width < 2**58`: codes are below 2**31, and widths below 2**27. The product is at most `BUCKETS * 2**58`.
    """
    return np.int64((np.uint64(code) * scale) >> np.uint64(58))


# for two columns and the codes: with more buckets than the processor has entries for memory pages, this took
# three times as long
BUCKETS = 20


@driver()
def place_by_code(
    codes: Array,
    offsets: Array,
    spare_codes: Array,
    spare_one: Array,
    spare_other: Array,
    one: Array,
    other: Array,
    placed_one: Array,
    placed_other: Array,
) -> None:
    """Bring two columns into the order of `rows_by_code`: first into buckets of codes, each of which then
    fits the caches.

    `spare_codes`, `spare_one` and `spare_other` are scratch memory with a place for each row.
    """
    n_codes = offsets.shape[0] - 1
    width = (n_codes + BUCKETS - 1) // BUCKETS
    scale = scale_of(width)
    ends = np.empty(BUCKETS, np.int64)
    for bucket in range(BUCKETS):
        ends[bucket] = offsets[min(bucket * width, n_codes)]
    for row in range(codes.shape[0]):
        code = codes[row]
        owner = bucket_of(code, scale)
        at = ends[owner]
        spare_codes[at], spare_one[at], spare_other[at] = code, one[row], other[row]
        ends[owner] = at + 1
    places = offsets.copy()
    for row in range(codes.shape[0]):
        code = spare_codes[row]
        at = places[code]
        placed_one[at], placed_other[at] = spare_one[row], spare_other[row]
        places[code] = at + 1


@driver()
def argsort_falling(offsets: Array, scores: Array) -> Array:
    """Rows of each query in the order of Numba's np.argsort(-scores), including ties, for ranx."""
    rows = np.empty(scores.shape[0], np.int64)
    for query in range(offsets.shape[0] - 1):
        start, stop = offsets[query], offsets[query + 1]
        rows[start:stop] = start + np.argsort(-scores[start:stop])
    return rows
