"""`catalogue`: which items users are shown, beyond how relevant they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg import statistics
from fastndcg.common.arrays import Array, Float64, Int64, offsets_from, runs_of
from fastndcg.common.table import Table
from fastndcg.decide.item_facts import Facts, Known, Lists, read_lists, whole
from fastndcg.errors import Argument, InputError, InputTypeError
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.slices import check_kept, column_names, groups_of
from fastndcg.sources.streams import RankingsStream
from fastndcg.statistics.intervals import check_confidence, normal_quantile
from fastndcg.statistics.resampling import bootstrap_interval, check_resamples

OF_ALL = ("coverage", "gini", "entropy", "personalisation")


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
    these measures. Tables of Spark, Dask and Ray have a function of the same name in their adapters.

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
    tail, unseen = check_tail(tail), None if unseen is None else whole("unseen", unseen)
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
    known = Facts.of(lists, Known.read(items, train, category, vector))
    users = np.flatnonzero(lists.lengths)
    values = known.of_users(lists, tail, unseen)
    distinct, parts = groups_by([lists.queries[name] for name in names], len(lists.lengths))
    rows: list[tuple[int, str, float, float, float]] = []
    for place, part in enumerate(parts):
        own = Shown.of(lists, np.intersect1d(part, users), known.codes)
        drawn = None if confidence is None else own.spreads(known.n_items, resamples, seed)
        for name, value in own.tally(np.ones(len(own.lengths))).values(known.n_items).items():
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
    return table_of(names, distinct, rows, ("value", "low", "high") if confidence is not None else ("value",))


def check_tail(tail: float) -> float:
    if not isinstance(tail, int | float) or isinstance(tail, bool) or not 0 < tail < math.inf:
        raise InputError(f"tail={tail!r} is no share of the items and no count of interactions, as 0.1 or 5")
    return tail


def groups_by(columns: Sequence[pa.ChunkedArray], n: int) -> tuple[list[pa.Array], list[Int64]]:
    """As `groups_of`; without columns all n rows are one group."""
    return groups_of(columns) if columns else ([], [np.arange(n)])


def table_of(
    by: Sequence[str], distinct: Sequence[pa.Array], rows: Sequence[Any], numbers: Sequence[str] = ("value",)
) -> Table:
    """The result of `catalogue`, from rows of the number of a group, a measure, and numbers."""
    of_rows = pa.array([row[0] for row in rows], pa.int64())
    table = {name: column.take(of_rows) for name, column in zip(by, distinct, strict=True)}
    table["measure"] = pa.array([row[1] for row in rows], pa.string())
    for place, name in enumerate(numbers):
        table[name] = pa.array([row[2 + place] for row in rows], pa.float64())
    return Table(pa.table(table), len(by) + 1)


class Tally(NamedTuple):
    """How often items are shown. The tallies of parts of the items add up to exactly that of all.

    >>> one, other = Tally.of({2: np.array([1.0, 3.0])}), Tally.of({2: np.array([2.0])})
    >>> one + other == Tally.of({2: np.array([1.0, 3.0, 2.0])})
    True
    """

    items: Counter[int]  # how many items are shown so many times
    entries: Counter[int]  # of lists of each length
    common: Counter[tuple[int, int]]  # sums over items of products of two lengths' times

    @classmethod
    def of(cls, by_length: Mapping[int, Float64]) -> Tally:
        """Of how often lists of each length have each item, (n_items,), which are whole numbers."""
        times = np.sum([*by_length.values()], axis=0) if by_length else np.zeros(0)
        values, numbers = np.unique(times[times > 0], return_counts=True)
        # sums of products of whole numbers are exact
        common = {(n, m): int(one @ other) for n, one in by_length.items() for m, other in by_length.items()}
        return cls(
            Counter(dict(zip(values.astype(np.int64).tolist(), numbers.tolist(), strict=True))),
            Counter({length: int(each.sum()) for length, each in by_length.items()}),
            Counter(common),
        )

    def __add__(self, other: Any) -> Tally:
        return Tally(*(one + another for one, another in zip(self, other, strict=True)))

    def values(self, n_items: int, alike: float | None = None) -> dict[str, float]:
        """The measures of all lists together; `alike` is the sum over users of the squares of how often each
        counts, by default once.
        """
        total = sum(self.entries.values())
        if not total:
            return dict.fromkeys(OF_ALL, math.nan)
        users = float(sum(entries // length for length, entries in self.entries.items()))
        alike = users if alike is None else alike
        below, spread = n_items - sum(self.items.values()), 0  # items that are shown less often
        for times, number in sorted(self.items.items()):
            spread += times * number * (2 * below + number - n_items)
            below += number
        times, numbers = np.array(sorted(self.items.items()), np.float64).T
        p = times / total
        bits = statistics.exact_sum_of_products(p * np.log2(p), numbers)
        common = math.fsum(
            float(found) / (n if n == m else math.sqrt(n * m)) for (n, m), found in self.common.items()
        )
        pairs = users**2 - alike
        personal = 1 - (common - alike) / pairs if pairs > 0 else math.nan  # a user is alike to itself
        shown = sum(self.items.values()) / n_items
        return dict(
            zip(OF_ALL, (shown, spread / (n_items * total), -float(bits) + 0.0, personal), strict=True)
        )


class Shown(NamedTuple):
    """The items of some users, by number; each user has at least one."""

    codes: Int64
    lengths: Int64

    @classmethod
    def of(cls, lists: Lists, users: Int64, codes: Int64) -> Shown:
        lengths = lists.lengths[users]
        return cls(codes[runs_of(offsets_from(lists.lengths)[:-1][users], lengths)], lengths)

    def tally(self, times: Float64) -> Tally:
        """How often items are shown where users count so many times."""
        weight, of_entries = np.repeat(times, self.lengths), np.repeat(self.lengths, self.lengths)
        return tally_of(of_entries, self.codes, weight)

    def spreads(self, n_items: int, resamples: int, seed: int) -> dict[str, float]:
        """Standard deviations of the measures over draws of as many users, with replacement."""
        random, n, draws = np.random.default_rng(seed), len(self.lengths), []
        if n < 2:
            return dict.fromkeys(OF_ALL, math.nan)
        for _ in range(resamples):
            times = np.bincount(random.integers(0, n, n), minlength=n).astype(np.float64)
            draws.append(self.tally(times).values(n_items, float((times**2).sum())))
        return {name: float(np.nanstd([draw[name] for draw in draws], ddof=1)) for name in OF_ALL}


def tally_of(lengths: Int64, codes: Int64, times: Array) -> Tally:
    """Of how often lists of some length have some item, each an entry."""
    n, by_length = int(codes.max(initial=-1)) + 1, dict[int, Float64]()
    for length in np.unique(lengths).tolist():
        of_length = lengths == length
        by_length[length] = np.bincount(codes[of_length], times[of_length], n).astype(np.float64)
    return Tally.of(by_length)
