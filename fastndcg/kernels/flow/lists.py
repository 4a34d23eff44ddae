"""Lists of ranked gains."""

from __future__ import annotations

from fastndcg.kernels.flow import tables
from fastndcg.kernels.flow.tables import Array, Plan

from ..compile.llvm import LANES
from ..compile.marks import apart, block, inlined
from .memory import Batch, Work
from .sorting import sort_falling


@block
def average(gains: Array, n: int, exact: bool) -> float:
    """Mean of the first `n` gains, with equal bits in any order; the mean of equal gains is that gain."""
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


@inlined
def average_few(ranked: int, depth: int, gain_of_code: Array, work: Work, out: Array) -> int:
    """As `gather`, for averaged ties and gains whose sums are exact; no branch depends on the ties."""
    sums, sizes = work.group, work.seen
    if ranked > 2 * LANES:
        start = 0
        while start < ranked:
            stop = start + work.sizes[start]
            for i in range(start, stop):
                work.firsts[i] = start
                sizes[i] = stop - start
            start = stop
    else:
        sizes = work.sizes
    total = 0.0
    for i in range(ranked):
        sums[i] = total
        total += gain_of_code[work.codes[i]]
    sums[ranked] = total
    filled = min(ranked, depth)
    for i in range(filled):
        first = work.firsts[i]
        work.means[i] = sums[first + sizes[i]] - sums[first]
    for i in range(filled):  # a separate loop, so that the divisions become vectors
        work.means[i] /= sizes[i]
    for i in range(filled):
        out[i] = work.means[i]
    return filled


@block
def collect(
    start: int, stop: int, condensed: bool, unjudged: int, gains: Array, codes: Array, group: Array
) -> int:
    """Copy the gains of one tied group, in input order; returns how many documents count."""
    size = 0
    for i in range(start, stop):
        if not (condensed and codes[i] == unjudged):
            group[size] = gains[codes[i]]
            size += 1
    return size


@apart
def gather(
    ranked: int,
    distinct: bool,
    ties: int,
    condensed: bool,
    unjudged: int,
    gain_of_code: Array,
    exact: bool,
    work: Work,
    lists: Array,
    lane: int,
) -> int:
    """Write the gains by rank of one list of a lane, ties resolved; returns how many ranks are filled."""
    codes, sizes, group = work.codes, work.sizes, work.group
    depth, out = lists.shape[0], lists[:, lane]
    if distinct and not condensed:
        filled = min(ranked, depth)
        for i in range(filled):
            out[i] = gain_of_code[codes[i]]
        return filled
    if exact and ties == tables.AVERAGE and depth <= LANES and not condensed:
        return average_few(ranked, depth, gain_of_code, work, out)
    at = start = 0
    while start < ranked and at < depth:
        if sizes[start] == 1 and not condensed:
            out[at] = gain_of_code[codes[start]]
            at += 1
            start += 1
            continue
        size = collect(start, start + sizes[start], condensed, unjudged, gain_of_code, codes, group)
        start += sizes[start]
        if size == 0:
            continue
        filled = min(size, depth - at)
        if ties == tables.AVERAGE:
            mean = average(group, size, exact)
            for i in range(filled):
                out[at + i] = mean
        elif ties == tables.INPUT:
            for i in range(filled):
                out[at + i] = group[i]
        else:
            sort_falling(group, size)
            for i in range(filled):
                out[at + i] = group[i] if ties == tables.BEST else group[size - 1 - i]
        at += filled
    return at


@apart
def gather_sums(
    ranked: int, ties: int, condensed: bool, unjudged: int, gains: Array, work: Work, lists: Array, lane: int
) -> int:
    """As `gather`, but of the sums of gains so far. Gains are whole: the sum after a tied group is exact."""
    codes, sizes, group = work.codes, work.sizes, work.group
    depth, out = lists.shape[0], lists[:, lane]
    at = start = 0
    before = 0.0
    while start < ranked and at < depth:
        if sizes[start] == 1 and not condensed:
            before += gains[codes[start]]
            out[at] = before
            at += 1
            start += 1
            continue
        size = collect(start, start + sizes[start], condensed, unjudged, gains, codes, group)
        start += sizes[start]
        filled = min(size, depth - at)
        if ties == tables.AVERAGE and size > 1:
            total = 0.0
            for i in range(size):
                total += group[i]
            for i in range(filled):
                out[at + i] = before + (i + 1) * total / size
            before += total
        else:
            if ties in (tables.WORST, tables.BEST):
                sort_falling(group, size)
            for i in range(filled):
                before += group[size - 1 - i] if ties == tables.WORST else group[i]
                out[at + i] = before
        at += filled
    return at


@inlined
def is_linear(v: int, lists: Array) -> bool:
    """Whether a list has gains or counts of all documents. Such lists are made side by side."""
    return lists[v, tables.FOLD] in (tables.GAIN, tables.COUNT) and lists[v, tables.CONDENSED] == 0


@inlined
def averages_exactly(v: int, lists: Array, exact: Array) -> bool:
    """Whether a list that is made side by side is also right for tied documents."""
    return (
        is_linear(v, lists)
        and lists[v, tables.FOLD] == tables.GAIN
        and lists[v, tables.TIES] == tables.AVERAGE
        and exact[lists[v, tables.TABLE]]
    )


@inlined
def gather_lists(
    ranked: int,
    distinct: bool,
    unjudged: int,
    made: int,
    gains: Array,
    plan: Plan,
    work: Work,
    batch: Batch,
    lane: int,
) -> None:
    """Fill the lists of gains and counts of one lane, except those `made` for all queries side by side."""
    lists, exact, out, lengths = plan.lists, plan.exact, batch.lists, batch.lengths
    for v in range(lists.shape[0]):
        table, ties, condensed = (
            lists[v, tables.TABLE],
            lists[v, tables.TIES],
            lists[v, tables.CONDENSED] == 1,
        )
        if (made == tables.ALL_MADE and is_linear(v, lists)) or (
            made == tables.AVERAGED_MADE and averages_exactly(v, lists, exact)
        ):
            continue
        if lists[v, tables.FOLD] == tables.GAIN:
            lengths[v, lane] = gather(
                ranked, distinct, ties, condensed, unjudged, gains[table], exact[table], work, out[v], lane
            )
        elif lists[v, tables.FOLD] == tables.COUNT:
            lengths[v, lane] = gather_sums(
                ranked, ties, condensed, unjudged, gains[table], work, out[v], lane
            )
