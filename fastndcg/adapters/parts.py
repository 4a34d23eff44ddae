"""Code that Spark, Dask and Ray share: a worker scores whole queries on one thread, and sums exactly.

    engine's table -> make_task in the driver -> Task -> whole queries in one part -> results or sums

A part is scored like a whole data set, and no value depends on other queries, so the values of an engine are
those of `evaluate`, bit for bit. Sums are fractions, so merging them in any order gives exactly the sums of
the whole.
"""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg import errors
from fastndcg.api.evaluate import scoring_by
from fastndcg.common.arrays import JOINED, runs_of
from fastndcg.common.arrow_types import decode, is_list
from fastndcg.convention.evaluation import ConventionScores, MeanSums, resolve_all
from fastndcg.errors import At, ColumnError, FastndcgError, InputError, InputTypeError, MeasureError
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.measures.by_tool import Convention, as_convention
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import columns_of_means, groups_of
from fastndcg.scores.summary import Summary, interval_of
from fastndcg.sources.arrow import grouped_rows, rankings_from_table
from fastndcg.sources.columns import Columns, Function, Roles, check_column, find_columns, with_roles
from fastndcg.sources.values import no_ids, shown
from fastndcg.statistics import Moments, quartiles
from fastndcg.statistics.intervals import SMALL, check_confidence
from fastndcg.typing import RoleKeywords

if TYPE_CHECKING:
    from fastndcg.typing import NaN

Float64 = npt.NDArray[np.float64]

_ROWS = 1 << 20  # rows scored together, to spread the cost of a call over many queries

_COUNT = "number of rows"  # the name of this column in tables with a row for each query

# tie rules of conventions that order tied documents by id, or refuse ties whose order matters
_NO_ORDER = ("docid_desc", "docid_asc", "item_desc", "unspecified")


# texts that the docstrings of all engines share; a docstring has the name of a text in braces
_SHARED = {
    "parameters": """measures : one or several of Measure, notation ("nDCG@10"), or ir_measures object
    query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
        As in `fastndcg.read_parquet`.
    nan, rank, ascending, unjudged, grades
        As in `fastndcg.read_parquet`.
    order : str, optional
        Column that numbers the documents of a query. Measures with ties="input" need it, because a shuffle
        keeps no order. Lists have the order of their elements.
    convention : name or Convention, optional
        Compute nDCG as this tool does, as in `fastndcg.evaluate`. Tools that take ties in input order need
        `order`. Tools that order ties by document id need `doc_id`.
    partitions : int, optional
        Number of partitions that queries are distributed to. The default is `spark.sql.shuffle.partitions` on
        Spark, the number of partitions of the data on Dask, and `default_hash_shuffle_parallelism` of the
        `DataContext` on Ray.
    grouped : bool
        True if the rows of a query are contiguous, as in files sorted by query. Rows are then not shuffled;
        only the rows of queries at the edges of partitions and of parts of files are moved. All query ids are
        compared, and an error names a query whose rows are not contiguous. Data with a row for each query,
        with lists, is never shuffled.""",
    "raises": """Raises
    ------
    ColumnError
        A column is missing, or several columns fit a role.
    MeasureError
        A measure or convention does not exist; or ties="input" without `order`.
    InputTypeError
        The data are not of this engine; a column has a type that its role does not allow.
    InputError
        When the result is computed: NaN scores and all else that `fastndcg.evaluate` refuses.""",
    "summary": """Mean, standard deviation, extremes, and numbers of queries and of empty queries of measures.

    It computes immediately. Each partition sends only exact sums, no values of queries. The numbers are those
    of `Scores.summary`, bit for bit. Errors of the data are raised without the traces of the engine.

    Parameters
    ----------
    The data, measures, order, convention, partitions, grouped, and the roles of columns
        As in `evaluate`; `keep` has no effect.
    quartiles : bool
        True adds quartiles. The values themselves are then collected, 8 bytes for each query and measure.
    confidence : float, optional
        For example 0.95: adds confidence intervals of the means, `low` to `high`, as `Scores.summary` does.

    Raises
    ------
    ColumnError, MeasureError, InputTypeError, InputError
        As in `evaluate`, including errors of the data.""",
    "means": """Exact means of values that `evaluate` computed, over all queries or each group of queries.

    It computes immediately. Each partition sends only exact sums, no values of queries. To compute values
    once for several uses, persist the result of `evaluate`, or write it and read it back.

    Parameters
    ----------
    scores : the result of `evaluate`
        It has a column for each measure, under its notation. Values by a convention are refused, since their
        mean needs more than the values: `summary` computes it.
    measures : one or several of Measure, notation, or ir_measures object
    by : str or sequence of str, optional
        Kept columns to group by.
    weight : str, optional
        Column with the weight of each query: "weight" in the result of `evaluate`.
    confidence : float, optional
        For example 0.95: adds `small`, true for groups of fewer than 30 queries, and after each mean its
        interval, `_low` to `_high`.

    Returns
    -------
    pyarrow.Table
        The columns of `by`, ascending with null last; `queries`, the number of queries; and the mean of each
        measure, correctly rounded. With `by=None`, one row without columns to group by.

    Raises
    ------
    ColumnError, MeasureError, InputTypeError, InputError
        A column is missing; also the errors of `evaluate`, if its values are computed only now.""",
}


class Keywords(RoleKeywords, total=False):
    """Keywords that all engines take, for the signatures of their functions."""

    order: str | None
    convention: str | Convention | None
    partitions: int | None
    grouped: bool


@dataclass(frozen=True)
class Options(Roles):
    """Options that all engines take in addition to data and measures. `Keywords` has the same fields."""

    order: str | None = None
    convention: str | Convention | None = None
    partitions: int | None = None
    grouped: bool = False


def options_of_summary(options: Keywords, confidence: float | None) -> Options:
    """Options of a summary, which keeps no columns."""
    if confidence is not None:
        check_confidence(confidence)
    return Options.of({**options, "keep": ()}, "summary")


def of_engine(function: Function) -> Function:
    """Insert the shared texts into a function's docstring, and show its `**options` as keywords."""
    for name, text in _SHARED.items():
        function.__doc__ = (function.__doc__ or "").replace(f"{{{name}}}", text)
    takes_options = any(
        each.kind is each.VAR_KEYWORD for each in inspect.signature(function).parameters.values()
    )
    return with_roles(function, Options) if takes_options else function


class Task(NamedTuple):
    """The task that engines send to their workers, the same for each part."""

    measures: tuple[Measure, ...]
    notations: tuple[
        str, ...
    ]  # names of the measures in the driver; a worker may name a user's function differently
    columns: Columns
    order: str | None
    convention: Convention | None

    @property
    def query(self) -> str:
        return str(self.columns.query)

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        return list(dict.fromkeys([*self.columns.names, *([] if self.order is None else [self.order])]))

    @property
    def results(self) -> list[str]:
        """Columns of the results, in order."""
        weight = [] if self.columns.weight is None else ["weight"]
        return [self.query, *self.columns.keep, *weight, *self.notations]


def check_frame(name: str, frame: Any, attributes: Sequence[str], wanted: str) -> None:
    """Raise `InputTypeError` for data without the attributes of the engine's tables."""
    if not all(hasattr(frame, attribute) for attribute in attributes):
        kind = type(frame)
        raise InputTypeError(
            f"{name} is a {kind.__module__.partition('.')[0]} {kind.__name__}; wanted a {wanted}. "
            "For data in this process there is fastndcg.evaluate."
        )


def make_task(schema: pa.Schema, measures: Measures, options: Options) -> Task:
    """Make the task, and check it against the columns. A column of type null may get any type later."""
    columns = find_columns(schema.names, options, is_list=lambda name: is_list(schema.field(name).type))
    if columns.query is None:
        raise ColumnError(
            "the rows of an engine are not numbered; name the column of query ids, as in query=..."
        )
    known = as_measures(measures)
    rule = None if options.convention is None else as_convention(options.convention)
    task = Task(known, tuple(measure.label for measure in known), columns, options.order, rule)
    if options.order is not None:
        check_column(schema.names, "order", options.order)
    _check_order(task, lists=is_list(schema.field(columns.relevance).type))
    _check_results(task)
    if pa.types.is_floating(kind := schema.field(columns.query).type):  # though all may be whole numbers
        raise no_ids(columns.query, kind)
    nothing = schema.empty_table().select(task.names)
    rankings = rankings_from_table(nothing, columns)
    scoring_by(task.convention)(task.measures, rankings, 1)
    return task


def _check_order(task: Task, *, lists: bool) -> None:
    if lists:
        if task.order is not None:
            raise ColumnError(f'order="{task.order}" is for a row for each document; lists have their order')
        return
    rule = task.convention
    measures = task.measures if rule is None else resolve_all(task.measures, rule)
    by_order = [str(measure) for measure in measures if measure.params.get("ties") == "input"]
    if by_order and task.order is None and (rule is None or rule.ties not in _NO_ORDER):
        raise MeasureError(
            f"{by_order[0]} takes tied documents in the order of their rows, "
            "and rows of an engine have none; name a column that numbers the documents of a query, "
            "as in order=..., or use another rule for ties"
        )


def _check_results(task: Task) -> None:
    seen: dict[str, str] = {}
    for name in task.results:  # Spark ignores the case of names
        if name.lower() in seen:
            raise ColumnError(
                f'two columns of the results would be named "{seen[name.lower()]}" and "{name}"; '
                "rename the one that is kept"
            )
        seen[name.lower()] = name


# ---- in a worker ----


def score(task: Task, table: pa.Table) -> tuple[Scores, npt.NDArray[np.int64]]:
    """Score a part that consists of whole queries. Also return the first row of each query in `table`."""
    with _without_rows(" This is the count of one part of the data."):
        sorted_rows = None
        if task.order is not None:
            sorted_rows = _sorted_rows(task, table)
            table = table.take(sorted_rows)
        lists = is_list(table.schema.field(task.columns.relevance).type)
        grouped = None if lists else grouped_rows(table, task.columns)
        rankings = rankings_from_table(table, task.columns, grouped=grouped)
        scores = scoring_by(task.convention)(task.measures, rankings, 1)
    if grouped is None:
        return scores, np.arange(len(table))
    first = grouped.first_rows
    return scores, first if sorted_rows is None else sorted_rows.to_numpy()[first]


def results(task: Task, table: pa.Table) -> pa.Table:
    """Return a row for each query of a part: the id, kept columns, and a float64 column for each measure."""
    scores, first = score(task, table)
    rows = pa.array(first)
    columns = [table[task.query].take(rows), *(table[name].take(rows) for name in task.columns.keep)]
    if scores.weight is not None:
        columns.append(pa.chunked_array([scores.weight]))
    columns.extend(pa.chunked_array([values]) for values in scores.values)
    return pa.table(columns, names=task.results)


def whole_queries(task: Task, batches: Iterable[pa.RecordBatch], at_once: int = _ROWS) -> Iterator[pa.Table]:
    """Yield tables of whole queries, of about `at_once` rows, from batches that may split queries.

    The rows of each query are contiguous. Batches of lists already hold whole queries.
    """
    waiting: list[pa.Table] = []
    rows = 0
    cut = 0  # rows before the last query, which the next batch may continue
    last: pa.Scalar | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if is_list(batch.schema.field(task.columns.relevance).type):
            yield pa.table(batch)
            continue
        ids = batch.column(task.query)
        start = _start_of_last(ids)
        if start or ids[-1] != last:
            cut = rows + start
        last = ids[-1]
        waiting.append(pa.table(batch))
        rows += batch.num_rows
        if cut >= at_once:
            table = pa.concat_tables(waiting)
            yield table.slice(0, cut)
            waiting, rows, cut = [table.slice(cut)], rows - cut, 0
    if waiting:
        yield pa.concat_tables(waiting)


def packed_names(task: Task) -> list[str]:
    """The columns of a table with a row for each query: id, number of rows, and lists of the others."""
    return [task.query, _COUNT, *(name for name in task.names if name != task.query)]


def with_nulls(task: Task) -> set[str]:
    """The columns that may have nulls."""
    columns = task.columns
    last = [columns.score] if columns.nan == "last" else []
    return {*columns.keep, *last, *([] if columns.intents is None else [columns.intents])}


def unpack(task: Task, batch: pa.RecordBatch) -> pa.Table:
    """Turn a batch with a row for each query, with lists, into a table with a row for each document.

    Lists of structures have a single field. Spark leaves nulls out of other lists. They are appended again,
    so that scoring refuses them with an error that names the column and the query.
    """
    counts = batch.column(_COUNT).to_numpy()
    places = runs_of(0, counts)  # the position of each row in its query
    columns = {task.query: batch.column(task.query).take(pa.array(np.repeat(np.arange(len(batch)), counts)))}
    for name in packed_names(task)[2:]:
        lists = batch.column(name)
        values = lists.flatten()
        if name in with_nulls(task):
            values = values.field(0)
        elif len(values) < len(places):
            lengths = lists.value_lengths().to_numpy()
            rows = np.repeat(np.cumsum(lengths) - lengths, counts) + places
            values = values.take(pa.array(rows, mask=places >= np.repeat(lengths, counts)))
        columns[name] = values
    return pa.table({name: columns[name] for name in task.names})


def join_batches(batches: Iterable[pa.RecordBatch], at_once: int = _ROWS) -> Iterator[pa.Table]:
    """Join batches to tables of about `at_once` rows; the last one may be shorter."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= at_once:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _start_of_last(ids: pa.Array) -> int:
    same = pc.fill_null(pc.equal(ids, ids[-1]), False)  # nulls are refused where the table is scored
    return len(ids) - int(pc.sum(same, min_count=0).as_py())


def _sorted_rows(task: Task, table: pa.Table) -> pa.Array:
    order = table[task.order]
    unordered = order.null_count + (
        pc.sum(pc.is_nan(order)).as_py() or 0 if pa.types.is_floating(order.type) else 0
    )
    if unordered:
        raise InputError(
            f'column "{task.order}" has {unordered:,} null{"s" * (unordered > 1)}; '
            "order numbers every document of a query"
        )
    # a dictionary is sorted by its values
    keys = [decode(table[name]) for name in (task.query, str(task.order))]
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
def _without_rows(note: str = "") -> Iterator[None]:
    """Remove row numbers from errors, since row numbers within a part mean nothing to the user."""
    try:
        yield
    except FastndcgError as error:
        parts = [
            part._replace(row=None) if isinstance(part, At) else part
            for part in error.parts
            if part != JOINED
        ]
        is_count = any(isinstance(part, At) and part.first for part in parts)
        raise type(error)(*parts, note if is_count else "") from None


# ---- sums ----


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
    heeds = weighted and (task.convention is None or task.convention.weights != "ignored")
    for row, column in enumerate(task.notations):
        moments = sums.moments[row]
        numbers: dict[str, Any] = {"measure": column, "mean": moments.mean(weighted=weighted)}
        if task.convention is not None and sums.means is not None:
            numbers["mean"] = sums.means[row].mean(task.convention)
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


def pickle_row(found: Any) -> pa.Table:
    """Return a table of one row with the result of a part, which is all that a worker sends to the driver."""
    return pa.table({"found": pa.array([pickle.dumps(found)], pa.binary())})


def unpickle_rows(rows: Iterable[Any]) -> list[Any]:
    """Return the results of all parts from the rows of `pickle_row`."""
    return [pickle.loads(row["found"]) for row in rows]  # noqa: S301 - our own


@contextmanager
def plain_errors(is_of_engine: Callable[[BaseException], bool]) -> Iterator[None]:
    """Re-raise errors of fastndcg that an engine wrapped in its own, without the traces of the engine."""
    try:
        yield
    except Exception as error:
        found = re.search(r"fastndcg\.errors\.(\w+): (.*)", str(error)) if is_of_engine(error) else None
        kind = None if found is None else getattr(errors, found[1], None)
        if found is None or kind is None:
            raise
        raise kind(found[2].strip()) from None


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


# ---- one query, or lists of them, for user-defined functions ----


def one_measure(measure: Any) -> Measure:
    """Return the measure. Raises `MeasureError` if there are several."""
    known = as_measures(measure)
    if len(known) != 1:
        raise MeasureError(
            f"{len(known)} measures are given, but a function has one value; make a function for each measure"
        )
    return known[0]


def value_of_group(measure: Measure, relevance: Any, scores: Any, query: Any, nan: NaN) -> float | None:
    """Return the value of one query, or None if it has no value."""
    ids = pa.array(["of this group"]) if query is None or not len(query) else _first(query)
    values = values_of_lists(measure, _one_list(relevance), _one_list(scores), ids, nan)
    return None if np.isnan(values[0]) else float(values[0])


def values_of_lists(
    measure: Measure, relevance: pa.Array, scores: pa.Array, queries: pa.Array | None, nan: NaN
) -> Float64:
    """Return the value of each query, from lists, (n_queries,)."""
    columns = {"relevance": relevance, "score": scores}
    if queries is not None:
        columns["query"] = queries
    roles = Columns(None if queries is None else "query", "relevance", "score", nan=nan)
    with _without_rows():
        rankings = rankings_from_table(pa.table(columns), roles)
        values: Float64 = scoring_by(None)((measure,), rankings, 1).values[0]
        return values


def _one_list(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    # not from_pandas, which would turn NaN into null
    values = column if isinstance(column, pa.Array) else pa.array(column.to_numpy())
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _first(query: Any) -> pa.Array:
    return pa.array([query[0].as_py() if isinstance(query, pa.Array) else query.iloc[0]])
