"""pytrec_eval: trec_eval's C code, called from Python with dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import fastndcg as fn
from bench.rivals import Rival, dicts


def _prepare(rankings: fn.Rankings) -> Callable[[], npt.NDArray[np.float64]]:
    import pytrec_eval

    qrels, run = dicts(rankings)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})

    def call() -> npt.NDArray[np.float64]:
        values: dict[str, Any] = evaluator.evaluate(run)
        return np.array([values[query]["ndcg_cut_10"] for query in run])

    return call


RIVALS = (
    Rival(
        "pytrec_eval ndcg_cut_10", "pytrec_eval-terrier", "pytrec_eval", "nDCG@10", _prepare, 10_000,
        note="without the building of its dictionaries; scores without ties",
    ),
)  # fmt: skip
