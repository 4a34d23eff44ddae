"""Measures with `score_above`: documents with lower scores keep their ranks and are not found.

The gains of the measure are stored as grades of `Rankings`, those of documents with lower scores as 0; all
that is relevant stays in the pool, so that recall is divided by the same number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, launch, worths

if TYPE_CHECKING:
    from fastndcg.measures import Measure

Float64 = npt.NDArray[np.float64]

_LEAST = 5e-324  # the least number above 0


def values(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Values of measures with `score_above`, (n_measures, n_queries); NaN where a query has no value."""
    out = np.empty((len(measures), rankings.n_queries))
    kinds = [(worths.worth_of(measure), measure.score_above, measure.judged_only) for measure in measures]
    for kind in dict.fromkeys(kinds):
        rows = [row for row, other in enumerate(kinds) if other == kind]
        weighed = as_plain(measures[rows[0]], rankings)[0]
        out[rows] = launch.score(tuple(_plain(measures[row]) for row in rows), weighed, threads)
    return out


def as_plain(measure: Measure, rankings: Rankings) -> tuple[Rankings, Measure]:
    """Rankings and a measure without `score_above` with the same value."""
    worths.check_complete(measure)
    scores, least = rankings.scores, measure.score_above or 0.0
    least = math.floor(least) if scores.dtype.kind in "iu" else least  # NumPy compares whole numbers exactly
    gains = np.where(scores > least, worths.gains_of_documents(measure, rankings), 0.0)
    offsets, grades = laid_out.judged_documents(rankings, measure)
    weighed = Rankings._from_offsets(
        rankings.offsets,
        gains,
        rankings.scores,
        is_judged=rankings.is_judged if measure.judged_only else None,
        judged=(offsets, worths.gains_of_grades(measure, grades)),
    )
    return weighed, _plain(measure)


def _plain(measure: Measure) -> Measure:
    return measure(rel=_LEAST, unjudged=None, score_above=None)
