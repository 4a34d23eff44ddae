"""Items that users are shown, and what is known of them: counts in training, categories and vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg import statistics
from fastndcg.common.arrays import Flags, Float64, Int64, offsets_from
from fastndcg.common.arrow_types import array_of, decode
from fastndcg.common.table import name_of
from fastndcg.errors import Argument, ColumnError, InputError, count_of
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.columns import check_column, find_column, fitting
from fastndcg.sources.given import is_path, read_columns, usual_columns

if TYPE_CHECKING:
    from fastndcg.sources.streams import RankingsStream

# names by which columns are found, without case and separators
_NAMES = {
    "category": ("category", "categories", "categoryid", "genre", "genres", "topic", "topics", "tags"),
    "vector": ("vector", "vectors", "embedding", "embeddings"),
    "count": ("count", "counts", "interactions", "popularity", "frequency", "n"),
}
_ENTRIES = 1 << 22  # entries of a matrix of the features of some users' items


def whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name}={value!r} is no whole number from 1")
    return int(value)


class Lists(NamedTuple):
    """The first ranks of each user."""

    ids: pa.ChunkedArray  # items, one list after the other
    lengths: Int64  # (n_users,)
    queries: pa.Table
    others: pa.ChunkedArray | None  # all documents, each at least once, where they are the catalogue

    @classmethod
    def of(cls, rankings: Rankings | RankingsStream, k: int, *, everything: bool) -> Lists:
        ids, lengths, queries, others = [], [], [], []
        for part in [rankings] if isinstance(rankings, Rankings) else rankings:
            if part.doc_ids is None:
                raise InputError(
                    "the rankings have no doc_ids, and the catalogue is a matter of items; name their "
                    "column, as in ",
                    Argument("doc_id", "item_id"),
                )
            plain = decode(pa.chunked_array(part.doc_ids))
            ids.append(plain.take(pa.array(first_rows(part, k))))
            lengths.append(np.minimum(part.lengths, k))
            queries.append(part.queries)
            if everything:
                others.append(pa.chunked_array([plain.unique()]))
        if not ids:
            raise InputError("the stream has no users; give at least one list")
        joined = pa.concat_tables(queries).unify_dictionaries()
        return cls(_chain(ids), np.concatenate(lengths), joined, _chain(others) if everything else None)


def first_rows(rankings: Rankings, k: int) -> Int64:
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


def columns_of_lists(names: Sequence[str], given: Mapping[str, str | None]) -> dict[str, str]:
    """The columns of users, items, and scores or ranks. A rank may stand for the score."""
    found = {role: find_column(names, role, given[role]) for role in ("query", "doc_id")}
    no_score = given["score"] is None and not fitting(names, "score")
    role = "rank" if given["rank"] is not None or (no_score and fitting(names, "rank")) else "score"
    return found | {role: find_column(names, role, given[role])}


def read_lists(data: Any, given: Mapping[str, str | None], by: Sequence[str]) -> Rankings:
    """The lists of a table or of files, which need no grades."""

    def find(names: list[str]) -> dict[str, str]:
        kept = {f"by {name}": check_column(names, "by", name) for name in by}
        return columns_of_lists(names, given) | kept

    read = read_columns(data, find, ("score", "rank"))
    users = read["query"].combine_chunks().dictionary_encode()
    if users.null_count:
        raise InputError(f"{count_of(users.null_count, 'row')} without a user; name the user of each")
    codes = array_of(users.indices)
    order, counts = np.argsort(codes, kind="stable"), np.bincount(codes)
    scores = array_of(read["score"] if "score" in read else pc.negate(read["rank"]))
    kept = {name: read[f"by {name}"] for name in by}
    for name, column in kept.items():
        values = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
        if len(np.unique(codes * (len(values) + 1) + array_of(values))) > len(users.dictionary):
            raise InputError(f'column "{name}" has several values for a user, whose lists it cannot slice')
    first = pa.array(order[np.cumsum(counts) - counts])
    return Rankings._from_offsets(
        offsets_from(counts),
        np.zeros(len(codes), np.uint8),
        scores[order],
        doc_ids=read["doc_id"].take(pa.array(order)),
        query_ids=users.dictionary,
        queries=pa.table({name: column.take(first) for name, column in kept.items()}) if kept else None,
    )


def _chain(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)


class Known(NamedTuple):
    """What is given of the items of a catalogue."""

    number: int | None  # of items
    items: Mapping[str, pa.ChunkedArray]  # ids, and categories and vectors, or nothing
    train: Mapping[str, pa.ChunkedArray]  # ids, and counts or users, or nothing

    @classmethod
    def read(cls, items: Any, train: Any, category: str | None, vector: str | None) -> Known:
        number = whole("items", items) if _is_number(items) else None
        table = {} if items is None or number else _of_items(items, category, vector)
        return cls(number, table, {} if train is None else _of_train(train))

    @property
    def ids(self) -> list[pa.ChunkedArray]:
        return [each["doc_id"] for each in (self.items, self.train) if each]

    def check_number(self, shown: int) -> None:
        if self.number is not None and self.number < shown:
            raise InputError(f"items={self.number}, but {shown:,} different items are recommended")


class Facts(NamedTuple):
    """Items by number, and what is known of them."""

    codes: Int64  # of the items of lists
    n_items: int
    own: Flags  # (n_known,): whether an item is of the catalogue, which may have more
    counts: Float64 | None  # (n_known,): users or interactions in training
    total: float
    had: Flags | None  # whether the user of each entry of `codes` had the item in training
    sets: Float64 | None  # (n_known, n_categories): 1 where an item has a category
    vectors: Float64 | None  # (n_known, width), of length 1

    @classmethod
    def of(cls, lists: Lists, known: Known) -> Facts:
        table, seen = known.items, known.train
        every = [lists.ids, *known.ids, *([] if lists.others is None else [lists.others])]
        parts, ids = numbered(every)
        codes, n_known, n_items = parts[0], len(ids), len(ids)
        own = np.ones(n_known, np.bool_)
        if table:
            own[:] = False
            own[parts[1]] = True
            n_items, strange = int(own.sum()), np.flatnonzero(~own[codes])
            if len(strange):
                item = name_of(ids[int(codes[strange[0]])].as_py())
                raise InputError(
                    f'item "{item}" is recommended and not among the {n_items:,} of items; '
                    "add it, or say how many items there are"
                )
        elif known.number is not None:
            n_items = known.number
            known.check_number(len(np.unique(codes)))
        counts, total, had = None, 0.0, None
        if seen:
            counts, total, had = _seen(seen, parts[1 + bool(table)], codes, n_known, lists)
        sets = None if "category" not in table else _sets(table["category"], parts[1], n_known)
        vectors = None if "vector" not in table else _vectors(table["vector"], parts[1], n_known)
        return cls(codes, n_items, own, counts, total, had, sets, vectors)

    def of_users(self, lists: Lists, tail: float, unseen: int | None) -> dict[str, Float64]:
        """The measures of each user, NaN for users without a list."""
        found: dict[str, Float64] = {}
        if self.counts is not None:
            of_items = self.counts[self.codes]
            found["popularity"] = _means(of_items, lists.lengths)
            found["tail_share"] = _means(self._in_tail(self.counts, tail)[self.codes], lists.lengths)
            taken = np.where(of_items == 0, math.nan if unseen is None else unseen, of_items)
            with np.errstate(divide="ignore"):
                bits = -np.log2(taken / self.total) if self.total else np.full(len(taken), math.nan)
            found["novelty"] = _means(bits, lists.lengths)
            found["surprise"] = found["novelty"] / (math.log2(self.total) if self.total > 1 else math.nan)
        if self.had is not None:
            found["seen"] = _means(self.had.astype(np.float64), lists.lengths)
        for name, features in (("category_diversity", self.sets), ("vector_diversity", self.vectors)):
            if features is not None:
                found[name] = _diversity(features, self.codes, lists.lengths, sets=features is self.sets)
        return found

    def _in_tail(self, counts: Float64, tail: float) -> Float64:
        """How far each item is of the tail: 1, 0, or, of equal counts, the share for which there is room."""
        if tail >= 1:
            return (counts <= tail).astype(np.float64)
        values, numbers = np.unique(counts[self.own], return_counts=True)
        more = self.n_items - int(self.own.sum())  # neither recommended nor in training
        if more > 0:
            values, numbers = np.append(0.0, values[values > 0]), np.append(0, numbers[values > 0])
            numbers[0] = more + np.count_nonzero(counts[self.own] == 0)
        room = np.clip(tail * numbers.sum() - (np.cumsum(numbers) - numbers), 0, numbers)
        shares: Float64 = (room / numbers)[np.searchsorted(values, np.minimum(counts, values[-1]))]
        return shares


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number)


def numbered(columns: Sequence[pa.ChunkedArray]) -> tuple[list[Int64], pa.Array]:
    """The number of each id, for all columns; ids of numbers and of texts are compared as texts."""
    kind = pa.int64() if all(pa.types.is_integer(column.type) for column in columns) else pa.string()
    plain = [decode(column).cast(kind) for column in columns]
    for column in plain:
        if column.null_count:
            raise InputError(f"{count_of(column.null_count, 'item')} without an id; name each")
    found = _chain(plain).combine_chunks().dictionary_encode()
    codes = array_of(found.indices).astype(np.int64)
    return np.split(codes, np.cumsum([len(column) for column in plain])[:-1]), found.dictionary


def _of_items(items: Any, category: str | None, vector: str | None) -> dict[str, pa.ChunkedArray]:
    of_ids = isinstance(items, pa.Array | pa.ChunkedArray | list | tuple | range | set | frozenset)
    if (of_ids or len(getattr(items, "shape", ())) == 1) and not is_path(items):  # a Series has a shape too
        plain = items if isinstance(items, pa.Array | pa.ChunkedArray) else pa.array(list(items))
        return {"doc_id": pa.chunked_array(plain)}

    def find(names: list[str]) -> dict[str, str]:
        named = {"category": category, "vector": vector}
        return {"doc_id": find_column(names, "doc_id")} | usual_columns(names, _NAMES, named)

    return read_columns(items, find, ())


def _of_train(train: Any) -> dict[str, pa.ChunkedArray]:
    if isinstance(train, Mapping) and all(map(_is_number, train.values())):
        columns = {"doc_id": list(train), "count": [float(count) for count in train.values()]}
        return {role: pa.chunked_array([pa.array(column)]) for role, column in columns.items()}

    def find(names: list[str]) -> dict[str, str]:
        found = {"doc_id": find_column(names, "doc_id")} | usual_columns(names, _NAMES, {"count": None})
        if "count" not in found:
            if not fitting(names, "query"):
                raise ColumnError(
                    "train has neither counts of its items nor users; the columns are "
                    f"{', '.join(map(str, names))}. Name one of them count, or user_id"
                )
            found["query"] = find_column(names, "query")
        return found

    return read_columns(train, find, ("count",))


def _seen(
    seen: Mapping[str, pa.ChunkedArray], items: Int64, codes: Int64, n_known: int, lists: Lists
) -> tuple[Float64, float, Flags | None]:
    """Counts of items in training, what they are a part of, and whether each user had each item."""
    if "count" in seen:
        given = array_of(seen["count"].cast(pa.float64())).astype(np.float64)
        if not (np.isfinite(given) & (given >= 0)).all():
            raise InputError("train has counts that are no numbers from 0; drop these items, or count them")
        counts: Float64 = np.bincount(items, given, n_known).astype(np.float64)
        return counts, float(statistics.exact_sum(counts)), None
    (of_train, of_lists), _ = numbered([seen["query"], lists.queries[0]])
    pairs = np.unique(of_train * n_known + items)  # a user who had an item twice is one user
    had = np.isin(np.repeat(of_lists, lists.lengths) * n_known + codes, pairs)
    counts = np.bincount(pairs % n_known, minlength=n_known).astype(np.float64)
    return counts, float(len(np.unique(of_train))), had


def _means(values: Float64, lengths: Int64) -> Float64:
    """The mean of the values of each user that are no NaN; NaN without any."""
    defined, starts = ~np.isnan(values), offsets_from(lengths)[:-1][lengths > 0]
    out = np.full(len(lengths), math.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        if len(starts):
            sums = np.add.reduceat(np.where(defined, values, 0.0), starts)
            out[lengths > 0] = sums / np.add.reduceat(defined.astype(np.int64), starts)
    return out


def _sets(column: pa.ChunkedArray, items: Int64, n_known: int) -> Float64:
    plain, rows = decode(column).combine_chunks(), items
    if pa.types.is_list(plain.type) or pa.types.is_large_list(plain.type):
        rows, plain = items[array_of(pc.list_parent_indices(plain))], pc.list_flatten(plain)
    found = plain.dictionary_encode()
    sets = np.zeros((n_known, len(found.dictionary)))
    sets[rows[array_of(found.is_valid())], array_of(found.indices.drop_null())] = 1.0
    return sets


def _vectors(column: pa.ChunkedArray, items: Int64, n_known: int) -> Float64:
    plain = column.combine_chunks()
    try:
        lengths = np.unique(array_of(pc.list_value_length(plain)))
        flat = array_of(pc.list_flatten(plain).cast(pa.float64())).astype(np.float64)
    except (pa.ArrowException, TypeError):
        raise InputError(f"vectors are of {column.type}; wanted lists of numbers") from None
    if plain.null_count or len(lengths) > 1 or not np.isfinite(flat).all():
        raise InputError(
            "vectors are of several lengths, null, or not finite; give each item one of as many numbers"
        )
    vectors = np.zeros((n_known, int(lengths[0]) if len(lengths) else 0))
    vectors[items] = flat.reshape(len(plain), -1)
    size = np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    unit: Float64 = np.divide(vectors, size, out=np.zeros_like(vectors), where=size > 0)
    return unit


def _diversity(features: Float64, codes: Int64, lengths: Int64, *, sets: bool) -> Float64:
    """Mean distance of the pairs of items of each user, which does not depend on other users."""
    out, starts = np.where(lengths > 0, 0.0, math.nan), offsets_from(lengths)[:-1]
    for n in np.unique(lengths[lengths > 1]).tolist():
        of_length, pairs = np.flatnonzero(lengths == n), ~np.eye(n, dtype=np.bool_)
        together = max(_ENTRIES // (n * max(features.shape[1], n)), 1)
        for first in range(0, len(of_length), together):
            users = of_length[first : first + together]
            found = features[codes[starts[users][:, None] + np.arange(n)]]
            common = found @ found.transpose(0, 2, 1)
            if sets:
                size = found.sum(axis=2)
                either = size[:, :, None] + size[:, None, :] - common
                common = np.divide(common, either, out=np.ones_like(common), where=either > 0)
            out[users] = np.where(pairs, 1.0 - common, 0.0).sum(axis=(1, 2)) / (n * (n - 1))
    return out
