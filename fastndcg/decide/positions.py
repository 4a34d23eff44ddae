"""`propensities`: how likely each rank is to be looked at, from interventions in a log of clicks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrays import Flags, Float64, Int64, offsets_from, runs_of
from fastndcg.common.arrow_types import array_of, combine, is_number
from fastndcg.common.table import Table
from fastndcg.errors import InputError, InputTypeError, check_choice
from fastndcg.sources.columns import find_column, fitting
from fastndcg.sources.given import read_columns, usual_columns
from fastndcg.statistics.intervals import check_confidence, t_quantile

# names by which columns are found, without case and separators
_NAMES = {
    "shown": ("shown", "impressions", "views"),
    "clicked": ("clicked", "clicks", "click"),
    "swapped": ("swapped", "swappedwith"),
}


def propensities(
    log: Any,
    *,
    rank: str | None = None,
    shown: str | None = None,
    clicked: str | None = None,
    method: str = "swap",
    query: str | None = None,
    doc_id: str | None = None,
    swapped: str | None = None,
    confidence: float = 0.95,
) -> Table:
    """Estimate how likely each rank is to be looked at, as a share of the first rank, from a log of clicks on
    what stood at several ranks.

    A click needs a look at the rank, with the probability p of the rank, and something relevant there. What
    was exchanged at random, or one and the same document, is equally relevant at all its ranks, so that the
    ratio of clicks is that of p:

        maximise sum over groups g and ranks k of clicks_gk * log(shown_gk p_k / sum over j of shown_gj p_j)

    The groups are pairs of exchanged ranks, or documents of queries.

    Parameters
    ----------
    log : a table of any library, a mapping of columns, or the path of a file
        A row for each time that a document was shown, or for many such times.
    rank, shown, clicked : column, optional
        The rank of the document, from 1; how often it was shown there, and clicked, as numbers or true and
        false. Default: columns with usual names; without one for `shown`, each row was shown once.
    method : "swap" or "intervention"
        "swap": the log of an experiment that exchanged documents at random, each way equally often, and holds
        only the documents that were exchanged. "intervention": the log of any rankers, of which several were
        used, so that the same documents of a query stood at different ranks; the relevance of a document must
        not depend on which.
    query, doc_id : column, optional
        For "intervention" the query and the document of a row. With "swap", the query or impression of a row:
        rows of one are not independent. Default: columns with usual names.
    swapped : column, optional
        For "swap": the rank that this one was exchanged with, as 1 and k, or neighbours. Default: a column of
        this name; without one, the other rank of the query, if the rows of each query stand at two ranks;
        else all ranks of the log are exchanged with one another.
    confidence : float
        Confidence of the intervals.

    Returns
    -------
    Table
        A row for each rank: `rank`; `propensity`, 1 for the first rank and at most 1; its interval from `low`
        to `high`, by Student's t of log p, the error over queries (without a column of them, over each time
        that something was shown); and how often the rank was `shown` and `clicked`. The propensity is 0 where
        nothing was clicked, and NaN for a rank that no chain of exchanges or documents, with clicks at both
        of their ranks, leads to from the first.

    Raises
    ------
    InputError, InputTypeError, ColumnError
        Ranks that are not whole numbers from 1; counts that are missing, negative or no numbers; more clicks
        than times that a document was shown; no rows; data that is no table; a column that is missing, or
        that several could be.

    See Also
    --------
    snips, compare_clicks : what to do with propensities.

    References
    ----------
    Craswell et al., WSDM 2008; Joachims, Swaminathan and Schnabel, WSDM 2017 (swaps); Agarwal et al., WSDM
    2019 (interventions of several rankers).

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
    check_choice("method", method, ("swap", "intervention"))
    confidence = check_confidence(confidence)
    given = {"shown": shown, "clicked": clicked, "swapped": swapped}

    def find(names: list[str]) -> dict[str, str]:
        roles = {"rank": find_column(names, "rank", rank)}
        roles |= usual_columns(names, _NAMES, given, "clicked")
        for role, own in (("query", query), ("doc_id", doc_id)):
            if own is not None or method == "intervention" or (role == "query" and fitting(names, role)):
                roles[role] = find_column(names, role, own)
        return roles

    columns = read_columns(log, find, ("rank", "shown", "clicked", "swapped"))
    if not (n := len(columns["rank"])):
        raise InputError("the log has no rows; wanted a row for each time that a document was shown")
    numbers = {role: _numbers(role, columns[role]) for role in ("rank", *given) if role in columns}
    for role in ("rank", "swapped") if "swapped" in numbers else ("rank",):
        wrong = (numbers[role] < 1) | (numbers[role] != np.floor(numbers[role]))
        if wrong.any():
            raise InputError(
                f"the column for {role} has {numbers[role][wrong][0]:g} in row {int(np.argmax(wrong))}; "
                "wanted ranks, whole numbers from 1"
            )
    ranks, place = np.unique(numbers["rank"].astype(np.int64), return_inverse=True)
    times = numbers.get("shown", np.ones(n))
    if (more := numbers["clicked"] > times).any():
        row = int(np.argmax(more))
        raise InputError(
            f"row {row} was clicked {numbers['clicked'][row]:g} times and shown {times[row]:g}; "
            "wanted no more clicks than times that it was shown"
        )
    queries = _codes(columns["query"]) if "query" in columns else None
    groups = np.zeros(n, np.int64)
    if method == "intervention" and queries is not None:
        documents = _codes(columns["doc_id"])
        groups = np.unique(queries * (documents.max() + 1) + documents, return_inverse=True)[1]
    else:
        pair = _pairs(queries, numbers["rank"]) if "swapped" not in numbers else None
        if "swapped" in numbers:
            pair = np.sort([numbers["rank"], numbers["swapped"]], axis=0)
        if pair is not None:
            groups = np.unique(pair, axis=1, return_inverse=True)[1].ravel()
    found = looks(groups, place, times, numbers["clicked"], queries, confidence)
    columns = {"rank": ranks} | {name: np.minimum(each, 1.0) for name, each in found._asdict().items()}
    for role, each in (("shown", times), ("clicked", numbers["clicked"])):
        counts = np.bincount(place, each)
        columns[role] = counts.astype(np.int64) if (counts == np.floor(counts)).all() else counts
    return Table(pa.table(columns))


def _pairs(queries: Int64 | None, ranks: Float64) -> Float64 | None:
    """The two ranks of the query of each row, (2, n_rows); None if a query has another number of ranks."""
    if queries is None:
        return None
    ends = np.full((2, int(queries.max()) + 1), np.inf)
    np.minimum.at(ends[0], queries, ranks)
    np.minimum.at(ends[1], queries, -ranks)
    pair = np.stack([ends[0], -ends[1]])[:, queries]
    return pair if ((ranks == pair).any(axis=0) & (pair[0] < pair[1])).all() else None


def _numbers(role: str, column: pa.ChunkedArray) -> Float64:
    """Numbers from 0, none missing."""
    if not (is_number(column.type) or pa.types.is_boolean(column.type)):
        raise InputTypeError(f"the column for {role} holds {column.type}; wanted numbers from 0")
    values = array_of(pc.fill_null(column.cast(pa.float64()), np.nan)).astype(np.float64)
    wrong = ~((values >= 0) & np.isfinite(values))
    if wrong.any():
        raise InputError(
            f"the column for {role} has a number that is missing, negative or infinite, in row "
            f"{int(np.argmax(wrong))}; wanted numbers from 0"
        )
    return values


def _codes(column: pa.ChunkedArray) -> Int64:
    encoded = combine(column).dictionary_encode(null_encoding="encode").indices
    return array_of(encoded).astype(np.int64)


# ---- from numbers to probabilities ----


class Looks(NamedTuple):
    """Of each rank: how likely it is to be looked at, as a share of the first rank, and an interval."""

    propensity: Float64  # 0 where nothing was clicked; NaN where no group leads to the first rank
    low: Float64
    high: Float64


def looks(
    groups: Int64, ranks: Int64, shown: Float64, clicked: Float64, clusters: Int64 | None, confidence: float
) -> Looks:
    """From rows, (n_rows,): the numbers of their group, rank and cluster from 0, and how often each was shown
    and clicked. Of n_gk times that something of group g stood at rank k, n_gk p_k r_g are clicked; given the
    clicks of a group its r_g cancels, and the likelihood is concave in log p. The interval is that of log p
    with the sandwich's error over clusters, or over each time that a row was shown, by Student's t.
    """
    n_ranks = int(ranks.max(initial=0)) + 1
    found = Looks(*(np.full(n_ranks, np.nan) for _ in range(3)))
    rows = np.flatnonzero(shown > 0)
    cells, of_rows = np.unique(groups[rows] * n_ranks + ranks[rows], return_inverse=True)
    groups, ranks = np.unique(cells // n_ranks, return_inverse=True)[1], cells % n_ranks
    n, c = (_sums(of_rows, each[rows], len(cells)) for each in (shown, clicked))
    # ranks whose p is finite beside the first: each was clicked where the other was shown, along some way
    won = _cross(groups, ranks, (c > 0).astype(np.float64), np.ones(len(c)), n_ranks) > 0
    determined = _reached(won) & _reached(won.T)
    if not won[0].any():
        return found
    never = won[determined].any(axis=0) & (_sums(ranks, c, n_ranks) == 0)
    for ends in found:
        ends[determined], ends[never] = 1.0, 0.0
    found.high[never] = np.nan
    free = np.flatnonzero(determined)
    kept = determined[ranks]
    if len(free) > 1:
        log = _Fit(groups[kept], np.cumsum(determined)[ranks[kept]] - 1, n[kept], c[kept], len(free))
        if clusters is None:
            error, freedom = log.error(np.arange(len(log.n)), n[kept], c[kept], None)
        else:
            rows = rows[kept[of_rows]]
            places = np.cumsum(kept)[of_rows[kept[of_rows]]] - 1
            error, freedom = log.error(places, shown[rows], clicked[rows], clusters[rows])
        half = t_quantile(1 - confidence, freedom) * error
        for ends, value in zip(found, (log.theta, log.theta - half, log.theta + half), strict=True):
            ends[free[1:]] = np.exp(value[1:])
    return found


def _sums(places: Int64, values: Float64, n: int = 0) -> Float64:
    """The sum of the values at each place."""
    return np.bincount(places, values, n).astype(np.float64)


def _cross(keys: Int64, ranks: Int64, left: Float64, right: Float64, n_ranks: int) -> Float64:
    """Sum over keys of the outer product of left and right, by rank; each rank once in a key."""
    order = np.argsort(keys, kind="stable")
    keys, ranks, left, right = keys[order], ranks[order], left[order], right[order]
    found = np.zeros(n_ranks * n_ranks)
    for step in range(int(np.bincount(keys).max(initial=0))):
        one = np.flatnonzero(keys[step:] == keys[: len(keys) - step])
        for a, b in ((one, one + step), (one + step, one))[: 1 + (step > 0)]:
            found += _sums(ranks[a] * n_ranks + ranks[b], left[a] * right[b], n_ranks * n_ranks)
    return found.reshape(n_ranks, n_ranks)


def _reached(edges: Flags) -> Flags:
    """Which ranks edges lead to from the first."""
    reached: Flags = np.arange(len(edges)) == 0
    while (further := reached | edges[reached].any(axis=0)).sum() > reached.sum():
        reached = further
    return reached


class _Fit:
    """log p of each rank, 0 for the first, where the likelihood is the greatest: by Newton's method."""

    def __init__(self, groups: Int64, ranks: Int64, n: Float64, c: Float64, n_ranks: int) -> None:
        self.groups, self.ranks, self.n, self.n_ranks = groups, ranks, n, n_ranks
        self.clicks = _sums(groups, c)[groups]
        own = _sums(ranks, c, n_ranks)
        self.theta = np.zeros(n_ranks)
        for _ in range(100):
            shares = self._shares(self.theta)
            slope = own - _sums(ranks, self.clicks * shares, n_ranks)
            step = np.append(0.0, np.linalg.lstsq(self._bend(shares)[1:, 1:], slope[1:], rcond=None)[0])
            self.theta = self.theta + step / max(1.0, float(np.abs(step).max()))
            if np.abs(step).max() < 1e-12:
                break

    def _shares(self, theta: Float64) -> Float64:
        """Of the clicks of its group, how many each cell is expected to have."""
        worth = self.n * np.exp(theta)[self.ranks]
        return worth / _sums(self.groups, worth)[self.groups]

    def _bend(self, shares: Float64) -> Float64:
        parts = np.sqrt(self.clicks) * shares
        whole = _sums(self.ranks, self.clicks * shares, self.n_ranks)
        return np.diag(whole) - _cross(self.groups, self.ranks, parts, parts, self.n_ranks)

    def error(
        self, cells: Int64, shown: Float64, clicked: Float64, clusters: Int64 | None
    ) -> tuple[Float64, float]:
        """The error of log p, and its degrees of freedom, from rows and the cells that they are of.

        The slope of a row is (its rank - shares of its group) * (clicks - those expected).
        """
        shares = self._shares(self.theta)
        rate = (self.clicks * shares / self.n)[cells]
        rest, n_clusters = clicked - shown * rate, float(shown.sum())
        if clusters is None:  # as large as the rests of all times that it was shown together
            clusters = np.arange(len(cells))
            rest = np.sqrt(clicked * (1 - rate) ** 2 + np.maximum(shown - clicked, 0.0) * rate**2)
        else:
            clusters = np.unique(clusters, return_inverse=True)[1]
            n_clusters = float(clusters.max() + 1)
        # each cluster and group, and then each of these with each cell of the group
        n_groups = int(self.groups.max()) + 1
        pairs, of_rows = np.unique(clusters * n_groups + self.groups[cells], return_inverse=True)
        sums, order = _sums(of_rows, rest), np.argsort(self.groups, kind="stable")
        size, group = np.bincount(self.groups), pairs % n_groups
        each = np.repeat(np.arange(len(pairs)), size[group])
        of_group = order[runs_of(offsets_from(size)[group], size[group])]
        owners = np.concatenate([clusters, pairs[each] // n_groups])
        ranks = np.concatenate([self.ranks[cells], self.ranks[of_group]])
        places, where = np.unique(owners * self.n_ranks + ranks, return_inverse=True)
        slope = _sums(where, np.concatenate([rest, -sums[each] * shares[of_group]]))
        spread = _cross(places // self.n_ranks, places % self.n_ranks, slope, slope, self.n_ranks)[1:, 1:]
        inverse = np.linalg.pinv(self._bend(shares)[1:, 1:])
        variance = np.diag(inverse @ spread @ inverse) * n_clusters / max(n_clusters - 1, 1)
        return np.append(0.0, np.sqrt(variance)), n_clusters - 1
