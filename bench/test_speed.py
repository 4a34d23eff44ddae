"""The same calls for pytest-benchmark, which compares them over time: `pytest bench --benchmark-group-by=param:what`.

Answers are checked before they are timed.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastndcg as fn
from bench import reading, reference, rivals, roofline
from bench.cold import SCORE
from bench.process import python
from bench.workloads import WORKLOADS, is_known

SCALE, QUERIES = 0.1, 5_000
BY_NAME = {workload.name: workload for workload in WORKLOADS}
RIVALS = {f"{way.name}, {way.measure}": way for name in rivals.NAMES for way in rivals.ways(name)}
STATEMENTS = {
    "nothing": "", "import numpy, pyarrow": "import numpy, pyarrow", "import fastndcg": "import fastndcg",
    "import numba": "import numba", "first score": SCORE,
}  # fmt: skip


@pytest.mark.parametrize("whose", ["evaluate", "roofline"])
@pytest.mark.parametrize("what", BY_NAME)
def test_kernels(benchmark: Any, what: str, whose: str) -> None:
    workload = BY_NAME[what]
    if not is_known(workload) or (whose == "roofline" and workload.base_measures is not None):
        pytest.skip("no such measure in this version, or another baseline")
    rankings = workload.sample(SCALE)
    benchmark.extra_info["documents"] = rankings.n_docs
    if whose == "evaluate":
        reference.check(rankings, workload.measures, threads=workload.threads)
        benchmark(fn.evaluate, rankings, workload.measures, threads=workload.threads)
    else:
        out = np.empty(rankings.n_queries)
        benchmark(roofline.sum_queries, rankings.offsets, rankings.relevance, rankings.scores, out)


@pytest.mark.parametrize("whose", ["theirs", "ours"])
@pytest.mark.parametrize("what", RIVALS)
def test_rivals(benchmark: Any, what: str, whose: str) -> None:
    rival = RIVALS[what]
    if not rival.installed:
        pytest.skip(rival.absent)
    rivals.keep_to_one_thread()
    if rival.module == "ranx" and os.environ.get("NUMBA_NUM_THREADS") != "1":
        pytest.skip("ranx takes all of Numba's threads: NUMBA_NUM_THREADS=1 python -m pytest bench")
    rankings, calls = rivals.question(rival, SCALE)
    benchmark.extra_info["documents"] = rankings.n_docs
    benchmark(calls[whose])


@pytest.mark.parametrize("whose", [*reading.WAYS, "read_table"])
@pytest.mark.parametrize("what", ["int64", "string"])
@pytest.mark.parametrize("threads", [1, 2])
def test_reading(
    benchmark: Any, tmp_path_factory: pytest.TempPathFactory, what: str, whose: str, threads: int
) -> None:
    path = reading.file_of(tmp_path_factory.getbasetemp() / "parquet", QUERIES, what)
    pa.set_cpu_count(threads)
    read = partial(pq.read_table, path, columns=reading.COLUMNS, use_threads=threads > 1)
    if whose in reading.WAYS:
        reading.check(path, read(), threads)
        read = partial(reading.WAYS[whose], path, threads)
    benchmark(read)


@pytest.mark.parametrize("what", STATEMENTS)
def test_processes(benchmark: Any, what: str) -> None:
    """With the start of Python."""
    call, settings = ("-c", STATEMENTS[what]), {"environment": {"FASTNDCG_KERNELS": "auto"}}
    benchmark.pedantic(python, args=call, kwargs=settings, rounds=5, warmup_rounds=1)


def test_one_small_query(benchmark: Any) -> None:
    grades, scores = [3, 0, 2, 1, 0, 0, 1, 0, 4, 0], [float(9 - i) for i in range(10)]
    benchmark(fn.evaluate, fn.Rankings.from_offsets([0, 10], grades, scores), ["nDCG@10"])
