"""Working memory of a thread: for ranking one query, and for a batch that is scored side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastndcg.kernels.schema import HELD, Array, Documents, Plan

from .compile.decorators import block, empty, private
from .compile.llvm import BINS, LANES, SIDE_BY_SIDE
from .vectors.sums import COUNTED

if private is None:

    def _itself(value: Any) -> Any:
        return value

    def _yes(memory: Any) -> bool:
        return True

    def _nothing(memory: Any) -> None:
        pass

    # arrays of NumPy are freed when nobody uses them, and raise an error where memory is lacking
    reference = keep_arrays = block(_itself)
    is_allocated, release = block(_yes), block(_nothing)
else:
    empty, reference, keep_arrays = private.empty, private.reference, private.keep_arrays
    is_allocated, release = private.is_allocated, private.release

TOGETHER = 1024  # lists of at most so many documents may be ranked side by side


class Work(NamedTuple):
    """The ranking of one query."""

    codes: Array  # uint32: code of the document of each rank
    sizes: Array  # uint32: size of each tied group, at its first rank
    # in rankings of more than 2 * LANES, where documents `needed` need a rank:
    needed: Array  # uint32: their places among those kept
    firsts: Array  # uint32: first rank of the tied group of each
    ties: Array  # uint32: size of that group
    seen: Array  # uint32: documents of a group placed so far, at its first rank
    group: Array  # float64: gains of one tied group
    # for sorting rankings by radix:
    keys: Array  # uint64: keys, in two halves
    order: Array  # uint32: places of documents, in two halves
    starts: Array  # int64 (256,): where the keys with each byte begin


class Scratch(NamedTuple):
    """Working memory of one chunk of queries, sized by its longest list."""

    codes: Array  # uint32: codes of the query's documents, where grades have no levels
    greatest: Array  # (SIDE_BY_SIDE, BINS): greatest score of each bin of documents
    bounds: Array  # (SIDE_BY_SIDE,): documents with this score or more are kept
    scores: Array  # (lanes, longest + 2 * LANES): scores of the documents kept for ranking
    kept: Array  # uint32: codes of these documents
    needed: Array  # scores of the documents that need a rank
    gains: Array  # float64 (T, longest + 2): gain of each document, where grades have no levels
    values: Array  # float64: gains of a pool, where grades have no levels
    chances: Array  # float64 (4, longest + 2) where there are such terms: probabilities within one tied group


class Queries(NamedTuple):
    """The queries of a batch, one in each lane."""

    numbers: Array  # int64 (lanes,): number of each query
    starts: Array  # int64 (lanes,): first row of its documents
    stops: Array  # int64 (lanes,): the row after its last document
    seen: Array  # int64 (lanes,): the row after the documents that the next step reads; `starts` for none
    kept: Array  # int64 (lanes,): how many documents are kept for ranking
    steps: Array  # int64 (lanes,): cost of ranking this lane by itself
    has_documents: Array  # bool (lanes,): whether the query has scored or judged documents
    all_kept: Array  # bool (lanes,): whether all its documents are kept


class Ranked(NamedTuple):
    """Short lists ranked side by side."""

    codes: Array  # uint32 (rows, SIDE_BY_SIDE): code of the document of each rank
    same: Array  # uint8 (rows,): a bit for each lane, set where this rank and the one before are tied
    keys: Array  # int64 (rows, SIDE_BY_SIDE): sort keys
    gains: Array  # float64 (rows, SIDE_BY_SIDE): gains by rank, before ties are averaged
    sizes: Array  # float64 (rows, SIDE_BY_SIDE): sizes of tied groups


class Sums(NamedTuple):
    """The sums of a row so far; those of two sides are of the list and of the ideal."""

    cutoffs: Array  # int64 (lanes,)
    sums: Array  # float64 (2, lanes)
    summed: Array  # int64 (2, lanes): how many ranks these sums contain
    stops: Array  # int64 (2, lanes): the rank after the last of the row
    values: Array  # float64 (lanes,)


class Batch(NamedTuple):
    """Queries side by side: counts, lists and ideals, and the sums of their rows."""

    queries: Queries
    # int64 (2, L + 2 + COUNTED, lanes): scored and judged documents of each level, where grades have levels
    counts: Array
    totals: Array  # float64 (n_totals, lanes): sums of gains over the judged documents
    ranked: Ranked
    lists: Array  # float64 (n_lists, depth, lanes): gains by rank
    lengths: Array  # int64 (n_lists, lanes)
    ideals: Array  # float64 (n_ideals, ideal_depth, lanes): gains of the ideal rankings
    ideal_lengths: Array  # int64 (n_ideals, lanes)
    sums: Sums


@block
def vectors_of(n: int) -> int:
    return (n + LANES - 1) // LANES


@block
def longest_list(offsets: Array, first: int, last: int) -> int:
    longest = 0
    for query in range(first, min(last, offsets.shape[0] - 1)):
        longest = max(longest, offsets[query + 1] - offsets[query])
    return longest


@block
def lanes_for(longest: int, plan: Plan) -> int:
    """How many queries are scored side by side: several where each needs little memory, else one."""
    n_lists, n_ideals = max(plan.lists.shape[0], 1), plan.ideals.shape[0]
    ranks = n_lists * min(plan.depth, longest) + n_ideals * plan.ideal_depth
    return SIDE_BY_SIDE if max(ranks, longest) <= HELD else 1


class Memory(NamedTuple):
    """All of it."""

    scratch: Scratch
    work: Work
    batch: Batch


@block
def memory_for(longest: int, coded: bool, pool: int, documents: Documents, plan: Plan) -> Memory:
    """Memory for lists of up to `longest` documents; and pools of up to `pool`, where grades have no levels.
    A chunk of queries allocates it once, and calls `release` at its end.
    """
    size, lanes, dtype = longest + 2 * LANES, lanes_for(longest, plan), documents.scores.dtype
    n_lists, n_ideals, n_totals = max(plan.lists.shape[0], 1), plan.ideals.shape[0], plan.totals.shape[0]
    depth, ideal_depth = min(plan.depth, longest), plan.ideal_depth
    rows = LANES * max(vectors_of(min(longest, TOGETHER)), 1)
    memory = Memory(
        Scratch(
            empty(0 if coded else longest, np.uint32),
            empty((SIDE_BY_SIDE, BINS), dtype),
            empty(SIDE_BY_SIDE, dtype),
            empty((lanes, size), dtype),
            empty((lanes, size + pool), np.uint32),
            empty(size, dtype),
            empty((0 if coded else plan.gains.shape[0], longest + 2), np.float64),
            empty(0 if coded else size + pool, np.float64),
            empty((4, 0 if plan.term_parameters is None else longest + 2), np.float64),
        ),
        Work(
            empty(size, np.uint32),
            empty(size, np.uint32),
            empty(size, np.uint32),
            empty(size, np.uint32),
            empty(size, np.uint32),
            empty(size, np.uint32),
            empty(size, np.float64),
            empty(2 * size, np.uint64),
            empty(2 * size, np.uint32),
            empty(256, np.int64),
        ),
        Batch(
            Queries(
                empty(lanes, np.int64),
                empty(lanes, np.int64),
                empty(lanes, np.int64),
                empty(lanes, np.int64),
                empty(lanes, np.int64),
                empty(lanes, np.int64),
                empty(lanes, np.bool_),
                empty(lanes, np.bool_),
            ),
            empty((2, plan.gains.shape[1] + COUNTED, lanes), np.int64),
            empty((n_totals, lanes), np.float64),
            Ranked(
                empty((rows, SIDE_BY_SIDE), np.uint32),
                empty(rows, np.uint8),
                empty((rows, SIDE_BY_SIDE), np.int64),
                empty((rows, SIDE_BY_SIDE), np.float64),
                empty((rows, SIDE_BY_SIDE), np.float64),
            ),
            empty((n_lists, depth, lanes), np.float64),
            empty((n_lists, lanes), np.int64),
            empty((max(n_ideals, 1), ideal_depth, lanes), np.float64),
            empty((max(n_ideals, 1), lanes), np.int64),
            Sums(
                empty(lanes, np.int64),
                empty((2, lanes), np.float64),
                empty((2, lanes), np.int64),
                empty((2, lanes), np.int64),
                empty(lanes, np.float64),
            ),
        ),
    )
    return keep_arrays(memory)
