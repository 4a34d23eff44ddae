"""CatBoost: a measure while a model trains, as its `eval_metric`.

    from fastndcg.adapters import catboost as fnc

    model = CatBoostRanker(eval_metric=fnc.metric("nDCG@10", group=[train, valid]), early_stopping_rounds=20)
    model.fit(train, eval_set=valid)

CatBoost passes only scores and labels to a metric, so the metric is made with the queries of the rows.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import catboost
import numpy as np

from fastndcg.adapters.boosters import Meter, unscored_rankings
from fastndcg.adapters.scoring import one_measure
from fastndcg.errors import InputError, InputTypeError
from fastndcg.tables.grouping import group_by_query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastndcg.common.arrays import Array
    from fastndcg.measures.conventions import Convention


def metric(
    measures: Any,
    *,
    group: catboost.Pool | Iterable[catboost.Pool],
    like: str | Convention | None = None,
    threads: int | None = None,
) -> Metric:
    """Make an `eval_metric` for CatBoost: the mean of a measure in each iteration.

    Parameters
    ----------
    measures, like, threads
        As `measures`, `convention` and `threads` of `fastndcg.evaluate`; a single measure, since CatBoost
        accepts only one. With like="catboost" the values are those of CatBoost's own `NDCG:top=10`.
    group : catboost.Pool, or several
        Every data set that is evaluated: the training data and those of `eval_set`. The metric takes their
        queries, and tells them apart by their labels.

    Returns
    -------
    object
        CatBoost shows it under the measure as it was spelled, without spaces and with "=" for ":". The weight
        of a query is that of its first document.

    Raises
    ------
    MeasureError, ConventionError
        A measure or a convention that does not exist; several measures.
    InputError, InputTypeError
        A Pool without queries; two of the same labels, in different queries; data that is not a Pool. While
        training, where CatBoost raises a `CatBoostError` with the message: data that is in none of the Pools,
        or that CatBoost has shuffled.

    Notes
    -----
    CatBoost shuffles the training queries if there are categorical features or with
    `boosting_type="Ordered"`, unless `has_time=True`.

    Examples
    --------
    >>> pool = catboost.Pool([[9], [8], [7], [2], [6]], [3, 0, 2, 1, 0], group_id=[1, 1, 1, 2, 2])
    >>> at_2 = metric("nDCG@2", group=pool)
    >>> at_2.evaluate([np.array([0.9, 0.8, 0.7, 0.2, 0.6])], np.array([3, 0, 2, 1, 0]), None)
    (0.6674239213027962, 1.0)
    """
    pools = [group] if isinstance(group, catboost.Pool) else group
    data_sets = [_read(pool) for pool in pools]
    for (offsets, label), (other_offsets, other_label) in combinations(data_sets, 2):
        if np.array_equal(label, other_label) and not np.array_equal(offsets, other_offsets):
            raise InputError(
                f"two Pools of group= have the same {len(label)} labels in different queries; "
                "a metric of CatBoost sees only labels, so leave a document out of one"
            )
    return _named(one_measure(measures), like, threads, data_sets)


def _named(measure: Any, like: Any, threads: int | None, data_sets: list[tuple[Array, Array]]) -> Metric:
    metric = Metric(measure, like, threads)
    metric.__class__ = type(metric.__name__, (Metric,), {"data_sets": data_sets})  # CatBoost shows its name
    return metric


class Metric(Meter):
    """The result of `metric`."""

    # an attribute that CatBoost reads: it tries to compile methods, and warns if it cannot
    no_jit = True
    data_sets: list[tuple[Array, Array]]  # offsets of queries, and labels

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.measures[0], self.like, self.threads, self.data_sets)

    def is_max_optimal(self) -> bool:
        return True

    def get_final_error(self, error: float, weight: float) -> float:  # noqa: ARG002 - CatBoost's signature
        return error  # a mean, not a sum over documents

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        offsets = self._queries(np.asarray(target))
        weight = None if weight is None else np.asarray(weight)[offsets[:-1]]
        rankings = self.rankings(offsets, lambda: unscored_rankings(offsets, target, weight))
        return self.means(rankings, approxes[0])[0], 1.0

    def _queries(self, label: Array) -> Array:
        for offsets, known in self.data_sets:
            if np.array_equal(known, label):
                return offsets
        sizes = " or ".join(str(len(known)) for _, known in self.data_sets) or "no Pool"
        raise InputError(
            f"CatBoost evaluates {len(label)} documents that are not those of group=, which has {sizes}: "
            "give every Pool, as in group=[train, valid]; if CatBoost shuffles its rows, use has_time=True"
        )


def _read(pool: Any) -> tuple[Array, Array]:
    if not isinstance(pool, catboost.Pool):
        raise InputTypeError(
            f"group= has a {type(pool).__name__}; expected a Pool, as in catboost.Pool(X, y, group_id=qid)"
        )
    ids = pool.get_group_id_hash()
    if ids is None:
        raise InputError(f"a Pool of group= has {pool.num_row()} rows and no queries; make it with group_id=")
    return group_by_query(np.asarray(ids)).offsets, np.asarray(pool.get_label(), np.float32)
