"""Texts of plain pages, numbered by a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block
from .codes import little_number
from .ids import Secret, digest
from .words import copy_widely, same_text

_LOW = (1 << 32) - 1


@block
def put_in_slot(data: Array, start: Any, stop: Any, secret: Secret, slots: Array, code: Any) -> None:
    hashed, _ = digest(data, start, stop, secret)
    slot = hashed & (slots.shape[0] - 1)
    while slots[slot] != 0:
        slot = (slot + 1) & (slots.shape[0] - 1)
    slots[slot] = (hashed >> 1 << 32) | (code + 1)


AHEAD = 64  # texts whose memory is fetched together; fetching one after the other took three times as long


@block
def codes_of_plain(
    data: Array,
    at: Any,
    last: Any,
    secret: Secret,
    slots: Array,
    ends: Array,
    store: Array,
    found: Any,
    codes: Array,
    ahead: Array,
) -> Any:
    """Write the number of each text of a plain page, in which a text follows its length; new texts are added
    to the table.

    Returns the number of texts in the table; -2 minus that number where it is full, and -1 where texts are
    malformed.
    """
    for first in range(0, codes.shape[0], AHEAD):
        some = codes[first : first + AHEAD]
        at = hash_ahead(data, at, last, secret, slots, ends, store, ahead[:, : some.shape[0]])
        if at < 0:
            return np.int64(-1)
        for i in range(some.shape[0]):
            hashed, start, stop = ahead[0, i], ahead[1, i], ahead[2, i]
            slot = hashed & (slots.shape[0] - 1)
            code = np.int64(-1)
            while slots[slot] != 0:
                if slots[slot] >> 32 == hashed >> 1:
                    other = (slots[slot] & _LOW) - 1
                    if same_text(data, start, stop, store, ends[other], ends[other + 1]):
                        code = other
                        break
                slot = (slot + 1) & (slots.shape[0] - 1)
            if code < 0:
                end, length = ends[found], stop - start
                if found + 2 > ends.shape[0] or length > store.shape[0] - end:
                    return -2 - np.int64(found)
                code = np.int64(found)
                slots[slot] = (hashed >> 1 << 32) | (code + 1)
                has_room = start + 64 <= data.shape[0] and end + 64 <= store.shape[0]
                copy_widely(data, start, length, store, end, has_room)
                ends[found + 1] = end + length
                found += 1
            some[i] = code
    return np.int64(found)


@block
def hash_ahead(
    data: Array, at: Any, last: Any, secret: Secret, slots: Array, ends: Array, store: Array, ahead: Array
) -> Any:
    """Write hash, start and stop of some texts to `ahead`, and fetch the texts that they will be compared
    with.

    Returns the end of the last text, or -1 where texts are malformed.
    """
    for i in range(ahead.shape[1]):
        if last - at < 4:
            return np.int64(-1)
        start = at + 4
        at = start + little_number(data, at, 4)
        if at > last:
            return np.int64(-1)
        hashed, _ = digest(data, start, at, secret)
        ahead[0, i], ahead[1, i], ahead[2, i] = hashed, start, at
    for i in range(ahead.shape[1]):
        ahead[3, i] = slots[ahead[0, i] & (slots.shape[0] - 1)]
    for i in range(ahead.shape[1]):
        ahead[3, i] = ends[max((ahead[3, i] & _LOW) - 1, 0)]
    for i in range(ahead.shape[1]):
        ahead[3, i] = store[min(ahead[3, i], store.shape[0] - 1)]
    return at
