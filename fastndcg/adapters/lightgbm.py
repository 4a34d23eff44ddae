"""LightGBM: measures while a model trains.

from fastndcg.adapters import lightgbm as fnl

parameters = {"objective": "lambdarank", "metric": "None"}
lgb.train(parameters, train, valid_sets=[valid], feval=fnl.metric(["nDCG@10", "RR"]))
ranker = lgb.LGBMRanker()
ranker.fit(X, y, group=sizes, eval_set=[...], eval_group=[...], eval_metric=fnl.metric("nDCG@10"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lightgbm
import numpy as np

from fastndcg.adapters.boosters import Meter, unscored_rankings
from fastndcg.common.arrays import offsets_from
from fastndcg.errors import InputError

if TYPE_CHECKING:
    from fastndcg.measures.conventions import Convention
    from fastndcg.rankings.rankings import Rankings


def metric(measures: Any, *, like: str | Convention | None = None, threads: int | None = None) -> Metric:
    """Make a `feval` for `lightgbm.train` and `cv`, or an `eval_metric` for `LGBMRanker`.

    Parameters
    ----------
    measures, like, threads
        As `measures`, `convention` and `threads` of `fastndcg.evaluate`. With like="lightgbm" the values are
        those of LightGBM's own `ndcg` with its default label_gain. A booster's label_gain is not known to a
        metric: repeat it, as in `like=fastndcg.conventions["lightgbm"].replace(gain=[0, 1, 3, 7])`.

    Returns
    -------
    callable (predictions, Dataset), or (label, predictions, weight, group) -> list of (name, mean, True)
        True tells early stopping that higher is better. A data set is read once: do not change its labels,
        groups and weights while the metric is in use. As in LightGBM, the weight of a query is the mean of
        its rows' weights. Names are the measures as they were spelled, without spaces and with "=" for ":".

    Raises
    ------
    MeasureError, ConventionError
        A measure or a convention that does not exist.
    InputError
        While training: a data set without queries, and all that `fastndcg.evaluate` refuses.

    Examples
    --------
    >>> label, scores = np.array([3, 0, 2, 1, 0]), np.array([0.9, 0.8, 0.7, 0.2, 0.6])
    >>> metric(["nDCG@2", "RR"])(label, scores, None, np.array([3, 2]))
    [('nDCG@2', 0.6674239213027962, True), ('RR', 0.75, True)]
    """
    return Metric(measures, like, threads)


class Metric(Meter):
    """The result of `metric`. LightGBM counts its parameters to decide how to call it."""

    def __call__(
        self, first: Any, second: Any, weight: Any = None, group: Any = None
    ) -> list[tuple[str, float, bool]]:
        if isinstance(second, lightgbm.Dataset):
            predictions, data = first, second
            queries = self.rankings(
                data, lambda: _queries(data.get_label(), data.get_weight(), data.get_group())
            )
        else:
            label, predictions = first, second
            queries = self.rankings(label, lambda: _queries(label, weight, group))
            if not np.array_equal(np.diff(queries.offsets), group):  # the same labels with other query sizes
                queries = _queries(label, weight, group)
        means = zip(self.names, self.means(queries, predictions), strict=True)
        return [(name, mean, True) for name, mean in means]


def _queries(label: Any, weight: Any, sizes: Any) -> Rankings:
    if sizes is None:
        raise InputError(
            f"the data set has {len(label)} rows and no queries; make it with group=, the size of each query"
        )
    sizes = np.asarray(sizes)
    if weight is not None:
        of_query = np.zeros(len(sizes))
        filled = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[filled]
        of_query[filled] = np.add.reduceat(np.asarray(weight, np.float64), starts) / sizes[filled]
        weight = of_query
    return unscored_rankings(offsets_from(sizes), label, weight)
