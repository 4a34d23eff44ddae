"""Measures that are plain sums over other grades of the same documents, computed by the same kernels.

    propensities     gains of clicks, divided by the probability that they could be observed
    above a score    documents with lower scores keep their ranks and are not found
    blocks           AP with ties="block": relevant documents of a tied group have the precision at its end

Users click only on documents that they see. The propensity of a document is the probability that its
relevance was observed. Where gains are divided by it, a seen document also counts for others that were not
seen, and the expectation of DCG is that of DCG over the true gains.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fastndcg.common.arrays import codes_from
from fastndcg.errors import InputError
from fastndcg.measures import CG, Measure, NumRel
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import gain_values, ideals, launch

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64

_MOST_GAIN = 2.0**53  # float64 holds all whole numbers up to here
_LEAST = 5e-324  # the smallest number above 0


def values(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Values of the measures, (n_measures, n_queries); NaN where a query has no value.

    Raises `InputError` for rankings without propensities, and for grades for which a measure has no gain.
    """
    out = np.empty((len(measures), rankings.n_queries))
    alike: dict[Any, list[int]] = {}
    for row, measure in enumerate(measures):
        params = measure.params
        key = (
            gain_values.gain_function_of(measure),
            measure.judged_only,
            params.get("clip"),
            params.get("score_above"),
        )
        alike.setdefault(key, []).append(row)
    for rows in alike.values():
        weighted = weighted_rankings(measures[rows[0]], rankings)
        sums = launch.score(tuple(plain_measure(measures[row]) for row in rows), weighted, threads)
        for row, summed in zip(rows, sums, strict=True):
            divisor = divisor_of(measures[row], rankings, weighted, threads)
            out[row] = summed
            if divisor is not None:
                some = divisor > 0
                out[row] = np.where(some, np.nan_to_num(summed) / np.where(some, divisor, 1.0), np.nan)
    return out


def plain_measure(measure: Measure) -> Measure:
    """Return the measure whose value for `weighted_rankings` is this measure's value times its divisor."""
    if measure.definition.method == "blocks":
        return CG(ties="input", empty="nan")
    if measure.definition.method == "above a score":
        return measure(rel=_LEAST, unjudged=None, score_above=None)
    linear: dict[str, Any] = {"gain": "linear", "rel": None, "unjudged": None, "empty": "nan"}
    return measure(**linear, ips=False, clip=0)


def divisor_of(
    measure: Measure, rankings: Rankings, weighted: Rankings, threads: int | None = None
) -> Float64 | None:
    """Return the divisor of the value of `plain_measure`, (n_queries,), or None."""
    divisor: Measure
    if measure.definition.method == "blocks":
        divisor, weighted = NumRel(rel=measure.rel, unjudged=measure.unjudged), rankings
    elif measure.params.get("ips") == "snips":
        divisor = CG(empty="nan")
    else:
        return None
    sums: Float64 = launch.score((divisor,), weighted, threads)[0]
    return sums


def weighted_rankings(measure: Measure, rankings: Rankings) -> Rankings:
    """Return the rankings with grades for `plain_measure` to add up."""
    judged = None
    if measure.definition.method == "blocks":
        return Rankings._from_offsets(rankings.offsets, _precisions(measure, rankings), rankings.scores)
    if measure.definition.method == "propensities":
        gains = _weighted_gains(measure, rankings)
    else:
        gain_values.check_complete(measure)
        scores, least = rankings.scores, measure.score_above or 0.0
        # NumPy compares whole numbers exactly
        least = math.floor(least) if scores.dtype.kind in "iu" else least
        gains = np.where(scores > least, gain_values.gains_of_documents(measure, rankings), 0.0)
        # relevant documents stay in the pool, so that the divisor of recall stays the same
        offsets, grades = ideals.judged_documents(rankings, measure)
        judged = offsets, gain_values.gains_of_grades(measure, grades)
    is_judged = rankings.is_judged if measure.judged_only else None
    weighted = Rankings._from_offsets(
        rankings.offsets, gains, rankings.scores, is_judged=is_judged, judged=judged
    )
    if measure.definition.method == "propensities" and (pool := rankings.judged) is not None:
        # tells which queries have judged documents; the grades of the pool are not used
        return weighted._with(judged=pool._replace(relevance=np.zeros(len(pool.relevance))))
    return weighted


def _weighted_gains(measure: Measure, rankings: Rankings) -> Float64:
    """Gains divided by propensities."""
    propensity: Any = rankings.propensity
    if propensity is None:
        raise InputError(
            f"{measure} needs the probability that each document was seen, which these rankings lack. "
            'Give it, or name its column, as in propensity="propensity".'
        )
    gain_values.check(measure, rankings)
    gains: Float64 = gain_values.gains_of_documents(measure, rankings) / np.maximum(propensity, measure.clip)
    if len(gains) and np.abs(gains).max() > _MOST_GAIN:
        row = int(np.argmax(np.abs(gains)))
        raise InputError(
            f"the propensity {propensity[row]:g}{rankings._locator.at(row)} makes a gain of {gains[row]:g} "
            f"in {measure}, beside which all others vanish; bound it, as in clip=0.001",
        )
    return gains


def _precisions(measure: Measure, rankings: Rankings) -> Float64:
    """Return each document's gain times the precision at the end of its tied group."""
    gain_values.check_complete(measure)
    gains = gain_values.gains_of_documents(measure, rankings)
    n = rankings.n_docs
    query = codes_from(rankings.offsets)
    order = np.lexsort((-np.arange(n), rankings.scores, -query))[::-1]
    scores, begins = rankings.scores[order], np.ones(n, np.bool_)
    begins[1:] = (scores[1:] != scores[:-1]) | (query[1:] != query[:-1])
    start, group = rankings.offsets[query], np.cumsum(begins) - 1
    end = np.append(np.flatnonzero(begins)[1:], n)[group]
    counts = np.ones(n, np.bool_)
    if measure.judged_only and rankings.is_judged is not None:
        counts = rankings.is_judged[order]
    own_gain = gains[order] * counts
    hits, shown = (np.append(0.0, np.cumsum(each)) for each in (own_gain, counts))
    parts = np.zeros(n)
    parts[order] = own_gain * (hits[end] - hits[start]) / np.maximum(shown[end] - shown[start], 1)
    return parts
