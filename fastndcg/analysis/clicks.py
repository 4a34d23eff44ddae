"""Click logs: examination probabilities by rank, and unbiased estimates for one ranker or two."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg import statistics
from fastndcg.analysis.compare import pairs_of
from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrow_types import array_of, combine, is_number
from fastndcg.common.table import Table
from fastndcg.errors import InputError, InputTypeError, MeasureError, known_arguments
from fastndcg.measures import CG, Measure, Measures, as_measures
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.inputs import read_columns, usual_columns
from fastndcg.statistics.significance import Spread, check_confidence, t_quantile
from fastndcg.tables.roles import find_column, fitting

if TYPE_CHECKING:
    from fastndcg.common.arrays import Flags, Float64, Int64
    from fastndcg.sources.streams import TableStream

# names by which columns are found, without case and separators
_NAMES = {
    "shown": ("shown", "impressions", "views"),
    "clicked": ("clicked", "clicks", "click"),
    "swapped": ("swapped", "swappedwith"),
}
_COLUMNS = {
    **dict.fromkeys(("measure", "system", "baseline"), pa.string()),
    **dict.fromkeys(("difference", "low", "high"), pa.float64()),
    "queries": pa.int64(),
    "effective": pa.float64(),
}


class Estimate(NamedTuple):
    """The result of `snips` for a measure."""

    measure: Measure
    ips: float  # mean over queries of the weighted sums
    snips: float  # weighted sums of all queries over their weights; NaN without any weight
    queries: int
    # effective sample size: (sum of weights)^2 / sum of their squares
    effective_queries: float


@known_arguments
def snips(
    rankings: Rankings | TableStream, measures: Measures, *, threads: int | None = None
) -> list[Estimate]:
    """Compute inverse-propensity-scored and self-normalised estimates over all queries.

    With w_d = 1 / max(propensity_d, clip), over the documents d of the queries q and the measure's discount:

        ips   = 1/n_queries * sum over q, d of gain_d * w_d * discount(rank of d)
        snips = sum over q, d of gain_d * w_d * discount(rank of d) / sum over q, d of gain_d * w_d

    `ips` estimates the mean of the measure over queries without bias if every propensity is right and none is
    below `clip`. `snips` estimates the mean discount of a unit of gain: it is consistent, slightly biased,
    always within the discounts, and varies less. It has the scale of the discounts, not of the measure, since
    its divisor sums the weighted gains of all queries. Measures with ips='snips' divide within each query
    instead: in a query with one click, the propensity cancels, and with it the correction.

    If `effective_queries` is far below the number of queries, few queries decide the result: raise `clip`,
    which lowers the variance and adds a bias towards 0, or collect more data.

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
    MeasureError, InputError
        A measure that does not take `ips`; rankings without propensities.

    See Also
    --------
    evaluate : the values of each query, with `DCG(ips=True)` and its relatives.
    compare_clicks : the difference of two rankers, with its interval.

    References
    ----------
    Joachims, Swaminathan and Schnabel, WSDM 2017 (ips); Swaminathan and Joachims, NIPS 2015 (snips).

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> clicks = Rankings.from_lists([[1, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], propensity=[1, 0.5, 1, 0.5])
    >>> for estimate in snips(clicks, "DCG@10"):
    ...     print(estimate.measure, round(estimate.ips, 4), round(estimate.snips, 4))
    DCG(ips=True)@10 1.1309 0.754
    """
    asked = as_measures(measures)
    weighted, totals = _weighted(asked)
    scores = evaluate(rankings, list(dict.fromkeys([*weighted.values(), *totals.values()])), threads=threads)
    estimates = []
    for measure in asked:
        values, weights = scores[weighted[measure]], scores[totals[measure]]
        if scores.weight is not None:
            values, weights = values * scores.weight, weights * scores.weight
        total_weight = statistics.exact_sum(weights)
        ratio = float(statistics.exact_sum(values) / total_weight) if total_weight else float("nan")
        mean = scores.mean()[str(weighted[measure])]
        estimates.append(Estimate(weighted[measure], mean, ratio, scores.n_queries, _effective(weights)))
    return estimates


def _weighted(asked: tuple[Measure, ...]) -> tuple[dict[Measure, Measure], dict[Measure, Measure]]:
    """Return for each measure a measure of weighted gains, and one of their sum over all ranks."""
    for measure in asked:
        if "ips" not in measure.params:
            raise MeasureError(
                f"{measure} does not take ips, because only sums of gains have an unbiased estimate; "
                "expected DCG or CG"
            )
    weighted = {each: each(ips=True, empty=0) for each in asked}
    totals = {
        each: CG(**{name: weighted_measure.params[name] for name in CG.params})
        for each, weighted_measure in weighted.items()
    }
    return weighted, totals


def _effective(weights: Float64) -> float:
    """Return the effective sample size: the number of equal weights with the same variance."""
    squares = statistics.exact_sum(weights, weights)
    return float(statistics.exact_sum(weights) ** 2 / squares) if squares else 0.0


@known_arguments
def compare_clicks(
    systems: Mapping[str, Rankings],
    measures: Measures,
    *,
    baseline: str | None = None,
    confidence: float = 0.95,
    threads: int | None = None,
) -> Table:
    """Estimate differences between rankers from one click log, self-normalised as in `snips`.

    The difference of the two rankers' `snips`, which varies less than each of them:

        sum over q, d of gain_d * w_d * (discount by system - discount by baseline) / sum over gain_d * w_d

    The difference of the unbiased estimates `ips` is that of `compare` with `DCG(ips=True)`.

    Parameters
    ----------
    systems : mapping of names to Rankings with `propensity`
        The same documents with the scores of each ranker, as `with_scores` makes them.
    measures : one or several of DCG and CG, with `clip` if any; their own `ips` is ignored
    baseline : name, optional
        The system that all others are compared with. Default: every pair, and the earlier of the two is the
        baseline.
    confidence, threads : optional
        Confidence of the intervals, which are by Student's t over queries; threads as in `evaluate`.

    Returns
    -------
    Table
        measure, system, baseline, difference, its interval from low to high, queries and effective: the
        number of equally weighted queries that would vary as much.

    Raises
    ------
    MeasureError, InputError
        A measure that does not take `ips`; rankings without propensities, or of other documents.

    See Also
    --------
    snips : the estimates of one ranker.
    propensities : estimate propensities from the log.

    References
    ----------
    Swaminathan and Joachims, NIPS 2015.

    Examples
    --------
    >>> old = Rankings.from_lists([[1, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], propensity=[1, 0.5, 1, 0.5])
    >>> new = old.with_scores([0.9, 0.1, 0.1, 0.9])
    >>> compare_clicks({"old": old, "new": new}, "DCG@10")["difference"].to_pylist()
    [0.24604683...]
    """
    confidence = check_confidence(confidence)
    weighted, totals = _weighted(as_measures(measures))
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise InputError("expected a mapping of two systems or more, as in {'old': rankings, 'new': other}")
    first, *others = systems.values()
    for name, each in systems.items():
        if not isinstance(each, Rankings) or each.propensity is None:
            raise InputError(f'"{name}" is not Rankings with propensities; pass them as propensity=')
    for each in others:
        fields = ("offsets", "relevance", "propensity", "weight")
        same = all(np.array_equal(*(getattr(one, field) for one in (first, each))) for field in fields)
        if not same or not each.query_ids.equals(first.query_ids):
            raise InputError(
                "the systems differ in documents, clicks or propensities; "
                "derive one from the other with with_scores"
            )
    every, names = list(dict.fromkeys([*weighted.values(), *totals.values()])), [*map(str, systems)]
    scores = {str(name): evaluate(each, every, threads=threads) for name, each in systems.items()}
    rows = []
    for measure, weighted_measure in weighted.items():
        total = scores[names[0]][totals[measure]]
        weight = total if first.weight is None else total * first.weight
        for pair in pairs_of(names, baseline):
            difference = (scores[pair[0]][weighted_measure] - scores[pair[1]][weighted_measure]) / np.where(
                total > 0, total, 1.0
            )
            spread = Spread.of(difference, weight)
            ends = spread.interval(confidence)
            row = str(weighted_measure), *pair, spread.mean, *ends, first.n_queries, _effective(weight)
            rows.append(dict(zip(_COLUMNS, row, strict=True)))
    return Table(pa.Table.from_pylist(rows, pa.schema(_COLUMNS)), 3)


# ---- propensities ----


@known_arguments
def propensities(
    log: Any,
    *,
    rank: str | None = None,
    shown: str | None = None,
    clicked: str | None = None,
    swapped: str | None = None,
    query: str | None = None,
    confidence: float = 0.95,
) -> Table:
    """Estimate how likely users look at each rank, as a share of the first, from an experiment with swaps.

    The experiment swaps documents at random, each way equally often. A click needs a look at the rank, with
    the probability p of the rank, and a relevant document. Swapped documents are equally relevant at both
    ranks, so the ratio of clicks is the ratio of p:

        maximise sum over pairs g and ranks k of clicks_gk * log(shown_gk p_k / sum over j of shown_gj p_j)

    Parameters
    ----------
    log : a table of any library, a mapping of columns, or the path of a file
        A row for each time that a document was shown, or for many such times. Only documents that took part
        in swaps.
    rank, shown, clicked : column, optional
        The rank of the document, from 1; how often it was shown there, and clicked, as numbers or true and
        false. Default: columns with usual names; without one for `shown`, each row was shown once.
    swapped : column, optional
        The rank that this one was swapped with, such as 1 and k, or neighbors. Default: a column of this
        name; without one, the other rank of the query, if the rows of each query have two ranks; otherwise
        all ranks of the log are swapped with one another.
    query : column, optional
        The query or impression of a row: rows of one are not independent. Default: a column with a usual
        name.
    confidence : float
        Confidence of the intervals.

    Returns
    -------
    Table
        A row for each rank: `rank`; `propensity`, 1 for the first rank and at most 1; its interval from `low`
        to `high`, by Student's t of log p, clustered by query (without queries, each time that a document was
        shown is independent); and how often the rank was `shown` and `clicked`. The propensity is 0 where
        nothing was clicked, and NaN for a rank that no chain of swaps, with clicks at both of their ranks,
        connects with the first. `nDCG(discount=table["propensity"])` discounts by these.

    Raises
    ------
    InputError, InputTypeError, ColumnError
        Ranks that are not whole numbers from 1; counts that are missing, negative or not numbers; more clicks
        than times that a document was shown; no rows; data that is not a table; a column that is missing, or
        that several could be.

    See Also
    --------
    snips, compare_clicks : estimates from clicks with propensities.

    References
    ----------
    Craswell et al., WSDM 2008; Joachims, Swaminathan and Schnabel, WSDM 2017.

    Examples
    --------
    >>> log = {
    ...     "rank": [1, 2, 1, 3],
    ...     "swapped": [2, 1, 3, 1],
    ...     "shown": [1000, 1000, 800, 800],
    ...     "clicked": [300, 150, 200, 50],
    ... }
    >>> propensities(log)
    rank  propensity       low      high  shown  clicked
       1    1.000000  1.000000  1.000000   1800      500
       2    0.500000  0.419566  0.595854   1000      150
       3    0.250000  0.186294  0.335491    800       50
    """
    confidence = check_confidence(confidence)

    def find(names: list[str]) -> dict[str, str]:
        named = {"shown": shown, "clicked": clicked, "swapped": swapped}
        roles = {"rank": find_column(names, "rank", rank)} | usual_columns(names, _NAMES, named, "clicked")
        if query is not None or fitting(names, "query"):
            roles["query"] = find_column(names, "query", query)
        return roles

    columns = read_columns(log, find, ("rank", *_NAMES))
    if not (n := len(columns["rank"])):
        raise InputError("the log has no rows; expected a row for each time that a document was shown")
    numbers = {role: _numbers(role, columns[role]) for role in ("rank", *_NAMES) if role in columns}
    times = numbers.get("shown", np.ones(n))
    if (more := numbers["clicked"] > times).any():
        row = int(np.argmax(more))
        raise InputError(
            f"row {row} was clicked {numbers['clicked'][row]:g} times and shown {times[row]:g}; "
            "expected no more clicks than times that it was shown"
        )
    clusters = pair = None
    if "query" in columns:
        encoded = combine(columns["query"]).dictionary_encode(null_encoding="encode").indices
        clusters = array_of(encoded).astype(np.int64)
        pair = _pairs(clusters, numbers["rank"])
    if "swapped" in numbers:
        pair = np.sort([numbers["rank"], numbers["swapped"]], axis=0)
    groups = np.zeros(n, np.int64)
    if pair is not None:
        groups = np.unique(pair, axis=1, return_inverse=True)[1].ravel()
    ranks, places = np.unique(numbers["rank"].astype(np.int64), return_inverse=True)
    estimates = propensities_of(groups, places, times, numbers["clicked"], clusters, confidence)
    counts = [np.bincount(places, each) for each in (times, numbers["clicked"])]
    counts = [each.astype(np.int64) if (each == np.floor(each)).all() else each for each in counts]
    by_rank = [ranks, *(np.minimum(each, 1.0) for each in estimates), *counts]
    return Table(pa.table(by_rank, ["rank", "propensity", "low", "high", "shown", "clicked"]))


def _pairs(queries: Int64, ranks: Float64) -> Float64 | None:
    """Return the two ranks of each row's query, (2, n_rows); None if a query does not have two."""
    ends = np.full((2, int(queries.max()) + 1), np.inf)
    np.minimum.at(ends[0], queries, ranks)
    np.minimum.at(ends[1], queries, -ranks)
    pair = np.stack([ends[0], -ends[1]])[:, queries]
    return pair if ((ranks == pair).any(axis=0) & (pair[0] < pair[1])).all() else None


def _numbers(role: str, column: pa.ChunkedArray) -> Float64:
    """Check that ranks are at least 1 and other numbers at least 0, with none missing."""
    is_rank = role in ("rank", "swapped")
    expected = "ranks, whole numbers from 1" if is_rank else "numbers from 0"
    if not (is_number(column.type) or pa.types.is_boolean(column.type)):
        raise InputTypeError(f"the column for {role} holds {column.type}; expected {expected}")
    values = array_of(pc.fill_null(column.cast(pa.float64()), np.nan)).astype(np.float64)
    wrong = ~((values >= is_rank) & np.isfinite(values)) | (is_rank & (values != np.floor(values)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"the column for {role} has {values[row]:g} in row {row}; expected {expected}")
    return values


def propensities_of(
    groups: Int64, ranks: Int64, shown: Float64, clicked: Float64, clusters: Int64 | None, confidence: float
) -> tuple[Float64, Float64, Float64]:
    """Return the propensity of each rank, and its interval, from rows, (n_rows,): numbers of their group,
    rank and cluster from 0, and how often each was shown and clicked.

    A document of group g that is shown n_gk times at rank k is clicked n_gk p_k r_g times. Given the clicks
    of a group, r_g cancels, and the likelihood is concave in log p. The interval is one of log p with the
    sandwich error over clusters, or over single impressions.
    """
    n_ranks = int(ranks.max(initial=0)) + 1
    middle, low, high = (np.full(n_ranks, np.nan) for _ in range(3))
    cells, size = groups * n_ranks + ranks, (int(groups.max(initial=0)) + 1) * n_ranks
    n, c = (np.bincount(cells, each, size).reshape(-1, n_ranks) for each in (shown, clicked))
    # ranks with a finite p relative to the first: a path of swaps connects them, with clicks at both ends
    won = (c > 0).T.astype(np.int64) @ (n > 0) > 0
    known = _reached(won) & _reached(won.T)
    if not won[0].any():
        return middle, low, high
    never = won[known].any(axis=0) & (c.sum(axis=0) == 0)
    middle[known], middle[never], low[never] = 1.0, 0.0, 0.0
    low[0] = high[0] = 1.0
    free = np.flatnonzero(known)
    if len(free) == 1:
        return middle, low, high
    n, c = n[:, known], c[:, known]
    clicks, theta = c.sum(axis=1), np.zeros(len(free))
    for _ in range(100):  # Newton's method; the first p stays 1
        expected = n * np.exp(theta)
        shares = expected / np.maximum(expected.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        fitted = clicks @ shares
        curvature = (np.diag(fitted) - (shares.T * clicks) @ shares)[1:, 1:]
        step = np.append(0.0, np.linalg.lstsq(curvature, (c.sum(axis=0) - fitted)[1:], rcond=None)[0])
        theta += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-12:
            break
    rows = np.flatnonzero(known[ranks] & (shown > 0))
    g, k, shown, clicked = groups[rows], np.searchsorted(free, ranks[rows]), shown[rows], clicked[rows]
    rate = (clicks[:, None] * shares)[g, k] / n[g, k]
    if clusters is None:  # sum of squares over single impressions
        residual = np.sqrt(clicked * (1 - rate) ** 2 + np.maximum(shown - clicked, 0.0) * rate**2)
        clusters, n_clusters = np.arange(len(rows)), float(shown.sum())
    else:
        residual, clusters = clicked - shown * rate, np.unique(clusters[rows], return_inverse=True)[1]
        n_clusters = float(clusters.max() + 1)
    quantile = t_quantile(1 - confidence, n_clusters - 1)
    for place, row in enumerate(np.linalg.pinv(curvature), 1):
        influence = np.append(0.0, row)  # derivative of each rank's residual with respect to log p
        sums = np.bincount(clusters, residual * (influence[k] - (shares @ influence)[g]))
        error = math.sqrt(float(sums @ sums) * n_clusters / max(n_clusters - 1, 1))
        ends = np.exp(theta[place] + quantile * error * np.array([-1.0, 1.0]))
        middle[free[place]], (low[free[place]], high[free[place]]) = math.exp(theta[place]), ends
    return middle, low, high


def _reached(edges: Flags) -> Flags:
    """Return which ranks a path of edges connects with the first."""
    reached: Flags = np.arange(len(edges)) == 0
    while (further := reached | edges[reached].any(axis=0)).sum() > reached.sum():
        reached = further
    return reached
