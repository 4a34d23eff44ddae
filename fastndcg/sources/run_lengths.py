"""Group rows of a column by runs of equal values: rows that stand together are neither joined nor hashed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, column_of, decode, is_number, plain, with_long_offsets
from fastndcg.rankings.grouping import Grouped, group_by_query

Int64 = npt.NDArray[np.int64]


def group_rows(ids: pa.ChunkedArray) -> Grouped:
    """`group_by_query` by runs of equal ids: ids of contiguous rows are neither joined nor hashed."""
    if pa.types.is_run_end_encoded(ids.type):
        starts, ids_of_runs = runs_of(ids)
        if not len(starts):
            return group_by_query(plain(ids))
    else:
        changes = changes_of(ids, most=len(ids) // 2)
        if changes is None or not len(changes):
            return group_by_query(ids)
        starts, ids_of_runs = changes, take(ids, changes)
    if is_number(ids_of_runs.type) and ids_of_runs.num_chunks:
        numbers = array_of(ids_of_runs)
        if bool((numbers[1:] > numbers[:-1]).all()):
            return Grouped(_as_one(ids_of_runs), np.append(starts, len(ids)))
    ends = np.append(starts[1:], len(ids))
    runs = group_by_query(_as_one(decode(ids_of_runs)))
    if runs.codes is None:
        return Grouped(runs.query_ids, np.append(starts[runs.offsets[:-1]], len(ids)))
    lengths = ends - starts
    new_ends = np.cumsum(lengths[runs.rows])
    return Grouped(
        runs.query_ids,
        np.append(0, new_ends)[runs.offsets],
        np.repeat(runs.codes, lengths),
        starts[runs.first_rows],
    )


def runs_of(column: pa.ChunkedArray) -> tuple[Int64, pa.ChunkedArray]:
    """First rows of the runs of a run-end encoded column, and values; chunks may split a run."""
    starts, values, before = [np.empty(0, np.int64)], [], 0
    for chunk in column.chunks:
        first, count = chunk.find_physical_offset(), chunk.find_physical_length()
        ends = array_of(chunk.run_ends)[first : first + count].astype(np.int64) + (before - chunk.offset)
        starts.append(np.append(before, ends[:-1])[:count])
        values.append(chunk.values[first : first + count])
        before += len(chunk)
    return np.concatenate(starts), pa.chunked_array(values, column.type.value_type)


def changes_of(column: pa.ChunkedArray, most: int) -> Int64 | None:
    """Rows that may differ from the row before: all that do, the first of each chunk, and equal entries of a
    dictionary.

    None where the type has no quick comparison, and where there are more than `most`.
    """
    kind, flags = column.type, [np.empty(0, np.bool_)]
    if column.null_count:
        return None
    for chunk in column.chunks:
        if pa.types.is_dictionary(kind) or is_number(kind):
            values = array_of(chunk.indices if pa.types.is_dictionary(kind) else chunk)
            differs = values[1:] != values[:-1]
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            import pyarrow.compute as pc

            # 3.4 ns a row, where encoding as a dictionary takes 14
            differs = array_of(pc.not_equal(chunk[1:], chunk[:-1]))
        else:
            return None
        most -= int(np.count_nonzero(differs)) + 1
        if most < 0:  # to list so many took 10 ns a row
            return None
        flags += [np.ones(min(len(chunk), 1), np.bool_), differs]
    return np.flatnonzero(np.concatenate(flags))


def take(column: pa.ChunkedArray, rows: Int64) -> pa.ChunkedArray:
    """Ascending rows; chunk by chunk, since taking from a chunked array joins it first."""
    ends = np.cumsum([len(chunk) for chunk in column.chunks], dtype=np.int64)
    cuts = np.searchsorted(rows, ends)
    taken = [
        _take_of(chunk, rows[first:last] - (end - len(chunk)))
        for chunk, first, last, end in zip(column.chunks, np.append(0, cuts), cuts, ends, strict=False)
    ]
    return pa.chunked_array(taken, column.type)


def _take_of(chunk: pa.Array, rows: Int64) -> pa.Array:
    """Take rows. NumPy needs half the time of Arrow, which also looks after nulls."""
    if is_number(chunk.type) and not chunk.null_count:
        return column_of(array_of(chunk)[rows], chunk.type)
    return chunk.take(column_of(rows))


def _as_one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(with_long_offsets(column).chunks)
