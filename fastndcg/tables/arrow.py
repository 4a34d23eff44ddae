"""Convert Arrow tables to the fields of `Rankings`: one row per document, or one row of lists per query."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import OR_FIRST, Array, Int64, combine_flags
from fastndcg.common.arrow_types import array_of, column_of, decode, is_list, is_number, is_text, plain
from fastndcg.errors import ColumnError, InputError, InputTypeError
from fastndcg.tables.checks import checked_columns, checked_propensity
from fastndcg.tables.grouping import Grouped, group_rows
from fastndcg.tables.intents import intent_grades
from fastndcg.tables.joins import Role, join, rows_of_first, side_of
from fastndcg.tables.lists import check_one_row, refuse_ids, split_alike, split_lists
from fastndcg.tables.locations import Locator
from fastndcg.tables.roles import Roles
from fastndcg.tables.values import (
    column_name,
    doc_ids_in,
    flags_in,
    grades_in,
    ids_in,
    joined_ids,
    nulls_in,
    numbers_in,
    scores_in,
    values_of_queries,
)

if TYPE_CHECKING:
    from fastndcg.tables.roles import Columns


def fields_of_table(
    table: pa.Table,
    columns: Columns,
    *,
    to_decode: Collection[str] = (),
    numbers: int | Int64 = 0,
    grouped: Grouped | None = None,
) -> dict[str, Any]:
    """Return the fields of `Rankings` from the columns of a table.

    Parameters
    ----------
    to_decode
        Kept columns of dictionaries to return as plain values.
    numbers
        Row numbers in the larger table that this is a part of: one per row, or that of the first row. They
        are used in messages, and as query ids if no column has these.
    grouped
        Rows by query, if they are grouped already.
    """
    names = columns.relevance, columns.score
    kinds = [table.schema.field(name).type for name in names]
    listed = [columns.are_ids or is_list(kind) for kind in kinds]
    if listed[0] != listed[1]:
        raise InputTypeError(
            f'column "{names[listed[1]]}" holds lists and column "{names[listed[0]]}" {kinds[listed[0]]}; '
            "expected both as lists, a row for each query, or both as numbers, a row for each document"
        )
    if not all(listed):
        return _fields_of_rows(table, columns, to_decode, numbers, grouped)
    # lists of strings are ids unless `grades` maps words to grades
    are_text = all(is_list(kind) and is_text(kind.value_type) for kind in kinds)
    if columns.are_ids or (columns.grades is None and are_text):
        return _joined_lists(table, columns, to_decode, numbers)
    if columns.duplicates == "first":
        raise InputError(
            f'duplicates="first" is of rows with doc_id=, and of lists of ids; column "{names[0]}" '
            "holds lists of numbers"
        )
    return _fields_of_lists(table, columns, to_decode, numbers)


def _fields_of_rows(
    table: pa.Table,
    columns: Columns,
    to_decode: Collection[str],
    numbers: int | Int64,
    grouped: Grouped | None,
) -> dict[str, Any]:
    """Return the fields of a table with one row per document."""
    if columns.duplicates == "first":
        table, numbers = _first_rows(table, columns, numbers)
        grouped = None
    ids = checked_ids(table, columns, numbers)
    locator = Locator(None, ids, numbers, columns.labels, ranks=columns.ranks)
    grouped = group_rows(ids) if grouped is None else grouped
    kept = {name: values_of_queries(name, plain(table[name]), ids, grouped, locator) for name in columns.keep}
    weight = None
    if (name := columns.weight) is not None:
        each = numbers_in(column_name(name), plain(table[name]), "weights", locator)
        weights = values_of_queries(name, pa.chunked_array([pa.array(each)]), ids, grouped, locator)
        weight = weights.to_numpy()
    grades = plain(table[columns.relevance])
    relevance, graded = grades_in(columns, grades, locator)
    scores = scores_in(columns, plain(table[columns.score]), locator)
    optional = _of_documents(columns, lambda name: plain(table[name]), graded, len(grades), locator)
    query_ids = decode(grouped.query_ids)
    locator = locator._replace(offsets=grouped.offsets, query_ids=query_ids)
    if grouped.codes is not None:
        optional = {name: value.take(grouped.rows) for name, value in optional.items()}
        relevance, scores = grouped.in_order(relevance, scores)
        locator = locator._replace(grouped=grouped)
    return checked_columns(
        grouped.offsets,
        relevance,
        scores,
        locator,
        query_ids=query_ids,
        query_name=columns.query_name,
        nan=columns.nan,
        asks_for_ids=columns.asks_for_ids,
        or_first=OR_FIRST,
        queries=_kept_table(kept, to_decode),
        weight=weight,
        **optional,
    )


def _kept_table(kept: dict[str, pa.ChunkedArray], to_decode: Collection[str]) -> pa.Table | None:
    columns = {name: decode(each) if name in to_decode else each for name, each in kept.items()}
    return pa.table(columns) if kept else None


def _first_rows(table: pa.Table, columns: Columns, numbers: int | Int64) -> tuple[pa.Table, Int64]:
    """Keep the first row of each document of a query; also returns their row numbers."""
    docs = doc_ids_in(columns.doc_id or "", plain(table[columns.doc_id]), Locator(numbers=numbers))
    rows = rows_of_first(side_of("data", checked_ids(table, columns, numbers), docs))
    return table.take(column_of(rows)), rows + numbers if isinstance(numbers, int) else numbers[rows]


def grouped_rows(table: pa.Table, columns: Columns, numbers: int | Int64 = 0) -> Grouped:
    """Group the rows of a table by query. Query ids are plain values.

    >>> from fastndcg.tables.roles import Columns
    >>> columns = Columns("qid", "label", "score")
    >>> table = pa.table({"qid": [7, 7, 3], "label": [0, 1, 2], "score": [0.5, 0.1, 0.9]})
    >>> grouped_rows(table, columns).offsets
    array([0, 2, 3])
    """
    grouped = group_rows(checked_ids(table, columns, numbers))
    return replace(grouped, query_ids=decode(grouped.query_ids))


def plain_table(table: pa.Table) -> pa.Table:
    """Replace dictionaries, views and other types that some functions of pyarrow do not support."""
    columns = [decode(plain(column)) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def copied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Copy a column, so that it does not keep the memory of a larger one."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):  # small enough to keep
        return column
    if is_number(kind) and not column.null_count:  # `take` needed half a millisecond beside other threads
        return pa.chunked_array([column_of(array_of(column).copy(), kind)])
    return column.take(column_of(np.arange(len(column))))


def checked_ids(table: pa.Table, columns: Columns, numbers: int | Int64 = 0) -> pa.ChunkedArray:
    """Return the query id of each row. Raises for missing columns, nulls, and values that are not ids."""
    name = columns.query
    if name is None:
        raise ColumnError(
            'a row for each document needs the query it belongs to; name its column, as in query="..."'
        )
    locator = Locator(numbers=numbers)
    if columns.keys:
        return joined_ids({key: table[key] for key in columns.keys}, locator)
    ids = ids_in(name, table[name])
    if ids.null_count:
        raise nulls_in(column_name(name), ids, locator)
    return ids


def _of_documents(
    columns: Columns,
    values_of: Callable[[str], pa.ChunkedArray],
    graded: Array | None,
    documents: int,
    locator: Locator,
) -> dict[str, Any]:
    """Return optional columns as arguments of `checked_columns`; documents not in `graded` are unjudged."""
    optional: dict[str, Any] = {}
    if (name := columns.is_judged) is not None:
        graded = combine_flags(flags_in(name, values_of(name), locator), graded)
    if graded is not None:
        optional["is_judged"] = graded
    if (name := columns.doc_id) is not None:
        optional["doc_ids"] = doc_ids_in(name, values_of(name), locator)
    if (name := columns.intents) is not None:
        column = values_of(name)
        if not is_list(column.type):
            raise InputTypeError(
                f'column "{name}" is {column.type}; expected a list for each document: '
                "its grade for each intent"
            )
        optional["intents"] = intent_grades(f'column "{name}"', column, documents)
    if (name := columns.propensity) is not None:
        values = numbers_in(column_name(name), values_of(name), "probabilities", locator)
        optional["propensity"] = checked_propensity(f'column "{name}"', values, locator)
    return optional


# ---- lists ----


def _fields_of_lists(
    table: pa.Table, columns: Columns, to_decode: Collection[str], numbers: int | Int64
) -> dict[str, Any]:
    """Return the fields of a table with one row per query, which has lists of grades and scores."""
    names = columns.relevance, columns.score
    rows, of_queries = _queries_of_lists(table, columns, to_decode, numbers)
    offsets, grades = split_lists(names[0], table[names[0]], rows)
    locator = rows._replace(offsets=offsets, in_lists=True, names=columns.labels, ranks=columns.ranks)
    as_ids = f'relevant_ids="{names[0]}", retrieved_ids="{names[1]}"'

    def values_of(name: str) -> pa.ChunkedArray:
        or_ids = f", or, for ids of documents, {as_ids}"
        return split_alike(names[0], offsets, name, table[name], rows, or_ids)

    relevance, graded = grades_in(columns, grades, locator)
    scores = scores_in(columns, values_of(names[1]), locator)
    optional = _of_documents(columns, values_of, graded, len(grades), locator)
    if not columns.named:
        what = f'columns "{names[0]}" and "{names[1]}" hold'
        as_grades = f'relevance="{names[0]}", score="{names[1]}"'
        refuse_ids(offsets, relevance, scores, what, as_ids, as_grades)
    return checked_columns(
        offsets,
        relevance,
        scores,
        locator,
        query_ids=rows.query_ids,
        query_name=columns.query_name,
        nan=columns.nan,
        asks_for_ids=columns.asks_for_ids,
        **of_queries,
        **optional,
    )


def _queries_of_lists(
    table: pa.Table, columns: Columns, to_decode: Collection[str], numbers: int | Int64
) -> tuple[Locator, dict[str, Any]]:
    """Return a locator of rows, each of which is a query, and the kept columns and weights."""
    query_ids: pa.Array | pa.ChunkedArray | None = None  # row numbers from 0
    if columns.query is not None:
        query_ids = decode(plain(checked_ids(table, columns, numbers)))
        check_one_row(query_ids, [columns.relevance, columns.score])
    elif not isinstance(numbers, int):
        query_ids = column_of(numbers)
    elif numbers:
        query_ids = column_of(np.arange(numbers, numbers + len(table)))
    rows, weight = Locator(np.arange(len(table) + 1), query_ids, None), None
    if (name := columns.weight) is not None:
        weight = numbers_in(column_name(name), plain(table[name]), "weights", rows)
    kept = _kept_table({name: plain(table[name]) for name in columns.keep}, to_decode)
    return rows, {"queries": kept, "weight": weight}


def _joined_lists(
    table: pa.Table, columns: Columns, to_decode: Collection[str], numbers: int | Int64
) -> dict[str, Any]:
    """Return the fields of lists of relevant ids and of retrieved ids, best first."""
    from fastndcg.tables.shapes import (
        SideColumns,
        side_of_table,
    )  # imports pyarrow.compute, which takes 0.08 s

    rows, of_queries = _queries_of_lists(table, columns, to_decode, numbers)
    ids = column_of(np.arange(len(table))) if rows.query_ids is None else rows.query_ids
    roles = Roles(duplicates=columns.duplicates)
    pairs: list[tuple[str, Role]] = [(columns.relevance, "relevance"), (columns.score, "score")]
    judged, run = (
        side_of_table(
            column_name(name),
            pa.table([ids, table[name]], ["query", name]),
            SideColumns("query", name, None, None, [], roles, is_text=not is_list(table[name].type)),
            role,
            None,
        )
        for name, role in pairs
    )
    judged = judged._replace(
        query_name=columns.query_name, kept=of_queries["queries"], weight=of_queries["weight"]
    )
    return join(judged, run, "zero", "input", columns.nan)
