"""The contribution of each rank of one query to a measure, from the lists of the kernels.

The plan of the measure is run with other rows: one for each rank of its list, and one for each rank of its
ideal. So the results are the terms that the kernels add up; this module does not rank documents, average ties
or compute gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Float64, Int64, freeze, offsets_from
from fastndcg.errors import MeasureError
from fastndcg.kernels.flow import tables
from fastndcg.measures import NumRet
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, launch, plan, weighed, worths
from fastndcg.scoring.discounts import discount_table
from fastndcg.scoring.tied_groups import tied_groups

if TYPE_CHECKING:
    from fastndcg.kernels.flow.tables import Plan
    from fastndcg.measures import Measure
    from fastndcg.typing import Ties

_TOGETHER = 256  # ranks of an ideal that are read at once
_MOST_TRUNCATED = 20_000_000  # documents of all lists that end at a tied group (see `_by_truncation`)


class Ranks(NamedTuple):
    """The terms of a measure for one query."""

    added: Float64  # (n_ranks,): the kernels' list, for each rank that counts
    discount: Float64  # (n_ranks,): 1 where the list needs no discount
    running: Float64  # (n_ranks,): the value if no later rank contributed
    contribution: Float64  # (n_ranks,)
    ideal_gain: Float64  # (n_ideal,): gains of the measure's own ideal ranking; of length 0 without one
    ideal_contribution: Float64
    ideal: float  # the divisor; NaN without one
    base: float  # the value of an empty list


def ranks_of(measure: Measure, rankings: Rankings) -> Ranks:
    """The contribution of each rank of one query. Raises `MeasureError` unless it is a sum over ranks."""
    _check(measure)
    divisor = None
    if measure.definition.way == "laid out":
        found = _from_kernels(laid_out.part_of(measure), rankings, laid_out.divisor(measure, rankings))
        gains = laid_out.gains_by_rank(measure, rankings)
        parts = gains * discount_table(measure.discount, len(gains)) / found.ideal
        return found._replace(ideal_gain=gains, ideal_contribution=parts)
    if measure.definition.way in ("propensities", "above a score", "blocks"):
        own = weighed.weigh(measure, rankings)
        divisors = weighed.divisor_of(measure, rankings, own)
        divisor = None if divisors is None else float(divisors[0])
        rankings, measure = own, weighed.plain_of(measure)
    elif measure.definition.way == "pooled" and measure.rel >= 0:
        rankings = rankings._with_pooled or rankings
    if measure.definition.fold in ("preference", "inferred"):
        return _by_truncation(measure, rankings)
    if measure.definition.fold == "mean of hits":
        return _from_kernels(measure(denominator="n_relevant"), rankings, _hits(measure, rankings))
    return _from_kernels(measure, rankings, divisor)


def _hits(measure: Measure, rankings: Rankings) -> float:
    """The number of relevant documents that the measure finds. Raises `MeasureError` if ties decide it."""
    same = {name: measure.params[name] for name in ("rel", "judged_only", "unjudged")}
    found = NumRet(**same) if measure.cutoff is None else NumRet(**same) @ measure.cutoff
    orders: tuple[Ties, ...] = ("worst", "best") if measure.ties == "average" else (measure.ties,)
    numbers = launch.score(tuple(found(ties=ties) for ties in orders), rankings, 1)[:, 0]
    if numbers[0] != numbers[-1]:
        raise MeasureError(
            f"{measure} divides by the number of relevant documents found, which changes with the order "
            'of tied documents. Explain it with ties="input", "worst" or "best"'
        )
    return float(numbers[0])


def _check(measure: Measure) -> None:
    definition = measure.definition
    if definition.ranking != "system":
        raise MeasureError(
            f"{measure} looks at no ranking, so no rank adds anything to it. Explain nDCG, or another measure"
        )
    if definition.way == "intents":
        raise MeasureError(
            f"{measure} is of several intents, of which each has a sum of its own. "
            "Explain a measure of one grade for each document, as nDCG"
        )
    what = {"interpolated": "the greatest precision", "pairs": "a share of pairs"}.get(definition.fold)
    if what or definition.over == "set":
        what = what or "a product"
        raise MeasureError(f"{measure} is {what} and no sum over ranks. Explain AP, or P with a cutoff")
    if measure.params.get("floor") == "worst":
        raise MeasureError(f"{measure} has a value for no document. Explain it with floor='zero', or DCG")


# ---- terms from the kernels ----


def _run(
    rows: Sequence[tuple[int, ...]], more: Float64, whole: Plan, coding: Any, rankings: Rankings
) -> Float64:
    """Values of `rows`, which replace the rows of a plan; `more` are further discounts."""
    tables_of_rows = whole._replace(
        rows=freeze(rows, np.int64),
        weights=freeze(np.zeros(len(rows)), np.float64),
        discounts=freeze(np.concatenate([whole.discounts, more]), np.float64),
        skippable=False,
    )
    out = np.empty((len(rows), 1))
    launch.run_one(tables_of_rows, coding, rankings, out)
    values: Float64 = out[:, 0]
    return values


def _from_kernels(measure: Measure, rankings: Rankings, divisor: float | None) -> Ranks:
    whole, coding = plan.build((measure,), rankings)
    list_, discount, ideal, cutoff, _, _, over, total = whole.rows[0].tolist()
    width, n_discounts = whole.discounts.shape[1], len(whole.discounts)
    n = min(whole.depth, rankings.n_docs)
    nothing, never = n_discounts, tables.NEVER
    # the number of ranks, the number of relevant documents, and the list up to each rank
    rows = [
        (list_, nothing, -1, tables.UNCUT, never, 0, tables.LEFT, -1),
        (list_, nothing, -1, 1, never, 1, tables.POOL_TOTAL, total),
    ]
    rows += [(list_, -1, -1, rank + 1, never, rank + 2, tables.AS_IS, -1) for rank in range(n)]
    shown, relevant, *of_ranks = _run(rows, np.zeros((1, width)), whole, coding, rankings).tolist()
    if cutoff == tables.AT_RELEVANT:
        cutoff = int(relevant)
    stop = min(int(shown), n, cutoff)
    added = np.array(of_ranks[:stop], np.float64)
    ideal_gain = np.empty(0)
    if ideal >= 0:
        ideal_gain = _ideal_gains(ideal, min(cutoff, whole.ideal_depth), whole, coding, rankings)
    weights = whole.discounts[discount] if discount >= 0 else np.ones(max(stop, len(ideal_gain)) + 1)
    if discount >= 0:
        totals = _running(added * weights[:stop])
    else:
        totals, added = added, np.diff(added, prepend=0.0)
    if over in (tables.LEFT, tables.SHARE_LEFT):
        totals, added = np.arange(1.0, stop + 1) - totals, 1.0 - added
    ideal_contribution = ideal_gain * weights[: len(ideal_gain)]
    best = _running(ideal_contribution)[-1] if len(ideal_gain) else np.nan
    if divisor is not None:
        best = divisor
    tail = float(weights[stop]) if over == tables.RESIDUAL else 0.0
    weight = float(whole.weights[0])
    scale, places = _scale(over, best, cutoff, stop, relevant, weight, divisor)
    with np.errstate(divide="ignore", invalid="ignore"):
        running = (totals * scale) / places if places is not None else totals * scale
        parts = added * weights[:stop] * scale
        parts = parts if places is None else parts / places
        ideal_parts = ideal_contribution / best if len(ideal_gain) and best else ideal_contribution
    if over == tables.RESIDUAL:
        running = running + tail
    finite = places is None or places != 0
    return Ranks(
        added,
        weights[:stop],
        running if finite else np.zeros(stop),
        parts if finite else np.zeros(stop),
        ideal_gain,
        ideal_parts,
        float(best),
        tail,
    )


def _scale(
    over: int, best: float, cutoff: int, shown: int, relevant: float, weight: float, divisor: float | None
) -> tuple[float, float | None]:
    """The factor and the divisor of a sum, as in `kernels.sums.divide`; None where nothing divides it."""
    if divisor is not None or over == tables.BY_IDEAL:
        return 1.0, best
    if over in (tables.AS_IS, tables.LEFT):
        return 1.0, None
    if over in (tables.SCALED, tables.RESIDUAL):
        return weight, None
    places = float(shown if cutoff == tables.UNCUT or over >= tables.BY_FEWER_RETURNED else cutoff)
    if over == tables.BY_RELEVANT:
        return 1.0, relevant
    if over in (tables.BY_FEWER, tables.BY_FEWER_RETURNED):
        return 1.0, min(places, relevant)
    if over == tables.WEIGHTED:
        return 1.0 + weight, weight * relevant + places
    return 1.0, places


def _running(parts: Float64) -> Float64:
    """The sum up to each rank, added in the same order as in the kernels."""
    return np.cumsum(parts) + 0.0  # theirs begins with 0.0, so that it is never -0.0


def _ideal_gains(ideal: int, ranks: int, whole: Plan, coding: Any, rankings: Rankings) -> Float64:
    width, first_new = whole.discounts.shape[1], len(whole.discounts)
    gains: list[float] = []
    for first in range(0, ranks, _TOGETHER):
        last = min(first + _TOGETHER, ranks)
        alone = np.zeros((last - first, width))  # a discount of 1 for one rank, and 0 for all others
        alone[np.arange(last - first), np.arange(first, last)] = 1.0
        rows = [
            (-1, first_new + i, ideal, tables.UNCUT, tables.NEVER, i, tables.AS_IS, -1)
            for i in range(last - first)
        ]
        gains += _run(rows, alone, whole, coding, rankings).tolist()
    return np.trim_zeros(np.array(gains), "b")


# ---- folds whose list has only one number ----


def _by_truncation(measure: Measure, rankings: Rankings) -> Ranks:
    """The terms from lists that end after each tied group; its relevant documents share the increase."""
    ranked = tied_groups(rankings)
    order, ends = ranked.order, np.unique(ranked.first + ranked.size)
    _, pool = laid_out.pool(rankings)
    if int(ends.sum()) + len(ends) * len(pool) > _MOST_TRUNCATED:
        raise MeasureError(
            f"{measure} of a query of {rankings.n_docs:,} documents would take too long to explain; "
            "explain AP instead"
        )
    rows = np.concatenate([order[:end] for end in ends]) if len(ends) else order
    cut = Rankings._from_offsets(
        offsets_from(ends),
        rankings.relevance[rows],
        rankings.scores[rows],
        is_judged=None if rankings.is_judged is None else rankings.is_judged[rows],
        judged=(np.arange(len(ends) + 1) * len(pool), np.tile(pool, len(ends))),
    )
    values = np.nan_to_num(launch.score((measure,), cut, 1)[0])
    gains = worths.gains_of_documents(measure, rankings)[order] > 0
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    added = np.zeros(rankings.n_docs)
    running = np.zeros(rankings.n_docs)
    before = 0.0
    for start, end, value in zip(starts.tolist(), ends.tolist(), values.tolist(), strict=True):
        hits = int(gains[start:end].sum())
        added[start:end] = (value - before) / hits * gains[start:end] if hits else 0.0
        running[start:end] = before + np.cumsum(added[start:end])
        running[end - 1] = before = value
    return Ranks(added, np.ones(len(added)), running, added, np.empty(0), np.empty(0), np.nan, 0.0)


def tie_numbers(scores: npt.NDArray[Any]) -> Int64:
    """Number of the tied group of each document, from 0, by falling score."""
    _, codes = np.unique(scores, return_inverse=True)
    return np.asarray(codes.max(initial=0) - codes, np.int64)
