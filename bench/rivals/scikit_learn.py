"""scikit-learn's `ndcg_score`, with ties averaged and with ties left to the sort."""

from __future__ import annotations

from collections.abc import Callable

import fastndcg as fn
from bench.rivals import Rival, dense


def _prepare(ignore_ties: bool) -> Callable[[fn.Rankings], Callable[[], float]]:
    def prepare(rankings: fn.Rankings) -> Callable[[], float]:
        from sklearn.metrics import ndcg_score

        grades, scores = dense(rankings)
        return lambda: ndcg_score(grades, scores, k=10, ignore_ties=ignore_ties)

    return prepare


def _prepare_auc(rankings: fn.Rankings) -> Callable[[], list[float]]:
    from sklearn.metrics import roc_auc_score

    grades, scores = dense(rankings)
    relevant = grades >= 1
    both = relevant.any(axis=1) & ~relevant.all(axis=1)
    return lambda: [
        roc_auc_score(*of_query) if known else 0.0
        for *of_query, known in zip(relevant, scores, both.tolist(), strict=True)
    ]


RIVALS = (
    Rival(
        "scikit-learn ndcg_score", "scikit-learn", "sklearn", "nDCG@10", _prepare(ignore_ties=False), 20_000,
        tied=True, bar=200, note="averages ties, as the package does",
    ),
    Rival(
        "scikit-learn ndcg_score, ignore_ties", "scikit-learn", "sklearn", "nDCG@10", _prepare(ignore_ties=True),
        20_000, note="scores without ties",
    ),
    Rival(
        "scikit-learn roc_auc_score", "scikit-learn", "sklearn", "AUC", _prepare_auc, 2_000, tied=True, bar=20,
        note="a loop over queries; those of one class are 0",
    ),
)  # fmt: skip
