"""Vector blocks that rank the documents of one list, by counting greater scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.llvm import LANES, Code, Data, Value, where
from ..compile.marks import vectors


def plain_count_ahead(scores: Array, blocks: int, score: Any) -> int:
    """How many of the first `blocks` * LANES scores are greater, times 2**32, plus how many are equal."""
    compared = scores[: blocks * LANES]
    return (int(np.count_nonzero(compared > score)) << 32) + int(np.count_nonzero(compared == score))


@vectors(plain_count_ahead, within=True)
def count_ahead(code: Code, scores: Data, blocks: Value, score: Value) -> Value:
    own, count = score.splat(LANES), code.variable(0)
    with code.range(blocks) as index:
        vector = scores.load(index * LANES, LANES)
        count.value += ((vector > own).count() << 32) + vector.equals(own).count()
    return count.value


def _at_each_place(
    code: Code,
    scores: Data,
    n: Value,
    lowest: Value,
    emit: Callable[[Value, Value, list[Value]], None],
    finish: Callable[[Value, list[Value]], None] | None = None,
) -> None:
    """Emit `emit(place, its score, all scores)` for each of n <= 2 * LANES places, the last first.

    Of one vector all places are emitted; of two, blocks of LANES // 2 places, so that the number of steps
    seldom varies. Places beyond the last document come first, so that later places overwrite their results.
    `finish(places, all scores)` comes last.
    """

    def rank_all(vectors: int) -> None:
        own = []
        for first in range(0, vectors * LANES, LANES):
            is_document = code.places(LANES, 64, first) < n
            own.append(where(is_document, scores.load(first, LANES), lowest.splat(LANES)))
        for v, vector in enumerate(own):
            scores.store(vector, v * LANES)

        def rank(place: Value) -> None:
            emit(place, scores[place].splat(LANES), own)

        if vectors == 1:
            for number in reversed(range(LANES)):
                rank(code.number(number))
            count = code.number(LANES)
        else:
            steps = LANES // 2
            rounds = (n + (steps - 1)) // steps
            with code.range(rounds) as index:
                last = (rounds - index) * steps
                for step in range(1, steps + 1):
                    rank(last - step)
            count = rounds * steps
        if finish is not None:
            finish(count, own)

    with code.either(n <= LANES) as (one, two):
        with one:
            rank_all(1)
        with two:
            rank_all(2)


def _lanes_where(masks: list[Value]) -> Value:
    """The lanes of one or two masks as bits of an int32."""
    if len(masks) == 1:
        return masks[0].bits().to(32)
    return masks[0].pick(range(2 * LANES), masks[1]).bits()


def _ahead(score: Value, own: list[Value]) -> Value:
    """How many scores are greater."""
    return _lanes_where([vector > score for vector in own]).count()


def plain_rank_distinct(scores: Array, codes: Array, n: int, lowest: Any, ranked: Array) -> bool:
    """Rank n <= 2 * LANES documents of distinct scores: ranked[r] is the code of that with r greater scores.
    Returns whether all n scores are distinct.

    The arrays have 2 * LANES places. Scores after the first n may become `lowest`; later places of `ranked`
    may hold any value.
    """
    scores[n : 2 * LANES] = lowest
    ranks = [int(np.count_nonzero(scores[:n] > score)) for score in scores[:n]]
    ranked[ranks] = codes[:n]
    return len(set(ranks)) == n


@vectors(plain_rank_distinct)
def rank_distinct(code: Code, scores: Data, codes: Data, n: Value, lowest: Value, ranked: Data) -> Value:
    total = code.variable(0)

    def place_one(place: Value, score: Value, own: list[Value]) -> None:
        rank = _ahead(score, own).to(64)
        ranked[rank] = codes[place]
        total.value += rank

    def leave_out_the_rest(places: Value, own: list[Value]) -> None:
        total.value -= (places - n) * _ahead(lowest.splat(LANES), own).to(64)

    _at_each_place(code, scores, n, lowest, place_one, leave_out_the_rest)
    return (total.value << 1).equals(n * (n - 1))


def plain_rank_tied(scores: Array, codes: Array, n: int, lowest: Any, ranked: Array, sizes: Array) -> None:
    """Write codes by falling score, tied documents in their order, and for each rank the size of its tied
    group. The arrays, and their places after the first n, are as in `rank_distinct`.
    """
    for i in range(n):
        greater, equal = scores[:n] > scores[i], scores[:n] == scores[i]
        at = np.count_nonzero(greater) + np.count_nonzero(equal[:i])
        ranked[at], sizes[at] = codes[i], np.count_nonzero(equal)


@vectors(plain_rank_tied)
def rank_tied(
    code: Code, scores: Data, codes: Data, n: Value, lowest: Value, ranked: Data, sizes: Data
) -> None:
    documents = ((1 << n) - 1).to(32)

    def place_one(place: Value, score: Value, own: list[Value]) -> None:
        document, first = codes[place], _ahead(score, own)
        equal = _lanes_where([vector.equals(score) for vector in own]) & documents
        above = ((1 << place) - 1).to(32)
        at = (first + (equal & above).count()).to(64)
        ranked[at], sizes[at] = document, equal.count()

    _at_each_place(code, scores, n, lowest, place_one)


def plain_count_among(scores: Array, own: Array, firsts: Array, sizes: Array) -> None:
    """For each of the first 2 * LANES scores of `own`, count `scores` that are greater, and those equal."""
    for i in range(2 * LANES):
        firsts[i] = np.count_nonzero(scores > own[i])
        sizes[i] = np.count_nonzero(scores == own[i])


@vectors(plain_count_among)
def count_among(code: Code, scores: Data, own: Data, firsts: Data, sizes: Data) -> None:
    none = code.full(0, LANES, 32)
    halves = [
        (own.load(start, LANES), code.variable(none), code.variable(none), start) for start in (0, LANES)
    ]
    with code.range(scores.shape[0]) as index:
        each = scores[index].splat(LANES)
        for vector, ahead, equal, _ in halves:
            ahead.value += (each > vector).to(32)
            equal.value += each.equals(vector).to(32)
    for _, ahead, equal, start in halves:
        firsts.store(ahead.value, start)
        sizes.store(equal.value, start)
