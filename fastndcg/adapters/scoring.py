"""The work of a Spark, Dask or Ray worker: score whole queries on one thread.

    engine's table -> make_task in the driver -> Task -> whole queries of a partition -> results or sums

A partition is scored like a whole data set, and no value depends on other queries, so the values of an engine
are those of `evaluate`, bit for bit.
"""

from __future__ import annotations

import pickle
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.api.evaluate import scoring_by
from fastndcg.common.arrays import JOINED, Float64
from fastndcg.common.arrow_types import decode, is_list
from fastndcg.convention.evaluation import ConventionScores, MeanSums, resolve_all
from fastndcg.errors import ColumnError, FastndcgError, InputError, MeasureError, count_of
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.measures.conventions import Convention, as_convention
from fastndcg.measures.tools import BY_ID
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scores.signatures import Digests, signature_of
from fastndcg.scores.slices import COUNTS, columns_of_means, numbered_groups
from fastndcg.scores.summary import Summary, interval_of
from fastndcg.statistics import Moments
from fastndcg.statistics.significance import SMALL, check_confidence
from fastndcg.tables.arrow import checked_ids, fields_of_table, grouped_rows, plain_table
from fastndcg.tables.locations import shown
from fastndcg.tables.roles import Columns, Roles, check_column, find_columns
from fastndcg.typing import RoleKeywords

if TYPE_CHECKING:
    from fastndcg.common.arrays import Int64
    from fastndcg.tables.grouping import Grouped
    from fastndcg.typing import NaN

_ROWS = 1 << 20  # rows scored together, to spread the cost of a call over many queries

# tie rules of conventions that order tied documents by id, or refuse ties whose order matters
_NO_ORDER = (*BY_ID, "unspecified")


class Keywords(RoleKeywords, total=False):
    """Keywords of the functions of engines; `order` is for tables."""

    score: str | Sequence[str] | None  # type: ignore[misc]
    order: str | None
    convention: str | Convention | None
    partitions: int | None


@dataclass(frozen=True)
class Options(Roles):
    """Options that all engines take in addition to data and measures: those of `Keywords`."""

    score: str | Sequence[str] | None = None  # type: ignore[assignment]
    order: str | None = None
    convention: str | Convention | None = None
    partitions: int | None = None

    @property
    def systems(self) -> tuple[str, ...]:
        """The columns of scores, if they are several."""
        if isinstance(self.score, str) or not isinstance(self.score, Iterable):
            return ()
        systems = tuple(dict.fromkeys(self.score))
        if not systems:
            raise ColumnError('score names no column; name one, or several, as in score=["bm25", "rerank"]')
        return systems

    @property
    def of_one_system(self) -> Options:
        return replace(self, score=self.systems[0]) if self.systems else self


class Task(NamedTuple):
    """The task that engines send to their workers, the same for each partition."""

    measures: tuple[Measure, ...]
    # names of the measures in the driver; a worker may name a user's function differently
    notations: tuple[str, ...]
    columns: Columns
    order: str | None
    convention: Convention | None
    lists: bool  # a row holds lists, and is a whole query
    systems: tuple[str, ...] = ()  # columns of scores, if there are several

    @property
    def query(self) -> str:
        return str(self.columns.query)

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.systems or (self.columns.score,)

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        order = [] if self.order is None else [self.order]
        return list(dict.fromkeys([*self.columns.names, *self.systems, *order]))

    @property
    def results(self) -> list[str]:
        """Columns of the results, in order."""
        weight = [] if self.columns.weight is None else ["weight"]
        system = ["system"] if self.systems else []
        return [self.query, *self.columns.keep, *weight, *system, *self.notations]


def make_task(
    schema: pa.Schema, measures: Measures, options: Options, of_files: Columns | None = None
) -> Task:
    """Make the task, and check it against the columns; those `of_files` are known, and rows have an order."""
    columns = of_files or find_columns(
        schema.names, options.of_one_system, is_list=lambda name: is_list(schema.field(name).type)
    )
    if columns.query is None:
        raise ColumnError("rows in an engine have no numbers; name the column of query ids, as in query=...")
    known = as_measures(measures)
    rule = None if options.convention is None else as_convention(options.convention)
    lists = is_list(schema.field(columns.relevance).type)
    labels = tuple(measure.label for measure in known)
    task = Task(known, labels, columns, options.order, rule, lists, options.systems)
    for name in task.systems:
        check_column(schema.names, "score", name)
    if options.order is not None:
        check_column(schema.names, "order", options.order)
    if lists and task.order is not None:
        raise ColumnError(f'order="{task.order}" is for a row for each document; lists have their order')
    for measure in known if rule is None else resolve_all(known, rule):
        by_order = measure.params.get("ties") == "input" and (
            rule is None or rule.on(measure).ties not in _NO_ORDER
        )
        if by_order and not (lists or of_files or task.order):
            raise MeasureError(
                f"{measure} keeps tied documents in row order, "
                "and rows in an engine have no order; name a column that numbers the documents of a query, "
                "as in order=..., or use another rule for ties"
            )
    seen: dict[str, str] = {}
    for name in task.results:  # Spark ignores the case of names
        if name.lower() in seen:
            raise ColumnError(
                f'two columns of the results would be named "{seen[name.lower()]}" and "{name}"; '
                "rename the one that is kept"
            )
        seen[name.lower()] = name
    score(task, schema.empty_table().select(task.names))
    return task


# ---- in a worker ----


def score(task: Task, table: pa.Table, grouped: Grouped | None = None) -> list[Scores]:
    """Score a partition of whole queries, by each system."""
    with without_rows(" This is the count of one part of the data."):
        if task.order is not None:
            table, grouped = table.take(_sorted_rows(task, table)), None
        if grouped is None and not task.lists:
            grouped = grouped_rows(table, task.columns)
        score_by = scoring_by(task.convention)
        return [
            score_by(task.measures, Rankings._of(**fields_of_table(table, columns, grouped=grouped)), 1)
            for columns in (replace(task.columns, score=name) for name in task.score_columns)
        ]


def results(task: Task, systems: Sequence[Scores], schema: pa.Schema) -> pa.Table:
    """A row for each query, or for each system and query: id, kept columns, weight, system, and values."""
    tables = [
        pa.table([decode(each).cast(field.type) for each, field in zip(columns, schema, strict=True)], schema)
        for columns in _columns_of_results(task, systems)
    ]
    return pa.concat_tables(tables)


def _columns_of_results(task: Task, systems: Sequence[Scores]) -> Iterator[list[pa.ChunkedArray]]:
    for name, scores in zip(task.score_columns, systems, strict=True):
        columns = scores._frame().columns
        if task.systems:
            columns.insert(
                len(columns) - len(task.measures), pa.chunked_array([pa.repeat(name, len(scores))])
            )
        yield columns


def schema_of_results(task: Task, schema: pa.Schema) -> pa.Schema:
    """The types of results, from those of the data."""
    systems = score(task, plain_table(schema.empty_table().select(task.names)))
    return plain_table(pa.table(next(_columns_of_results(task, systems)), task.results)).schema


def larger(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join tables to some of about `_ROWS` rows; the last one may be shorter."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= _ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _sorted_rows(task: Task, table: pa.Table) -> pa.Array:
    order = table[task.order]
    unordered = pc.sum(pc.is_null(order, nan_is_null=True)).as_py()
    if unordered:
        raise InputError(
            f'column "{task.order}" has {count_of(unordered, "null")}; '
            "order numbers every document of a query"
        )
    # a dictionary is sorted by its values
    keys = [decode(checked_ids(table, task.columns)), decode(order)]
    rows = pc.sort_indices(
        pa.table(keys, names=["query", "order"]), [("query", "ascending"), ("order", "ascending")]
    )
    query, order = (key.take(rows) for key in keys)
    same = pc.and_(pc.equal(query[1:], query[:-1]), pc.equal(order[1:], order[:-1]))
    if pc.any(same, min_count=0).as_py():
        row = pc.index(same, True).as_py()
        raise InputError(
            f'column "{task.order}" has {order[row].as_py()!r} twice in query {shown(query[row])}; '
            "order numbers the documents of a query, each once"
        )
    return rows


@contextmanager
def without_rows(note: str = "") -> Iterator[None]:
    """Remove row numbers of a partition from errors, where they mean nothing to the user."""
    try:
        yield
    except FastndcgError as error:
        said = str(error).replace(JOINED, "")
        is_count = "; the first is" in said
        said = re.sub(r" at row \d+, query ", " in query ", said)
        said = re.sub(r"(; the first is)? at row \d+", "", said)
        raise type(error)(f"{said}{note if is_count else ''}") from None


# ---- sums of partitions: integers, which in any order of merging add up to exactly those of the whole ----


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
    merged = Groups.merged([sums_by(means, pa.table(nothing)), *parts], kinds)
    columns: dict[str, Any] = dict(zip(means.by, merged.by, strict=True))
    columns["queries"] = pa.array(merged.queries, pa.int64())
    if means.confidence is not None:
        columns["small"] = pa.array(merged.queries < SMALL, pa.bool_())
    weighted = means.weight is not None
    for column, of_measure in zip(means.notations, merged.moments, strict=True):
        moments = of_measure.each()
        averages = [each.mean(weighted=weighted) for each in moments]
        columns |= columns_of_means(column, averages, moments, means.confidence, weighted=weighted)
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in means.by]) if means.by else table


# ---- one query, or lists of them, for user-defined functions ----


def one_measure(measure: Any) -> Measure:
    """Return the measure. Raises `MeasureError` if there are several."""
    known = as_measures(measure)
    if len(known) != 1:
        raise MeasureError(
            f"{len(known)} measures were passed, but a function returns one value; "
            "make one function per measure"
        )
    return known[0]


def values_of_lists(
    measure: Measure, relevance: pa.Array, scores: pa.Array, queries: pa.Array | None, nan: NaN
) -> Float64:
    """Return the value of each query, from lists, (n_queries,)."""
    columns = {"relevance": relevance, "score": scores}
    if queries is not None:
        columns["query"] = queries
    roles = Columns(None if queries is None else "query", "relevance", "score", nan=nan)
    with without_rows():
        rankings = Rankings._of(**fields_of_table(pa.table(columns), roles))
        values: Float64 = scoring_by(None)((measure,), rankings, 1).values[0]
        return values
