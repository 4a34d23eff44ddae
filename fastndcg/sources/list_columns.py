"""Tables in list-column form, a row for each query, to `Rankings`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, column_of, decode, is_list, plain
from fastndcg.errors import At, InputError, InputTypeError, count_of
from fastndcg.sources.documents import checked, checked_ids, number_of, of_documents
from fastndcg.sources.values import grades_in, numbers_in, refuse_nulls, scores_in, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.columns import Columns

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


def from_lists(
    table: pa.Table, columns: Columns, to_decode: Collection[str], numbers: int | Int64
) -> Rankings:
    ids = None if columns.query is None else checked_ids(table, columns, numbers)

    def query_at(row: int) -> str:
        return str(number_of(row, numbers)) if ids is None else shown(ids[row])

    def place(row: int) -> At:
        return At(None, query_at(row))

    if ids is not None and (repeated := _first_repeated(ids)) is not None:
        raise several_rows_of_lists(ids[repeated], columns)
    offsets, grades = _split_lists(columns.relevance, table[columns.relevance], place)

    def values_of(name: str) -> tuple[pa.ChunkedArray, Callable[[int], At]]:
        own_offsets, values = _split_lists(name, table[name], place)
        if not np.array_equal(own_offsets, offsets):
            row = int(np.argmax(np.diff(own_offsets) != np.diff(offsets)))
            raise InputError(
                f"query {query_at(row)} has {count_of(offsets[row + 1] - offsets[row], 'value')} in column "
                f'"{columns.relevance}" and {own_offsets[row + 1] - own_offsets[row]} in column "{name}"; '
                "wanted lists of equal lengths"
            )
        return values, document

    def document(position: int) -> At:
        row = int(np.searchsorted(offsets, position, side="right")) - 1
        return place(row)._replace(position=position - int(offsets[row]))

    relevance, graded = grades_in(columns, grades, document)
    scores = scores_in(columns, values_of(columns.score)[0], document)
    more = of_documents(columns, values_of, graded, len(grades))
    weight = (
        None
        if columns.weight is None
        else numbers_in(columns.weight, table[columns.weight], "weights", place)
    )
    kept = {name: plain(table[name]) for name in columns.keep}
    kept |= {name: decode(column) for name, column in kept.items() if name in to_decode}
    return checked(
        offsets,
        relevance,
        scores,
        columns,
        document,
        query_ids=_row_numbers(len(table), numbers) if ids is None else decode(ids),
        first_row=None,
        weight=weight,
        queries=pa.table(kept) if kept else None,
        **more,
    )


def several_rows_of_lists(query: pa.Scalar, columns: Columns) -> InputError:
    return InputError(
        f"query {shown(query)} has several rows of lists; in list-column form a query is one row. "
        f'Make a row of each document first, as in data.explode(["{columns.relevance}", '
        f'"{columns.score}"]), and rows of one query are one query.'
    )


def _first_repeated(ids: pa.ChunkedArray) -> int | None:
    """The first row whose id occurred in an earlier row."""
    codes = array_of(decode(ids).combine_chunks().dictionary_encode().indices)
    new = np.zeros(len(codes), np.bool_)
    new[np.unique(codes, return_index=True)[1]] = True
    return None if new.all() else int(np.argmin(new))


def _row_numbers(rows: int, numbers: int | Int64) -> pa.Array | None:
    if isinstance(numbers, int):
        return column_of(np.arange(numbers, numbers + rows)) if numbers else None
    return column_of(numbers)


def _split_lists(
    name: str, column: pa.ChunkedArray, place: Callable[[int], At]
) -> tuple[Int64, pa.ChunkedArray]:
    """Offsets of a list column, and its values end to end."""
    kind = column.type
    if not is_list(kind):
        raise InputTypeError(
            f'column "{name}" is {kind}; wanted a list for each query, as in the relevance column'
        )
    refuse_nulls(name, column, place, ". Give a query without documents an empty list.")
    ends, values, total = [np.zeros(1, np.int64)], [], 0
    for chunk in column.chunks:
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            offsets = array_of(chunk.offsets)
            values.append(chunk.values.slice(offsets[0], offsets[-1] - offsets[0]))
            if column.num_chunks == 1 and offsets[0] == 0:
                return offsets.astype(np.int64, copy=False), pa.chunked_array(values)
            ends.append(offsets[1:] + (total - int(offsets[0])))
        elif pa.types.is_fixed_size_list(kind):
            values.append(chunk.flatten())
            ends.append(total + kind.list_size * np.arange(1, len(chunk) + 1, dtype=np.int64))
        else:
            values.append(chunk.flatten())
            ends.append(total + np.cumsum(array_of(chunk.sizes), dtype=np.int64))
        total += len(values[-1])
    return np.concatenate(ends, dtype=np.int64), pa.chunked_array(values, kind.value_type)
