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


class ListTask(NamedTuple):
    """A list to fill: with which terms, from which ranking, and where to."""

    term: int
    ties: int
    condensed: bool  # unjudged documents are left out
    relevant: float  # totals that the terms need
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
def next_group(task: ListTask, start: int) -> tuple[int, int]:
    """Copy the gains of the tied group at `start`; returns how many documents count, and the next start."""
    stop = start + task.sizes[start]
    if stop == start + 1 and not task.condensed:
        task.group[0] = task.gains[task.codes[start]]
        return 1, stop
    size = 0
    for i in range(start, stop):
        if not (task.condensed and task.codes[i] == task.unjudged):
            task.group[size] = task.gains[task.codes[i]]
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
def gather(task: ListTask, exact: bool) -> int:
    """Write the gains by rank, ties resolved; returns how many ranks are filled."""
    group, depth, out = task.group, task.out.shape[0], task.out
    if task.distinct and not task.condensed:
        filled = min(task.ranked, depth)
        for i in range(filled):
            out[i] = task.gains[task.codes[i]]
        return filled
    at = start = 0
    while start < task.ranked and at < depth:
        size, start = next_group(task, start)
        filled = min(size, depth - at)
        if task.ties == schema.AVERAGE and size > 1:
            mean = average(group, size, exact)
            for i in range(filled):
                out[at + i] = mean
        else:
            arrange(task.ties, group, size)
            for i in range(filled):
                out[at + i] = group[i]
        at += filled
    return at


@block
def gather_sums(task: ListTask) -> int:
    """As `gather`, but of the sums of gains so far. Gains are whole: the sum after a tied group is exact."""
    group, depth, out = task.group, task.out.shape[0], task.out
    at = start = 0
    before = 0.0
    while start < task.ranked and at < depth:
        size, start = next_group(task, start)
        filled = min(size, depth - at)
        if task.ties == schema.AVERAGE and size > 1:
            total = 0.0
            for i in range(size):
                total += group[i]
            for i in range(filled):
                out[at + i] = before + (i + 1) * total / size
            before += total
        else:
            arrange(task.ties, group, size)
            for i in range(filled):
                before += group[i]
                out[at + i] = before
        at += filled
    return at


# ---- what is not linear in the gains ----


@block
def terms_of_distinct(task: ListTask, parameter: float) -> int:
    """As `terms_by_rank` by HITS or STOP without tied documents; no branch depends on the grades."""
    added, filled = task.group, min(task.ranked, task.out.shape[0])
    hits, going = 0.0, 1.0
    if task.term == schema.HITS:
        for i in range(filled):
            hit = 1.0 if task.gains[task.codes[i]] > 0.0 else 0.0
            hits += hit
            added[i] = hits * hit
    else:
        for i in range(filled):
            stop = task.gains[task.codes[i]]
            added[i] = going * stop
            going *= 1.0 - stop
    if task.term == schema.HITS or parameter == 0.0:
        for i in range(filled):  # a separate loop, which becomes vectors
            added[i] /= i + 1.0
    for i in range(filled):
        task.out[i] = added[i]
    return filled


@block
def gain_below_best(task: ListTask) -> float:
    """The greatest gain of a list but for its best gain, and at least 0."""
    best = below = 0.0
    for i in range(task.ranked):
        gain = task.gains[task.codes[i]]
        if gain > best:
            best, below = gain, best
        elif below < gain < best:
            below = gain
    return below


@block
def terms_by_rank(task: ListTask, parameter: float) -> int:
    """Fill a list by HITS, FIRST, REACHED or STOP; returns how many ranks were filled."""
    term, group, depth, out = task.term, task.group, task.out.shape[0], task.out
    of_best, by_rank = term == schema.FIRST and parameter != 0.0, parameter == 0.0
    floor = gain_below_best(task) if of_best else 0.0
    at = start = 0
    hits = reached = 0.0
    going = 1.0  # probability that the user reads on, or that no relevant document was found
    while start < task.ranked and at < depth:
        size, start = next_group(task, start)
        filled, found = min(size, depth - at), number_found(group, size, floor)
        if found == 0:
            out[at : at + filled] = 0.0
        elif task.ties != schema.AVERAGE or size == 1 or (found == size and term != schema.STOP):
            arrange(task.ties, group, size)
            for i in range(filled):
                gain, rank = group[i], at + i + 1
                out[at + i] = 0.0
                if term == schema.STOP:
                    out[at + i] = going * gain / (rank if by_rank else 1)
                    going *= 1.0 - gain
                elif gain > floor and term == schema.HITS:
                    hits += 1.0
                    out[at + i] = hits / rank
                elif gain > floor:
                    out[at + i] = 1.0 / rank if term == schema.FIRST else 1.0
                    return rank
        elif term == schema.HITS:
            for i in range(filled):
                out[at + i] = found / size * (hits + 1.0 + i * ((found - 1) / (size - 1))) / (at + i + 1)
            hits += found
        elif term == schema.STOP:
            sort_falling(group, size)
            stop_chances(group, found, size, filled, task.chances)
            for i in range(filled):
                out[at + i] = going * task.chances[3, i] / (at + i + 1 if by_rank else 1)
            for i in range(found):
                going *= 1.0 - group[i]
        else:
            for i in range(filled):
                chance = going * found / (size - i)
                going *= (size - i - found) / (size - i)
                reached = reached + chance if going > 0.0 else 1.0
                out[at + i] = chance / (at + i + 1) if term == schema.FIRST else min(reached, 1.0)
                if going == 0.0:
                    return at + i + 1
        at += filled
    return at


@block
def hits_needed(recall: float, relevant: float) -> float:
    """How many relevant documents a recall takes, rounded as by trec_eval 9; a negative one as by 10."""
    exact = abs(recall) * relevant
    if recall >= 0.0:
        return np.floor(exact + 0.9)
    whole = np.floor(exact)
    return whole + 1.0 if exact - whole >= 0.5 else whole


@block
def single_value(task: ListTask, parameter: float, cutoff: float) -> float:
    """The value by PREFERENCE, INFERRED, INTERPOLATED or MEAN_OF_HITS; NaN if nothing is ranked.

    MEAN_OF_HITS is the mean precision at the relevant documents above the cutoff, whose number is uncertain
    only where a tied group lies across it.
    """
    term, group, chances, relevant = task.term, task.group, task.chances, task.relevant
    depth = int(min(1.0 * task.out.shape[0], cutoff))
    at = start = mixed = 0
    hits = missed = pooled = value = 0.0
    needed = hits_needed(parameter, relevant)
    while start < task.ranked and at < depth:
        size, start = next_group(task, start)
        filled, found = min(size, depth - at), number_found(group, size, 0.0)
        if task.ties != schema.AVERAGE or size == 1 or found in (0, size):
            arrange(task.ties, group, size)
            for i in range(filled):
                gain, rank = group[i], at + i + 1
                missed += gain == 0.0
                pooled += gain == -1.0
                if gain > 0.0:
                    above, hits = hits, hits + 1.0
                    if term == schema.PREFERENCE:
                        value += preference(missed, 0.0, relevant, task.nonrelevant)
                    elif term == schema.INFERRED:
                        value += inferred_precision(rank, above, above + missed, above + missed + pooled)
                    elif term == schema.MEAN_OF_HITS:
                        value += hits / rank
                    elif hits >= needed:
                        value = max(value, hits / rank)
        else:
            others = in_pool = 0
            for i in range(size):
                others += group[i] == 0.0
                in_pool += group[i] == -1.0
            if term == schema.PREFERENCE:
                value += found * preference(missed, others, relevant, task.nonrelevant)
            elif term == schema.INFERRED:
                value += expected_inferred(
                    at, size, found, others, in_pool, hits, hits + missed, hits + missed + pooled, chances
                )
            elif term == schema.MEAN_OF_HITS:
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
                if hits + found >= needed:
                    value = max(value, (hits + found) / (at + size))
            hits += found
            missed += others
            pooled += in_pool
        at += filled
    if at == 0:
        return np.nan
    if term == schema.MEAN_OF_HITS:
        return value / hits if hits > 0.0 else 0.0
    return expected_maximum(chances, mixed, needed, value) if mixed > 0 else value


@block
def fill_by_term(term_parameters: Array | None, v: int, task: ListTask) -> int:
    """Fill a list of terms after COUNT; returns how many ranks. Without such lists none is compiled."""
    if term_parameters is None:
        return 0
    parameter, cutoff = term_parameters[v, schema.PARAMETER], term_parameters[v, schema.CUT_AT]
    plain = task.distinct and not task.condensed
    if task.term in (schema.HITS, schema.STOP) and plain:
        return terms_of_distinct(task, parameter)
    if task.term in (schema.HITS, schema.FIRST, schema.REACHED, schema.STOP):
        return terms_by_rank(task, parameter)
    if task.term == schema.GRADED_PAIRS:
        value = graded_share(
            task.ties, task.condensed, task.unjudged, task.ranked, task.gains, task.codes, task.sizes,
            task.chances,
        )  # fmt: skip
    elif task.term == schema.PAIRS and plain and parameter == 0.0 and cutoff >= task.ranked:
        value = share_of_distinct(task.ranked, task.gains, task.codes)
    elif task.term == schema.PAIRS:
        empty = term_parameters[v, schema.EMPTY]
        value = share_of_pairs(
            task.ties, task.condensed, task.unjudged, task.relevant, task.ranked, cutoff, parameter, empty,
            task.gains, task.codes, task.sizes, task.chances,
        )  # fmt: skip
    else:
        value = single_value(task, parameter, cutoff)
    if np.isnan(value):
        return 0
    task.out[0] = value
    return 1


# ---- all lists of a plan ----


@block
def is_linear(v: int, lists: Array) -> bool:
    """Whether a list has gains or counts of all documents. Such lists are made side by side."""
    return lists[v, schema.TERM] in (schema.GAIN, schema.COUNT) and lists[v, schema.CONDENSED] == 0


@block
def averages_exactly(v: int, lists: Array, exact: Array) -> bool:
    """Whether a list that is made side by side is also right for tied documents."""
    return (
        is_linear(v, lists)
        and lists[v, schema.TERM] == schema.GAIN
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
        filled = ListTask(
            row[schema.TERM],
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
        task = reference(filled)
        if task.term == schema.GAIN:
            lengths[v, lane] = gather(task, plan.exact[table])
        elif task.term == schema.COUNT:
            lengths[v, lane] = gather_sums(task)
        else:
            lengths[v, lane] = fill_by_term(plan.term_parameters, v, task)
