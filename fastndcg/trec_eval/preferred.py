"""Measures of preferences: pairs of documents of which judges prefer one, and whether a run has it above."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Flags, Float64, Int64, offsets_from, parts_of, runs_of
from fastndcg.errors import InputError
from fastndcg.rankings.blame import shown
from fastndcg.sources.sides import Side, name_of
from fastndcg.trec_eval.ranked import Ranked, ratio

# pairs that a measure is of: those of which the run has both documents, those of which it has one, all
RETURNED, IMPLIED, ALL = range(3)
_BLOCK = 1 << 18  # pairs that are counted at a time, of whole queries


class Preferences(NamedTuple):
    """Lines of preferences: in a subgroup of judges, a document is preferred to those of lower levels."""

    lines: Side  # its values are the levels; those above 0 are of relevant documents
    document: Int64  # a number for each document of a query, in the order of ids; grades are such numbers
    group: Int64  # of judges, in the order of their names
    subgroup: Int64


class Counts(NamedTuple):
    """Preferences of groups of judges, and pairs of documents, for `RETURNED`, `IMPLIED` and `ALL`."""

    found: Int64  # (3, 2, n_groups), possible and fulfilled preferences
    balanced: Int64  # (3, 2, n_groups), the same where others are as many as relevant documents
    pairs: Float64  # (3, n_queries), that some group ordered
    shares: Float64  # (3, n_queries), sums over pairs of the share of groups whose order the run has
    query: Int64  # of each group, (n_groups,)

    def total(self, of_groups: npt.NDArray[Any]) -> Float64:
        """Sum over the groups of each query, in their order."""
        return np.bincount(self.query, of_groups, self.pairs.shape[1]).astype(np.float64)

    def mean(self, of_groups: Float64) -> Float64:
        return self.total(of_groups) / np.bincount(self.query)


def share(counts: Counts, scope: int) -> Float64:
    possible, fulfilled = map(counts.total, counts.found[scope])
    return ratio(fulfilled, possible)


def share_of_pairs(counts: Counts, scope: int) -> Float64:
    return ratio(counts.shares[scope], counts.pairs[scope])


def share_of_groups(counts: Counts, scope: int) -> Float64:
    possible, fulfilled = counts.found[scope]
    return counts.mean(ratio(fulfilled, possible))


def balanced_share(counts: Counts, scope: int) -> Float64:
    """Compute the mean over groups. It is 0 if one of them has nothing to divide by, as in trec_eval."""
    possible, fulfilled = counts.balanced[scope]
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(counts.mean(fulfilled / possible))


class _Rows(NamedTuple):
    """Lines in the order of queries, groups, subgroups, falling levels and ranks."""

    row: Int64  # in the file
    query: Int64
    group: Int64
    rank: Int64  # of the document among the judged ones of its query, of which those returned come first
    level: npt.NDArray[Any]
    is_partial: Flags  # whether the group has several subgroups, from all of which its order follows
    to_worse: Int64  # rows from here to the first one of a lower level
    n_worse: Int64  # rows of lower levels in its subgroup


def count_preferences(ranked: Ranked, preferences: Preferences) -> Counts:
    """Count the pairs that a ranking, whose grades are numbers of documents, has in the order of judges.

    Raise `InputError`, with file and line, where a group of judges contradicts itself.
    """
    returned, query, rank = _places(ranked, int(preferences.document.max()) + 1)
    rows, of_group = _rows(preferences, query[preferences.document], rank[preferences.document])
    blocks = []
    sizes = np.bincount(rows.query, rows.n_worse, ranked.n_queries).astype(np.int64)
    for part in parts_of(offsets_from(sizes), _BLOCK):
        lines, groups = (
            slice(*np.searchsorted(each, [part.start, part.stop]).tolist()) for each in (rows.query, of_group)
        )
        block = _Rows._make(column[lines] for column in rows)
        block = block._replace(query=block.query - part.start, group=block.group - groups.start)
        blocks.append(_count(block, of_group[groups] - part.start, returned[part], preferences.lines))
    joined = [np.concatenate(each, axis=-1) for each in zip(*blocks, strict=True)]
    return Counts._make([*joined, of_group])


def _places(ranked: Ranked, n_documents: int) -> tuple[Int64, Int64, Int64]:
    """Judged documents that are returned, of each query; and query, or -1, and rank of each document."""
    is_judged = ranked.grades >= 0
    documents, first = np.unique(np.append(ranked.grades[is_judged], ranked.pool), return_index=True)
    queries = np.append(ranked.query[is_judged], ranked.pool_query)[first]
    by_rank = np.lexsort((first, queries))
    query, rank = np.full((2, n_documents), -1)
    query[documents] = queries
    rank[documents[by_rank]] = _ordinals(queries[by_rank])
    return np.bincount(ranked.query[is_judged], minlength=ranked.n_queries), query, rank


def _rows(preferences: Preferences, query: Int64, rank: Int64) -> tuple[_Rows, Int64]:
    """Lines of queries that count, in order, and the query of each group."""
    level, group, subgroup = preferences.lines.values, preferences.group, preferences.subgroup
    row = np.lexsort((rank, -level, subgroup, group, query))
    row = row[np.searchsorted(query[row], 0) :]
    query, rank, level, group, subgroup = (each[row] for each in (query, rank, level, group, subgroup))
    is_first = _starts(query, group)
    of_group, highest, lowest = query[is_first], level[is_first], level[_ends(is_first) - 1]
    group = np.cumsum(is_first) - 1
    is_partial = (np.bincount(group[_starts(group, subgroup)]) > 1)[group]
    # trec_eval takes -3 for no level yet: if it is the highest of a group, the lowest is lost
    kept = is_partial | (highest[group] != -3) | (level != lowest)
    columns = row, query, group, rank, level, is_partial, subgroup
    row, query, group, rank, level, is_partial, subgroup = (each[kept] for each in columns)
    worse = _ends(_starts(group, subgroup, level))
    n_worse, to_worse = _ends(_starts(group, subgroup)) - worse, worse - np.arange(len(row))
    return _Rows(row, query, group, rank, level, is_partial, to_worse, n_worse), of_group


def _starts(*columns: npt.NDArray[Any]) -> Flags:
    """Whether a row is the first one, or differs from the one before."""
    starts = np.ones(len(columns[0]), np.bool_)
    starts[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return starts


def _ends(starts: Flags) -> Int64:
    """Where the run of each row ends."""
    ends: Int64 = np.append(np.flatnonzero(starts)[1:], len(starts))[np.cumsum(starts) - 1]
    return ends


def _ordinals(groups: Int64) -> Int64:
    """The number of each row in its group, from 0; groups rise."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def _count(rows: _Rows, of_group: Int64, returned: Int64, lines: Side) -> tuple[npt.NDArray[Any], ...]:
    """The fields of `Counts` but the last, of some queries."""
    limit = returned[of_group]
    width = int(max(rows.rank.max(initial=0), limit.max(initial=0))) + 1
    key, at = rows.group * width + rows.rank, np.arange(len(rows.rank))
    given = np.array([np.repeat(at, rows.n_worse), runs_of(at + rows.to_worse, rows.n_worse)])
    is_partial = rows.is_partial[given[0]]
    _refuse(rows, lines, given[0], given[1], ~is_partial & (key[given[0]] == key[given[1]]))
    documents = _documents(rows, key, lines)
    followed = _follow(rows, key, given[:, is_partial], lines)
    better, worse = np.concatenate([given[:, ~is_partial], *followed], axis=1)
    group, upper, lower = rows.group[better], rows.rank[better], rows.rank[worse]
    is_met = (upper < lower) & (upper < limit[group])
    n_unseen = (upper >= limit[group]).astype(np.int64) + (lower >= limit[group])

    left_out, surplus, added = _balance(rows, documents, limit, width)
    is_left_out = np.isin(key, key[left_out])
    kinds = group * 2 + (is_left_out[better] | is_left_out[worse])
    kinds = np.bincount((kinds * 3 + n_unseen) * 2 + is_met, minlength=12 * len(limit))
    counts = kinds.reshape(-1, 2, 3, 2).cumsum(axis=2).transpose(1, 2, 3, 0)
    counts[:, :, 0] += counts[:, :, 1]
    balanced = counts[0] + counts[1] * (surplus >= 0)[:, None] + added

    # of a query with one group, none of whose lines are repeated, shares of pairs are 1 and 0: to add them
    # up as others took twice as long
    alone = key[documents[~rows.is_partial[documents]]]
    is_simple = np.bincount(of_group, minlength=len(returned)) == 1
    is_simple[of_group[alone[1:][alone[1:] == alone[:-1]] // width]] = False
    found, query = counts.sum(axis=0), of_group[group]
    pairs, shares = np.zeros((2, 3, len(returned)))
    for scope, each in enumerate(found * is_simple[of_group]):
        pairs[scope], shares[scope] = (np.bincount(of_group, total, len(returned)) for total in each)
    rest = ~is_simple[query]
    _add_pairs(query[rest], n_unseen[rest], upper[rest], lower[rest], pairs, shares)
    return found, balanced, pairs, shares


def _balance(rows: _Rows, documents: Int64, limit: Int64, width: int) -> tuple[Int64, Int64, Int64]:
    """What changes where of the others as many count as there are relevant documents, the first of them.

    Rows that are left out where there are more, relevant documents less others, (3, n_groups), and
    preferences that come in addition, (3, 2, n_groups).
    """
    level, group, rank = rows.level[documents], rows.group[documents], rows.rank[documents]
    is_partial, is_returned = rows.is_partial[documents], rank < limit[group]
    is_other = (level == 0) | ((level < 0) & ~is_partial)
    n_relevant, n_other = (
        np.array([np.bincount(group[each], minlength=len(limit)) for each in (kind, kind & is_returned)])
        for kind in (level > 0, is_other)
    )
    others = documents[is_other & is_partial]
    others = others[_ordinals(rows.group[others]) >= n_relevant[0, rows.group[others]]]
    # in a group without subgroups trec_eval leaves out all of the lowest level, and compares its first
    # documents with each of the group, themselves too
    lowest = np.flatnonzero(~rows.is_partial & (rows.n_worse == 0))
    keys, group, rank = (group * width + rank)[~is_partial], rows.group[lowest], rows.rank[lowest]
    surplus, most = (n_relevant - n_other)[[1, 0, 0]], n_relevant[[1, 0, 0]]  # of each scope
    added = n_relevant * np.maximum(surplus, 0)[:, None]
    for scope in (RETURNED, ALL):
        few = (surplus[scope, group] < 0) & (_ordinals(group) < most[scope, group])
        few &= (scope == ALL) | (rank < limit[group])
        start, end = group[few] * width, limit[group[few]] if scope == RETURNED else width
        for total, below in zip(added[scope], (end, np.minimum(rank, limit[group])[few]), strict=True):
            np.add.at(total, group[few], np.searchsorted(keys, start + below) - np.searchsorted(keys, start))
    return np.append(lowest, others), surplus, added


def _add_pairs(
    query: Int64, n_unseen: Int64, upper: Int64, lower: Int64, pairs: Float64, shares: Float64
) -> None:
    """Count pairs of documents, each once for a query, and add the shares of its groups that are met."""
    if not len(query):
        return
    first, second = np.minimum(upper, lower), np.maximum(upper, lower)
    n_queries, width = pairs.shape[1], int(second.max()) + 1
    # trec_eval adds pairs of two returned documents, then those of one, each by their ranks
    pair = ((n_unseen * n_queries + query) * width + first) * width + second
    pair = np.sort(pair * 2 + (upper < lower))
    starts = np.flatnonzero(_starts(pair >> 1))
    agreed = np.add.reduceat(pair & 1, starts) / np.diff(starts, append=len(pair))
    n_unseen, query = np.divmod(pair[starts] // (2 * width**2), n_queries)
    for scope in (RETURNED, IMPLIED, ALL):
        pairs[scope] += np.bincount(query[n_unseen <= scope], minlength=n_queries)
        is_added = n_unseen <= min(scope, IMPLIED)
        shares[scope] += np.bincount(query[is_added], agreed[is_added], n_queries)


def _documents(rows: _Rows, key: Int64, lines: Side) -> Int64:
    """Rows in the order of their keys, of groups with subgroups the last one of each document."""
    order = np.argsort(key, kind="stable")
    before, after = order[:-1], order[1:]
    is_again = rows.is_partial[after] & (key[before] == key[after])
    old, new = rows.level[before], rows.level[after]
    _refuse(rows, lines, before, after, is_again & (((old > 0) & (new == 0)) | ((old == 0) & (new > 0))))
    return np.append(before[~is_again], order[-1:])


def _follow(rows: _Rows, key: Int64, given: Int64, lines: Side) -> list[Int64]:
    """Better and worse rows of all preferences that follow from these, group by group, each (2, n)."""
    found = []
    for start, stop in pairwise([*np.flatnonzero(_starts(rows.group[given[0]])).tolist(), given.shape[1]]):
        of_group = given[:, start:stop].ravel()
        _, first, place = np.unique(key[of_group], return_index=True, return_inverse=True)
        follows, n_before = np.eye(len(first), dtype=np.float32), 0  # products of integers are slower
        follows[tuple(place.reshape(2, -1))] = 1
        while n_before < (n_now := int(np.count_nonzero(follows))):
            follows, n_before = (follows @ follows > 0).astype(np.float32), n_now
        np.fill_diagonal(follows, 0)
        both = np.flatnonzero((follows * follows.T).any(axis=0))
        if len(both):
            other = int(np.argmax(follows[both[0]] * follows[:, both[0]]))
            one, two = sorted(rows.row[of_group[first[[both[0], other]]]].tolist())
            raise InputError(
                f"{lines.place(two)}: the judges of its group prefer {name_of(lines, two)} to document "
                f"{shown(lines.docs[one])}, and that to this; give contrary preferences different groups"
            )
        found.append(of_group[first][np.array(np.nonzero(follows))])
    return found


def _refuse(rows: _Rows, lines: Side, some: Int64, others: Int64, flags: Flags) -> None:
    if not flags.any():
        return
    at = int(np.argmax(flags))
    first, second = sorted((int(rows.row[some[at]]), int(rows.row[others[at]])))
    raise InputError(
        f"{lines.place(second)}: {name_of(lines, second)} has the level {lines.values[second]:g}, and "
        f"{lines.values[first]:g} of the same judges at {lines.place(first)}; drop one of the two, or give "
        "it another group"
    )
