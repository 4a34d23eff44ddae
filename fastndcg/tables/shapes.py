"""Judgments and runs in memory, of any shape, as sides of a join: dicts, lists, named tuples, tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import has_offsets, whole_ids
from fastndcg.errors import (
    InputError,
    InputTypeError,
    count_of,
)
from fastndcg.tables.frames import frame_of, is_table
from fastndcg.tables.roles import fitting
from fastndcg.tables.sides import (
    Role,
    Side,
    by_document,
    find_columns,
    in_order,
    refuse_columns,
    side_of,
    table_side,
)

if TYPE_CHECKING:
    from fastndcg.common.arrays import Array
    from fastndcg.tables.roles import Roles

_MOST_COLUMNS = 1000  # of a dict of columns
_AT_ONCE = 1 << 18  # documents of dicts that become arrays together


def side_of_dict(
    name: str, queries: Iterable[tuple[Any, Any]], role: Role, roles: Roles, *, intents: bool = False
) -> Side:
    """A side from queries, each with a dict of its documents, or with a list or a set of them."""
    if intents:
        return in_order(_side_of_intent_dicts(name, queries), role, roles)
    ids, sizes, docs, values, has_lists = list[Any](), list[int](), list[Any](), list[Any](), False
    parts: list[tuple[pa.Array, Array]] = []
    for query, documents in queries:
        if isinstance(documents, Mapping):
            listed, numbers = list(documents), list(documents.values())
        else:
            listed, has_lists = _documents_in(name, query, documents, role), True
            numbers = [1] * len(listed) if role == "relevance" else list(range(len(listed), 0, -1))
        ids.append(query)
        sizes.append(len(listed))
        docs += listed
        values += numbers
        if len(docs) >= _AT_ONCE:
            parts.append((_ids(name, "document", docs), _numbers(name, values)))
            docs, values = [], []
    if docs or not parts:
        parts.append((_ids(name, "document", docs), _numbers(name, values)))
    kinds = {part.type for part, _ in parts}
    if len(kinds) > 1:
        raise _mixed(name, "document", " and ".join(sorted(map(str, kinds))))
    if has_lists and role == "score" and roles.ascending:
        raise InputError(f"ascending=True is for scores, and {name} has lists, which stand best first")
    docs_of_all = parts[0][0] if len(parts) == 1 else pa.chunked_array([part for part, _ in parts])
    codes = np.repeat(np.arange(len(sizes)), sizes)
    side = Side(
        name,
        _ids(name, "query", ids),
        codes,
        docs_of_all,
        np.concatenate([numbers for _, numbers in parts]),
        lambda _: name,
        is_ordered=has_lists and role == "score",
    )
    return in_order(side, role, roles)


def _documents_in(name: str, query: Any, documents: Any, role: Role) -> list[Any]:
    """The documents of a list, best first, or of a set of relevant ones."""
    wanted = f"a dict from document id to {'grade' if role == 'relevance' else 'score'}"
    if isinstance(documents, Set) and role == "score":
        raise InputTypeError(
            f"{name}[{query!r}] is a {type(documents).__name__}, which has no order; "
            f"wanted a list of documents, best first, or {wanted}"
        )
    if isinstance(documents, Set | list | tuple):
        return list(documents)
    if hasattr(documents, "tolist"):  # arrays of NumPy and pyarrow
        found = documents.tolist()
        if isinstance(found, list):
            return found
    raise InputTypeError(
        f"{name}[{query!r}] is a {type(documents).__name__}; wanted {wanted}, or a list of documents"
    )


def side_of_tuples(name: str, data: Iterable[Any], role: Role, *, intents: bool = False) -> Side:
    rows = list(data)
    try:
        query = [row.query_id for row in rows]
        doc = [row.doc_id for row in rows]
        value = [getattr(row, role) for row in rows]
        intent = [row.iteration for row in rows] if intents else None
    except AttributeError as error:
        raise InputTypeError(
            f"{name} holds {type(error.obj).__name__} without {error.name}; "
            f"wanted tuples with query_id, doc_id and {role}"
        ) from None
    return _side_of_rows(name, query, doc, value, intent)


def _side_of_intent_dicts(name: str, queries: Iterable[tuple[Any, Any]]) -> Side:
    rows = []
    for query, documents in queries:
        for document, grades in documents.items() if isinstance(documents, Mapping) else ():
            if not isinstance(grades, Mapping):
                raise InputTypeError(
                    f"{name}[{query!r}][{document!r}] is a {type(grades).__name__}; "
                    "wanted a dict from intent to number"
                )
            rows += [(query, document, grade, intent) for intent, grade in grades.items()]
    return _side_of_rows(name, *(map(list, zip(*rows, strict=True)) if rows else ([], [], [], [])))


def _side_of_rows(
    name: str, queries: list[Any], documents: list[Any], values: list[Any], intents: list[Any] | None
) -> Side:
    ids = _ids(name, "query", queries), _ids(name, "document", documents)
    side = side_of(name, *ids, _numbers(name, values))
    return side if intents is None else by_document(side, _ids(name, "intent", intents))


def _ids(name: str, of: str, values: list[Any]) -> pa.Array:
    if not values:
        return pa.array([], pa.string())
    try:
        ids = whole_ids(pa.array(values))
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise _mixed(name, of, str(error)) from None
    if not (pa.types.is_integer(ids.type) or has_offsets(ids.type)):
        raise InputTypeError(f"{name} has {of} ids that are {ids.type}; wanted strings or whole numbers")
    if ids.null_count:
        raise InputError(
            f"{name} has {count_of(ids.null_count, f'{of} id', 'None')}; give each {of} its id, or drop them"
        )
    return ids


def _mixed(name: str, of: str, what: str) -> InputTypeError:
    return InputTypeError(
        f"{name} has {of} ids of mixed or unknown types: {what}. "
        "Make all of them strings, or all of them whole numbers."
    )


def _numbers(name: str, values: list[Any]) -> Array:
    array = np.array(values) if values else np.empty(0, np.int64)
    if array.dtype.kind not in "buif" or array.ndim != 1:
        raise InputTypeError(
            f"{name} holds values that are not numbers, beginning with {values[0]!r}; "
            "wanted a number for each document"
        )
    return array


def given_side(name: str, data: Any, role: Role, roles: Roles, *, intents: bool = False) -> Side:
    """Judgments or a run in memory. Raises as `Rankings.from_qrels_run` does."""
    if isinstance(data, str | os.PathLike):
        raise InputTypeError(
            f"{name} is the path {os.fspath(data)}; read judgments and a run from files by "
            "read_qrels_run(qrels, run), or give paths to evaluate(qrels, run, measures)"
        )
    if not isinstance(data, Mapping) and not is_table(data) and callable(getattr(data, "to_dict", None)):
        data = data.to_dict()  # ranx's Qrels and Run
    if isinstance(data, Mapping) and not has_columns(data):
        refuse_columns(name, role, roles, "a dict")
        return side_of_dict(name, data.items(), role, roles, intents=intents)
    if isinstance(data, Iterable) and not isinstance(data, Mapping) and not is_table(data):
        refuse_columns(name, role, roles, "no table")
        return in_order(side_of_tuples(name, data, role, intents=intents), role, roles)
    try:
        source = frame_of(data)
    except InputTypeError:
        raise InputTypeError(
            f"{name} is a {type(data).__name__}; wanted a dict of dicts or of lists, a DataFrame, an Arrow "
            f"table, or ir_measures' {'Qrel' if role == 'relevance' else 'ScoredDoc'} tuples"
        ) from None
    found = find_columns(name, list(source.names), role, roles, intents=intents)
    return table_side(name, source.table(found.names), found, role)


def has_columns(data: Mapping[Any, Any]) -> bool:
    """Whether a dict has columns, of which some are the ids, and not an entry for each query."""
    names = list(data) if len(data) <= _MOST_COLUMNS else []
    return all(fitting(names, role) for role in ("query", "doc_id")) and not any(
        isinstance(column, Mapping) for column in data.values()
    )
