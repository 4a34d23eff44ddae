"""ranx's `evaluate`, its `Qrels` and `Run` built beforehand (which costs it some 30 times the evaluation)."""

from __future__ import annotations

from collections.abc import Callable

import fastndcg as fn
from bench.rivals import Rival, dicts


def _prepare(rankings: fn.Rankings) -> Callable[[], float]:
    from ranx import Qrels, Run, evaluate

    qrels, run = dicts(rankings)
    judged, ranked = Qrels(qrels), Run(run)
    return lambda: float(evaluate(judged, ranked, "ndcg@10"))


RIVALS = (
    Rival(
        "ranx evaluate", "ranx", "ranx", "nDCG@10", _prepare, 20_000, bar=250,
        note="without the building of its inputs; scores without ties",
    ),
)  # fmt: skip
