"""How likely each rank is to be looked at, from clicks on what stood at several ranks.

A click needs a look at the rank and a relevant document (Craswell et al., WSDM 2008): of n_gk times that
something of group g stood at rank k, n_gk * p_k * r_g are clicked. Within a group, be it a document or a pair
of ranks that are exchanged at random, r_g is the same for all ranks; given the clicks of the group it
cancels, and the shares of its ranks are n_gk p_k / sum over j of n_gj p_j. Their likelihood is concave in
log p.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.statistics.intervals import t_quantile

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Looks(NamedTuple):
    """Of each rank: how likely it is to be looked at, as a share of the first rank, and an interval."""

    propensity: Float64  # 0 where nothing was clicked; NaN where no group leads to the first rank
    low: Float64
    high: Float64


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


def _reached(edges: Bools) -> Bools:
    """Which ranks edges lead to from the first."""
    reached: Bools = np.arange(len(edges)) == 0
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
        size = np.bincount(self.groups)
        each = np.repeat(np.arange(len(pairs)), size[pairs % n_groups])
        first = np.cumsum(size) - size
        within = np.arange(len(each)) - np.searchsorted(each, each)
        of_group = order[first[pairs[each] % n_groups] + within]
        owners = np.concatenate([clusters, pairs[each] // n_groups])
        ranks = np.concatenate([self.ranks[cells], self.ranks[of_group]])
        places, where = np.unique(owners * self.n_ranks + ranks, return_inverse=True)
        slope = _sums(where, np.concatenate([rest, -sums[each] * shares[of_group]]))
        spread = _cross(places // self.n_ranks, places % self.n_ranks, slope, slope, self.n_ranks)[1:, 1:]
        inverse = np.linalg.pinv(self._bend(shares)[1:, 1:])
        variance = np.diag(inverse @ spread @ inverse) * n_clusters / max(n_clusters - 1, 1)
        return np.append(0.0, np.sqrt(variance)), n_clusters - 1
