"""The grades of unjudged documents that make a measure least, and those that make it greatest.

An assignment gives every unjudged document a grade of a scale, so that every document is judged and has its
place in the ideal. Least and greatest values are always values of assignments, computed as all other values.
Few assignments have to be computed:

- With the same grades, moving better documents up never lowers a measure whose discounts do not rise. So in
  the greatest value the grades of unjudged documents fall down the list, and in the least value they rise.
- A measure of relevant documents then depends only on their number. Every number is tried: all in one pass
  over the documents (`numbers`), or one after the other. If a document with a higher grade can never lower
  the measure, few numbers are enough: none, one and all.
- nDCG is a ratio in which both parts depend on the assignment: `thresholds` finds the extreme ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Float64, Int64, offsets_from, parts_of, runs_of
from fastndcg.measures import DCG, IDCG, Measure
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, numbers, ways, worths
from fastndcg.scoring.thresholds import extreme_grades
from fastndcg.scoring.unjudged import (
    Scale,
    Unjudged,
    check,
    depends_on_number,
    grades_of_scale,
    scale_of,
    unjudged_of,
)

_TOGETHER = 1 << 20  # documents of assignments that are scored together, and entries of a table of thresholds


# ---- rankings with assigned grades ----


def assign(rankings: Rankings, unjudged: Unjudged, queries: Int64, grades: Float64) -> Rankings:
    """These queries, which may repeat, with `grades` for unjudged documents, in the order of `unjudged`."""
    lengths, numbers = rankings.lengths[queries], unjudged.lengths[queries]
    rows = runs_of(rankings.offsets[queries], lengths)
    offsets = offsets_from(lengths)
    fresh = grades.astype(np.int64) if (grades == np.floor(grades)).all() else grades
    pools = () if rankings.judged is None else (rankings.judged.relevance.dtype,)
    dtype = np.result_type(rankings.relevance.dtype, *pools, fresh.dtype)
    relevance = rankings.relevance[rows].astype(dtype)
    places = unjudged.places[runs_of(unjudged.offsets[queries], numbers)]
    relevance[unjudged.order[places] + np.repeat(offsets[:-1] - rankings.offsets[queries], numbers)] = fresh
    judged = None
    if rankings.judged is not None:
        kept = np.diff(rankings.judged.offsets)[queries]
        ends = offsets_from(kept + numbers)
        pool = np.empty(ends[-1], dtype)
        pool[runs_of(ends[:-1], kept)] = rankings.judged.relevance[
            runs_of(rankings.judged.offsets[queries], kept)
        ]
        pool[runs_of(ends[:-1] + kept, numbers)] = fresh
        judged = (ends, pool)
    propensity = None if rankings.propensity is None else rankings.propensity[rows]
    return Rankings._from_offsets(
        offsets, relevance, rankings.scores[rows], judged=judged, propensity=propensity
    )


def ends_of(unjudged: Unjudged, *, every: bool) -> Iterator[tuple[Int64, npt.NDArray[np.bool_]]]:
    """Assignments of the best grade to the first u, or to the last u, unjudged documents of each query.

    Yields queries, which may repeat, and for each of their unjudged documents whether it has the best grade.
    u takes `every` possible number, or 0, 1 and all. Each part has a bounded number of documents.
    """
    of_query = unjudged.lengths
    lengths = np.bincount(unjudged.query, minlength=len(of_query))
    queries = np.flatnonzero(of_query)
    n_tried = of_query[queries] + 1 if every else np.minimum(of_query[queries] + 1, 3)
    queries = np.repeat(queries, n_tried)
    number = runs_of(0, n_tried)
    if not every:
        number = np.where(number == 2, of_query[queries], number)
    for part in parts_of(offsets_from(lengths[queries]), _TOGETHER):
        chosen, u = queries[part], number[part]
        n = of_query[chosen]
        yield chosen, runs_of(0, n) < np.repeat(u, n)
        some = (u > 0) & (u < n)  # with u = 0 or u = n both ends give the same assignment
        chosen, u, n = chosen[some], u[some], n[some]
        if len(chosen):
            yield chosen, runs_of(0, n) >= np.repeat(n - u, n)


# ---- bounds of measures ----


def bounds(
    measures: tuple[Measure, ...], rankings: Rankings, top: float | None = None, threads: int | None = None
) -> list[tuple[Float64, Float64, Float64]]:
    """For each measure its least value over all assignments, its present and its greatest one, (n_queries,).

    Raises `MeasureError` for a measure that `check` refuses, and as `fastndcg.evaluate` does.
    """
    unjudged = unjudged_of(rankings)
    for measure in measures:
        check(measure, rankings, unjudged)
    values = ways.score(measures, rankings, threads).values
    found = [(value.copy(), value, value.copy()) for value in values]
    some = np.flatnonzero(unjudged.lengths)
    if not len(some):
        return found
    for low, _, high in found:
        low[some] = high[some] = np.nan

    def take(rows: list[int], queries: Int64, grades: Float64) -> None:
        of_rows = tuple(measures[row] for row in rows)
        scored = ways.score(of_rows, assign(rankings, unjudged, queries, grades), threads).values
        for row, row_values in zip(rows, scored, strict=True):
            np.fmin.at(found[row][0], queries, row_values)
            np.fmax.at(found[row][2], queries, row_values)

    grades = grades_of_scale(rankings, top)
    alike: dict[Any, list[int]] = {}
    for row, measure in enumerate(measures):
        alike.setdefault((worths.worth_of(measure), depends_on_number(measure)), []).append(row)
    for (_, every), rows in alike.items():
        scale = scale_of(measures[rows[0]], grades)
        counted = [row for row in rows if every and numbers.is_counted(measures[row])]
        for tried, one_by_one in (([row for row in rows if row not in counted], every), (counted, False)):
            for queries, best in ends_of(unjudged, every=one_by_one) if tried else ():
                take(tried, queries, np.where(best, scale.grades[-1], scale.grades[0]))
        for row in counted:
            found_by_pass = numbers.extreme_numbers(measures[row], rankings, unjudged, some, _TOGETHER)
            for queries, best in found_by_pass:
                take([row], queries, np.where(best, scale.grades[-1], scale.grades[0]))
        for row in rows:
            measure = measures[row]
            for grade in scale.grades if measure.definition.worth == "best" else ():
                # those that are as good as the best judged document raise the chance that one is the first
                take([row], some, np.full(len(unjudged.places), grade))
            if measure.name != "nDCG" or len(scale.gains) == 1:
                continue
            if measure.ideal == "full":
                for level in _beside_the_best(measure, rankings, scale, some):
                    take([row], some, np.repeat(scale.grades[level], unjudged.lengths[some]))
                continue
            parts = tuple(laid_out.part_of(measure, kind) for kind in (DCG, IDCG))
            lowest = np.full(len(unjudged.places), scale.grades[0])
            base = np.zeros((2, rankings.n_queries))
            base[:, some] = ways.score(parts, assign(rankings, unjudged, some, lowest), threads).values
            for sign in (1, -1):
                take(
                    [row],
                    some,
                    extreme_grades(measure, rankings, unjudged, scale, (base[0], base[1]), sign, _TOGETHER),
                )
    return found


def draws(
    measures: tuple[Measure, ...],
    rankings: Rankings,
    prior: dict[float, float],
    counted_of: int | None,
    resamples: int,
    seed: int,
    quantiles: Sequence[float],
    threads: int | None = None,
) -> tuple[Float64, Float64]:
    """Expected value and quantiles where each unjudged document has a grade of its own drawn from `prior`,
    which has the probability of each: of queries, (n_measures, 1 + n_quantiles, n_queries), and of the mean.
    Where these are shares of `counted_of` documents, each draw counts as many documents drawn from them anew.
    """
    unjudged, weight = unjudged_of(rankings), rankings.weight
    weights = np.ones(rankings.n_queries) if weight is None else weight
    values = ways.score(measures, rankings, threads).values
    some = np.flatnonzero(unjudged.lengths)
    of_queries = np.repeat(values[:, None], 1 + len(quantiles), axis=1)
    fixed = np.ones(rankings.n_queries, np.bool_)
    fixed[some] = False
    counted = [measure.params.get("empty") != "nan" for measure in measures]

    def sums(found: Float64, of: Float64) -> Float64:
        """Weighted sums over queries, and the weights that count; a value that is skipped counts nowhere."""
        skipped = np.isnan(found) & np.array(counted)[:, None]
        return np.stack([np.where(skipped, 0.0, found) @ of, ~skipped @ of])

    chances = np.tile([*prior.values()], (resamples, 1))
    if counted_of is not None:
        chances = np.random.default_rng(seed).multinomial(counted_of, chances) / counted_of
    totals = np.repeat(sums(values[:, fixed], weights[fixed])[None], resamples, axis=0)
    held = rankings.lengths[some] + resamples * len(measures)
    for number, part in enumerate(parts_of(offsets_from(held), 16 * _TOGETHER)):
        chosen, random = some[part], np.random.default_rng([seed, number])
        found = np.empty((resamples, len(measures), len(chosen)))
        documents = rankings.lengths[chosen].sum()
        if rankings.judged is not None:
            documents += np.diff(rankings.judged.offsets)[chosen].sum()
        together = max(1, int(_TOGETHER // documents))  # draws that are scored at once
        for first in range(0, resamples, together):
            rows, n = chances[first : first + together], unjudged.lengths[chosen].sum()
            grades = np.concatenate([random.choice([*prior], n, p=row) for row in rows])
            drawn = assign(rankings, unjudged, np.tile(chosen, len(rows)), grades)
            scored = ways.score(measures, drawn, threads).values.reshape(len(measures), len(rows), -1)
            found[first : first + together] = scored.swapaxes(0, 1)
        for row in range(resamples):
            totals[row] += sums(found[row], weights[chosen])
        of_queries[:, 0, chosen] = found.mean(axis=0)
        of_queries[:, 1:, chosen] = np.quantile(found, quantiles, axis=0).swapaxes(0, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = totals[:, 0] / totals[:, 1]
    return of_queries, np.vstack([means.mean(axis=0), np.quantile(means, quantiles, axis=0)]).T


def _beside_the_best(
    measure: Measure, rankings: Rankings, scale: Scale, queries: Int64
) -> tuple[Int64, Int64]:
    """Places in the scale of the gains just below and just above the best gain of each query.

    With ideal="full" and no fixed top gain, the ideal is k documents of the best gain that occurs. nDCG is
    then greatest where all unjudged documents have one of these two gains, or the best gain of the scale.
    """
    offsets, relevance = laid_out.pool(rankings)
    best = np.full(rankings.n_queries, -np.inf)
    query = np.repeat(np.arange(rankings.n_queries), np.diff(offsets))
    np.maximum.at(best, query, worths.gains_of_grades(measure, relevance))
    below = np.searchsorted(scale.gains, best[queries], side="right") - 1
    above = np.searchsorted(scale.gains, best[queries])
    return np.maximum(below, 0), np.minimum(above, len(scale.gains) - 1)
