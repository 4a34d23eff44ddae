"""Judgments and runs of any shape as columns query, document and value, and as a side of a join.

dict, lists, tuples, records, table -> `columns_of` -> `side_of_table` -> `Side`
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

from fastndcg.common.arrays import Array, codes_from, offsets_from
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    decode,
    has_offsets,
    is_list,
    is_number,
    is_text,
    plain,
    whole_ids,
    with_long_offsets,
    without_points,
)
from fastndcg.errors import ColumnError, InputError, InputTypeError, count_of
from fastndcg.tables.arrow import check_one_row, falling_ranks, ids_in_text, kept_by_query, split_lists
from fastndcg.tables.frames import COUNTING, OF_ARRAYS, frame_of, is_row, is_table
from fastndcg.tables.locations import BY_ROW, Blame
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
from fastndcg.tables.sides import Role, Side, naming, side_of, with_values
from fastndcg.tables.values import column_name, integers_if_written_so, nulls_in, numbers_in

_COLUMNS = "document", "value", "intent"  # of a row, beside that of the query
_MOST_COLUMNS = 1000  # of a dict of columns
_AT_ONCE = 1 << 18  # documents of dicts that become arrays together
_OF_TABLES = {"relevance": ("keep", "weight", "relevant_ids"), "score": ("rank", "retrieved_ids")}
_LISTED: dict[Role, Literal["relevant_ids", "retrieved_ids"]] = {
    "relevance": "relevant_ids",
    "score": "retrieved_ids",
}
_PAIRS = ("_1", "_2"), ("0", "1"), ("key", "value")  # fields of structs without names of their own
_WORD = {"relevance": "grade", "score": "score"}


def _has_names(row: Any) -> bool:
    """Whether a named tuple has names of its own, not those of ir_measures."""
    return hasattr(row, "_asdict") and not hasattr(row, "query_id")


class Found(NamedTuple):
    """The columns of judgments or of a run."""

    query: str
    doc_id: str
    value: str | None  # grades, scores or ranks; None if all judgments have one grade
    intent: str | None
    kept: list[str]  # of judgments
    roles: Roles
    is_table: bool = True  # the caller knows these names
    ranks: str | None = None  # a column of ranks that is not used
    is_text: bool = False  # ids of documents stand in one text, separated by blanks

    @property
    def names(self) -> list[str]:
        named = (self.query, self.doc_id, self.value, self.intent, *self.kept)
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def compared_ranks(self) -> str | None:
        """A column of ranks beside scores that the caller did not name."""
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
    """Judgments or a run in memory. Raises as `Rankings.from_qrels_run` does."""
    return side_of_table(name, *columns_of(name, data, role, roles, intents=intents), role)


def columns_of(
    name: str, data: Any, role: Role, roles: Roles, *, intents: bool = False
) -> tuple[pa.Table, Found]:
    """Judgments or a run of any shape in memory, as a table of their columns.

    >>> table, _ = columns_of("run", {"q1": {"a": 0.5}, "q2": {"a": 0.1, "b": 0.9}}, "score", Roles())
    >>> table.to_pydict()
    {'query_id': ['q1', 'q2'], 'doc_id': [['a'], ['a', 'b']], 'value': [[0.5], [0.1, 0.9]]}
    """
    if isinstance(data, str | os.PathLike):
        raise InputTypeError(
            f"{name} is the path {os.fspath(data)}; read judgments and a run from files by "
            "read_qrels_run(qrels, run), or give paths to evaluate(qrels, run, measures)"
        )
    if not isinstance(data, Mapping) and not is_table(data) and callable(getattr(data, "to_dict", None)):
        data = data.to_dict()  # ranx's Qrels and Run
    columns = roles.dialect(role).columns
    if isinstance(data, Mapping) and not has_columns(data):
        refuse_columns(name, role, roles, "a dict")
        return columns_of_queries(name, data.items(), role, roles, intents=intents)
    if isinstance(data, Iterable) and not isinstance(data, Mapping) and not is_table(data):
        data = [row._asdict() if _has_names(row) else row for row in data]
        has_names = columns is not None and all(is_row(row) and len(row) == len(columns) for row in data)
        if not data or not (has_names or all(isinstance(row, Mapping) for row in data)):
            refuse_columns(name, role, roles, "no table")
            return _of_tuples(name, data, role, roles, intents=intents)
    try:
        frame = frame_of(data, columns)
    except InputTypeError:
        raise InputTypeError(
            f"{name} is a {type(data).__name__}; expected a dict of dicts or of lists, a DataFrame, an Arrow "
            f"table, or ir_measures' {'Qrel' if role == 'relevance' else 'ScoredDoc'} tuples. {OF_ARRAYS}."
        ) from None
    frame = frame.named(name, columns) if all(map(COUNTING.fullmatch, frame.names)) else frame
    found = find_columns(name, list(frame.names), role, roles, frame.type_of, intents=intents)
    return frame.table(found.names, [found.query], found.value or "", found.compared_ranks), found


def has_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict has columns, of which some are the ids, and not an entry for each query."""
    names = list(data) if len(data) <= _MOST_COLUMNS else []
    if not fitting(names, "query") or any(isinstance(column, Mapping) for column in data.values()):
        return False
    # of other names, such as "hits", where an element is the list of a query
    nested = (column[0] for column in data.values() if isinstance(column, list) and column)
    has_lists = any(normalised(str(name)) in map(normalised, USUAL_NAMES["query"]) for name in names) and any(
        isinstance(first, list | tuple) and first and isinstance(first[0], Mapping | list | tuple)
        for first in nested
    )
    return has_lists or any(fitting(names, role) for role in ("doc_id", *_LISTED.values()))


def refuse_columns(name: str, role: Role, roles: Roles, what: str) -> None:
    """Raise for names of columns where the input has none."""
    for argument in _OF_TABLES[role]:
        if argument == "keep" and roles.keep:  # which the cutoffs of a measure may ask for
            column = roles.keep if isinstance(roles.keep, str) else roles.keep[0]
            raise ColumnError(f'there is no column "{column}": {name} is {what}; give a table')
        if getattr(roles, argument):
            raise ColumnError(f"{argument}= is of a column, and {name} is {what}; give a table")


# ---- dicts, lists and tuples ----


def columns_of_queries(
    name: str, queries: Iterable[tuple[Any, Any]], role: Role, roles: Roles, *, intents: bool = False
) -> tuple[pa.Table, Found]:
    """A row for each query, with lists of its documents and of their values.

    `queries` are ids, each with a dict of its documents, with a list or a set of them, or with pairs.
    """
    ids, sizes, has_lists = list[Any](), list[int](), False
    columns: list[list[Any]] = [[] for _ in range(2 + intents)]  # documents, values, intents
    parts: list[list[pa.Array]] = []
    for query, documents in queries:
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
        ids.append(query)
        sizes.append(len(columns[0]) - before)
        if len(columns[0]) >= _AT_ONCE:
            parts.append(_arrays(name, columns, roles))
            columns = [[] for _ in columns]
    if columns[0] or not parts:
        parts.append(_arrays(name, columns, roles))
    if has_lists and role == "score":
        roles = _best_first(name, roles)
    if role == "relevance" and any(part[1].null_count for part in parts):
        roles = replace(roles, unjudged="null")
    offsets = offsets_from(sizes)
    flat = (_end_to_end(name, of, each) for of, each in zip(_COLUMNS, zip(*parts, strict=True), strict=False))
    lists = (pa.LargeListArray.from_arrays(offsets, each) for each in flat)
    return _table([_ids(name, "query", ids), *lists], roles)


def _best_first(name: str, roles: Roles) -> Roles:
    """The roles of a run of lists without scores, which stand best first."""
    if roles.ascending:
        raise InputError(f"ascending=True is for scores, but {name} has lists, which are best first")
    return replace(roles, rank="rank")


def _table(columns: Sequence[Any], roles: Roles) -> tuple[pa.Table, Found]:
    names = "query_id", "doc_id", "value", "intent"
    intent = names[3] if len(columns) > 3 else None
    found = Found(names[0], names[1], names[2], intent, [], roles, is_table=False)
    return pa.table(columns, list(names[: len(columns)])), found


def _documents_in(name: str, query: Any, documents: Any, role: Role) -> tuple[list[Any], list[Any] | None]:
    """The documents of a query and their values; without these they stand best first, or are relevant."""
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
    """Whether these are an answer of Elasticsearch."""
    hits = documents.get("hits") if isinstance(documents, Mapping) else None
    return isinstance(hits, Mapping) and isinstance(hits.get("hits"), list)


def _of_series(name: str, query: Any, series: Any) -> Any:
    """A Series of pandas as a dict, or as a list where its values are the documents."""
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
    """The fields of hits that have the document and its grade or score; also those without names.

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


def _of_tuples(
    name: str, rows: list[Any], role: Role, roles: Roles, *, intents: bool
) -> tuple[pa.Table, Found]:
    fields = ("query_id", "doc_id", role, *(["iteration"] if intents else []))
    is_plain = bool(rows) and all(map(is_row, rows))
    if is_plain and role == "relevance" and roles.one_grade is not None and {len(row) for row in rows} == {2}:
        rows = [(*row, roles.one_grade) for row in rows]
    if is_plain and (intents or any(len(row) != 3 for row in rows)):
        sizes = ", ".join(map(str, sorted({len(row) for row in rows})[:3]))
        step = ", or grades=1, the grade of all" if role == "relevance" and sizes == "2" else ""
        raise InputTypeError(
            f"{name} has tuples of {sizes} values; expected (query, document, {_WORD[role]}), or a name for "
            f'each value, as in columns=["query_id", "doc_id", "{role}"]{step}. {OF_ARRAYS}.'
        )
    if is_plain and all(type(row) is list and all(isinstance(each, int) for each in row) for row in rows):
        raise InputTypeError(
            f"{name} has lists of three whole numbers, which could be (query, document, {_WORD[role]}) or "
            "ids of documents. Give tuples, or columns=, for the first, and dicts for the second, as in "
            "evaluate({query: relevant ids}, {query: retrieved ids}, measures)."
        )
    try:
        columns = (
            [list(column) for column in zip(*rows, strict=True)]
            if is_plain
            else [[getattr(row, field) for row in rows] for field in fields]
        )
    except AttributeError as error:
        raise InputTypeError(
            f"{name} holds {type(error.obj).__name__} without {error.name}; "
            f"expected tuples with query_id, doc_id and {role}, or plain ones in this order. {OF_ARRAYS}."
        ) from None
    return _table([_ids(name, "query", columns[0]), *_arrays(name, columns[1:], roles)], roles)


def _arrays(name: str, columns: list[list[Any]], roles: Roles) -> list[pa.Array]:
    docs, values, *intents = columns
    ids = [_ids(name, "intent", each) for each in intents]
    return [_ids(name, "document", docs), _numbers(name, values, roles), *ids]


def _end_to_end(name: str, of: str, parts: Sequence[pa.Array]) -> pa.Array:
    if of == "value" and any(part.null_count for part in parts):
        parts = [part.cast(pa.float64()) for part in parts]
    kinds = {part.type for part in parts}
    if len(kinds) == 1:
        return combine(with_long_offsets(pa.chunked_array(parts)))
    if of != "value" or not all(map(is_number, kinds)):
        raise _mixed(name, of, " and ".join(sorted(map(str, kinds))))
    return column_of(np.concatenate([array_of(part) for part in parts]))


def _ids(name: str, of: str, values: list[Any]) -> pa.Array:
    if not values:
        return pa.array([], pa.string())
    try:
        ids = whole_ids(pa.array(values))
    except (TypeError, ValueError, OverflowError, pa.ArrowInvalid) as error:
        raise _mixed(name, of, str(error)) from None
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


def _mixed(name: str, of: str, what: str) -> InputTypeError:
    return InputTypeError(
        f"{name} has {of}{'s' if of == 'value' else ' ids'} of mixed or unknown types: {what}. "
        "Make all of them strings, or all of them whole numbers."
    )


def _numbers(name: str, values: list[Any], roles: Roles) -> pa.Array:
    array = np.array(values) if values else np.empty(0, np.int64)
    if array.ndim == 1 and array.dtype.kind in "buif":
        return pa.array(array) if array.dtype.kind == "b" else column_of(array)
    with suppress(TypeError, ValueError, OverflowError, pa.ArrowException):
        column = pa.array(values)  # words, or numbers of which some are None
        is_null = pa.types.is_null(column.type)
        if isinstance(roles.grades, Mapping) or is_null or is_number(column.type):
            return column
    raise InputTypeError(
        f"{name} holds values that are not numbers, beginning with {values[0]!r}; "
        "expected a number for each document"
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
) -> Found:
    """The columns of judgments or of a run in a table."""
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
        own = [each for each in kept if each != query]
        return Found(query, doc_id, value, intent, own, roles, ranks=ranks, is_text=is_text)
    except ColumnError as error:
        raise ColumnError(f"{name}: {error}") from None


def _has_values(names: list[str], role: Role, roles: Roles) -> bool:
    """Whether a column has grades, scores or ranks; else lists of documents have their own, or need none."""
    if (given := _given_values(role, roles)) is not None:
        return given in names
    of_judgments = "relevance", "score"
    return any(fitting(names, each) for each in (of_judgments if role == "relevance" else ("score", "rank")))


def _given_values(role: Role, roles: Roles) -> str | None:
    return roles.relevance if role == "relevance" else roles.score or roles.rank


def _find_documents(
    present: list[str], role: Role, roles: Roles, type_of: Callable[[str], pa.DataType], query: str
) -> tuple[str, bool]:
    """The column of documents, and whether it is text that holds the ids of a query, separated by blanks."""
    listed = _LISTED[role]
    if (given := getattr(roles, listed)) is not None:
        check_column(present, listed, given)
        return given, not is_nested(type_of(given))
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
    """Whether a column of this type may hold the documents of a query: a list, but not one of fractions."""
    return pa.types.is_map(kind) or (is_list(kind) and not pa.types.is_floating(kind.value_type))


def _may_be_text(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_null(kind)  # which files of text decide later


def _find_grades(names: list[str], roles: Roles) -> str | None:
    """The column of grades of judgments; None if `grades` is one number. BEIR calls it "score"."""
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
    name: str, table: pa.Table, found: Found, role: Role, numbers: int | Array = 0, *, is_text: bool = False
) -> Side:
    """A side of these columns: a row for each document, or, if they hold lists, for each query.

    `numbers` are those of rows in messages, or that of the first; `is_text`: a file says nothing of types.
    """
    roles, of_queries, blame = found.roles, dict[str, Any](), Blame(numbers=numbers)
    named = [each for each in (found.query, found.doc_id, found.intent) if each is not None]
    query, docs, *intents = (plain(table[each]) for each in named)
    values = None if found.value is None else plain(table[found.value])
    with naming(name):
        if is_list(docs.type) and not found.is_table:  # of a dict, whose ids are checked
            offsets = offsets_from(array_of(pc.list_value_length(docs)))
            codes = codes_from(offsets)
            docs, values, *intents = (combine(each).flatten() for each in (docs, values, *intents))
            blame = Blame(offsets, query, None)
            side = Side(name, combine(query), codes, docs, np.empty(0), lambda _: name)
        elif found.is_text or is_list(docs.type) or pa.types.is_map(docs.type):
            query = _checked_ids(found.query, query, "query", blame, is_text=is_text)
            side, values, blame, roles = _side_of_lists(
                name, found, role, query, docs, values, blame, is_text=is_text
            )
        else:
            query, docs, *intents = (
                _checked_ids(column, ids, of, blame, is_text=is_text)
                for column, ids, of in zip(named, (query, docs, *intents), _IDS, strict=False)
            )
            side = side_of(name, query, docs, np.empty(0), lambda row: f"{name}, row {blame.number(row)}")
            blame = blame._replace(query_ids=query)
        if found.is_table:
            label = column_name(found.value or "")
            blame = blame._replace(names=(label, label))
            of_queries = {"query_name": found.query, "column": found.value or "", "ranks": found.ranks}
        if found.kept:
            of_queries |= _of_queries(table, found, numbers, is_text=is_text)
        side = side._replace(is_ordered=found.is_ordered, **of_queries)
        return with_values(side, role, roles, values, blame, combine(intents[0]) if intents else None)


_IDS = "query", "document", "intent"


def _side_of_lists(
    name: str, found: Found, role: Role, query: Any, docs: Any, values: Any, of_rows: Blame, *, is_text: bool
) -> tuple[Side, Any, Blame, Roles]:
    """A side of a row for each query, with its values and what is known of them."""
    column, roles = found.doc_id, found.roles
    if found.intent is not None:
        raise InputTypeError(
            f'column "{column}" holds lists; intents need a row for each document and intent'
        )
    check_one_row(query, [column, *([] if found.value is None else [found.value])])
    lists = Blame(np.arange(len(query) + 1), query, None)
    if pa.types.is_map(docs.type):
        docs = _as_structs(column, docs, lists)
    elif not is_list(docs.type):
        docs = ids_in_text(column, docs)
    offsets, docs = split_lists(column, docs, lists)
    if pa.types.is_struct(docs.type) or is_list(docs.type):
        if values is not None:
            raise ColumnError(
                f'column "{column}" holds {docs.type}, which includes values, and there is also column '
                f'"{found.value}" is there; name the one column as {_LISTED[role]}="{column}"'
            )
        docs, values, roles = _halves(column, docs, role, roles)
    elif values is not None:
        if not is_list(values.type):
            raise InputTypeError(
                f'column "{column}" holds lists and column "{found.value}" {values.type}; expected both as '
                "lists, a row for each query, or neither, a row for each document"
            )
        own, values = split_lists(found.value or "", values, lists)
        if not np.array_equal(own, offsets):
            row = int(np.argmax(np.diff(own) != np.diff(offsets)))
            raise InputError(
                f"query {lists.name_of(row)} has {count_of(np.diff(offsets)[row], 'document')} in column "
                f'"{column}" and {np.diff(own)[row]:,} values in column "{found.value}"; '
                "expected one for each"
            )
    elif (given := _given_values(role, roles)) is not None:
        raise ColumnError(f'there is no column "{given}", and column "{column}" holds lists of ids alone')
    elif role == "relevance":
        values = column_of(np.ones(len(docs), np.int64))
    else:
        roles, values = _best_first(name, roles), column_of(falling_ranks(offsets))
    docs = _checked_ids(column, docs, "document", of_rows, is_text=is_text)
    codes = codes_from(offsets)

    def place(row: int) -> str:
        return f"{name}, row {of_rows.number(int(codes[row]))}"

    side = Side(name, combine(decode(query)), codes, docs, np.empty(0), place)
    return side, values, Blame(offsets, query, None), roles


def _as_structs(column: str, maps: pa.ChunkedArray, lists: Blame) -> pa.ChunkedArray:
    """A map for each query as a list of structs of key and value."""
    if maps.null_count:
        raise nulls_in(column_name(column), maps, lists, ". Give a query without documents an empty map.")
    whole = combine(maps)
    structs = pa.StructArray.from_arrays([whole.keys, whole.items], ["key", "value"])
    return pa.chunked_array([pa.ListArray.from_arrays(whole.offsets, structs)])


def _halves(column: str, pairs: pa.ChunkedArray, role: Role, roles: Roles) -> tuple[Any, Any, Roles]:
    """The documents and the values of structs or of pairs, and the roles that say how these order."""
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
    if (given := _given_values(role, roles)) is not None:
        raise ColumnError(f'there is no column "{given}", and column "{column}" holds pairs without names')
    sizes = array_of(pc.fill_null(pc.list_value_length(pairs), 0))
    if (sizes != 2).any():
        raise InputTypeError(
            f'column "{column}" holds lists of lists of {sizes[np.argmax(sizes != 2)]} values; expected '
            "pairs of a document and its value"
        )
    flat, first = pc.list_flatten(pairs), np.arange(0, 2 * len(pairs), 2)
    return flat.take(column_of(first)), flat.take(column_of(first + 1)), roles


def _checked_ids(name: str, column: pa.ChunkedArray, of: str, blame: Blame, *, is_text: bool) -> Any:
    ids = without_points(column) if is_text else whole_ids(column)
    if ids.null_count:
        raise nulls_in(column_name(name), ids, blame)
    if pa.types.is_floating(ids.type) or pa.types.is_nested(ids.type):
        raise InputTypeError(f'column "{name}" is {ids.type}; expected whole numbers or strings as {of} ids')
    return ids


def _of_queries(table: pa.Table, found: Found, numbers: int | Array, *, is_text: bool) -> dict[str, Any]:
    """Fields of a side: the kept columns and weights of its queries."""
    weight = found.roles.weight
    of_queries = kept_by_query(table, found.query, found.kept, numbers)
    weights = (
        None if weight is None else numbers_in(column_name(weight), of_queries[weight], "weights", BY_ROW)
    )
    names = [name for name in found.kept if name != weight]
    columns = [of_queries[name] for name in names]
    columns = [integers_if_written_so(column) for column in columns] if is_text else columns
    return {"kept": pa.table(columns, names=names) if names else None, "weight": weights}
