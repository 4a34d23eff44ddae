"""CatBoost: a measure while a model trains, as its `eval_metric`.

    from fastndcg.adapters import catboost as fnc

    model = CatBoostRanker(eval_metric=fnc.metric("nDCG@10", group=[train, valid]), early_stopping_rounds=20)
    model.fit(train, eval_set=valid)

CatBoost passes only scores and labels to a metric, so the metric is made with the queries of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import catboost
import numpy as np

from fastndcg.adapters.boosters import Meter, printable_name, unscored_rankings
from fastndcg.adapters.parts import one_measure
from fastndcg.common.arrays import Array, offsets_from
from fastndcg.errors import InputError
from fastndcg.rankings.grouping import group_by_query

if TYPE_CHECKING:
    from fastndcg.measures.by_tool import Convention
    from fastndcg.rankings.rankings import Rankings


def metric(
    measures: Any,
    *,
    group: Any,
    folds: Iterable[tuple[Any, Any]] | None = None,
    like: str | Convention | None = None,
    threads: int | None = None,
) -> Metric:
    """Make an `eval_metric` for CatBoost: the mean of a measure in each iteration.

    Parameters
    ----------
    measures, like, threads
        As `measures`, `convention` and `threads` of `fastndcg.evaluate`; a single measure, since CatBoost
        accepts only one. With like="catboost" the values are those of CatBoost's own `NDCG:top=10`.
    group : catboost.Pool, or sizes of queries, (n_queries,); or a list of these
        The queries of every data set that is evaluated: the training data and those of `eval_set`. The metric
        tells data sets apart by their number of documents, and those of a Pool by their labels, too.
    folds : pairs of rows to train with and to test, optional
        For `catboost.cv(pool, ..., folds=folds)`, with the pool as `group`.

    Returns
    -------
    object
        CatBoost shows it under the notation of the measure, without spaces and with "=" for ":". The weight
        of a query is that of its first document.

    Raises
    ------
    MeasureError, ConventionError
        A measure or a convention that does not exist; several measures.
    InputError
        Two data sets with equally many documents, of the same labels, in different queries. While training,
        where CatBoost raises a `CatBoostError` with the message: a data set of another number of documents;
        one that CatBoost has shuffled.

    Notes
    -----
    CatBoost shuffles the training queries if there are categorical features or with
    `boosting_type="Ordered"`, unless `has_time=True`. The metric notices this if `group` is a Pool, which has
    labels; with sizes alone it cannot.

    Examples
    --------
    >>> at_2 = metric("nDCG@2", group=[3, 2])
    >>> at_2.evaluate([np.array([0.9, 0.8, 0.7, 0.2, 0.6])], np.array([3, 0, 2, 1, 0]), None)
    (0.6674239213027962, 1.0)
    """
    held = tuple(_read(group))
    if folds is not None:
        if not isinstance(group, catboost.Pool):
            raise InputError("folds are rows of a Pool; give it as group=")
        ids, label = np.asarray(group.get_group_id_hash()), np.asarray(group.get_label(), np.float32)
        each = [np.asarray(rows, np.int64) for fold in folds for rows in fold]
        held = tuple(_Sizes(group_by_query(ids[rows]).offsets, label[rows]) for rows in each)
    _check_sizes_differ(held)
    return _of(one_measure(measures), held, like, threads)


def _of(measure: Any, held: tuple[_Sizes, ...], like: Any, threads: int | None) -> Metric:
    # a class that has the name of the measure, which CatBoost shows
    kind: type[Metric] = type(printable_name(measure), (Metric,), {"held": held})
    return kind(measure, like, threads)


class _Sizes(NamedTuple):
    """The queries of a data set."""

    offsets: Array
    label: Array | None  # None if only sizes were passed


class Metric(Meter):
    """The result of `metric`."""

    # an attribute that CatBoost reads: it tries to compile methods, and warns if it cannot
    no_jit = True
    held: tuple[_Sizes, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _of, (self.measures[0], self.held, self.like, self.threads)

    def is_max_optimal(self) -> bool:
        return True

    def get_final_error(self, error: float, weight: float) -> float:  # noqa: ARG002 - CatBoost's signature
        return error  # a mean, not a sum over documents

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        scores, label = np.asarray(approxes[0]), np.asarray(target)
        sizes = self._sizes(label)
        found = self.rankings(sizes.offsets, lambda: _queries(sizes, label, weight))
        if not np.array_equal(found.relevance, label):  # other data, in the same queries
            found = _queries(sizes, label, weight)
        return self.means(found, scores)[0][1], 1.0

    def _sizes(self, label: Array) -> _Sizes:
        fitting = [known for known in self.held if known.offsets[-1] == len(label)]
        for known in fitting:
            if known.label is None or np.array_equal(known.label, label):
                return known
        if fitting:
            raise InputError(
                f"CatBoost evaluates {len(label)} documents in another order than the Pool's, as it shuffles "
                "training data; train with has_time=True, or give a metric the Pools that it is used with"
            )
        known_rows = " or ".join(str(known.offsets[-1]) for known in self.held)
        raise InputError(
            f"CatBoost evaluates {len(label)} documents, and group= has {known_rows}; "
            "give the queries of every data set, including the training data, as in group=[train, valid]"
        )


def _read(group: Any) -> Iterator[_Sizes]:
    if isinstance(group, catboost.Pool):
        ids = group.get_group_id_hash()
        if ids is None:
            raise InputError(
                f"a Pool of group= has {group.num_row()} rows and no queries; make it with group_id="
            )
        queries = group_by_query(np.asarray(ids))
        yield _Sizes(queries.offsets, np.asarray(group.get_label(), np.float32))
    elif len(group) and (isinstance(group[0], catboost.Pool) or np.ndim(group[0])):
        for each in group:
            yield from _read(each)
    else:
        yield _Sizes(offsets_from(group), None)


def _check_sizes_differ(held: tuple[_Sizes, ...]) -> None:
    by_rows: dict[Any, Array] = {}
    unlabelled = {int(each.offsets[-1]) for each in held if each.label is None}
    for each in held:
        rows = int(each.offsets[-1])
        seen = None if each.label is None or rows in unlabelled else each.label.tobytes()
        other = by_rows.setdefault((rows, seen), each.offsets)
        if not np.array_equal(other, each.offsets):
            raise InputError(
                f"two data sets of group= have {each.offsets[-1]} documents each, in different queries; "
                "a metric of CatBoost sees only their number, so leave a document out of one"
            )


def _queries(sizes: _Sizes, label: Array, weight: Any) -> Rankings:
    of_query = None
    if weight is not None:
        first = sizes.offsets[:-1]
        of_query = np.where(first < len(label), np.asarray(weight)[np.minimum(first, len(label) - 1)], 0.0)
    return unscored_rankings(sizes.offsets, label, of_query)
