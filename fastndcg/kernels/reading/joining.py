"""Joining judgments to a run by document id, and ordering tied documents by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block, driver
from ..flow.sorting import insert_by_key, sort_by_key
from .ids import _FIRST_BYTES, Ids, Secret, compare_ids, digest, plain_ids, sort_by_id
from .words import plain_fold

_PART = 1 << 14  # ids that are hashed together by NumPy, which the caches hold


def plain_digest_ids(offsets: Array, data: Array, secret: Secret, hashes: Array, leading: Array) -> None:
    """As `digest_ids`, with NumPy: one word of many ids at a time."""
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words = np.ndarray(data.shape[0] + 1, np.dtype("<u8"), padded.data, strides=(1,))
    for at in range(0, hashes.shape[0], _PART):
        ends = offsets[at : at + _PART + 1]
        starts, stops = ends[:-1], ends[1:]
        lengths = stops - starts
        first = words[starts] & _FIRST_BYTES[np.minimum(lengths, 8)]
        value: Array = plain_fold(first ^ secret[0], secret[1])  # type: ignore[assignment]
        for done in range(8, int(lengths.max(initial=0)), 8):
            (longer,) = np.nonzero(lengths > done)
            # the last word may repeat bytes of the word before
            word = words[np.minimum(starts[longer] + done, stops[longer] - 8)]
            value[longer] = plain_fold(value[longer] ^ word, secret[1])
        hashed = plain_fold(value ^ lengths.view(np.uint64), secret[1])  # type: ignore[arg-type]
        hashes[at : at + _PART] = hashed & np.uint64(0xFFFFFFFF)
        leading[at : at + _PART] = first.byteswap() >> np.uint64(8)


def hashes_of_numbers(numbers: Array, secret: Secret) -> Array:
    """32 bits of a hash of each whole number, by two products (as SplitMix64), a part at a time."""
    hashes = np.empty(numbers.shape[0], np.int64)
    for at in range(0, numbers.shape[0], _PART):
        part = numbers[at : at + _PART].view(np.uint64) ^ secret[0]
        for shift, factor in ((30, secret[1]), (27, np.uint64(0x94D049BB133111EB))):
            part ^= part >> np.uint64(shift)
            part *= factor
        hashes[at : at + _PART] = part >> np.uint64(32)
    return hashes


@driver(plain=plain_digest_ids)
def digest_ids(offsets: Array, data: Array, secret: Secret, hashes: Array, leading: Array) -> None:
    """Hash and first seven bytes of each id."""
    for row in range(hashes.shape[0]):
        hashes[row], leading[row] = digest(data, offsets[row], offsets[row + 1], secret)


def plain_join_documents(
    judged_offsets: Array,
    judged_rows: Array,
    judged: Ids,
    run_offsets: Array,
    run_rows: Array,
    run: Ids,
    found: Array,
) -> tuple[int, int, int]:
    """As `join_documents`, through a dict for each query."""
    judged_ids, run_ids = plain_ids(judged), plain_ids(run)
    for query in range(judged_offsets.shape[0] - 1):
        rows_of_id: dict[Any, int] = {}
        for row in judged_rows[judged_offsets[query] : judged_offsets[query + 1]].tolist():
            other = rows_of_id.setdefault(judged_ids[row], row)
            if other != row:
                return 1, other, row
        returned: dict[Any, int] = {}
        for row in run_rows[run_offsets[query] : run_offsets[query + 1]].tolist():
            other = returned.setdefault(run_ids[row], row)
            if other != row:
                return 2, other, row
            found[row] = rows_of_id.get(run_ids[row], -1)
    return 0, -1, -1


@driver(plain=plain_join_documents)
def join_documents(
    judged_offsets: Array,
    judged_rows: Array,
    judged: Ids,
    run_offsets: Array,
    run_rows: Array,
    run: Ids,
    found: Array,
) -> tuple[int, int, int]:
    """Fill `found` with the judged row of each document of the run, or -1; by one small hash table for each
    query.

    Both sides are grouped by query: query `q` owns `rows[offsets[q]:offsets[q + 1]]`. Returns (0, -1, -1), or
    1 for the judgments or 2 for the run, with the first two rows that are the same document of the same
    query.
    """
    n_queries = judged_offsets.shape[0] - 1
    largest = 0
    for query in range(n_queries):
        largest = max(
            largest,
            judged_offsets[query + 1] - judged_offsets[query] + run_offsets[query + 1] - run_offsets[query],
        )
    size = 2
    while size < 2 * largest:
        size *= 2
    slots, owners = np.zeros(size, np.int64), np.empty(size, np.int64)
    return join_by_hash(judged_offsets, judged_rows, judged, run_offsets, run_rows, run, slots, owners, found)


@block
def join_by_hash(
    judged_offsets: Array,
    judged_rows: Array,
    judged: Ids,
    run_offsets: Array,
    run_rows: Array,
    run: Ids,
    slots: Array,
    owners: Array,
    found: Array,
) -> tuple[int, int, int]:
    """As `join_documents`, without counting references to the arrays of ids, which took most of the time.

    A free slot is 0. Others hold 31 bits of the hash and the number of the document in its query, from 1:
    judged documents first, then those of the run. `owners` has the row of the run that was joined to a judged
    document, or -1.
    """
    low = (1 << 32) - 1
    for query in range(judged_offsets.shape[0] - 1):
        first, run_first = judged_offsets[query], run_offsets[query]
        n_judged = judged_offsets[query + 1] - first
        size = 2
        while size < 2 * (n_judged + run_offsets[query + 1] - run_first):
            size *= 2
        slots[:size] = 0
        for i in range(n_judged):
            row = judged_rows[first + i]
            tag = judged.hashes[row] >> 1
            slot = judged.hashes[row] & (size - 1)
            while slots[slot] != 0:
                if slots[slot] >> 32 == tag:
                    other = judged_rows[first + (slots[slot] & low) - 1]
                    if compare_ids(judged, row, judged, other) == 0:
                        return 1, other, row
                slot = (slot + 1) & (size - 1)
            slots[slot], owners[slot] = (tag << 32) | (i + 1), -1
        for i in range(run_first, run_offsets[query + 1]):
            row = run_rows[i]
            tag = run.hashes[row] >> 1
            slot = run.hashes[row] & (size - 1)
            found[row] = -1
            while slots[slot] != 0:
                if slots[slot] >> 32 == tag:
                    entry = (slots[slot] & low) - 1
                    if entry < n_judged:
                        other = judged_rows[first + entry]
                        if compare_ids(run, row, judged, other) == 0:
                            if owners[slot] >= 0:
                                return 2, owners[slot], row
                            owners[slot] = row
                            found[row] = other
                            break
                    else:
                        other = run_rows[run_first + entry - n_judged]
                        if compare_ids(run, row, run, other) == 0:
                            return 2, other, row
                slot = (slot + 1) & (size - 1)
            if slots[slot] == 0:
                slots[slot] = (tag << 32) | (n_judged + i - run_first + 1)
    return 0, -1, -1


_FEW_KEYS = 48  # up to so many keys, insertion sort is faster than radix sort


def plain_order_documents(
    offsets: Array, rows: Array, keys: Array, ids: Ids, ascending: bool, ordered: Array
) -> None:
    """As `order_documents`, with NumPy's sort, and with Python's for equal keys."""
    queries = np.repeat(np.arange(offsets.shape[0] - 1), np.diff(offsets))
    first, last = offsets[0], offsets[-1]
    own = rows[first:last]
    own = own[np.lexsort((keys[own], queries))]
    is_new = np.ones(len(own) + 1, np.bool_)
    is_new[1:-1] = (keys[own[1:]] != keys[own[:-1]]) | (queries[1:] != queries[:-1])
    runs = np.flatnonzero(is_new)
    tied = np.flatnonzero(np.diff(runs) > 1)
    values = plain_ids(ids) if len(tied) else []
    for start, stop in zip(runs[tied].tolist(), runs[tied + 1].tolist(), strict=True):
        own[start:stop] = sorted(own[start:stop].tolist(), key=values.__getitem__, reverse=not ascending)
    ordered[first:last] = own


@driver(plain=plain_order_documents)
def order_documents(
    offsets: Array, rows: Array, keys: Array, ids: Ids, ascending: bool, ordered: Array
) -> None:
    """Write the rows of each query to `ordered` by rising key (uint64), then by id, then in any order."""
    longest = 0
    for query in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[query + 1] - offsets[query])
    own_keys, places = np.empty(2 * longest, np.uint64), np.empty(2 * longest, np.int64)
    order_rows(offsets, rows, keys, ids, ascending, ordered, own_keys, places, np.empty(longest, np.int64))


@block
def order_rows(
    offsets: Array,
    rows: Array,
    keys: Array,
    ids: Ids,
    ascending: bool,
    ordered: Array,
    own_keys: Array,
    places: Array,
    spare: Array,
) -> None:
    for query in range(offsets.shape[0] - 1):
        first, n = offsets[query], offsets[query + 1] - offsets[query]
        own, here = rows[first : first + n], ordered[first : first + n]
        rising = True
        for i in range(n):
            places[i], own_keys[i] = i, keys[own[i]]
            rising = rising and (i == 0 or own_keys[i] >= own_keys[i - 1])
        start = 0
        if not rising and n <= _FEW_KEYS:
            insert_by_key(own_keys[:n], places[:n])
        elif not rising:
            start = sort_by_key(n, own_keys, places)
        for i in range(n):
            here[i] = own[places[start + i]]
        at = 0
        while at < n:
            stop = at + 1
            while stop < n and own_keys[start + stop] == own_keys[start + at]:
                stop += 1
            if stop - at > 1:
                sort_by_id(here[at:stop], ids, ascending, spare)
            at = stop
