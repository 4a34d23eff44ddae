"""Finds how many of the first, or of the last, unjudged documents are relevant where a measure is least or
greatest.

A further relevant document raises both the sum of the measure and its divisor, so a measure may rise or fall;
all numbers are compared. The sum grows by the document's own term and, for average precision, by the increase
of the terms of relevant documents below. These are judged ones if the first documents become relevant one
after the other, and judged and unjudged ones if the last do. So one pass over the documents of a query gives
the value for every number. Only the numbers are taken from it; the values at these numbers are computed as
all other values.

In a tied group of s documents, m of them relevant, below h relevant ones, the expected sum of precisions is
(m / s) * sum over its ranks i of (h + 1 + (i - first) (m - 1) / (s - 1)) / i.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Array, Float64, Int64, offsets_from, offsets_of, parts_of, runs_of
from fastndcg.scoring import laid_out, worths

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scoring.unjudged import Unjudged


def is_counted(measure: Measure) -> bool:
    """Whether one pass gives the measure for all numbers: it sums over relevant ranks."""
    definition = measure.definition
    counted = definition.worth == "relevant" and definition.fold in ("hits", "count")
    counted = counted and definition.way == "kernels"
    return counted and definition.cut != "relevant" and measure.ties in ("average", "input")


class _Documents(NamedTuple):
    """Documents of some queries, by query and falling score, with counts of each document's tied group."""

    relevant: npt.NDArray[np.bool_]  # judged relevant
    unjudged: npt.NDArray[np.bool_]
    begins: npt.NDArray[np.bool_]  # first document of its tied group
    size: Int64
    n_relevant: Int64
    n_unjudged: Int64
    turn: Int64  # unjudged documents of the group before it
    relevant_above: Int64  # relevant documents in groups above
    unjudged_above: Int64
    reward: Float64  # sum over the ranks of the group of 1 / rank, or of 1
    later: Float64  # sum over the ranks of the group of (rank - first rank) / rank


def extreme_numbers(
    measure: Measure, rankings: Rankings, unjudged: Unjudged, queries: Int64, together: int
) -> Iterator[tuple[Int64, npt.NDArray[np.bool_]]]:
    """Assignments in which the first u, or the last u, unjudged documents are relevant, for the u of least
    and of greatest value: queries, and for each of their unjudged documents whether it is relevant, in parts
    of about `together` documents.
    """
    is_unjudged = np.zeros(rankings.n_docs, np.bool_)
    is_unjudged[unjudged.places] = True
    relevant = (worths.gains_of_documents(measure, rankings)[unjudged.order] > 0) & ~is_unjudged
    offsets, grades = laid_out.pool(rankings)
    known = np.diff(offsets_of(worths.gains_of_grades(measure, grades) > 0, offsets))
    queries = queries[np.argsort(rankings.lengths[queries], kind="stable")]
    for part in parts_of(offsets_from(rankings.lengths[queries]), together):
        chosen = queries[part]
        lengths = rankings.lengths[chosen]
        there = np.arange(lengths[-1]) < lengths[:, None]
        rows = (rankings.offsets[chosen][:, None] + np.arange(lengths[-1]))[there]
        documents = _documents(measure, unjudged, rows, relevant[rows], is_unjudged[rows])
        n = unjudged.lengths[chosen]
        nth = runs_of(0, n)
        shown = lengths if measure.cutoff is None else np.full(len(chosen), measure.cutoff)
        for from_top in (True, False):
            found, number = _sum_found(measure, documents, there, from_top)
            returned = np.minimum(lengths, shown)[:, None]
            values = _ratio(measure, found, known[chosen, None] + number, shown[:, None], returned)
            for worst in (np.inf, -np.inf):
                values[number == 0] = worst
                extreme = (np.argmin if worst > 0 else np.argmax)(values, axis=1)
                u = np.repeat(number[np.arange(len(chosen)), extreme], n)
                yield chosen, nth < u if from_top else nth >= np.repeat(n, n) - u


def _documents(
    measure: Measure, unjudged: Unjudged, rows: Int64, relevant: Array, is_unjudged: Array
) -> _Documents:
    rank, first, size = unjudged.rank[rows], unjudged.first[rows], unjudged.size[rows]
    if measure.ties == "input":
        first, size = rank, np.ones(len(rank), np.int64)
    begins = rank == first
    starts, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    of_query = np.maximum.accumulate(np.where(rank == 0, np.arange(len(rank)), 0))

    def of_group(values: Array) -> Array:
        return np.add.reduceat(values, starts)[group]  # type: ignore[no-any-return]

    def before(flags: Array, start: Int64) -> Int64:
        counts: Int64 = np.cumsum(flags) - flags
        return counts - counts[start]

    shown = np.ones(len(rank)) if measure.cutoff is None else (rank < measure.cutoff).astype(np.float64)
    reward = shown / (rank + 1) if measure.definition.fold == "hits" else shown
    start = starts[group]
    counts = (of_group(flags.astype(np.int64)) for flags in (relevant, is_unjudged))
    above = (before(flags, of_query)[start] for flags in (relevant, is_unjudged))
    turn, rewards = before(is_unjudged, start), map(of_group, (reward, reward * (rank - first)))
    return _Documents._make([relevant, is_unjudged, begins, size, *counts, turn, *above, *rewards])


def _sum_found(
    measure: Measure, documents: _Documents, there: Array, from_top: bool
) -> tuple[Float64, Int64]:
    """For each unjudged document, the sum if it and those before it (after it if not `from_top`) are
    relevant, and their number, which is 0 at all other places; both are (n_queries, longest).
    """
    d = documents
    base, delta = d.reward * d.n_relevant / d.size, d.reward / d.size

    def in_rows(values: Array) -> Array:
        rows = np.zeros(there.shape, values.dtype)
        rows[there] = values
        return rows

    if measure.definition.fold == "hits":
        among = np.maximum(d.size - 1, 1)
        more = d.n_relevant + (d.turn if from_top else d.n_unjudged - 1 - d.turn)
        above = d.relevant_above + (d.unjudged_above if from_top else 0)
        base = (d.n_relevant / d.size) * (
            (d.relevant_above + 1) * d.reward + (d.n_relevant - 1) / among * d.later
        )
        of_others = d.n_relevant + (0 if from_top else d.n_unjudged)
        below = in_rows(np.where(d.begins, of_others / d.size * d.reward, 0.0))[:, ::-1].cumsum(axis=1)[
            :, ::-1
        ]
        below = np.hstack([below, np.zeros((len(below), 1))])
        # `below` counts groups after the document's own group
        row, column = np.nonzero(there)
        starts = np.flatnonzero(d.begins)
        after = (column[starts] + d.size[starts])[np.cumsum(d.begins) - 1]
        delta = ((above + 1) * d.reward + 2 * more / among * d.later) / d.size + below[row, after]
    whole = in_rows(np.where(d.begins, base, 0.0)).sum(axis=1)
    deltas, flags = in_rows(np.where(d.unjudged, delta, 0.0)), in_rows(d.unjudged)
    if from_top:
        found, number = deltas.cumsum(axis=1), flags.cumsum(axis=1)
    else:
        found, number = deltas[:, ::-1].cumsum(axis=1)[:, ::-1], flags[:, ::-1].cumsum(axis=1)[:, ::-1]
    return whole[:, None] + found, np.where(flags, number, 0)


def _ratio(measure: Measure, found: Float64, relevant: Int64, shown: Int64, returned: Int64) -> Float64:
    """The sum divided by the divisor of the measure; `relevant` may be 0 where the value is not used."""
    over, params = measure.definition.over, measure.params
    with np.errstate(divide="ignore", invalid="ignore"):
        if over == "weighted":
            squared = params["beta"] ** 2
            found, relevant = (1 + squared) * found, squared * relevant + shown
        elif over == "set":
            found, relevant = found * found, relevant * shown
        elif over == "fewer returned":
            relevant = np.minimum(relevant, returned)
        elif over == "fewer" or (over == "capped" and measure.cutoff is not None):
            relevant = np.minimum(relevant, shown)
        share: Float64 = found / relevant
        return share
