"""Ids as numbers and texts: hashed, compared, sorted."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block, in_place_of
from ..flow.sorting import INSERTION
from .words import first_word, fold, reversed_bytes, word_at


class Ids(NamedTuple):
    """Document ids as the join compares them: whole numbers in `leading`, texts in `offsets` and `data`."""

    hashes: Array  # int64: 32 bits of a hash
    leading: Array  # int64: the first seven bytes, or the number: orders ids, except those where it is equal
    offsets: Array  # int64 (n + 1,): id `i` is `data[offsets[i]:offsets[i + 1]]`
    data: Array  # uint8


# what is added to ids before they are hashed, and an odd factor: drawn anew by each process, so that nobody
# can make ids of equal hashes
Secret = tuple[np.uint64, np.uint64]
_FIRST_BYTES = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)


def plain_digest(text: Array, start: int, stop: int, secret: Secret) -> tuple[int, int]:
    """32 bits of a hash, and the first seven bytes as a number. As `digest`: both worlds share ids."""
    own = text[start:stop].tobytes()
    first = own[:8].ljust(8, b"\0")
    words = [first, *(own[at : at + 8] for at in range(8, len(own) - 7, 8))]
    if len(own) > 8 and len(own) % 8:
        words.append(own[-8:])  # repeats some bytes of the word before
    value, key = map(int, secret)
    for number in (*(int.from_bytes(word, "little") for word in words), len(own)):
        product = (value ^ number) * key
        value = (product ^ (product >> 64)) & 0xFFFFFFFFFFFFFFFF
    return value & 0xFFFFFFFF, int.from_bytes(first[:7], "big")


@block
def hash_of_number(value: Any, secret: Secret) -> Any:
    """A hash whose bits depend on all bits of a word.

    Of one product alone, ids at equal distances would lie in clusters for one secret in some.
    """
    return fold(fold(value ^ secret[0], secret[1]), secret[1])


@in_place_of(plain_digest)
def digest(text: Array, start: int, stop: int, secret: Secret) -> tuple[Any, Any]:
    word = first_word(text, start, stop)
    value = fold(secret[0] ^ word, secret[1])
    at = start + 8
    while at + 8 <= stop:
        value = fold(value ^ word_at(text, at), secret[1])
        at += 8
    if at < stop:
        value = fold(value ^ word_at(text, stop - 8), secret[1])  # repeats some bytes of the word before
    hashed = fold(value ^ np.uint64(stop - start), secret[1]) & np.uint64(0xFFFFFFFF)
    return np.int64(hashed), np.int64(reversed_bytes(word) >> np.uint64(8))


@block
def compare_text(text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int) -> int:
    """A number below, at or above 0 if a text is before, equal to or after the other, byte by byte."""
    shorter = min(stop - start, other_stop - other_start)
    at = 0
    while at + 8 <= shorter:
        one, two = word_at(text, start + at), word_at(other, other_start + at)
        if one != two:
            return -1 if reversed_bytes(one) < reversed_bytes(two) else 1
        at += 8
    for i in range(at, shorter):
        if text[start + i] != other[other_start + i]:
            return -1 if text[start + i] < other[other_start + i] else 1
    return (stop - start) - (other_stop - other_start)


@block
def compare_ids(ids: Ids, row: int, others: Ids, other: int) -> int:
    """A number below, at or above 0 if an id is before, equal to or after the other, as bytes or numbers."""
    if ids.leading[row] != others.leading[other]:
        return -1 if ids.leading[row] < others.leading[other] else 1
    if ids.offsets.shape[0] == 0:
        return 0
    return compare_text(
        ids.data,
        ids.offsets[row],
        ids.offsets[row + 1],
        others.data,
        others.offsets[other],
        others.offsets[other + 1],
    )


def plain_ids(ids: Ids) -> list[Any]:
    """Ids as Python compares them: as bytes, or as numbers."""
    if ids.offsets.shape[0] == 0:
        return ids.leading.tolist()
    data, ends = ids.data.tobytes(), ids.offsets.tolist()
    return [data[start:stop] for start, stop in pairwise(ends)]


@block
def sort_by_id(at: Array, ids: Ids, ascending: bool, spare: Array) -> None:
    """Sort rows by their ids."""
    n = at.shape[0]
    turn = 1 if ascending else -1
    for start in range(0, n, INSERTION):
        for i in range(start + 1, min(start + INSERTION, n)):
            moved = at[i]
            j = i
            while j > start and turn * compare_ids(ids, moved, ids, at[j - 1]) < 0:
                at[j] = at[j - 1]
                j -= 1
            at[j] = moved
    width = INSERTION
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for to in range(start, stop):
                if right >= stop or (left < middle and turn * compare_ids(ids, at[left], ids, at[right]) < 0):
                    spare[to] = at[left]
                    left += 1
                else:
                    spare[to] = at[right]
                    right += 1
        for i in range(n):
            at[i] = spare[i]
        width *= 2
