"""Expected nDCG over an ideal of the returned documents, which is not a sum over ranks."""

from __future__ import annotations

import numpy as np

from fastndcg.kernels.flow.tables import Array

from ..compile.marks import allocating, block, driver
from ..vectors.summing import normalise
from .sorting import average, falling_keys, sort_falling
from .sums import sum_discounted

_MOST_DRAWS = 100_000  # ways to draw tied documents that are enumerated
_UNIT, _ROOM = 2.0**600, 2.0**400  # a number below _UNIT times one below _ROOM does not overflow


@block
def fill_ways(n: int, most: int, ways: Array, powers: Array) -> None:
    """Numbers of ways to choose 0, 1, ... and `most` of n, as ways * _UNIT ** powers, where ways is below
    _UNIT. Only additions, products and divisions are used: the bits are the same on every processor.
    """
    power, number = 0, 1.0
    for k in range(most + 1):
        if n <= 1000:  # beyond it the product may overflow
            power, number = 0, 1.0
            for i in range(1, k + 1):
                number = number * (n - k + i) / i
        elif k > 0:
            number = number * (n - k + 1) / k
        if number >= _UNIT:
            number /= _UNIT
            power += 1
        elif power > 0 and number < 1.0:  # exact, because _UNIT is a power of 2
            number *= _UNIT
            power -= 1
        ways[k], powers[k] = number, power


@block
def next_draw(drawn: Array, available: Array, kinds: int) -> bool:
    """Advance to the next way to draw as many documents, higher gains first; False after the last."""
    room = after = 0
    kind = kinds - 1
    while kind >= 0 and (drawn[kind] == 0 or room == 0):
        after += drawn[kind]
        room += available[kind] - drawn[kind]
        kind -= 1
    if kind < 0:
        return False
    drawn[kind] -= 1
    after += 1
    for later in range(kind + 1, kinds):
        drawn[later] = min(available[later], after)
        after -= drawn[later]
    return True


@block
def ways_to_draw(
    drawn: Array, kinds: int, starts: Array, ways_of: Array, powers_of: Array
) -> tuple[float, int]:
    """Number of ways to draw `drawn` documents of each kind, as ways and power of _UNIT (see `fill_ways`)."""
    ways, power = 1.0, 0
    if kinds > 1:
        for kind in range(kinds):
            ways *= ways_of[starts[kind] + drawn[kind]]
            power += powers_of[starts[kind] + drawn[kind]]
            if ways >= _ROOM:
                ways /= _UNIT
                power += 1
    return ways, power


@allocating
def expected_over_returned(
    gains: Array, sizes: Array, cutoff: int, discounts: Array, empty: float, ratio: bool
) -> float:
    """Expectation of DCG / IDCG over all orders of ties, or of IDCG where not `ratio`; the ideal has the
    documents above the cutoff. `gains` are in rank order, `sizes` are those of the tied groups.

    The returned documents vary only where a group crosses the cutoff. Then each way to fill the remaining
    places with the group's distinct gains is weighted by its (multivariate hypergeometric) probability.
    Infinite where there are more than `_MOST_DRAWS` ways.
    """
    length = min(gains.shape[0], cutoff)
    total, before, last = 0.0, 0, 0  # DCG, ranks and number of the groups that end above the cutoff
    while last < sizes.shape[0] and before + sizes[last] <= length:
        mean = average(gains[before : before + sizes[last]].copy(), sizes[last], False)
        for i in range(before, before + sizes[last]):
            total += mean * discounts[i]
        before += sizes[last]
        last += 1
    places = length - before
    group = gains[before : before + sizes[last]].copy() if places > 0 else np.empty(0)
    size, kinds = group.shape[0], 0
    sort_falling(group, size)
    values, available, drawn = np.empty(size), np.zeros(size, np.int64), np.empty(size, np.int64)
    for i in range(size):  # the distinct gains of the group, and how many documents have each
        if i == 0 or group[i] != group[i - 1]:
            values[kinds] = group[i]
            kinds += 1
        available[kinds - 1] += 1
    starts, filled, left = np.empty(kinds, np.int64), 0, places
    ways_of, powers_of = np.empty(size + kinds), np.empty(size + kinds, np.int64)
    for kind in range(kinds):
        most = min(available[kind], places) if kinds > 1 else 0
        starts[kind], drawn[kind] = filled, min(available[kind], left)
        fill_ways(available[kind], most, ways_of[filled:], powers_of[filled:])
        filled += available[kind] + 1
        left -= drawn[kind]
    ideal = np.empty(length)
    value = weight = 0.0
    scale, defined = 0, False  # value and weight are in units of _UNIT ** scale
    for _ in range(_MOST_DRAWS):
        ways, power = ways_to_draw(drawn, kinds, starts, ways_of, powers_of)
        ideal[:before] = gains[:before]
        at, mean = before, 0.0
        for kind in range(kinds):
            mean += values[kind] * drawn[kind]
            ideal[at : at + drawn[kind]] = values[kind]
            at += drawn[kind]
        if places > 0:
            mean = values[0] if kinds == 1 else mean / places
        dcg = total
        for i in range(before, length):
            dcg += mean * discounts[i]
        sort_falling(ideal, length)
        best = sum_discounted(ideal, length, discounts)
        while scale < power:
            value, weight, scale = value / _UNIT, weight / _UNIT, scale + 1
        while power < scale:
            ways, power = ways / _UNIT, power + 1
        is_defined = not ratio or best != 0.0
        if is_defined:
            value += ways * (normalise(dcg, best) if ratio else best)
            defined = True
        elif not np.isnan(empty):
            value += ways * empty
        if is_defined or not np.isnan(empty):
            weight += ways
        if not next_draw(drawn, available, kinds):
            return (normalise(value, weight) if ratio else value / weight) if defined else np.nan
    return np.inf


@driver()
def expect_over_returned(
    offsets: Array,
    gains: Array,
    scores: Array,
    counts: Array,
    cutoff: int,
    discounts: Array,
    empty: float,
    ratio: bool,
    out: Array,
) -> None:
    """Write `expected_over_returned` for each query, over the documents for which `counts` is true."""
    for query in range(offsets.shape[0] - 1):
        rows = offsets[query] + np.flatnonzero(counts[offsets[query] : offsets[query + 1]])
        keys = np.empty(rows.shape[0], np.uint64)
        falling_keys(scores[rows], rows.shape[0], keys)
        ranked = np.argsort(keys, kind="mergesort")
        sizes = np.zeros(rows.shape[0], np.int64)
        groups = 0
        for i in range(rows.shape[0]):
            if i > 0 and keys[ranked[i]] != keys[ranked[i - 1]]:
                groups += 1
            sizes[groups] += 1
        filled = groups + 1 if rows.shape[0] > 0 else 0
        out[query] = expected_over_returned(
            gains[rows[ranked]], sizes[:filled], cutoff, discounts, empty, ratio
        )
