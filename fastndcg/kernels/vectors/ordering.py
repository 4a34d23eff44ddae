"""Vector blocks that rank documents: one list by counting greater scores, several by sorting together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.llvm import (
    LANES,
    SIDE_BY_SIDE,
    Data,
    Element,
    const,
    element_of,
    for_range,
    for_steps,
    lane_numbers,
    load,
    population,
    sorting_steps,
    splat,
    store,
    transpose,
    variable,
)
from ..compile.marks import ir, vectors


def plain_count_ahead(scores: Array, blocks: int, score: Any) -> int:
    """How many of the first `blocks` * LANES scores are greater, times 2**32, plus how many are equal."""
    compared = scores[: blocks * LANES]
    return (int(np.count_nonzero(compared > score)) << 32) + int(np.count_nonzero(compared == score))


@vectors(plain_count_ahead, within=True)
def count_ahead(builder: Any, scores: Data, blocks: Any, score: Any) -> Any:
    element = element_of(scores)
    own = splat(builder, score, LANES)
    count = variable(builder, const(0))
    with for_range(builder, blocks) as index:
        row = builder.mul(index, const(LANES))
        vector = load(builder, scores.data, row, element.vector(LANES), element.size)
        ahead = builder.shl(population(builder, element.greater(builder, vector, own)), const(32))
        both = builder.add(ahead, population(builder, element.equal(builder, vector, own)))
        count.write(builder, builder.add(count.read(builder), both))
    return count.read(builder)


def _at_each_place(
    builder: Any,
    scores: Any,
    element: Element,
    n: Any,
    lowest: Any,
    emit: Callable[[Any, Any, list[Any]], None],
    finish: Callable[[Any, list[Any]], None] | None = None,
) -> None:
    """Emit `emit(place, its score, all scores)` for each of n <= 2 * LANES places, the last first.

    Of one vector all places are emitted; of two, blocks of LANES // 2 places, so that the number of steps
    seldom varies. Places beyond the last document come first, so that later places overwrite their results.
    `finish(places, all scores)` comes last.
    """
    long, low = ir.IntType(64), splat(builder, lowest, LANES)

    def rank_all(vectors: int) -> None:
        own = []
        for v in range(vectors):
            places = ir.Constant(ir.VectorType(long, LANES), [v * LANES + lane for lane in range(LANES)])
            vector = load(builder, scores, const(v * LANES), element.vector(LANES), element.size)
            own.append(
                builder.select(builder.icmp_signed("<", places, splat(builder, n, LANES)), vector, low)
            )
        for v in range(vectors):
            store(builder, own[v], scores, const(v * LANES), element.size)

        def rank(place: Any) -> None:
            score = scores.read(builder, place)
            emit(place, splat(builder, score, LANES), own)

        if vectors == 1:
            for place in reversed(range(LANES)):
                rank(const(place))
            count = const(LANES)
        else:
            steps = LANES // 2
            rounds = builder.sdiv(builder.add(n, const(steps - 1)), const(steps))
            with for_range(builder, rounds) as index:
                last = builder.mul(builder.sub(rounds, index), const(steps))
                for step in range(1, steps + 1):
                    rank(builder.sub(last, const(step)))
            count = builder.mul(rounds, const(steps))
        if finish is not None:
            finish(count, own)

    with builder.if_else(builder.icmp_signed("<=", n, const(LANES))) as (one, two):
        with one:
            rank_all(1)
        with two:
            rank_all(2)


def _lanes_where(
    builder: Any, compare: Callable[[Any, Any, Any], Any], vectors: list[Any], score: Any
) -> Any:
    """The lanes of one or two vectors for which `compare(lane, score)` holds, as bits of an int32."""
    masks = [compare(builder, vector, score) for vector in vectors]
    if len(masks) == 1:
        return builder.zext(builder.bitcast(masks[0], ir.IntType(LANES)), ir.IntType(32))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), 2 * LANES), list(range(2 * LANES)))
    return builder.bitcast(builder.shuffle_vector(*masks, lanes), ir.IntType(32))


def plain_rank_distinct(scores: Array, codes: Array, n: int, lowest: Any, ranked: Array) -> bool:
    """Rank documents with distinct scores: ranked[r] is the code of the document with r greater scores; n <=
    2 * LANES.

    Returns whether all n scores are distinct. The arrays have 2 * LANES places. Scores after the first n may
    become `lowest`; places of `ranked` after the first n may hold any value.
    """
    scores[n : 2 * LANES] = lowest
    ranks = [int(np.count_nonzero(scores[:n] > score)) for score in scores[:n]]
    ranked[ranks] = codes[:n]
    return len(set(ranks)) == n


@vectors(plain_rank_distinct)
def rank_distinct(builder: Any, scores: Data, codes: Data, n: Any, lowest: Any, ranked: Data) -> Any:
    element = element_of(scores)
    long = ir.IntType(64)
    low = splat(builder, lowest, LANES)
    total = variable(builder, const(0))

    def ahead_of(score: Any, own: list[Any]) -> Any:
        return builder.zext(builder.ctpop(_lanes_where(builder, element.greater, own, score)), long)

    def place_one(place: Any, score: Any, own: list[Any]) -> None:
        rank = ahead_of(score, own)
        ranked.data.write(builder, codes.data.read(builder, place), rank)
        total.write(builder, builder.add(total.read(builder), rank))

    def leave_out_the_rest(places: Any, own: list[Any]) -> None:
        rest = builder.mul(builder.sub(places, n), ahead_of(low, own))
        total.write(builder, builder.sub(total.read(builder), rest))

    _at_each_place(builder, scores.data, element, n, lowest, place_one, leave_out_the_rest)
    pairs = builder.mul(n, builder.sub(n, const(1)))
    return builder.icmp_signed("==", builder.shl(total.read(builder), const(1)), pairs)


def plain_rank_tied(
    scores: Array, codes: Array, n: int, lowest: Any, ranked: Array, firsts: Array, sizes: Array
) -> None:
    """Write codes by falling score, tied documents in their order, and for each rank the first rank and size
    of its tied group.

    It ranks the first n <= 2 * LANES scores; the arrays, and their places after the first n, are as in
    `rank_distinct`.
    """
    for i in range(n):
        greater, equal = scores[:n] > scores[i], scores[:n] == scores[i]
        first = np.count_nonzero(greater)
        at = first + np.count_nonzero(equal[:i])
        ranked[at], firsts[at], sizes[at] = codes[i], first, np.count_nonzero(equal)


@vectors(plain_rank_tied)
def rank_tied(
    builder: Any, scores: Data, codes: Data, n: Any, lowest: Any, ranked: Data, firsts: Data, sizes: Data
) -> None:
    element = element_of(scores)
    word = ir.IntType(32)
    documents = builder.trunc(builder.sub(builder.shl(const(1), n), const(1)), word)

    def place_one(place: Any, score: Any, own: list[Any]) -> None:
        code = codes.data.read(builder, place)
        first = builder.ctpop(_lanes_where(builder, element.greater, own, score))
        equal = builder.and_(_lanes_where(builder, element.equal, own, score), documents)
        above = builder.sub(builder.shl(const(1), place), const(1))
        earlier = builder.ctpop(builder.and_(equal, builder.trunc(above, word)))
        at = builder.add(first, earlier)
        for value, array in ((code, ranked), (first, firsts), (builder.ctpop(equal), sizes)):
            array.data.write(builder, value, builder.zext(at, ir.IntType(64)))

    _at_each_place(builder, scores.data, element, n, lowest, place_one)


def _monotone(builder: Any, element: Element, scores: Any) -> Any:
    """Signed integers in the order of the scores; equal scores give equal integers."""
    if element.whole:
        return scores
    lanes = scores.type.count
    kind = ir.VectorType(ir.IntType(8 * element.size), lanes)
    bits = builder.bitcast(builder.fadd(scores, element.constant(0.0, lanes)), kind)  # -0 becomes 0
    sign = builder.ashr(bits, ir.Constant(kind, [8 * element.size - 1] * lanes))
    return builder.xor(bits, builder.lshr(sign, ir.Constant(kind, [1] * lanes)))


def plain_rank_side_by_side(
    scores: Array, codes: Array, kept: Array, placed: int, rows: int, nothing: int, keys: Array,
    ranked: Array, same: Array
) -> int:  # fmt: skip
    """ranked[r, lane] = code of the document of rank r, for those of the first `placed` lanes with at most
    `rows` documents.

    Bit `lane` of same[r] says whether the documents of ranks r - 1 and r are tied. Tied documents keep their
    order where scores are float32; otherwise their order is arbitrary. Ranks without a document hold
    `nothing`; they may come before documents with the lowest score of the dtype. `rows` is a multiple of
    LANES, and `keys` has as many rows. Returns the lanes with ties, as bits.
    """
    tied = 0
    same[:rows] = 0
    for lane in range(SIDE_BY_SIDE):
        n = kept[lane] if lane < placed and kept[lane] <= rows else 0
        order = n - 1 - np.argsort(scores[lane, :n][::-1], kind="stable")[::-1]
        ranked[:n, lane], ranked[n:rows, lane] = codes[lane, order], nothing
        for rank in range(1, n):
            if scores[lane, order[rank]] == scores[lane, order[rank - 1]]:
                same[rank] |= 1 << lane
                tied |= 1 << lane
    return tied


class _Rows(NamedTuple):
    """Documents by rank, with a lane for each query; as one number of score, place and code, or two."""

    element: Element
    keys: Any
    codes: Any

    @property
    def packed(self) -> bool:
        return self.element.size == 4

    def load(self, builder: Any, row: Any) -> list[Any]:
        at, word = builder.mul(row, const(SIDE_BY_SIDE)), ir.IntType(32)
        parts = [load(builder, self.keys, at, ir.VectorType(ir.IntType(64), SIDE_BY_SIDE), 8)]
        if not self.packed:
            parts.append(load(builder, self.codes, at, ir.VectorType(word, SIDE_BY_SIDE), 4))
        return parts

    def store(self, builder: Any, parts: list[Any], row: Any) -> None:
        at = builder.mul(row, const(SIDE_BY_SIDE))
        for part, array, size in zip(parts, (self.keys, self.codes), (8, 4), strict=False):
            store(builder, part, array, at, size)


def _exchange(builder: Any, one: list[Any], other: list[Any]) -> tuple[list[Any], list[Any]]:
    """Compare two rows lane by lane: returns the documents that come first, and the others."""
    above = builder.icmp_signed(">", one[0], other[0])
    pairs = list(zip(one, other, strict=True))
    return (
        [builder.select(above, left, right) for left, right in pairs],
        [builder.select(above, right, left) for left, right in pairs],
    )


def _sorted_block(
    builder: Any, element: Element, scores: Data, codes: Data, n_kept: Any, none: Any, first: Any
) -> list[list[Any]]:
    """Sort LANES documents of each lane, from document `first` on, by score; returns LANES rows."""
    word, lanes = ir.IntType(32), SIDE_BY_SIDE
    numbers = ir.VectorType(ir.IntType(64), LANES)
    place = builder.add(lane_numbers(LANES), splat(builder, builder.trunc(first, word), LANES))
    turned = builder.shl(
        builder.sub(ir.Constant(place.type, [0xFFFF] * LANES), place), ir.Constant(place.type, [16] * LANES)
    )
    keys: list[list[Any]] = []  # of each lane
    for lane in range(lanes):
        n = builder.trunc(builder.extract_element(n_kept, const(lane, 32)), word)
        is_document = builder.icmp_signed("<", place, splat(builder, n, LANES))
        row = builder.add(builder.mul(const(lane), scores.shape[1]), first)
        score = load(builder, scores.data, row, element.vector(LANES), element.size)
        score = _monotone(builder, element, score)
        lowest = ir.Constant(score.type, [-(1 << (8 * element.size - 1))] * LANES)
        score = builder.select(is_document, score, lowest)
        row = builder.add(builder.mul(const(lane), codes.shape[1]), first)
        code = load(builder, codes.data, row, ir.VectorType(word, LANES), 4)
        code = builder.select(is_document, code, none)
        if element.size == 4:
            score = builder.shl(builder.zext(score, numbers), ir.Constant(numbers, [32] * LANES))
            keys.append([builder.or_(score, builder.zext(builder.or_(code, turned), numbers))])
        else:
            keys.append([score, code])
    rows: list[list[Any]] = [[] for _ in range(LANES)]
    for part in range(len(keys[0])):
        for half in range(0, LANES, lanes):
            some = ir.Constant(ir.VectorType(word, lanes), list(range(half, half + lanes)))
            columns = transpose(builder, [builder.shuffle_vector(key[part], key[part], some) for key in keys])
            for at, column in enumerate(columns):
                rows[half + at].append(column)
    for one, other in sorting_steps(0, LANES):
        rows[one], rows[other] = _exchange(builder, rows[one], rows[other])
    return rows


@contextmanager
def _while(builder: Any, condition: Callable[[], Any]) -> Iterator[None]:
    check, body, done = (builder.append_basic_block(name) for name in ("check", "body", "done"))
    builder.branch(check)
    builder.position_at_end(check)
    builder.cbranch(condition(), body, done)
    builder.position_at_end(body)
    yield
    builder.branch(check)
    builder.position_at_end(done)


def _merge_rows(builder: Any, table: _Rows, rows: Any) -> None:
    """Merge sorted blocks of LANES rows in pairs, by exchanges that move the lowest documents to the end.

    So the table needs no empty rows after its last row.
    """
    zero, one = const(0), const(1)

    def exchange(first: Any, second: Any) -> None:
        ahead, behind = _exchange(builder, table.load(builder, first), table.load(builder, second))
        table.store(builder, ahead, first)
        table.store(builder, behind, second)

    def meet_turned(half: Any) -> None:
        """Exchange rows of two blocks of `half` rows: first with last, second with last but one, ..."""
        both = builder.shl(half, one)
        with for_steps(builder, zero, builder.sub(rows, half), both) as start:
            end = builder.add(start, both)
            missing = builder.sub(end, rows)
            missing = builder.select(builder.icmp_signed(">", missing, zero), missing, zero)
            with for_steps(builder, missing, half, one) as i:
                exchange(builder.add(start, i), builder.sub(builder.sub(end, one), i))

    def meet(span: Any) -> None:
        """Exchange each row with the row `span` rows after it."""
        last = builder.sub(rows, span)
        with for_steps(builder, zero, last, builder.shl(span, one)) as start:
            stop = builder.add(start, span)
            stop = builder.select(builder.icmp_signed("<", stop, last), stop, last)
            with for_steps(builder, start, stop, one) as row:
                exchange(row, builder.add(row, span))

    def meet_within(first: Any) -> None:
        """As `meet` within a block of LANES rows, for spans of LANES // 2, LANES // 4, ..."""
        block = [table.load(builder, builder.add(first, const(place))) for place in range(LANES)]
        for span in (LANES // 2, LANES // 4, LANES // 8, LANES // 16):
            for place in range(LANES):
                if not place & span:
                    pair = _exchange(builder, block[place], block[place + span])
                    block[place], block[place + span] = pair
        for place in range(LANES):
            table.store(builder, block[place], builder.add(first, const(place)))

    size = variable(builder, const(LANES))
    span = variable(builder, zero)
    with _while(builder, lambda: builder.icmp_signed("<", size.read(builder), rows)):
        half = size.read(builder)
        meet_turned(half)
        span.write(builder, builder.lshr(half, one))
        with _while(builder, lambda: builder.icmp_signed(">=", span.read(builder), const(LANES))):
            meet(span.read(builder))
            span.write(builder, builder.lshr(span.read(builder), one))
        with for_steps(builder, zero, rows, const(LANES)) as first:
            meet_within(first)
        size.write(builder, builder.shl(half, one))


@vectors(plain_rank_side_by_side)
def rank_side_by_side(
    builder: Any, scores: Data, codes: Data, kept: Data, placed: Any, rows: Any, nothing: Any, keys: Data,
    ranked: Data, same: Data,
) -> Any:  # fmt: skip
    element = element_of(scores)
    word, long, lanes = ir.IntType(32), ir.IntType(64), SIDE_BY_SIDE
    bits = ir.VectorType(ir.IntType(1), lanes)
    table = _Rows(element, keys.data, ranked.data)
    none = splat(builder, builder.trunc(nothing, word), LANES)
    n_kept = load(builder, kept.data, const(0), ir.VectorType(long, lanes), 8)
    ours = builder.and_(
        builder.icmp_signed("<", lane_numbers(lanes, 64), splat(builder, placed, lanes)),
        builder.icmp_signed("<=", n_kept, splat(builder, rows, lanes)),
    )
    n_kept = builder.select(ours, n_kept, ir.Constant(n_kept.type, [0] * lanes))
    tied = variable(builder, ir.Constant(bits, [0] * lanes))

    def finish(parts: list[Any], row: Any, before: list[Any] | None) -> None:
        code = parts[-1]
        if table.packed:
            code = builder.trunc(code, ir.VectorType(word, lanes))
            code = builder.and_(code, ir.Constant(code.type, [0xFFFF] * lanes))
        store(builder, code, ranked.data, builder.mul(row, const(lanes)), 4)
        if before is None:
            return
        differing = builder.xor(parts[0], before[0])
        limit = ir.Constant(differing.type, [1 << 32 if table.packed else 1] * lanes)
        equal = builder.icmp_unsigned("<", differing, limit)
        same.data.write(builder, builder.bitcast(equal, ir.IntType(8)), row)
        counts = builder.icmp_signed(">=", n_kept, splat(builder, row, lanes))
        tied.write(builder, builder.or_(tied.read(builder), builder.and_(equal, counts)))

    with builder.if_else(builder.icmp_signed("<=", rows, const(LANES))) as (few, many):
        with few:
            block = _sorted_block(builder, element, scores, codes, n_kept, none, const(0))
            for place, parts in enumerate(block):
                finish(parts, const(place), block[place - 1] if place else None)
        with many:
            with for_steps(builder, const(0), rows, const(LANES)) as first:
                block = _sorted_block(builder, element, scores, codes, n_kept, none, first)
                for place, parts in enumerate(block):
                    table.store(builder, parts, builder.add(first, const(place)))
            _merge_rows(builder, table, rows)
            start = table.load(builder, const(0))
            finish(start, const(0), None)
            with for_steps(builder, const(1), rows, const(1)) as row:
                finish(table.load(builder, row), row, table.load(builder, builder.sub(row, const(1))))
    return builder.zext(builder.bitcast(tied.read(builder), ir.IntType(8)), long)


def plain_count_among(scores: Array, own: Array, firsts: Array, sizes: Array) -> None:
    """For each of the first 2 * LANES scores of `own`, count `scores` that are greater, and those equal."""
    for i in range(2 * LANES):
        firsts[i] = np.count_nonzero(scores > own[i])
        sizes[i] = np.count_nonzero(scores == own[i])


@vectors(plain_count_among)
def count_among(builder: Any, scores: Data, own: Data, firsts: Data, sizes: Data) -> None:
    element = element_of(scores)
    counts = ir.VectorType(ir.IntType(32), LANES)
    vectors = [
        load(builder, own.data, const(v * LANES), element.vector(LANES), element.size) for v in range(2)
    ]
    none = ir.Constant(counts, [0] * LANES)
    ahead, equal = ([variable(builder, none) for _ in vectors] for _ in range(2))
    with for_range(builder, scores.shape[0]) as index:
        score = scores.data.read(builder, index)
        each = splat(builder, score, LANES)
        for v, vector in enumerate(vectors):
            for sums, mask in (
                (ahead[v], element.greater(builder, each, vector)),
                (equal[v], element.equal(builder, each, vector)),
            ):
                sums.write(builder, builder.sub(sums.read(builder), builder.sext(mask, counts)))
    for v in range(2):
        store(builder, ahead[v].read(builder), firsts.data, const(v * LANES), 4)
        store(builder, equal[v].read(builder), sizes.data, const(v * LANES), 4)
