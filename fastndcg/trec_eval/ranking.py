"""Rankings as trec_eval sees them, and sums, quotients and logarithms as it computes them."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Flags, Float64, Int64, offsets_from, runs_of

Release = Literal[9, 10]
OUTSIDE, UNJUDGED = -1, -2  # grades of documents outside the pool, and of unjudged documents in it


class Ranked:
    """Ranked documents of all queries, as arrays over documents and arrays over queries."""

    def __init__(
        self,
        offsets: Int64,
        grades: Int64,
        pool_offsets: Int64,
        pool: Int64,
        level: int,
        collection: int,
        release: Release,
    ) -> None:
        self.offsets, self.grades, self.pool = offsets, grades, pool
        self.level, self.collection, self.release = level, collection, release
        self.n_queries = len(offsets) - 1
        self.returned = np.diff(offsets)
        self.query = np.repeat(np.arange(self.n_queries), self.returned)
        self.place = np.arange(len(grades)) - offsets[:-1][self.query]  # rank - 1
        self.is_hit: Flags = grades >= level
        self.is_miss: Flags = (grades >= 0) & ~self.is_hit
        self.hit_query, self.hit_place = self.query[self.is_hit], self.place[self.is_hit]
        self.found = np.bincount(self.hit_query, minlength=self.n_queries)
        self.hit_offsets = offsets_from(self.found)
        self.pool_query = np.repeat(np.arange(self.n_queries), np.diff(pool_offsets))
        self.relevant = np.bincount(self.pool_query[pool >= level], minlength=self.n_queries)
        self.known: dict[tuple[Any, ...], Any] = {}  # gains that several measures use

    @cached_property
    def so_far(self) -> Int64:
        """The number of hits up to and including each hit, (n_hits,)."""
        before: Int64 = self.hit_offsets[:-1][self.hit_query]
        return np.arange(1, len(before) + 1) - before

    @cached_property
    def precision(self) -> Float64:
        """Precision at the rank of each hit, (n_hits,)."""
        return self.so_far / (self.hit_place + 1)

    @cached_property
    def best_precision(self) -> Float64:
        """The highest precision from each hit on, (n_hits,)."""
        values, codes = np.unique(self.precision, return_inverse=True)
        # keys of later queries are smaller, so the running maximum from the end restarts at each query
        keys = codes + (self.n_queries - self.hit_query) * len(values)
        best = np.maximum.accumulate(keys[::-1])[::-1] - (self.n_queries - self.hit_query) * len(values)
        return values[best]

    def count_within(self, of_documents: Flags) -> Int64:
        """Count the marked documents of a query up to and including each document."""
        counts = offsets_from(of_documents)
        within: Int64 = counts[1:] - counts[self.offsets[:-1]][self.query]
        return within

    def total(self, query: Int64, values: Float64) -> Float64:
        """Sum the values of each query in their order."""
        sums: Float64 = np.bincount(query, weights=values, minlength=self.n_queries).astype(np.float64)
        return sums

    def hits_before(self, cutoff: int | Int64) -> Int64:
        before = self.hit_place < (cutoff if isinstance(cutoff, int) else cutoff[self.hit_query])
        return np.bincount(self.hit_query[before], minlength=self.n_queries)


def ratio(numerator: npt.NDArray[Any], denominator: npt.NDArray[Any]) -> Float64:
    """Divide; 0 where the divisor is 0."""
    out: Float64 = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


def log2(values: npt.NDArray[Any]) -> Float64:
    """Return the C library's logarithms; NumPy's differ in the last bit."""
    if values.dtype.kind == "i" and len(values) and values.min() > 0 and values.max() <= len(values):
        distinct, places = np.arange(1, values.max() + 1), values - 1
    else:
        distinct, places = np.unique(values, return_inverse=True)
    logarithms = [
        math.log2(value) if value > 0 else -math.inf if value == 0 else math.nan
        for value in distinct.tolist()
    ]
    table: Float64 = np.array(logarithms, np.float64)
    taken: Float64 = table[places]
    return taken


def log(values: Float64) -> Float64:
    return np.array([math.log(value) for value in values.tolist()], np.float64)


def running(values: Float64, offsets: Int64) -> Float64:
    """Return running sums of values within each query."""
    if (values == np.rint(values)).all() and np.abs(values).sum() < 1 << 53:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        within: Float64 = sums[1:] - np.repeat(sums[offsets[:-1]], np.diff(offsets))
        return within
    out = np.empty(len(values))
    for start, stop in pairwise(offsets.tolist()):
        np.cumsum(values[start:stop], out=out[start:stop])
    return out


def rows_of(offsets: Int64, order: Int64, most: int | None) -> tuple[Int64, Int64]:
    """Return the first `most` rows of each query, queries in this order, and the number of rows of each."""
    sizes = np.diff(offsets)[order]
    if most is not None:
        sizes = np.minimum(sizes, most)
    return runs_of(offsets[:-1][order], sizes), sizes


def is_whole(text: str) -> bool:
    return text.removeprefix("-").removeprefix("+").isdecimal()
