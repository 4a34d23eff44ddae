"""XGBoost: measures while a model trains.

    from fastndcg.adapters import xgboost as fnx

    xgb.train(
        {"objective": "rank:ndcg"}, train, evals=[(valid, "valid")],
        custom_metric=fnx.metric(["nDCG@10", "RR"]), early_stopping_rounds=20, maximize=True,
    )
    valid = {"data": X_valid, "label": y_valid, "qid": qid_valid}
    model = xgb.XGBRanker(callbacks=[fnx.callback("nDCG@10", {"valid": valid})])

XGBoost minimises a metric that it does not know, so early stopping needs `maximize=True`; a warning says so.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xgboost

from fastndcg.adapters.boosters import Meter, unscored_rankings
from fastndcg.errors import InputError, InputTypeError, warn

if TYPE_CHECKING:
    from fastndcg.measures.conventions import Convention
    from fastndcg.rankings.rankings import Rankings

_MAXIMISED = ("ndcg", "map", "pre", "auc")  # how names begin of which XGBoost takes the highest for the best


def metric(measures: Any, *, like: str | Convention | None = None, threads: int | None = None) -> Metric:
    """Make a `custom_metric` for `xgboost.train`, `xgboost.cv` and `xgboost.dask.train`.

    Parameters
    ----------
    measures, like, threads
        As `measures`, `convention` and `threads` of `fastndcg.evaluate`. With like="xgboost" the values are
        those of XGBoost's own `ndcg@10`.

    Returns
    -------
    callable (predictions, DMatrix) -> list of (name, mean)
        Queries and weights are those of the DMatrix, which is read once: do not change its labels, groups and
        weights while the metric is in use. Names are the measures as they were spelled, without spaces and
        with "=" for ":". XGBoost keeps six decimals. With several workers, means are over the queries of all.

    Raises
    ------
    MeasureError, ConventionError
        A measure or a convention that does not exist.
    InputError
        While training: a DMatrix without queries, and all that `fastndcg.evaluate` refuses.

    Notes
    -----
    XGBoost maximises a metric whose name begins with ndcg, map, pre or auc in small letters, and minimises
    all others, also "nDCG@10". Early stopping of these needs `maximize=True` in `train`, or
    `xgboost.callback.EarlyStopping(rounds=20, maximize=True)`; without it, a warning says so. Name a measure
    otherwise than an `eval_metric` of XGBoost's own, whose history would hold the values of both.

    Examples
    --------
    >>> import xgboost
    >>> data = xgboost.DMatrix(np.zeros((5, 1)), label=[3, 0, 2, 1, 0], group=[3, 2])
    >>> metric(["nDCG@2", "RR"])(np.array([0.9, 0.8, 0.7, 0.2, 0.6]), data)
    [('nDCG@2', 0.6674239213027962), ('RR', 0.75)]
    """
    return Metric(measures, like, threads)


def callback(
    measures: Any,
    evals: Mapping[str, Mapping[str, Any]],
    *,
    like: str | Convention | None = None,
    threads: int | None = None,
) -> Evaluation:
    """Make a callback that evaluates in each iteration. `XGBRanker` calls an `eval_metric` for each query.

    Parameters
    ----------
    measures, like, threads
        As in `metric`.
    evals : mapping from name to arguments of xgboost.DMatrix
        Data to evaluate, as in {"valid": {"data": X, "label": y, "qid": qid}}; weights and all else that a
        DMatrix takes may follow. The rows of each query must be contiguous, as for `XGBRanker.fit`.

    Returns
    -------
    xgboost.callback.TrainingCallback
        `evals_result()` has its values at full precision, under the names of the data and of the measure. For
        early stopping, put `xgboost.callback.EarlyStopping` behind it, with `rounds=20, data_name="valid",
        metric_name="nDCG@10", maximize=True`; `early_stopping_rounds` of `XGBRanker` would minimise.

    Raises
    ------
    MeasureError, ConventionError, InputTypeError
        A measure or a convention that does not exist; data that is not a mapping of arguments.
    """
    return Evaluation(Metric(measures, like, threads), evals)


class Metric(Meter):
    """The result of `metric`."""

    def __call__(self, predictions: Any, data: Any) -> list[tuple[str, float]]:
        if not isinstance(data, xgboost.DMatrix):
            raise InputTypeError(
                f"the metric is called with a {type(data).__name__}; expected a DMatrix. "
                "XGBRanker calls its eval_metric once for each query, and XGBClassifier and XGBRegressor "
                "have no queries: give them callbacks=[fastndcg.adapters.xgboost.callback(...)] instead."
            )
        if xgboost.collective.get_world_size() > 1:
            means = self._means_over_workers(predictions, data)
        else:
            means = self.means(self.rankings(data, lambda: self._read_queries(data)), predictions)
        return list(zip(self.names, means, strict=True))

    def _read_queries(self, data: xgboost.DMatrix) -> Rankings:
        self._warn_if_minimised()
        return _queries(data)

    def _warn_if_minimised(self) -> None:
        """Warn if early stopping will take the lowest value for the best. XGBoost tells a metric nothing of
        it, but calls it from where its callbacks are.
        """
        frame, caller = sys._getframe(), xgboost.callback.CallbackContainer.after_iteration.__code__
        while frame.f_back is not None and frame.f_code is not caller:
            frame = frame.f_back
        callbacks = frame.f_locals["self"].callbacks if frame.f_code is caller else []
        for each in callbacks:
            if isinstance(each, xgboost.callback.EarlyStopping) and each.maximize is None:
                name = each.metric_name or self.names[-1]
                if name in self.names and not name.startswith(_MAXIMISED):
                    warn(
                        f"XGBoost takes the lowest {name} as the best: pass maximize=True to train, "
                        "or to xgboost.callback.EarlyStopping"
                    )

    def _means_over_workers(self, predictions: Any, data: xgboost.DMatrix) -> list[float]:
        """Return means over the queries of all workers. Workers without queries take part too."""
        totals = np.zeros((2, len(self.measures)))
        if data.num_row():
            scores = self.scores(self.rankings(data, lambda: self._read_queries(data)), predictions)
            for row, mean in enumerate(scores.mean().values()):
                values, weight = scores._values_that_count(row)
                share = len(values) if weight is None else weight.sum()
                totals[:, row] = mean * share if share else 0.0, share
        sums, shares = xgboost.collective.allreduce(totals.ravel(), xgboost.collective.Op.SUM).reshape(2, -1)
        both = zip(sums.tolist(), shares.tolist(), strict=True)
        return [total / share if share > 0 else np.nan for total, share in both]


class Evaluation(xgboost.callback.TrainingCallback):
    """The result of `callback`."""

    def __init__(self, metric: Metric, evals: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__()
        for name, arguments in evals.items():
            if not isinstance(arguments, Mapping):
                raise InputTypeError(
                    f"evals[{name!r}] is a {type(arguments).__name__}; expected the arguments of a DMatrix, "
                    'as in {"data": X, "label": y, "qid": qid}'
                )
        self._metric, self._evals = metric, dict(evals)
        self._data: dict[str, xgboost.DMatrix] = {}

    def before_training(self, model: Any) -> Any:
        self._data = {name: xgboost.DMatrix(**arguments) for name, arguments in self._evals.items()}
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
        for name, data in self._data.items():
            log = evals_log.setdefault(name, {})
            for measure, mean in self._metric(model.predict(data), data):
                log.setdefault(measure, []).append(mean)
        return False

    def after_training(self, model: Any) -> Any:
        self._data.clear()  # a model is pickled with its callbacks, and a DMatrix cannot be
        return model


def _queries(data: xgboost.DMatrix) -> Rankings:
    offsets, weight = _here(data.get_uint_info("group_ptr")), _here(data.get_weight())
    if len(offsets) < 2:
        raise InputError(
            f"the DMatrix has {data.num_row()} rows and no queries; "
            "make it with qid= or group=, the size of each query"
        )
    return unscored_rankings(offsets, _here(data.get_label()), weight if len(weight) else None)


def _here(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()  # from the memory of a GPU
