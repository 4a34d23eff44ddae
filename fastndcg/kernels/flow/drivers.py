"""Drivers: they score chunks of queries, of about equal numbers of documents, with one thread or several."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels.compile.worlds import kind_of
from fastndcg.kernels.flow.tables import Array, Documents, Plan

from ..compile.llvm import Code, Data, Value
from ..compile.marks import IS_COMPILED, driver, private, steps, vectors
from .memory import batch_for, longest_list, scratch_for, work_for
from .scoring import score_queries_of_levels, score_queries_of_values


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


def address_of(serial: Any, *arguments: Any) -> Any:
    """The address of a compiled serial driver; compiles it and `score_parallel` if necessary."""
    if not IS_COMPILED:
        return serial
    kind = serial, kind_of(arguments)
    if kind not in _addresses:
        from ..compile.compiling import compile_for  # imports Numba

        address = private.address_of(serial, arguments)
        # its first call would otherwise search all installed packages for extensions of Numba, 25 ms
        compile_for(score_parallel, (address, 1, np.zeros(1, np.int64), *arguments))
        _addresses[kind] = address
    return _addresses[kind]


_addresses: dict[Any, Any] = {}


def plain_call_at(serial: Any, chunks: Array, documents: Documents, plan: Plan, out: Array) -> int:
    """Call a serial driver by its address; returns 1 where it failed for lack of memory, and 0 otherwise.

    A second copy of its code inside the parallel driver took 8 s to compile.
    """
    serial(chunks, documents, plan, out)
    return 0


call_at = plain_call_at if private is None else private.call_at
# whether there is a parallel driver. Without private parts of Numba it would contain a second compiled copy
# of the serial driver, so Python threads run the serial driver instead
IS_PARALLEL = not IS_COMPILED or private is not None


def plain_take_next(taken: Array) -> int:
    """Add 1 to the counter `taken`; returns its value before, which no other thread gets."""
    taken[0] += 1
    return int(taken[0]) - 1


@vectors(plain_take_next, within=True)
def take_next(code: Code, taken: Data) -> Value:
    return Value(code, code.builder.atomic_rmw("add", taken.at(0), code.number(1).raw, "monotonic"))


@driver(parallel=True)
def score_parallel(
    address: Any, threads: int, taken: Array, chunks: Array, documents: Documents, plan: Plan, out: Array
) -> int:
    """Run the serial driver at the address over chunks of queries; returns how many chunks failed.

    Each thread takes the next chunk when it has finished one, so a thread on a busy core takes fewer. With
    equal shares, and one of two cores busy with another process, a run took half as long again. `taken`
    counts chunks: int64 (1,), from 0.
    """
    failed = 0
    for _ in steps(threads):
        c = take_next(taken)
        while c < chunks.shape[0] - 1:
            failed += call_at(address, chunks[c : c + 2], documents, plan, out)
            c = take_next(taken)
    return failed
