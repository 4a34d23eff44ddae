"""A realistic sample of graded predictions, made from a seed: for `fastndcg demo`, tests and benchmarks."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.files import whole_file
from fastndcg.common.progress import advance
from fastndcg.errors import InputError

QUERIES = 91_000  # about 10 million documents

_BATCH = 8_192  # queries of a row group: some 900,000 rows, less than 100 MB of memory whatever the size
_LONGEST = 2_000
_LENGTH_MEDIAN, _LENGTH_SIGMA = 61.0, 1.1  # of the lognormal: mean about 110
# bounds of the latent relevance: two of three documents have grade 0
_GRADE_BOUNDS = np.array([0.45, 1.2, 1.9, 2.5], np.float32)
_WITHOUT_RELEVANT = 0.03  # share of queries, beside those that have none by chance
_ROUNDED = 0.2  # share of queries whose scores have one decimal, so that most of them are tied
_DEVICES = ("desktop", "phone", "tablet")
_DEVICE_SHARES = (0.35, 0.58, 0.07)
# correlation of the scores with the latent relevance
_DEVICE_SKILL = np.array([0.62, 0.52, 0.58], np.float32)
# weight of the latent relevance that the second system adds to the scores of the first
_RERANK_GAIN = np.array([0.08, 0.03, -0.04], np.float32)
_RERANK_NOISE = 0.25
_COUNTRIES = ("US", "IN", "DE", "BR", "JP", "FR", "GB", "TR")
_COUNTRY_SHARES = (0.34, 0.19, 0.12, 0.1, 0.08, 0.07, 0.06, 0.04)


def write_sample(path: str | os.PathLike[str], queries: int = QUERIES, seed: int = 0) -> int:
    """Write a sample as Parquet, a row for each document, sorted by query.

    Lists are of lognormal length, about 110 on average, and a second system, `rerank`, is better on desktops
    and phones, and worse on tablets. The same seed and number of queries give the same values.

    Returns the number of documents. Raises `InputError` for fewer queries than one, and `SourceError` for a
    path that cannot be written, which is written whole or not at all.
    """
    import pyarrow.parquet as pq

    if queries < 1:
        raise InputError(f"queries={queries} leaves nothing to write; expected at least 1")
    documents, schema = 0, _batch(0, 1, seed).schema
    few = ["query_id", "label", "country", "device"]  # columns of few values, which gain from a dictionary
    with whole_file(path) as draft, pq.ParquetWriter(draft, schema, use_dictionary=few) as writer:
        for first in range(0, queries, _BATCH):
            stop = min(first + _BATCH, queries)
            table = _batch(first, stop, seed)
            writer.write_table(table)
            documents += len(table)
            advance(stop, queries)
    return documents


def _batch(first: int, stop: int, seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, first])
    n = stop - first
    drawn = np.rint(rng.lognormal(np.log(_LENGTH_MEDIAN), _LENGTH_SIGMA, n))
    lengths = np.clip(drawn, 1, _LONGEST).astype(np.int64)
    country = rng.choice(len(_COUNTRIES), n, p=_COUNTRY_SHARES).astype(np.int8)
    device = rng.choice(len(_DEVICES), n, p=_DEVICE_SHARES).astype(np.int8)
    plenty = rng.normal(0, 0.5, n).astype(np.float32)  # some queries have more relevant documents than others
    plenty[rng.random(n) < _WITHOUT_RELEVANT] = -np.inf
    rounded = rng.random(n) < _ROUNDED

    def of_query(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.repeat(values, lengths)

    rows = int(lengths.sum())
    latent = rng.standard_normal(rows, np.float32)
    skill = _DEVICE_SKILL[device]
    scores = of_query(skill) * latent
    scores += of_query(np.sqrt(1 - skill**2)) * rng.standard_normal(rows, np.float32)
    rerank = scores + of_query(_RERANK_GAIN[device]) * latent
    coarse = of_query(rounded)
    scores[coarse] = np.round(scores[coarse], 1)
    latent += of_query(plenty)
    label = np.searchsorted(_GRADE_BOUNDS, latent, side="right").astype(np.uint8)
    rerank += np.float32(_RERANK_NOISE) * rng.standard_normal(rows, np.float32)
    return pa.table(
        {
            "query_id": of_query(np.arange(first, stop, dtype=np.int64)),
            "label": label,
            "score": scores,
            "rerank": rerank,
            "country": pa.DictionaryArray.from_arrays(of_query(country), _COUNTRIES),
            "device": pa.DictionaryArray.from_arrays(of_query(device), _DEVICES),
        }
    )
