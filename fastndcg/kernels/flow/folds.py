"""Folds: lists for measures that are not linear in the gains, such as precision at each relevant document."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow.tables import (
    AVERAGE,
    BEST,
    CONDENSED,
    COUNT,
    FIRST,
    FOLD,
    HITS,
    INFERRED,
    INTERPOLATED,
    NONRELEVANT,
    PREFERENCE,
    RELEVANT,
    STOP,
    TABLE,
    TIES,
    WORST,
    Array,
    Plan,
)

from ..compile.marks import allocating, apart, block, stoppable
from .lists import collect
from .memory import Batch, Work
from .sorting import sort_falling

_MOST_STEPS = 1_000_000_000  # steps through orders of tied documents for one expected maximum
_POOL_SHARE = 0.00001  # epsilon of infAP, as in trec_eval


@block
def draw_another(chances: Array, drawn: int, special: int, size: int) -> None:
    """Update `chances` for one more draw: the distribution of special documents among those drawn."""
    left = size - drawn
    for h in range(min(drawn + 1, special), -1, -1):
        chance = chances[h] * (left - (special - h)) / left
        if h > 0:
            chance += chances[h - 1] * (special - h + 1) / left
        chances[h] = chance


@block
def stop_chances(stops: Array, able: int, size: int, depth: int, chances: Array) -> None:
    """Write to chances[3] the probability to stop at each of the first `depth` places of a tied group.

    All orders of the group are equally likely. The first `able` of its `size` documents have a stopping
    probability p > 0. Let q = 1 - p. For h of these documents, the mean product of q, and the mean of p of
    one more document times that product, are elementary symmetric polynomials. They are built document by
    document without subtractions, so nothing cancels. The number of these documents before a place is
    hypergeometric.
    """
    most = min(able, depth)
    passed, stopped, drawn, out = chances[0], chances[1], chances[2], chances[3]
    passed[: most + 1], stopped[: most + 1], drawn[: most + 1] = 0.0, 0.0, 0.0
    passed[0] = drawn[0] = 1.0
    for n in range(1, able + 1):
        stop = stops[n - 1]
        for h in range(min(n, most), -1, -1):
            if h < n:
                value = stopped[h] * (n - 1 - h) + stop * passed[h]
                if h > 0:
                    value += (1.0 - stop) * stopped[h - 1] * h
                stopped[h] = value / n
            value = passed[h] * (n - h)
            if h > 0:
                value += (1.0 - stop) * passed[h - 1] * h
            passed[h] = value / n
    for place in range(depth):
        chance = 0.0
        for h in range(min(place, able - 1) + 1):
            chance += drawn[h] * stopped[h]
        out[place] = chance * able / size
        if place < size - 1:
            draw_another(drawn, place, able - 1, size - 1)


@block
def preference(above: float, tied: float, relevant: float, nonrelevant: float) -> float:
    """bpref's value of a relevant document, with `above` nonrelevant documents above it and `tied` ones tied
    with it.

    Each number of the tied ones, from 0 to `tied`, is equally likely to be above it.
    """
    bound = max(min(relevant, nonrelevant), 1.0)
    # how many u from 0 to `tied` have above + u < relevant
    below = max(0.0, min(tied + 1.0, relevant - above))
    terms = below * above + below * (below - 1.0) / 2.0 + (tied + 1.0 - below) * relevant
    return 1.0 - terms / ((tied + 1.0) * bound)


@block
def inferred_precision(rank: int, relevant: float, judged: float, pooled: float) -> float:
    """infAP's value of the relevant document at `rank`.

    Above it are `relevant` relevant documents, `judged` judged ones, and `pooled` ones of the pool.
    """
    share = (relevant + _POOL_SHARE) / (judged + 2.0 * _POOL_SHARE)
    return (1.0 + pooled * share) / rank


@block
def expected_inferred(
    before: int,
    size: int,
    relevant: int,
    nonrelevant: int,
    pooled: int,
    hits: float,
    judged: float,
    in_pool: float,
    chances: Array,
) -> float:
    """Expected sum of `inferred_precision` over the relevant documents of a tied group.

    The number of judged documents of the group above one of them is hypergeometric. Given that number, the
    numbers of relevant and of pooled documents above enter by their means.
    """
    others, unjudged = relevant - 1 + nonrelevant, size - relevant - nonrelevant
    drawn = chances[0]
    drawn[: others + 1] = 0.0
    drawn[0] = 1.0
    total = 0.0
    for place in range(size):
        if unjudged == 0:  # then all documents of the group above are judged
            value = inferred_precision(
                before + place + 1,
                hits + place * (relevant - 1) / max(others, 1),
                judged + place,
                in_pool + place,
            )
            total += value * relevant / size
            continue
        value = 0.0
        for h in range(min(place, others) + 1):
            more_relevant = h * (relevant - 1) / others if others > 0 else 0.0
            more_pooled = (place - h) * pooled / unjudged if unjudged > 0 else 0.0
            value += drawn[h] * inferred_precision(
                before + place + 1, hits + more_relevant, judged + h, in_pool + h + more_pooled
            )
        total += value * relevant / size
        if place < size - 1:
            draw_another(drawn, place, others, size - 1)
    return total


@stoppable
@block
def stays_below(
    bound: float, wanted: float, before: float, hits: float, size: int, relevant: int, paths: Array
) -> float:
    """The probability that precision is below the bound at all ranks of a tied group with `wanted` hits."""
    paths[: relevant + 1] = 0.0
    paths[0] = 1.0
    most = 0  # most hits at this place with a precision below the bound; never falls from place to place
    for place in range(1, size + 1):
        left = size - place + 1
        while most < min(place, relevant):
            found = hits + most + 1
            if found >= wanted and found >= 1.0 and found / (before + place) >= bound:
                break
            most += 1
        # with fewer hits a path cannot reach `relevant` hits at the end
        for h in range(most, max(relevant - left, -1), -1):
            chance = paths[h] * (left - (relevant - h)) / left
            if h > 0:
                chance += paths[h - 1] * (relevant - h + 1) / left
            paths[h] = chance
    return paths[relevant]


@allocating
def expected_maximum(groups: Array, n_groups: int, wanted: float, floor: float) -> float:
    """Expected largest precision: every order reaches `floor`, and some orders of the tied groups reach more.

    Rows of `groups`: documents above the group, relevant ones above, size, relevant ones in the group. The
    largest precision is one of the values that a hit in a group can have. Groups are independent, so the
    distribution of the maximum is a product over groups; `stays_below` computes each factor. Returns infinity
    where that takes more than `_MOST_STEPS`.
    """
    found = longest = 0
    steps = 0.0
    for counting in (True, False):
        if not counting:
            if steps > _MOST_STEPS:
                return np.inf
            values, below, of_group = np.empty(found), np.empty(found), np.empty(found, np.int64)
            paths = np.empty(longest + 1)
            found = 0
        for g in range(n_groups):
            before, hits, size, relevant = groups[0, g], groups[1, g], int(groups[2, g]), int(groups[3, g])
            longest = max(longest, relevant)
            for h in range(1, relevant + 1):
                for place in range(h, size - relevant + h + 1 if hits + h >= wanted else 0):
                    value = (hits + h) / (before + place)
                    if value <= floor:
                        break
                    if counting:
                        steps += float(size) * relevant
                    else:
                        values[found], of_group[found] = value, g
                        below[found] = stays_below(value, wanted, before, hits, size, relevant, paths)
                    found += 1
    order = np.argsort(values)
    stays = np.ones(n_groups)
    total = 0.0
    for i in range(found - 1, -1, -1):
        value = values[order[i]]
        stays[of_group[order[i]]] = below[order[i]]
        least = values[order[i - 1]] if i > 0 else floor
        if least < value:
            chance = 1.0
            for g in range(n_groups):
                chance *= stays[g]
            total += (value - least) * (1.0 - chance)
    return floor + total


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
def number_found(group: Array, size: int) -> int:
    found = 0
    for i in range(size):
        found += group[i] > 0.0
    return found


@stoppable
@block
def fold_by_rank(
    fold: int,
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
    at = start = 0
    hits = reached = 0.0
    going = 1.0  # probability that the user reads on, or that no relevant document was found
    while start < ranked and at < depth:
        size, start = next_group(start, condensed, unjudged, gains, codes, sizes, group)
        filled, found = min(size, depth - at), number_found(group, size)
        if found == 0:
            out[at : at + filled] = 0.0
        elif ties != AVERAGE or size == 1 or (found == size and fold != STOP):
            if size > 1 and ties in (WORST, BEST):
                sort_falling(group, size)
            for i in range(filled):
                gain = group[size - 1 - i] if ties == WORST else group[i]
                rank = at + i + 1
                out[at + i] = 0.0
                if fold == STOP:
                    out[at + i] = going * gain / rank
                    going *= 1.0 - gain
                elif gain > 0.0 and fold == HITS:
                    hits += 1.0
                    out[at + i] = hits / rank
                elif gain > 0.0:
                    out[at + i] = 1.0 / rank if fold == FIRST else 1.0
                    return rank
        elif fold == HITS:
            for i in range(filled):
                out[at + i] = found / size * (hits + 1.0 + i * ((found - 1) / (size - 1))) / (at + i + 1)
            hits += found
        elif fold == STOP:
            sort_falling(group, size)
            stop_chances(group, found, size, filled, chances)
            for i in range(filled):
                out[at + i] = going * chances[3, i] / (at + i + 1)
            for i in range(found):
                going *= 1.0 - group[i]
        else:
            for i in range(filled):
                chance = going * found / (size - i)
                going *= (size - i - found) / (size - i)
                reached = reached + chance if going > 0.0 else 1.0
                out[at + i] = chance / (at + i + 1) if fold == FIRST else min(reached, 1.0)
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
    wanted = np.floor(parameter * relevant + 0.9)
    while start < ranked and at < depth:
        size, start = next_group(start, condensed, unjudged, gains, codes, sizes, group)
        filled, found = min(size, depth - at), number_found(group, size)
        if ties != AVERAGE or size == 1 or found in (0, size):
            if size > 1 and ties in (WORST, BEST):
                sort_falling(group, size)
            for i in range(filled):
                gain = group[size - 1 - i] if ties == WORST else group[i]
                missed += gain == 0.0
                pooled += gain == -1.0
                if gain > 0.0:
                    hits, rank = hits + 1.0, at + i + 1
                    if fold == PREFERENCE:
                        value += preference(missed, 0.0, relevant, nonrelevant)
                    elif fold == INFERRED:
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
            if fold == PREFERENCE:
                value += found * preference(missed, others, relevant, nonrelevant)
            elif fold == INFERRED:
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


@apart
def precisions(ranked: int, gains: Array, codes: Array, added: Array, lists: Array, lane: int) -> int:
    """As `fold_by_rank` by HITS without tied documents; no branch depends on the grades."""
    filled = min(ranked, lists.shape[0])
    hits = 0.0
    for i in range(filled):
        hit = 1.0 if gains[codes[i]] > 0.0 else 0.0
        hits += hit
        added[i] = hits * hit
    return write_by_rank(filled, added, lists, lane)


@apart
def stops(ranked: int, gains: Array, codes: Array, added: Array, lists: Array, lane: int) -> int:
    """As `fold_by_rank` by STOP without tied documents; no branch depends on the grades."""
    filled = min(ranked, lists.shape[0])
    going = 1.0
    for i in range(filled):
        stop = gains[codes[i]]
        added[i] = going * stop
        going *= 1.0 - stop
    return write_by_rank(filled, added, lists, lane)


@block
def write_by_rank(filled: int, added: Array, lists: Array, lane: int) -> int:
    """Fill the first ranks with `added` over the rank; returns how many. The loop becomes vectors."""
    for i in range(filled):
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
            fold, table, ties = plan.lists[v, FOLD], plan.lists[v, TABLE], plan.lists[v, TIES]
            condensed = plan.lists[v, CONDENSED] == 1
            of_relevant, of_nonrelevant = plan.lists[v, RELEVANT], plan.lists[v, NONRELEVANT]
            worth, out, filled = gains[table], batch.lists[v], batch.lengths[v, lane]
            if fold == HITS and distinct and not condensed:
                filled = precisions(ranked, worth, codes, group, out, lane)
            elif fold == STOP and distinct and not condensed:
                filled = stops(ranked, worth, codes, group, out, lane)
            elif fold in (PREFERENCE, INFERRED, INTERPOLATED):
                relevant = totals[of_relevant, lane] if of_relevant >= 0 else 0.0
                nonrelevant = totals[of_nonrelevant, lane] if of_nonrelevant >= 0 else 0.0
                filled = fold_whole(
                    fold, folds[v], ties, condensed, unjudged, relevant, nonrelevant, ranked, worth, codes,
                    sizes,
                    group, chances, out, lane,
                )  # fmt: skip
            elif fold > COUNT:
                filled = fold_by_rank(
                    fold, ties, condensed, unjudged, ranked, worth, codes, sizes, group, chances, out, lane
                )
            batch.lengths[v, lane] = filled
