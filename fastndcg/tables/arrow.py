"""Arrow tables to the fields of `Rankings`: a row for each document, or lists in a row for each query."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import OR_FIRST, Array, Int64, codes_from, combine_flags, offsets_from
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    decode,
    is_list,
    is_number,
    is_text,
    plain,
)
from fastndcg.errors import ColumnError, InputError, InputTypeError, count_of
from fastndcg.tables.checks import checked_columns, checked_propensity
from fastndcg.tables.grouping import Grouped, changes_of, group_rows, take
from fastndcg.tables.intents import intent_grades
from fastndcg.tables.joins import join, twin_in
from fastndcg.tables.locations import Blame, at_row, shown
from fastndcg.tables.sides import Side, first_of_each, rows_of_first, side_of
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
)

if TYPE_CHECKING:
    from fastndcg.tables.roles import Columns
# what is known of rows, kept columns of queries, and what `checked_columns` takes
Read = tuple[Blame, dict[str, pa.ChunkedArray], dict[str, Any]]


def fields_of_table(
    table: pa.Table,
    columns: Columns,
    *,
    to_decode: Collection[str] = (),
    numbers: int | Int64 = 0,
    grouped: Grouped | None = None,
) -> dict[str, Any]:
    """The fields of `Rankings` from columns of a table; `to_decode` names kept dictionaries that come out as
    plain values.

    Where the table is a part of something larger, `numbers` has the number that each of its rows has there,
    for messages and for ids that are row numbers: an array, or that of the first row. `grouped` spares
    grouping rows a second time.
    """
    names = columns.relevance, columns.score
    if columns.are_ids:
        return _from_id_lists(table, columns, numbers, to_decode)
    listed = [name for name in names if is_list(table.schema.field(name).type)]
    if len(listed) == 1:
        other = columns.score if listed[0] == columns.relevance else columns.relevance
        raise InputTypeError(
            f'column "{listed[0]}" holds lists and column "{other}" {table.schema.field(other).type}; '
            "expected both as lists, a row for each query, or both as numbers, a row for each document"
        )
    if listed and _are_texts(table, columns):
        return _from_id_lists(table, columns, numbers, to_decode)
    if columns.duplicates == "first":
        if listed:
            raise InputError(
                f'duplicates="first" is of rows with doc_id=, and of lists of ids; column "{listed[0]}" '
                "holds lists of numbers"
            )
        table, numbers = _first_rows(table, columns, numbers)
        grouped = None
    if listed:
        blame, kept, fields = _from_lists(table, columns, numbers)
        if not columns.named:
            refuse_ids(fields["offsets"], fields["relevance"], fields["scores"], *_id_words(columns))
    else:
        ids = checked_ids(table, columns, numbers)
        grouped = group_rows(ids) if grouped is None else grouped
        blame, kept, fields = _from_long(table, columns, ids, grouped, numbers)
    kept |= {name: decode(column) for name, column in kept.items() if name in to_decode}
    return checked_columns(
        blame=blame,
        nan=columns.nan,
        query_name="query_id" if columns.query is None else columns.query,
        queries=pa.table(kept) if kept else None,
        asks_for_ids=columns.asks_for_ids,
        or_first="" if listed else OR_FIRST,
        **fields,
    )


def _first_rows(table: pa.Table, columns: Columns, numbers: int | Int64) -> tuple[pa.Table, Int64]:
    """The first row of each document of a query, and the numbers of these rows."""
    docs = doc_ids_in(columns.doc_id or "", plain(table[columns.doc_id]), Blame(numbers=numbers))
    side = side_of("data", checked_ids(table, columns, numbers), docs, np.empty(0), str)
    rows = rows_of_first(side)
    return table.take(column_of(rows)), rows + numbers if isinstance(numbers, int) else numbers[rows]


def grouped_rows(table: pa.Table, columns: Columns, numbers: int | Int64 = 0) -> Grouped:
    """Rows of a table in long form by query, ids as plain values; raises as `fields_of_table` does for
    ids.

    >>> from fastndcg.tables.roles import Columns
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


def copied(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in memory of their own."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):  # so small that it may be kept whole
        return column
    if is_number(kind) and not column.null_count:  # to take rows took half a millisecond beside other threads
        return pa.chunked_array([column_of(array_of(column).copy(), kind)])
    return column.take(column_of(np.arange(len(column))))


def checked_ids(table: pa.Table, columns: Columns, numbers: int | Int64 = 0) -> pa.ChunkedArray:
    """Query ids of a table's rows; raises as `fields_of_table` does."""
    name = columns.query
    if name is None:
        raise ColumnError(
            'a row for each document needs the query it belongs to; name its column, as in query="..."'
        )
    blame = Blame(numbers=numbers)
    if columns.keys:
        return joined_ids({key: table[key] for key in columns.keys}, blame)
    ids = ids_in(name, table[name])
    if ids.null_count:
        raise nulls_in(column_name(name), ids, blame)
    return ids


# ---- long form ----


def _from_long(
    table: pa.Table, columns: Columns, ids: pa.ChunkedArray, grouped: Grouped, numbers: int | Int64
) -> Read:
    blame = Blame(query_ids=ids, numbers=numbers, names=columns.labels, ranks=columns.ranks)
    relevance, graded = grades_in(columns, plain(table[columns.relevance]), blame)
    scores = scores_in(columns, plain(table[columns.score]), blame)
    more = _of_documents(columns, lambda name: plain(table[name]), graded, len(table), blame)
    kept = {name: _of_queries(name, plain(table[name]), ids, grouped, blame) for name in columns.keep}
    weight = None
    if columns.weight is not None:
        weights = numbers_in(column_name(columns.weight), plain(table[columns.weight]), "weights", blame)
        column = pa.chunked_array([pa.array(weights)])
        weight = _of_queries(columns.weight, column, ids, grouped, blame).to_numpy()
    if grouped.codes is not None:
        more = {name: value.take(grouped.rows) for name, value in more.items()}
        relevance, scores = grouped.in_order(relevance, scores)
    query_ids = decode(grouped.query_ids)
    reordered = grouped if grouped.codes is not None else None
    blame = blame._replace(offsets=grouped.offsets, query_ids=query_ids, grouped=reordered)
    fields = {"offsets": grouped.offsets, "relevance": relevance, "scores": scores, "query_ids": query_ids}
    return blame, kept, fields | more | {"weight": weight}


def _of_documents(
    columns: Columns,
    values_of: Callable[[str], pa.ChunkedArray],
    graded: Array | None,
    documents: int,
    blame: Blame,
) -> dict[str, Any]:
    """Optional columns, as `Rankings.from_offsets` takes them; what is not `graded` is also unjudged."""
    found: dict[str, Any] = {}
    if (name := columns.is_judged) is not None:
        graded = combine_flags(flags_in(name, values_of(name), blame), graded)
    if graded is not None:
        found["is_judged"] = graded
    if (name := columns.doc_id) is not None:
        found["doc_ids"] = doc_ids_in(name, values_of(name), blame)
    if (name := columns.intents) is not None:
        column = values_of(name)
        if not is_list(column.type):
            raise InputTypeError(
                f'column "{name}" is {column.type}; expected a list for each document: '
                "its grade for each intent"
            )
        found["intents"] = intent_grades(f'column "{name}"', column, documents)
    if (name := columns.propensity) is not None:
        values = numbers_in(column_name(name), values_of(name), "probabilities", blame)
        found["propensity"] = checked_propensity(f'column "{name}"', values, blame)
    return found


def _of_queries(
    name: str, column: pa.ChunkedArray, ids: pa.ChunkedArray, grouped: Grouped, blame: Blame
) -> pa.ChunkedArray:
    """Reduce a column that is constant within each query to one row per query."""
    rows, starts = grouped.rows, grouped.offsets[:-1]
    if pa.types.is_nested(column.type):
        raise InputTypeError(
            f'column "{name}" is {column.type}; keep and weight take one plain value for each query'
        )
    # a quick check that is enough for nearly all columns of grouped rows
    changes = changes_of(column, len(starts) + column.num_chunks) if rows is None else None
    if changes is not None:
        changes = changes[~np.isin(changes, starts, assume_unique=True)]
        if len(changes) <= column.num_chunks and all(
            column[row - 1].as_py() == column[row].as_py() for row in changes
        ):
            changes = changes[:0]
    if changes is None or len(changes):  # places in query order of rows that differ from the one before
        encoded = decode(column).dictionary_encode(null_encoding="encode")
        codes = np.concatenate([array_of(each.indices) for each in encoded.chunks] or [np.empty(0, int)])
        codes = codes if rows is None else codes[rows]
        differs = codes[1:] != codes[:-1]
        differs[starts[1:] - 1] = False
        changes = np.flatnonzero(differs) + 1
    if len(changes):
        place = int(changes[0 if rows is None else np.argmin(rows[changes])])
        first = int(grouped.first_rows[np.searchsorted(starts, place, side="right") - 1])
        other = place if rows is None else int(rows[place])
        raise InputError(
            f'column "{name}" differs within query {shown(ids[other])}: {shown(column[first])}'
            f"{at_row(blame.number(first))}, {shown(column[other])}{at_row(blame.number(other))}; "
            "keep and weight take columns with one value for each query",
        )
    return take(column, grouped.first_rows)  # which ascend, as queries stand in order of first appearance


def kept_by_query(table: pa.Table, query: str, names: Sequence[str], numbers: int | Int64 = 0) -> pa.Table:
    """Columns of one value within each query: a row for each query, in order of first appearance."""
    ids, blame = ids_in(query, table[query]), Blame(numbers=numbers)
    grouped = group_rows(ids)
    return pa.table({name: _of_queries(name, plain(table[name]), ids, grouped, blame) for name in names})


# ---- lists ----


def _are_texts(table: pa.Table, columns: Columns) -> bool:
    """Whether both columns hold lists of text, which are ids unless `grades` has the grade of each word."""
    kinds = [table.schema.field(name).type.value_type for name in (columns.relevance, columns.score)]
    return columns.grades is None and all(map(is_text, kinds))


def _id_words(columns: Columns) -> tuple[str, str, str]:
    """How a refusal calls two columns of lists, and how they are given as ids and as grades."""
    relevance, score = columns.relevance, columns.score
    return (
        f'columns "{relevance}" and "{score}" hold',
        f'relevant_ids="{relevance}", retrieved_ids="{score}"',
        f'relevance="{relevance}", score="{score}"',
    )


def refuse_ids(
    offsets: Int64, relevance: Array, scores: Array, what: str, as_ids: str, as_grades: str
) -> None:
    """Raise where lists of grades and scores could as well be the ids of relevant and of retrieved documents:
    whole numbers, of which not all relevant ones are 0 and 1, no number twice in a list, and some number in
    both lists of a query, or large ones.

    >>> refuse_ids(np.array([0, 3]), np.array([3, 0, 2]), np.array([9, 8, 7]), "", "", "")
    """
    if relevance.dtype.kind not in "iu" or scores.dtype.kind not in "iu" or not len(relevance):
        return
    if relevance.max() <= 1:
        return
    n = len(offsets) - 1
    query = codes_from(offsets)
    both = [each.astype(np.int64, copy=False) for each in (relevance, scores)]
    for rows in slice(_HEAD), slice(None):  # grades repeat in the first lists, as a rule
        if any(twin_in(query[rows], column_of(each[rows]), n) is not None for each in both):
            return
    of_both = np.tile(query, 2), column_of(np.concatenate(both))
    if twin_in(*of_both, n) is not None or relevance.max() > _GREATEST_GRADE:
        raise InputError(
            f"{what} lists of whole numbers that could be ids of documents, or grades and scores. For ids "
            f"give {as_ids}; for grades and scores give {as_grades}."
        )


_HEAD = 4096
_GREATEST_GRADE = 100  # above it a whole number that is in no list twice is rather an id


def _queries_of_lists(
    table: pa.Table, columns: Columns, numbers: int | Int64
) -> pa.Array | pa.ChunkedArray | None:
    """The id of each row, of which no two may be equal; None for row numbers from 0."""
    if columns.query is not None:
        query_ids = decode(plain(checked_ids(table, columns, numbers)))
        check_one_row(query_ids, [columns.relevance, columns.score])
    elif isinstance(numbers, int):
        query_ids = column_of(np.arange(numbers, numbers + len(table))) if numbers else None
    else:
        query_ids = column_of(numbers)
    return query_ids


def check_one_row(query_ids: pa.ChunkedArray, names: Sequence[str]) -> None:
    """Raise for a query that has several rows; `names` are the columns that hold lists."""
    codes = array_of(combine(decode(query_ids)).dictionary_encode().indices)
    again = codes != np.arange(len(codes))  # codes count queries as they appear
    if again.any():
        raise several_rows_of_lists(query_ids[int(np.argmax(again))], names)


def falling_ranks(offsets: Int64) -> Int64:
    """Scores of documents that stand best first: the number of those of the query from each on.

    >>> falling_ranks(np.array([0, 2, 2, 3]))
    array([2, 1, 1])
    """
    return np.repeat(offsets[1:], np.diff(offsets)) - np.arange(offsets[-1])


def ids_in_text(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A list of the ids of each text: separated by blanks, or a list as JSON or Python writes it. A null
    holds none.

    >>> ids_in_text("prediction", pa.chunked_array([["10 11", "", None, "['12']"]])).to_pylist()
    [['10', '11'], [], [], ['12']]
    """
    import pyarrow.compute as pc

    texts = decode(column)
    if pa.types.is_null(texts.type) or pa.types.is_integer(texts.type):  # one id in each
        texts = texts.cast(pa.string())
    if not is_text(texts.type):
        raise InputTypeError(
            f'column "{name}" is {column.type}; expected lists of ids, or text of ids separated by blanks'
        )
    texts = pc.utf8_trim_whitespace(pc.fill_null(combine(texts), ""))
    are_lists = pc.starts_with(texts, "[")
    ids = texts.filter(pc.invert(are_lists))
    has_blanks = pc.any(pc.match_substring_regex(ids, r"\s")).as_py()
    unclear = ids.filter(pc.match_substring_regex(ids, r"^[{(]|[,;]\s" if has_blanks else r"^[{(]|[,;|]"))
    if len(unclear):
        raise InputError(
            f'column "{name}" holds {shown(unclear[0])}, which could be one id or several. Separate ids by '
            'blanks, or write lists, as in ["a", "b"]'
        )
    split = pc.utf8_split_whitespace(texts)
    if pc.any(are_lists).as_py():
        rows = zip(texts, split, array_of(are_lists).tolist(), strict=True)
        split = pa.array(
            [_written_list(name, text) if is_one else ids.as_py() for text, ids, is_one in rows],
            pa.list_(pa.string()),
        )
    sizes = np.where(array_of(pc.equal(texts, "")), 0, array_of(pc.list_value_length(split)))
    flat = split.flatten()
    lists = pa.LargeListArray.from_arrays(offsets_from(sizes), flat.filter(pc.not_equal(flat, "")))
    return pa.chunked_array([lists])


def _written_list(name: str, text: pa.Scalar) -> list[str]:
    """The ids of a list as JSON or Python writes it."""
    import ast
    import json

    written = text.as_py()
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        try:  # Python joins strings that no comma separates, as NumPy writes them
            found = None if re.search(r"""['"]\s+['"]""", written) else ast.literal_eval(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            found = None
    if isinstance(found, list) and all(type(each) in (int, str) for each in found):
        return list(map(str, found))
    raise InputError(
        f'column "{name}" holds {shown(text)}, which is not a list of ids; '
        'expected ids separated by blanks, or lists such as ["a", "b"]'
    )


def _from_id_lists(
    table: pa.Table, columns: Columns, numbers: int | Int64, to_decode: Collection[str]
) -> dict[str, Any]:
    """Fields from the ids of the relevant documents of each query, and of the retrieved ones, best first."""
    query_ids = _queries_of_lists(table, columns, numbers)
    of_rows = Blame(np.arange(len(table) + 1), query_ids, None)
    queries = column_of(np.arange(len(table))) if query_ids is None else combine(query_ids)
    kept = {name: plain(table[name]) for name in columns.keep}
    kept = {name: decode(column) if name in to_decode else column for name, column in kept.items()}
    weight = None
    if (name := columns.weight) is not None:
        weight = numbers_in(column_name(name), plain(table[name]), "weights", of_rows)
    sides = []
    for name in (columns.relevance, columns.score):
        lists = table[name] if is_list(table[name].type) else ids_in_text(name, table[name])
        offsets, docs = split_lists(name, lists, of_rows)
        blame = of_rows._replace(offsets=offsets, in_lists=True)
        docs = doc_ids_in(name, docs, blame)
        if pa.types.is_floating(docs.type) or pa.types.is_nested(docs.type):
            raise InputTypeError(
                f'column "{name}" holds lists of {docs.type}; '
                "expected lists of whole numbers or strings, the ids of documents"
            )
        codes = codes_from(offsets)
        place = partial(_place, queries, codes)
        side = Side(f'column "{name}"', queries, codes, docs, falling_ranks(offsets), place)
        sides.append(first_of_each(side) if columns.duplicates == "first" else side)
    judged = sides[0]._replace(
        values=np.ones(len(sides[0].codes), np.int64),
        query_name="query_id" if columns.query is None else columns.query,
        kept=pa.table(kept) if kept else None,
        weight=weight,
    )
    return join(judged, sides[1], "zero", "input", columns.nan)


def _place(queries: pa.Array, codes: Int64, row: int) -> str:
    return f"query {shown(queries[int(codes[row])])}"


def _from_lists(table: pa.Table, columns: Columns, numbers: int | Int64) -> Read:
    query_ids = _queries_of_lists(table, columns, numbers)
    of_rows = Blame(np.arange(len(table) + 1), query_ids, None)
    offsets, grades = split_lists(columns.relevance, table[columns.relevance], of_rows)
    blame = of_rows._replace(offsets=offsets, in_lists=True, names=columns.labels, ranks=columns.ranks)

    def values_of(name: str) -> pa.ChunkedArray:
        own_offsets, values = split_lists(name, table[name], of_rows)
        if not np.array_equal(own_offsets, offsets):
            row = int(np.argmax(np.diff(own_offsets) != np.diff(offsets)))
            raise InputError(
                f"query {of_rows.name_of(row)} has "
                f"{count_of(offsets[row + 1] - offsets[row], 'value')} in column "
                f'"{columns.relevance}" and {own_offsets[row + 1] - own_offsets[row]} in column "{name}"; '
                f"expected lists of equal lengths, or, for ids of documents, {_id_words(columns)[1]}"
            )
        return values

    relevance, graded = grades_in(columns, grades, blame)
    scores = scores_in(columns, values_of(columns.score), blame)
    more = _of_documents(columns, values_of, graded, len(grades), blame)
    if (name := columns.weight) is not None:
        more["weight"] = numbers_in(column_name(name), plain(table[name]), "weights", of_rows)
    kept = {name: plain(table[name]) for name in columns.keep}
    fields = {"offsets": offsets, "relevance": relevance, "scores": scores, "query_ids": query_ids}
    return blame, kept, fields | more


def several_rows_of_lists(query: pa.Scalar, names: Sequence[str]) -> InputError:
    listed = ", ".join(f'"{name}"' for name in names)
    return InputError(
        f"query {shown(query)} has several rows of lists; in list-column form a query is one row. "
        f"Make a row of each document first, as in data.explode([{listed}]), "
        "and rows of one query are one query."
    )


def split_lists(name: str, column: pa.ChunkedArray, blame: Blame) -> tuple[Int64, pa.ChunkedArray]:
    """Offsets of a list column, and its values end to end."""
    kind = column.type
    if not is_list(kind):
        raise InputTypeError(
            f'column "{name}" is {kind}; expected a list for each query, as in the relevance column'
        )
    if column.null_count:
        raise nulls_in(column_name(name), column, blame, ". Give a query without documents an empty list.")
    import pyarrow.compute as pc

    values = plain(pa.chunked_array([chunk.flatten() for chunk in column.chunks], kind.value_type))
    if pa.types.is_large_list(kind) and column.num_chunks == 1:
        offsets = array_of(column.chunk(0).offsets)
        if offsets[0] == 0:  # not copied
            return offsets, values
    return offsets_from(array_of(pc.list_value_length(column))), values
