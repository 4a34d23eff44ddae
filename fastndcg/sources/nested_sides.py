"""Sides from JSON objects, dicts and named tuples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import has_offsets, whole_ids
from fastndcg.errors import (
    FastndcgError,
    InputError,
    InputTypeError,
    SourceError,
    count_of,
)
from fastndcg.sources.open_file import unpacked
from fastndcg.sources.sides import Role, Side, by_document, in_order, side_of

if TYPE_CHECKING:
    from fastndcg.common.arrays import Array
    from fastndcg.tables.roles import Roles

_AT_ONCE = 1 << 18  # documents of dicts that become arrays together

_BLANK = re.compile(r"\s*")

WANTED = "one JSON object: query -> document -> number, or query -> list of documents"


def text_of_file(name: str) -> str:
    with unpacked(name) as stream:
        try:
            return bytes(stream.read()).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(f"{name} cannot be read: {error}; wanted text in UTF-8") from None


def queries_of_json(name: str, text: str) -> Iterator[tuple[str, Any]]:
    """The queries of a file, each with its documents, one at a time: dicts of all take much more memory."""
    decoder = json.JSONDecoder(object_pairs_hook=partial(_once, name))
    queries: set[str] = set()
    try:
        at = _blank(text, _blank(text, 0) + 1)
        mark = text[at] if text[at] == "}" else ","
        while mark == ",":
            query, at = decoder.raw_decode(text, at)
            at = _blank(text, at)
            if not isinstance(query, str) or text[at] != ":":
                raise ValueError(f"no query and its documents before character {at:,}")
            documents, at = decoder.raw_decode(text, _blank(text, at + 1))
            if query in queries:
                raise _twice(name, "query", query)
            queries.add(query)
            yield query, documents
            at = _blank(text, at)
            mark, at = text[at], _blank(text, at + 1)
        if mark != "}" or (queries and at < len(text)):
            raise ValueError(f"more than one object before character {at:,}")
    except FastndcgError:
        raise
    except (ValueError, IndexError, RecursionError) as error:
        reason = "it ends too early" if isinstance(error, IndexError) else str(error)
        raise SourceError(f"{name} cannot be read: {reason}; wanted {WANTED}") from None


def _blank(text: str, at: int) -> int:
    """Where the next token begins."""
    return _BLANK.match(text, at).end()  # type: ignore[union-attr] # it always matches


def _once(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _twice(name, "document", next(key for key in keys if keys.count(key) > 1))
    return found


def _twice(name: str, of: str, key: str) -> InputError:
    return InputError(f'{name}: {of} "{key}" is there twice; drop one of the two')


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
