"""Vector blocks of the kernels, each against the plain function beside it that defines it, and against their arrays' ends."""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pytest
from fastndcg.compiled.compile import llvm
from fastndcg.compiled.compile.llvm import BINS, LANES, SIDE_BY_SIDE
from fastndcg.compiled.vectors import ranking, selection, sums

from fastndcg.compiled import sorting
from fastndcg.kernels.vectors.sums import plain_sum_row

pytestmark = pytest.mark.compiled

Array = npt.NDArray[Any]

DTYPES = (np.float32, np.float64, np.int64)
LENGTHS = (*range(2 * LANES + 1), 40, 63, 64, 65, 100, 300)
UNTOUCHED = 77  # what stands in all places that a block may not write to
_GUARD = 8


def through(block):
    """A compiled function that calls a block, which only compiled code can."""

    @numba.njit(nogil=True, error_model="numpy")
    def call(*arguments):
        return block(*arguments)

    return call


class Guarded:
    """An array for a block to fill, within a larger one whose other places must stay as they are."""

    def __init__(self, shape, dtype):
        size = int(np.prod(shape))
        self.whole = np.full(size + 2 * _GUARD, UNTOUCHED, dtype)
        self.part: Array = self.whole[_GUARD : _GUARD + size].reshape(shape)

    def check(self):
        assert (self.whole[:_GUARD] == UNTOUCHED).all()
        assert (self.whole[-_GUARD:] == UNTOUCHED).all()


def fill_both(block, plain, arguments, *targets):
    """What a block and its plain function return, and what each writes to targets of a shape and dtype."""
    guarded = [Guarded(*target) for target in targets]
    expected = [np.full(shape, UNTOUCHED, dtype) for shape, dtype in targets]
    returned = block(*arguments, *(each.part for each in guarded)), plain(*arguments, *expected)
    for each in guarded:
        each.check()
    return returned, [each.part for each in guarded], expected


def lowest(dtype):
    return dtype(-np.inf) if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def lists(dtype, lengths=LENGTHS, rounds=4):
    """Scores and codes: all distinct, tied in threes, all tied, and with the dtype's lowest score among them."""
    random = np.random.default_rng(5)
    for n in lengths:
        for turn in range(rounds):
            scores = random.permutation(max(n, 1))[:n] - n // 2
            scores = [scores, scores // 3, scores * 0, scores // 2][turn].astype(dtype)
            if turn == 3 and n:
                scores[random.integers(n, size=1 + n // 5)] = lowest(dtype)
            yield scores, random.integers(0, 5, n).astype(np.uint8)


@pytest.fixture(params=[128, 256, 512])
def _widths(request, monkeypatch):
    """As on processors with narrower registers, which move lanes under a mask together in other ways."""
    if request.param > llvm.register_bits():
        pytest.skip("this processor has no registers of such a width")
    for module in (llvm, selection):
        monkeypatch.setattr(module, "register_bits", lambda: request.param)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bound_of_top(dtype):
    call = through(selection.bound_of_top)
    for scores, _ in lists(dtype, tuple(n for n in LENGTHS if n >= LANES)):
        for depth in range(1, LANES + 1):
            bound = call(scores, depth)
            assert bound == selection.plain_bound_of_top(scores, depth)
            assert (scores >= bound).sum() >= depth


def end_to_end(parts):
    """Lists in one array, and where each begins and ends."""
    ends = np.cumsum([len(part) for part in parts])
    return np.concatenate(parts), np.append(0, ends[:-1]), ends


@pytest.mark.parametrize("dtype", DTYPES)
def test_bounds_of_queries_side_by_side(dtype):
    call_fill, call_bound = through(selection.greatest_by_bin), through(selection.bounds_of_top)
    some = [scores for scores, _ in lists(dtype, tuple(n for n in LENGTHS if n >= BINS))]
    for first in range(0, len(some) - SIDE_BY_SIDE + 1, 5):
        batch = some[first : first + SIDE_BY_SIDE]
        together, starts, stops = end_to_end(batch)
        target = (SIDE_BY_SIDE, BINS), dtype
        for ends in (starts + BINS - 1, stops):  # too few documents, and enough
            _, (greatest,), (same,) = fill_both(
                call_fill, selection.plain_greatest_by_bin, (together, starts, ends), target
            )
            np.testing.assert_array_equal(greatest, same)
        for depth in range(1, BINS + 1):
            _, (limits,), (expected,) = fill_both(
                call_bound, selection.plain_bounds_of_top, (greatest, depth), (SIDE_BY_SIDE, dtype)
            )
            np.testing.assert_array_equal(limits, expected)
            for lane, scores in enumerate(batch):
                assert (scores >= limits[lane]).sum() >= depth


def ranked_side_by_side(call, dtype, batch, rows, *, check):
    """What a block that ranks queries side by side fills, and the lanes with ties. The last two lanes are not taken."""
    longest = max(rows, *(len(scores) for scores, _ in batch)) + 2 * LANES
    scores, codes = np.zeros((SIDE_BY_SIDE, longest), dtype), np.full((SIDE_BY_SIDE, longest), 3, np.uint32)
    for lane, (its_scores, its_codes) in enumerate(batch):
        scores[lane, : len(its_scores)], codes[lane, : len(its_scores)] = its_scores, its_codes
    kept = np.array([len(its_scores) for its_scores, _ in batch])
    filled = [
        Guarded((rows, SIDE_BY_SIDE), np.int64),
        Guarded((rows, SIDE_BY_SIDE), np.uint32),
        Guarded(rows, np.uint8),
    ]
    tied = call(scores, codes, kept, SIDE_BY_SIDE - 2, rows, 9, *(each.part for each in filled))
    if check:
        for each in filled:
            each.check()
    return tied, kept, filled[1].part, filled[2].part


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [LANES, 2 * LANES, 3 * LANES, 7 * LANES, 16 * LANES, 19 * LANES])
def test_rank_side_by_side(rows, dtype):
    call = through(ranking.rank_side_by_side)
    random = np.random.default_rng(11)
    some = list(lists(dtype, (*LENGTHS, rows - 1, rows, rows + 1)))
    for _ in range(60):
        batch = [some[i] for i in random.integers(len(some), size=SIDE_BY_SIDE)]
        tied, kept, ranked, same = ranked_side_by_side(call, dtype, batch, rows, check=True)
        expected_tied, _, expected, expected_same = ranked_side_by_side(
            ranking.plain_rank_side_by_side, dtype, batch, rows, check=False
        )
        for lane, (scores, _) in enumerate(batch):
            n = kept[lane]
            if lane >= SIDE_BY_SIDE - 2 or n > rows:
                assert not tied >> lane & 1
                assert (ranked[:, lane] == 9).all()
                continue
            # where integers leave nothing below the lowest score, what is no document is tied with it
            may_mix = dtype is np.int64 and n > 0 and scores.min() == lowest(dtype)
            assert tied >> lane & 1 == expected_tied >> lane & 1 or may_mix
            ours, plain = same[1:n] >> lane & 1, expected_same[1:n] >> lane & 1
            np.testing.assert_array_equal(ours, plain)
            groups = np.concatenate([[0], np.cumsum(1 - plain)]) if n else np.zeros(0)
            if may_mix:
                n = np.count_nonzero(scores > lowest(dtype))
            for group in range(int(groups[:n].max(initial=-1)) + 1):
                places = np.flatnonzero(groups[:n] == group)
                mine, its = ranked[places, lane], expected[places, lane]
                if dtype is not np.float32:  # which keeps the order of tied documents
                    mine, its = np.sort(mine), np.sort(its)
                np.testing.assert_array_equal(mine, its)
            assert np.count_nonzero(ranked[:, lane] == 9) == rows - kept[lane]


def test_average_side_by_side():
    call = through(ranking.average_side_by_side)
    random = np.random.default_rng(13)
    for turn in range(200):
        rows, depth = LANES * int(random.integers(1, 5)), int(random.integers(0, 70))
        kept = random.integers(0, rows + 1, SIDE_BY_SIDE)
        gains = random.integers(0, 4, (rows, SIDE_BY_SIDE)).astype(float)
        same = random.integers(0, 256, rows).astype(np.uint8)
        if turn % 2:
            same &= random.integers(0, 256, rows).astype(np.uint8)
        for lane in range(SIDE_BY_SIDE):
            gains[kept[lane] :, lane] = 0.0
            same[kept[lane] : kept[lane] + 1] &= np.uint8(255 - (1 << lane))
        held, sizes = Guarded((rows, SIDE_BY_SIDE), float), Guarded((rows, SIDE_BY_SIDE), float)
        out, expected = Guarded((depth, SIDE_BY_SIDE), float), np.zeros((depth, SIDE_BY_SIDE))
        held.part[:] = gains
        call(held.part, same.copy(), kept, rows, sizes.part, out.part)
        same[0] = 0
        ranking.plain_average_side_by_side(gains, same, kept, rows, sizes.part, expected)
        for lane in range(SIDE_BY_SIDE):
            n = min(kept[lane], depth)
            np.testing.assert_array_equal(out.part[:n, lane], expected[:n, lane])
        for each in (held, sizes, out):
            each.check()


@pytest.mark.usefixtures("_widths")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [selection.keep_from, selection.keep_few_from])
def test_keep_from(block, dtype):
    call = through(block)
    for scores, codes in lists(dtype, tuple(n for n in LENGTHS if n >= LANES)):
        for bound in (lowest(dtype), np.median(scores).astype(dtype), scores.max()):
            n = len(scores) + LANES
            (count, same), kept, expected = fill_both(
                call, selection.plain_keep_from, (scores, codes, bound), (n, dtype), (n, np.uint32)
            )
            assert count == same
            for one, other in zip(kept, expected, strict=True):
                np.testing.assert_array_equal(one[:count], other[:count])


@pytest.mark.usefixtures("_widths")
@pytest.mark.parametrize("dtype", DTYPES)
def test_keep_from_lanes(dtype):
    """Lists of fewer than LANES documents are left alone."""
    call = through(selection.keep_from_lanes)
    some = list(lists(dtype, (0, LANES - 1, LANES, LANES + 1, 2 * LANES, 37, 64, 100, 301)))
    for first in range(len(some) - SIDE_BY_SIDE + 1):
        batch = some[first : first + SIDE_BY_SIDE]
        scores, starts, stops = end_to_end([its_scores for its_scores, _ in batch])
        codes = np.concatenate([its_codes for _, its_codes in batch])
        bounds = np.array([np.sort(each)[len(each) // 3] if len(each) else 0 for each, _ in batch], dtype)
        size = int((stops - starts).max()) + LANES
        targets = ((SIDE_BY_SIDE, size), dtype), ((SIDE_BY_SIDE, size), np.uint32), (SIDE_BY_SIDE, np.int64)
        _, (*kept, counts), (*expected, same) = fill_both(
            call, selection.plain_keep_from_lanes, (scores, codes, starts, stops, bounds), *targets
        )
        np.testing.assert_array_equal(counts, same)
        for lane, n in enumerate(stops - starts):
            assert n >= LANES or counts[lane] == UNTOUCHED
            for one, other in zip(kept, expected, strict=True):
                count = counts[lane] if n >= LANES else 0
                np.testing.assert_array_equal(one[lane, :count], other[lane, :count])


def ranked_by(call, dtype, others, *, check):
    """What a block that ranks at most 2 * LANES documents returns, and the first n of what it fills."""
    for scores, codes in lists(dtype, tuple(n for n in LENGTHS if n <= 2 * LANES)):
        n = len(scores)
        held, held_codes = (Guarded(n + 2 * LANES, kind) for kind in (dtype, np.uint32))
        held.part[:n], held_codes.part[:n] = scores, codes
        filled = [Guarded(n + 2 * LANES, np.uint32) for _ in range(1 + others)]
        result = call(held.part, held_codes.part, n, lowest(dtype), *(each.part for each in filled))
        if check:
            for each in (held, held_codes, *filled):
                each.check()
        yield result, [each.part[:n] for each in filled]


@pytest.mark.parametrize("dtype", DTYPES)
def test_rank_distinct(dtype):
    call = through(ranking.rank_distinct)
    ours = ranked_by(call, dtype, 0, check=True)
    found = []
    for (distinct, ranked), (same, expected) in zip(
        ours, ranked_by(ranking.plain_rank_distinct, dtype, 0, check=False), strict=True
    ):
        assert distinct == same
        found.append(distinct)
        if distinct:
            np.testing.assert_array_equal(ranked, expected)
    assert set(found) == {True, False}


@pytest.mark.parametrize("dtype", DTYPES)
def test_rank_tied(dtype):
    call = through(ranking.rank_tied)
    ours = ranked_by(call, dtype, 1, check=True)
    for (_, filled), (_, expected) in zip(
        ours, ranked_by(ranking.plain_rank_tied, dtype, 1, check=False), strict=True
    ):
        np.testing.assert_array_equal(filled, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_counts_of_scores_ahead(dtype):
    call_ahead, call_among = through(ranking.count_ahead), through(ranking.count_among)
    for scores, _ in lists(dtype, tuple(n for n in LENGTHS if n >= 2 * LANES)):
        own = np.resize(scores[:37], 2 * LANES)
        target = 2 * LANES, np.uint32
        _, found, same = fill_both(call_among, ranking.plain_count_among, (scores, own), target, target)
        np.testing.assert_array_equal(found, same)
        blocks = len(scores) // LANES
        for score in own[:5]:
            assert call_ahead(scores, blocks, score) == ranking.plain_count_ahead(scores, blocks, score)


@pytest.mark.parametrize("dtype", DTYPES)
def test_keys_fall_with_scores(dtype):
    call = through(sorting.falling_keys)
    for some, _ in lists(dtype, (0, 1, 20, 300)):
        scores = np.append(some, np.array([0.0, -0.0, 3.0, -7.0], dtype))
        n = len(scores)
        _, keys, expected = fill_both(call, sorting.plain_falling_keys, (scores, n), (n, np.uint64))
        ours, plain = (np.unique(each, return_inverse=True)[1] for (each,) in (keys, expected))
        np.testing.assert_array_equal(ours, plain)
        np.testing.assert_array_equal(ours, np.unique(-scores.astype(float), return_inverse=True)[1])


@pytest.mark.usefixtures("_widths")
def test_codes():
    call_count, call_find = through(sums.count_codes), through(selection.find_from)
    for _, codes in lists(np.float32, tuple(n for n in LENGTHS if n >= LANES)):
        among = np.concatenate([[1, 2, 3], codes, [4, 5, 6]]).astype(codes.dtype)
        for lanes, lane, levels in ((1, 0, 7), (SIDE_BY_SIDE, 3, 9), (SIDE_BY_SIDE, 7, int(codes.max()) + 1)):
            counts, same = Guarded((20, lanes), np.int64), np.full((20, lanes), UNTOUCHED)
            own = np.minimum(among, levels - 1)
            call_count(own, 3, 3 + len(codes), levels, counts.part, lane)
            sums.plain_count_codes(own, 3, 3 + len(codes), levels, same, lane)
            np.testing.assert_array_equal(counts.part[:levels, lane], same[:levels, lane])
            others = np.arange(lanes) != lane
            np.testing.assert_array_equal(counts.part[:, others], same[:, others])
            counts.check()
        kept = codes.astype(np.uint32)
        for least in (0, 2, 9):
            target = len(kept) + LANES, np.uint32
            (n, same), (rows,), (expected,) = fill_both(
                call_find, selection.plain_find_from, (kept, least), target
            )
            assert n == same
            np.testing.assert_array_equal(rows[:n], expected[:n])


def test_ideals_of_queries_side_by_side():
    call_fill = through(sums.fill_ideals)
    random = np.random.default_rng(7)
    gains, falling = np.array([0.0, 1.0, 3.0, 7.0, -1.0]), np.array([3, 2, 1, 0, 4])
    for turn in range(200):
        counts = random.integers(0, [2, 5, 30][turn % 3], (5, SIDE_BY_SIDE))
        depth, levels, left_out = int(random.integers(0, 60)), int(random.integers(0, 6)), turn % 7 - 2
        targets = ((depth, SIDE_BY_SIDE), np.float64), (SIDE_BY_SIDE, np.int64)
        arguments = counts, falling, gains, levels, left_out, depth
        _, (ideals, lengths), (same, expected) = fill_both(
            call_fill, sums.plain_fill_ideals, arguments, *targets
        )
        np.testing.assert_array_equal(lengths, expected)
        for lane, length in enumerate(expected):
            np.testing.assert_array_equal(ideals[:length, lane], same[:length, lane])


def test_rows_of_queries_side_by_side():
    """Sums of lists and their ideals, of different depths, that go on from cutoff to cutoff."""
    call = through(sums.sum_row)
    random = np.random.default_rng(11)
    discounts = 1 / np.log2(np.arange(60) + 2)
    for turn in range(200):
        depths, placed = (
            random.integers(0, [3, 12, 60][turn % 3], 2),
            int(random.integers(0, SIDE_BY_SIDE + 1)),
        )
        lists = [random.integers(0, 5, (depth, SIDE_BY_SIDE)).astype(float) for depth in depths]
        lengths = [random.integers(0, depth + 1, SIDE_BY_SIDE) for depth in depths]
        for values, length in zip(lists, lengths, strict=True):
            values[np.arange(len(values))[:, None] >= length] = np.nan  # what stands beyond may be anything
            length[placed:] = 1 << 60
        if turn % 5 == 0:  # the list is its own ideal, or nearly
            lists[1], lengths[1] = lists[0] * random.choice([1.0, 1.0 - 1e-13]), lengths[0]
        cutoff = random.integers(0, 30, SIDE_BY_SIDE) if turn % 2 else np.full(SIDE_BY_SIDE, 10)
        ours = [np.full((2, SIDE_BY_SIDE), 9), np.full((2, SIDE_BY_SIDE), 9), np.full((2, SIDE_BY_SIDE), 9.0)]
        ours.append(np.zeros(SIDE_BY_SIDE))
        expected = [each.copy() for each in ours]
        for anew, cutoffs in ((True, cutoff // 2), (False, cutoff), (False, cutoff + 3)):
            of_row = placed, turn % 4, lists[0], lengths[0], lists[1], lengths[1], discounts, cutoffs, anew
            call(*of_row, *ours)
            plain_sum_row(*of_row, *expected)
            for one, other in zip(ours, expected, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("_widths")
def test_values_are_kept_in_place():
    call = through(selection.keep_values_from)
    for scores, _ in lists(np.float64, tuple(n for n in LENGTHS if n >= LANES)):
        for bound in (-np.inf, float(np.median(scores)), scores.max()):
            kept = Guarded(len(scores) + LANES, np.float64)
            kept.part[: len(scores)] = scores
            count = call(kept.part[: len(scores)], bound, kept.part)
            np.testing.assert_array_equal(kept.part[:count], scores[scores >= bound])
            kept.check()
