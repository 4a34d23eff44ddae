"""Rows and sums that workers exchange through an engine's shuffle, packed into a few of its rows.

    whole queries of a split -> scored where they are ------------------> results, or sums ---+
    queries that other splits have rows of, or rows in any order -> packed by hash of the id -+-> a block
    a block -> rows of each query together, in order -> scored ---------> results, or sums

An engine copies each of its rows for some hundred nanoseconds, so a chunk has all rows that one table has for
a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.adapters import scoring
from fastndcg.common.arrays import offsets_from
from fastndcg.common.arrow_types import array_of, decode
from fastndcg.kernels.compile import dispatch
from fastndcg.sources.regrouping import parts_of
from fastndcg.tables.arrow import checked_ids, grouped_rows, plain_table
from fastndcg.tables.grouping import Grouped

if TYPE_CHECKING:
    from fastndcg.adapters.scoring import Task
    from fastndcg.sources.open_file import File, Stamp

SCHEMA = pa.schema(
    [("block", pa.int32()), ("place", pa.int64()), ("kind", pa.int8()), ("data", pa.large_binary())]
)
_DOCUMENTS, _RESULTS, _SUMS = range(3)  # kinds of chunks
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
    rows: int = 0  # of all data; 0 if unknown


class Split(NamedTuple):
    """A part of the data that one worker reads: of files, some row groups of Parquet."""

    number: int = 0  # in the order of the data
    edges: pa.Array = pa.nulls(0)  # ids that other splits have too
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
    sums, block = None, split.number % job.blocks
    for place, (table, known) in enumerate(tables, split.number * _PLACES):
        kept: Rows = (table, known)
        if len(table) and len(split.edges):
            with scoring.without_rows():
                grouped = known or grouped_rows(table, job.task.columns)
            ids = decode(grouped.query_ids)
            shared = array_of(pc.is_in(ids, value_set=split.edges.cast(ids.type)))
            kept = (table, grouped)
            if shared.any():
                rows, moved = _select(table, grouped, shared)
                blocks = np.repeat(parts_of(moved.query_ids, job.blocks), np.diff(moved.offsets))
                chunks += divide(plain_table(rows), blocks, place, _DOCUMENTS)
                kept = _select(table, grouped, ~shared)
        if not len(kept[0]):
            continue
        result = _score(job, *kept)
        if job.results is None:
            sums = scoring.merged(sums, result)
        else:
            chunks.append((block, place, _RESULTS, result))
    if sums is not None:
        chunks.append((block, 0, _SUMS, scoring.pickle_row(sums)))
    if chunks:
        yield pack(chunks)


def score_blocks(job: Job, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield results of blocks from all their chunks, or a row with their sums."""
    sums = None
    for documents, results, packed in unpack_blocks(tables):
        if results is not None:
            yield results
        for each in scoring.unpickle_rows(packed):
            sums = scoring.merged(sums, each)
        if documents is not None:
            result = _score(job, documents)
            if job.results is None:
                sums = scoring.merged(sums, result)
            else:
                yield result
    if sums is not None:
        yield scoring.pickle_row(sums)


def unpack_blocks(tables: Iterable[pa.Table]) -> Iterator[list[pa.Table | None]]:
    """Unpack the chunks of each block: by their kind a table of all, in the order of their places."""
    blocks: dict[int, list[tuple[int, int, pa.Buffer]]] = {}
    for table in tables:
        numbers = (table[name].to_pylist() for name in SCHEMA.names[:3])
        for block, place, kind, data in zip(*numbers, table["data"], strict=True):
            blocks.setdefault(block, []).append((place, kind, data.as_buffer()))
    for number in sorted(blocks):
        opened: list[list[pa.Table]] = [[], [], []]
        for _, kind, data in sorted(blocks.pop(number), key=lambda chunk: chunk[0]):
            opened[kind].append(pa.ipc.open_stream(data).read_all())
        yield [pa.concat_tables(each, promote_options="permissive") if each else None for each in opened]


def _score(job: Job, table: pa.Table, grouped: Grouped | None = None) -> Any:
    """The results of whole queries, or the sums of each system."""
    # a block has about as many rows as any other
    with dispatch.part_of(job.rows or job.blocks * len(table), len(table)):
        systems = scoring.score(job.task, table, grouped)
    if job.results is None:
        return tuple(map(scoring.Sums.of, systems))
    return scoring.results(job.task, systems, job.results)


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
