"""Arrow tables to `Rankings`, in long form (a row for each document) or as lists (a row for each query)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import decode, is_list, plain
from fastndcg.errors import At, InputTypeError
from fastndcg.rankings.grouping import group_rows
from fastndcg.sources.documents import checked, checked_ids, number_of, of_documents
from fastndcg.sources.list_columns import from_lists
from fastndcg.sources.query_columns import QueryColumns
from fastndcg.sources.values import grades_in, numbers_in, scores_in, shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from fastndcg.rankings.grouping import Grouped
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.columns import Columns
    from fastndcg.sources.doubled import Files

Int64 = npt.NDArray[np.int64]


def rankings_from_table(
    table: pa.Table,
    columns: Columns,
    *,
    to_decode: Collection[str] = (),
    numbers: int | Int64 = 0,
    grouped: Grouped | None = None,
    files: Files | None = None,
) -> Rankings:
    """Rankings from columns of a table; `to_decode` names kept dictionaries that are to come out as plain
    values.

    Where the table is a part of something larger, `numbers` has the number that each of its rows has there,
    for messages and for ids that are row numbers: an array, or that of the first row. `grouped` spares
    grouping rows a second time. `files` are checked for doubled documents.

    Raises as `rankings_from_arrow` does.
    """
    listed = [name for name in (columns.relevance, columns.score) if is_list(table.schema.field(name).type)]
    if len(listed) == 1:
        other = columns.score if listed[0] == columns.relevance else columns.relevance
        raise InputTypeError(
            f'column "{listed[0]}" holds lists and column "{other}" {table.schema.field(other).type}; '
            "wanted both as lists, a row for each query, or both as numbers, a row for each document"
        )
    if listed:
        return from_lists(table, columns, to_decode, numbers)
    return _from_long(table, columns, to_decode, numbers, grouped, files)


def grouped_rows(table: pa.Table, columns: Columns, numbers: int | Int64 = 0) -> Grouped:
    """Rows of a table in long form by query, ids as plain values; raises as `rankings_from_table` does for
    ids.

    >>> from fastndcg.sources.columns import Columns
    >>> columns = Columns("qid", "label", "score")
    >>> table = pa.table({"qid": [7, 7, 3], "label": [0, 1, 2], "score": [0.5, 0.1, 0.9]})
    >>> grouped_rows(table, columns).offsets
    array([0, 2, 3])
    """
    grouped = group_rows(checked_ids(table, columns, numbers))
    return replace(grouped, query_ids=decode(grouped.query_ids))


def plain_table(table: pa.Table) -> pa.Table:
    """The same values without dictionaries, views or other types that not every function of pyarrow knows."""
    columns = [decode(plain(column)) for column in table.columns]
    return pa.table(columns, names=table.column_names)


# ---- long form ----


def _from_long(
    table: pa.Table,
    columns: Columns,
    to_decode: Collection[str],
    numbers: int | Int64,
    grouped: Grouped | None,
    files: Files | None,
) -> Rankings:
    ids = checked_ids(table, columns, numbers)

    def place(row: int) -> At:
        return At(number_of(row, numbers), shown(ids[row]))

    relevance, graded = grades_in(columns, table[columns.relevance], place)
    scores = scores_in(columns, table[columns.score], place)
    more = of_documents(columns, lambda name: (table[name], place), graded, len(table))

    grouped = group_rows(ids) if grouped is None else grouped
    kept, weight = {}, None
    if columns.keep or columns.weight is not None:
        query_level = QueryColumns(grouped, ids, numbers)
        kept = {name: query_level.column(name, table[name]) for name in columns.keep}
        kept |= {name: decode(column) for name, column in kept.items() if name in to_decode}
    if columns.weight is not None:
        of_rows = numbers_in(columns.weight, table[columns.weight], "weights", place)
        weight = query_level.column(columns.weight, pa.chunked_array([pa.array(of_rows)])).to_numpy()
    relevance, scores = grouped.in_order(relevance, scores)
    if grouped.codes is not None:
        more = {name: value.take(grouped.rows) for name, value in more.items()}
    is_in_place = grouped.codes is None and isinstance(numbers, int)
    rankings = checked(
        grouped.offsets,
        relevance,
        scores,
        columns,
        place,
        grouped,
        query_ids=decode(grouped.query_ids),
        weight=weight,
        queries=pa.table(kept) if kept else None,
        first_row=numbers if is_in_place else None,
        **more,
    )
    if files is not None:
        files.check(ids, grouped, numbers)
    return rankings
