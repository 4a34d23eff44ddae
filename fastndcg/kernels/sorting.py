"""Sorting of values, and of keys with the rows that belong to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.common import arrays
from fastndcg.kernels.schema import Array

from .compile.decorators import block, vectors
from .compile.llvm import Code, Data, Value
from .vectors.ranking import monotone

INSERTION = 24  # up to so many values, insertion sort is faster


@block
def sort_falling(values: Array, n: int) -> None:
    """Sort the first `n` values, greatest first: by insertion for few values, by heapsort for many."""
    if n <= INSERTION:
        for i in range(1, n):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] < value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    for top in range(n // 2 - 1, -1, -1):
        sink(values, top, n)
    root: Any = np.int64(0)  # with a literal 0 Numba would compile `sink` a second time
    for end in range(n - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        sink(values, root, end)


@block
def sink(values: Array, top: int, n: int) -> None:
    """Restore the heap below `top`; its least value comes first."""
    value = values[top]
    child = 2 * top + 1
    while child < n:
        if child + 1 < n and values[child + 1] < values[child]:
            child += 1
        if value <= values[child]:
            break
        values[top] = values[child]
        top, child = child, 2 * child + 1
    values[top] = value


@block
def average(gains: Array, n: int, exact: bool) -> float:
    """Mean of the first `n` gains, with equal bits in any order; the mean of equal gains is that gain."""
    lowest = highest = total = gains[0]
    for i in range(1, n):
        total += gains[i]
        lowest, highest = min(lowest, gains[i]), max(highest, gains[i])
    if lowest == highest:
        return lowest
    if not exact:
        sort_falling(gains, n)
        total = 0.0
        for i in range(n):
            total += gains[i]
    return total / n


@block
def insert_by_key(keys: Array, at: Array) -> None:
    """Sort `keys`, and `at` along with them, by rising key; equal keys keep their order."""
    for i in range(1, at.shape[0]):
        key, moved = keys[i], at[i]
        j = i
        while j > 0 and key < keys[j - 1]:
            keys[j], at[j] = keys[j - 1], at[j - 1]
            j -= 1
        keys[j], at[j] = key, moved


@block
def sort_by_key_stably(keys: Array, at: Array, spare_keys: Array, spare: Array) -> None:
    """As `insert_by_key`, for many keys, by merging."""
    n = at.shape[0]
    for start in range(0, n, INSERTION):
        insert_by_key(keys[start : start + INSERTION], at[start : start + INSERTION])
    width = INSERTION
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right, to = start, middle, start
            while left < middle and right < stop:
                # the places advance by the result of a comparison, so there is no branch to mispredict
                from_right = keys[right] < keys[left]
                source = right if from_right else left
                spare_keys[to], spare[to] = keys[source], at[source]
                right += from_right
                left += not from_right
                to += 1
            for i in range(left, middle):
                spare_keys[to], spare[to] = keys[i], at[i]
                to += 1
            for i in range(right, stop):
                spare_keys[to], spare[to] = keys[i], at[i]
                to += 1
        for i in range(n):
            keys[i], at[i] = spare_keys[i], spare[i]
        width *= 2


def plain_falling_keys(scores: Array, n: int, keys: Array) -> None:
    """Write unsigned keys that rise as scores fall; equal scores, including 0.0 and -0.0, have equal keys."""
    keys[:n] = arrays.falling_keys(scores[:n]).view(np.uint64) ^ np.uint64(1 << 63)


@vectors(plain_falling_keys)
def falling_keys(code: Code, scores: Data, n: Value, keys: Data) -> None:
    with code.range(n) as i:
        keys[i] = (monotone(scores[i], scores.bits) ^ ((1 << (scores.bits - 1)) - 1)).to(64)


@block
def sort_by_key(n: int, keys: Array, order: Array, starts: Array) -> int:
    """Sort the first `n` keys, and write their rows to `order`: a stable radix sort by the bytes that vary.

    Both arrays have length 2 * n or more, `starts` 256. Returns the start of the sorted halves: 0 or `n`.
    """
    varying = np.uint64(0)
    for i in range(n):
        order[i] = i
        varying |= keys[i] ^ keys[0]
    source, target = 0, n
    for byte in range(8):
        shift = np.uint64(8 * byte)
        if (varying >> shift) & np.uint64(255) == np.uint64(0):
            continue
        for digit in range(256):
            starts[digit] = 0
        for i in range(source, source + n):
            starts[np.int64((keys[i] >> shift) & np.uint64(255))] += 1
        move_by_byte(n, keys, order, shift, starts, source, target)
        source, target = target, source
    return source


@block
def move_by_byte(
    n: int, keys: Array, order: Array, shift: Any, counts: Array, source: int, target: int
) -> None:
    """A pass of a radix sort: move keys and rows from `source` to `target` by a byte, counted in `counts`."""
    total = target
    for digit in range(256):
        size = counts[digit]
        counts[digit] = total
        total += size
    for i in range(source, source + n):
        byte: Any = np.int64((keys[i] >> shift) & np.uint64(255))
        to = counts[byte]
        keys[to], order[to] = keys[i], order[i]
        counts[byte] = to + 1
