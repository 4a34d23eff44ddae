"""Drivers, which score chunks of queries, and the scoring of grades that are coded as levels.

Each step of a batch is done for all of its queries side by side before the next one: a vector holds one
document of each query. So bounds are sorted, rows are summed, and lists are ranked if they are short or need
most of their ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastndcg.kernels import schema
from fastndcg.kernels.compile.dispatch import kind_of, uninterrupted
from fastndcg.kernels.schema import Array, Documents, Plan

from .accumulation import averages_exactly, fill_lists, is_linear
from .batches import (
    keep_documents,
    lists_by_rank,
    quarter_of_next,
    rows_to_rank,
    take_column,
    take_queries,
)
from .compile.decorators import IS_COMPILED, block, driver, prange, private, vectors
from .compile.llvm import SIDE_BY_SIDE, Code, Data, Value
from .ranking import rank_documents
from .real_grades import score_queries_of_values
from .sums import ideals_of_levels, ideals_of_lists, sum_rows
from .vectors.ranking import rank_side_by_side
from .vectors.selection import fetch
from .workspace import Batch, Scratch, Work, is_allocated, longest_list, memory_for, reference, release

_LACKING = "no memory to rank the longest list of a chunk of queries"
_UNCOUNTED: Any = {} if private is None else private.UNCOUNTED


@driver(**_UNCOUNTED)
def score_levels_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    """Score chunks of queries of about equal numbers of documents; writes `out` (n_rows, n_queries)."""
    documents_ref, plan_ref = reference(documents), reference(plan)
    for c in range(chunks.shape[0] - 1):
        first, last = chunks[c], chunks[c + 1]
        longest = longest_list(documents_ref.offsets, first, last)
        memory = memory_for(longest, True, 0, documents_ref, plan_ref)
        if not is_allocated(memory):
            release(memory)
            raise MemoryError(_LACKING)
        score_queries_of_levels(
            first, last, documents_ref, plan_ref, memory.scratch, memory.work, memory.batch, out
        )
        release(memory)


@driver(**_UNCOUNTED)
def score_values_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    """As `score_levels_serial`, for grades that are not coded."""
    documents_ref, plan_ref = reference(documents), reference(plan)
    for c in range(chunks.shape[0] - 1):
        first, last = chunks[c], chunks[c + 1]
        longest = longest_list(documents_ref.offsets, first, last)
        pool = longest_list(documents_ref.pool_offsets, first, last)
        memory = memory_for(longest, False, pool, documents_ref, plan_ref)
        if not is_allocated(memory):
            release(memory)
            raise MemoryError(_LACKING)
        score_queries_of_values(
            first, last, documents_ref, plan_ref, memory.scratch, memory.work, memory.batch, out
        )
        release(memory)


# ---- threads ----


def address_of(serial: Any, *arguments: Any) -> Any:
    """The address of a compiled serial driver; compiles `score_parallel` for it if necessary."""
    if not IS_COMPILED:
        return serial
    kind = serial, kind_of(arguments)
    if kind not in _addresses:
        from .compile.jit import compile_for  # imports Numba

        address = private.address_of(serial, arguments)
        # its first call would otherwise search all installed packages for extensions of Numba, 25 ms
        with uninterrupted():
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
# Without private parts of Numba the parallel driver would contain a second compiled copy of the serial one
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

    Each thread takes the next chunk when it has finished one, so a thread on a busy core takes fewer. A
    `prange` over the chunks themselves would give each thread an equal share before it begins, with
    `set_parallel_chunksize` too (layers omp and workqueue of Numba 0.68: of eight long and eight short
    iterations one thread ran all long ones). With equal shares, and one of two cores busy with another
    process, a run took half as long again. `taken` counts chunks: int64 (1,), from 0.
    """
    failed = 0
    for _ in prange(threads):
        c = take_next(taken)
        while c < chunks.shape[0] - 1:
            failed += call_at(address, chunks[c : c + 2], documents, plan, out)
            c = take_next(taken)
    return failed


# ---- levels ----


@block
def score_queries_of_levels(
    first: int, last: int, documents: Documents, plan: Plan, scratch: Scratch, work: Work, batch: Batch,
    out: Array,
) -> None:  # fmt: skip
    # fields are read once: each access copies the hundred words of a tuple, which LLVM has to remove again
    lists, gains, queries, ranked = plan.lists, plan.gains, batch.queries, batch.ranked
    for side in range(2):  # ideals are filled for lanes without a query too
        for level in range(batch.counts.shape[1]):
            for lane in range(batch.counts.shape[2]):
                batch.counts[side, level, lane] = 0
    unjudged, judged = gains.shape[1] - 2, batch.counts[1]
    scored = batch.counts[0] if documents.pool_offsets.shape[0] > 0 else judged
    is_batch = queries.numbers.shape[0] == SIDE_BY_SIDE
    linear = averaged = True
    keeps_order = documents.scores.itemsize == 4  # of tied documents that are ranked side by side
    for v in range(lists.shape[0]):
        linear = linear and is_linear(v, lists)
        averaged = averaged and averages_exactly(v, lists, plan.exact)
    while first < last:
        placed, first = take_queries(first, last, documents, plan, scored, judged, batch, out)
        # fetched in parts: a processor that waits for some twenty cache lines accepts no more requests
        ahead, quarter = quarter_of_next(first, last, documents)
        fetch(documents.scores, ahead, ahead + quarter)
        keep_documents(placed, plan.depth, documents, queries, scratch)
        fetch(documents.scores, ahead + quarter, ahead + 2 * quarter)
        rows, all_ranked = 0, False
        if is_batch:
            rows, all_ranked = rows_to_rank(placed, plan.first_needed, queries, scored)
        tied_lanes = 0
        if rows > 0:
            tied_lanes = rank_side_by_side(
                scratch.scores, scratch.kept, queries.kept, placed, rows, unjudged + 1,
                ranked.keys, ranked.codes, ranked.same,
            )  # fmt: skip
            lists_by_rank(rows, tied_lanes != 0, plan, batch)
        fetch(documents.scores, ahead + 2 * quarter, ahead + 3 * quarter)
        tied = tied_lanes != 0
        all_made = all_ranked and (averaged or (linear and not tied))
        for lane in range(0 if all_made else placed):
            kept, is_tied = queries.kept[lane], tied_lanes >> lane & 1 == 1
            is_ranked, made = rows > 0 and kept <= rows, schema.NONE_MADE
            if is_ranked:
                made = schema.AVERAGED_MADE if is_tied else schema.ALL_MADE
            if (made == schema.ALL_MADE and linear) or (made == schema.AVERAGED_MADE and averaged):
                continue
            if is_ranked and (keeps_order or not is_tied):
                is_tied = take_column(ranked, lane, kept, work)
            else:
                is_tied = tied = rank_documents(
                    kept, tied, unjudged + 1, lane, documents, plan, scratch, work
                )
            fill_lists(kept, not is_tied, unjudged, made, gains, plan, scratch, work, batch, lane)
        fetch(documents.scores, ahead + 3 * quarter, ahead + 4 * quarter)
        ideals_of_levels(scored, judged, plan, batch)
        fetch(documents.relevance, ahead, ahead + 4 * quarter)
        ideals_of_lists(placed, plan, batch, work.group)
        sum_rows(placed, plan, batch, out)
