"""XGBoost's own C++ metric: scores as `base_margin`, evaluated by a booster without trees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fastndcg as fn
from bench.rivals import Rival


def _prepare(rankings: fn.Rankings) -> Callable[[], float]:
    import xgboost

    features = np.zeros((rankings.n_docs, 1), np.float32)
    data = xgboost.DMatrix(features, label=rankings.relevance, base_margin=rankings.scores, nthread=1)
    data.set_group(rankings.lengths)
    settings = {"objective": "rank:ndcg", "eval_metric": "ndcg@10", "nthread": 1, "verbosity": 0}
    booster = xgboost.Booster(settings, [data])
    return lambda: float(booster.eval(data).rpartition(":")[2])


RIVALS = (
    Rival(
        "XGBoost ndcg@10 (C++)", "xgboost", "xgboost", "nDCG(gain='exp2', ties='input', empty=1)@10", _prepare,
        20_000, bar=20, note="with the prediction of a model without trees",
    ),
)  # fmt: skip
