"""Drivers: chunks of queries, cut so that each has about as many documents, by one thread or many."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.tables import Array, Documents, Plan
from fastndcg.kernels.worlds import kind_of

from .llvm import Data, const
from .marks import IS_COMPILED, driver, private, steps, vectors
from .memory import batch_for, longest_list, scratch_for, work_for
from .scoring import score_queries_of_levels, score_queries_of_values

_LOOKED_AT = 1024  # values


@driver()
def score_levels_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in range(chunks.shape[0] - 1):
        first, last = chunks[c], chunks[c + 1]
        longest = longest_list(documents.offsets, first, last)
        scratch = scratch_for(longest, True, 0, documents, plan)
        score_queries_of_levels(
            first, last, documents, plan, scratch, work_for(longest), batch_for(longest, plan), out
        )


@driver()
def score_values_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in range(chunks.shape[0] - 1):
        first, last = chunks[c], chunks[c + 1]
        longest, pool = (
            longest_list(documents.offsets, first, last),
            longest_list(documents.pool_offsets, first, last),
        )
        scratch = scratch_for(longest, False, pool, documents, plan)
        score_queries_of_values(
            first, last, documents, plan, scratch, work_for(longest), batch_for(longest, plan), out
        )


@driver()
def replace_undefined(values: Array, instead: Array, undefined: Array) -> int:
    """Put `instead[row]` where a row of values is NaN, and set `undefined` there; returns how many values are infinite.

    A part at a time: in most all are finite, and looked at as vectors. NumPy's functions, for all and then for NaN, took 0.25 ms
    for the 180,000 values of an evaluation that takes 11; this takes 0.1.
    """
    infinite = 0
    for row in range(values.shape[0]):
        for first in range(0, values.shape[1], _LOOKED_AT):
            part = values[row, first : first + _LOOKED_AT]
            finite = 0
            for i in range(part.shape[0]):
                finite += abs(part[i]) < np.inf
            if finite == part.shape[0]:
                continue
            for i in range(part.shape[0]):
                if np.isnan(part[i]):
                    part[i] = instead[row]
                    undefined[row, first + i] = True
                else:
                    infinite += np.isinf(part[i])
    return infinite


def address_of(serial: Any, *arguments: Any) -> Any:
    """Where the compiled code of a serial driver for such arguments is; it is compiled now where it was not before."""
    if not IS_COMPILED:
        return serial
    kind = serial, kind_of(arguments)
    if kind not in _addresses:
        _addresses[kind] = private.address_of(serial, arguments)
    return _addresses[kind]


_addresses: dict[Any, Any] = {}


def plain_call_at(serial: Any, chunks: Array, documents: Documents, plan: Plan, out: Array) -> int:
    """Call the code of a serial driver; returns 1 where it failed, for want of memory, and 0 otherwise.

    A second copy of that code, as a part of the parallel driver, took 8 s to compile.
    """
    serial(chunks, documents, plan, out)
    return 0


call_at = plain_call_at if private is None else private.call_at
# whether there is a parallel driver: without it threads of Python run the serial one, of which a second copy would be compiled
IS_PARALLEL = not IS_COMPILED or private is not None


def plain_take_next(taken: Array) -> int:
    """How many were taken before: a number that no other thread gets."""
    taken[0] += 1
    return int(taken[0]) - 1


@vectors(plain_take_next, within=True)
def take_next(builder: Any, taken: Data) -> Any:
    return builder.atomic_rmw("add", taken.data.address, const(1), "monotonic")


@driver(parallel=True)
def score_parallel(
    address: Any, threads: int, taken: Array, chunks: Array, documents: Documents, plan: Plan, out: Array
) -> int:
    """Run the serial driver at the address over chunks of queries; returns how many of these failed.

    Each thread takes the next chunk when it is done with one, so that one whose core is busy takes fewer: beside a process
    that kept one of two cores busy, shares cut beforehand took half as long again. `taken` counts them: int64 (1,), from 0.
    """
    failed = 0
    for _ in steps(threads):
        c = take_next(taken)
        while c < chunks.shape[0] - 1:
            failed += call_at(address, chunks[c : c + 2], documents, plan, out)
            c = take_next(taken)
    return failed
