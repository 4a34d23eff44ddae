"""MLflow: metrics of its evaluator for rankings of document ids.

mlflow.models.evaluate(
    data=frame, predictions="retrieved", targets="relevant", model_type="retriever",
    extra_metrics=fnm.retriever_metrics(["nDCG@10", "RR"]),
)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mlflow.metrics import MetricValue, make_metric

from fastndcg.api.evaluate import evaluate
from fastndcg.errors import InputTypeError
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.measures.by_tool import Convention


def retriever_metrics(measures: Measures, *, convention: str | Convention | None = None) -> list[Any]:
    """Make metrics for `extra_metrics` of `mlflow.models.evaluate`, whose rows are queries.

    Parameters
    ----------
    measures : one or several of Measure, notation ("nDCG@10"), or ir_measures object
    convention : name or Convention, optional
        Compute as this tool does; "mlflow" has the definitions of MLflow's own `precision_at_k`,
        `recall_at_k` and `ndcg_at_k`.

    Returns
    -------
    list of mlflow.metrics.EvaluationMetric
        Named as MLflow allows it, as in `nDCG_at_10`. In a row the predictions are a list of document ids,
        best first, and the targets a list of relevant ids, or a dict from id to grade. Each metric has the
        value of each row, and as `mean` that of `fastndcg.evaluate`.

    Raises
    ------
    MeasureError, ConventionError
        At once: a measure or a convention that does not exist.
    InputError, InputTypeError
        While evaluating: a document twice in a row; targets or predictions that are no lists.

    Examples
    --------
    >>> (metric,) = retriever_metrics("nDCG@10")
    >>> found = metric.eval_fn([["a", "b"], ["x", "c"]], [["a"], {"c": 2, "d": 1}])
    >>> metric.name, found.scores, found.aggregate_results
    ('nDCG_at_10', [1.0, 0.4796...], {'mean': 0.7398...})
    """
    return [_metric(measure, convention) for measure in as_measures(measures)]


def _metric(measure: Measure, convention: str | Convention | None) -> Any:
    evaluate(Rankings.from_lists([]), measure, convention=convention)  # raises what is wrong with either

    def eval_fn(predictions: Any, targets: Any) -> Any:
        judged = {row: _grades(row, each) for row, each in enumerate(targets)}
        returned = {row: list(each) for row, each in enumerate(predictions)}
        rankings = Rankings.from_qrels_run(judged, returned, ties="input")
        scores = evaluate(rankings, measure, convention=convention)
        return MetricValue(
            scores=scores.values[0].tolist(), aggregate_results={"mean": scores.mean()[str(measure)]}
        )

    name = re.sub(r"[^\w.]+", "_", str(measure).replace("@", " at ")).strip("_")
    return make_metric(eval_fn=eval_fn, greater_is_better=True, name=name)


def _grades(row: int, targets: Any) -> dict[Any, float]:
    if isinstance(targets, Mapping):
        return dict(targets)
    if isinstance(targets, str) or not isinstance(targets, Iterable):
        raise InputTypeError(
            f"the targets of row {row} are a {type(targets).__name__}; wanted a list of the ids of relevant "
            "documents, or a dict from id to grade"
        )
    return dict.fromkeys(targets, 1)
