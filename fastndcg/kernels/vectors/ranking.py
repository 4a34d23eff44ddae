"""Vector blocks that rank one list by counting greater scores, and several by sorting them side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastndcg.kernels.schema import Array

from ..compile.decorators import ir, vectors
from ..compile.llvm import LANES, SIDE_BY_SIDE, Code, Data, Value, lesser, sorting_steps, transpose, where

_EXPONENT = 1 << 20  # added to the upper half of a float64
_LAST = -(1 << 21)  # that of a finite float64 below all that come of float32
Row = list[Value]  # a document of each lane: one number of score, place and code; or a score and a code

# ---- one list ----


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
    """Emit `emit(place, its score, all scores)` for each of n <= 2 * LANES places, the last first, so that
    documents overwrite the results of places beyond them; and then `finish(places, all scores)`.

    Of one vector all places are emitted; of two, blocks of LANES // 2: the number of steps seldom varies.
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


# ---- several queries: a vector holds one document of each, and a network of exchanges sorts blocks of LANES
# rows of such vectors, which are merged in pairs ----


def plain_rank_side_by_side(
    scores: Array, codes: Array, kept: Array, placed: int, rows: int, nothing: int, keys: Array,
    ranked: Array, same: Array
) -> int:  # fmt: skip
    """ranked[r, lane] = code of the document of rank r, for `placed` lanes of at most `rows` documents each.

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
    """Documents by rank; where they are `packed`, all of a document is in its key, a float64."""

    keys: Data
    codes: Data
    packed: bool

    def get(self, row: Value) -> Row:
        return [self.keys.row(row)] if self.packed else [self.keys.row(row), self.codes.row(row)]

    def put(self, documents: Row, row: Value) -> None:
        for part, array in zip(documents, (self.keys, self.codes), strict=False):
            array.set_row(row, part)

    def exchange(self, one: Value, other: Value) -> None:
        """Bring the documents that come first to row `one`, and the others to row `other`."""
        ahead, behind = _exchange(self.get(one), self.get(other))
        self.put(ahead, one)
        self.put(behind, other)


def _exchange(one: Row, other: Row) -> tuple[Row, Row]:
    """Compare two rows lane by lane: returns the documents that come first, and the others."""
    if len(one) == 1:  # an instruction for each, which AVX2 and NEON have for float64 and not for int64
        return [one[0].meet("maxnum", other[0])], [one[0].meet("minnum", other[0])]
    above, pairs = one[0] > other[0], list(zip(one, other, strict=True))
    return [where(above, *pair) for pair in pairs], [where(above, right, left) for left, right in pairs]


def monotone(scores: Value, bits: int) -> Value:
    """Signed integers in the order of the scores; equal scores give equal integers."""
    if not scores.is_real:
        return scores
    whole = (scores + 0.0).read_as(scores.whole(bits))  # -0 becomes 0
    return whole ^ (whole.shift_signed(bits - 1) >> 1)


def _sorted_block(
    code: Code, scores: Data, codes: Data, n_kept: Value, nothing: Value, first: Value
) -> list[Row]:
    """Sort LANES documents of each lane, from document `first` on, by score; returns LANES rows."""
    bits = scores.bits
    place = code.places(LANES) + first.to(32)
    turned = (place.of(0xFFFF) - place) << 16
    parts: list[list[Value]] = [[], []]  # keys of each lane, and codes unless the keys have them
    for lane in range(SIDE_BY_SIDE):
        is_document = place < n_kept.lane(lane).to(32)
        own, its = (array.shape[1] * lane + first for array in (scores, codes))
        score, document = scores.load(own, LANES), where(is_document, codes.load(its, LANES), nothing)
        if bits == 32:
            # bits of a float32, as the upper half of a float64, keep their order. With a greater exponent no
            # key is subnormal, which a processor may be set to read as 0; and none is NaN
            whole = where(is_document, (score + 0.0).read_as(score.whole(32)) + _EXPONENT, _LAST)
            low = (document | turned) ^ whole.shift_signed(31)
            key = (whole.to(64) << 32) | low.to(64)
            parts[0].append(key.read_as(ir.VectorType(ir.DoubleType(), LANES)))
        else:
            parts[0].append(where(is_document, monotone(score, bits), -(1 << (bits - 1))))
            parts[1].append(document)
    rows: list[Row] = [[] for _ in range(LANES)]
    for of_lanes in filter(None, parts):
        for half in range(0, LANES, SIDE_BY_SIDE):
            some = range(half, half + SIDE_BY_SIDE)
            for at, column in zip(some, transpose(each.pick(some) for each in of_lanes), strict=True):
                rows[at].append(column)
    for i, j in sorting_steps(0, LANES):
        rows[i], rows[j] = _exchange(rows[i], rows[j])
    return rows


def _merge_rows(code: Code, table: _Rows, rows: Value) -> None:
    """Merge sorted blocks of LANES rows in pairs, by exchanges that move the lowest documents to the end: so
    the table needs no empty rows after its last row.
    """
    size, span = code.variable(LANES), code.variable(0)
    with code.repeat(lambda: size.value < rows):
        half = size.value
        _meet_turned(code, table, rows, half)
        span.value = half >> 1
        with code.repeat(lambda: span.value >= LANES):
            _meet(code, table, rows, span.value)
            span.value = span.value >> 1
        with code.steps(0, rows, LANES) as first:
            _meet_within(table, first)
        size.value = half << 1


def _meet_turned(code: Code, table: _Rows, rows: Value, half: Value) -> None:
    """Exchange rows of two blocks of `half` rows: first with last, second with last but one, ..."""
    both = half << 1
    with code.steps(0, rows - half, both) as start:
        end = start + both
        beyond = end - rows
        with code.steps(where(beyond > 0, beyond, 0), half) as i:
            table.exchange(start + i, end - 1 - i)


def _meet(code: Code, table: _Rows, rows: Value, span: Value) -> None:
    """Exchange each row with the row `span` rows after it."""
    last = rows - span
    with code.steps(0, last, span << 1) as start, code.steps(start, lesser(start + span, last)) as row:
        table.exchange(row, row + span)


def _meet_within(table: _Rows, first: Value) -> None:
    """As `_meet` within a block of LANES rows, for spans of LANES // 2, LANES // 4, ..."""
    block = [table.get(first + place) for place in range(LANES)]
    for span in (LANES // 2, LANES // 4, LANES // 8, LANES // 16):
        for place in range(LANES):
            if not place & span:
                block[place], block[place + span] = _exchange(block[place], block[place + span])
    for place, documents in enumerate(block):
        table.put(documents, first + place)


@vectors(plain_rank_side_by_side)
def rank_side_by_side(
    code: Code, scores: Data, codes: Data, kept: Data, placed: Value, rows: Value, nothing: Value, keys: Data,
    ranked: Data, same: Data,
) -> Value:  # fmt: skip
    packed = scores.bits == 32
    table = _Rows(Data(code, keys.address, ir.DoubleType()) if packed else keys, ranked, packed)
    none = nothing.to(32).splat(LANES)
    n_kept = kept.row(0)
    is_ours = (code.places(SIDE_BY_SIDE, 64) < placed) & (n_kept <= rows)
    n_kept = where(is_ours, n_kept, 0)
    tied = code.variable(code.full(0, SIDE_BY_SIDE, 1))
    whole = ir.VectorType(ir.IntType(64), SIDE_BY_SIDE)

    def finish(documents: Row, row: Value, before: Row | None) -> None:
        key, last = documents[0].read_as(whole), documents[-1]
        if table.packed:
            last = (key ^ key.shift_signed(63)).to(32) & 0xFFFF
        ranked.set_row(row, last)
        if before is not None:
            equal = ~(key ^ before[0].read_as(whole)).reaches(1 << 32 if table.packed else 1)
            same[row] = equal.bits()
            tied.value |= equal & (n_kept >= row)

    with code.either(rows <= LANES) as (few, many):
        with few:
            before = None
            for place, documents in enumerate(
                _sorted_block(code, scores, codes, n_kept, none, code.number(0))
            ):
                finish(documents, code.number(place), before)
                before = documents
        with many:
            with code.steps(0, rows, LANES) as first:
                block = _sorted_block(code, scores, codes, n_kept, none, first)
                for place, documents in enumerate(block):
                    table.put(documents, first + place)
            _merge_rows(code, table, rows)
            finish(table.get(code.number(0)), code.number(0), None)
            with code.steps(1, rows) as row:
                finish(table.get(row), row, table.get(row - 1))
    return tied.value.bits().to(64)


def plain_average_side_by_side(
    gains: Array, same: Array, kept: Array, rows: int, sizes: Array, out: Array
) -> None:
    """out[r, lane] = mean gain of the tied group of rank r; `same` is as in `rank_side_by_side`. Sums of
    gains are exact. `gains` and `sizes` are overwritten.
    """
    depth = min(out.shape[0], rows)
    for lane in range(SIDE_BY_SIDE):
        start = 0
        while start < rows:
            stop = start + 1
            while stop < rows and same[stop] >> lane & 1:
                stop += 1
            size = min(kept[lane], stop) - start
            if size > 0:
                out[start : min(stop, depth), lane] = gains[start:stop, lane].sum() / size
            start = stop


@vectors(plain_average_side_by_side)
def average_side_by_side(
    code: Code, gains: Data, same: Data, kept: Data, rows: Value, sizes: Data, out: Data
) -> None:
    mask = ir.VectorType(ir.IntType(1), SIDE_BY_SIDE)
    n_kept, total, size = kept.row(0), *(code.variable(code.full(0.0, SIDE_BY_SIDE)) for _ in range(2))
    same[0] = 0
    with code.range(rows) as row:
        goes_on = same[row].read_as(mask)
        is_document = where(n_kept > row, code.full(1.0, SIDE_BY_SIDE), 0.0)
        for sums, array, own in ((total, gains, gains.row(row)), (size, sizes, is_document)):
            sums.value = own + where(goes_on, sums.value, 0.0)
            array.set_row(row, sums.value)
    ended = code.variable(code.full(1, SIDE_BY_SIDE, 1))
    with code.range(rows) as turn:  # from the last rank of a group back to its first
        row = rows - 1 - turn
        for sums, array in ((total, gains), (size, sizes)):
            sums.value = where(ended.value, array.row(row), sums.value)
        ended.value = ~same[row].read_as(mask)
        with code.when(row < out.shape[0]):
            out.set_row(row, total.value / size.value)
