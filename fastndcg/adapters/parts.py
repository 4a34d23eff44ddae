"""What a worker of Spark, Dask or Ray does: it scores whole queries on one thread.

    engine's table -> make_task in the driver -> Task -> whole queries in one part -> results or sums

A part is scored like a whole data set, and no value depends on other queries, so the values of an engine are
those of `evaluate`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.api.evaluate import scoring_by
from fastndcg.common.arrays import JOINED, runs_of
from fastndcg.common.arrow_types import decode, is_list
from fastndcg.convention.evaluation import resolve_all
from fastndcg.errors import At, ColumnError, FastndcgError, InputError, MeasureError
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.measures.by_tool import Convention, as_convention
from fastndcg.rankings.blame import shown
from fastndcg.sources.arrow import grouped_rows, rankings_from_table
from fastndcg.sources.columns import Columns, Roles, check_column, find_columns
from fastndcg.sources.values import no_ids
from fastndcg.typing import RoleKeywords

if TYPE_CHECKING:
    from fastndcg.rankings.grouping import Grouped
    from fastndcg.scores.scores import Scores
    from fastndcg.typing import NaN

Float64 = npt.NDArray[np.float64]

_ROWS = 1 << 20  # rows scored together, to spread the cost of a call over many queries

_COUNT = "number of rows"  # the name of this column in tables with a row for each query

# tie rules of conventions that order tied documents by id, or refuse ties whose order matters
_NO_ORDER = ("docid_desc", "docid_asc", "item_desc", "unspecified")


class Keywords(RoleKeywords, total=False):
    """Keywords that all engines take, for the signatures of their functions."""

    order: str | None
    convention: str | Convention | None
    partitions: int | None
    grouped: bool
    files: bool


@dataclass(frozen=True)
class Options(Roles):
    """Options that all engines take in addition to data and measures. `Keywords` has the same fields."""

    order: str | None = None
    convention: str | Convention | None = None
    partitions: int | None = None
    grouped: bool = False
    files: bool = True


class Task(NamedTuple):
    """The task that engines send to their workers, the same for each part."""

    measures: tuple[Measure, ...]
    notations: tuple[
        str, ...
    ]  # names of the measures in the driver; a worker may name a user's function differently
    columns: Columns
    order: str | None
    convention: Convention | None
    lists: bool  # a row holds lists, and is a whole query

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


def make_task(
    schema: pa.Schema, measures: Measures, options: Options, of_files: Columns | None = None
) -> Task:
    """Make the task, and check it against the columns. A column of type null may get any type later.

    Columns `of_files` were found already, and their rows have an order.
    """
    columns = of_files or find_columns(
        schema.names, options, is_list=lambda name: is_list(schema.field(name).type)
    )
    if columns.query is None:
        raise ColumnError(
            "the rows of an engine are not numbered; name the column of query ids, as in query=..."
        )
    known = as_measures(measures)
    rule = None if options.convention is None else as_convention(options.convention)
    lists = is_list(schema.field(columns.relevance).type)
    task = Task(known, tuple(measure.label for measure in known), columns, options.order, rule, lists)
    if options.order is not None:
        check_column(schema.names, "order", options.order)
    _check_order(task, is_ordered=of_files is not None)
    _check_results(task)
    kind = schema.field(columns.query).type
    if of_files is None and pa.types.is_floating(kind):  # though all may be whole numbers
        raise no_ids(columns.query, kind)
    rankings = rankings_from_table(schema.empty_table().select(task.names), columns)
    scoring_by(task.convention)(task.measures, rankings, 1)
    return task


def _check_order(task: Task, *, is_ordered: bool) -> None:
    if task.lists:
        if task.order is not None:
            raise ColumnError(f'order="{task.order}" is for a row for each document; lists have their order')
        return
    if is_ordered:
        return
    rule = task.convention
    measures = task.measures if rule is None else resolve_all(task.measures, rule)
    by_order = [
        str(measure)
        for measure in measures
        if measure.params.get("ties") == "input" and (rule is None or rule.on(measure).ties not in _NO_ORDER)
    ]
    if by_order and task.order is None:
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


def score(
    task: Task, table: pa.Table, grouped: Grouped | None = None
) -> tuple[Scores, npt.NDArray[np.int64]]:
    """Score a part that consists of whole queries. Also return the first row of each query in `table`.

    `grouped` spares grouping rows that are known to be in order.
    """
    with without_rows(" This is the count of one part of the data."):
        sorted_rows = None
        if task.order is not None:
            sorted_rows = _sorted_rows(task, table)
            table = table.take(sorted_rows)
            grouped = None
        if grouped is None and not task.lists:
            grouped = grouped_rows(table, task.columns)
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
        if task.lists:
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
    """The columns of a table with a row for each query: id, number of rows, lists of the others, and of a
    column of one value its least, its greatest, and how many are not null.
    """
    return [task.query, _COUNT, *(name for name in task.names if name != task.query)]


def of_queries(task: Task) -> set[str]:
    """The columns that have one value within each query, and no other role."""
    columns = task.columns
    others = {*replace(columns, keep=(), weight=None).names, task.order}
    return {*columns.keep, *([] if columns.weight is None else [columns.weight])} - others


def with_nulls(task: Task) -> set[str]:
    """The columns with lists that may have nulls."""
    columns = task.columns
    last = [columns.score] if columns.nan == "last" else []
    found = {*columns.keep, *last, *([] if columns.intents is None else [columns.intents])}
    return found - of_queries(task)


def unpack(task: Task, batch: pa.RecordBatch) -> pa.Table:
    """Turn a batch with a row for each query, with lists, into a table with a row for each document.

    Lists of structures have a single field. Spark leaves nulls out of other lists. They are appended again,
    so that scoring refuses them with an error that names the column and the query.
    """
    counts, alike = batch.column(_COUNT).to_numpy(), of_queries(task)
    places = runs_of(0, counts)  # the position of each row in its query
    columns = {task.query: batch.column(task.query).take(pa.array(np.repeat(np.arange(len(batch)), counts)))}
    for name in packed_names(task)[2:]:
        lists = batch.column(name)
        if name in alike:
            columns[name] = _spread(lists, counts, places)
            continue
        values = lists.flatten()
        if name in with_nulls(task):
            values = values.field(0)
        elif len(values) < len(places):
            lengths = lists.value_lengths().to_numpy()
            rows = np.repeat(np.cumsum(lengths) - lengths, counts) + places
            values = values.take(pa.array(rows, mask=places >= np.repeat(lengths, counts)))
        columns[name] = values
    return pa.table({name: columns[name] for name in task.names})


def _spread(packed: pa.StructArray, counts: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> pa.Array:
    """The value of each query for each of its rows. Of values that differ, which scoring refuses in an error
    that names two of them, the last row has the greatest, or null.
    """
    low, high, known = packed.flatten()
    rows = np.repeat(np.arange(len(counts)), counts)
    rows[np.cumsum(counts) - 1] += len(counts)
    unknown = places >= np.repeat(known.to_numpy(), counts)
    return pa.concat_arrays([low, high]).take(pa.array(rows, mask=unknown))


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
def without_rows(note: str = "") -> Iterator[None]:
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
    with without_rows():
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
