"""From measures and rankings to values, by the method that each measure's declaration names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from fastndcg.common.arrow_types import array_of
from fastndcg.common.lazy import pa
from fastndcg.errors import ColumnError, InputError, suggest
from fastndcg.measures.measure import hold_functions
from fastndcg.scoring import launch

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastndcg.common.arrays import Float64
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores


def values(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None = None) -> Float64:
    """Values of each measure for each query, float64 (n_measures, n_queries); NaN where a query has no value.

    Raises as `fastndcg.evaluate` does.
    """
    if any(measure.cutoff_column is not None for measure in measures):
        return _values_at_own_cutoffs(measures, rankings, threads)
    methods = [measure.definition.method for measure in measures]
    out = np.empty((0, rankings.n_queries))
    for method in dict.fromkeys(methods):
        rows = [row for row, other in enumerate(methods) if other == method]
        compute = (
            _METHODS.get(method)
            or import_module(f"fastndcg.scoring.{_MODULES.get(method, 'weighted_sums')}").values
        )
        computed = compute(tuple(measures[row] for row in rows), rankings, threads)
        if len(rows) == len(measures):
            return computed
        out = out if len(out) else np.empty((len(measures), rankings.n_queries))
        out[rows] = computed
    return out


_TOGETHER = 16  # how many cutoffs of a column are evaluated together


def _values_at_own_cutoffs(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Compute measures, some of which have a cutoff for each query.

    All queries are scored at every cutoff that occurs, and each takes the value at its own cutoff.
    """
    out = np.empty((len(measures), rankings.n_queries))
    with hold_functions(measures):
        for column in dict.fromkeys(measure.cutoff_column for measure in measures):
            rows = [row for row, measure in enumerate(measures) if measure.cutoff_column == column]
            if column is None:
                out[rows] = values(tuple(measures[row] for row in rows), rankings, threads)
                continue
            own_cutoff = cutoffs_of_queries(column, rankings)
            distinct = np.unique(own_cutoff).tolist()
            for first in range(0, len(distinct), _TOGETHER):
                some = distinct[first : first + _TOGETHER]
                at_cutoffs = tuple(measures[row] @ cutoff for cutoff in some for row in rows)
                at_all = values(at_cutoffs, rankings, threads).reshape(len(some), len(rows), -1)
                for cutoff, each in zip(some, at_all, strict=True):
                    selected = own_cutoff == cutoff
                    out[np.ix_(rows, selected)] = each[:, selected]
    return out


def cutoffs_of_queries(column: str, rankings: Rankings) -> npt.NDArray[np.int64]:
    """Return each query's cutoff from a kept column. Raises `ColumnError` or `InputError`."""
    kept = rankings.queries.column_names
    if column not in kept:
        raise ColumnError(
            f'there is no column "{column}" to take cutoffs from; available columns: {", ".join(kept)}. '
            f"Name it in keep=.{suggest(column, kept)}"
        )
    kept_column = rankings.queries[column]
    if kept_column.null_count:
        row = kept_column.is_null().index(True).as_py()
        raise InputError(
            f'column "{column}" has no cutoff for query {rankings._name_of(row)}; '
            "give each query a whole number of at least 1"
        )
    try:
        cutoffs: npt.NDArray[np.int64] = array_of(kept_column.cast("int64"))
    except pa.ArrowException:
        raise InputError(
            f'column "{column}" is of {kept_column.type} and holds no cutoffs; expected whole numbers from 1'
        ) from None
    if len(cutoffs) and cutoffs.min() < 1:
        row = int(np.argmin(cutoffs))
        raise InputError(
            f'column "{column}" has the cutoff {cutoffs[row]} for query {rankings._name_of(row)}; '
            "expected whole numbers from 1"
        )
    return cutoffs


def score(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None = None) -> Scores:
    """`values`, with each measure's `empty` in place of NaN."""
    from fastndcg.scores.scores import Scores

    out = values(measures, rankings, threads)
    return Scores(measures, out, replace_undefined(measures, out, rankings), rankings, rankings.weight)


def defined_values(
    measures: tuple[Measure, ...], rankings: Rankings, threads: int | None = None
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Return the result of `score` as arrays: values, and a mask of those that are `empty`."""
    out = values(measures, rankings, threads)
    return out, replace_undefined(measures, out, rankings)


def replace_undefined(
    measures: tuple[Measure, ...], values: Float64, rankings: Rankings
) -> npt.NDArray[np.bool_]:
    """Replace NaN by each measure's `empty`, in place; returns a mask.

    Raises `InputError` for an expectation with too many terms, for which the kernels return infinity.
    """
    finite = np.isfinite(values)
    if finite.all():
        return np.zeros(values.shape, np.bool_)
    empty = [measure.params.get("empty", 0.0) for measure in measures]
    instead = np.array([np.nan if isinstance(value, str) else value for value in empty], np.float64)
    undefined = np.isnan(values)
    if not (finite | undefined).all():
        row, query = np.argwhere(np.isinf(values))[0]
        raise InputError(
            f"{measures[row]} has too many orders of the tied documents of query "
            f"{rankings._name_of(int(query))} for an exact expectation. "
            'Use ties="input", "worst" or "best".'
        )
    np.copyto(values, instead[:, None], where=undefined)
    return undefined


def _with_pooled(measures: tuple[Measure, ...], rankings: Rankings, threads: int | None) -> Float64:
    """Values of measures that count unjudged documents of the pool separately: infAP."""
    pooled = rankings._with_pooled
    out = launch.score(measures, rankings, threads)
    rows = [row for row, measure in enumerate(measures) if measure.rel >= 0]
    if pooled is not None and rows:
        out[rows] = launch.score(tuple(measures[row] for row in rows), pooled, threads)
    return out


_METHODS: dict[str, Callable[..., Float64]] = {"kernels": launch.score, "pooled": _with_pooled}
# modules that are imported on first use; the other methods are in `weighted_sums`
_MODULES = {"built ideals": "ideals", "intents": "intents"}
