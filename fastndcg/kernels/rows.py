"""Rows: which of them are of one query, and in which order another tool would take them."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.tables import Array

from .marks import driver


@driver()
def find_changes(values: Array, rows: Array) -> int:
    """List the rows whose value differs from that of the row before, as far as `rows` has room; returns how many there are."""
    before, after = values[:-1], values[1:]
    found = 0
    for row in range(after.shape[0]):
        if after[row] != before[row]:
            if found < rows.shape[0]:
                rows[found] = row + 1
            found += 1
    return found


@driver()
def codes_by_first_appearance(indices: Array, n_values: int) -> tuple[Array, Array]:
    """Number the values that occur in order of first appearance; returns each row's number and each number's first row."""
    numbers = np.full(n_values, -1, np.int64)
    codes = np.empty(indices.shape[0], np.int64)
    first_rows = np.empty(n_values, np.int64)
    found = 0
    for row in range(indices.shape[0]):
        value = indices[row]
        if numbers[value] < 0:
            numbers[value] = found
            first_rows[found] = row
            found += 1
        codes[row] = numbers[value]
    return codes, first_rows[:found]


@driver()
def rows_by_code(codes: Array, n_codes: int) -> tuple[Array, Array]:
    """Offsets of each code and the rows in its order, rows of one code in their own order (a counting sort)."""
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


@driver()
def argsort_falling(offsets: Array, scores: Array) -> Array:
    """Rows of each query in the order that Numba's np.argsort(-scores) gives: ranx's, with its unstable order of ties."""
    rows = np.empty(scores.shape[0], np.int64)
    for query in range(offsets.shape[0] - 1):
        start, stop = offsets[query], offsets[query + 1]
        rows[start:stop] = start + np.argsort(-scores[start:stop])
    return rows
