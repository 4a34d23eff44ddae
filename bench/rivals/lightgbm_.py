"""LightGBM's own C++ metric: scores as `init_score` of a data set, evaluated by a booster without trees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fastndcg as fn
from bench.rivals import Rival


def _prepare(rankings: fn.Rankings) -> Callable[[], float]:
    import lightgbm

    quiet = {"verbosity": -1, "num_threads": 1}
    data = lightgbm.Dataset(
        np.zeros((rankings.n_docs, 1)),
        label=rankings.relevance,
        group=rankings.lengths,
        init_score=rankings.scores.astype(np.float64),
        params={**quiet, "feature_pre_filter": False},
    )
    booster = lightgbm.Booster({"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], **quiet}, data)
    return lambda: float(booster.eval_train()[0][2])


RIVALS = (
    Rival(
        "LightGBM ndcg@10 (C++)", "lightgbm", "lightgbm", "nDCG(gain='exp2', ties='input', empty=1)@10", _prepare,
        20_000, bar=20, note="its ideal is computed once, when the booster is made, and is not timed",
    ),
)  # fmt: skip
