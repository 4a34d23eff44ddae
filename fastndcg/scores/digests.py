"""Digests of queries and of their judgments: sums of hashes of queries, so that those of parts add up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrow_types import decode
from fastndcg.common.later import pa

UInt64 = npt.NDArray[np.uint64]

_BLOCK = 1 << 18  # documents that are hashed together, so that their hashes stay in a cache
_FEW = 1 << 12  # grades of a range that have their hashes in a table


class Digests(NamedTuple):
    """What results were computed of. Those of parts add up to those of the whole, in whatever order.

    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[3, 0], [1, 2, 0]])
    >>> digests_of(rankings[:1]) + digests_of(rankings[1:]) == digests_of(rankings)
    True
    """

    kind: str  # "pool" of all judged documents, judgments of the "returned" ones, or "unknown"
    knows_unjudged: bool
    n_queries: int
    queries: int
    n_judgments: int = 0
    judgments: int = 0

    def __add__(self, other: Digests) -> Digests:  # type: ignore[override]
        sums = (one + another & _ALL for one, another in zip(self[2:], other[2:], strict=True))
        same = self if self.n_queries else other
        return Digests(same.kind, self.knows_unjudged or other.knows_unjudged, *sums)

    def of_queries(self) -> str:
        return f"{self.n_queries}:{self.queries:016x}"

    def of_judgments(self) -> str:
        return (
            "unknown" if self.kind == "unknown" else f"{self.kind}:{self.n_judgments}:{self.judgments:016x}"
        )


_ALL = (1 << 64) - 1


def digests_of_ids(ids: Any) -> Digests:
    """What is known of results alone: their queries."""
    return Digests("unknown", False, len(ids), _sum(hashes_of_texts(ids)))


def digests_of(rankings: Any, chosen: npt.NDArray[np.bool_] | None = None) -> Digests:
    """Digests of the ids of all or `chosen` queries, and of how many documents of each grade each query has.

    Neither the order of rows and queries, nor the types of ids and grades change them. Of judgments the ids
    of documents are not looked at: systems that return documents in other orders, or other ones of a pool,
    are computed of the same judgments.
    """
    ids = hashes_of_texts(rankings.query_ids)
    if rankings.judged is not None:
        kind, offsets, grades, counts = "pool", rankings.judged.offsets, rankings.judged.relevance, None
    else:
        kind, offsets, grades, counts = "returned", rankings.offsets, rankings.relevance, rankings.is_judged
    of_grades = np.zeros(len(ids), np.uint64)
    first = 0
    while first < len(ids):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, "right")) - 1)
        rows = slice(int(offsets[first]), int(offsets[last]))
        hashed = np.append(_hashes_of_numbers(grades[rows]), np.uint64(0))
        if counts is not None:
            hashed[:-1][~counts[rows]] = 0
        starts = offsets[first:last] - offsets[first]
        sums = np.add.reduceat(hashed, starts)
        of_grades[first:last] = np.where(np.diff(offsets[first : last + 1]) > 0, sums, np.uint64(0))
        first = last
    counted = np.diff(offsets) if counts is None else np.diff(np.append(0, np.cumsum(counts))[offsets])
    of_queries = _mixed(ids ^ _mixed(of_grades))
    if chosen is not None:
        ids, of_queries, counted = ids[chosen], of_queries[chosen], counted[chosen]
    knows = rankings.is_judged is not None
    return Digests(kind, knows, len(ids), _sum(ids), int(counted.sum()), _sum(of_queries))


def hashes_of_texts(column: Any) -> UInt64:
    """A hash of each value as text, so that the number 7 and the text "7" have the same."""
    try:
        texts = decode(column).cast(pa.large_string())
    except pa.ArrowException:  # a type that Arrow has no texts for
        texts = pa.array(list(map(str, column.to_pylist())), pa.large_string())
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return np.concatenate([np.zeros(0, np.uint64), *map(_hashes_of_chunk, chunks)])


def _hashes_of_chunk(texts: Any) -> UInt64:
    """Sums of hashes of each byte with its position, and of the length; null has the length -1."""
    n = len(texts)
    if not n:
        return np.zeros(0, np.uint64)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + n + 1]
    bytes_ = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    lengths = np.diff(ends)
    positions = np.arange(len(bytes_)) - np.repeat(ends[:-1] - ends[0], lengths)
    placed = (positions.astype(np.uint64) << np.uint64(8)) | bytes_.astype(np.uint64)
    hashed = np.append(_mixed(placed), np.uint64(0))
    sums = np.where(lengths > 0, np.add.reduceat(hashed, ends[:-1] - ends[0]), np.uint64(0))
    if texts.null_count:
        lengths = np.where(texts.is_null(), -1, lengths)
    return _mixed(sums ^ _mixed(lengths.astype(np.uint64)))


def _hashes_of_numbers(values: npt.NDArray[Any]) -> UInt64:
    """A hash of each number, the same for each type that can hold it."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = values.astype(np.int64)
        values = whole if np.array_equal(whole, values) else values
    if values.dtype.kind in "iu" and len(values):
        least, greatest = int(values.min()), int(values.max())
        if greatest - least < _FEW:
            table = _mixed(np.arange(least, greatest + 1).astype(np.float64).view(np.uint64))
            found: UInt64 = table[values - values.dtype.type(least)]
            return found
    return _mixed((values.astype(np.float64) + 0.0).view(np.uint64))


def _mixed(values: UInt64) -> UInt64:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _sum(values: UInt64) -> int:
    return int(values.sum(dtype=np.uint64))
