"""Rows and sums that workers exchange through an engine's shuffle, packed into a few of its rows.

    whole queries of a split -> scored where they are ------------------> results, or sums ---+
    queries that other splits have rows of, or rows in any order -> packed by hash of the id -+-> a block
    a block -> rows of each query together, in order -> scored ---------> results, or sums

An engine copies each of its rows for some hundred nanoseconds, so a chunk has all rows that one table has for
a block. What `grouped=True` promises is checked: the ids of all queries are compared, and a query that
was scored and has rows anywhere else is refused, so that no value is computed from a part of a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.adapters import aggregates, scoring
from fastndcg.common.arrays import offsets_from
from fastndcg.common.arrow_types import array_of, decode
from fastndcg.errors import InputError
from fastndcg.kernels.compile import dispatch
from fastndcg.sources.regrouping import parts_of
from fastndcg.tables.arrow import checked_ids, grouped_rows, plain_table
from fastndcg.tables.grouping import Grouped
from fastndcg.tables.locations import shown

if TYPE_CHECKING:
    from fastndcg.adapters.scoring import Task
    from fastndcg.sources.open_file import File, Stamp

SCHEMA = pa.schema(
    [("block", pa.int32()), ("place", pa.int64()), ("kind", pa.int8()), ("data", pa.large_binary())]
)
_DOCUMENTS, _RESULTS, _SUMS, _IDS = range(4)  # kinds of chunks
_PLACES = 1 << 32  # of tables in a split

# a table, and its rows by query where they are known
Rows = tuple[pa.Table, Grouped | None]
Chunk = tuple[int, int, int, pa.Table]  # block, place, kind, and rows


class Job(NamedTuple):
    """Settings shared by all workers."""

    task: Task
    blocks: int  # partitions after the shuffle
    results: pa.Schema | None  # of results; None for sums
    scattered: bool = False  # whether the rows of a query may be anywhere
    compares: bool = False  # whether the ids of all queries are compared
    rows: int = 0  # of all data; 0 if unknown


class Split(NamedTuple):
    """A part of the data that one worker reads: of files, some row groups of Parquet."""

    number: int = 0  # in the order of the data
    edges: pa.Array | None = None  # ids that other splits may have; None: those of its first and last row
    begins: int = 0  # the place of the first table in it
    parts: Sequence[tuple[File, Stamp, range]] = ()
    size: float = 0.0


def pack_partition(job: Job, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield packed chunks of a partition of an engine's table."""
    if job.scattered:
        return pack_rows(job, scoring.larger(tables), 0)
    return score_or_pack(job, ((table, None) for table in tables), Split())


def pack_rows(job: Job, tables: Iterable[pa.Table], number: int) -> Iterator[pa.Table]:
    """Yield packed chunks of rows in any order."""
    for place, table in enumerate(table for table in tables if len(table)):
        with scoring.without_rows():
            ids = checked_ids(table, job.task.columns)
        blocks = parts_of(ids, job.blocks)
        yield pack(divide(plain_table(table), blocks, number * _PLACES + place, _DOCUMENTS))


def score_or_pack(job: Job, tables: Iterable[Rows], split: Split) -> Iterator[pa.Table]:
    """Yield packed chunks of tables of whole queries, no two of which have rows of one query: results or sums
    of queries that no other split has, and the rows of others.
    """
    chunks: list[Chunk] = []
    sums: list[tuple[aggregates.Sums, ...]] = []
    ids: list[pa.Array] = []
    place, block = split.number * _PLACES + split.begins, split.number % job.blocks
    filled: Iterator[Any] = (rows for rows in tables if len(rows[0]))
    for (table, known), following in pairwise(chain(filled, [None])):
        kept: Rows = (table, known)
        if not job.task.lists:
            with scoring.without_rows():
                grouped = known or grouped_rows(table, job.task.columns)
            begins = place == split.number * _PLACES + split.begins
            at_edge = _at_edge(grouped, split.edges, begins=begins, ends=following is None)
            kept = (table, grouped)
            if at_edge.any():
                rows, moved = _select(table, grouped, at_edge)
                blocks = parts_of(moved.query_ids, job.blocks)
                of_rows = np.repeat(blocks, np.diff(moved.offsets))
                chunks += divide(plain_table(rows), of_rows, place, _DOCUMENTS)
                kept = _select(table, grouped, ~at_edge)
        place += 1
        if not len(kept[0]):
            continue
        result, queries = _score(job, *kept)
        if isinstance(result, tuple):
            sums.append(result)
        else:
            chunks.append((block, place, _RESULTS, result))
        if job.compares:
            ids += decode(queries[0]).chunks
    if sums:
        chunks.append((block, place, _SUMS, aggregates.pickle_row(reduce(aggregates.merged, sums))))
    if ids:
        scored = pa.table([pa.chunked_array(ids)], ["id"])
        chunks += divide(scored, parts_of(scored[0], job.blocks), place, _IDS)
    if chunks:
        yield pack(chunks)


def score_blocks(job: Job, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield results of blocks from all their chunks, or a row with their sums."""
    sums: list[tuple[aggregates.Sums, ...]] = []
    for contents in unpack_blocks(tables):
        rows = contents[_DOCUMENTS]
        if job.compares and contents[_IDS] is not None:
            ids = contents[_IDS]["id"]
            at_edges = ids.slice(0, 0) if rows is None else decode(checked_ids(rows, job.task.columns))
            check_ids(job.task, ids, at_edges)
        if contents[_RESULTS] is not None:
            yield contents[_RESULTS]
        if contents[_SUMS] is not None:
            sums += aggregates.unpickle_rows(contents[_SUMS].to_pylist())
        if rows is not None:
            result, _ = _score(job, rows)
            if isinstance(result, tuple):
                sums.append(result)
            else:
                yield result
    if sums:
        yield aggregates.pickle_row(reduce(aggregates.merged, sums))


def sum_groups(means: aggregates.Means, blocks: int, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield packed chunks of the sums of each group in a partition of results."""
    for table in scoring.larger(tables):
        groups = aggregates.sums_by(means, table)
        of_groups = aggregates.blocks_of(groups.by, len(groups.queries), blocks)
        yield pack(
            (block, 0, _SUMS, aggregates.pickle_row(groups.of(np.flatnonzero(of_groups == block))))
            for block in np.unique(of_groups).tolist()
        )


def merge_groups(
    means: aggregates.Means, kinds: Sequence[pa.DataType], tables: Iterable[pa.Table]
) -> Iterator[pa.Table]:
    """Yield the means of the groups of each block, from all its chunks."""
    for contents in unpack_blocks(tables):
        groups = [] if contents[_SUMS] is None else aggregates.unpickle_rows(contents[_SUMS].to_pylist())
        yield aggregates.pickle_row(aggregates.means_of(means, kinds, groups))


def unpack_blocks(tables: Iterable[pa.Table]) -> Iterator[list[Any]]:
    """Unpack the chunks of each block: by their kind a table of all, in the order of their places."""
    blocks: dict[int, list[tuple[int, int, pa.Buffer]]] = {}
    for table in tables:
        numbers = (table[name].to_pylist() for name in SCHEMA.names[:3])
        for block, place, kind, data in zip(*numbers, table["data"], strict=True):
            blocks.setdefault(block, []).append((place, kind, data.as_buffer()))
    for number in sorted(blocks):
        opened: list[list[pa.Table]] = [[], [], [], []]
        for _, kind, data in sorted(blocks.pop(number), key=lambda chunk: chunk[0]):
            opened[kind].append(pa.ipc.open_stream(data).read_all())
        yield [pa.concat_tables(each, promote_options="permissive") if each else None for each in opened]


def _score(
    job: Job, table: pa.Table, grouped: Grouped | None = None
) -> tuple[pa.Table | tuple[aggregates.Sums, ...], pa.Table]:
    """The results of whole queries, or the sums of each system; and the queries."""
    # a block has about as many rows as any other
    with dispatch.part_of(job.rows or job.blocks * len(table), len(table)):
        systems = scoring.score(job.task, table, grouped)
    if job.results is None:
        return tuple(map(aggregates.Sums.of, systems)), systems[0].queries
    return scoring.results(job.task, systems, job.results), systems[0].queries


def check_ids(task: Task, scored: pa.ChunkedArray, cut: pa.ChunkedArray) -> None:
    """Raise for a query that was scored twice, or scored although an edge has more of its rows."""
    counts = pc.value_counts(scored)
    if isinstance(counts, pa.ChunkedArray):
        counts = counts.combine_chunks()
    ids, twice = counts.field("values"), pc.greater(counts.field("counts"), 1)
    bad = ids.filter(twice)
    if not len(bad) and len(cut):
        bad = cut.filter(pc.is_in(cut, value_set=ids.cast(cut.type)))
    if len(bad):
        raise InputError(
            f"query {shown(bad[0])} has rows in several places. "
            "grouped=True requires the rows of each query to be contiguous, as in files sorted by "
            f'"{task.query}"; leave it out for rows in any order.'
        )


def _at_edge(grouped: Grouped, edges: pa.Array | None, *, begins: bool, ends: bool) -> npt.NDArray[np.bool_]:
    """Whether each query is at an edge, (n_queries,)."""
    at_edge = np.zeros(len(grouped.offsets) - 1, np.bool_)
    if edges is None:
        last = len(at_edge) - 1 if grouped.codes is None else int(grouped.codes[-1])
        at_edge[[0] * begins + [last] * ends] = True  # the first row is of the first query
    elif len(edges):
        ids = decode(grouped.query_ids)
        at_edge[:] = array_of(pc.is_in(ids, value_set=edges.cast(ids.type)))
    return at_edge


def _select(table: pa.Table, grouped: Grouped, chosen: npt.NDArray[np.bool_]) -> tuple[pa.Table, Grouped]:
    """The rows of some queries, each in one place."""
    ids = pc.filter(grouped.query_ids, pa.array(chosen))
    lengths = np.diff(grouped.offsets)
    offsets = offsets_from(lengths[chosen])
    if grouped.codes is not None:
        rows = grouped.rows[np.repeat(chosen, lengths)]  # type: ignore[index] # with codes there are rows
        return plain_table(table).take(pa.array(rows)), Grouped(ids, offsets)
    changes = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).reshape(-1, 2)
    bounds = grouped.offsets[changes].tolist()  # of queries that follow one another
    slices = [table.slice(start, stop - start) for start, stop in bounds]
    return pa.concat_tables(slices) if slices else table.slice(0, 0), Grouped(ids, offsets)


def divide(table: pa.Table, blocks: npt.NDArray[Any], place: int, kind: int) -> Iterator[Chunk]:
    """Chunks of the rows of each block; `blocks` are those of the rows."""
    rows = table.take(pa.array(np.argsort(blocks, kind="stable"))).combine_chunks()
    for block, (start, end) in enumerate(pairwise(offsets_from(np.bincount(blocks)).tolist())):
        if end > start:
            yield block, place, kind, rows.slice(start, end - start)


def pack(chunks: Iterable[Chunk]) -> pa.Table:
    """A row for each block, place, kind and table, which is packed as Arrow's stream."""
    sink, ends, numbers = pa.BufferOutputStream(), [0], list[tuple[int, int, int]]()
    for block, place, kind, table in chunks:
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
