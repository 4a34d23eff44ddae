"""Measure what a signature costs, as a share of evaluating one measure: on one thread, with compiled kernels.

The bar is 5 %. Bias: nDCG@10 alone, of rankings in memory; with more measures, or with files that are read, the share falls.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import fastndcg as fn
from bench.record import Row
from bench.timing import take_turns
from fastndcg.scores.signatures import digests_of


def rows(*, quick: bool) -> Iterator[Row]:
    before = os.environ.get("FASTNDCG_KERNELS")
    os.environ["FASTNDCG_KERNELS"] = "compiled"
    try:
        yield from _rows(200_000 if quick else 4_000_000, 0.1 if quick else 2.0)
    finally:
        os.environ.pop("FASTNDCG_KERNELS")
        os.environ.update({} if before is None else {"FASTNDCG_KERNELS": before})


def _rows(documents: int, seconds: float) -> Iterator[Row]:
    random = np.random.default_rng(0)
    for each in (10, 50, 200):
        n = documents // each
        scores = random.random(n * each).astype(np.float32)
        for kind, ids in (("numbers", np.arange(n)), ("texts", pa.array([f"query-{i}" for i in range(n)]))):
            for dtype in (np.int8, np.int64, np.float32):
                grades = random.integers(0, 5, n * each).astype(dtype)
                rankings = fn.Rankings.from_offsets(np.arange(n + 1) * each, grades, scores, query_ids=ids)
                calls = {
                    "digest": lambda rankings=rankings: digests_of(rankings),
                    "nDCG@10": lambda rankings=rankings: fn.evaluate(rankings, "nDCG@10", threads=1),
                }
                found = take_turns(calls, seconds=seconds)
                own, other = found["digest"].cpu, found["nDCG@10"].cpu
                name = f"ids are {kind}, {dtype.__name__} grades, {each} documents"
                yield Row(
                    "signatures",
                    name,
                    "nDCG@10",
                    "s",
                    cpu=own,
                    baseline_cpu=other,
                    ratio=own / other,
                    bar=0.05,
                )
