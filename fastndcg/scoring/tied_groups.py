"""The documents of each query by falling score, in groups of equal scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from fastndcg.common.arrays import Int64
    from fastndcg.rankings.rankings import Rankings


class TiedGroups(NamedTuple):
    """Documents by query and falling score; each field is (n_docs,)."""

    order: Int64  # rows of the rankings
    query: Int64
    first: Int64  # rank from 0 of the first document of the tied group
    size: Int64  # documents of the tied group


def tied_groups(rankings: Rankings) -> TiedGroups:
    query = np.repeat(np.arange(rankings.n_queries), rankings.lengths)
    order = np.lexsort((-np.arange(rankings.n_docs), rankings.scores, -query))[::-1].astype(np.int64)
    rank = np.arange(rankings.n_docs) - rankings.offsets[query]
    scores = rankings.scores[order]
    begins = np.ones(rankings.n_docs, np.bool_)
    begins[1:] = (scores[1:] != scores[:-1]) | (query[1:] != query[:-1])
    starts, group = np.flatnonzero(begins), np.cumsum(begins) - 1
    size = np.diff(np.append(starts, rankings.n_docs))[group]
    return TiedGroups(order, query, rank[starts][group], size)
