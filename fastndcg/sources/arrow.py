"""Arrow tables to `Rankings`, in long form (a row for each document) or as lists (a row for each query)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import combine_flags
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    decode,
    is_list,
    is_number,
    plain,
    with_long_offsets,
)
from fastndcg.common.table import quoted
from fastndcg.errors import Argument, At, ColumnError, InputError, InputTypeError, Step, count_of
from fastndcg.rankings.grouping import Grouped, group_by_query
from fastndcg.rankings.intents import intent_grades
from fastndcg.rankings.oddities import warn_of_oddities
from fastndcg.rankings.rankings import Rankings
from fastndcg.sources.columns import Columns, Roles, find_columns, names_for
from fastndcg.sources.frames import source_of
from fastndcg.sources.values import (
    OR_LAST,
    UNJUDGED,
    doc_ids_in,
    flags_in,
    grades_in,
    ids_in,
    join_arrays,
    numbers_in,
    refuse_nulls,
    scores_in,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


def rankings_from_arrow(data: Any, roles: Roles, *, with_doc_id: bool = False) -> Rankings:
    """Rankings from a table of any kind; only the columns that are needed are touched.

    Parameters
    ----------
    data : pyarrow Table, RecordBatch, RecordBatchReader or Dataset; whatever has `__arrow_c_stream__` or
        `__arrow_c_array__` (Polars, DuckDB, Spark 4); pandas DataFrame; mapping of names to arrays; NumPy
        structured array Long form: a row for each document, the rows of a query in any place. List-column
        form: a row for each query, in whose relevance and score (and doc_id, is_judged) columns stand lists
        of equal lengths.
    roles : Roles
        As the keywords of `read_parquet`.
    with_doc_id : bool
        True reads document ids by a usual name where they are not named.

    Returns
    -------
    Rankings
        Views of the Arrow buffers where a column is one chunk without nulls and its rows stand together by
        query; offsets too, where they are int64 (`large_list`) and begin at 0. Decimals become int64, or
        float64 if they have a fraction.

    Raises
    ------
    ColumnError
        A column that is missing, or a role that several could play.
    InputError
        Nulls in a needed column, lists of a query whose lengths differ, a kept value that differs within a
        query, decimals that float64 cannot tell apart, and all that `Rankings.from_offsets` refuses.
    InputTypeError
        Data that is not a table, a column of a type that has no meaning in its role.

    Examples
    --------
    >>> table = pa.table({"qid": ["a", "b", "a"], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> table = table.append_column("lang", [["en", "de", "en"]])
    >>> rankings = rankings_from_arrow(table, Roles(keep="lang"))
    >>> rankings.offsets, rankings.relevance, rankings.queries["lang"].to_pylist()
    (array([0, 2, 3]), array([1, 2, 0]), ['en', 'de'])
    >>> rankings_from_arrow({"label": [[1, 0], [2]], "score": [[0.5, 0.1], [0.9]]}, Roles()).offsets
    array([0, 2, 3])
    """
    source = source_of(data)
    try:
        columns = find_columns(
            source.names, roles, is_list=lambda name: is_list(source.type_of(name)), with_doc_id=with_doc_id
        )
    except ColumnError as error:
        raise error.within("", source.hint) from None
    return warn_of_oddities(rankings_from_table(source.table(columns.names), columns), names_for(columns))


@dataclass
class Files:
    """The files of a table, one after the other, and document ids that show if two of them hold the same.

    Only ids of queries that have rows in several files are read: ids can be most of a file. Of many such
    queries, those with a million rows are looked at: a file that is there twice doubles all of its queries.
    """

    ends: Sequence[int]  # the number of rows up to the end of each file
    doc_id: str
    read: Callable[[Int64], pa.ChunkedArray]  # the ids of these rows, which ascend
    left: int = 1 << 20  # rows to look at

    def check(self, ids: pa.ChunkedArray, grouped: Grouped, numbers: int | Int64) -> None:
        """Raise `InputError` for a document that a query has twice. `numbers` are those of the rows."""
        last = len(ids) + (numbers if isinstance(numbers, int) else 0)
        inside = [end for end in self.ends if not isinstance(numbers, int) or numbers < end < last]
        if self.left <= 0 or not inside or not len(ids):
            return
        if isinstance(numbers, int) and grouped.codes is None:
            cut = np.asarray(inside) - numbers
            found = np.unique(np.searchsorted(grouped.offsets, cut[~np.isin(cut, grouped.offsets)]) - 1)
        else:
            codes = _codes_of(grouped)
            if isinstance(numbers, int):
                cuts = [0, *(end - numbers for end in inside), len(ids)]
                file = np.repeat(np.arange(len(cuts) - 1, dtype=np.int32), np.diff(cuts))
            else:
                file = np.searchsorted(self.ends, numbers, "right").astype(np.int32)
            found = np.unique(codes[file != file[grouped.first_rows][codes]])
        found = found[: 1 + np.searchsorted(np.cumsum(np.diff(grouped.offsets)[found]), self.left)]
        if not len(found):
            return
        is_wanted = np.zeros(len(grouped.offsets) - 1, np.bool_)
        is_wanted[found] = True
        wanted = np.flatnonzero(is_wanted[_codes_of(grouped)])
        self.left -= len(wanted)
        places = wanted + numbers if isinstance(numbers, int) else numbers[wanted]
        try:
            coded = combine(decode(self.read(np.sort(places))).dictionary_encode())
        except ColumnError:
            return  # not all files have it
        codes, query = array_of(coded.indices, -1), _codes_of(grouped)[wanted[np.argsort(places)]]
        keys = np.sort((query.astype(np.int64) * len(coded.dictionary) + codes)[codes >= 0])
        twice = keys[1:][keys[1:] == keys[:-1]]
        if len(twice):
            of_query, code = divmod(int(twice[0]), len(coded.dictionary))
            raise InputError(
                f"document {quoted(coded.dictionary[code].as_py())} of query "
                f"{shown(ids[int(grouped.first_rows[of_query])])} is there twice. The query has rows in "
                f'several files, and "{self.doc_id}" is taken for the ids of documents. Drop one of the two',
                Step("; if ids are in another column, name it, as in ", Argument("doc_id", "...")),
                ".",
            )


def _codes_of(grouped: Grouped) -> npt.NDArray[Any]:
    """The number of each row's query."""
    if grouped.codes is not None:
        return grouped.codes
    return np.repeat(np.arange(len(grouped.offsets) - 1), np.diff(grouped.offsets))


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
        return _from_lists(table, columns, to_decode, numbers)
    return _from_long(table, columns, to_decode, numbers, grouped, files)


def table_of(data: Any, names: Sequence[str]) -> pa.Table:
    """The named columns of a table of any kind; in one of pandas NaN stays NaN, where pyarrow would take it
    for null.

    Raises as `rankings_from_arrow` does.
    """
    return source_of(data).table(list(names))


def integers_if_written_so(ids: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Ids of a text file as integers, where each is the canonical text of an integer, so that different texts
    stay different.

    >>> [integers_if_written_so(pa.array(["7", text])).type for text in ("10", "007")]
    [DataType(int64), DataType(string)]
    """
    try:
        numbers = ids.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids
    return numbers if numbers.cast(pa.string()).equals(ids.cast(pa.string())) else ids


def grouped_rows(table: pa.Table, columns: Columns, numbers: int | Int64 = 0) -> Grouped:
    """Rows of a table in long form by query, ids as plain values; raises as `rankings_from_table` does for
    ids.

    >>> columns = Columns("qid", "label", "score")
    >>> table = pa.table({"qid": [7, 7, 3], "label": [0, 1, 2], "score": [0.5, 0.1, 0.9]})
    >>> grouped_rows(table, columns).offsets
    array([0, 2, 3])
    """
    grouped = _group(checked_ids(table, columns, numbers))
    return replace(grouped, query_ids=decode(grouped.query_ids))


def plain_table(table: pa.Table) -> pa.Table:
    """The same values without dictionaries, views or other types that not every function of pyarrow knows."""
    columns = [decode(plain(column)) for column in table.columns]
    return pa.table(columns, names=table.column_names)


# ---- long form ----


def _number_of(row: int, numbers: int | Int64) -> int:
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
    refuse_nulls(name, ids, lambda row: At(_number_of(row, numbers)))
    return ids


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
        return At(_number_of(row, numbers), shown(ids[row]))

    relevance, graded = grades_in(columns, table[columns.relevance], place)
    scores = scores_in(columns, table[columns.score], place)
    more = _of_documents(columns, lambda name: (table[name], place), graded, len(table))

    grouped = _group(ids) if grouped is None else grouped
    query_level = _QueryLevel(grouped, ids, numbers)
    kept = {name: query_level.column(name, table[name]) for name in columns.keep}
    kept |= {name: decode(column) for name, column in kept.items() if name in to_decode}
    weight = None
    if columns.weight is not None:
        of_rows = numbers_in(columns.weight, table[columns.weight], "weights", place)
        weight = query_level.column(columns.weight, pa.chunked_array([pa.array(of_rows)])).to_numpy()
    relevance, scores = grouped.in_order(relevance, scores)
    if grouped.codes is not None:
        more = {name: value.take(grouped.rows) for name, value in more.items()}
    is_in_place = grouped.codes is None and isinstance(numbers, int)
    rankings = _check(
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


def _group(ids: pa.ChunkedArray) -> Grouped:
    """`group_by_query` by runs of equal ids: ids of contiguous rows are neither joined nor hashed."""
    if pa.types.is_run_end_encoded(ids.type):
        starts, ids_of_runs = runs_of(ids)
        if not len(starts):
            return group_by_query(plain(ids))
    else:
        changes = _changes(ids, most=len(ids) // 2)
        if changes is None or not len(changes):
            return group_by_query(ids)
        starts, ids_of_runs = changes, _take(ids, changes)
    if is_number(ids_of_runs.type) and ids_of_runs.num_chunks:
        numbers = array_of(ids_of_runs)
        if bool((numbers[1:] > numbers[:-1]).all()):
            return Grouped(_whole(ids_of_runs), np.append(starts, len(ids)))
    ends = np.append(starts[1:], len(ids))
    runs = group_by_query(_whole(decode(ids_of_runs)))
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


def _changes(column: pa.ChunkedArray, most: int) -> Int64 | None:
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


def _take(column: pa.ChunkedArray, rows: Int64) -> pa.ChunkedArray:
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


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(with_long_offsets(column).chunks)


class _QueryLevel:
    """Columns of one value within each query, cut down to a row for each query."""

    def __init__(self, grouped: Grouped, ids: pa.ChunkedArray, numbers: int | Int64) -> None:
        self._ids, self._grouped, self._numbers = ids, grouped, numbers
        self._starts, self._first_rows = grouped.offsets[:-1], grouped.first_rows

    def column(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        column = plain(column)
        if pa.types.is_nested(column.type):
            raise InputTypeError(
                f'column "{name}" is {column.type}; keep and weight take one plain value for each query'
            )
        differing = None if self._surely_constant(column) else self._differing(column)
        if differing is not None:
            first = int(self._first_rows[np.searchsorted(self._starts, differing, side="right") - 1])
            other = differing if self._grouped.rows is None else int(self._grouped.rows[differing])
            rows = _number_of(first, self._numbers), _number_of(other, self._numbers)
            raise InputError(
                f'column "{name}" differs within query {shown(self._ids[other])}: {shown(column[first])}',
                At(rows[0]),
                f", {shown(column[other])}",
                At(rows[1]),
                "; keep and weight take columns with one value for each query",
            )
        return _take(
            column, self._first_rows
        )  # first rows ascend, as queries stand in order of first appearance

    def _surely_constant(self, column: pa.ChunkedArray) -> bool:
        """A quick check that is enough for nearly all columns of grouped rows."""
        most = len(self._starts) + column.num_chunks
        changes = _changes(column, most) if self._grouped.rows is None else None
        if changes is None:
            return False
        within = changes[~np.isin(changes, self._starts, assume_unique=True)]
        return len(within) <= column.num_chunks and all(
            column[row - 1].as_py() == column[row].as_py() for row in within
        )

    def _differing(self, column: pa.ChunkedArray) -> int | None:
        """The place in query order of the first row of the data that differs from its query's row before."""
        encoded = decode(column).dictionary_encode(null_encoding="encode")
        codes = join_arrays([array_of(chunk.indices) for chunk in encoded.chunks], np.int32)
        rows = self._grouped.rows
        if rows is not None:
            codes = codes[rows]
        changes = codes[1:] != codes[:-1]
        changes[self._starts[1:] - 1] = False
        places = np.flatnonzero(changes) + 1
        if not len(places):
            return None
        return int(places[0 if rows is None else np.argmin(rows[places])])


def columns_of_queries(table: pa.Table, query: str, names: Sequence[str], first_row: int = 0) -> pa.Table:
    """Columns of one value within each query: a row for each query, in order of first appearance."""
    ids = ids_in(query, table[query])
    level = _QueryLevel(_group(ids), ids, first_row)
    return pa.table({name: level.column(name, table[name]) for name in names})


# ---- list columns ----


def _from_lists(
    table: pa.Table, columns: Columns, to_decode: Collection[str], numbers: int | Int64
) -> Rankings:
    ids = None if columns.query is None else checked_ids(table, columns, numbers)

    def query_at(row: int) -> str:
        return str(_number_of(row, numbers)) if ids is None else shown(ids[row])

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
    more = _of_documents(columns, values_of, graded, len(grades))
    weight = (
        None
        if columns.weight is None
        else numbers_in(columns.weight, table[columns.weight], "weights", place)
    )
    kept = {name: plain(table[name]) for name in columns.keep}
    kept |= {name: decode(column) for name, column in kept.items() if name in to_decode}
    return _check(
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


# ---- optional columns of documents ----


def _of_documents(
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


def _check(
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
