"""ir_measures: one notation over several tools; for nDCG it asks pytrec_eval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

import fastndcg as fn
from bench.rivals import Rival, dicts


def _prepare(rankings: fn.Rankings) -> Callable[[], npt.NDArray[np.float64]]:
    import ir_measures

    qrels, run = dicts(rankings)
    evaluator = ir_measures.evaluator([ir_measures.nDCG @ 10], qrels)

    def call() -> npt.NDArray[np.float64]:
        values = {metric.query_id: metric.value for metric in evaluator.iter_calc(run)}
        return np.array([values[query] for query in run])

    return call


RIVALS = (
    Rival(
        "ir_measures nDCG@10", "ir_measures", "ir_measures", "nDCG@10", _prepare, 10_000,
        note="without the building of its dictionaries; scores without ties",
    ),
)  # fmt: skip
