"""AP with ties="block": all relevant documents of a tied group have the precision at its end.

So computed, AP is a sum over documents of a number that each has, which CG adds up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastndcg.measures import CG, NumRel
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import launch, worths

if TYPE_CHECKING:
    from fastndcg.measures import Measure

Float64 = npt.NDArray[np.float64]


def values(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Values of measures with ties="block", (n_measures, n_queries); NaN without a relevant document."""
    out = np.empty((len(measures), rankings.n_queries))
    for row, measure in enumerate(measures):
        weighed, plain = as_plain(measure, rankings)
        found = np.nan_to_num(launch.score((plain,), weighed, threads)[0])
        relevant = n_relevant(measure, rankings)
        out[row] = np.where(relevant > 0, found / np.maximum(relevant, 1), np.nan)
    return out


def n_relevant(measure: Measure, rankings: Rankings) -> Float64:
    """The number of relevant documents of each query, (n_queries,)."""
    known: Float64 = launch.score((NumRel(rel=measure.rel, unjudged=measure.unjudged),), rankings, 1)[0]
    return known


def as_plain(measure: Measure, rankings: Rankings) -> tuple[Rankings, Measure]:
    """Rankings and a sum of their grades that is the value times the number of relevant documents."""
    worths.check_complete(measure)
    gains = worths.gains_of_documents(measure, rankings)
    query = np.repeat(np.arange(rankings.n_queries), rankings.lengths)
    order = np.lexsort((rankings.scores, query))[::-1]  # queries fall, and so do the scores of each
    if measure.judged_only and rankings.is_judged is not None:
        order = order[rankings.is_judged[order]]
    query, scores = query[order], rankings.scores[order]
    last = np.flatnonzero(np.append((query[1:] != query[:-1]) | (scores[1:] != scores[:-1]), True))
    last = last[: len(order)] if len(order) else last[:0]
    end = last[np.searchsorted(last, np.arange(len(order)))]
    first = np.searchsorted(-query, -query)  # the first row of each row's query
    hits = np.cumsum(gains[order])
    above = np.append(0.0, hits)[first]
    parts = np.zeros(rankings.n_docs)
    parts[order] = gains[order] * (hits[end] - above) / (end + 1 - first)
    return Rankings._from_offsets(rankings.offsets, parts, rankings.scores), CG(ties="input", empty="nan")
