"""The ranking of one query: chooses the documents that need a rank, and ranks them."""

from __future__ import annotations

from typing import Any

from fastndcg.kernels.schema import Array, Documents, Plan

from .compile.decorators import block
from .compile.llvm import LANES
from .sorting import falling_keys, sort_by_key
from .vectors.ranking import count_ahead, count_among, rank_distinct, rank_tied
from .vectors.selection import bound_of_top, find_from, keep_few_from, keep_from
from .workspace import Scratch, Work, vectors_of

COUNTING = 16  # up to so many compared vectors for each kept document, counting is faster than sorting
MANY = 512  # in lists of so many documents, most vectors have no document of the first ranks
_SAMPLE = 8192  # documents that give the bound of a list too long for the first-level cache


@block
def is_bounded(n: int, depth: int) -> bool:
    """Whether a bound of scores excludes most documents that are not on the first `depth` ranks."""
    return depth <= LANES and n >= 2 * LANES


@block
def bounded_by(n: int) -> int:
    """The number of documents that a list's bound is computed from; the bound of a part holds for all."""
    return _SAMPLE if n > 4 * _SAMPLE else n


@block
def keep_top(codes: Array, scores: Array, depth: int, kept_scores: Array, kept: Array) -> int:
    """Keep at least the first `depth` ranks and documents tied with the last of them; returns how many."""
    n = scores.shape[0]
    if not is_bounded(n, depth):
        return keep_all(codes, scores, kept_scores, kept)
    bound = bound_of_top(scores[: bounded_by(n)], depth)
    if n <= MANY:
        return keep_from(scores, codes, bound, kept_scores, kept)
    return keep_few_from(scores, codes, bound, kept_scores, kept)


@block
def keep_all(codes: Array, scores: Array, kept_scores: Array, kept: Array) -> int:
    n = scores.shape[0]
    for i in range(n):
        kept_scores[i] = scores[i]
        kept[i] = codes[i]
    return n


@block
def rank_documents(
    kept: int, tied: bool, nothing: int, lane: int, documents: Documents, plan: Plan, scratch: Scratch,
    work: Work,
) -> bool:  # fmt: skip
    """Rank the kept documents: fill `work.codes` and `work.sizes`. Returns whether some may be tied.

    Documents with codes below `plan.first_needed` have gain 0 by every table and may be left out: their ranks
    hold the code `nothing`, as a group of one unless a document tied with them has a gain. `tied` says that
    ties are likely.
    """
    scores, codes, lowest = scratch.scores[lane], scratch.kept[lane], documents.lowest
    if kept > 2 * LANES:
        needed = find_from(codes[:kept], plan.first_needed, work.needed)
        if needed * vectors_of(kept) > COUNTING * kept:
            rank_by_sorting(kept, scores, codes, work)
            return True
        return rank_many(kept, needed, nothing, lowest, scores, codes, scratch.needed, work)
    if tied or not rank_distinct(scores, codes, kept, lowest, work.codes):
        rank_tied(scores, codes, kept, lowest, work.codes, work.sizes)
        return True
    for i in range(2 * LANES):
        work.sizes[i] = 1
    return False


@block
def rank_many(
    kept: int, found: int, nothing: int, lowest: Any, scores: Array, codes: Array, own: Array, work: Work
) -> bool:
    """As `rank_documents`, for more than two vectors: compare documents of `work.needed` with all others."""
    blocks = vectors_of(kept)
    work.codes[:kept], work.sizes[:kept] = nothing, 1
    padding = blocks * LANES - kept
    scores[kept : kept + padding] = lowest
    firsts, sizes = work.firsts, work.ties
    for j in range(found):
        own[j] = scores[work.needed[j]]
    counted = 0
    while found - counted > LANES:  # comparing two vectors of them with each document takes fewer steps
        count_among(scores[:kept], own[counted:], firsts[counted:], sizes[counted:])
        counted += 2 * LANES
    for j in range(counted, found):
        count = count_ahead(scores, blocks, own[j])
        firsts[j], sizes[j] = count >> 32, count & 0xFFFFFFFF
        if own[j] == lowest:
            sizes[j] -= padding
    tied = 0
    for j in range(found):
        tied += sizes[j] > 1
    if tied == 0:
        for j in range(found):
            work.codes[firsts[j]] = codes[work.needed[j]]
        return False
    work.seen[:kept] = 0
    for j in range(found):
        first = firsts[j]
        seen = work.seen[first]
        work.codes[first + seen] = codes[work.needed[j]]
        work.seen[first] = seen + 1
        work.sizes[first] = sizes[j]
    return True


@block
def rank_by_sorting(kept: int, scores: Array, codes: Array, work: Work) -> None:
    keys, order = work.keys, work.order
    falling_keys(scores, kept, keys)
    half = sort_by_key(kept, keys, order, work.starts)
    start = 0
    for i in range(kept):
        work.codes[i] = codes[order[half + i]]
        if keys[half + i] != keys[half + start]:
            work.sizes[start] = i - start
            start = i
    work.sizes[start] = kept - start
