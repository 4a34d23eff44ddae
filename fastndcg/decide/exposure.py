"""`catalogue`: which items users are shown, beyond how relevant they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fastndcg import statistics
from fastndcg.common.table import Table
from fastndcg.decide.item_facts import Facts, Lists, read_lists, whole
from fastndcg.errors import Argument, InputError, InputTypeError
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.sources.streams import RankingsStream
from fastndcg.statistics.intervals import check_confidence, normal_quantile
from fastndcg.statistics.resampling import bootstrap_interval, check_resamples


def catalogue(
    rankings: Any,
    items: Any = None,
    train: Any = None,
    k: int = 10,
    *,
    by: str | Sequence[str] | None = None,
    confidence: float | None = None,
    tail: float = 0.1,
    unseen: int | None = 1,
    category: str | None = None,
    vector: str | None = None,
    resamples: int = 200,
    seed: int = 0,
    query: str | None = None,
    doc_id: str | None = None,
    score: str | None = None,
    rank: str | None = None,
) -> Table:
    """Measure which items the lists of users have on their first k ranks: how much of the catalogue, how
    evenly, how popular, new and varied they are, and how much users' lists differ.

    Let c_i be the number of users whose list has item i, of N items and U users with a list, and t_i the
    number of training users of item i, of T.

    Parameters
    ----------
    rankings : Rankings with `doc_ids`, a stream of them, a table or files
        A query for each user; grades do not matter. Documents with equal scores are taken in the order of the
        data.
    items : int, ids, or a table, optional
        How many items the catalogue has, or which (an array, a Series, a set; a list of texts is one of
        paths), or a table of their ids with categories (a text, or a list of them) or vectors. Default: the
        items of `train` and all documents of the rankings.
    train : mapping or table, optional
        What was seen in training: a mapping item -> count, a table of items and counts, or one with a row for
        each user and item.
    k, by : int; column or columns, optional
        How many ranks count; kept columns of the queries, for whose values there are rows.
    confidence, resamples, seed : float, optional; int
        For example 0.95: adds `low` and `high`, bootstrap intervals over users: percentiles for means over
        users; value ± z * the standard deviation over draws for coverage, gini, entropy and personalisation,
        whose values over drawn users lie to one side.
    tail, unseen : float; int or None
        The tail is this share of the items, those with the fewest counts, items of equal counts at its border
        in part; from 1 on, the items of at most so many. `unseen` is the count that an item without any in
        training is taken to have in novelty and surprise; None leaves such items out.
    category, vector, query, doc_id, score, rank : column, optional
        Columns of `items`, and of tables and files. Default: those with usual names, such as genres and
        embedding; a rank is taken where there is no score.

    Returns
    -------
    Table
        The columns `by`, then `measure` and `value`, and with `confidence` `low` and `high`. Rows, of which
        those of `train` and of features appear if these are given:

        - coverage: items with c_i > 0 / N (Ge, Delgado-Battenfeld and Jannach, RecSys 2010);
        - gini: sum over items by rising c_i of (2 rank_i - N - 1) c_i / (N sum of c_i): 0 where all items are
          shown as often, near 1 where few are all that is shown (Fleder and Hosanagar, Management Science
          2009);
        - entropy: - sum of p_i log2 p_i, p_i = c_i / sum of c_i, in bits (Shannon);
        - personalisation: 1 - mean over pairs of users of the cosine of their sets of items;
        - popularity: mean over users of the mean count in training of their items (Yin et al., PVLDB 2012);
        - tail_share: mean over users of the share of their items that are of the tail;
        - novelty: mean over users of the mean of -log2(t_i / T) of their items, in bits; T is the sum of
          counts where users are not known (Zhou et al., PNAS 2010);
        - surprise: the same / log2 T, from 0 to 1;
        - seen: mean over users of the share of their items that they had in training;
        - category_diversity, vector_diversity: mean over users of the mean over pairs of their items of 1 -
          the share of common categories (Jaccard), or 1 - the cosine; 0 for fewer than two items (Ziegler et
          al., WWW 2005).

    Raises
    ------
    InputError, ColumnError
        Rankings without `doc_ids`; items that are not of the catalogue; vectors of several lengths; a k,
        tail, unseen or confidence that is none; a column that is missing.

    See Also
    --------
    evaluate : how relevant the items are.

    Notes
    -----
    Coverage, gini and entropy depend on the number of users: compare them among as many. Intervals of 95 %
    held the value (of these three that of 300 users) in 93 to 98 % of 400 samples of 300 users out of 20,000,
    as bench/lists.py shows. Weights of queries have no part in it. docs/recipes.md has what other tools call
    these measures.

    Examples
    --------
    >>> shown = Rankings.from_lists([[1, 0], [0, 1]], doc_ids=["a", "b", "a", "c"], query_ids=["u", "v"])
    >>> catalogue(shown, items=4, train={"a": 3, "b": 1}, k=2)
    measure             value
    coverage         0.750000
    gini             0.375000
    entropy          1.500000
    personalisation  0.500000
    popularity       1.750000
    tail_share       0.050000
    novelty          1.207519
    surprise         0.603759
    """
    names, k = column_names(by or ()), whole("k", k)
    columns = {"query": query, "doc_id": doc_id, "score": score, "rank": rank}
    if not isinstance(tail, int | float) or isinstance(tail, bool) or not 0 < tail < math.inf:
        raise InputError(f"tail={tail!r} is no share of the items and no count of interactions, as 0.1 or 5")
    resamples, seed = check_resamples(resamples, seed)
    if confidence is not None:
        check_confidence(confidence)
    if not isinstance(rankings, Rankings | RankingsStream):
        rankings = read_lists(rankings, columns, names)
    elif any(columns.values()):
        raise InputTypeError(
            Argument(next(name for name, given in columns.items() if given)),
            f" is for tables and paths; {type(rankings).__name__} already has its columns",
        )
    lists = Lists.of(rankings, k, everything=items is None)
    check_kept(names, lists.queries.column_names)
    known = Facts.of(lists, items, train, category, vector)
    users = np.flatnonzero(lists.lengths)
    values = known.of_users(lists, tail, None if unseen is None else whole("unseen", unseen))
    distinct: list[pa.Array] = []
    parts = [np.arange(len(lists.lengths))]
    if names:
        distinct, parts = groups_of([lists.queries[name] for name in names])
    rows: list[tuple[int, str, float, float, float]] = []
    for place, part in enumerate(parts):
        own = lists.part(np.intersect1d(part, users), known.codes)
        drawn = None if confidence is None else own.spreads(known.n_items, resamples, seed)
        for name, value in own.whole(known.n_items, np.ones(len(own.lengths))).items():
            half = 0.0 if drawn is None else normal_quantile(confidence or 0.0) * drawn[name]
            top = math.inf if name == "entropy" else 1.0
            rows.append((place, name, value, max(value - half, 0.0), min(value + half, top)))
        for name, every in values.items():
            each = every[part][~np.isnan(every[part])]
            low = high = mean = statistics.mean(each) if len(each) else math.nan
            if confidence is not None:
                drawn_of = "percentile", max(resamples, 1000), seed
                low, high = bootstrap_interval(each, None, confidence, *drawn_of)
            rows.append((place, name, mean, low, high))
    of_rows = pa.array([row[0] for row in rows], pa.int64())
    table = {name: column.take(of_rows) for name, column in zip(names, distinct, strict=True)}
    table["measure"] = pa.array([row[1] for row in rows], pa.string())
    for place, name in enumerate(("value", "low", "high") if confidence is not None else ("value",)):
        table[name] = pa.array([row[2 + place] for row in rows], pa.float64())
    return Table(pa.table(table), len(names) + 1)
