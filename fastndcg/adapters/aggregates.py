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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.analysis.anchors import ORDERS, summary_of_orders
from fastndcg.common.arrow_types import combine, decode, is_binary
from fastndcg.convention.evaluation import ConventionScores, MeanSums, resolve_all
from fastndcg.errors import warn
from fastndcg.kernels.compile import kernel_cache
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.scores.scores import Scores
from fastndcg.scores.signatures import Digests, signature_of
from fastndcg.scores.slices import COUNTS, columns_of_means, numbered_groups
from fastndcg.scores.summary import Summary, interval_of
from fastndcg.sources.regrouping import parts_of
from fastndcg.statistics import Moments, quartiles
from fastndcg.statistics.exact_sums import SumsByGroup, moments_by_group
from fastndcg.statistics.intervals import SMALL, check_confidence
from fastndcg.tables.roles import check_column

if TYPE_CHECKING:
    from fastndcg.adapters.worker import Task
    from fastndcg.common.arrays import Float64, Int64

QUARTILES = ("q25", "median", "q75")


def merged(one: Any, other: Any) -> Any:
    """The sums of two parts: by key, by measure, or one; None has nothing to add."""
    if one is None or other is None:
        return other if one is None else one
    if type(one) is dict:
        return one | {key: merged(one.get(key), each) for key, each in other.items()}
    return tuple(map(merged, one, other)) if type(one) is tuple else one + other


class Sums(NamedTuple):
    """Sums over the queries of a part. The sums of all parts add up to exactly those of the whole."""

    queries: int
    empty: tuple[int, ...]  # for each measure, the number of queries without a value
    moments: tuple[Moments, ...]
    values: tuple[list[Float64], ...] | None  # for each measure; None if quartiles are not computed
    means: tuple[MeanSums, ...] | None  # for each measure; None without a convention
    digests: Digests  # of the queries and their judgments

    @classmethod
    def of(cls, scores: Scores, *, values: bool = False) -> Sums:
        rows = range(len(scores.measures))
        counted = [scores._values_that_count(row) for row in rows]
        return cls(
            scores.n_queries,
            tuple(scores._empty.sum(axis=1).tolist()),
            tuple(Moments.of(*each) for each in counted),
            tuple([each[0]] for each in counted) if values else None,
            tuple(map(scores._mean_sums, rows)) if isinstance(scores, ConventionScores) else None,
            scores._digests_in(),
        )

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        return Sums._make(map(merged, self, other))


def summary_of(
    task: Task, found: Sequence[Any], *, values: bool = False, confidence: float | None = None
) -> Summary:
    """`Scores.summary`, or `Anchors.summary`, from sums, and for `values` quartiles by row of measures."""
    of_measures = {row: ends for each in found if isinstance(each, dict) for row, ends in each.items()}
    tool, weighted, n = task.convention, task.columns.weight is not None, len(task.measures)
    of_each = n * len(ORDERS) if task.anchors else n
    no_digests = Digests("returned", task.columns.is_judged is not None, 0, 0)
    nothing = Sums(0, (0,) * of_each, (Moments.of(np.empty(0)),) * of_each, None, None, no_digests)
    sums: Sums = reduce(merged, (each for each in found if not isinstance(each, dict)), nothing)
    if task.anchors:
        means = [moments.mean(weighted=weighted) for moments in sums.moments]
        by_order = {name: means[row::n] for row, name in enumerate(task.notations)}
        return summary_of_orders(by_order, sums.empty[2 * n :], sums.queries)
    rules = [None if tool is None else tool.on(each) for each in task.measures]
    heeds = [weighted and (rule is None or rule.weights != "ignored") for rule in rules]
    rows = []
    for row, (column, rule) in enumerate(zip(task.notations, rules, strict=True)):
        moments = sums.moments[row]
        numbers: dict[str, Any] = {"measure": column, "mean": moments.mean(weighted=weighted)}
        if rule is not None and sums.means is not None:
            numbers["mean"] = sums.means[row].mean(rule)
        if confidence is not None:
            numbers |= interval_of(numbers["mean"], moments, confidence, weighted=heeds[row])
        numbers["std"] = moments.std()
        numbers["min"], numbers["max"] = moments.range()
        if values:
            numbers |= zip(QUARTILES, of_measures.get(row, quartiles(np.empty(0))), strict=True)
        rows.append({**numbers, "queries": sums.queries, "empty": sums.empty[row]})
    resolved, name = (task.measures, None) if tool is None else (resolve_all(task.measures, tool), tool.name)
    signatures = {
        str(measure): signature_of(each, sums.digests, name, weighted=any(heeds))
        for measure, each in zip(task.measures, resolved, strict=True)
    }
    return Summary(rows, signatures)


# ---- between workers and the driver ----


@contextmanager
def telling_the_driver() -> Iterator[None]:
    """Score in a worker whose results `pickle_row` packs: the driver says that kernels cannot be kept."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "compiled kernels cannot be kept")
        yield


FOUND = pa.schema([("found", pa.binary())])  # of rows of `pickle_row`
_told: list[str] = []  # once in a driver


def pickle_row(found: Any, unkept: Sequence[str] = ()) -> pa.Table:
    """A row with the result of a part, and where workers could not keep kernels."""
    told = [*kernel_cache._warned, *unkept][:1]
    return pa.table([pa.array([pickle.dumps((found, told))], pa.binary())], schema=FOUND)


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
    """Sums over the queries of each group. Those of all parts merge into exactly those of the whole."""

    by: list[pa.Array]  # the values of each group
    sums: dict[tuple[int | None, str], SumsByGroup]  # by measure and field of `Moments`; None: all queries

    @property
    def queries(self) -> Int64:
        """(n_groups,)"""
        return self.sums[None, "n_values"].wholes

    @classmethod
    def merged(cls, parts: Sequence[Groups], kinds: Sequence[pa.DataType]) -> Groups:
        """The sums over all parts; there is at least one. `kinds` are the types of the groups."""
        columns = [
            pa.chunked_array([part.by[place].cast(kind) for part in parts])
            for place, kind in enumerate(kinds)
        ]
        by, codes, n = numbered_groups(columns, sum(len(part.queries) for part in parts))
        keys = parts[0].sums
        return cls(
            by, {key: SumsByGroup.merged(codes, n, [part.sums[key] for part in parts]) for key in keys}
        )

    def of(self, rows: Int64) -> Groups:
        """Some of the groups."""
        sums = {key: SumsByGroup(each.unit, each.wholes[rows]) for key, each in self.sums.items()}
        return Groups([column.take(pa.array(rows)) for column in self.by], sums)


def sums_by(means: Means, table: pa.Table) -> Groups:
    """Return the sums of each group in a part of the results; one group without columns to group by."""
    by, codes, n = numbered_groups([table[name] for name in means.by], len(table))
    weight = None if means.weight is None else table[means.weight].to_numpy()
    values = np.stack([table[column].to_numpy() for column in means.notations])
    scores = Scores(means.measures, values, np.zeros(values.shape, np.bool_), table, weight)
    sums: dict[tuple[int | None, str], SumsByGroup] = {
        (None, "n_values"): SumsByGroup(0, np.bincount(codes, minlength=n))
    }
    for row in range(len(means.measures)):
        of_row = scores._sums_by(row, codes, n, spread=means.confidence is not None)
        sums |= {(row, name): each for name, each in of_row.items()}
    return Groups(by, sums)


def blocks_of(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int, n: int) -> npt.NDArray[Any]:
    """The block of each group or row, the same in all parts: by a hash of the texts of values."""
    texts = [pa.array([b""] * rows)]
    for column in columns:
        given = decode(column)
        if pa.types.is_floating(given.type):
            given = pc.add(given, 0.0)  # -0.0 is 0.0
        try:
            text = given if is_binary(given.type) else given.cast(pa.string())
        except pa.ArrowNotImplementedError:
            text = pa.array([None if value is None else str(value) for value in given.to_pylist()])
        texts.append(pc.fill_null(combine(text).cast(pa.binary()), b"\0null"))
    return parts_of(pc.binary_join_element_wise(*texts, b"\0"), n)


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
    for row, column in enumerate(means.notations):
        moments = moments_by_group({name: each for (of, name), each in found.sums.items() if of == row})
        averages = [each.mean(weighted=weighted) for each in moments]
        columns |= columns_of_means(column, averages, moments, means.confidence, weighted=weighted)
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in means.by]) if means.by else table
