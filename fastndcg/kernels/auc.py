"""Shares of pairs of documents that are in the right order: the area under the ROC curve, or a part."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels import schema
from fastndcg.kernels.schema import Array

from .compile.decorators import IS_COMPILED, block
from .sorting import INSERTION, sort_falling

_FEW = 16  # up to so many gains, counting documents by gain is faster than sorting them
# compiled code compares the pairs of so many documents, several at once, in less time than it sorts them
_SHORT = 160 if IS_COMPILED else 0
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
        found, others, left = groups[0, g], groups[1, g], limit - above
        if left <= 0.0:
            break
        if right == 0.5 and left < others:
            if steps:  # each number of the others, from 0 to all, is equally likely to be above a document
                total += found * (left * (left + 1.0) / 2.0) / (others + 1.0)
            else:
                total += found * left * left / (2.0 * others)
        else:
            total += found * max(left - (1.0 - right) * others, 0.0)
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


@block
def share_of_pairs(
    ties: int, condensed: bool, unjudged: int, relevant: float, ranked: int, cutoff: float, max_fp: float,
    empty: float, gains: Array, codes: Array, sizes: Array, chances: Array,
) -> float:  # fmt: skip
    """The value by PAIRS; NaN if there is no pair."""
    start = at = n = 0
    cut = False
    while start < ranked and at < cutoff:
        stop = start + 1 if ties == schema.INPUT else start + sizes[start]
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
                if ties == schema.WORST:
                    found, size = max(0, filled - (size - found)), filled
                elif ties == schema.BEST:
                    found, size = min(found, filled), filled
            chances[0, n], chances[1, n] = found, size - found
            n += 1
            at += size
    if n == 0:
        return np.nan
    if cut and ties == schema.AVERAGE:
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


@block
def graded_share(
    ties: int, condensed: bool, unjudged: int, ranked: int, gains: Array, codes: Array, sizes: Array,
    chances: Array,
) -> float:  # fmt: skip
    """The value by GRADED_PAIRS; NaN if there is no pair."""
    if gains.shape[0] <= min(_FEW, chances.shape[1]):
        return share_of_few(ties, condensed, unjudged, ranked, gains, codes, sizes, chances)
    return share_of_many(ties, condensed, unjudged, ranked, gains, codes, sizes, chances)


@block
def share_of_few(
    ties: int, condensed: bool, unjudged: int, ranked: int, gains: Array, codes: Array, sizes: Array,
    chances: Array,
) -> float:  # fmt: skip
    """The share of the pairs of different gains that are right.

    Rows of `chances`, by code: documents above that have it; that have a greater gain; and of a tied group.
    """
    m = gains.shape[0]
    seen, greater, group = chances[0], chances[1], chances[2]
    seen[:m], greater[:m], group[:m] = 0.0, 0.0, 0.0
    right = pairs = 0.0
    start = 0
    while start < ranked:
        stop = start + 1 if ties == schema.INPUT else start + sizes[start]
        if stop > start + 1:
            for i in range(start, stop):
                if not (condensed and codes[i] == unjudged):
                    group[codes[i]] += 1.0
            for q in range(m):
                right += greater[q] * group[q]
                for p in range(q):
                    right += _OF_TIED[ties] * group[q] * group[p] * (gains[q] != gains[p])
            group[:m] = 0.0
        elif not (condensed and codes[start] == unjudged):
            right += greater[codes[start]]
        for i in range(start, stop):
            if not (condensed and codes[i] == unjudged):
                gain = gains[codes[i]]
                for q in range(m):  # no branch depends on the grades, so that it becomes vectors
                    greater[q] += gains[q] < gain
                seen[codes[i]] += 1.0
        start = stop
    for q in range(m):
        for p in range(q):
            pairs += seen[q] * seen[p] * (gains[q] != gains[p])
    return right / pairs if pairs > 0.0 else np.nan


@block
def share_of_many(
    ties: int, condensed: bool, unjudged: int, ranked: int, gains: Array, codes: Array, sizes: Array,
    chances: Array,
) -> float:  # fmt: skip
    """The same for any number of gains: sorting them by merging counts the pairs in the right order."""
    values, spare, is_short = chances[0], chances[1], ranked <= _SHORT
    start = n = right = different = tied = 0
    while start < ranked:
        stop = start + 1 if ties == schema.INPUT else start + sizes[start]
        first = n
        for i in range(start, stop):
            if not (condensed and codes[i] == unjudged):
                value = gains[codes[i]]
                if is_short:  # compare each document with those above it
                    for j in range(first):
                        right += values[j] > value
                        different += values[j] != value
                    for j in range(first, n):
                        tied += values[j] != value
                values[n] = value
                n += 1
        if n > first + 1 and not is_short:  # in falling order, so that all of its pairs are counted as right
            sort_falling(values[first:n], n - first)
            tied += distinct_pairs(values[first:n], n - first)
        start = stop
    if is_short:
        pairs = different + tied
    else:
        right, pairs = sort_and_count(values, spare, n) - tied, distinct_pairs(values, n)
    return (right + _OF_TIED[ties] * tied) / pairs if pairs > 0 else np.nan


@block
def sort_and_count(values: Array, spare: Array, n: int) -> int:
    """Sort the first `n` values, greatest first; returns how many pairs of different ones were so before."""
    count = 0
    for first in range(0, n, INSERTION):
        for i in range(first + 1, min(first + INSERTION, n)):
            value, j = values[i], i
            while j > first and values[j - 1] <= value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
            count += j - first
    width = INSERTION
    while width < n:
        for first in range(0, n, 2 * width):
            middle, stop = min(first + width, n), min(first + 2 * width, n)
            left, right, to = first, middle, first
            while left < middle and right < stop:  # without a branch to mispredict
                from_left = values[left] > values[right]
                spare[to] = values[left if from_left else right]
                count += (left - first) * (not from_left)
                left += from_left
                right += not from_left
                to += 1
            count += (stop - right) * (middle - first)
            for i in range(left, middle):
                spare[to] = values[i]
                to += 1
            for i in range(right, stop):
                spare[to] = values[i]
                to += 1
        for i in range(n):
            values[i] = spare[i]
        width *= 2
    return count


@block
def distinct_pairs(values: Array, n: int) -> int:
    """Pairs of different ones among `n` sorted values."""
    run, pairs = 0, n * n
    for i in range(n):
        run += 1
        if i == n - 1 or values[i + 1] != values[i]:
            pairs -= run * run
            run = 0
    return pairs // 2
