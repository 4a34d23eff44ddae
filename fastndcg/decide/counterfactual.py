"""Estimates from click logs over all queries, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg import statistics
from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import as_array
from fastndcg.common.table import Table
from fastndcg.decide.matching import pairs_of
from fastndcg.errors import InputError, InputTypeError, MeasureError, check_choice, check_length
from fastndcg.measures import CG, Measure, Measures, as_measures
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.columns import Roles
from fastndcg.sources.given import open_any
from fastndcg.statistics.intervals import check_confidence
from fastndcg.statistics.paired import Controlled, Spread, controlled

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.sources.streams import RankingsStream

_COLUMNS = {
    **dict.fromkeys(("measure", "system", "baseline"), pa.string()),
    **dict.fromkeys(("difference", "low", "high", "weight"), pa.float64()),
    "queries": pa.int64(),
    "effective": pa.float64(),
}


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
    found = []
    for measure in asked:
        values, weights = scores[weighted[measure]], scores[totals[measure]]
        if scores.weight is not None:
            values, weights = values * scores.weight, weights * scores.weight
        whole = statistics.exact_sum(weights)
        ratio = float(statistics.exact_sum(values) / whole) if whole else float("nan")
        mean = scores.mean()[str(weighted[measure])]
        found.append(Estimate(weighted[measure], mean, ratio, scores.n_queries, _effective(weights)))
    return found


def _weighted(asked: tuple[Measure, ...]) -> tuple[dict[Measure, Measure], dict[Measure, Measure]]:
    """For each measure that of weighted gains, and that of their sum over all ranks."""
    for measure in asked:
        if "ips" not in measure.params:
            raise MeasureError(
                f"{measure} does not take ips: only sums of gains have an unbiased estimate; wanted DCG or CG"
            )
    weighted = {each: each(ips=True, empty=0) for each in asked}
    totals = {each: CG(**{name: own.params[name] for name in CG.params}) for each, own in weighted.items()}
    return weighted, totals


def _effective(weights: Float64) -> float:
    """The number of equal weights that vary as much."""
    squares = statistics.exact_sum_of_products(weights, weights)
    return float(statistics.exact_sum(weights) ** 2 / squares) if squares else 0.0


def compare_clicks(
    systems: Mapping[str, Rankings],
    measures: Measures,
    *,
    baseline: str | None = None,
    method: str = "ips",
    shown: npt.ArrayLike | str | None = None,
    model: npt.ArrayLike | str | None = None,
    log: Any = None,
    confidence: float = 0.95,
    threads: int | None = None,
) -> Table:
    """Estimate from one log of clicks by how much rankers differ, which varies less than each estimate.

    With g the gain of a document, p its propensity (or `clip`, if that is larger), s whether it was shown, m
    what a click model expects of it, and D its discount by the ranker minus that by the baseline, the mean
    over queries of

        "ips"             sum over d of g_d / p_d * D_d
        "control"         sum over d of (g_d - weight * s_d) / p_d * D_d + weight * sum over d of D_d
        "doubly_robust"   sum over d of (g_d - s_d * m_d) / p_d * D_d + sum over d of m_d * D_d

    or, for "snips", the sum of the first over all queries by that of g_d / p_d. All but "snips" have no bias
    if p is right, which then is the mean of s; "doubly_robust" has none either if the model is.

    Parameters
    ----------
    systems : mapping of names to Rankings with `propensity`
        The same documents with the scores of each ranker, as `with_scores` makes them.
    measures : one or several of DCG and CG, with `clip` if any; their own `ips` is ignored
    baseline : name, optional
        The system that all others are compared with. Default: every pair, and the earlier of the two is the
        baseline.
    method : "ips", "snips", "control" or "doubly_robust"
        "snips" has the scale of the discounts, as in the function `snips`. "control" subtracts a control
        variate of mean 0, with the weight that makes the variance the least.
    shown, model, log : (n_docs,), in the order of `relevance`, or columns of `log`, optional
        For the last two: 1 where the document was shown, or how likely its rank is to be looked at; 0 where
        it was not shown. It has to vary by chance: its mean is the propensity. Default: `is_judged`. For
        "doubly_robust": the gain that a click model expects of each document that is looked at.
        `log` is the table or file that the systems were read from, where these are names of columns.
    confidence, threads : optional
        Confidence of the intervals, which are by Student's t over queries; threads as in `evaluate`.

    Returns
    -------
    Table
        measure, system, baseline, difference, its interval from low to high, weight (that of the control
        variate), queries and effective: the number of equally weighted queries that would vary as much.

    Raises
    ------
    MeasureError, InputError
        A measure that does not take `ips`; rankings without propensities, or of other documents; `shown` or
        `model` that is missing, of another length, or not finite; a `log` of other queries, or none for the
        name of a column.

    See Also
    --------
    snips : the estimates of one ranker.
    propensities : estimate propensities from the log.

    References
    ----------
    Jeunen and Ustimenko, RecSys 2024, arXiv 2405.10024 (differences, "control"); Swaminathan and Joachims,
    NIPS 2015 ("snips"); Oosterhuis, TOIS 2023, arXiv 2203.17118 ("doubly_robust").

    Examples
    --------
    >>> old = Rankings.from_lists([[1, 0], [0, 1]], [[0.9, 0.1], [0.9, 0.1]], propensity=[1, 0.5, 1, 0.5])
    >>> new = old.with_scores([0.9, 0.1, 0.1, 0.9])
    >>> compare_clicks({"old": old, "new": new}, "DCG@10")["difference"].to_pylist()
    [0.36907024642854...]
    """
    check_choice("method", method, ("ips", "snips", "control", "doubly_robust"))
    confidence, asked = check_confidence(confidence), as_measures(measures)
    weighted, totals = _weighted(asked)
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise InputError("wanted a mapping of two systems or more, as in {'old': rankings, 'new': other}")
    first, *others = systems.values()
    for name, each in systems.items():
        if not isinstance(each, Rankings) or each.propensity is None:
            raise InputError(f'"{name}" is no Rankings with propensities; give them as propensity=')
    for each in others:
        fields = ("offsets", "relevance", "propensity", "weight")
        same = all(np.array_equal(*(getattr(one, field) for one in (first, each))) for field in fields)
        if not same or not each.query_ids.equals(first.query_ids):
            raise InputError("systems have other documents, clicks or propensities; make one by with_scores")
    names = [str(name) for name in systems]
    pairs = pairs_of(names, baseline)
    control = _per_document("shown", shown, first, log) if method in ("control", "doubly_robust") else None
    modelled = _per_document("model", model, first, log) if method == "doubly_robust" else None
    every = [*weighted.values(), *totals.values()]
    scores = [evaluate(each, list(dict.fromkeys(every)), threads=threads) for each in systems.values()]

    def sums(gains: Float64, measure: Measure, *, ips: bool) -> list[Float64]:
        """Sums of other gains over ranks, for each system."""
        plain = measure(gain="linear", rel=None, unjudged=None, ips=ips, clip=measure.clip if ips else 0)
        found = []
        for each in systems.values():
            other = Rankings._from_offsets(
                each.offsets, gains, each.scores, propensity=each.propensity, is_judged=each.is_judged
            )
            found.append(evaluate(other, plain, threads=threads)[plain])
        return found

    rows = []
    for measure, own in weighted.items():
        values = dict(zip(names, (each[own] for each in scores), strict=True))
        variates = dict.fromkeys(names, np.zeros(first.n_queries))
        if control is not None:
            seen = control if modelled is None else control * modelled
            propensity = np.asarray(first.propensity, np.float64)
            known = propensity / np.maximum(propensity, own.clip) if modelled is None else modelled
            sides = zip(names, sums(seen, own, ips=True), sums(known, own, ips=False), strict=True)
            variates = {name: found - expected for name, found, expected in sides}
        total = scores[0][totals[measure]] * (1.0 if first.weight is None else first.weight)
        for pair in pairs:
            apart, variate = (each[pair[0]] - each[pair[1]] for each in (values, variates))
            spread: Controlled | Spread
            if method == "control":
                both = None if first.weight is None else (first.weight, first.weight)
                spread = controlled(apart, variate, None, both)
            elif method == "snips":
                ratio = apart * (1.0 if first.weight is None else first.weight)
                spread = Spread.of(ratio / np.where(total > 0, total, 1.0), total)
            else:
                spread = Spread.of(apart - variate, first.weight)
            part = spread.weight if isinstance(spread, Controlled) else None
            ends = spread.interval(confidence)
            row = str(own), *pair, spread.mean, *ends, part, first.n_queries, _effective(total)
            rows.append(dict(zip(_COLUMNS, row, strict=True)))
    return Table(pa.Table.from_pylist(rows, pa.schema(_COLUMNS)), 3)


def _per_document(name: str, given: Any, rankings: Rankings, log: Any) -> Float64:
    """A number for each document."""
    if isinstance(given, str):
        if log is None:
            raise InputError(f"{name}={given!r} is the name of a column; give the table that has it as log=")
        roles = Roles(query=rankings.queries.column_names[0], relevance=given, score=given)
        opened = open_any(log)
        found = opened.choose(roles).read()
        same = np.array_equal(found.offsets, rankings.offsets)
        if not same or not found.query_ids.equals(rankings.query_ids):
            raise InputError(f"log has {found!r}, other queries or documents than the systems: {rankings!r}")
        given = found.relevance
    if given is None and name == "shown":
        given = rankings.is_judged
    if given is None:
        raise InputError(f"this method needs {name}=, a number for each document")
    given = given.to_pylist() if isinstance(given, pa.Array | pa.ChunkedArray) else given
    try:
        numbers = np.asarray(as_array(name, given), np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name} is a {type(given).__name__} of something else than numbers") from None
    check_length(name, len(numbers), rankings.n_docs, "document")
    if not (finite := np.isfinite(numbers)).all():
        raise InputError(f"{name} has a number that is not finite at position {int(np.argmin(finite))}")
    return numbers
