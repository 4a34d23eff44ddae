"""How likely each rank is to be looked at, from clicks on what stood at several ranks.

A click needs a look at the rank and a relevant document (Craswell et al., WSDM 2008): of n_gk times that
something of group g stood at rank k, n_gk * p_k * r_g are clicked. Within a group, be it a document or a pair
of ranks that are exchanged at random, r_g is the same for all ranks; given the clicks of the group it
cancels, and the shares of its ranks are n_gk p_k / sum over j of n_gj p_j. Their likelihood is concave in
log p.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.statistics.intervals import t_quantile

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_CELLS = 1 << 22  # numbers of a dense part of the table of groups and ranks


class Looks(NamedTuple):
    """Of each rank: how likely it is to be looked at, as a share of the first rank, and an interval."""

    propensity: Float64  # 0 where nothing was clicked; NaN where no group leads to the first rank
    low: Float64
    high: Float64


class _Log(NamedTuple):
    """Rows of groups that were clicked at all, at two ranks or more; groups are numbered from 0."""

    groups: Int64
    ranks: Int64
    shown: Float64
    clicked: Float64
    clusters: Int64 | None

    def of(self, rows: Bools, n_ranks: int) -> _Log:
        """Those of these rows that say something."""
        log = self.take(rows)
        groups = np.unique(log.groups, return_inverse=True)[1]
        cells = np.unique(groups * n_ranks + log.ranks) // n_ranks
        says = (np.bincount(groups, log.clicked) > 0) & (
            np.bincount(cells, minlength=groups.max(initial=-1) + 1) > 1
        )
        log = log.take(says[groups])
        return log._replace(groups=np.unique(log.groups, return_inverse=True)[1])

    def take(self, rows: Any) -> _Log:
        columns = [None if column is None else column[rows] for column in self]
        return _Log._make(columns)


def looks(
    groups: Int64,
    ranks: Int64,
    shown: Float64,
    clicked: Float64,
    clusters: Int64 | None,
    confidence: float,
) -> Looks:
    """From rows, (n_rows,): the numbers of their group, rank and cluster from 0, and how often each was shown
    and clicked. The interval is that of log p with the sandwich's error over clusters, by Student's t;
    without clusters each time that a row was shown is one.
    """
    n_ranks = int(ranks.max(initial=0)) + 1
    found = Looks(*(np.full(n_ranks, np.nan) for _ in range(3)))
    log = _Log(groups, ranks, shown, clicked, clusters).of(shown > 0, n_ranks)
    clicks = np.bincount(log.ranks, log.clicked, n_ranks)
    # ranks whose p is finite beside the first: each was clicked where the other was shown, along some way
    won = _won(log, n_ranks)
    determined = _reached(won) & _reached(won.T) if clicks[0] else np.zeros(n_ranks, np.bool_)
    never = (clicks == 0) & (won[determined].any(axis=0) if determined.any() else determined)
    for ends in found:
        ends[never] = 0.0
    found.high[never] = np.nan
    found.propensity[determined], found.low[determined], found.high[determined] = 1.0, 1.0, 1.0
    free = np.flatnonzero(determined)
    if len(free) < 2:
        return found
    log = log._replace(ranks=np.cumsum(determined)[log.ranks] - 1).of(determined[log.ranks], len(free))
    theta, error, freedom = _fit(log, len(free))
    half = t_quantile(1 - confidence, freedom) * error
    for ends, value in zip(found, (theta, theta - half, theta + half), strict=True):
        ends[free[1:]] = np.exp(value)
    return found


def _parts(log: _Log, n_ranks: int) -> list[tuple[slice, _Log]]:
    """Groups in parts that fit, each with the rows of its groups, which are sorted by group."""
    order = np.argsort(log.groups, kind="stable")
    log = log.take(order)
    step, n = max(_CELLS // n_ranks, 1), int(log.groups.max(initial=-1)) + 1
    found = []
    for first in range(0, n, step):
        rows = slice(*np.searchsorted(log.groups, (first, first + step)).tolist())
        part = log.take(rows)
        found.append((rows, part._replace(groups=part.groups - first)))
    return found


def _table(log: _Log, values: Float64, n_ranks: int) -> Float64:
    """Sums by group and rank."""
    n = int(log.groups.max(initial=-1)) + 1
    sums = np.bincount(log.groups * n_ranks + log.ranks, values, n * n_ranks).astype(np.float64)
    return sums.reshape(n, n_ranks)


def _won(log: _Log, n_ranks: int) -> Bools:
    """Whether a rank (row) was clicked in a group in which another (column) was shown."""
    found = np.zeros((n_ranks, n_ranks))
    for _, part in _parts(log, n_ranks):
        clicked, shown = (_table(part, each, n_ranks) > 0 for each in (part.clicked, part.shown))
        found += clicked.T.astype(np.float64) @ shown
    return found > 0


def _reached(edges: Bools) -> Bools:
    """Which ranks edges lead to from the first."""
    reached = np.zeros(len(edges), np.bool_)
    reached[0] = True
    while (further := reached | edges[reached].any(axis=0)).sum() > reached.sum():
        reached = further
    return reached


def _fit(log: _Log, n_ranks: int) -> tuple[Float64, Float64, float]:
    """log p of all ranks but the first, by Newton's method; its error; degrees of freedom of this."""
    parts, theta = _parts(log, n_ranks), np.zeros(n_ranks)
    shown = [_table(part, part.shown, n_ranks) for _, part in parts]
    clicks = [np.bincount(part.groups, part.clicked).astype(np.float64) for _, part in parts]
    own = np.bincount(log.ranks, log.clicked, n_ranks).astype(np.float64)

    def likelihood(at: Float64) -> float:
        rest = sum(float(c @ np.log(n @ np.exp(at))) for n, c in zip(shown, clicks, strict=True))
        return float(own @ at) - rest

    def slopes(at: Float64) -> tuple[Float64, Float64]:
        slope, bend = own.copy(), np.zeros((n_ranks, n_ranks))
        for n, c in zip(shown, clicks, strict=True):
            shares = n * np.exp(at)
            shares /= shares.sum(axis=1, keepdims=True)
            slope -= c @ shares
            bend += np.diag(c @ shares) - (shares.T * c) @ shares
        return slope[1:], bend[1:, 1:]

    for _ in range(100):
        slope, bend = slopes(theta)
        step, before, size = (
            np.append(0.0, np.linalg.lstsq(bend, slope, rcond=None)[0]),
            likelihood(theta),
            1.0,
        )
        while likelihood(theta + size * step) < before - 1e-12 * abs(before) and size > 1e-9:
            size /= 2
        theta = theta + size * step
        if np.abs(size * step).max() < 1e-12:
            break
    spread, n_clusters = _spread(log, parts, theta, n_ranks)
    inverse = np.linalg.pinv(slopes(theta)[1])
    variance = np.diag(inverse @ spread[1:, 1:] @ inverse)
    return theta[1:], np.sqrt(variance * n_clusters / max(n_clusters - 1, 1)), n_clusters - 1.0


def _spread(log: _Log, parts: list[tuple[slice, _Log]], theta: Float64, n_ranks: int) -> tuple[Float64, int]:
    """Sum over clusters of the outer products of their slopes, and the number of clusters.

    The slope of a row is (its rank - shares of its group) * (clicks - those expected).
    """
    rest, worth = np.empty(len(log.ranks)), np.exp(theta)
    order = np.argsort(log.groups, kind="stable")
    shares = []
    for rows, part in parts:
        table = _table(part, part.shown, n_ranks) * worth
        whole = table.sum(axis=1)
        rate = np.bincount(part.groups, part.clicked) / whole
        rest[order[rows]] = part.clicked - part.shown * (worth[part.ranks] * rate[part.groups])
        shares.append(table / whole[:, None])
    own = np.arange(len(rest)) if log.clusters is None else log.clusters
    found, clusters = np.zeros((n_ranks, n_ranks)), np.unique(own, return_inverse=True)[1]
    n_clusters, step = int(clusters.max(initial=-1)) + 1, max(_CELLS // n_ranks, 1)
    if log.clusters is None:  # as large as the rests of all times that it was shown together
        rate = np.divide(log.clicked - rest, log.shown)
        rest = np.sqrt(log.clicked * (1 - rate) ** 2 + np.maximum(log.shown - log.clicked, 0.0) * rate**2)
    # where a group lies within one cluster, its rests add up to 0
    many = np.unique(log.groups * np.int64(n_clusters) + clusters) // n_clusters
    spans = np.bincount(many)[log.groups] > 1
    every = np.concatenate(shares)
    for first in range(0, n_clusters, step):
        here = np.flatnonzero((clusters >= first) & (clusters < first + step))
        place, n = clusters[here] - first, min(step, n_clusters - first)
        slope = np.bincount(place * n_ranks + log.ranks[here], rest[here], n * n_ranks).reshape(n, n_ranks)
        over = spans[here]
        keys, where = np.unique(place[over] * len(every) + log.groups[here][over], return_inverse=True)
        sums = np.bincount(where, rest[here][over])
        np.subtract.at(slope, keys // len(every), sums[:, None] * every[keys % len(every)])
        found += slope.T @ slope
    return found, n_clusters if log.clusters is not None else int(log.shown.sum())
