"""Measures of relevant documents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fastndcg.trec_eval.ranking import UNJUDGED, Ranked, log, log2, ratio

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64

_SHARE = 0.00001  # trec_eval's INFAP_EPSILON
LEAST = 0.00001  # smaller values are raised to this for geometric means


def average_precision(ranked: Ranked) -> Float64:
    return ratio(ranked.total(ranked.hit_query, ranked.precision), ranked.relevant)


def map_cut(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    values = []
    for cutoff in cutoffs:
        kept = ranked.hit_place < cutoff
        values.append(ratio(ranked.total(ranked.hit_query[kept], ranked.precision[kept]), ranked.relevant))
    return values


def raised_logarithms(values: Float64) -> Float64:
    return log(np.maximum(values, LEAST))


def preference(ranked: Ranked) -> Float64:
    """Compute bpref, from the number of judged non-relevant documents above each relevant one."""
    above = ranked.count_within(ranked.is_miss)[ranked.is_hit]
    others = np.bincount(ranked.pool_query[ranked.pool < ranked.level], minlength=ranked.n_queries)
    most = ranked.relevant[ranked.hit_query]
    at_most = np.minimum(others, ranked.relevant)[ranked.hit_query]
    values = np.where(above > 0, 1.0 - ratio(np.minimum(above, most), at_most), 1.0)
    return ratio(ranked.total(ranked.hit_query, values), ranked.relevant)


def reciprocal_rank(ranked: Ranked) -> Float64:
    values = np.zeros(ranked.n_queries)
    some = ranked.found > 0
    values[some] = 1.0 / (ranked.hit_place[ranked.hit_offsets[:-1][some]] + 1)
    return values


def inferred(ranked: Ranked) -> Float64:
    above = ranked.so_far - 1
    judged_not = ranked.count_within(ranked.is_miss)[ranked.is_hit]
    pooled = ranked.count_within(ranked.grades == UNJUDGED)[ranked.is_hit]
    place = ranked.hit_place.astype(np.float64)
    in_pool = np.divide(above + judged_not + pooled, place, out=np.zeros(len(place)), where=place > 0)
    share = (above + _SHARE) / (above + judged_not + 2 * _SHARE)
    values = np.where(place == 0, 1.0, 1.0 / (place + 1) + place / (place + 1) * in_pool * share)
    total = ranked.total(ranked.hit_query, values)
    return np.where(ranked.relevant > 0, ratio(total, ranked.relevant), total)


def interpolated(ranked: Ranked, shares: Sequence[float]) -> list[Float64]:
    """Return the highest precision from each recall level on, for levels from the last to the first.

    A level above the one that comes after it, which only 11pt_avg accepts, counts as recall 0.
    """
    with np.errstate(invalid="ignore"):
        whole_list = ranked.found / ranked.returned  # NaN for an empty list, as in trec_eval
    some = ranked.found > 0
    overall = np.where(some, 0.0, whole_list)
    overall[some] = ranked.best_precision[ranked.hit_offsets[:-1][some]]
    reached = ranked.found.copy()
    is_met, is_first = np.ones(ranked.n_queries, np.bool_), np.ones(ranked.n_queries, np.bool_)
    values: list[Float64] = []
    for share in reversed(shares):
        # the hits that a level needs: release 10 rounds, release 9 adds 0.9 and truncates
        wanted = share * ranked.relevant
        rounded = np.trunc(wanted) + (wanted - np.trunc(wanted) >= 0.5)
        needed = (wanted + 0.9 if ranked.release == 9 else rounded).astype(np.int64)
        beyond = is_first & (needed > ranked.found)
        is_first &= beyond
        is_met &= beyond | ((needed >= 1) & (needed <= reached))
        at = np.where(is_met & ~beyond, ranked.hit_offsets[:-1] + needed - 1, 0)
        best = ranked.best_precision[at] if len(ranked.best_precision) else np.zeros(ranked.n_queries)
        values.append(np.where(beyond, 0.0, np.where(is_met, best, overall)))
        reached = np.where(is_met & ~beyond, needed, reached)
    return values


def eleven_points(ranked: Ranked, shares: Sequence[float]) -> Float64:
    return sum(interpolated(ranked, shares), np.zeros(ranked.n_queries)) / float(len(shares))


def rprec_mult(ranked: Ranked, multiples: Sequence[float]) -> list[Float64]:
    cutoffs = ((multiple * ranked.relevant + 0.9).astype(np.int64) for multiple in multiples)
    return [ratio(ranked.hits_before(cutoff), cutoff) for cutoff in cutoffs]


def unjudged(ranked: Ranked, cutoffs: Sequence[int]) -> list[Float64]:
    query, place = ranked.query[ranked.grades < 0], ranked.place[ranked.grades < 0]
    return [np.bincount(query[place < cutoff], minlength=ranked.n_queries) / cutoff for cutoff in cutoffs]


def bin_g(ranked: Ranked) -> Float64:
    values = 1.0 / log2(3 + ranked.hit_place - ranked.so_far)
    return ratio(ranked.total(ranked.hit_query, values), ranked.relevant)


def utility(ranked: Ranked, weights: Sequence[float]) -> Float64:
    hits, returned, relevant = ranked.found, ranked.returned, ranked.relevant
    total: Float64 = weights[0] * hits + weights[1] * (returned - hits) + weights[2] * (relevant - hits)
    return total + weights[3] * (ranked.collection + hits - returned - relevant)


def set_f(ranked: Ranked, beta: Sequence[float]) -> Float64:
    precision, recall = ratio(ranked.found, ranked.returned), ratio(ranked.found, ranked.relevant)
    return ratio((beta[0] + 1.0) * precision * recall, beta[0] * precision + recall)


def set_map(ranked: Ranked) -> Float64:
    found, returned = ranked.found.astype(np.float64), ranked.returned.astype(np.float64)
    return ratio(found * ranked.found, returned * ranked.relevant)


def yaap(ranked: Ranked) -> Float64:
    total = ranked.total(ranked.hit_query, ranked.precision)
    return log((1.0 + total) / (1.0 + ranked.relevant - total))


def relstring(ranked: Ranked, length: Sequence[float]) -> list[str]:
    """Return a character for each document: its grade, ">" above 9, "-" outside the pool, "." unjudged."""
    characters = np.frombuffer(b".-0123456789>", np.uint8)[np.minimum(ranked.grades, 10) - UNJUDGED]
    text = characters.tobytes().decode("ascii")
    most = max(int(length[0]), 0)
    return [text[start : min(stop, start + most)] for start, stop in pairwise(ranked.offsets.tolist())]
