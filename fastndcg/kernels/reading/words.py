"""Bytes of text, eight at a time: a word is a number whose lowest byte is the first character."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.llvm import Code, Data, Value
from ..compile.marks import block, in_place_of, ir, vectors

_ONE = np.uint64(1)


def plain_fold(value: np.uint64, key: np.uint64) -> np.uint64:
    """The upper half of the product of two words, 128 bits wide, exclusive-or the lower half."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    middle = (value >> half) * (key & low) + ((value & low) * (key & low) >> half)
    other = (value & low) * (key >> half) + (middle & low)
    return (value * key) ^ ((value >> half) * (key >> half) + (middle >> half) + (other >> half))


@vectors(plain_fold, within=True)
def fold(code: Code, value: Value, key: Value) -> Value:
    product = value.to(128) * key.to(128)
    return product.to(64) ^ (product >> 64).to(64)


@block
def same_bytes(text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int) -> bool:
    same = stop - start == other_stop - other_start
    i = 0
    while same and i < stop - start:
        same = text[start + i] == other[other_start + i]
        i += 1
    return same


def plain_word_at(data: Array, at: int) -> np.uint64:
    """The eight bytes from `at` on, as a word."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@vectors(plain_word_at, within=True)
def word_at(code: Code, data: Data, at: Value) -> Value:
    return data.load(at, 8).read_as(ir.IntType(64))


@in_place_of(same_bytes)
def same_text(text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int) -> bool:
    length = stop - start
    if length != other_stop - other_start:
        return False
    if length > 8:
        for at in range(0, length - 8, 8):
            if word_at(text, start + at) != word_at(other, other_start + at):
                return False
        return word_at(text, stop - 8) == word_at(other, other_stop - 8)
    if length == 0 or start + 8 > text.shape[0] or other_start + 8 > other.shape[0]:
        return same_bytes(text, start, stop, other, other_start, other_stop)
    unlike = word_at(text, start) ^ word_at(other, other_start)
    return unlike << np.uint64(64 - 8 * length) == np.uint64(0)


def plain_reversed_bytes(word: np.uint64) -> np.uint64:
    return word.byteswap()


@vectors(plain_reversed_bytes, within=True)
def reversed_bytes(code: Code, word: Value) -> Value:
    return Value(code, code.builder.bswap(word.raw))


@block
def first_word(text: Array, start: int, stop: int) -> Any:
    """The first eight bytes as a word; a shorter text is filled up with zeros."""
    if start + 8 <= text.shape[0]:
        word = word_at(text, start)
        return word if stop - start >= 8 else word & ((_ONE << np.uint64(8 * (stop - start))) - _ONE)
    word = np.uint64(0)
    for i in range(min(stop - start, 8)):
        word |= np.uint64(text[start + i]) << np.uint64(8 * i)
    return word
