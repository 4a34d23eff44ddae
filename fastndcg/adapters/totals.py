"""What the parts of an engine's data add up to: a summary, or means of computed values.

A part sends only sums to the driver. Sums are fractions, so merging them in any order gives exactly the sums
of the whole.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.adapters.parts import Task, score
from fastndcg.convention.evaluation import ConventionScores, MeanSums
from fastndcg.errors import warn
from fastndcg.kernels.compile import caching
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import columns_of_means, groups_of
from fastndcg.scores.summary import Summary, interval_of
from fastndcg.scores.weights import COUNTS
from fastndcg.sources.columns import check_column
from fastndcg.statistics import Moments, quartiles
from fastndcg.statistics.intervals import SMALL, check_confidence

Float64 = npt.NDArray[np.float64]


class Sums(NamedTuple):
    """Sums over the queries of a part. The sums of all parts add up to exactly those of the whole."""

    queries: int
    empty: tuple[int, ...]  # for each measure, the number of queries without a value
    moments: tuple[Moments, ...]
    values: tuple[Float64, ...] | None  # for each measure; None if quartiles are not computed
    means: tuple[MeanSums, ...] | None  # for each measure; None without a convention

    @classmethod
    def of(cls, scores: Scores, *, values: bool = False) -> Sums:
        rows = range(len(scores.measures))
        counted = [scores._values_that_count(row) for row in rows]
        return cls(
            scores.n_queries,
            tuple(scores._empty.sum(axis=1).tolist()),
            tuple(Moments.of(*each) for each in counted),
            tuple(each[0] for each in counted) if values else None,
            tuple(map(scores._mean_sums, rows)) if isinstance(scores, ConventionScores) else None,
        )

    @classmethod
    def total(cls, measures: int, parts: Sequence[Sums]) -> Sums:
        """The sums over all parts; there may be no part."""
        moments = [Moments.of(np.empty(0))] * measures
        for part in parts:
            moments = list(map(Moments.merge, moments, part.moments))
        listed = [part.values for part in parts if part.values is not None]
        means = [part.means for part in parts if part.means is not None]
        return cls(
            sum(part.queries for part in parts),
            tuple(sum(part.empty[row] for part in parts) for row in range(measures)),
            tuple(moments),
            tuple(map(np.concatenate, zip(*listed, strict=True))) if listed else None,
            tuple(reduce(MeanSums.merge, of_measure) for of_measure in zip(*means, strict=True))
            if means
            else None,
        )


def add_up(task: Task, tables: Iterable[pa.Table], *, values: bool) -> Sums:
    """Add up the sums over tables of whole queries."""
    return Sums.total(len(task.measures), [Sums.of(score(task, table)[0], values=values) for table in tables])


def summary_of(
    task: Task, found: Sequence[Sums], *, values: bool, confidence: float | None = None
) -> Summary:
    """Return the result of `Scores.summary` for all queries, with quartiles if the sums have values."""
    sums, rows = Sums.total(len(task.measures), found), []
    weighted = task.columns.weight is not None
    for row, column in enumerate(task.notations):
        moments = sums.moments[row]
        numbers: dict[str, Any] = {"measure": column, "mean": moments.mean(weighted=weighted)}
        rule = None if task.convention is None else task.convention.on(task.measures[row])
        heeds = weighted and (rule is None or rule.weights != "ignored")
        if rule is not None and sums.means is not None:
            numbers["mean"] = sums.means[row].mean(rule)
        if confidence is not None:
            numbers |= interval_of(numbers["mean"], moments, confidence, weighted=heeds)
        numbers["std"] = moments.std()
        numbers["min"], numbers["max"] = moments.range()
        if values:
            kept = np.empty(0) if sums.values is None else sums.values[row]
            numbers["q25"], numbers["median"], numbers["q75"] = quartiles(kept)
        rows.append({**numbers, "queries": sums.queries, "empty": sums.empty[row]})
    return Summary(rows)


# ---- between workers and the driver ----


@contextmanager
def telling_the_driver() -> Iterator[None]:
    """Score in a worker whose results `pickle_row` packs: the driver says that kernels cannot be kept."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "compiled kernels cannot be kept")
        yield


_told: list[str] = []  # once in a driver


def pickle_row(found: Any, unkept: Sequence[str] = ()) -> pa.Table:
    """Return a table of one row with the result of a part, which is all that a worker sends to the driver,
    and where workers could not keep kernels.
    """
    told = [*caching._warned, *unkept][:1]
    return pa.table({"found": pa.array([pickle.dumps((found, told))], pa.binary())})


def unpickle(rows: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Return the results of all parts from the rows of `pickle_row`, and where kernels could not be kept."""
    pairs = [pickle.loads(row["found"]) for row in rows]  # noqa: S301 - our own
    return [found for found, _ in pairs], [where for _, told in pairs for where in told]


def unpickle_rows(rows: Iterable[Any]) -> list[Any]:
    """Return the results of all parts, in the driver."""
    found, unkept = unpickle(rows)
    if unkept and not _told:
        _told.append(unkept[0])
        warn(
            f"workers cannot keep compiled kernels in {unkept[0]}; each of them compiles again, for about "
            "20 s. Ship a folder made by fastndcg compile --folder, or set NUMBA_CACHE_DIR for workers to a "
            "folder that they can write."
        )
    return found


# ---- means of computed values ----


class Means(NamedTuple):
    """The means to compute from results."""

    measures: tuple[Measure, ...]
    notations: tuple[str, ...]  # as in `Task`
    by: tuple[str, ...]
    weight: str | None
    confidence: float | None

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        return [*dict.fromkeys([*self.by, *([] if self.weight is None else [self.weight])]), *self.notations]


def check_means(
    names: Sequence[str],
    measures: Measures,
    *,
    by: str | Sequence[str] | None,
    weight: str | None,
    confidence: float | None = None,
) -> Means:
    """Return the means to compute, checked against the columns of the results."""
    known = as_measures(measures)
    groups = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if confidence is not None:
        check_confidence(confidence)
    means = Means(known, tuple(measure.label for measure in known), groups, weight, confidence)
    for name in means.by:
        check_column(names, "by", name)
    if weight is not None:
        weight = weight if weight in names else COUNTS.get(weight, weight)
        means = means._replace(weight=weight)
        check_column(names, "weight", weight)
    for column in means.notations:
        check_column(names, "measures", column)
    return means


Groups = list[tuple[tuple[Any, ...], Sums]]


def sums_by(means: Means, table: pa.Table) -> Groups:
    """Return the sums of each group in a part of the results; one group without columns to group by."""
    values = np.stack([table[column].to_numpy() for column in means.notations])
    weight = None if means.weight is None else table[means.weight].to_numpy()
    distinct: list[tuple[Any, ...]] = [()]
    rows = [np.arange(len(table))]
    if means.by:
        groups, rows = groups_of([table[name] for name in means.by])
        distinct = list(zip(*(column.to_pylist() for column in groups), strict=True))
    nothing = np.zeros(values.shape, np.bool_)
    found = []
    for value, part in zip(distinct, rows, strict=True):
        of_part = None if weight is None else weight[part]
        scores = Scores(means.measures, values[:, part], nothing[:, part], table, of_part)
        found.append((value, Sums.of(scores)))
    return found


def means_of(means: Means, kinds: Sequence[pa.DataType], parts: Iterable[Groups]) -> pa.Table:
    """Return the result of `Scores.by`, ascending with null last. `kinds` are the types of the groups.

    Empty queries are not counted, since an empty query has the same value as a query of value 0.
    """
    found: dict[Any, tuple[tuple[Any, ...], list[Sums]]] = {}
    for part in parts:
        for values, sums in part:
            # NaN has a string as its key, since NaN differs from itself
            key = tuple("NaN" if value != value else (value,) for value in values)  # noqa: PLR0124
            found.setdefault(key, (values, []))[1].append(sums)
    if not means.by and not found:
        found[()] = ((), [])
    totals = [(values, Sums.total(len(means.measures), sums)) for values, sums in found.values()]
    columns: dict[str, Any] = {
        name: pa.array([values[place] for values, _ in totals], kinds[place] if kinds else None)
        for place, name in enumerate(means.by)
    }
    columns["queries"] = pa.array([sums.queries for _, sums in totals], pa.int64())
    if means.confidence is not None:
        columns["small"] = pa.array([sums.queries < SMALL for _, sums in totals], pa.bool_())
    weighted = means.weight is not None
    for row, column in enumerate(means.notations):
        of_groups = [sums.moments[row] for _, sums in totals]
        averages = [moments.mean(weighted=weighted) for moments in of_groups]
        columns |= columns_of_means(column, averages, of_groups, means.confidence, weighted=weighted)
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in means.by]) if means.by else table
