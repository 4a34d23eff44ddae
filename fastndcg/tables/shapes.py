"""Convert judgments and runs of any shape to a side of a join.

dict, JSON -> `side_of_queries`; table, records, tuples -> `find_columns`, `side_of_table`
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrays import Array, Int64, offsets_from
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    has_offsets,
    is_list,
    is_number,
    is_text,
    plain,
    whole_ids,
    with_long_offsets,
)
from fastndcg.errors import ColumnError, InputError, InputTypeError, count_of
from fastndcg.tables.frames import COUNTING, OF_ARRAYS, PLAIN, columns_of_rows, frame_of, is_table
from fastndcg.tables.grouping import group_rows
from fastndcg.tables.joins import Role, Side, naming, side_of, with_values
from fastndcg.tables.lists import check_one_row, falling_ranks, ids_in_text, split_alike, split_lists
from fastndcg.tables.locations import BY_ROW, Locator
from fastndcg.tables.roles import (
    USUAL_NAMES,
    Roles,
    check_column,
    find_column,
    find_order,
    fitting,
    named_columns,
    normalised,
    other_ranks,
)
from fastndcg.tables.values import (
    WORDS,
    column_name,
    doc_ids_in,
    ids_in,
    integers_if_written_so,
    nulls_in,
    numbers_in,
    values_of_queries,
)

_MOST_COLUMNS = 1000  # of a dict of columns
_OF_TABLES = {"relevance": ("keep", "weight", "relevant_ids"), "score": ("rank", "retrieved_ids")}
_LISTED: dict[Role, Literal["relevant_ids", "retrieved_ids"]] = {
    "relevance": "relevant_ids",
    "score": "retrieved_ids",
}
_PAIRS = ("_1", "_2"), ("0", "1"), ("key", "value")  # generated names of the fields of structs
_WORD = {"relevance": "grade", "score": "score"}


class SideColumns(NamedTuple):
    """The columns of judgments or of a run."""

    query: str
    doc_id: str
    value: str | None  # grades, scores or ranks; None if all judgments have one grade
    intent: str | None
    kept: list[str]  # columns of judgments to keep
    roles: Roles
    ranks: str | None = None  # an unused column of ranks
    is_text: bool = False  # the ids of a query are one string, separated by blanks

    @property
    def names(self) -> list[str]:
        named = (self.query, self.doc_id, self.value, self.intent, *self.kept)
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def compared_ranks(self) -> str | None:
        """A column of ranks beside scores, if the caller named neither."""
        return None if self.value is None or self.roles.score is not None else self.ranks

    @property
    def is_ordered(self) -> bool:
        """Whether values are ranks, or scores of which the lowest is the best."""
        return self.roles.ascending or self.roles.rank is not None

    def taken(self, role: Role) -> dict[str, str]:
        """The column of each role."""
        order = "rank" if role == "score" and self.roles.rank is not None else role
        value = {} if self.value is None else {order: self.value}
        return {"query": self.query, "doc_id": self.doc_id} | value


def side_of_data(name: str, data: Any, role: Role, roles: Roles, *, intents: bool = False) -> Side:
    """Convert judgments or a run in memory. Raises as `Rankings.from_qrels_run` does.

    >>> side = side_of_data("run", {"q1": {"a": 0.5}, "q2": [("a", 0.1), ("b", 0.9)]}, "score", Roles())
    >>> side.queries.to_pylist(), side.codes, side.docs.to_pylist(), side.values
    (['q1', 'q2'], array([0, 1, 1]), ['a', 'a', 'b'], array([0.5, 0.1, 0.9]))
    """
    if isinstance(data, str | os.PathLike):
        raise InputTypeError(
            f"{name} is the path {os.fspath(data)}; read judgments and a run from files by "
            "read_qrels_run(qrels, run), or give paths to evaluate(qrels, run, measures)"
        )
    if not isinstance(data, Mapping) and not is_table(data) and callable(getattr(data, "to_dict", None)):
        data = data.to_dict()  # ranx's Qrels and Run
    if isinstance(data, Mapping) and not has_columns(data):
        refuse_columns(name, role, roles, "a dict")
        return side_of_queries(name, data, role, roles, intents=intents)
    is_sparse = hasattr(data, "tocoo")  # a matrix of SciPy
    if isinstance(data, Iterable) and not (isinstance(data, Mapping) or is_table(data) or is_sparse):
        data, roles = _columns_of_rows(name, list(data), role, roles, intents=intents)
    try:
        frame = frame_of(data)
    except InputTypeError:
        raise InputTypeError(
            f"{name} is a {type(data).__name__}; expected a dict of dicts or of lists, a DataFrame, an Arrow "
            f"table, or ir_measures' {'Qrel' if role == 'relevance' else 'ScoredDoc'} tuples. {OF_ARRAYS}."
        ) from None
    if all(map(COUNTING.fullmatch, frame.names)):
        frame = frame.named(name, roles.dialect(role).columns)
    chosen = find_columns(name, list(frame.names), role, roles, frame.type_of, intents=intents)
    table = frame.table(chosen.names, [chosen.query], chosen.value or "", chosen.compared_ranks)
    return side_of_table(name, table, chosen, role)


def has_columns(data: Mapping[Any, Any]) -> bool:
    """Return whether a dict maps names to columns, and not queries to documents."""
    names = list(data) if len(data) <= _MOST_COLUMNS else []
    if not fitting(names, "query") or any(isinstance(column, Mapping) for column in data.values()):
        return False
    # names such as "hits" do not matter where an element is the list of a query
    nested = (column[0] for column in data.values() if isinstance(column, list) and column)
    has_lists = any(normalised(str(name)) in map(normalised, USUAL_NAMES["query"]) for name in names) and any(
        isinstance(first, list | tuple) and first and isinstance(first[0], Mapping | list | tuple)
        for first in nested
    )
    return has_lists or any(fitting(names, role) for role in ("doc_id", *_LISTED.values()))


def refuse_columns(name: str, role: Role, roles: Roles, what: str) -> None:
    """Raise for arguments that name columns where the input has none."""
    for argument in _OF_TABLES[role]:
        if argument == "keep" and roles.keep:  # which the cutoffs of a measure may ask for
            column = roles.keep if isinstance(roles.keep, str) else roles.keep[0]
            raise ColumnError(f'there is no column "{column}": {name} is {what}; give a table')
        if getattr(roles, argument):
            raise ColumnError(f"{argument}= is of a column, and {name} is {what}; give a table")


# ---- dicts, lists and tuples ----


def side_of_queries(
    name: str, queries: Mapping[Any, Any], role: Role, roles: Roles, *, intents: bool = False
) -> Side:
    """Convert a dict from query to documents: a dict of values, a list or a set of ids, or pairs."""
    sizes, has_lists = list[int](), False
    columns: list[list[Any]] = [[] for _ in range(2 + intents)]  # documents, values, intents
    for query, documents in queries.items():
        before = len(columns[0])
        if intents:
            for entry in _by_intent(name, query, documents):
                for column, value in zip(columns, entry, strict=True):
                    column.append(value)
        else:
            listed, values = _documents_in(name, query, documents, role)
            if values is None:
                has_lists, n = True, len(listed)
                values = [1] * n if role == "relevance" else list(range(n, 0, -1))
            columns[0] += listed
            columns[1] += values
        sizes.append(len(columns[0]) - before)
    docs, *of_intents = (
        with_long_offsets(_ids(name, of, each))
        for of, each in zip(("document", "intent"), columns[::2], strict=False)
    )
    numbers = pa.chunked_array([_numbers(name, columns[1], role, roles)])
    if has_lists and role == "score":
        roles = _best_first(name, roles)
    if role == "relevance" and numbers.null_count:
        roles = replace(roles, unjudged="null")
    query, offsets = _ids(name, "query", list(queries)), offsets_from(sizes)
    side = side_of(name, query, docs, lambda _: name, offsets)
    with naming(name):
        return with_values(side, role, roles, numbers, Locator(offsets, query, None), *of_intents)


def _best_first(name: str, roles: Roles) -> Roles:
    """Return the roles of a run of lists without scores, best first."""
    if roles.ascending:
        raise InputError(f"ascending=True is for scores, but {name} has lists, which are best first")
    return replace(roles, rank="rank")


def _documents_in(name: str, query: Any, documents: Any, role: Role) -> tuple[list[Any], list[Any] | None]:
    """Return the documents of a query and their values; None if they are listed best first, or relevant."""
    expected = f"a dict from document id to {_WORD[role]}"
    if hasattr(documents, "dtype") and callable(getattr(documents, "to_dict", None)):
        documents = _of_series(name, query, documents)
    if is_answer(documents):
        documents = documents["hits"]["hits"]
    if isinstance(documents, Mapping):
        return list(documents), list(documents.values())
    if isinstance(documents, Set) and role == "score":
        raise InputTypeError(
            f"{name}[{query!r}] is a {type(documents).__name__}, which has no order; "
            f"expected a list of documents, best first, or {expected}"
        )
    for method in ("tolist", "to_list"):  # of arrays of NumPy and pyarrow, and of a Series of Polars
        documents = getattr(documents, method)() if hasattr(documents, method) else documents
    if not isinstance(documents, Set | list | tuple):
        raise InputTypeError(
            f"{name}[{query!r}] is a {type(documents).__name__}; expected {expected}, or a list of documents"
        )
    listed = list(documents)
    if listed and all(isinstance(each, tuple | list) and len(each) == 2 for each in listed):
        return [doc for doc, _ in listed], [value for _, value in listed]
    if listed and all(isinstance(each, Mapping) for each in listed):
        with naming(name):
            doc, value = _fields_of_hits(list(listed[0]), role, Roles())
        return [each.get(doc) for each in listed], [each.get(value) for each in listed]
    return listed, None


def is_answer(documents: Any) -> bool:
    """Return whether this is a search response of Elasticsearch."""
    hits = documents.get("hits") if isinstance(documents, Mapping) else None
    return isinstance(hits, Mapping) and isinstance(hits.get("hits"), list)


def _of_series(name: str, query: Any, series: Any) -> Any:
    """Convert a Series of pandas to a dict, or to a list if its values are the documents."""
    if series.dtype.kind not in "biuf" and not all(
        isinstance(each, Real) for each in series if each is not None
    ):
        return series.tolist()
    if len(series) and list(series.index) == list(range(len(series))):
        raise InputError(
            f"{name}[{query!r}] is a Series of numbers whose index counts its rows, not documents; "
            "make their ids its index, or give series.tolist() where the numbers are the documents' ids"
        )
    return series.to_dict()


def _fields_of_hits(names: list[str], role: Role, roles: Roles) -> tuple[str, str]:
    """Return the fields of a hit that have the document and its grade or score.

    >>> [_fields_of_hits(names, "score", Roles()) for names in (["item", "rating"], ["_id", "_score"])]
    [('item', 'rating'), ('_id', '_score')]
    """
    if (pair := tuple(names)) in _PAIRS and _given_values(role, roles) is None:
        return pair[0], pair[1]
    ids = [each for each in names if normalised(each) == "id"]
    doc = (
        ids[0]
        if len(ids) == 1 and not fitting(names, "doc_id")
        else find_column(names, "doc_id", roles.doc_id)
    )
    if role == "relevance":
        return doc, _find_grades(names, replace(roles, grades=None)) or ""
    is_rating = roles.score is None and not fitting(names, "score") and fitting(names, "relevance")
    return doc, find_column(names, "relevance" if is_rating else "score", roles.score)


def _by_intent(name: str, query: Any, documents: Any) -> Iterator[tuple[Any, Any, Any]]:
    if not isinstance(documents, Mapping):
        raise InputTypeError(
            f"{name}[{query!r}] is a {type(documents).__name__}; expected a dict from document id to intents"
        )
    for document, grades in documents.items():
        if not isinstance(grades, Mapping):
            raise InputTypeError(
                f"{name}[{query!r}][{document!r}] is a {type(grades).__name__}; "
                "expected a dict from intent to number"
            )
        for intent, grade in grades.items():
            yield document, grade, intent


def _columns_of_rows(
    name: str, rows: list[Any], role: Role, roles: Roles, *, intents: bool
) -> tuple[Any, Roles]:
    """Convert rows to records or columns: mappings, named tuples and objects by their names, plain rows by
    position. Also returns the roles that apply.
    """
    kinds, usual = set(map(type, rows)), ("query_id", "doc_id", role, "iteration")
    converted: Any
    fields: Sequence[str] | None = getattr(next(iter(kinds)), "_fields", None) if len(kinds) == 1 else None
    if not rows:
        fields = usual
    elif fields is None and kinds <= PLAIN:
        fields = _names_of_fields(name, rows, role, roles, usual[:3], intents=intents)
    if fields is not None:
        names, converted = set(fields), columns_of_rows(rows, fields)
    else:
        converted = [
            row if isinstance(row, Mapping) else getattr(row, "__dict__", {}) or None for row in rows
        ]
        if any(record is None for record in converted):
            shown = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise InputTypeError(
                f"{name} has rows of {shown}; expected tuples or records with query_id, doc_id and {role}, "
                f"or plain tuples in this order. {OF_ARRAYS}."
            )
        names = set().union(*converted)
    # plain tuples and those of ir_measures: the names that the caller passed are those of the other side
    if names <= {*usual, "relevance", "score"} and not any(issubclass(kind, Mapping) for kind in kinds):
        roles = replace(roles, query=None, doc_id=None, relevance=None, score=None, intents=None)
    return converted, roles


def _names_of_fields(
    name: str, rows: list[Any], role: Role, roles: Roles, usual: Sequence[str], *, intents: bool
) -> Sequence[str]:
    """Return names for the fields of plain rows: `columns`, positions, or query, document and value."""
    dialect, widths = roles.dialect(role), sorted({len(row) for row in rows})
    if len(widths) == 1 and dialect.has_places:
        return [str(place) for place in range(widths[0])]
    if dialect.columns is not None and widths == [len(dialect.columns)]:
        return dialect.columns
    if role == "relevance" and roles.one_grade is not None and widths == [2]:
        return usual[:2]
    if intents or widths != [3]:
        step = ", or grades=1, the grade of all" if role == "relevance" and widths == [2] else ""
        raise InputTypeError(
            f"{name} has tuples of {', '.join(map(str, widths[:3]))} values; expected (query, document, "
            f"{_WORD[role]}), or a name for each value, as in "
            f'columns=["query_id", "doc_id", "{role}"]{step}. {OF_ARRAYS}.'
        )
    if any(isinstance(each, float) and each % 1 for row in rows[:100] for each in row[:2]):
        raise InputTypeError(
            f"{name} has rows of numbers that are not (query, document, {_WORD[role]}). {OF_ARRAYS}."
        )
    if all(type(row) is list and all(isinstance(each, int) for each in row) for row in rows):
        raise InputTypeError(
            f"{name} has lists of three whole numbers, which could be (query, document, {_WORD[role]}) or "
            "ids of documents. Give tuples, or columns=, for the first, and dicts for the second, as in "
            "evaluate({query: relevant ids}, {query: retrieved ids}, measures)."
        )
    return usual


def _ids(name: str, of: str, values: list[Any]) -> pa.Array:
    if not values:
        return pa.array([], pa.string())
    try:
        ids = whole_ids(pa.array(values))
    except (TypeError, ValueError, OverflowError, pa.ArrowInvalid) as error:
        raise InputTypeError(
            f"{name} has {of} ids of mixed or unknown types: {error}. "
            "Make all of them strings, or all of them whole numbers."
        ) from None
    if not (pa.types.is_integer(ids.type) or has_offsets(ids.type)):
        step = f". {OF_ARRAYS}." if pa.types.is_floating(ids.type) else ""
        raise InputTypeError(
            f"{name} has {of} ids that are {ids.type}; expected strings or whole numbers{step}"
        )
    if ids.null_count:
        raise InputError(
            f"{name} has {count_of(ids.null_count, f'{of} id', 'None')}; give each {of} its id, or drop them"
        )
    return ids


def _numbers(name: str, values: list[Any], role: Role, roles: Roles) -> pa.Array:
    array = np.array(values) if values else np.empty(0, np.int64)
    if array.dtype.kind == "f" and (abs(array) >= 2**53).any():  # NumPy rounds whole numbers beside floats
        lost = [each for each in values if isinstance(each, int) and abs(each) > 2**53]
        if lost:
            raise InputError(
                f"{name} holds floats and whole numbers beyond 2**53, beginning with {lost[0]}, which would "
                "be rounded; give all as whole numbers, or all as floats"
            )
    if array.ndim == 1 and array.dtype.kind in "buif":
        return column_of(array.view(np.uint8) if array.dtype.kind == "b" else array)
    with suppress(TypeError, ValueError, OverflowError, pa.ArrowException):
        column = pa.array(values)  # words, or numbers of which some are None
        is_null = pa.types.is_null(column.type)
        if isinstance(roles.grades, Mapping) or is_null or is_number(column.type):
            return column
    step = WORDS if role == "relevance" and isinstance(values[0], str) else ""
    raise InputTypeError(
        f"{name} holds values that are not numbers, beginning with {values[0]!r}; "
        f"expected a number for each document{step}"
    )


# ---- tables ----


def find_columns(
    name: str,
    present: list[str],
    role: Role,
    roles: Roles,
    type_of: Callable[[str], pa.DataType],
    *,
    intents: bool,
) -> SideColumns:
    """Find the columns of judgments or of a run in a table."""
    kept: dict[str, None] = {}
    value: str | None = None
    try:
        if role == "relevance":
            kept = dict.fromkeys(named_columns(present, "keep", roles.keep))
            kept |= {} if roles.weight is None else {check_column(present, "weight", roles.weight): None}
        query = find_column(present, "query", roles.query)  # type: ignore[arg-type]  # says what it expects
        doc_id, is_text = _find_documents(present, role, roles, type_of, query)
        others = [each for each in present if each != doc_id]
        if _has_values(others, role, roles) or not (is_text or is_nested(type_of(doc_id))):
            try:
                if role == "relevance":
                    value = _find_grades(others, roles)
                else:
                    roles, value = find_order(others, roles)
            except ColumnError as error:
                step = f'; if "{doc_id}" holds all ids of a query, pass {_LISTED[role]}="{doc_id}"'
                raise ColumnError(f"{error}{step}") from None
        intent = find_column(present, "intent", roles.intents) if intents else None
        ranks = other_ranks(present, value or "") if role == "score" else None
        kept_columns = [each for each in kept if each != query or each == roles.weight]
        return SideColumns(query, doc_id, value, intent, kept_columns, roles, ranks=ranks, is_text=is_text)
    except ColumnError as error:
        raise ColumnError(f"{name}: {error}") from None


def _has_values(names: list[str], role: Role, roles: Roles) -> bool:
    """Return whether a column has grades, scores or ranks. Lists of documents may include or lack them."""
    if (named := _given_values(role, roles)) is not None:
        return named in names
    of_judgments = "relevance", "score"
    return any(fitting(names, each) for each in (of_judgments if role == "relevance" else ("score", "rank")))


def _given_values(role: Role, roles: Roles) -> str | None:
    return roles.relevance if role == "relevance" else roles.score or roles.rank


def _find_documents(
    present: list[str], role: Role, roles: Roles, type_of: Callable[[str], pa.DataType], query: str
) -> tuple[str, bool]:
    """Find the column of documents. Also returns whether it holds all ids of a query as one string."""
    listed = _LISTED[role]
    if (named := getattr(roles, listed)) is not None:
        check_column(present, listed, named)
        return named, not is_nested(type_of(named))
    if roles.doc_id in present or fitting(present, "doc_id"):
        return find_column(present, "doc_id", roles.doc_id if roles.doc_id in present else None), False
    others = [each for each in present if isinstance(each, str) and each != query]
    nested = [each for each in others if is_nested(type_of(each))]
    for lists in ([each for each in nested if each in fitting(present, listed)], nested):
        if len(lists) == 1:
            return lists[0], False
    texts = [each for each in fitting(others, listed) if _may_be_text(type_of(each))]
    if len(texts) == 1 and not nested:
        return texts[0], True
    return find_column(present, "doc_id", roles.doc_id), False


def is_nested(kind: pa.DataType) -> bool:
    """Return whether a column may hold the documents of a query: maps, or lists except of floats."""
    return pa.types.is_map(kind) or (is_list(kind) and not pa.types.is_floating(kind.value_type))


def _may_be_text(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_null(kind)  # null: a text file, whose rows decide


def _find_grades(names: list[str], roles: Roles) -> str | None:
    """Find the column of grades; None if `grades` is one number. BEIR calls the column "score"."""
    if roles.one_grade is not None:
        if roles.relevance is not None:
            raise ColumnError(
                f'relevance="{roles.relevance}" and grades={roles.grades} are given; grades are in a column, '
                "or the same for all"
            )
        return None
    if roles.relevance is not None or fitting(names, "relevance"):
        return find_column(names, "relevance", roles.relevance)
    scores = [name for name in names if isinstance(name, str) and normalised(name) == "score"]
    if len(scores) == 1:
        return scores[0]
    try:
        return find_column(names, "relevance")
    except ColumnError as error:
        raise ColumnError(f"{error}; if every row is a relevant document, pass grades=1") from None


def side_of_table(
    name: str,
    table: pa.Table,
    chosen: SideColumns,
    role: Role,
    numbers: int | Array | None = 0,
    *,
    is_text: bool = False,
) -> Side:
    """Convert columns with one row per document, or one row of lists per query.

    `numbers` are the row numbers for messages, or that of the first row; None to name queries instead.
    `is_text` says that the columns come from a text file without types.
    """
    roles, rows, offsets = chosen.roles, Locator(numbers=numbers), None
    query, docs = plain(table[chosen.query]), plain(table[chosen.doc_id])
    values = None if chosen.value is None else plain(table[chosen.value])
    with naming(name):
        query = doc_ids_in(chosen.query, query, rows, "query", is_text=is_text)
        rows = locator = rows._replace(query_ids=query)
        if chosen.is_text or is_list(docs.type) or pa.types.is_map(docs.type):
            lists = Locator(np.arange(len(query) + 1), query, None)
            offsets, docs, values, roles = _flat(name, chosen, role, query, docs, values, lists)
            locator = lists._replace(offsets=offsets)
        in_lists = locator._replace(in_lists=offsets is not None)
        docs = doc_ids_in(chosen.doc_id, docs, in_lists, is_text=is_text)
        intents = None
        if chosen.intent is not None:
            intents = plain(table[chosen.intent])
            intents = combine(doc_ids_in(chosen.intent, intents, rows, "intent", is_text=is_text))

        def place(row: int) -> str:
            code = row if offsets is None else int(np.searchsorted(offsets, row, side="right")) - 1
            return f"query {rows.name_of(code)}" if numbers is None else f"{name}, row {rows.number(code)}"

        label = column_name(chosen.value or "")
        side = side_of(name, query, docs, place, offsets)._replace(
            query_name=chosen.query,
            column=chosen.value or "",
            ranks=chosen.ranks,
            is_ordered=chosen.is_ordered,
        )
        if chosen.kept:
            side = side._replace(**_of_queries(table, chosen, numbers, is_text=is_text))
        return with_values(side, role, roles, values, locator._replace(names=(label, label)), intents)


def _flat(
    name: str, chosen: SideColumns, role: Role, query: Any, docs: Any, values: Any, lists: Locator
) -> tuple[Int64, Any, Any, Roles]:
    """Flatten columns of lists: returns offsets, ids, values, and the roles that apply to them."""
    column, roles = chosen.doc_id, chosen.roles
    if chosen.intent is not None:
        raise InputTypeError(
            f'column "{column}" holds lists; intents need a row for each document and intent'
        )
    check_one_row(query, [column, *([] if chosen.value is None else [chosen.value])])
    if pa.types.is_map(docs.type):
        docs = _as_structs(column, docs, lists)
    elif not is_list(docs.type):
        docs = ids_in_text(column, docs)
    offsets, docs = split_lists(column, docs, lists)
    if pa.types.is_struct(docs.type) or is_list(docs.type):
        if values is not None:
            raise ColumnError(
                f'column "{column}" holds {docs.type}, which includes values, and there is also column '
                f'"{chosen.value}"; name the one column as {_LISTED[role]}="{column}"'
            )
        docs, values, roles = _halves(column, docs, role, roles)
    elif values is not None:
        if not is_list(values.type):
            raise InputTypeError(
                f'column "{column}" holds lists and column "{chosen.value}" {values.type}; expected both as '
                "lists, a row for each query, or neither, a row for each document"
            )
        values = split_alike(column, offsets, chosen.value or "", values, lists)
    elif (named := _given_values(role, roles)) is not None:
        raise ColumnError(f'there is no column "{named}", and column "{column}" holds lists of ids alone')
    elif role == "relevance":
        values = column_of(np.ones(len(docs), np.int64))
    else:
        roles, values = _best_first(name, roles), column_of(falling_ranks(offsets))
    return offsets, docs, values, roles


def _as_structs(column: str, maps: pa.ChunkedArray, lists: Locator) -> pa.ChunkedArray:
    """Convert maps to lists of structs of key and value."""
    if maps.null_count:
        raise nulls_in(column_name(column), maps, lists, ". Give a query without documents an empty map.")
    combined = combine(maps)
    structs = pa.StructArray.from_arrays([combined.keys, combined.items], ["key", "value"])
    return pa.chunked_array([pa.ListArray.from_arrays(combined.offsets, structs)])


def _halves(column: str, pairs: pa.ChunkedArray, role: Role, roles: Roles) -> tuple[Any, Any, Roles]:
    """Split structs or pairs into documents and values. Also returns the roles that say how values order."""
    if pa.types.is_struct(pairs.type):
        names = [field.name for field in pairs.type]
        try:
            is_found = roles.score is not None or fitting(names, "score") or not fitting(names, "rank")
            if role == "score" and (roles.rank is not None or not is_found):
                roles, rank = find_order(names, roles)
                roles = replace(roles, score=rank)
            doc, value = _fields_of_hits(names, role, roles)
        except ColumnError as error:
            raise ColumnError(f'column "{column}" holds structs: {error}') from None
        return plain(pc.struct_field(pairs, doc)), plain(pc.struct_field(pairs, value)), roles
    if (named := _given_values(role, roles)) is not None:
        raise ColumnError(f'there is no column "{named}", and column "{column}" holds pairs without names')
    sizes = array_of(pc.fill_null(pc.list_value_length(pairs), 0))
    if (sizes != 2).any():
        raise InputTypeError(
            f'column "{column}" holds lists of lists of {sizes[np.argmax(sizes != 2)]} values; expected '
            "pairs of a document and its value"
        )
    flat, first = pc.list_flatten(pairs), np.arange(0, 2 * len(pairs), 2)
    return flat.take(column_of(first)), flat.take(column_of(first + 1)), roles


def _of_queries(
    table: pa.Table, chosen: SideColumns, numbers: int | Array | None, *, is_text: bool
) -> dict[str, Any]:
    """Return the kept columns and the weights of the queries of a side."""
    ids, weight = ids_in(chosen.query, table[chosen.query]), chosen.roles.weight
    grouped, rows = group_rows(ids), Locator(numbers=numbers)
    columns = {name: values_of_queries(name, plain(table[name]), ids, grouped, rows) for name in chosen.kept}
    weights = None
    if weight is not None:
        weights = numbers_in(column_name(weight), columns.pop(weight), "weights", BY_ROW)
    if is_text:
        columns = {name: integers_if_written_so(column) for name, column in columns.items()}
    return {"kept": pa.table(columns) if columns else None, "weight": weights}
