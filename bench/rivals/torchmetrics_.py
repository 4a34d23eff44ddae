"""torchmetrics' `RetrievalNormalizedDCG`: a loop over queries, in float32."""

from __future__ import annotations

from collections.abc import Callable

import fastndcg as fn
from bench.rivals import Rival, query_of_rows


def _prepare(rankings: fn.Rankings) -> Callable[[], float]:
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    torch.set_num_threads(1)
    scores, grades = torch.tensor(rankings.scores), torch.tensor(rankings.relevance).long()
    queries = torch.tensor(query_of_rows(rankings))
    metric = RetrievalNormalizedDCG(top_k=10)

    def call() -> float:
        metric.reset()
        metric.update(scores, grades, indexes=queries)
        return float(metric.compute())

    return call


RIVALS = (
    Rival(
        "torchmetrics RetrievalNormalizedDCG", "torchmetrics", "torchmetrics", "nDCG@10", _prepare, 3_000, tied=True,
        tolerance=1e-6, note="averages ties; float32 inside, so its answer is held to 1e-6",
    ),
)  # fmt: skip
