"""Folds: lists for measures that are not linear in the gains, such as precision at each relevant document."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow import tables
from fastndcg.kernels.flow.tables import Array, Plan

from ..compile.marks import apart, block, stoppable
from .expectations import (
    expected_inferred,
    expected_maximum,
    expected_mean_of_hits,
    inferred_precision,
    preference,
    stop_chances,
)
from .lists import collect
from .memory import Batch, Work
from .pairs import fold_distinct_pairs, fold_graded_pairs, fold_pairs
from .sorting import sort_falling


@block
def next_group(
    start: int, condensed: bool, unjudged: int, gains: Array, codes: Array, sizes: Array, group: Array
) -> tuple[int, int]:
    """Copy the gains of the tied group at `start`; returns how many documents count, and the next start."""
    stop = start + sizes[start]
    if stop == start + 1 and not condensed:
        group[0] = gains[codes[start]]
        return 1, stop
    return collect(start, stop, condensed, unjudged, gains, codes, group), stop


@block
def number_found(group: Array, size: int, floor: float) -> int:
    found = 0
    for i in range(size):
        found += group[i] > floor
    return found


@block
def gain_below_best(gains: Array, codes: Array, ranked: int) -> float:
    """The greatest gain of a list but for its best gain, and at least 0."""
    best = below = 0.0
    for i in range(ranked):
        gain = gains[codes[i]]
        if gain > best:
            best, below = gain, best
        elif below < gain < best:
            below = gain
    return below


@block
def hits_wanted(recall: float, relevant: float) -> float:
    """How many relevant documents a recall takes, rounded as by trec_eval 9; a negative one as by 10."""
    exact = abs(recall) * relevant
    if recall >= 0.0:
        return np.floor(exact + 0.9)
    whole = np.floor(exact)
    return whole + 1.0 if exact - whole >= 0.5 else whole


@stoppable
@block
def fold_by_rank(
    fold: int,
    parameter: float,
    ties: int,
    condensed: bool,
    unjudged: int,
    ranked: int,
    gains: Array,
    codes: Array,
    sizes: Array,
    group: Array,
    chances: Array,
    lists: Array,
    lane: int,
) -> int:
    """Fill a list by HITS, FIRST, REACHED or STOP; returns how many ranks were filled."""
    depth, out = lists.shape[0], lists[:, lane]
    of_best, by_rank = fold == tables.FIRST and parameter != 0.0, parameter == 0.0
    floor = gain_below_best(gains, codes, ranked) if of_best else 0.0
    at = start = 0
    hits = reached = 0.0
    going = 1.0  # probability that the user reads on, or that no relevant document was found
    while start < ranked and at < depth:
        size, start = next_group(start, condensed, unjudged, gains, codes, sizes, group)
        filled, found = min(size, depth - at), number_found(group, size, floor)
        if found == 0:
            out[at : at + filled] = 0.0
        elif ties != tables.AVERAGE or size == 1 or (found == size and fold != tables.STOP):
            if size > 1 and ties in (tables.WORST, tables.BEST):
                sort_falling(group, size)
            for i in range(filled):
                gain = group[size - 1 - i] if ties == tables.WORST else group[i]
                rank = at + i + 1
                out[at + i] = 0.0
                if fold == tables.STOP:
                    out[at + i] = going * gain / (rank if by_rank else 1)
                    going *= 1.0 - gain
                elif gain > floor and fold == tables.HITS:
                    hits += 1.0
                    out[at + i] = hits / rank
                elif gain > floor:
                    out[at + i] = 1.0 / rank if fold == tables.FIRST else 1.0
                    return rank
        elif fold == tables.HITS:
            for i in range(filled):
                out[at + i] = found / size * (hits + 1.0 + i * ((found - 1) / (size - 1))) / (at + i + 1)
            hits += found
        elif fold == tables.STOP:
            sort_falling(group, size)
            stop_chances(group, found, size, filled, chances)
            for i in range(filled):
                out[at + i] = going * chances[3, i] / (at + i + 1 if by_rank else 1)
            for i in range(found):
                going *= 1.0 - group[i]
        else:
            for i in range(filled):
                chance = going * found / (size - i)
                going *= (size - i - found) / (size - i)
                reached = reached + chance if going > 0.0 else 1.0
                out[at + i] = chance / (at + i + 1) if fold == tables.FIRST else min(reached, 1.0)
                if going == 0.0:
                    return at + i + 1
        at += filled
    return at


@stoppable
@block
def fold_whole(
    fold: int,
    parameter: float,
    ties: int,
    condensed: bool,
    unjudged: int,
    relevant: float,
    nonrelevant: float,
    ranked: int,
    gains: Array,
    codes: Array,
    sizes: Array,
    group: Array,
    chances: Array,
    lists: Array,
    lane: int,
) -> int:
    """Write the value by PREFERENCE, INFERRED or INTERPOLATED to the first rank; returns 1, or 0 if empty."""
    depth = lists.shape[0]
    at = start = mixed = 0
    hits = missed = pooled = value = 0.0
    wanted = hits_wanted(parameter, relevant)
    while start < ranked and at < depth:
        size, start = next_group(start, condensed, unjudged, gains, codes, sizes, group)
        filled, found = min(size, depth - at), number_found(group, size, 0.0)
        if ties != tables.AVERAGE or size == 1 or found in (0, size):
            if size > 1 and ties in (tables.WORST, tables.BEST):
                sort_falling(group, size)
            for i in range(filled):
                gain = group[size - 1 - i] if ties == tables.WORST else group[i]
                missed += gain == 0.0
                pooled += gain == -1.0
                if gain > 0.0:
                    hits, rank = hits + 1.0, at + i + 1
                    if fold == tables.PREFERENCE:
                        value += preference(missed, 0.0, relevant, nonrelevant)
                    elif fold == tables.INFERRED:
                        value += inferred_precision(
                            rank, hits - 1.0, hits - 1.0 + missed, hits - 1.0 + missed + pooled
                        )
                    elif hits >= wanted:
                        value = max(value, hits / rank)
        else:
            others = in_pool = 0
            for i in range(size):
                others += group[i] == 0.0
                in_pool += group[i] == -1.0
            if fold == tables.PREFERENCE:
                value += found * preference(missed, others, relevant, nonrelevant)
            elif fold == tables.INFERRED:
                value += expected_inferred(
                    at, size, found, others, in_pool, hits, hits + missed, hits + missed + pooled, chances
                )
            else:
                groups = chances[:, mixed]
                groups[0], groups[1], groups[2], groups[3] = at, hits, size, found
                mixed += 1
                if hits + found >= wanted:
                    value = max(value, (hits + found) / (at + size))
            hits += found
            missed += others
            pooled += in_pool
        at += filled
    if at == 0:
        return 0
    lists[0, lane] = expected_maximum(chances, mixed, wanted, value) if mixed > 0 else value
    return 1


@stoppable
@block
def fold_hits_found(
    cutoff: float,
    ties: int,
    condensed: bool,
    unjudged: int,
    ranked: int,
    gains: Array,
    codes: Array,
    sizes: Array,
    group: Array,
    lists: Array,
    lane: int,
) -> int:
    """Write the mean precision at the relevant documents above the cutoff to the first rank; returns 1, or 0
    if nothing is ranked.

    Only a tied group across the cutoff makes their number uncertain.
    """
    depth = int(min(1.0 * lists.shape[0], cutoff))
    at = start = 0
    hits = total = 0.0
    while start < ranked and at < depth:
        size, start = next_group(start, condensed, unjudged, gains, codes, sizes, group)
        filled, found = min(size, depth - at), number_found(group, size, 0.0)
        if ties != tables.AVERAGE or found in (0, size):
            if size > 1 and ties in (tables.WORST, tables.BEST):
                sort_falling(group, size)
            for i in range(filled):
                if (group[size - 1 - i] if ties == tables.WORST else group[i]) > 0.0:
                    hits += 1.0
                    total += hits / (at + i + 1)
        else:
            reward = later = 0.0  # sums over the places i of the group, from 0, of 1 / rank and of i / rank
            for i in range(filled):
                reward += 1.0 / (at + i + 1)
                later += i / (at + i + 1)
            if filled < size:
                lists[0, lane] = expected_mean_of_hits(
                    total, hits, size, found, filled, reward, later / max(filled - 1, 1)
                )
                return 1
            total += found / size * ((hits + 1.0) * reward + (found - 1) / (size - 1) * later)
            hits += found
        at += filled
    if at == 0:
        return 0
    lists[0, lane] = total / hits if hits > 0.0 else 0.0
    return 1


@apart
def fold_distinct(
    fold: int,
    parameter: float,
    ranked: int,
    gains: Array,
    codes: Array,
    added: Array,
    lists: Array,
    lane: int,
) -> int:
    """As `fold_by_rank` by HITS or STOP without tied documents; no branch depends on the grades."""
    filled = min(ranked, lists.shape[0])
    hits, going = 0.0, 1.0
    if fold == tables.HITS:
        for i in range(filled):
            hit = 1.0 if gains[codes[i]] > 0.0 else 0.0
            hits += hit
            added[i] = hits * hit
    else:
        for i in range(filled):
            stop = gains[codes[i]]
            added[i] = going * stop
            going *= 1.0 - stop
    if fold == tables.HITS or parameter == 0.0:
        for i in range(filled):  # a separate loop, which becomes vectors
            added[i] /= i + 1.0
    for i in range(filled):
        lists[i, lane] = added[i]
    return filled


@block
def fold_lists(
    folds: Array | None,
    ranked: int,
    distinct: bool,
    unjudged: int,
    gains: Array,
    plan: Plan,
    chances: Array,
    work: Work,
    batch: Batch,
    lane: int,
) -> None:
    """Fill the lists of all folds after COUNT. `folds` is None without such lists, so no fold is compiled."""
    if folds is not None:
        totals, codes, sizes, group = batch.totals, work.codes, work.sizes, work.group
        for v in range(plan.lists.shape[0]):
            fold, table, ties = (
                plan.lists[v, tables.FOLD],
                plan.lists[v, tables.TABLE],
                plan.lists[v, tables.TIES],
            )
            condensed = plan.lists[v, tables.CONDENSED] == 1
            of_relevant, of_nonrelevant = plan.lists[v, tables.RELEVANT], plan.lists[v, tables.NONRELEVANT]
            parameter, cutoff = folds[v, tables.PARAMETER], folds[v, tables.CUT_AT]
            worth, out, filled = gains[table], batch.lists[v], batch.lengths[v, lane]
            if fold in (tables.HITS, tables.STOP) and distinct and not condensed:
                filled = fold_distinct(fold, parameter, ranked, worth, codes, group, out, lane)
            elif fold in (tables.PREFERENCE, tables.INFERRED, tables.INTERPOLATED):
                relevant = totals[of_relevant, lane] if of_relevant >= 0 else 0.0
                nonrelevant = totals[of_nonrelevant, lane] if of_nonrelevant >= 0 else 0.0
                filled = fold_whole(
                    fold, parameter, ties, condensed, unjudged, relevant, nonrelevant, ranked, worth, codes,
                    sizes,
                    group, chances, out, lane,
                )  # fmt: skip
            elif fold == tables.PAIRS:
                if distinct and not condensed and parameter == 0.0 and cutoff >= ranked:
                    filled = fold_distinct_pairs(ranked, worth, codes, out, lane)
                else:
                    filled = fold_pairs(
                        ties, condensed, unjudged, totals[of_relevant, lane], ranked, cutoff, parameter,
                        folds[v, tables.EMPTY], worth, codes, sizes, chances, out, lane,
                    )  # fmt: skip
            elif fold == tables.GRADED_PAIRS:
                filled = fold_graded_pairs(
                    ties, condensed, unjudged, ranked, worth, codes, sizes, group, chances, out, lane
                )
            elif fold == tables.MEAN_OF_HITS:
                filled = fold_hits_found(
                    cutoff, ties, condensed, unjudged, ranked, worth, codes, sizes, group, out, lane
                )
            elif fold > tables.COUNT:
                filled = fold_by_rank(
                    fold, parameter, ties, condensed, unjudged, ranked, worth, codes, sizes, group, chances,
                    out, lane,
                )  # fmt: skip
            batch.lengths[v, lane] = filled
