"""Hashes of queries, and of their judgments, for signatures."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block, driver, in_place_of
from .ids import digest, hash_of_number
from .words import plain_fold

# the same in all processes and versions, since digests are stored
SECRET = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_FACTORS = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)  # xxHash's primes
_DIGITS = 18  # of numbers that surely fit into 64 bits
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]{0,%d})" % (_DIGITS - 1))
_BLOCK = 1 << 18  # documents that NumPy hashes together, so that their hashes stay in a cache


def plain_number_in(text: Array, start: int, stop: int) -> tuple[bool, Any]:
    """Whether a text is a whole number as Python writes it, of few digits; and the number, as a word."""
    own = text[start:stop].tobytes()
    is_number = _NUMBER.fullmatch(own) is not None
    return is_number, np.int64(own).astype(np.uint64) if is_number else np.uint64(0)


@in_place_of(plain_number_in)
def number_in(text: Array, start: int, stop: int) -> tuple[bool, Any]:
    value = np.uint64(0)
    at = start + 1 if stop > start and text[start] == 45 else start
    length = stop - at
    if length == 0 or length > _DIGITS or (text[at] == 48 and length > 1):
        return False, value
    for i in range(at, stop):
        digit = text[i] - 48
        if digit < 0 or digit > 9:
            return False, value
        value = value * np.uint64(10) + np.uint64(digit)
    return True, np.uint64(0) - value if at > start else value


@driver()
def hash_texts(offsets: Array, data: Array, hashes: Array) -> None:
    """A hash of each text; that of a whole number is the number's."""
    for row in range(hashes.shape[0]):
        is_number, word = number_in(data, offsets[row], offsets[row + 1])
        if not is_number:
            hashed, leading = digest(data, offsets[row], offsets[row + 1], SECRET)
            word = np.uint64(hashed << 24) ^ np.uint64(leading) ^ SECRET[1]
        hashes[row] = hash_of_number(word, SECRET)


def plain_hash_numbers(numbers: Array, hashes: Array) -> None:
    hashes[:] = plain_fold(plain_fold(numbers.astype(np.uint64) ^ SECRET[0], SECRET[1]), SECRET[1])  # type: ignore[arg-type]


@driver(plain=plain_hash_numbers)
def hash_numbers(numbers: Array, hashes: Array) -> None:
    for row in range(hashes.shape[0]):
        hashes[row] = hash_of_number(np.uint64(numbers[row]), SECRET)


def plain_hash_judgments(offsets: Array, codes: Array, is_judged: Array, hashes: Array) -> None:
    first, n = 0, hashes.shape[0]
    while first < n:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, "right")) - 1)
        rows = slice(int(offsets[first]), int(offsets[last]))
        mixed = np.append(hash_of_code(codes[rows].astype(np.int32).view(np.uint32)), np.uint32(0))
        if is_judged.shape[0]:
            mixed[:-1][~is_judged[rows]] = 0
        sums = np.add.reduceat(mixed, offsets[first:last] - offsets[first], dtype=np.uint32)
        sums = np.where(np.diff(offsets[first : last + 1]) > 0, sums, np.uint32(0)).astype(np.uint64)
        plain_hash_numbers(hashes[first:last] ^ sums, hashes[first:last])
        first = last


@block
def hash_of_code(code: Any) -> Any:
    """32 bits: as many as fit eight times into a vector, for which each step says its type."""
    mixed = np.uint32(code * _FACTORS[0])
    mixed = np.uint32(mixed ^ np.uint32(mixed >> np.uint32(15)))
    mixed = np.uint32(mixed * _FACTORS[1])
    return np.uint32(mixed ^ np.uint32(mixed >> np.uint32(13)))


@driver(plain=plain_hash_judgments)
def hash_judgments(offsets: Array, codes: Array, is_judged: Array, hashes: Array) -> None:
    """Hash the judgments of each query into that of its id. The order of documents does not matter."""
    for query in range(hashes.shape[0]):
        start, stop = offsets[query], offsets[query + 1]
        own, total = codes[start:stop], np.int32(0)
        if is_judged.shape[0] == 0:
            for i in range(own.shape[0]):
                total = np.int32(total + np.int32(hash_of_code(np.uint32(np.int32(own[i])))))
        else:
            judged = is_judged[start:stop]
            for i in range(own.shape[0]):
                if judged[i]:
                    total = np.int32(total + np.int32(hash_of_code(np.uint32(np.int32(own[i])))))
        hashes[query] = hash_of_number(hashes[query] ^ np.uint64(np.uint32(total)), SECRET)
