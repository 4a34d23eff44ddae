"""Keys of 64 bits for ids, by NumPy: equal ids have equal keys, in every process and version."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrow_types import array_of, is_binary
from fastndcg.common.lazy import pa

UInt64 = npt.NDArray[np.uint64]

_ROWS = 1 << 14  # ids that are hashed together, so that they stay in the cache
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def mix(values: UInt64) -> UInt64:
    """Hash each number, so that each bit depends on all bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def keys_of(ids: pa.Array) -> UInt64:
    """Return a key of 64 bits for each id: the integer itself, or a hash of the text.

    >>> keys_of(pa.array(["a", "b", "a"]))[[0, 2]] == keys_of(pa.array(["a"]))
    array([ True,  True])
    """
    kind = ids.type
    if pa.types.is_dictionary(kind):
        keys: UInt64 = keys_of(ids.dictionary)[array_of(ids.indices)]
        return keys
    if pa.types.is_integer(kind):
        numbers = array_of(ids)
        wide: npt.NDArray[np.int64] = numbers.astype(np.uint64 if numbers.dtype.kind == "u" else np.int64)
        return wide.view(np.uint64)
    if pa.types.is_temporal(kind):
        ids = ids.cast(pa.int32()) if kind.bit_width == 32 else ids
        return keys_of(ids.cast(pa.int64()))
    ids = ids if is_binary(kind) or pa.types.is_fixed_size_binary(kind) else ids.cast(pa.large_string())
    texts = ids.cast(pa.large_binary())
    hashes = np.empty(len(texts), np.uint64)
    for start in range(0, len(texts), _ROWS):
        part = texts[start : start + _ROWS]
        hashes[start : start + _ROWS] = _hashes_of_texts(part)
    return hashes


def keys_of_digits(numbers: npt.NDArray[np.integer]) -> UInt64:
    """Return the keys of integers as texts. Arrow's cast would import pandas, which takes 0.3 s.

    >>> keys_of_digits(np.array([-12, 7])) == keys_of(pa.array(["-12", "7"]))
    array([ True,  True])
    """
    texts = numbers.astype("S24")
    words = texts.view("<u8").reshape(-1, 3)
    lengths = np.char.str_len(texts)
    hashes = mix(lengths.astype(np.uint64))
    for place in range(3):
        rows = np.flatnonzero(lengths > 8 * place)
        hashes[rows] = _with_word(hashes[rows], words[rows, place])
    return hashes


def _with_word(hashes: UInt64, words: UInt64) -> UInt64:
    return mix(hashes ^ words) + np.uint64(0x9E3779B97F4A7C15)


def _hashes_of_texts(texts: pa.LargeBinaryArray) -> UInt64:
    """Hash all texts, eight bytes at a time."""
    _, ends, held = texts.buffers()
    offsets = np.frombuffer(ends, np.int64, len(texts) + 1, 8 * texts.offset)
    data = np.frombuffer(held or b"", np.uint8)[offsets[0] : offsets[-1]]
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray(len(padded) - 7, np.dtype("<u8"), padded.data, strides=(1,))
    starts, left = offsets[:-1] - offsets[0], np.diff(offsets)
    hashes = mix(left.astype(np.uint64))
    rows = np.arange(len(texts))
    while len(rows := rows[left[rows] > 0]):
        word = words[starts[rows]] & _FIRST_BYTES[np.minimum(left[rows], 8)]
        hashes[rows] = _with_word(hashes[rows], word)
        starts[rows] += 8
        left[rows] -= 8
    return hashes
