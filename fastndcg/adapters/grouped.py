"""Score data in which the rows of each query are contiguous, without a shuffle of rows.

    partition -> pieces: the values of the queries inside it, the rows of the queries at its edges
              -> shuffled by query id, one row for each query -> whole: edges are scored, ids compared

An edge is the beginning or end of a partition, or of a part of a file within a partition. A query at an edge
may continue in any other partition, so its rows are sent on. All other queries are scored in place. The ids
of all queries are compared at the end, and a query that was scored and occurs anywhere else is refused, so
that no value is computed from a part of a query.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.adapters import parts
from fastndcg.adapters.totals import Sums, add_up
from fastndcg.common.arrow_types import decode
from fastndcg.errors import InputError
from fastndcg.rankings.blame import shown

if TYPE_CHECKING:
    from fastndcg.adapters.parts import Task

Int64 = npt.NDArray[np.int64]

ID, ROWS, SUMS = "query_id", "rows of the query", "sums of others"
# columns of the pieces of a summary; pieces of results have the columns of results, the id first, and ROWS
SUMMARY_COLUMNS = [ID, ROWS, SUMS]


def pieces(
    task: Task, batches: Iterable[pa.RecordBatch], *, split: str | None = None, values: bool | None = None
) -> Iterator[pa.Table]:
    """Yield a row for each query of a partition: its values, or its rows if it is at an edge.

    `split` is a column whose value changes where another part of a file begins. For a summary there are
    `Sums` in place of values, once for a table, and `values` says whether they keep the values.
    """
    waiting: pa.Table | None = None
    begins = True  # whether there is an edge at the beginning of the table
    for table in parts.whole_queries(task, batches):
        if waiting is not None:
            ends = split is not None and waiting[split][-1] != table[split][0]
            yield from _of_table(task, waiting, split, values, begins=begins, ends=ends)
            begins = ends
        waiting = table
    if waiting is not None:
        yield from _of_table(task, waiting, split, values, begins=begins, ends=True)


def runs_at_edges(ids: pa.ChunkedArray, edges: Int64) -> Int64:
    """Return the bounds of runs of equal ids that touch an edge, (n_runs, 2). An edge counts rows before it.

    >>> runs_at_edges(pa.chunked_array([[7, 7, 8, 9, 9, 5]]), np.array([0, 3])).tolist()
    [[0, 2], [2, 3], [3, 5]]
    """
    n = len(ids)
    if not n:
        return np.empty((0, 2), np.int64)
    changes = pc.fill_null(pc.not_equal(ids[1:], ids[:-1]), True)  # scoring refuses nulls
    starts = np.append(0, np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1)
    beside = np.concatenate([edges, edges - 1])
    touched = np.unique(np.searchsorted(starts, beside[(beside >= 0) & (beside < n)], side="right") - 1)
    return np.stack([starts[touched], np.append(starts, n)[touched + 1]], axis=1)


def _of_table(
    task: Task, table: pa.Table, split: str | None, values: bool | None, *, begins: bool, ends: bool
) -> Iterator[pa.Table]:
    edges = np.array([0] * begins + [len(table)] * ends, np.int64)
    if split is not None:
        number = table[split].to_numpy()
        edges = np.append(edges, np.flatnonzero(number[1:] != number[:-1]) + 1)
        table = table.drop_columns([split])
    cut = runs_at_edges(table[task.query], edges)
    bounds = np.concatenate([[0], cut.ravel(), [len(table)]]).reshape(-1, 2)
    within = pa.concat_tables([table.slice(start, stop - start) for start, stop in bounds.tolist()])
    found = _score(task, within, values)
    if len(within):
        yield found
    if len(cut):
        rows = [table.slice(start, stop - start) for start, stop in cut.tolist()]
        columns = {field.name: pa.nulls(len(rows), field.type) for field in found.schema}
        ids = found.schema.field(0)
        columns[ids.name] = table[task.query].take(pa.array(cut[:, 0])).cast(ids.type)
        columns[ROWS] = pa.array([_pack(each) for each in rows], pa.binary())
        yield pa.table(columns)


def _score(task: Task, table: pa.Table, values: bool | None) -> pa.Table:
    if values is None:
        found = parts.results(task, table)
        return found.append_column(ROWS, pa.nulls(len(found), pa.binary()))
    scores, first = parts.score(task, table)
    sums = [pickle.dumps(Sums.of(scores, values=values)), *[None] * (len(first) - 1)][: len(first)]
    ids = table[task.query].take(pa.array(first))
    return pa.table(
        [ids, pa.nulls(len(ids), pa.binary()), pa.array(sums, pa.binary())], names=SUMMARY_COLUMNS
    )


def _pack(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def whole(task: Task, table: pa.Table) -> pa.Table:
    """Return the results of all queries from pieces that were shuffled by query id."""
    within, rows = _check(task, table)
    within = within.drop_columns([ROWS])
    return (
        within if rows is None else pa.concat_tables([within, parts.results(task, rows).cast(within.schema)])
    )


def whole_sums(task: Task, table: pa.Table, *, values: bool) -> Sums:
    """Return the sums of all queries from pieces that were shuffled by query id."""
    within, rows = _check(task, table)
    found = [pickle.loads(each) for each in within[SUMS].drop_null().to_pylist()]  # noqa: S301 - our own
    if rows is not None:
        found.append(add_up(task, [rows], values=values))
    return Sums.total(len(task.measures), found)


def _check(task: Task, table: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    """Check the ids of pieces. Return the queries that were scored, and the rows of the others."""
    at_edge = table[ROWS].is_valid()
    within, cut = table.filter(pc.invert(at_edge)), table.filter(at_edge)
    check_ids(task, decode(within[0]), decode(cut[0]))
    if not len(cut):
        return within, None
    rows = [pa.ipc.open_stream(each).read_all() for each in cut[ROWS].to_pylist()]
    return within, pa.concat_tables(rows, promote_options="default")


def check_ids(task: Task, scored: pa.ChunkedArray, cut: pa.ChunkedArray) -> None:
    """Refuse a query that was scored twice, or that was scored and is at an edge too."""
    counts = pc.value_counts(scored)
    if isinstance(counts, pa.ChunkedArray):
        counts = counts.combine_chunks()
    ids, twice = counts.field("values"), pc.greater(counts.field("counts"), 1)
    bad = ids.filter(twice)
    if not len(bad) and len(cut):
        bad = cut.filter(pc.is_in(cut, value_set=ids.cast(cut.type)))
    if len(bad):
        raise InputError(
            f"query {shown(bad[0])} stands in several places of the data. "
            "grouped=True takes queries whose rows stand together, as in files that are sorted by "
            f'"{task.query}"; leave it out for rows in any order.'
        )
