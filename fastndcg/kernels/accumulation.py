"""Lists of one query: gains by rank, and for measures that are not linear in them what each rank adds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastndcg.kernels import schema
from fastndcg.kernels.schema import Array, Plan

from .auc import graded_share, share_of_distinct, share_of_pairs
from .compile.decorators import block
from .sorting import average, sort_falling
from .tie_expectations import (
    expected_inferred,
    expected_maximum,
    expected_mean_of_hits,
    inferred_precision,
    preference,
    stop_chances,
)
from .workspace import Batch, Scratch, Work, reference


class Fold(NamedTuple):
    """How a list is filled, from which ranking, and where to."""

    fold: int
    ties: int
    condensed: bool  # unjudged documents are left out
    relevant: float  # totals that the fold needs
    nonrelevant: float
    ranked: int
    distinct: bool  # no documents are tied
    unjudged: int  # code of unjudged documents
    gains: Array  # gain of each code
    codes: Array
    sizes: Array
    group: Array
    chances: Array
    out: Array


@block
def next_group(f: Fold, start: int) -> tuple[int, int]:
    """Copy the gains of the tied group at `start`; returns how many documents count, and the next start."""
    stop = start + f.sizes[start]
    if stop == start + 1 and not f.condensed:
        f.group[0] = f.gains[f.codes[start]]
        return 1, stop
    size = 0
    for i in range(start, stop):
        if not (f.condensed and f.codes[i] == f.unjudged):
            f.group[size] = f.gains[f.codes[i]]
            size += 1
    return size, stop


@block
def arrange(ties: int, group: Array, size: int) -> None:
    """Put the gains of a tied group into the order of WORST or BEST; else they stay in that of the input."""
    if size > 1 and ties in (schema.WORST, schema.BEST):
        sort_falling(group, size)
        for i in range(size // 2 if ties == schema.WORST else 0):
            group[i], group[size - 1 - i] = group[size - 1 - i], group[i]


@block
def number_found(group: Array, size: int, floor: float) -> int:
    found = 0
    for i in range(size):
        found += group[i] > floor
    return found


# ---- gains and counts ----


@block
def gather(f: Fold, exact: bool) -> int:
    """Write the gains by rank, ties resolved; returns how many ranks are filled."""
    group, depth, out = f.group, f.out.shape[0], f.out
    if f.distinct and not f.condensed:
        filled = min(f.ranked, depth)
        for i in range(filled):
            out[i] = f.gains[f.codes[i]]
        return filled
    at = start = 0
    while start < f.ranked and at < depth:
        size, start = next_group(f, start)
        filled = min(size, depth - at)
        if f.ties == schema.AVERAGE and size > 1:
            mean = average(group, size, exact)
            for i in range(filled):
                out[at + i] = mean
        else:
            arrange(f.ties, group, size)
            for i in range(filled):
                out[at + i] = group[i]
        at += filled
    return at


@block
def gather_sums(f: Fold) -> int:
    """As `gather`, but of the sums of gains so far. Gains are whole: the sum after a tied group is exact."""
    group, depth, out = f.group, f.out.shape[0], f.out
    at = start = 0
    before = 0.0
    while start < f.ranked and at < depth:
        size, start = next_group(f, start)
        filled = min(size, depth - at)
        if f.ties == schema.AVERAGE and size > 1:
            total = 0.0
            for i in range(size):
                total += group[i]
            for i in range(filled):
                out[at + i] = before + (i + 1) * total / size
            before += total
        else:
            arrange(f.ties, group, size)
            for i in range(filled):
                before += group[i]
                out[at + i] = before
        at += filled
    return at


# ---- what is not linear in the gains ----


@block
def fold_distinct(f: Fold, parameter: float) -> int:
    """As `fold_by_rank` by HITS or STOP without tied documents; no branch depends on the grades."""
    added, filled = f.group, min(f.ranked, f.out.shape[0])
    hits, going = 0.0, 1.0
    if f.fold == schema.HITS:
        for i in range(filled):
            hit = 1.0 if f.gains[f.codes[i]] > 0.0 else 0.0
            hits += hit
            added[i] = hits * hit
    else:
        for i in range(filled):
            stop = f.gains[f.codes[i]]
            added[i] = going * stop
            going *= 1.0 - stop
    if f.fold == schema.HITS or parameter == 0.0:
        for i in range(filled):  # a separate loop, which becomes vectors
            added[i] /= i + 1.0
    for i in range(filled):
        f.out[i] = added[i]
    return filled


@block
def gain_below_best(f: Fold) -> float:
    """The greatest gain of a list but for its best gain, and at least 0."""
    best = below = 0.0
    for i in range(f.ranked):
        gain = f.gains[f.codes[i]]
        if gain > best:
            best, below = gain, best
        elif below < gain < best:
            below = gain
    return below


@block
def fold_by_rank(f: Fold, parameter: float) -> int:
    """Fill a list by HITS, FIRST, REACHED or STOP; returns how many ranks were filled."""
    fold, group, depth, out = f.fold, f.group, f.out.shape[0], f.out
    of_best, by_rank = fold == schema.FIRST and parameter != 0.0, parameter == 0.0
    floor = gain_below_best(f) if of_best else 0.0
    at = start = 0
    hits = reached = 0.0
    going = 1.0  # probability that the user reads on, or that no relevant document was found
    while start < f.ranked and at < depth:
        size, start = next_group(f, start)
        filled, found = min(size, depth - at), number_found(group, size, floor)
        if found == 0:
            out[at : at + filled] = 0.0
        elif f.ties != schema.AVERAGE or size == 1 or (found == size and fold != schema.STOP):
            arrange(f.ties, group, size)
            for i in range(filled):
                gain, rank = group[i], at + i + 1
                out[at + i] = 0.0
                if fold == schema.STOP:
                    out[at + i] = going * gain / (rank if by_rank else 1)
                    going *= 1.0 - gain
                elif gain > floor and fold == schema.HITS:
                    hits += 1.0
                    out[at + i] = hits / rank
                elif gain > floor:
                    out[at + i] = 1.0 / rank if fold == schema.FIRST else 1.0
                    return rank
        elif fold == schema.HITS:
            for i in range(filled):
                out[at + i] = found / size * (hits + 1.0 + i * ((found - 1) / (size - 1))) / (at + i + 1)
            hits += found
        elif fold == schema.STOP:
            sort_falling(group, size)
            stop_chances(group, found, size, filled, f.chances)
            for i in range(filled):
                out[at + i] = going * f.chances[3, i] / (at + i + 1 if by_rank else 1)
            for i in range(found):
                going *= 1.0 - group[i]
        else:
            for i in range(filled):
                chance = going * found / (size - i)
                going *= (size - i - found) / (size - i)
                reached = reached + chance if going > 0.0 else 1.0
                out[at + i] = chance / (at + i + 1) if fold == schema.FIRST else min(reached, 1.0)
                if going == 0.0:
                    return at + i + 1
        at += filled
    return at


@block
def hits_wanted(recall: float, relevant: float) -> float:
    """How many relevant documents a recall takes, rounded as by trec_eval 9; a negative one as by 10."""
    exact = abs(recall) * relevant
    if recall >= 0.0:
        return np.floor(exact + 0.9)
    whole = np.floor(exact)
    return whole + 1.0 if exact - whole >= 0.5 else whole


@block
def fold_whole(f: Fold, parameter: float, cutoff: float) -> float:
    """The value by PREFERENCE, INFERRED, INTERPOLATED or MEAN_OF_HITS; NaN if nothing is ranked.

    MEAN_OF_HITS is the mean precision at the relevant documents above the cutoff, whose number is uncertain
    only where a tied group lies across it.
    """
    fold, group, chances, relevant = f.fold, f.group, f.chances, f.relevant
    depth = int(min(1.0 * f.out.shape[0], cutoff))
    at = start = mixed = 0
    hits = missed = pooled = value = 0.0
    wanted = hits_wanted(parameter, relevant)
    while start < f.ranked and at < depth:
        size, start = next_group(f, start)
        filled, found = min(size, depth - at), number_found(group, size, 0.0)
        if f.ties != schema.AVERAGE or size == 1 or found in (0, size):
            arrange(f.ties, group, size)
            for i in range(filled):
                gain, rank = group[i], at + i + 1
                missed += gain == 0.0
                pooled += gain == -1.0
                if gain > 0.0:
                    above, hits = hits, hits + 1.0
                    if fold == schema.PREFERENCE:
                        value += preference(missed, 0.0, relevant, f.nonrelevant)
                    elif fold == schema.INFERRED:
                        value += inferred_precision(rank, above, above + missed, above + missed + pooled)
                    elif fold == schema.MEAN_OF_HITS:
                        value += hits / rank
                    elif hits >= wanted:
                        value = max(value, hits / rank)
        else:
            others = in_pool = 0
            for i in range(size):
                others += group[i] == 0.0
                in_pool += group[i] == -1.0
            if fold == schema.PREFERENCE:
                value += found * preference(missed, others, relevant, f.nonrelevant)
            elif fold == schema.INFERRED:
                value += expected_inferred(
                    at, size, found, others, in_pool, hits, hits + missed, hits + missed + pooled, chances
                )
            elif fold == schema.MEAN_OF_HITS:
                reward = later = 0.0  # sums over the places i of the group, from 0, of 1 / rank and i / rank
                for i in range(filled):
                    reward += 1.0 / (at + i + 1)
                    later += i / (at + i + 1)
                if filled < size:
                    later /= max(filled - 1, 1)
                    return expected_mean_of_hits(value, hits, size, found, filled, reward, later)
                value += found / size * ((hits + 1.0) * reward + (found - 1) / (size - 1) * later)
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
        return np.nan
    if fold == schema.MEAN_OF_HITS:
        return value / hits if hits > 0.0 else 0.0
    return expected_maximum(chances, mixed, wanted, value) if mixed > 0 else value


@block
def fold_list(folds: Array | None, v: int, f: Fold) -> int:
    """Fill a list by a fold after COUNT; returns how many ranks. Without such lists none is compiled."""
    if folds is None:
        return 0
    parameter, cutoff = folds[v, schema.PARAMETER], folds[v, schema.CUT_AT]
    plain = f.distinct and not f.condensed
    if f.fold in (schema.HITS, schema.STOP) and plain:
        return fold_distinct(f, parameter)
    if f.fold in (schema.HITS, schema.FIRST, schema.REACHED, schema.STOP):
        return fold_by_rank(f, parameter)
    if f.fold == schema.GRADED_PAIRS:
        value = graded_share(f.ties, f.condensed, f.unjudged, f.ranked, f.gains, f.codes, f.sizes, f.chances)
    elif f.fold == schema.PAIRS and plain and parameter == 0.0 and cutoff >= f.ranked:
        value = share_of_distinct(f.ranked, f.gains, f.codes)
    elif f.fold == schema.PAIRS:
        empty = folds[v, schema.EMPTY]
        value = share_of_pairs(
            f.ties, f.condensed, f.unjudged, f.relevant, f.ranked, cutoff, parameter, empty, f.gains,
            f.codes, f.sizes, f.chances,
        )  # fmt: skip
    else:
        value = fold_whole(f, parameter, cutoff)
    if np.isnan(value):
        return 0
    f.out[0] = value
    return 1


# ---- all lists of a plan ----


@block
def is_linear(v: int, lists: Array) -> bool:
    """Whether a list has gains or counts of all documents. Such lists are made side by side."""
    return lists[v, schema.FOLD] in (schema.GAIN, schema.COUNT) and lists[v, schema.CONDENSED] == 0


@block
def averages_exactly(v: int, lists: Array, exact: Array) -> bool:
    """Whether a list that is made side by side is also right for tied documents."""
    return (
        is_linear(v, lists)
        and lists[v, schema.FOLD] == schema.GAIN
        and lists[v, schema.TIES] == schema.AVERAGE
        and exact[lists[v, schema.TABLE]]
    )


@block
def fill_lists(
    ranked: int, distinct: bool, unjudged: int, made: int, gains: Array, plan: Plan, scratch: Scratch,
    work: Work, batch: Batch, lane: int,
) -> None:  # fmt: skip
    """Fill the lists of one lane, except those `made` for all queries side by side."""
    lists, totals, lengths = plan.lists, batch.totals, batch.lengths
    for v in range(lists.shape[0]):
        if (made == schema.ALL_MADE and is_linear(v, lists)) or (
            made == schema.AVERAGED_MADE and averages_exactly(v, lists, plan.exact)
        ):
            continue
        row = lists[v]
        table, of_relevant, of_nonrelevant = row[schema.TABLE], row[schema.RELEVANT], row[schema.NONRELEVANT]
        fold = Fold(
            row[schema.FOLD],
            row[schema.TIES],
            row[schema.CONDENSED] == 1,
            totals[of_relevant, lane] if of_relevant >= 0 else 0.0,
            totals[of_nonrelevant, lane] if of_nonrelevant >= 0 else 0.0,
            ranked,
            distinct,
            unjudged,
            gains[table],
            work.codes,
            work.sizes,
            work.group,
            scratch.chances,
            batch.lists[v][:, lane],
        )
        f = reference(fold)
        if f.fold == schema.GAIN:
            lengths[v, lane] = gather(f, plan.exact[table])
        elif f.fold == schema.COUNT:
            lengths[v, lane] = gather_sums(f)
        else:
            lengths[v, lane] = fold_list(plan.folds, v, f)
