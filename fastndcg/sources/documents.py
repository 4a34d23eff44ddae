"""Ids of queries and optional columns of documents, and the checks of `Rankings` in words of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import combine_flags
from fastndcg.common.arrow_types import is_list
from fastndcg.errors import Argument, At, ColumnError, InputError, InputTypeError, count_of
from fastndcg.rankings.intents import intent_grades
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.values import OR_LAST, UNJUDGED, doc_ids_in, flags_in, ids_in, numbers_in, refuse_nulls

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from fastndcg.rankings.grouping import Grouped
    from fastndcg.sources.columns import Columns

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


def number_of(row: int, numbers: int | Int64) -> int:
    return row + numbers if isinstance(numbers, int) else int(numbers[row])


def checked_ids(table: pa.Table, columns: Columns, numbers: int | Int64 = 0) -> pa.ChunkedArray:
    """Query ids of a table's rows; raises as `rankings_from_table` does."""
    name = columns.query
    if name is None:
        raise ColumnError(
            "a row for each document needs the query it belongs to; name its column, as in ",
            Argument("query", "..."),
        )
    ids = ids_in(name, table[name])
    refuse_nulls(name, ids, lambda row: At(number_of(row, numbers)))
    return ids


def of_documents(
    columns: Columns,
    values_of: Callable[[str], tuple[pa.ChunkedArray, Callable[[int], At]]],
    graded: Array | None,
    documents: int,
) -> dict[str, Any]:
    """Optional columns, as `Rankings.from_offsets` takes them; what is not `graded` is also unjudged."""
    found: dict[str, Any] = {}
    flags = None if columns.is_judged is None else flags_in(columns.is_judged, *values_of(columns.is_judged))
    if (judged := combine_flags(flags, graded)) is not None:
        found["is_judged"] = judged
    if columns.doc_id is not None:
        found["doc_ids"] = doc_ids_in(columns.doc_id, *values_of(columns.doc_id))
    if columns.intents is not None:
        column, _ = values_of(columns.intents)
        if not is_list(column.type):
            raise InputTypeError(
                f'column "{columns.intents}" is {column.type}; wanted a list for each document: '
                "its grade for each intent"
            )
        found["intents"] = intent_grades(f'column "{columns.intents}"', column, documents)
    if columns.propensity is not None:
        column, place = values_of(columns.propensity)
        values = numbers_in(columns.propensity, column, "probabilities", place)
        bad = ~((values > 0) & (values <= 1))
        if bad.any():
            first = int(np.argmax(bad))
            raise InputError(
                f'column "{columns.propensity}" has '
                f"{count_of(bad.sum(), 'value', 'not above 0 and up to 1')}; "
                f"the first is {values[first]}",
                place(first),
                ". A propensity is the probability that the document was seen: drop those rows, "
                "or give what was hardly ever seen a small one.",
            )
        found["propensity"] = values
    return found


# ---- checks and messages ----


def checked(
    offsets: Int64,
    relevance: Array,
    scores: Array,
    columns: Columns,
    place: Callable[[int], At],
    grouped: Grouped | None = None,
    **more: Any,
) -> Rankings:
    name = "query_id" if columns.query is None else columns.query
    try:
        return Rankings._of_columns(offsets, relevance, scores, nan=columns.nan, query_name=name, **more)
    except InputError as error:
        _name_the_column(error, relevance, scores, columns, place, grouped)


def _name_the_column(
    error: InputError,
    relevance: Array,
    scores: Array,
    columns: Columns,
    place: Callable[[int], At],
    grouped: Grouped | None,
) -> NoReturn:
    """Raise the error of `Rankings` again, with the names of column and row that the caller knows.

    `grouped` tells which rows of the data the values are of; without it, they are in the order of the data.
    """
    for name, values, steps in ((columns.score, scores, OR_LAST), (columns.relevance, relevance, UNJUDGED)):
        if values.dtype.kind != "f" or (values is scores and columns.nan != "refuse"):
            continue
        bad = np.isnan(values) if values is scores else ~np.isfinite(values)
        if bad.any():
            only_nan = bool(np.isnan(values[bad]).all())
            kind = "NaN value" if only_nan else "infinite or NaN value"
            rows = None if grouped is None else grouped.rows
            first = int(np.argmax(bad) if rows is None else rows[bad].min())
            raise InputError(
                f'column "{name}" has {count_of(bad.sum(), kind)}',
                place(first)._replace(first=True),
                *(steps if only_nan else (". Drop those rows.",)),
            ) from None
    raise error
