"""Keys of query ids, of 8 bytes each, and sets of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.rankings.grouping import text_of

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

_LONG = 1 << 16


class SeenKeys:
    """A set of keys of 8 bytes, as sorted arrays. Of overlapping arrays, each is twice the next or more."""

    def __init__(self) -> None:
        self._sorted: list[UInt64] = []

    def add(self, keys: UInt64) -> Int64:
        """Add keys. Returns the positions of keys that were in the set already, or that are added twice."""
        order = np.argsort(keys, kind="stable")
        new = keys[order]
        found = np.zeros(len(new), np.bool_)
        found[1:] = new[1:] == new[:-1]
        for old in self._sorted:
            if len(new) and old[0] <= new[-1] and new[0] <= old[-1]:
                place = np.searchsorted(old, new)
                found |= old[np.minimum(place, len(old) - 1)] == new
        if len(new):
            self._sorted.append(new)
        while len(self._sorted) > 1 and self._worth_merging(*self._sorted[-2:]):
            merged = np.concatenate(self._sorted[-2:])
            del self._sorted[-2:]  # frees memory for the sort, which needs half as much again
            merged.sort(kind="stable")  # which merges integers that are sorted already
            self._sorted.append(merged)
        return np.sort(order[found])

    @staticmethod
    def _worth_merging(one: UInt64, other: UInt64) -> bool:
        """Whether to merge two arrays. Long arrays that do not overlap stay apart."""
        apart = bool(one[-1] < other[0] or other[-1] < one[0])
        return len(one) <= 2 * len(other) and (len(one) < _LONG or not apart)


_NO_SECRET = np.uint64(0)  # of parts, whose order a user may see


def keys_of(ids: pa.Array, secret: np.uint64 = _NO_SECRET) -> UInt64:
    """A key of 64 bits for each id: the integer itself, or a hash of the text, which depends on a secret.

    >>> keys_of(pa.array(["a", "b", "a"]))[[0, 2]] == keys_of(pa.array(["a"]))
    array([ True,  True])
    """
    kind = ids.type
    if pa.types.is_dictionary(kind):
        keys: UInt64 = keys_of(ids.dictionary, secret)[array_of(ids.indices)]
        return keys
    if pa.types.is_integer(kind):
        numbers = array_of(ids)
        wide: npt.NDArray[Any] = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
        return wide.view(np.uint64)
    if pa.types.is_temporal(kind):
        ids = ids.cast(pa.int32()) if kind.bit_width == 32 else ids
        return keys_of(ids.cast(pa.int64()))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        ids = ids if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else ids.cast(pa.string())
    return _hash(ids.cast(pa.large_binary()), secret)


def _hash(texts: pa.Array, secret: np.uint64) -> UInt64:
    """Hashes of texts, eight bytes of all of them at a time."""
    offsets, data = text_of(texts)
    padded = np.concatenate([data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8)])
    words = np.ndarray(len(padded) - 7, np.dtype("<u8"), padded.data, strides=(1,))
    starts, left = offsets[:-1] - offsets[0], np.diff(offsets)
    hashes = mix(left.astype(np.uint64) ^ secret)
    rows = np.arange(len(texts))
    while len(rows):
        unread = left[rows] > 0
        if not unread.all():
            rows = rows[unread]
        short = np.minimum(left[rows], 8)
        word = words[starts[rows]] & _FIRST_BYTES[short]
        hashes[rows] = mix(hashes[rows] ^ word) + np.uint64(0x9E3779B97F4A7C15)
        starts[rows] += 8
        left[rows] -= 8
    return hashes


_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def mix(values: UInt64) -> UInt64:
    """Hash each number, so that each bit depends on all bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
