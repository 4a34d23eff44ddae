"""pytest-benchmark: scoring and the roofline. Use `--benchmark-group-by=param:workload`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastndcg as fn
from bench import reference, roofline
from bench.workloads import WORKLOADS, Workload, is_known

SCALE = 0.1


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_evaluate(benchmark: Any, workload: Workload) -> None:
    if not is_known(workload):
        pytest.skip("no such measure in this version")
    rankings = workload.sample(SCALE)
    reference.check(rankings, workload.measures, threads=workload.threads)
    benchmark.extra_info["documents"] = rankings.n_docs
    benchmark(fn.evaluate, rankings, workload.measures, threads=workload.threads)


@pytest.mark.parametrize(
    "workload", [each for each in WORKLOADS if each.base_measures is None], ids=lambda each: each.name
)
def test_roofline(benchmark: Any, workload: Workload) -> None:
    rankings = workload.sample(SCALE)
    out = np.empty(rankings.n_queries)
    benchmark.extra_info["documents"] = rankings.n_docs
    benchmark(roofline.sum_queries, rankings.offsets, rankings.relevance, rankings.scores, out)


def test_one_small_query(benchmark: Any) -> None:
    rankings = fn.Rankings.from_offsets(
        [0, 10], [3, 0, 2, 1, 0, 0, 1, 0, 4, 0], [float(9 - i) for i in range(10)]
    )
    benchmark(fn.evaluate, rankings, ["nDCG@10"])
