"""Ideal rankings whose length is not the measure's cutoff. They are built as rankings, and their DCG is the
divisor.

    "judged_uncut"      all judged documents, whatever the cutoff
    "judged_returned"   the best judged documents, as many as were returned, up to the cutoff

With `floor="worst"` the worst ranking is built too, and its DCG is subtracted from both parts.

The kernels cut a ranking and its ideal at the same rank. For these two options the ideal is built as a
`Rankings` in ideal order, and summed by the same kernel, so that a perfect ranking is exactly 1.0 here too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Float64, Int64, codes_from, offsets_from, offsets_of
from fastndcg.measures import DCG, Measure
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import gain_values, launch

_ROUNDING = 1e-12  # largest relative difference between two orders of the same sum


def values(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Divide DCG by the DCG of an ideal built as a ranking, (n_measures, n_queries); NaN where that is 0.

    Raises `InputError` for a grade for which a measure has no valid gain.
    """
    values = launch.score(tuple(part_of(measure) for measure in measures), rankings, threads)
    for row, measure in enumerate(measures):
        gain_values.check(measure, rankings)
        offsets, grades = judged_documents(rankings, measure)
        best = _best(measure, rankings, offsets, grades, threads)
        if measure.definition.ranking == "ideal":
            nothing = (rankings.lengths == 0) & (np.diff(offsets) == 0)
            values[row] = np.where(nothing, np.nan, best)
            continue
        worst = np.zeros(rankings.n_queries)
        if measure.floor == "worst":
            worst = _best(measure, rankings, offsets, grades, threads, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (np.nan_to_num(values[row]) - worst) / np.where(best != worst, best - worst, np.nan)
        values[row] = np.where((ratio > 1) & (ratio < 1 + _ROUNDING), 1.0, ratio)
        values[row][(ratio < 0) & (ratio > -_ROUNDING)] = 0.0
    return values


def _best(
    measure: Measure,
    rankings: Rankings,
    offsets: Int64,
    grades: npt.NDArray[Any],
    threads: int | None,
    turn: int = -1,
) -> Float64:
    """Return the DCG of each query's ideal ranking, or of its worst if `turn` is 1."""
    dcg = part_of(measure)(ties="input", judged_only=False, unjudged=None)
    if measure.ideal == "judged_uncut":
        dcg = DCG(**dcg.params)
    best: Float64 = launch.score((dcg,), _build_ideal(rankings, measure, offsets, grades, turn), threads)[0]
    best[np.isnan(best)] = 0.0
    return best


def part_of(measure: Measure, kind: Measure = DCG) -> Measure:
    """Return the measure in the numerator of an nDCG: DCG, or another sum."""
    same = {name: value for name, value in measure.params.items() if name in kind.params and name != "empty"}
    return kind(**same) if measure.cutoff is None else kind(**same) @ measure.cutoff


def _build_ideal(
    rankings: Rankings, measure: Measure, offsets: Int64, grades: npt.NDArray[Any], turn: int = -1
) -> Rankings:
    """Return each query's ideal ranking: judged documents by descending gain, with falling scores."""
    query = codes_from(offsets)
    order = np.lexsort((turn * gain_values.gains_of_grades(measure, grades), query))
    place = np.arange(len(order)) - offsets[query]
    if measure.ideal == "judged_returned":
        order, query = order[(kept := place < _count_returned(rankings, measure)[query])], query[kept]
    lengths = np.bincount(query, minlength=rankings.n_queries)
    ends = offsets_from(lengths)
    return Rankings._from_offsets(ends, grades[order], -np.arange(len(order), dtype=np.int64))


def judged_documents(rankings: Rankings, measure: Measure) -> tuple[Int64, npt.NDArray[Any]]:
    """Like `pool`, with the unjudged scored documents if the measure assumes a grade for them."""
    offsets, grades = pool(rankings)
    unjudged = measure.params.get("unjudged")
    if unjudged is None or rankings.is_judged is None:
        return offsets, grades
    assumed = offsets_of(~rankings.is_judged, rankings.offsets)
    before = np.repeat(offsets[1:], np.diff(assumed))
    return offsets + assumed, np.insert(grades.astype(np.float64), before, unjudged)


def pool(rankings: Rankings) -> tuple[Int64, npt.NDArray[Any]]:
    """Return offsets and grades of the judged documents: the pool, or the judged scored documents."""
    if rankings.judged is not None:
        return rankings.judged
    if rankings.is_judged is None:
        return rankings.offsets, rankings.relevance
    return offsets_of(rankings.is_judged, rankings.offsets), rankings.relevance[rankings.is_judged]


def _count_returned(rankings: Rankings, measure: Measure) -> Int64:
    if not measure.judged_only or rankings.is_judged is None:
        return rankings.lengths
    return np.diff(offsets_of(rankings.is_judged, rankings.offsets))
