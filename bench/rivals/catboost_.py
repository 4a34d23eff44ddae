"""CatBoost's `eval_metric`, which takes arrays and converts them in each call."""

from __future__ import annotations

from collections.abc import Callable

import fastndcg as fn
from bench.rivals import Rival, query_of_rows


def _prepare(rankings: fn.Rankings) -> Callable[[], float]:
    from catboost.utils import eval_metric

    queries, metric = query_of_rows(rankings), "NDCG:top=10;type=Base"
    return lambda: float(
        eval_metric(rankings.relevance, rankings.scores, metric, group_id=queries, thread_count=1)[0]
    )


RIVALS = (
    Rival(
        "CatBoost eval_metric NDCG", "catboost", "catboost", "nDCG(ties='worst', empty=1)@10", _prepare, 20_000,
        tied=True, note="with the conversion of its inputs, which its function includes",
    ),
)  # fmt: skip
