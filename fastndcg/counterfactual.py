"""Measures of click logs: gains divided by the probability that they could be observed, and how far to trust them.

What users click depends on what they see. Where each document's propensity, the probability that its relevance was observed,
is known, a gain divided by it counts for those that nobody saw, and DCG of such gains has the expectation of DCG of the true
ones. The weighted gains are laid out as `Rankings` and summed by the same kernels as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg import plan, statistics
from fastndcg.errors import InputError, MeasureError
from fastndcg.measures import CG, Measure
from fastndcg.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.scores import Scores
    from fastndcg.streams import RankingsStream

Float64 = npt.NDArray[np.float64]

_MOST_GAIN = 2.0**53  # beyond it float64 skips whole numbers


class Estimate(NamedTuple):
    """What `snips` returns for a measure."""

    measure: Measure
    ips: float  # mean over queries of the weighted sums
    snips: float  # weighted sums of all queries over their weights; NaN without any weight
    queries: int
    effective_queries: (
        float  # equally weighted queries that would vary as much: (sum of weights)^2 / sum of their squares
    )


def is_weighted(measure: Measure) -> bool:
    return bool(measure.params.get("ips"))


def score(
    measures: tuple[Measure, ...],
    rankings: Rankings,
    evaluate: Callable[[Rankings, tuple[Measure, ...]], Float64],
) -> Float64:
    """Values of measures with `ips`, (n_measures, n_queries); NaN where a query has none.

    Raises `InputError` for rankings without propensities, and for grades that a measure has no gain for.
    """
    if rankings.propensity is None:
        raise InputError(
            f"{measures[0]} needs the probability that each document was seen, and these rankings have none. Give propensity=, or "
            'name its column, as in propensity="propensity".'
        )
    values = np.empty((len(measures), rankings.n_queries))
    kinds = [(plan.worth_of(measure), measure.clip, measure.judged_only) for measure in measures]
    for kind in dict.fromkeys(kinds):
        rows = [row for row, other in enumerate(kinds) if other == kind]
        first = measures[rows[0]]
        plan.check(first, rankings)
        weighted = _weighted(first, rankings, rankings.propensity)
        sums = evaluate(weighted, tuple(_plain(measures[row]) for row in rows))
        total = evaluate(weighted, (CG(empty="nan"),))[0]
        for row, summed in zip(rows, sums, strict=True):
            values[row] = summed
            if measures[row].ips == "snips":
                with np.errstate(divide="ignore", invalid="ignore"):
                    values[row] = np.where(total > 0, summed / total, np.nan)
    return values


def _weighted(measure: Measure, rankings: Rankings, propensity: Float64) -> Rankings:
    """The same rankings, whose grades are the measure's gains over propensities."""
    gains = plan.gains_of_documents(measure, rankings) / np.maximum(propensity, measure.clip)
    if len(gains) and np.abs(gains).max() > _MOST_GAIN:
        row = int(np.argmax(np.abs(gains)))
        raise InputError(
            f"the propensity {propensity[row]:g} at {rankings.place(row)} makes a gain of {gains[row]:g} in {measure}, beside which "
            "all others vanish; bound it, as in clip=0.001"
        )
    pool = None
    if rankings.judged is not None:  # it says which queries are known, and nothing else
        pool = (rankings.judged.offsets, np.zeros(len(rankings.judged.relevance)))
    return Rankings.from_offsets(
        rankings.offsets,
        gains,
        rankings.scores,
        judged=pool,
        is_judged=rankings.is_judged if measure.judged_only else None,
    )


def _plain(measure: Measure) -> Measure:
    """The measure, of gains that are grades."""
    linear: dict[str, Any] = {"gain": "linear", "rel": None, "unjudged": None, "empty": "nan"}
    return measure(**linear, ips=False, clip=0)


def snips(
    rankings: Rankings | RankingsStream, measures: Any, *, threads: int | None = None
) -> list[Estimate]:
    """Inverse-propensity-scored and self-normalised estimates over all queries, and how much data they rest on.

    With w_d = 1 / max(propensity_d, clip), over the documents d of the queries q and the measure's discount:

        ips   = 1/n_queries * sum over q, d of gain_d * w_d * discount(rank of d)
        snips = sum over q, d of gain_d * w_d * discount(rank of d) / sum over q, d of gain_d * w_d

    `ips` estimates the mean of the measure over queries without bias if every propensity is right and none is below `clip`
    (Joachims, Swaminathan and Schnabel, WSDM 2017). `snips` estimates the mean discount of a unit of gain: it is consistent,
    slightly biased, always within the discounts, and varies less (Swaminathan and Joachims, NIPS 2015).

    The normaliser adds up what was clicked, so `snips` is not on the scale of the measure but on that of its discounts. Measures
    with ips='snips' normalise within each query instead: where it has one click, its propensity cancels, and with it the
    correction.

    The variance of both grows with the weights. Where `effective_queries` is far below the number of queries, few of them
    decide the result: cut weights with `clip`, which trades the variance for a bias towards 0, or collect more data.

    Parameters
    ----------
    rankings : Rankings with `propensity`, or a stream of them
    measures : one or several of DCG and CG, with `clip` if any; their own `ips` does not matter
    threads : int, optional

    Raises
    ------
    MeasureError
        A measure that does not take `ips`.
    InputError
        Rankings without propensities.

    Examples
    --------
    >>> clicks = Rankings.from_lists([[1, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], propensity=[1, 0.5, 1, 0.5])
    >>> for estimate in snips(clicks, "DCG@10"):
    ...     print(estimate.measure, round(estimate.ips, 4), round(estimate.snips, 4), round(estimate.effective_queries, 2))
    DCG(ips=True)@10 1.1309 0.754 1.8
    """
    from fastndcg.api import evaluate
    from fastndcg.measures import as_measures

    asked = as_measures(measures)
    for measure in asked:
        if "ips" not in measure.params:
            raise MeasureError(
                f"{measure} does not take ips: only sums of gains have an unbiased estimate; wanted DCG or CG"
            )
    weighted = {measure: measure(ips=True, empty=0) for measure in asked}
    totals = {
        measure: CG(**{name: every.params[name] for name in CG.params}) for measure, every in weighted.items()
    }
    scores = evaluate(rankings, list(dict.fromkeys([*weighted.values(), *totals.values()])), threads=threads)
    return [_estimate(weighted[measure], scores, totals[measure]) for measure in asked]


def _estimate(measure: Measure, scores: Scores, total: Measure) -> Estimate:
    values, weights = scores[measure], scores[total]
    if scores.weight is not None:
        values, weights = values * scores.weight, weights * scores.weight
    whole, squares = statistics.exact_sum(weights), statistics.exact_sum_of_products(weights, weights)
    return Estimate(
        measure,
        scores.mean()[str(measure)],
        float(statistics.exact_sum(values) / whole) if whole else float("nan"),
        scores.n_queries,
        float(whole**2 / squares) if squares else 0.0,
    )
