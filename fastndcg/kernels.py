"""Every compiled function of the package: rank each query once, fold the ranking into all measures.

The kernels know no measures, grades or callables; they know tables (`Plan`): the gain of each level, the discount of each
rank, and rows that say which list is summed with which discount to which cutoff and what the sum is divided by.

    code grades to levels -> ideal lists -> rank by score -> lists of ranked gains -> one sum for each row

`score_query` is that flow for one query. Serial drivers are the truth; the parallel ones run the same code over chunks.

All compiled functions live in this one file because Numba keys a cached function on its own file: were a helper elsewhere,
an upgraded package would go on running the old one. Importing this module imports Numba and compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

Array = npt.NDArray[Any]
F = TypeVar("F", bound=Callable[..., Any])

# columns of Plan.rows
LIST, DISCOUNT, IDEAL, CUTOFF, UNDEFINED, OUT = range(6)
UNCUT = np.iinfo(np.int64).max
# when a row has no value
NEVER, NO_DOCUMENTS, NO_IDEAL = range(3)
# columns of Plan.lists
TABLE, TIES, CONDENSED = range(3)
AVERAGE, INPUT, WORST, BEST = range(4)
# columns of Plan.ideals, after TABLE; POOL is the "judged" ideal that a "full" one takes its best gain from
SOURCE, OF_LIST, IDEAL_CUTOFF, POOL = 1, 2, 3, 4
JUDGED, SCORED, RETURNED, FULL = range(4)
# kinds of gain where grades are not coded to levels
LINEAR, EXP2, ONE, LOOKUP = range(4)

_INSERTION = 24  # documents up to which insertion sort beats merging
_MOST_DRAWS = 100_000  # ways to draw tied documents that are enumerated


class Plan(NamedTuple):
    """Measures as tables. T gain tables, L levels and one more for "unjudged", D discounts."""

    gains: Array  # float64 (T, L + 1): gain of each level, of an unjudged document last
    falling: Array  # int64 (T, L + 1): levels by falling gain
    exact: Array  # bool (T,): gains are whole, so that sums of them are exact in any order
    top: Array  # float64 (T,): gain of the scale's best grade; NaN where the query's own best counts
    kinds: Array  # int64 (T,): kind of gain, where grades are not coded
    thresholds: Array  # float64 (T,): grades below it gain nothing, where grades are not coded
    grades: Array  # float64 (L,): grade of each column of `gains`, for kind LOOKUP
    lists: Array  # int64 (n_lists, 3): TABLE, TIES, CONDENSED
    ideals: Array  # int64 (n_ideals, 5): TABLE, SOURCE, OF_LIST, IDEAL_CUTOFF, POOL
    discounts: Array  # float64 (D, ranks)
    rows: Array  # int64 (n_rows, 6): LIST, DISCOUNT, IDEAL, CUTOFF, UNDEFINED, OUT
    empties: Array  # float64 (n_rows,): value of an undefined query, NaN where it is to be left out
    depth: int  # ranks that the lists need
    ideal_depth: int  # ranks that the ideal lists need
    lowest: int  # grade of level 0
    condensing: bool  # some list drops unjudged documents


class Documents(NamedTuple):
    """The ragged columns of `Rankings`; `is_judged` is of length 0 where every document is judged or the codes say it."""

    offsets: Array
    relevance: Array
    scores: Array
    is_judged: Array
    pool_offsets: Array  # of length 0 where the scored documents are the pool
    pool_relevance: Array


class Scratch(NamedTuple):
    """Working memory of one chunk of queries, sized by its longest list."""

    codes: Array  # levels of the query's documents
    pool_codes: Array  # levels of its pool
    scores: Array  # scores of the ranked documents
    ranked: Array  # their levels
    spare_scores: Array
    spare_ranked: Array
    gains: Array  # float64 (T, longest + 1): gain of each document, where grades are not coded
    group: Array  # float64: gains of one group of tied documents, or of a pool
    counts: Array  # int64 (L + 1,): documents of each level
    lists: Array  # float64 (n_lists, depth): gains by rank
    list_lengths: Array  # int64 (n_lists,)
    ideals: Array  # float64 (n_ideals, ideal_depth): gains of the ideal rankings
    ideal_lengths: Array  # int64 (n_ideals,)


def block(function: F) -> F:
    """Compile a piece of a driver. It is cached as a part of the driver only."""
    return numba.njit(nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def driver(**options: Any) -> Callable[[F], F]:
    """Compile what Python calls, cached on disk where a folder for it can be written, and without a cache elsewhere."""

    def decorate(function: F) -> F:
        dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
        if hasattr(dispatcher, "enable_caching"):  # not where NUMBA_DISABLE_JIT leaves a plain function
            try:
                dispatcher.enable_caching()
            except RuntimeError:  # neither the package folder nor a home folder can be written
                pass
        return dispatcher  # type: ignore[no-any-return]

    return decorate


# ---- grades to levels, grades to gains ----


@block
def levels_of(relevance: Array, lowest: int, codes: Array) -> Array:
    """Level of each document as uint8: its grade above the lowest one. Grades of dtype uint8 are levels already."""
    return _levels_of(relevance, lowest, codes)


def _levels_of(relevance: Array, lowest: int, codes: Array) -> Array:
    if relevance.dtype == np.uint8:
        return relevance
    for i in range(relevance.shape[0]):
        codes[i] = np.uint8(np.int64(relevance[i]) - lowest)
    return codes[: relevance.shape[0]]


@overload(_levels_of)
def _levels_of_typed(relevance: Any, lowest: Any, codes: Any) -> Any:
    # chosen while compiling: a slice of read-only grades and a slice of scratch are of two types
    def as_given(relevance: Any, lowest: Any, codes: Any) -> Any:
        return relevance

    def cast(relevance: Any, lowest: Any, codes: Any) -> Any:
        for i in range(relevance.shape[0]):
            codes[i] = np.uint8(np.int64(relevance[i]) - lowest)
        return codes[: relevance.shape[0]]

    return as_given if relevance.dtype == types.uint8 else cast


@block
def count_levels(codes: Array, counts: Array) -> None:
    counts[:] = 0
    for i in range(codes.shape[0]):
        counts[codes[i]] += 1


@block
def gain_of(grade: float, table: int, plan: Plan) -> float:
    """Gain of a grade that has no level."""
    if grade < plan.thresholds[table]:
        return 0.0
    kind = plan.kinds[table]
    if kind == LINEAR:
        return grade
    if kind == EXP2:
        return np.exp2(grade) - 1.0
    if kind == ONE:
        return 1.0
    return plan.gains[table, np.searchsorted(plan.grades, grade)]


@block
def fill_gains(relevance: Array, table: int, plan: Plan, gains: Array) -> None:
    for i in range(relevance.shape[0]):
        gains[i] = gain_of(np.float64(relevance[i]), table, plan)


# ---- sorting: stable, best first ----


@block
def insert_sorted(scores: Array, codes: Array, start: int, stop: int) -> None:
    for i in range(start + 1, stop):
        score, code = scores[i], codes[i]
        j = i
        while j > start and scores[j - 1] < score:
            scores[j], codes[j] = scores[j - 1], codes[j - 1]
            j -= 1
        scores[j], codes[j] = score, code


@block
def merge_runs(scores: Array, codes: Array, start: int, middle: int, stop: int, to_scores: Array, to_codes: Array) -> None:
    left, right = start, middle
    for at in range(start, stop):
        if right >= stop or (left < middle and scores[left] >= scores[right]):
            to_scores[at], to_codes[at] = scores[left], codes[left]
            left += 1
        else:
            to_scores[at], to_codes[at] = scores[right], codes[right]
            right += 1


@block
def sort_ranked(n: int, scratch: Scratch) -> None:
    """Sort the first `n` of scratch.scores and scratch.ranked by falling score."""
    scores, codes, spare_scores, spare_codes = scratch.scores, scratch.ranked, scratch.spare_scores, scratch.spare_ranked
    for start in range(0, n, _INSERTION):
        insert_sorted(scores, codes, start, min(start + _INSERTION, n))
    width = _INSERTION
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            merge_runs(scores, codes, start, middle, min(start + 2 * width, n), spare_scores, spare_codes)
        scores[:n] = spare_scores[:n]
        codes[:n] = spare_codes[:n]
        width *= 2


@block
def sort_falling(values: Array, n: int) -> None:
    """Sort the first `n` values, greatest first."""
    if n <= _INSERTION:
        for i in range(1, n):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] < value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    values[:n].sort()
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


# ---- ranking ----


@block
def score_bound(scores: Array, depth: int, lanes: Array) -> float:
    """A lower bound of the `depth`-th greatest score, for depth <= len(lanes) <= len(scores).

    The lanes take turns at the documents and each keeps its greatest score; at least `depth` documents reach the
    `depth`-th greatest of these.
    """
    width = lanes.shape[0]
    lanes[:] = scores[:width]
    for start in range(width, scores.shape[0] - width + 1, width):
        block = scores[start : start + width]
        for i in range(width):
            lanes[i] = max(lanes[i], block[i])
    for i in range(1, width):
        score = lanes[i]
        j = i
        while j > 0 and lanes[j - 1] < score:
            lanes[j] = lanes[j - 1]
            j -= 1
        lanes[j] = score
    return lanes[depth - 1]


@block
def rank(codes: Array, scores: Array, depth: int, scratch: Scratch) -> int:
    """Fill scratch with the documents of the first `depth` ranks and all tied with the last of them; returns how many."""
    n = scores.shape[0]
    width = 16 if depth <= 16 else 128
    kept = n
    if depth <= width and n >= 2 * width:
        bound = score_bound(scores, depth, scratch.spare_scores[:width])
        kept = 0
        for i in range(n):
            scratch.scores[kept], scratch.ranked[kept] = scores[i], codes[i]
            kept += scores[i] >= bound
    else:
        scratch.scores[:n] = scores
        scratch.ranked[:n] = codes
    sort_ranked(kept, scratch)
    return kept


@block
def average(gains: Array, n: int, exact: bool) -> float:
    """Mean of the first `n` gains, the same for any order of them; of equal gains it is that gain."""
    lowest = highest = total = gains[0]
    for i in range(1, n):
        total += gains[i]
        lowest, highest = min(lowest, gains[i]), max(highest, gains[i])
    if lowest == highest:
        return lowest
    if not exact:
        sort_falling(gains, n)
        total = 0.0
        for i in range(n):
            total += gains[i]
    return total / n


@block
def gather(ranked: int, depth: int, table: int, ties: int, condensed: bool, unjudged: int, gains: Array, plan: Plan, scratch: Scratch, out: Array) -> int:
    """Gains by rank of one list, ties resolved; returns how many ranks were filled: `depth`, or fewer where documents end."""
    scores, codes, group = scratch.scores, scratch.ranked, scratch.group
    at = start = 0
    while start < ranked and at < depth:
        size = 0
        stop = start
        while stop < ranked and scores[stop] == scores[start]:
            if not (condensed and codes[stop] == unjudged):
                group[size] = gains[table, codes[stop]]
                size += 1
            stop += 1
        start = stop
        if size == 0:
            continue
        filled = min(size, depth - at)
        if size == 1 or ties == INPUT:
            out[at : at + filled] = group[:filled]
        elif ties == AVERAGE:
            out[at : at + filled] = average(group, size, plan.exact[table])
        else:
            sort_falling(group, size)
            for i in range(filled):
                out[at + i] = group[i] if ties == BEST else group[size - 1 - i]
        at += filled
    return at


# ---- ideal rankings ----


@block
def ideal_of_levels(counts: Array, unjudged: int, table: int, plan: Plan, out: Array) -> int:
    """Gains of the documents counted by level, in falling order; returns how many fit into `out`.

    Documents of the level `unjudged` are left out; a level that does not exist leaves none out.
    """
    at = 0
    for i in range(plan.falling.shape[1]):
        level = plan.falling[table, i]
        if level != unjudged:
            stop = min(at + counts[level], out.shape[0])
            out[at:stop] = plan.gains[table, level]
            at = stop
    return at


@block
def ideal_of_gains(gains: Array, n: int, out: Array) -> int:
    sort_falling(gains, n)
    filled = min(n, out.shape[0])
    out[:filled] = gains[:filled]
    return filled


@block
def ideal_of_returned(ranked: int, cutoff: int, condensed: bool, unjudged: int, gains: Array, scratch: Scratch, out: Array) -> int:
    """Gains of the documents on the first `cutoff` ranks, in falling order."""
    filled = 0
    for i in range(ranked):
        if filled == min(cutoff, out.shape[0]):
            break
        if not (condensed and scratch.ranked[i] == unjudged):
            out[filled] = gains[scratch.ranked[i]]
            filled += 1
    sort_falling(out, filled)
    return filled


@block
def ideal_of_full(best: float, length: int, out: Array) -> int:
    out[:length] = best
    return length


# ---- sums over ranks ----


@block
def discounted(gains: Array, length: int, discounts: Array) -> float:
    total = 0.0
    for i in range(length):
        total += gains[i] * discounts[i]
    return total


@block
def normalised(total: float, ideal: float) -> float:
    if ideal == 0.0:
        return np.nan
    value = total / ideal
    # two orders of one sum round differently: what is 1 by the mathematics must not come out above it
    return 1.0 if 1.0 < value < 1.0 + 1e-12 else value


@block
def choose(n: int, k: int) -> float:
    """Number of ways to choose k of n."""
    if n > 1000:  # beyond it the product overflows
        return np.exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0))
    ways = 1.0
    for i in range(1, k + 1):
        ways = ways * (n - k + i) / i
    return ways


@block
def expected_over_returned(
    ranked: int, cutoff: int, condensed: bool, unjudged: int, gains: Array, averaged: Array, length: int, discounts: Array, empty: float, scratch: Scratch
) -> float:
    """Expectation of DCG / IDCG over all orders of ties, where the ideal is made of the `cutoff` documents returned.

    Which documents are returned varies only where a tied group straddles the cutoff. Then every way to draw the remaining
    places from the group's distinct gains is weighed by its (multivariate hypergeometric) probability. Infinite where
    there are more than `_MOST_DRAWS` ways.
    """
    length = min(length, cutoff)
    certain = np.empty(length + 1)  # gains of the documents that are returned whatever the order
    start = before = 0
    group = scratch.group
    size = 0
    while start < ranked and before + size < length or start == 0 and ranked > 0 and size == 0:
        for i in range(size):
            certain[before + i] = group[i]
        before += size
        size = 0
        stop = start
        while stop < ranked and scratch.scores[stop] == scratch.scores[start]:
            if not (condensed and scratch.ranked[stop] == unjudged):
                group[size] = gains[scratch.ranked[stop]]
                size += 1
            stop += 1
        if stop == start:
            break
        start = stop
    places = length - before  # of the last group, for `size` documents
    sort_falling(group, size)
    kinds = 0
    values, available = np.empty(size), np.zeros(size, np.int64)
    for i in range(size):
        if i == 0 or group[i] != group[i - 1]:
            values[kinds] = group[i]
            kinds += 1
        available[kinds - 1] += 1

    sum_before = discounted(averaged, before, discounts)
    sum_of_discounts = 0.0
    for i in range(before, length):
        sum_of_discounts += discounts[i]
    drawn = np.zeros(kinds, np.int64)
    left = places
    for kind in range(kinds):  # the first draw: best gains first
        drawn[kind] = min(available[kind], left)
        left -= drawn[kind]
    ideal = np.empty(length)
    value = weight = 0.0
    draws = 0
    while True:
        draws += 1
        if draws > _MOST_DRAWS:
            return np.inf
        probability = 1.0 / choose(size, places)
        mean = 0.0
        at = before
        ideal[:before] = certain[:before]
        for kind in range(kinds):
            probability *= choose(available[kind], drawn[kind])
            mean += values[kind] * drawn[kind]
            for _ in range(drawn[kind]):
                ideal[at] = values[kind]
                at += 1
        sort_falling(ideal, length)
        best = discounted(ideal, length, discounts)
        if best != 0.0:
            got = discounted(averaged, length, discounts) if kinds <= 1 else sum_before + mean / places * sum_of_discounts
            value += probability * normalised(got, best)
            weight += probability
        elif not np.isnan(empty):
            value += probability * empty
        # the next draw: move one document from a kind to the ones after it, and refill those best first
        kind = kinds - 2
        after = drawn[kinds - 1] if kinds else 0
        room = available[kinds - 1] - after if kinds else 0
        while kind >= 0 and (drawn[kind] == 0 or room == 0):
            after += drawn[kind]
            room += available[kind] - drawn[kind]
            kind -= 1
        if kind < 0:
            break
        drawn[kind] -= 1
        after += 1
        for later in range(kind + 1, kinds):
            drawn[later] = min(available[later], after)
            after -= drawn[later]
    if weight == 0.0:
        return np.nan
    return value / weight if np.isnan(empty) else min(value, max(1.0, empty))


@block
def fold_rows(query: int, has_documents: bool, ranked: int, unjudged: int, gains: Array, plan: Plan, scratch: Scratch, out: Array) -> None:
    """Sum each row's list and ideal with its discount to its cutoff. Rows of one list, discount and ideal share a sum."""
    rows, lists, ideals = plan.rows, scratch.lists, scratch.ideals
    total = best = 0.0
    summed = summed_best = 0
    for r in range(rows.shape[0]):
        source, ideal, cutoff = rows[r, LIST], rows[r, IDEAL], rows[r, CUTOFF]
        discounts = plan.discounts[rows[r, DISCOUNT]]
        if r == 0 or source != rows[r - 1, LIST] or ideal != rows[r - 1, IDEAL] or rows[r, DISCOUNT] != rows[r - 1, DISCOUNT]:
            total = best = 0.0
            summed = summed_best = 0
        if source >= 0:
            gained = lists[source]
            stop = min(cutoff, scratch.list_lengths[source])
            for i in range(summed, stop):
                total += gained[i] * discounts[i]
            summed = max(summed, stop)
        if ideal >= 0:
            perfect = ideals[ideal]
            stop = min(cutoff, scratch.ideal_lengths[ideal])
            for i in range(summed_best, stop):
                best += perfect[i] * discounts[i]
            summed_best = max(summed_best, stop)
        value = total
        if source < 0:
            value = best
        elif ideal >= 0:
            if plan.ideals[ideal, SOURCE] == RETURNED and plan.lists[source, TIES] == AVERAGE:
                table, condensed = plan.lists[source, TABLE], plan.lists[source, CONDENSED] == 1
                value = expected_over_returned(
                    ranked, cutoff, condensed, unjudged, gains[table], lists[source], scratch.list_lengths[source], discounts, plan.empties[r], scratch
                )
            else:
                value = normalised(total, best)
        if rows[r, UNDEFINED] == NO_DOCUMENTS and not has_documents:
            value = np.nan
        out[rows[r, OUT], query] = value


# ---- one query ----


@block
def gather_lists(ranked: int, unjudged: int, gains: Array, plan: Plan, scratch: Scratch) -> None:
    depth = scratch.lists.shape[1]
    for v in range(plan.lists.shape[0]):
        table, ties, condensed = plan.lists[v, TABLE], plan.lists[v, TIES], plan.lists[v, CONDENSED] == 1
        scratch.list_lengths[v] = gather(ranked, depth, table, ties, condensed, unjudged, gains, plan, scratch, scratch.lists[v])


@block
def ideals_of_lists(ranked: int, unjudged: int, gains: Array, plan: Plan, scratch: Scratch) -> None:
    """The ideals that depend on what was returned, after the lists and the other ideals are made."""
    for i in range(plan.ideals.shape[0]):
        table, source = plan.ideals[i, TABLE], plan.ideals[i, SOURCE]
        cutoff, out = plan.ideals[i, IDEAL_CUTOFF], scratch.ideals[i]
        if source == RETURNED:
            condensed = plan.lists[plan.ideals[i, OF_LIST], CONDENSED] == 1
            scratch.ideal_lengths[i] = ideal_of_returned(ranked, cutoff, condensed, unjudged, gains[table], scratch, out)
        elif source == FULL:
            length = scratch.list_lengths[plan.ideals[i, OF_LIST]] if cutoff == UNCUT else cutoff
            best, pool = plan.top[table], plan.ideals[i, POOL]
            if np.isnan(best) and scratch.ideal_lengths[pool] > 0:
                best = scratch.ideals[pool, 0]
            scratch.ideal_lengths[i] = 0 if np.isnan(best) else ideal_of_full(best, length, out)


@block
def score_query_of_levels(query: int, documents: Documents, plan: Plan, scratch: Scratch, out: Array) -> None:
    offsets, unjudged = documents.offsets, plan.gains.shape[1] - 1
    scores = documents.scores[offsets[query] : offsets[query + 1]]
    codes = levels_of(documents.relevance[offsets[query] : offsets[query + 1]], plan.lowest, scratch.codes)
    has_documents = codes.shape[0] > 0
    counts = scratch.counts
    count_levels(codes, counts)
    any_unjudged = counts[unjudged] > 0
    for i in range(plan.ideals.shape[0]):
        if plan.ideals[i, SOURCE] == SCORED:
            left_out = unjudged if plan.lists[plan.ideals[i, OF_LIST], CONDENSED] == 1 else -1
            scratch.ideal_lengths[i] = ideal_of_levels(counts, left_out, plan.ideals[i, TABLE], plan, scratch.ideals[i])
    pool_offsets = documents.pool_offsets
    if pool_offsets.shape[0] > 0:
        pool = documents.pool_relevance[pool_offsets[query] : pool_offsets[query + 1]]
        has_documents = has_documents or pool.shape[0] > 0
        count_levels(levels_of(pool, plan.lowest, scratch.pool_codes), counts)
    for i in range(plan.ideals.shape[0]):
        if plan.ideals[i, SOURCE] == JUDGED:
            scratch.ideal_lengths[i] = ideal_of_levels(counts, unjudged, plan.ideals[i, TABLE], plan, scratch.ideals[i])
    depth = codes.shape[0] if any_unjudged and plan.condensing else min(plan.depth, codes.shape[0])
    ranked = rank(codes, scores, depth, scratch)
    gather_lists(ranked, unjudged, plan.gains, plan, scratch)
    ideals_of_lists(ranked, unjudged, plan.gains, plan, scratch)
    fold_rows(query, has_documents, ranked, unjudged, plan.gains, plan, scratch, out)


@block
def score_query_of_values(query: int, documents: Documents, plan: Plan, scratch: Scratch, out: Array) -> None:
    """As `score_query_of_levels`, for grades that have no small set of levels: a document's code is its row in the query."""
    offsets = documents.offsets
    start, stop = offsets[query], offsets[query + 1]
    scores, relevance = documents.scores[start:stop], documents.relevance[start:stop]
    n = relevance.shape[0]
    has_documents = n > 0
    gains, codes, unjudged = scratch.gains, scratch.codes[:n], n
    for i in range(n):
        codes[i] = i
    for table in range(gains.shape[0]):
        fill_gains(relevance, table, plan, gains[table])
        gains[table, n] = plan.gains[table, plan.gains.shape[1] - 1]
    any_unjudged = False
    if documents.is_judged.shape[0] > 0:
        is_judged = documents.is_judged[start:stop]
        for i in range(n):
            if not is_judged[i]:
                any_unjudged = True
                codes[i] = unjudged
    pool_offsets = documents.pool_offsets
    for i in range(plan.ideals.shape[0]):
        table, source = plan.ideals[i, TABLE], plan.ideals[i, SOURCE]
        if source == JUDGED and pool_offsets.shape[0] > 0:
            pool = documents.pool_relevance[pool_offsets[query] : pool_offsets[query + 1]]
            has_documents = has_documents or pool.shape[0] > 0
            fill_gains(pool, table, plan, scratch.group)
            scratch.ideal_lengths[i] = ideal_of_gains(scratch.group, pool.shape[0], scratch.ideals[i])
        elif source == JUDGED or source == SCORED:
            condensed = source == JUDGED or plan.lists[plan.ideals[i, OF_LIST], CONDENSED] == 1
            size = 0
            for j in range(n):
                if not (condensed and codes[j] == unjudged):
                    scratch.group[size] = gains[table, codes[j]]
                    size += 1
            scratch.ideal_lengths[i] = ideal_of_gains(scratch.group, size, scratch.ideals[i])
    if pool_offsets.shape[0] > 0:
        has_documents = has_documents or pool_offsets[query + 1] > pool_offsets[query]
    depth = n if any_unjudged and plan.condensing else min(plan.depth, n)
    ranked = rank(codes, scores, depth, scratch)
    gather_lists(ranked, unjudged, gains, plan, scratch)
    ideals_of_lists(ranked, unjudged, gains, plan, scratch)
    fold_rows(query, has_documents, ranked, unjudged, gains, plan, scratch, out)


# ---- drivers: chunks of queries, cut so that each has about as many documents ----


@block
def longest_list(offsets: Array, first: int, last: int) -> int:
    longest = 0
    for query in range(first, last):
        longest = max(longest, offsets[query + 1] - offsets[query])
    return longest


@block
def score_chunk_of_levels(first: int, last: int, documents: Documents, plan: Plan, out: Array) -> None:
    longest = longest_list(documents.offsets, first, last)
    pool = longest_list(documents.pool_offsets, first, last) if documents.pool_offsets.shape[0] > 0 else 0
    scratch = Scratch(
        np.empty(longest, np.uint8),
        np.empty(pool, np.uint8),
        np.empty(longest + 1, documents.scores.dtype),
        np.empty(longest + 1, np.uint8),
        np.empty(max(longest, 128), documents.scores.dtype),
        np.empty(longest, np.uint8),
        np.empty((0, 0)),
        np.empty(longest),
        np.zeros(plan.gains.shape[1], np.int64),
        np.empty((plan.lists.shape[0], min(plan.depth, longest))),
        np.zeros(plan.lists.shape[0], np.int64),
        np.empty((plan.ideals.shape[0], plan.ideal_depth)),
        np.zeros(plan.ideals.shape[0], np.int64),
    )
    for query in range(first, last):
        score_query_of_levels(query, documents, plan, scratch, out)


@block
def score_chunk_of_values(first: int, last: int, documents: Documents, plan: Plan, out: Array) -> None:
    longest = longest_list(documents.offsets, first, last)
    pool = longest_list(documents.pool_offsets, first, last) if documents.pool_offsets.shape[0] > 0 else 0
    scratch = Scratch(
        np.empty(longest, np.int32),
        np.empty(0, np.int32),
        np.empty(longest + 1, documents.scores.dtype),
        np.empty(longest + 1, np.int32),
        np.empty(max(longest, 128), documents.scores.dtype),
        np.empty(longest, np.int32),
        np.empty((plan.gains.shape[0], longest + 1)),
        np.empty(max(longest, pool)),
        np.empty(0, np.int64),
        np.empty((plan.lists.shape[0], min(plan.depth, longest))),
        np.zeros(plan.lists.shape[0], np.int64),
        np.empty((plan.ideals.shape[0], plan.ideal_depth)),
        np.zeros(plan.ideals.shape[0], np.int64),
    )
    for query in range(first, last):
        score_query_of_values(query, documents, plan, scratch, out)


@driver()
def score_levels_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in range(chunks.shape[0] - 1):
        score_chunk_of_levels(chunks[c], chunks[c + 1], documents, plan, out)


@driver(parallel=True)
def score_levels_parallel(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in numba.prange(chunks.shape[0] - 1):
        score_chunk_of_levels(chunks[c], chunks[c + 1], documents, plan, out)


@driver()
def score_values_serial(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in range(chunks.shape[0] - 1):
        score_chunk_of_values(chunks[c], chunks[c + 1], documents, plan, out)


@driver(parallel=True)
def score_values_parallel(chunks: Array, documents: Documents, plan: Plan, out: Array) -> None:
    for c in numba.prange(chunks.shape[0] - 1):
        score_chunk_of_values(chunks[c], chunks[c + 1], documents, plan, out)


# ---- grouping rows by query ----


@driver()
def codes_by_first_appearance(indices: Array, n_values: int) -> tuple[Array, Array]:
    """Number the values that occur in order of first appearance; returns each row's number and each number's first row."""
    numbers = np.full(n_values, -1, np.int64)
    codes = np.empty(indices.shape[0], np.int64)
    first_rows = np.empty(n_values, np.int64)
    found = 0
    for row in range(indices.shape[0]):
        value = indices[row]
        if numbers[value] < 0:
            numbers[value] = found
            first_rows[found] = row
            found += 1
        codes[row] = numbers[value]
    return codes, first_rows[:found]


@driver()
def rows_by_code(codes: Array, n_codes: int) -> tuple[Array, Array]:
    """Offsets of each code and the rows in its order, rows of one code in their own order (a counting sort)."""
    offsets = np.zeros(n_codes + 1, np.int64)
    for row in range(codes.shape[0]):
        offsets[codes[row] + 1] += 1
    for code in range(n_codes):
        offsets[code + 1] += offsets[code]
    ends = offsets.copy()
    rows = np.empty(codes.shape[0], np.int64)
    for row in range(codes.shape[0]):
        code = codes[row]
        rows[ends[code]] = row
        ends[code] += 1
    return offsets, rows


# ==== reading text: TREC files and LETOR files, block by block of whole lines ====
#
# A block ends with a newline, so that no loop needs to look for the end of the data. Everything is appended to columns
# that the caller has made large enough; `filled` says how far each is filled, and lives on from block to block.

ROWS, DOC_BYTES, QUERIES, QUERY_BYTES, SKIPPED, ODD = range(6)  # entries of `filled`

_NEWLINE, _BLANK, _HASH, _PLUS, _MINUS, _POINT, _ZERO, _COLON = 10, 32, 35, 43, 45, 46, 48, 58
_EXACT_WHOLE = 1 << 53  # whole numbers up to it are exact as float64, and so are powers of ten up to 10 ** 22
_EXACT_POWER = 22


class TextColumns(NamedTuple):
    """What is kept of the lines of a file."""

    doc_bytes: Array  # uint8: document ids, one after the other
    doc_ends: Array  # int64: where the id of each row ends in it
    query_bytes: Array  # uint8: query ids; one for each run of rows of the same query
    query_ends: Array  # int64: where each of them ends in it
    query_rows: Array  # int64: first row of each run
    values: Array  # float64 for each row: the score or the grade
    skipped: Array  # int64: row before which a comment or an empty line stood, once for each
    odd: Array  # int64 (:, 3): row, start and end of each number that this scanner leaves to another


@block
def skip_blanks(data: Array, at: int) -> int:
    while data[at] <= _BLANK and data[at] != _NEWLINE:
        at += 1
    return at


@block
def skip_field(data: Array, at: int) -> int:
    while data[at] > _BLANK:
        at += 1
    return at


@block
def skip_line(data: Array, at: int) -> int:
    while data[at] != _NEWLINE:
        at += 1
    return at + 1


@block
def read_number(data: Array, start: int, powers: Array) -> tuple[int, float, bool]:
    """Where a decimal number ends, the number, and whether it is that.

    It is where one division or product of exact numbers gives it correctly rounded. Elsewhere the field is skipped. The end
    is `start` where there is no field at all.
    """
    at = start
    negative = data[at] == _MINUS
    if negative or data[at] == _PLUS:
        at += 1
    whole, digits, exponent, after_point = np.int64(0), 0, 0, 0
    while True:
        digit = np.int64(data[at]) - _ZERO
        if 0 <= digit <= 9:
            if digits < 18:  # more are for another to read; fewer never overflow
                whole = whole * 10 + digit
            digits += 1
            exponent -= after_point
        elif digit == _POINT - _ZERO and after_point == 0:
            after_point = 1
        else:
            break
        at += 1
    if digits > 0 and (data[at] == 101 or data[at] == 69):  # e or E
        here = at + 1
        falling = data[here] == _MINUS
        if falling or data[here] == _PLUS:
            here += 1
        power, power_digits = 0, 0
        while 0 <= np.int64(data[here]) - _ZERO <= 9 and power_digits < 4:
            power = power * 10 + np.int64(data[here]) - _ZERO
            power_digits += 1
            here += 1
        if power_digits > 0:
            exponent += -power if falling else power
            at = here
    if digits == 0 or digits >= 18 or whole > _EXACT_WHOLE or abs(exponent) > _EXACT_POWER or data[at] > _BLANK:
        return skip_field(data, at), 0.0, False
    value = whole / powers[-exponent] if exponent < 0 else whole * powers[exponent]
    return at, -value if negative else value, True


@block
def same_bytes(text: Array, start: int, stop: int, other: Array, other_start: int, other_stop: int) -> bool:
    if stop - start != other_stop - other_start:
        return False
    for i in range(stop - start):
        if text[start + i] != other[other_start + i]:
            return False
    return True


# The scanners keep their state in local variables and hand no tuple of arrays to a block: counting the references of its
# arrays at each call made them six times as slow.


@driver()
def scan_trec(data: Array, has_rank: bool, powers: Array, columns: TextColumns, filled: Array) -> int:
    """Read the lines `query iteration doc grade`, or with `has_rank` `query iteration doc rank score tag`.

    Returns -1, or where in `data` the first line begins that is not of this form.
    """
    doc_bytes, doc_ends, query_bytes, query_ends, query_rows, values, skipped, odd = columns
    row, doc_end, runs, query_end = filled[ROWS], filled[DOC_BYTES], filled[QUERIES], filled[QUERY_BYTES]
    query_start = 0 if runs < 2 else query_ends[runs - 2]
    n_skipped, n_odd = filled[SKIPPED], filled[ODD]
    malformed = -1
    at = 0
    while at < data.shape[0]:
        line = at
        at = skip_blanks(data, at)
        if data[at] == _NEWLINE or data[at] == _HASH:
            at = skip_line(data, at)
            skipped[n_skipped] = row
            n_skipped += 1
            continue
        malformed = line  # until the line is found to be well formed
        start = at
        at = skip_field(data, at)
        if runs == 0 or not same_bytes(data, start, at, query_bytes, query_start, query_end):
            query_start = query_end
            for i in range(start, at):
                query_bytes[query_end] = data[i]
                query_end += 1
            query_ends[runs], query_rows[runs] = query_end, row
            runs += 1
        at = skip_field(data, skip_blanks(data, at))
        at = skip_blanks(data, at)
        start, end = at, doc_end
        while data[at] > _BLANK:
            doc_bytes[end] = data[at]
            end += 1
            at += 1
        if at == start:
            break
        at = skip_blanks(data, at)
        if has_rank:
            at = skip_blanks(data, skip_field(data, at))
        start = at
        at, value, is_read = read_number(data, start, powers)
        if at == start:
            break
        values[row] = value
        if not is_read:
            odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = row, start, at
            n_odd += 1
        if has_rank:
            start = skip_blanks(data, at)
            at = skip_field(data, start)
            if at == start:
                break
        at = skip_blanks(data, at)
        if data[at] != _NEWLINE:
            break
        at += 1
        malformed = -1
        doc_end = end
        doc_ends[row] = end
        row += 1
    filled[ROWS], filled[DOC_BYTES], filled[QUERIES], filled[QUERY_BYTES] = row, doc_end, runs, query_end
    filled[SKIPPED], filled[ODD] = n_skipped, n_odd
    return malformed


@driver()
def scan_ltr(data: Array, powers: Array, columns: TextColumns, filled: Array) -> int:
    """Read the label and the query of the lines `label [qid:query] feature:value ...`; features are not looked at.

    A line without qid: belongs to a run of rows of the empty query id. Returns -1, or where in `data` the first line begins
    that has no label or an empty qid.
    """
    _, _, query_bytes, query_ends, query_rows, values, skipped, odd = columns
    row, runs, query_end = filled[ROWS], filled[QUERIES], filled[QUERY_BYTES]
    query_start = 0 if runs < 2 else query_ends[runs - 2]
    n_skipped, n_odd = filled[SKIPPED], filled[ODD]
    malformed = -1
    at = 0
    while at < data.shape[0]:
        line = at
        at = skip_blanks(data, at)
        if data[at] == _NEWLINE or data[at] == _HASH:
            at = skip_line(data, at)
            skipped[n_skipped] = row
            n_skipped += 1
            continue
        malformed = line
        start = at
        at, value, is_read = read_number(data, start, powers)
        if at == start:
            break
        values[row] = value
        if not is_read:
            odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = row, start, at
            n_odd += 1
        at = skip_blanks(data, at)
        start = at
        # q, i, d: each differs from the line's end, so that none of the four is looked for beyond it
        if data[at] == 113 and data[at + 1] == 105 and data[at + 2] == 100 and data[at + 3] == _COLON:
            start = at + 4
            at = skip_field(data, start)
            if at == start:
                break
        if runs == 0 or not same_bytes(data, start, at, query_bytes, query_start, query_end):
            query_start = query_end
            for i in range(start, at):
                query_bytes[query_end] = data[i]
                query_end += 1
            query_ends[runs], query_rows[runs] = query_end, row
            runs += 1
        at = skip_line(data, at)
        malformed = -1
        row += 1
    filled[ROWS], filled[QUERIES], filled[QUERY_BYTES] = row, runs, query_end
    filled[SKIPPED], filled[ODD] = n_skipped, n_odd
    return malformed


@driver()
def cut_out(data: Array, spans: Array, out: Array, ends: Array) -> None:
    """Copy the bytes between the last two columns of `spans` one after the other."""
    end = 0
    for i in range(spans.shape[0]):
        for at in range(spans[i, 1], spans[i, 2]):
            out[end] = data[at]
            end += 1
        ends[i] = end


# ==== joining judgments to a run, and ordering tied documents by id ====


class Ids(NamedTuple):
    """Document ids as the join compares them. Of whole numbers `offsets` and `data` are empty, and `leading` says it all."""

    hashes: Array  # int64: 32 bits of a hash
    leading: Array  # int64: ids in this order are in their own order, unless equal: the first seven bytes, or the number
    offsets: Array  # int64 (n + 1,): where the bytes of each id are in `data`
    data: Array  # uint8


@driver()
def digest_ids(offsets: Array, data: Array, hashes: Array, leading: Array) -> None:
    """Hash (FNV-1a) and first seven bytes of each id. Nothing here overflows, with or without compiling."""
    for row in range(hashes.shape[0]):
        text = data[offsets[row] : offsets[row + 1]]
        value, first = np.int64(2166136261), np.int64(0)
        for i in range(text.shape[0]):
            value = ((value ^ np.int64(text[i])) * 16777619) & 0xFFFFFFFF
        for i in range(7):
            first = first * 256 + (np.int64(text[i]) if i < text.shape[0] else 0)
        hashes[row] = value ^ (value >> 15)
        leading[row] = first


@block
def compare_ids(ids: Ids, row: int, others: Ids, other: int) -> int:
    """Below, at or above 0 where an id is before, at or after the other, by bytes or as numbers."""
    if ids.leading[row] != others.leading[other]:
        return -1 if ids.leading[row] < others.leading[other] else 1
    if ids.offsets.shape[0] == 0:
        return 0
    text = ids.data[ids.offsets[row] : ids.offsets[row + 1]]
    other_text = others.data[others.offsets[other] : others.offsets[other + 1]]
    for i in range(min(text.shape[0], other_text.shape[0])):
        if text[i] != other_text[i]:
            return -1 if text[i] < other_text[i] else 1
    return text.shape[0] - other_text.shape[0]


@driver()
def join_documents(
    judged_offsets: Array, judged_rows: Array, judged: Ids, run_offsets: Array, run_rows: Array, run: Ids, found: Array
) -> tuple[int, int, int]:
    """Judged row of each document of the run, -1 where it has none, through one small hash table for each query.

    Both sides are grouped by query: query `q` owns `rows[offsets[q]:offsets[q + 1]]`, and `found` is in the order of
    `run_rows`. Returns (0, -1, -1), or 1 for the judgments or 2 for the run, with the first two rows that are the same
    document of the same query.
    """
    n_queries = judged_offsets.shape[0] - 1
    largest = 0
    for query in range(n_queries):
        largest = max(largest, judged_offsets[query + 1] - judged_offsets[query] + run_offsets[query + 1] - run_offsets[query])
    size = 2
    while size < 2 * largest:
        size *= 2
    # 0: free; a judged row + 1; or -1 - a row of the run. A judged row once found is owned by its row of the run in `owners`
    slots, owners = np.zeros(size, np.int64), np.zeros(size, np.int64)
    judged_hashes, run_hashes = judged.hashes, run.hashes
    for query in range(n_queries):
        entries = judged_offsets[query + 1] - judged_offsets[query] + run_offsets[query + 1] - run_offsets[query]
        size = 2
        while size < 2 * entries:
            size *= 2
        slots[:size] = 0
        owners[:size] = -1
        for i in range(judged_offsets[query], judged_offsets[query + 1]):
            row = judged_rows[i]
            hashed = judged_hashes[row]
            slot = hashed & (size - 1)
            while slots[slot] != 0:
                if judged_hashes[slots[slot] - 1] == hashed and compare_ids(judged, row, judged, slots[slot] - 1) == 0:
                    return 1, slots[slot] - 1, row
                slot = (slot + 1) & (size - 1)
            slots[slot] = row + 1
        for i in range(run_offsets[query], run_offsets[query + 1]):
            row = run_rows[i]
            hashed = run_hashes[row]
            slot = hashed & (size - 1)
            found[i] = -1
            while slots[slot] != 0:
                entry = slots[slot]
                if entry > 0:
                    if judged_hashes[entry - 1] == hashed and compare_ids(run, row, judged, entry - 1) == 0:
                        if owners[slot] >= 0:
                            return 2, owners[slot], row
                        owners[slot] = row
                        found[i] = entry - 1
                        break
                elif run_hashes[-1 - entry] == hashed and compare_ids(run, row, run, -1 - entry) == 0:
                    return 2, -1 - entry, row
                slot = (slot + 1) & (size - 1)
            if slots[slot] == 0:
                slots[slot] = -1 - row
    return 0, -1, -1


@driver()
def order_documents(offsets: Array, rows: Array, keys: Array, ids: Ids, ascending: bool, order: Array) -> None:
    """Order the rows of each query by rising key and then by id: `rows[order]` is the result. Ids of a query are distinct."""
    longest = 0
    for query in range(offsets.shape[0] - 1):
        longest = max(longest, offsets[query + 1] - offsets[query])
    spare = np.empty(longest, np.int64)
    for query in range(offsets.shape[0] - 1):
        first, n = offsets[query], offsets[query + 1] - offsets[query]
        at = order[first : first + n]
        for i in range(n):
            at[i] = first + i
        sort_by_key_stably(at, rows, keys, spare)
        start = 0
        while start < n:
            key = keys[rows[at[start]]]
            stop = start + 1
            while stop < n and keys[rows[at[stop]]] == key:
                stop += 1
            if stop - start > 1:
                sort_by_id(at[start:stop], rows, ids, ascending, spare)
            start = stop


@block
def sort_by_key_stably(at: Array, rows: Array, keys: Array, spare: Array) -> None:
    n = at.shape[0]
    ordered = True
    for i in range(1, n):
        if keys[rows[at[i]]] < keys[rows[at[i - 1]]]:
            ordered = False
            break
    if ordered:
        return
    for start in range(0, n, _INSERTION):
        for i in range(start + 1, min(start + _INSERTION, n)):
            moved = at[i]
            key = keys[rows[moved]]
            j = i
            while j > start and key < keys[rows[at[j - 1]]]:
                at[j] = at[j - 1]
                j -= 1
            at[j] = moved
    width = _INSERTION
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for to in range(start, stop):
                if right >= stop or (left < middle and keys[rows[at[left]]] <= keys[rows[at[right]]]):
                    spare[to] = at[left]
                    left += 1
                else:
                    spare[to] = at[right]
                    right += 1
        at[:] = spare[:n]
        width *= 2


@block
def sort_by_id(at: Array, rows: Array, ids: Ids, ascending: bool, spare: Array) -> None:
    n = at.shape[0]
    turn = 1 if ascending else -1
    for start in range(0, n, _INSERTION):
        for i in range(start + 1, min(start + _INSERTION, n)):
            moved = at[i]
            j = i
            while j > start and turn * compare_ids(ids, rows[moved], ids, rows[at[j - 1]]) < 0:
                at[j] = at[j - 1]
                j -= 1
            at[j] = moved
    width = _INSERTION
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for to in range(start, stop):
                if right >= stop or (left < middle and turn * compare_ids(ids, rows[at[left]], ids, rows[at[right]]) < 0):
                    spare[to] = at[left]
                    left += 1
                else:
                    spare[to] = at[right]
                    right += 1
        at[:] = spare[:n]
        width *= 2
