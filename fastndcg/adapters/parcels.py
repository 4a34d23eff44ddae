"""Rows and sums that workers hand to one another, packed into few rows of an engine: parcels.

    whole queries of a share -> scored where they are ------------------> results, or sums ---+
    queries that other shares have rows of, or rows in any order -> packed by hash of the id -+-> a block
    a block -> rows of each query together, in order -> scored ---------> results, or sums

An engine copies each of its rows for some hundred nanoseconds, so a parcel has all rows that one table has
for a block. What `grouped=True` promises is checked: the ids of all queries are compared, and a query that
was scored and has rows anywhere else is refused, so that no value is computed from a part of a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.adapters import parts, totals
from fastndcg.common.arrow_types import decode
from fastndcg.errors import InputError
from fastndcg.rankings.blame import shown
from fastndcg.rankings.grouping import Grouped
from fastndcg.sources.arrow import checked_ids, grouped_rows, plain_table
from fastndcg.sources.spill import parts_of

if TYPE_CHECKING:
    from fastndcg.adapters.parts import Task

SCHEMA = pa.schema(
    [("block", pa.int32()), ("place", pa.int64()), ("kind", pa.int8()), ("data", pa.large_binary())]
)
_DOCUMENTS, _RESULTS, _SUMS, _IDS = range(4)  # kinds of parcels
_PLACES = 1 << 32  # of tables in a share

# a table, and its rows by query where they are known
Rows = tuple[pa.Table, Grouped | None]


class Job(NamedTuple):
    """What all workers are told."""

    task: Task
    blocks: int
    results: pa.Schema | None  # of results; None for sums
    values: bool = False  # whether sums keep the values
    compares: bool = False  # whether the ids of all queries are compared


class Share(NamedTuple):
    """The queries that other shares may have rows of, and the number of a share in the order of the data."""

    number: int = 0
    edges: pa.Array | None = None  # their ids; None: those of its first and of its last row
    begins: int = 0  # the place of the first table in it


def scattered(job: Job, tables: Iterable[pa.Table], number: int) -> Iterator[pa.Table]:
    """Yield parcels of rows in any order."""
    for place, table in enumerate(tables):
        ids = checked_ids(table, job.task.columns)
        blocks = np.concatenate([parts_of(chunk, job.blocks) for chunk in ids.chunks])
        order = pa.array(np.argsort(blocks, kind="stable"))
        rows = plain_table(table).take(order).combine_chunks()
        ends = np.cumsum(np.bincount(blocks, minlength=job.blocks)).tolist()
        yield _parcels(
            (block, number * _PLACES + place, _DOCUMENTS, rows.slice(start, end - start))
            for block, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
            if end > start
        )


def together(job: Job, tables: Iterable[Rows], share: Share) -> Iterator[pa.Table]:
    """Yield parcels of tables of whole queries, no two of which have rows of one query.

    A table without `Grouped` has its rows in any order.
    """
    found: list[tuple[int, int, int, pa.Table]] = []
    sums: list[totals.Sums] = []
    ids: list[pa.Array] = []
    place, own = share.number * _PLACES + share.begins, share.number % job.blocks
    for (table, known), begins, ends in _with_ends(tables):
        whole: tuple[pa.Table, Grouped | None] = (table, known)
        if not job.task.lists:
            with parts.without_rows():
                grouped = known or grouped_rows(table, job.task.columns)
            at_edge = _at_edge(grouped, share.edges, begins=begins, ends=ends)
            whole = (table, grouped)
        if not job.task.lists and at_edge.any():
            sent = _pick(table, grouped, at_edge)
            blocks = np.concatenate([parts_of(each, job.blocks) for each in _chunks(sent[1].query_ids)])
            for block in np.unique(blocks).tolist():
                rows = _pick(*sent, blocks == block)[0]
                found.append((block, place, _DOCUMENTS, plain_table(rows)))
            whole = _pick(table, grouped, ~at_edge)
        place += 1
        if not len(whole[0]):
            continue
        with nullcontext() if job.results else totals.telling_the_driver():
            scores, _ = parts.score(job.task, *whole)
        if job.results is None:
            sums.append(totals.Sums.of(scores, values=job.values))
        else:
            found.append((own, place, _RESULTS, _results(job, scores)))
        if job.compares:
            ids += _chunks(decode(scores.queries[0]))
    if sums:
        total = totals.Sums.total(len(job.task.measures), sums)
        found.append((own, place, _SUMS, totals.pickle_row(total)))
    if ids:
        all_ids = pa.chunked_array(ids)
        blocks = np.concatenate([parts_of(each, job.blocks) for each in ids])
        found += [
            (block, place, _IDS, pa.table([all_ids.filter(pa.array(blocks == block))], ["id"]))
            for block in np.unique(blocks).tolist()
        ]
    if found:
        yield _parcels(found)


def joined(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the results of blocks from all their parcels, or one row with their sums."""
    blocks: dict[int, list[tuple[int, int, pa.Buffer]]] = {}
    for batch in batches:
        block, place, kind = (batch.column(name).to_pylist() for name in SCHEMA.names[:3])
        for row, data in enumerate(batch.column("data")):
            blocks.setdefault(block[row], []).append((place[row], kind[row], data.as_buffer()))
    sums: list[totals.Sums] = []
    unkept: list[str] = []
    for number in sorted(blocks):
        parcels = sorted(blocks.pop(number), key=lambda parcel: parcel[0])
        tables: list[list[pa.Table]] = [[], [], [], []]
        for _, kind, data in parcels:
            tables[kind].append(pa.ipc.open_stream(data).read_all())
        del parcels
        rows = (
            pa.concat_tables(tables[_DOCUMENTS], promote_options="permissive") if tables[_DOCUMENTS] else None
        )
        if job.compares and tables[_IDS]:
            ids = pa.concat_tables(tables[_IDS], promote_options="permissive")["id"]
            cut = ids.slice(0, 0) if rows is None else decode(checked_ids(rows, job.task.columns))
            check_ids(job.task, ids, cut)
        if job.results is not None:
            yield from tables[_RESULTS]
        found, told = totals.unpickle(row for table in tables[_SUMS] for row in table.to_pylist())
        sums, unkept = sums + found, unkept + told
        if rows is not None:
            with nullcontext() if job.results else totals.telling_the_driver():
                scores, _ = parts.score(job.task, rows)
            if job.results is None:
                sums.append(totals.Sums.of(scores, values=job.values))
            else:
                yield _results(job, scores)
    if sums:
        yield totals.pickle_row(totals.Sums.total(len(job.task.measures), sums), unkept)


def runs_at_edges(ids: pa.ChunkedArray, edges: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
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


def _results(job: Job, scores: Any) -> pa.Table:
    table, schema = scores._frame().rename_columns(job.task.results), job.results or pa.schema([])
    columns = [decode(column).cast(field.type) for column, field in zip(table.columns, schema, strict=True)]
    return pa.table(columns, schema=schema)


def _with_ends(tables: Iterable[Rows]) -> Iterator[tuple[Rows, bool, bool]]:
    """Yield tables that have rows, and whether each is the first, and the last."""
    waiting: Rows | None = None
    begins = True
    for rows in tables:
        if not len(rows[0]):
            continue
        if waiting is not None:
            yield waiting, begins, False
            begins = False
        waiting = rows
    if waiting is not None:
        yield waiting, begins, True


def _at_edge(grouped: Grouped, edges: pa.Array | None, *, begins: bool, ends: bool) -> npt.NDArray[np.bool_]:
    """Whether each query is at an edge, (n_queries,)."""
    if edges is not None:
        if not len(edges):
            return np.zeros(len(grouped.offsets) - 1, np.bool_)
        ids = decode(grouped.query_ids)
        is_edge = pc.is_in(ids, value_set=edges.cast(ids.type))
        return np.asarray(is_edge.to_numpy(zero_copy_only=False), np.bool_)
    at_edge = np.zeros(len(grouped.offsets) - 1, np.bool_)
    last = len(at_edge) - 1 if grouped.codes is None else int(grouped.codes[-1])
    at_edge[[0] * begins + [last] * ends] = True  # the first row is of the first query
    return at_edge


def _pick(table: pa.Table, grouped: Grouped, wanted: npt.NDArray[np.bool_]) -> tuple[pa.Table, Grouped]:
    """The rows of some queries, each in one place."""
    ids = pc.filter(grouped.query_ids, pa.array(wanted))
    lengths = np.diff(grouped.offsets)
    offsets = np.append(0, np.cumsum(lengths[wanted]))
    if grouped.codes is not None:
        rows = grouped.rows[np.repeat(wanted, lengths)]  # type: ignore[index] # with codes there are rows
        return plain_table(table).take(pa.array(rows)), Grouped(ids, offsets)
    changes = np.flatnonzero(np.diff(wanted, prepend=False, append=False)).reshape(-1, 2)
    bounds = grouped.offsets[changes].tolist()  # of queries that follow one another
    slices = [table.slice(start, stop - start) for start, stop in bounds]
    return pa.concat_tables(slices) if slices else table.slice(0, 0), Grouped(ids, offsets)


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _parcels(rows: Iterable[tuple[int, int, int, pa.Table]]) -> pa.Table:
    """A row for each block, place, kind and table, which is packed as Arrow's stream."""
    sink, ends, numbers = pa.BufferOutputStream(), [0], list[tuple[int, int, int]]()
    for block, place, kind, table in rows:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        ends.append(sink.tell())
        numbers.append((block, place, kind))
    buffers = [None, pa.py_buffer(np.array(ends, np.int64)), sink.getvalue()]
    data = pa.LargeBinaryArray.from_buffers(SCHEMA.field("data").type, len(numbers), buffers)
    columns = [
        pa.array(column, field.type)
        for column, field in zip(zip(*numbers, strict=True), SCHEMA, strict=False)
    ]
    return pa.table([*columns, data], schema=SCHEMA)
