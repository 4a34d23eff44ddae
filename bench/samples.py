"""Generate rankings for measurements from a seed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import fastndcg as fn

Array = npt.NDArray[Any]


def _rankings(lengths: Array, relevant: float, decimals: int | None) -> fn.Rankings:
    rng = np.random.default_rng(0)
    documents = int(lengths.sum())
    scores = rng.standard_normal(documents, dtype=np.float32)
    if decimals is not None:
        scores = np.round(scores, decimals)
    is_relevant = rng.random(documents, dtype=np.float32) < relevant
    grades = is_relevant * rng.integers(1, 5, documents, dtype=np.uint8)
    return fn.Rankings.from_groups(lengths, grades.astype(np.uint8, copy=False), scores)


# the largest sample has about 100 MB, and neighbours in the list of workloads share one
@lru_cache(maxsize=2)
def even(queries: int, length: int, relevant: float, decimals: int | None = None) -> fn.Rankings:
    """Return lists of one length, in which a share of the documents has grades from 1 to 4."""
    return _rankings(np.full(queries, length), relevant, decimals)


@lru_cache(maxsize=1)
def ragged(queries: int, relevant: float) -> fn.Rankings:
    """Return lists of lognormal length, from 1 to 2,000 and about 110 on average."""
    lengths = np.random.default_rng(1).lognormal(4.4, 0.8, queries)
    return _rankings(np.clip(lengths, 1, 2000).astype(np.int64), relevant, None)


def double(rankings: fn.Rankings) -> fn.Rankings:
    """Return the same lists in the usual dtypes of pandas and Python: float64 scores and int64 grades."""
    grades, scores = rankings.relevance.astype(np.int64), rankings.scores.astype(np.float64)
    return fn.Rankings.from_offsets(rankings.offsets, grades, scores)


def continuous(rankings: fn.Rankings) -> fn.Rankings:
    """Return the same lists with grades that are almost all different."""
    grades = np.random.default_rng(2).random(rankings.n_docs, dtype=np.float32)
    return fn.Rankings.from_offsets(rankings.offsets, grades, rankings.scores)


def untied(queries: int, length: int, relevant: float = 0.5) -> fn.Rankings:
    """Return lists without equal scores, on which tools agree however they order tied documents."""
    rng = np.random.default_rng(3)
    ranks = rng.permuted(np.tile(np.arange(length, dtype=np.float32), (queries, 1)), axis=1)
    scores = (ranks + rng.random((queries, length), dtype=np.float32) / 2) / length
    rankings = even(queries, length, relevant)
    return fn.Rankings.from_offsets(rankings.offsets, rankings.relevance, scores.ravel())
