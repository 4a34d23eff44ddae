"""Shares of pairs of documents that are in the right order: the area under the ROC curve, or a part."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow import tables
from fastndcg.kernels.flow.tables import Array

from ..compile.marks import block, stoppable
from .sorting import sort_falling

_OF_TIED = (0.5, 0.0, 0.0, 1.0)  # share of the pairs of tied documents that are right, by AVERAGE to BEST


@block
def area(groups: Array, n: int, limit: float, right: float, steps: bool) -> float:
    """Sum over the relevant documents of how many of the first `limit` others are below them.

    `groups` has the relevant documents and the others of `n` tied groups. Of tied pairs the share `right`
    counts. In a group that `limit` divides, that is the mean over the orders if `steps`; otherwise the curve
    is a straight line.
    """
    total = above = 0.0
    for g in range(n):
        found, others, room = groups[0, g], groups[1, g], limit - above
        if room <= 0.0:
            break
        if right == 0.5 and room < others:
            if steps:  # each number of the others, from 0 to all, is equally likely to be above a document
                total += found * (room * (room + 1.0) / 2.0) / (others + 1.0)
            else:
                total += found * room * room / (2.0 * others)
        else:
            total += found * max(room - (1.0 - right) * others, 0.0)
        above += others
    return total


@block
def area_share(groups: Array, n: int, max_fp: float, relevant: float, right: float) -> float:
    """The part of the largest possible area; NaN without a pair.

    `max_fp` is 0 for the whole area, a share of the others below 1 (then with McClish's correction), or a
    number of them.
    """
    if max_fp >= 1.0:
        return area(groups, n, max_fp, right, True) / (relevant * max_fp) if relevant > 0.0 else np.nan
    found = others = 0.0
    for g in range(n):
        found += groups[0, g]
        others += groups[1, g]
    if found == 0.0 or others == 0.0:
        return np.nan
    if max_fp == 0.0:
        return area(groups, n, others, right, True) / (found * others)
    share = area(groups, n, max_fp * others, right, False) / (found * max_fp * others)
    return 0.5 * (1.0 + (share - 0.5 * max_fp) / (1.0 - 0.5 * max_fp))


@stoppable
@block
def expected_share(
    groups: Array, n: int, drawn: int, max_fp: float, relevant: float, empty: float, chances: Array
) -> float:
    """Expected `area_share` where `drawn` documents of the last group are on the first ranks.

    The number of relevant ones among them is hypergeometric. Its probabilities are found from that of the
    likeliest number, by ratios. Numbers without a pair count `empty`, and are left out where that is NaN.
    """
    found, others = groups[0, n - 1], groups[1, n - 1]
    least, most = int(max(0.0, drawn - others)), int(min(found, drawn))
    likeliest = int((drawn + 1.0) * (found + 1.0) / (found + others + 2.0))
    likeliest = min(max(likeliest, least), most)
    chances[likeliest] = 1.0
    for h in range(likeliest, most):
        chances[h + 1] = chances[h] * ((found - h) * (drawn - h) / ((h + 1.0) * (others - drawn + h + 1.0)))
    for h in range(likeliest, least, -1):
        chances[h - 1] = chances[h] * (h * (others - drawn + h) / ((found - h + 1.0) * (drawn - h + 1.0)))
    total = weight = 0.0
    defined = False
    for h in range(least, most + 1):
        groups[0, n - 1], groups[1, n - 1] = h, drawn - h
        value = area_share(groups, n, max_fp, relevant, 0.5)
        if not np.isnan(value):
            defined = True
        else:
            value = empty
        if not np.isnan(value):
            total += chances[h] * value
            weight += chances[h]
    return total / weight if defined else np.nan


@stoppable
@block
def share_of_pairs(
    ties: int, condensed: bool, unjudged: int, relevant: float, ranked: int, cutoff: float, max_fp: float,
    empty: float, gains: Array, codes: Array, sizes: Array, chances: Array,
) -> float:  # fmt: skip
    """The value by PAIRS; NaN if there is no pair."""
    start = at = n = 0
    cut = False
    while start < ranked and at < cutoff:
        stop = start + 1 if ties == tables.INPUT else start + sizes[start]
        size = found = 0
        for i in range(start, stop):
            counts = not (condensed and codes[i] == unjudged)
            size += counts
            found += counts and gains[codes[i]] > 0.0
        start = stop
        if size > 0:
            if at + size > cutoff:
                cut = True
                filled = int(cutoff) - at
                if ties == tables.WORST:
                    found, size = max(0, filled - (size - found)), filled
                elif ties == tables.BEST:
                    found, size = min(found, filled), filled
            chances[0, n], chances[1, n] = found, size - found
            n += 1
            at += size
    if n == 0:
        return np.nan
    if cut and ties == tables.AVERAGE:
        drawn = int(cutoff) - at + int(chances[0, n - 1] + chances[1, n - 1])
        return expected_share(chances[:2], n, drawn, max_fp, relevant, empty, chances[2])
    return area_share(chances[:2], n, max_fp, relevant, _OF_TIED[ties])


@block
def share_of_distinct(ranked: int, gains: Array, codes: Array) -> float:
    """As `share_of_pairs` over the whole area without tied documents; no branch depends on the grades."""
    found = ranks = 0
    for i in range(ranked):
        hit = int(gains[codes[i]] > 0.0)
        found += hit
        ranks += i * hit
    pairs = found * (ranked - found)
    return (pairs - (ranks - found * (found - 1) // 2)) / pairs if pairs > 0 else np.nan


@stoppable
@block
def graded_share(
    ties: int, condensed: bool, unjudged: int, ranked: int, gains: Array, codes: Array, sizes: Array,
    group: Array, chances: Array,
) -> float:  # fmt: skip
    """The value by GRADED_PAIRS; NaN if there is no pair.

    Documents are added rank by rank to counts by gain, in a tree (Fenwick, 1994) that says how many above a
    document have a greater gain.
    """
    levels, counts = chances[0], chances[1]
    n = 0
    for i in range(ranked):
        if not (condensed and codes[i] == unjudged):
            levels[n] = gains[codes[i]]
            n += 1
    sort_falling(levels, n)
    pairs, m = distinct_pairs(levels, n)
    counts[: m + 1] = 0.0
    right = 0.0
    start = 0
    while start < ranked:
        stop = start + 1 if ties == tables.INPUT else start + sizes[start]
        size = 0
        for i in range(start, stop):
            if not (condensed and codes[i] == unjudged):
                group[size] = gains[codes[i]]
                place = place_of(group[size], levels, m) - 1
                while place > 0:
                    right += counts[place]
                    place -= place & -place
                size += 1
        for i in range(size):
            place = place_of(group[i], levels, m)
            while place <= m:
                counts[place] += 1.0
                place += place & -place
        if size > 1:
            sort_falling(group, size)
            tied, _ = distinct_pairs(group, size)
            right += _OF_TIED[ties] * tied
        start = stop
    return right / pairs if pairs > 0.0 else np.nan


@block
def distinct_pairs(values: Array, n: int) -> tuple[float, int]:
    """Pairs of different ones among `n` sorted values; keeps the distinct values, and returns how many."""
    kept = run = 0
    pairs = 1.0 * n * n
    for i in range(n):
        run += 1
        if i == n - 1 or values[i + 1] != values[i]:
            values[kept] = values[i]
            kept += 1
            pairs -= 1.0 * run * run
            run = 0
    return pairs / 2.0, kept


@block
def place_of(value: float, falling: Array, n: int) -> int:
    """The place of a value among `n` distinct ones, from 1."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if falling[middle] > value:
            low = middle + 1
        else:
            high = middle
    return low + 1
