"""Estimates from click logs over all queries, and how far to trust them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fastndcg import statistics
from fastndcg.api.evaluate import evaluate
from fastndcg.errors import MeasureError
from fastndcg.measures import CG, Measure, Measures, as_measures

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores
    from fastndcg.sources.streams import RankingsStream


class Estimate(NamedTuple):
    """The result of `snips` for a measure."""

    measure: Measure
    ips: float  # mean over queries of the weighted sums
    snips: float  # weighted sums of all queries over their weights; NaN without any weight
    queries: int
    # equally weighted queries that would vary as much: (sum of weights)^2 / sum of their squares
    effective_queries: float


def snips(
    rankings: Rankings | RankingsStream, measures: Measures, *, threads: int | None = None
) -> list[Estimate]:
    """Compute inverse-propensity-scored and self-normalised estimates over all queries, and their effective
    sample size.

    With w_d = 1 / max(propensity_d, clip), over the documents d of the queries q and the measure's discount:

        ips   = 1/n_queries * sum over q, d of gain_d * w_d * discount(rank of d)
        snips = sum over q, d of gain_d * w_d * discount(rank of d) / sum over q, d of gain_d * w_d

    `ips` estimates the mean of the measure over queries without bias if every propensity is right and none is
    below `clip` (Joachims, Swaminathan and Schnabel, WSDM 2017). `snips` estimates the mean discount of a
    unit of gain: it is consistent, slightly biased, always within the discounts, and varies less (Swaminathan
    and Joachims, NIPS 2015).

    The divisor of `snips` sums the weighted gains of all queries, so `snips` has the scale of the discounts,
    not of the measure. Measures with ips='snips' divide within each query instead: in a query with one click,
    the propensity cancels, and with it the correction.

    The variance of both grows with the weights. If `effective_queries` is far below the number of queries,
    few queries decide the result: raise `clip`, which lowers the variance and adds a bias towards 0, or
    collect more data.

    Parameters
    ----------
    rankings : Rankings with `propensity`, or a stream of them
    measures : one or several of DCG and CG, with `clip` if any; their own `ips` is ignored
    threads : int, optional

    Returns
    -------
    list of Estimate
        One for each measure, in the order asked for.

    Raises
    ------
    MeasureError
        A measure that does not take `ips`.
    InputError
        Rankings without propensities.

    See Also
    --------
    evaluate : the values of each query, with `DCG(ips=True)` and its relatives.

    References
    ----------
    Joachims, Swaminathan and Schnabel, WSDM 2017; Swaminathan and Joachims, NIPS 2015.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> clicks = Rankings.from_lists([[1, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], propensity=[1, 0.5, 1, 0.5])
    >>> for estimate in snips(clicks, "DCG@10"):
    ...     print(estimate.measure, round(estimate.ips, 4), round(estimate.snips, 4))
    DCG(ips=True)@10 1.1309 0.754
    """
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
