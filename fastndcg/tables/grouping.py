"""Group rows by query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Array, Int64, arrow_column, codes_from, read_only
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    decode,
    has_offsets,
    is_number,
    whole_ids,
    with_long_offsets,
)
from fastndcg.common.lazy import pa
from fastndcg.errors import InputError, InputTypeError, count_of
from fastndcg.kernels.compile import dispatch

_TABLE = 1 << 16  # smallest size of a table with an entry for each possible id


@dataclass(frozen=True)
class Grouped:
    """Rows grouped by query."""

    query_ids: pa.Array | pa.ChunkedArray
    offsets: Int64
    codes: Array | None = None  # query number of each row; None if rows are in query order
    first_row_of_each: Int64 | None = None

    @cached_property
    def rows(self) -> Int64 | None:
        """Row numbers in query order, stable; None if rows are in query order."""
        if self.codes is None:
            return None
        rows: Int64 = dispatch.run(
            "rows.rows_by_code", len(self.codes), read_only(self.codes), len(self.offsets) - 1
        )[1]
        return rows

    @property
    def first_rows(self) -> Int64:
        """First row of each query."""
        return self.offsets[:-1] if self.first_row_of_each is None else self.first_row_of_each

    @property
    def codes_of_rows(self) -> Array:
        """Query number of each row."""
        if self.codes is not None:
            return self.codes
        return codes_from(self.offsets)

    def in_order(self, one: Array, other: Array) -> tuple[Array, Array]:
        """Return two columns of numbers in query order."""
        if self.codes is None:
            return one, other
        of_numbers = all(
            column.ndim == 1 and column.dtype.kind in "biuf" and column.itemsize <= 8
            for column in (one, other)
        )
        if of_numbers and self.codes.dtype == np.int32:
            # as unsigned integers, to compile fewer kernels
            columns = [
                read_only(np.ascontiguousarray(each).view(f"u{each.itemsize}")) for each in (one, other)
            ]
            placed = [np.empty_like(column) for column in columns]
            # Arrow's pool reuses memory that NumPy would fault in anew
            held = [
                np.frombuffer(pa.allocate_buffer(each.nbytes), each.dtype) for each in (self.codes, *columns)
            ]
            arguments = (read_only(self.codes), read_only(self.offsets), *held, *columns, *placed)
            place = dispatch.compiled_driver("rows.place_by_code", len(self.codes), arguments)
            if place is not None:
                place(*arguments)
                return placed[0].view(one.dtype), placed[1].view(other.dtype)
        rows: Any = self.rows
        # no row is out of range; mode="clip" took 8 ns a row, the default check 10
        return one.take(rows, 0, mode="clip"), other.take(rows, 0, mode="clip")


def group_by_query(query_ids: Any) -> Grouped:
    """Group rows by query id; queries in order of first appearance, rows of a query in their own order.

    >>> group_by_query([5, 3, 5]).rows
    array([0, 2, 1])
    """
    ids = _plain_ids(query_ids)
    if pa.types.is_integer(ids.type) or pa.types.is_dictionary(ids.type):
        codes = _run_codes(ids)
        changes = codes[1:] != codes[:-1]
        n_runs = int(np.count_nonzero(changes)) + bool(len(codes))
        # runs of one row are not sorted: numbering all rows, as below, was seven times as fast
        if (codes[1:] >= codes[:-1]).all() or (
            2 * n_runs < len(codes) and len(np.unique(codes[np.append(True, changes)])) == n_runs
        ):
            starts = np.flatnonzero(np.append(True, changes)) if n_runs else np.empty(0, np.int64)
            return Grouped(_entries(ids, starts), np.append(starts, len(codes)).astype(np.int64))
    codes, first_rows, counts = numbers_of(ids)
    entries = _entries(ids, first_rows)
    offsets = np.append(0, np.cumsum(counts))
    if (codes[1:] >= codes[:-1]).all():
        return Grouped(entries, offsets)
    return Grouped(decode(entries), offsets, codes, first_rows)


def _entries(ids: pa.Array, rows: Int64) -> pa.Array:
    """Take ascending rows of ids. For numbers, avoids the import of pyarrow.compute, which takes 0.08 s."""
    return combine(take(pa.chunked_array([ids]), rows))


class Numbers(NamedTuple):
    """Distinct ids, numbered in order of first appearance."""

    codes: npt.NDArray[np.int32]  # number of each row's id
    first_rows: Int64  # first row of each id
    counts: Int64  # number of rows of each id


def numbers_of(ids: pa.Array) -> Numbers:
    if pa.types.is_dictionary(ids.type) or pa.types.is_integer(ids.type):
        values = _run_codes(ids)
        values = values.view(np.int64) if values.dtype == np.uint64 else values
        lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        ids, n_values = column_of(values), highest - lowest + 1
        if n_values < 2 * len(values) + _TABLE and len(values) < 2**31:
            # a table with an entry for each possible id takes 4 ns a row, Arrow's hash table 25
            values = read_only(values.astype(np.int64, copy=False) - lowest if lowest else values)
            if values.dtype != np.int32:  # a kernel is compiled for each dtype
                values = read_only(values.astype(np.int64, copy=False))
            codes, table = np.empty(len(values), np.int32), np.full(n_values, -1, np.int32)
            first_rows, counts = np.empty((2, n_values), np.int64)
            arguments = values, table, codes, first_rows, counts
            n_ids = dispatch.run("rows.codes_by_first_appearance", len(values), *arguments)
            return Numbers(codes, first_rows[:n_ids], counts[:n_ids])
    encoded = ids.dictionary_encode()
    codes = array_of(encoded.indices)
    # codes are in order of first appearance: an id first appears where the running maximum rises
    first_rows = np.searchsorted(np.maximum.accumulate(codes), np.arange(len(encoded.dictionary)))
    return Numbers(codes, first_rows, np.bincount(codes, minlength=len(first_rows)))


def _plain_ids(query_ids: Any) -> pa.Array:
    """Return query ids as one Arrow array without nulls, string views and repeated dictionary entries."""
    column = whole_ids(arrow_column("query_ids", query_ids))
    if pa.types.is_floating(column.type):
        raise InputTypeError(
            f"query_ids is {column.type}, and not all of them are whole numbers; expected integers or strings"
        )
    if pa.types.is_nested(column.type) or (pa.types.is_null(column.type) and len(column)):
        raise InputTypeError(f"query_ids is {column.type}; expected integers or strings")
    if column.null_count:
        first = int(np.argmax(array_of(column.is_null())))
        raise InputError(
            f"query_ids has {count_of(column.null_count, 'null')}; the first is at row {first}. "
            "Drop those rows or name their query."
        )
    if pa.types.is_dictionary(column.type):
        column = combine(column)
        values = column.dictionary
        if len(values.unique()) != len(values):
            return _plain_ids(values.take(column.indices))
        return pa.DictionaryArray.from_arrays(column.indices, values)
    return combine(with_long_offsets(column))


def _run_codes(ids: pa.Array) -> Array:
    return array_of(ids.indices if pa.types.is_dictionary(ids.type) else ids)


# ---- runs of equal ids ----


def group_rows(ids: pa.ChunkedArray) -> Grouped:
    """Group rows by query, by runs of equal ids: contiguous queries are neither joined nor hashed."""
    if pa.types.is_run_end_encoded(ids.type):
        starts, ids_of_runs = runs_of(ids)
        if not len(starts):
            return group_by_query(ids_of_runs)
    else:
        changes = changes_of(ids, most=len(ids) // 2)
        if changes is None or not len(changes):
            return group_by_query(ids)
        starts, ids_of_runs = changes, take(ids, changes)
    if is_number(ids_of_runs.type) and ids_of_runs.num_chunks:
        numbers = array_of(ids_of_runs)
        if bool((numbers[1:] > numbers[:-1]).all()):
            return Grouped(combine(ids_of_runs), np.append(starts, len(ids)))
    runs = group_by_query(combine(with_long_offsets(decode(ids_of_runs))))
    if runs.codes is None:
        return Grouped(runs.query_ids, np.append(starts[runs.offsets[:-1]], len(ids)))
    lengths = np.diff(starts, append=len(ids))
    offsets = np.append(0, np.cumsum(lengths[runs.rows]))[runs.offsets]
    return Grouped(runs.query_ids, offsets, np.repeat(runs.codes, lengths), starts[runs.first_rows])


def runs_of(column: pa.ChunkedArray) -> tuple[Int64, pa.ChunkedArray]:
    """Return the first row and the value of each run of a run-end encoded column; chunks may split runs."""
    starts, values, before = [np.empty(0, np.int64)], [], 0
    for chunk in column.chunks:
        first, count = chunk.find_physical_offset(), chunk.find_physical_length()
        ends = array_of(chunk.run_ends)[first : first + count].astype(np.int64) + (before - chunk.offset)
        starts.append(np.append(before, ends[:-1])[:count])
        values.append(chunk.values[first : first + count])
        before += len(chunk)
    return np.concatenate(starts), pa.chunked_array(values, column.type.value_type)


def changes_of(column: pa.ChunkedArray, most: int) -> Int64 | None:
    """Return the rows that may differ from the row before: all that do, and the first row of each chunk.

    None if the type has no quick comparison, or if there are more than `most`.
    """
    kind, flags = column.type, [np.empty(0, np.bool_)]
    if column.null_count:
        return None
    for chunk in column.chunks:
        if pa.types.is_dictionary(kind) or is_number(kind):
            values = array_of(chunk.indices if pa.types.is_dictionary(kind) else chunk)
            differs = values[1:] != values[:-1]
        elif has_offsets(kind):
            import pyarrow.compute as pc

            # 3.4 ns a row; encoding as a dictionary takes 14
            differs = array_of(pc.not_equal(chunk[1:], chunk[:-1]))
        else:
            return None
        most -= int(np.count_nonzero(differs)) + 1
        if most < 0:  # listing so many takes 10 ns a row
            return None
        flags += [np.ones(min(len(chunk), 1), np.bool_), differs]
    return np.flatnonzero(np.concatenate(flags))


def take(column: pa.ChunkedArray, rows: Int64) -> pa.ChunkedArray:
    """Take ascending rows, chunk by chunk: Arrow would join a chunked array first."""
    ends = np.cumsum([len(chunk) for chunk in column.chunks], dtype=np.int64)
    taken, first = [], 0
    for chunk, end, last in zip(column.chunks, ends, np.searchsorted(rows, ends), strict=True):
        part, first = rows[first:last] - (end - len(chunk)), last
        # NumPy takes half the time of Arrow, which checks for nulls
        of_numbers = is_number(chunk.type) and not chunk.null_count
        taken.append(
            column_of(array_of(chunk)[part], chunk.type) if of_numbers else chunk.take(column_of(part))
        )
    return pa.chunked_array(taken, column.type)
