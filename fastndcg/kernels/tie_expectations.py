"""Expected values over the orders of tied documents, all equally likely."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.schema import Array

from .compile.decorators import allocating, block

_MOST_STEPS = 1_000_000_000  # steps through orders of tied documents for one expected maximum
_NO_CHANCE = 2.0**-100  # relative to the likeliest case, whose value may be 0
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
    """bpref's value of a relevant document, with `above` nonrelevant documents above it, and `tied` ones tied
    with it, of which each number is equally likely to be above it.
    """
    bound = max(min(relevant, nonrelevant), 1.0)
    # how many u from 0 to `tied` have above + u < relevant
    below = max(0.0, min(tied + 1.0, relevant - above))
    terms = below * above + below * (below - 1.0) / 2.0 + (tied + 1.0 - below) * relevant
    return 1.0 - terms / ((tied + 1.0) * bound)


@block
def expected_mean_of_hits(
    total: float, hits: float, size: int, relevant: int, places: int, reward: float, later: float
) -> float:
    """Expected mean precision at relevant documents where a tied group crosses the cutoff; 0 without any.

    `hits` relevant documents above the group have precisions that sum to `total`. The number h of those on
    the `places` of the group is hypergeometric. Given h they are on each set of h places equally likely, so
    a place at rank r, with i places of the group before it, adds h / places * (hits + 1 + i (h - 1) /
    (places - 1)) / r. `reward` is the sum of 1 / r, `later` that of i / r / (places - 1). Probabilities are
    multiplied up from that of the likeliest h, until they no longer count.
    """
    least, most = max(0, places - (size - relevant)), min(relevant, places)
    likeliest = min(max((relevant + 1) * (places + 1) // (size + 2), least), most)
    value = chances = 0.0
    for step in (1, -1):
        chance, h = 1.0, likeliest
        while least <= h <= most and chance > _NO_CHANCE:
            if h != likeliest or step > 0:
                chances += chance
                if hits + h > 0.0:
                    added = h / places * ((hits + 1.0) * reward + (h - 1) * later)
                    value += chance * ((total + added) / (hits + h))
            if step > 0:
                chance *= (relevant - h) * (places - h) / ((h + 1) * (size - relevant - places + h + 1))
            else:
                chance *= h * (size - relevant - places + h) / ((relevant - h + 1) * (places - h + 1))
            h += step
    return value / chances


@block
def inferred_precision(rank: int, relevant: float, judged: float, pooled: float) -> float:
    """infAP's value of the document at `rank`, below so many relevant, judged and pooled documents."""
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


@block
def stays_below(
    bound: float, needed: float, before: float, hits: float, size: int, relevant: int, paths: Array
) -> float:
    """The probability that precision is below the bound at all ranks of a tied group with `needed` hits."""
    paths[: relevant + 1] = 0.0
    paths[0] = 1.0
    most = 0  # most hits at this place with a precision below the bound; never falls from place to place
    for place in range(1, size + 1):
        left = size - place + 1
        while most < min(place, relevant):
            found = hits + most + 1
            if found >= needed and found >= 1.0 and found / (before + place) >= bound:
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
def expected_maximum(groups: Array, n_groups: int, needed: float, floor: float) -> float:
    """Expected largest precision: every order reaches `floor`, and some orders of the tied groups reach more.

    Rows of `groups`: documents above the group, relevant ones above, size, relevant ones in the group. Groups
    are independent, so the distribution of the maximum is a product over groups; `stays_below` computes each
    factor. Returns infinity where that takes more than `_MOST_STEPS`.
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
                for place in range(h, size - relevant + h + 1 if hits + h >= needed else 0):
                    value = (hits + h) / (before + place)
                    if value <= floor:
                        break
                    if counting:
                        steps += float(size) * relevant
                    else:
                        values[found], of_group[found] = value, g
                        below[found] = stays_below(value, needed, before, hits, size, relevant, paths)
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
