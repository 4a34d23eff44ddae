"""What users are shown: the items of their first ranks, and measures of all lists together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg import statistics
from fastndcg.common.arrays import offsets_from, runs_of
from fastndcg.common.arrow_types import array_of, decode
from fastndcg.errors import Argument, InputError, count_of
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.columns import check_column, find_column, fitting
from fastndcg.sources.given import read_columns

if TYPE_CHECKING:
    from fastndcg.sources.streams import RankingsStream

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

OF_ALL = ("coverage", "gini", "entropy", "personalisation")


class Lists(NamedTuple):
    """The first ranks of each user."""

    ids: pa.ChunkedArray  # items, one list after the other
    lengths: Int64  # (n_users,)
    queries: pa.Table
    others: pa.ChunkedArray | None  # all documents, each at least once, where they are the catalogue

    def part(self, users: Int64, codes: Int64) -> Shown:
        lengths = self.lengths[users]
        return Shown(codes[runs_of(offsets_from(self.lengths)[:-1][users], lengths)], lengths)


def lists_of(rankings: Rankings | RankingsStream, k: int, *, everything: bool) -> Lists:
    ids, lengths, queries, others = [], [], [], []
    for part in [rankings] if isinstance(rankings, Rankings) else rankings:
        if part.doc_ids is None:
            raise InputError(
                "the rankings have no doc_ids, and the catalogue is a matter of items; name their "
                "column, as in ",
                Argument("doc_id", "item_id"),
            )
        shown = np.minimum(part.lengths, k)
        plain = decode(
            pa.chunked_array([part.doc_ids]) if isinstance(part.doc_ids, pa.Array) else part.doc_ids
        )
        ids.append(plain.take(pa.array(_first_rows(part, k))))
        lengths.append(shown)
        queries.append(part.queries)
        if everything:
            others.append(pa.chunked_array([plain.unique()]))
    if not ids:
        raise InputError("the stream has no users; give at least one list")
    joined = pa.concat_tables(queries).unify_dictionaries()
    return Lists(chain(ids), np.concatenate(lengths), joined, chain(others) if everything else None)


def _first_rows(rankings: Rankings, k: int) -> Int64:
    """Rows of the first k ranks of each query; equal scores keep their order."""
    shown = np.minimum(rankings.lengths, k)
    rows, starts = np.empty(int(shown.sum()), np.int64), offsets_from(shown)[:-1]
    for length in np.unique(rankings.lengths[rankings.lengths > 0]).tolist():
        queries = np.flatnonzero(rankings.lengths == length)
        # falling, as unsigned scores cannot be negated: the reverse of rising, from the last to the first
        places = rankings.offsets[queries][:, None] + np.arange(length)[::-1]
        first = np.argsort(rankings.scores[places], axis=1, kind="stable")[:, ::-1][:, :k]
        rows[starts[queries][:, None] + np.arange(min(length, k))] = np.take_along_axis(places, first, 1)
    return rows


def read_lists(data: Any, given: Mapping[str, str | None], by: Sequence[str]) -> Rankings:
    """The lists of a table or of files, which need no grades. A rank may stand for the score."""

    def find(names: list[str]) -> dict[str, str]:
        found = {role: find_column(names, role, given[role]) for role in ("query", "doc_id")}
        role = "rank" if given["score"] is None and not fitting(names, "score") else "score"
        role = role if given["rank"] is None else "rank"
        if role == "rank" and given["rank"] is None and not fitting(names, "rank"):
            role = "score"  # whose error says what is missing
        found[role] = find_column(names, role, given[role])
        return found | {f"by {name}": check_column(names, "by", name) for name in by}

    read = read_columns(data, find, ("score", "rank"))
    users = read["query"].combine_chunks().dictionary_encode()
    if users.null_count:
        raise InputError(f"{count_of(users.null_count, 'row')} without a user; name the user of each")
    codes = array_of(users.indices)
    order = np.argsort(codes, kind="stable")
    scores = array_of(read["score"] if "score" in read else pc.negate(read["rank"]))
    kept = {name: read[f"by {name}"] for name in by}
    for name, column in kept.items():
        values = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
        if len(np.unique(codes * (len(values) + 1) + array_of(values))) > len(users.dictionary):
            raise InputError(f'column "{name}" has several values for a user, whose lists it cannot slice')
    first = pa.array(order[np.cumsum(np.bincount(codes)) - np.bincount(codes)])
    return Rankings._from_offsets(
        offsets_from(np.bincount(codes)),
        np.zeros(len(codes), np.uint8),
        scores[order],
        doc_ids=read["doc_id"].take(pa.array(order)),
        query_ids=users.dictionary,
        queries=pa.table({name: column.take(first) for name, column in kept.items()}) if kept else None,
    )


def chain(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)


class Shown(NamedTuple):
    """The items of some users, by number; each user has at least one."""

    codes: Int64
    lengths: Int64

    def whole(self, n_items: int, times: Float64) -> dict[str, float]:
        """The measures of all lists together, where users count so many times."""
        weight = np.repeat(times, self.lengths)
        by_length = {}
        for length in np.unique(self.lengths).tolist():
            some = np.repeat(self.lengths == length, self.lengths)
            by_length[length] = np.bincount(self.codes[some], weight[some], n_items)
        counts = np.sum([*by_length.values(), np.zeros(n_items)], axis=0)
        shown = np.sort(counts[counts > 0])
        total, users = float(shown.sum()), float(times.sum())
        if not total:
            return dict.fromkeys(OF_ALL, math.nan)
        ranks = np.arange(n_items - len(shown) + 1, n_items + 1, dtype=np.float64)
        spread = statistics.exact_sum_of_products(2 * ranks - n_items - 1, shown) / (n_items * int(total))
        p = shown / total
        pairs = users**2 - float((times**2).sum())
        # sums of products of whole numbers are exact; a user is alike to itself
        common = [
            float(one @ other) / (n if n == m else math.sqrt(n * m))
            for n, one in by_length.items()
            for m, other in by_length.items()
        ]
        alike = math.fsum(common) - float((times**2).sum())
        found = (len(shown) / n_items, float(spread), -math.fsum((p * np.log2(p)).tolist()) + 0.0)
        personal = 1 - alike / pairs if pairs > 0 else math.nan
        return dict(zip(OF_ALL, (*found, personal), strict=True))

    def spreads(self, n_items: int, resamples: int, seed: int) -> dict[str, float]:
        """Standard deviations of the measures over draws of as many users, with replacement."""
        random, n = np.random.default_rng(seed), len(self.lengths)
        if n < 2:
            return dict.fromkeys(OF_ALL, math.nan)
        draws = [
            self.whole(n_items, np.bincount(random.integers(0, n, n), minlength=n).astype(np.float64))
            for _ in range(resamples)
        ]
        return {name: float(np.nanstd([draw[name] for draw in draws], ddof=1)) for name in OF_ALL}
