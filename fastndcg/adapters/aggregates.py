"""Sums over partitions, and the summaries and means that they add up to.

A worker sends only sums. They are integers, so merging them in any order gives exactly those of the whole.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.adapters.scoring import larger
from fastndcg.convention.evaluation import ConventionScores, MeanSums, resolve_all
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.scores.scores import Scores
from fastndcg.scores.signatures import Digests, signature_of
from fastndcg.scores.slices import COUNTS, columns_of_means, numbered_groups
from fastndcg.scores.summary import Summary, interval_of
from fastndcg.statistics import Moments
from fastndcg.statistics.intervals import SMALL, check_confidence
from fastndcg.tables.roles import check_column

if TYPE_CHECKING:
    from fastndcg.adapters.scoring import Task
    from fastndcg.common.arrays import Int64


def merged(one: Any, other: Any) -> Any:
    """Add the sums of two partitions, by system and measure. None stands for an empty partition."""
    if one is None or other is None:
        return other if one is None else one
    return tuple(map(merged, one, other)) if type(one) is tuple else one + other


class Sums(NamedTuple):
    """Exact sums over the queries of a partition; they add up to those of all queries."""

    queries: int
    empty: tuple[int, ...]  # for each measure, the number of queries without a value
    moments: tuple[Moments, ...]
    means: tuple[MeanSums, ...] | None  # for each measure; None without a convention
    digests: Digests  # of the queries and their judgments

    @classmethod
    def of(cls, scores: Scores) -> Sums:
        rows = range(len(scores.measures))
        return cls(
            scores.n_queries,
            tuple(scores._empty.sum(axis=1).tolist()),
            tuple(Moments.of(*scores._values_that_count(row)) for row in rows),
            tuple(map(scores._mean_sums, rows)) if isinstance(scores, ConventionScores) else None,
            scores._digests_in(),
        )

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums._make(map(merged, self, other))


def summary_of(
    task: Task, partial_sums: Iterable[tuple[Sums, ...]], confidence: float | None = None
) -> Summary:
    """`Scores.summary` of each system, but quartiles, from the sums of all partitions."""
    nothing = Sums(
        0,
        (0,) * len(task.measures),
        (Moments.of(np.empty(0)),) * len(task.measures),
        None,
        Digests("returned", task.columns.is_judged is not None, 0, 0),
    )
    systems = reduce(merged, partial_sums, (nothing,) * len(task.score_columns))
    tool, weighted = task.convention, task.columns.weight is not None
    rules = [None if tool is None else tool.on(each) for each in task.measures]
    heeds = [weighted and (rule is None or rule.weights != "ignored") for rule in rules]
    rows = []
    for system, sums in zip(task.score_columns, systems, strict=True):
        for row, (notation, rule) in enumerate(zip(task.notations, rules, strict=True)):
            moments = sums.moments[row]
            numbers: dict[str, Any] = {"system": system} if task.systems else {}
            numbers |= {"measure": notation, "mean": moments.mean(weighted=weighted)}
            if rule is not None and sums.means is not None:
                numbers["mean"] = sums.means[row].mean(rule)
            if confidence is not None:
                numbers |= interval_of(numbers["mean"], moments, confidence, weighted=heeds[row])
            numbers["std"] = moments.std()
            numbers["min"], numbers["max"] = moments.range()
            rows.append({**numbers, "queries": sums.queries, "empty": sums.empty[row]})
    # systems are evaluated on the same queries and judgments
    resolved, name = (task.measures, None) if tool is None else (resolve_all(task.measures, tool), tool.name)
    signatures = {
        str(measure): signature_of(each, systems[0].digests, name, weighted=any(heeds))
        for measure, each in zip(task.measures, resolved, strict=True)
    }
    return Summary(rows, signatures)


# ---- between workers and the driver ----


ROW = pa.schema([("data", pa.binary())])  # of rows of `pickle_row`


def pickle_row(result: Any) -> pa.Table:
    """A row with the result of a partition."""
    data = zlib.compress(pickle.dumps(result), 1)  # its integers end with many zeros
    return pa.table([pa.array([data], pa.binary())], schema=ROW)


def unpickle_rows(rows: pa.Table | Iterable[Any] | None) -> list[Any]:
    """The results in rows of `pickle_row`."""
    rows = rows.to_pylist() if isinstance(rows, pa.Table) else rows or ()
    return [pickle.loads(zlib.decompress(row["data"])) for row in rows]  # noqa: S301 - our own


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
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    confidence: float | None = None,
) -> Means:
    """Return the means to compute, checked against the columns of the results."""
    known = as_measures(measures)
    groups = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if confidence is not None:
        check_confidence(confidence)
    if weight is not None:
        weight = weight if weight in names else COUNTS.get(weight, weight)
    means = Means(known, tuple(measure.label for measure in known), groups, weight, confidence)
    asked = {"by": groups, "weight": () if weight is None else (weight,), "measures": means.notations}
    for argument, columns in asked.items():
        for name in columns:
            check_column(names, argument, name)
    return means


class Groups(NamedTuple):
    """Exact sums over the queries of each group; those of partitions merge into those of all queries."""

    by: list[pa.Array]  # the values of each group
    queries: Int64  # (n_groups,)
    moments: list[Moments]  # of each measure, by group

    @classmethod
    def merged(cls, parts: Sequence[Groups], kinds: Sequence[pa.DataType]) -> Groups:
        """The sums over all parts; there is at least one. `kinds` are the types of the groups."""
        columns = [
            pa.chunked_array([part.by[place].cast(kind) for part in parts])
            for place, kind in enumerate(kinds)
        ]
        queries = np.concatenate([part.queries for part in parts])
        by, codes, n = numbered_groups(columns, len(queries))
        of_measures = zip(*(part.moments for part in parts), strict=True)
        return cls(
            by,
            np.bincount(codes, queries, n).astype(np.int64),
            [Moments.merged(codes, n, of_measure) for of_measure in of_measures],
        )


def sums_by(means: Means, table: pa.Table) -> Groups:
    """Return the sums of each group in a partition of results; one group without columns to group by."""
    by, codes, n = numbered_groups([table[name] for name in means.by], len(table))
    weight = None if means.weight is None else table[means.weight].to_numpy()
    values = np.stack([table[column].to_numpy() for column in means.notations])
    scores = Scores(means.measures, values, np.zeros(values.shape, np.bool_), table, weight)
    spread, rows = means.confidence is not None, range(len(means.measures))
    return Groups(
        by,
        np.bincount(codes, minlength=n),
        [scores._sums_by(row, codes, n, spread=spread) for row in rows],
    )


def sum_groups(means: Means, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield rows with the sums of each group in a partition of results."""
    for table in larger(tables):
        yield pickle_row(sums_by(means, table))


def means_of(means: Means, kinds: Sequence[pa.DataType], parts: Iterable[Groups]) -> pa.Table:
    """Return the result of `Scores.by`, ascending with null last. `kinds` are the types of the groups.

    Empty queries are not counted, since an empty query has the same value as a query of value 0.
    """
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    nothing = dict.fromkeys(means.names, pa.array([], pa.float64()))
    nothing |= {name: pa.array([], kind) for name, kind in zip(means.by, kinds, strict=True)}
    found = Groups.merged([sums_by(means, pa.table(nothing)), *parts], kinds)
    columns: dict[str, Any] = dict(zip(means.by, found.by, strict=True))
    columns["queries"] = pa.array(found.queries, pa.int64())
    if means.confidence is not None:
        columns["small"] = pa.array(found.queries < SMALL, pa.bool_())
    weighted = means.weight is not None
    for column, of_measure in zip(means.notations, found.moments, strict=True):
        moments = of_measure.each()
        averages = [each.mean(weighted=weighted) for each in moments]
        columns |= columns_of_means(column, averages, moments, means.confidence, weighted=weighted)
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in means.by]) if means.by else table
