"""Random signs and draws, and sums over them. Values are whole numbers, so sums do not depend on the
order of additions.

A word of 64 random bits depends only on the seed, the number of the resample and the block of queries (the
generator SplitMix64 of Steele, Lea and Flood, 2014, with a separate stream for each resample). So threads can
share the resamples in any way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.schema import Array

from .compile.decorators import IS_COMPILED, block, driver

# plain Python uses its own integers: those of NumPy would warn when they wrap
word: Any = np.uint64 if IS_COMPILED else int

_ALL = word(2**64 - 1)
_LOW = word(2**32 - 1)
_BYTE = word(255)
_STEP = word(0x9E3779B97F4A7C15)
_FIRST = word(0xBF58476D1CE4E5B9)
_SECOND = word(0x94D049BB133111EB)
_BY_27, _BY_30, _BY_31, _BY_32 = word(27), word(30), word(31), word(32)
_BY_8, _BY_16, _BY_24, _BY_40, _BY_48, _BY_56 = word(8), word(16), word(24), word(40), word(48), word(56)

_BESIDE = 512  # resamples that are drawn side by side


@block
def mix(value: int) -> int:
    value = ((value ^ (value >> _BY_30)) * _FIRST) & _ALL
    value = ((value ^ (value >> _BY_27)) * _SECOND) & _ALL
    return value ^ (value >> _BY_31)


@block
def random_word(stream: int, number: int) -> int:
    return mix((stream + word(number) * _STEP) & _ALL)


@block
def stream_of(seed: int, resample: int) -> int:
    return mix(word(seed) ^ mix((word(resample) * _STEP + _SECOND) & _ALL))


@driver()
def flip_signs(seed: int, first: int, values: Array, sums: Array) -> None:
    """For resamples from `first` on, the sum of the values, each with a random sign: int64 (n,) to int64
    (n_resamples,). Sums of eight values are looked up in a table of their 256 combinations of signs.
    """
    n_resamples = sums.shape[0]
    streams, words = np.empty(n_resamples, np.uint64), np.empty(n_resamples, np.uint64)
    for r in range(n_resamples):
        streams[r] = stream_of(seed, first + r)
        sums[r] = 0
    tables = np.empty((8, 256), np.int64)
    for b in range((values.shape[0] + 63) // 64):
        for group in range(8):
            start = 64 * b + 8 * group
            tables[group, 0] = 0
            for place in range(8):
                value = values[start + place] if start + place < values.shape[0] else 0
                size = 1 << place
                for signs in range(size):
                    tables[group, size + signs] = tables[group, signs] + value
                    tables[group, signs] -= value
        for r in range(n_resamples):  # a separate loop becomes vectors, which takes two thirds of the time
            words[r] = random_word(word(streams[r]), b)
        for r in range(n_resamples):
            bits = word(words[r])
            sums[r] += (
                tables[0, bits & _BYTE]
                + tables[1, (bits >> _BY_8) & _BYTE]
                + tables[2, (bits >> _BY_16) & _BYTE]
                + tables[3, (bits >> _BY_24) & _BYTE]
                + tables[4, (bits >> _BY_32) & _BYTE]
                + tables[5, (bits >> _BY_40) & _BYTE]
                + tables[6, (bits >> _BY_48) & _BYTE]
                + tables[7, bits >> _BY_56]
            )


@driver()
def draw_sums(seed: int, first: int, values: Array, sums: Array) -> None:
    """For resamples from `first` on, the sum of n values drawn with replacement: int64 (n,) to int64
    (n_resamples,). The same seed draws the same places, whatever the values.

    Resamples are drawn side by side, so that vectors compute the random words: a third of the time.
    """
    n, size = values.shape[0], word(values.shape[0])
    streams, words = np.empty(_BESIDE, np.uint64), np.empty(_BESIDE, np.uint64)
    for start in range(0, sums.shape[0], _BESIDE):
        part = sums[start : start + _BESIDE]
        for r in range(part.shape[0]):
            streams[r] = stream_of(seed, first + start + r)
            part[r] = 0
        for pair in range((n + 1) // 2):
            for r in range(part.shape[0]):  # a separate loop becomes vectors
                words[r] = random_word(word(streams[r]), pair)
            for r in range(part.shape[0]):
                bits = word(words[r])
                part[r] += values[((bits & _LOW) * size) >> _BY_32]
                if 2 * pair + 1 < n:
                    part[r] += values[((bits >> _BY_32) * size) >> _BY_32]
