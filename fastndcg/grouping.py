"""Rows grouped by query."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.arrays import arrow_column, read_only
from fastndcg.arrow_types import combined, plain_strings
from fastndcg.errors import InputError, InputTypeError, count_of
from fastndcg.kernels import worlds
from fastndcg.later import pa

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


_TABLE = 1 << 16  # ids that a table may always have room for


class Grouped(NamedTuple):
    """Rows grouped by query: `rows` in query order, or None where they stand in that order already."""

    query_ids: pa.Array | pa.ChunkedArray
    offsets: Int64
    rows: Int64 | None


def group_by_query(query_ids: Any) -> Grouped:
    """Group rows by query id; queries in order of first appearance, rows of a query in their own order.

    >>> group_by_query([5, 3, 5]).rows
    array([0, 2, 1])
    """
    ids = id_column(query_ids)
    codes = _run_codes(ids)
    changes = codes[1:] != codes[:-1]
    n_runs = int(np.count_nonzero(changes)) + bool(len(codes))
    if (codes[1:] >= codes[:-1]).all():
        together = True
    elif 2 * n_runs >= len(codes):
        # most runs are one row long, so all rows will be numbered anyway, at 5 ns each; sorting the runs took 33
        numbered = _numbers_of(ids, codes)
        together = numbered.n_values == n_runs
    else:
        numbered = None
        together = len(np.unique(codes[np.append(True, changes)])) == n_runs
    if together:
        starts = np.flatnonzero(np.append(True, changes)) if n_runs else np.empty(0, np.int64)
        return Grouped(
            ids.take(pa.array(starts)), np.append(starts, len(codes)).astype(np.int64, copy=False), None
        )

    codes, n_values = _numbers_of(ids, codes) if numbered is None else numbered
    offsets, rows = worlds.run("rows.rows_by_code", len(codes), codes, n_values)
    found = ids.take(pa.array(rows[offsets[:-1]]))
    return Grouped(found.dictionary_decode() if pa.types.is_dictionary(found.type) else found, offsets, rows)


class _Numbers(NamedTuple):
    """The number of each row's id; distinct ids are numbered in order of first appearance."""

    codes: Int64
    n_values: int


def _numbers_of(ids: pa.Array, codes: Array) -> _Numbers:
    if pa.types.is_dictionary(ids.type):
        lowest, size = 0, len(ids.dictionary)
    else:
        lowest, highest = int(codes.min()), int(codes.max())
        size = highest - lowest + 1
        if size > 2 * len(codes) + _TABLE or highest >= 2**63:
            encoded = ids.dictionary_encode()  # numbers values as they appear
            return _Numbers(_run_codes(encoded).astype(np.int64), len(encoded.dictionary))
    # a table of all ids there could be took 2 ns a row, where hashing took 6 to 24
    indices = codes.astype(np.int64, copy=False)
    codes, first_rows = worlds.run(
        "rows.codes_by_first_appearance",
        len(indices),
        read_only(indices - lowest if lowest else indices),
        size,
    )
    return _Numbers(codes, len(first_rows))


def id_column(query_ids: Any) -> pa.Array:
    """Query ids as one Arrow array without nulls; strings as dictionaries, so that equality is one integer compare."""
    column = arrow_column("query_ids", query_ids)
    if pa.types.is_floating(column.type):
        raise InputTypeError(
            f"query_ids is {column.type}; wanted integers or strings, so cast them, as in query_ids.astype('int64')"
        )
    if pa.types.is_nested(column.type) or (pa.types.is_null(column.type) and len(column)):
        raise InputTypeError(f"query_ids is {column.type}; wanted integers or strings")
    if column.null_count:
        first = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(
            f"query_ids has {count_of(column.null_count, 'null')}; the first is at row {first}. Drop those rows or name their query."
        )
    if pa.types.is_dictionary(column.type):
        column = combined(column)
        import pyarrow.compute as pc

        values = plain_strings(column.dictionary)
        if values.null_count or pc.count_distinct(values).as_py() != len(values):
            return id_column(values.take(column.indices))
        return pa.DictionaryArray.from_arrays(column.indices, values)
    column = plain_strings(column)
    return combined(column if pa.types.is_integer(column.type) else column.dictionary_encode())


def _run_codes(ids: pa.Array) -> Array:
    codes = ids.indices if pa.types.is_dictionary(ids.type) else ids
    return codes.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
