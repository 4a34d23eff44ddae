"""Data in which the rows of a query stand together: queries are scored where they are, and those that an edge may cut are joined.

    partition -> pieces: values of the queries within it, rows of those at its edges
              -> brought together by query id, one row for each query -> whole: those at edges are scored, ids are compared

An edge is where a partition begins or ends, or a part of a file does that the partition was read from. A query may go on beyond
it, in any other partition. All other queries must stand in one place: the ids of all are brought together, and one that was
scored and is somewhere else too is refused, so that no value is of a part of a query.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.adapters import parts
from fastndcg.adapters.parts import Sums, Task
from fastndcg.arrow_types import decode
from fastndcg.errors import InputError
from fastndcg.sources.values import shown

Int64 = npt.NDArray[np.int64]

ID, ROWS, SUMS = "query_id", "rows of the query", "sums of others"
# columns of pieces of a summary; those of results are theirs, the id first, and ROWS
SUMMED = [ID, ROWS, SUMS]


def pieces(
    task: Task, batches: Iterable[pa.RecordBatch], *, split: str | None = None, values: bool | None = None
) -> Iterator[pa.Table]:
    """A row for each query of a partition: its values, or its rows where it stands at an edge.

    `split` is the column whose value changes where another part of a file begins. For a summary, `values` says whether `Sums`
    keep the values; they stand in place of values, one for a table.
    """
    waiting: pa.Table | None = None
    begins = True  # whether an edge is where the table begins
    for table in parts.whole_queries(task, batches):
        if waiting is not None:
            ends = split is not None and waiting[split][-1] != table[split][0]
            yield from _of_table(task, waiting, split, values, begins=begins, ends=ends)
            begins = ends
        waiting = table
    if waiting is not None:
        yield from _of_table(task, waiting, split, values, begins=begins, ends=True)


def runs_at_edges(ids: pa.ChunkedArray, edges: Int64) -> Int64:
    """Where the runs of equal ids begin and end that touch an edge, (n_runs, 2); an edge is the number of rows before it.

    >>> runs_at_edges(pa.chunked_array([[7, 7, 8, 9, 9, 5]]), np.array([0, 3])).tolist()
    [[0, 2], [2, 3], [3, 5]]
    """
    n = len(ids)
    if not n:
        return np.empty((0, 2), np.int64)
    changes = pc.fill_null(pc.not_equal(ids[1:], ids[:-1]), True)  # nulls are refused where they are scored
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
    return pa.table([ids, pa.nulls(len(ids), pa.binary()), pa.array(sums, pa.binary())], names=SUMMED)


def _pack(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def whole(task: Task, table: pa.Table) -> pa.Table:
    """Results of all queries of pieces that were brought together by their ids."""
    within, rows = _check(task, table)
    within = within.drop_columns([ROWS])
    return (
        within if rows is None else pa.concat_tables([within, parts.results(task, rows).cast(within.schema)])
    )


def whole_sums(task: Task, table: pa.Table, *, values: bool) -> Sums:
    """Sums of all queries of pieces that were brought together by their ids."""
    within, rows = _check(task, table)
    found = [pickle.loads(each) for each in within[SUMS].drop_null().to_pylist()]  # noqa: S301 - our own
    if rows is not None:
        found.append(parts.add_up(task, [rows], values=values))
    return Sums.total(len(task.measures), found)


def _check(task: Task, table: pa.Table) -> tuple[pa.Table, pa.Table | None]:
    """Queries that were scored, each of which is there once, and the rows of the others."""
    at_edge = table[ROWS].is_valid()
    within, cut = table.filter(pc.invert(at_edge)), table.filter(at_edge)
    check_ids(task, decode(within[0]), decode(cut[0]))
    if not len(cut):
        return within, None
    rows = [pa.ipc.open_stream(each).read_all() for each in cut[ROWS].to_pylist()]
    return within, pa.concat_tables(rows, promote_options="default")


def check_ids(task: Task, scored: pa.ChunkedArray, cut: pa.ChunkedArray) -> None:
    """Refuse a query that was scored and is there twice, or at an edge too."""
    counts = pc.value_counts(scored)
    if isinstance(counts, pa.ChunkedArray):
        counts = counts.combine_chunks()
    ids, twice = counts.field("values"), pc.greater(counts.field("counts"), 1)
    bad = ids.filter(twice)
    if not len(bad) and len(cut):
        bad = cut.filter(pc.is_in(cut, value_set=ids.cast(cut.type)))
    if len(bad):
        raise InputError(
            f"query {shown(bad[0])} stands in several places of the data. grouped=True takes queries whose rows stand together, "
            f'as in files that are sorted by "{task.query}"; leave it out for rows in any order.'
        )
