"""A side of a join, the judgments or the run: a row for each document."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import JOINED, Array, Int64, offsets_from
from fastndcg.common.arrow_types import array_of, column_of, combine, decode, is_binary, places_of
from fastndcg.errors import FastndcgError, InputError, InputTypeError
from fastndcg.tables.checks import or_last
from fastndcg.tables.grouping import group_rows
from fastndcg.tables.intents import IntentGrades
from fastndcg.tables.locations import shown
from fastndcg.tables.values import grades_in, scores_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastndcg.tables.locations import Blame
    from fastndcg.tables.roles import Roles

Role = Literal["relevance", "score"]


class Side(NamedTuple):
    """The judgments or the run: a row for each of its documents."""

    name: str
    queries: pa.Array  # distinct query ids in order of first appearance
    codes: Array  # for each row, which of `queries`
    docs: pa.Array | pa.ChunkedArray
    values: Array  # grades or scores
    place: Callable[[int], str]  # where a row was found, for messages
    tag: str = ""  # name of a TREC run, as its last line has it
    query_name: str = "query_id"  # what query ids are called
    intents: IntentGrades | None = None  # of each row, where judgments are of intents
    kept: pa.Table | None = None  # columns of `queries`
    weight: Array | None = None
    column: str = ""  # of the values, in a table
    ranks: str | None = None  # the column of ranks beside that of scores
    is_ordered: bool = False  # the values were ranks, or scores of which the lowest is the best


def side_of(
    name: str,
    query: pa.Array | pa.ChunkedArray,
    docs: pa.Array | pa.ChunkedArray,
    place: Callable[[int], str] = str,
    offsets: Int64 | None = None,
) -> Side:
    """A side without values of the query and the document of each row, or, with `offsets`, of a query for
    each list of documents.
    """
    grouped = group_rows(query if isinstance(query, pa.ChunkedArray) else pa.chunked_array([query]))
    codes = grouped.codes_of_rows.astype(np.int64, copy=False)
    codes = codes if offsets is None else np.repeat(codes, np.diff(offsets))
    return Side(name, combine(decode(grouped.query_ids)), codes, docs, np.empty(0), place)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the name of a side before messages about its columns."""
    try:
        yield
    except FastndcgError as error:
        said = str(error).replace(JOINED, "")  # which these judgments are not
        raise type(error)(said if said.startswith(name) else f"{name}: {said}") from None


def with_values(
    side: Side, role: Role, roles: Roles, column: Any, blame: Blame, intents: pa.Array | None = None
) -> Side:
    """A side with the grades or scores of a column as the roles say, the highest score the best.

    Rows without a grade are left out where `unjudged` allows them, and then, with `duplicates="first"`, those
    of a document that was there before. `intents` has the intent of each judgment.
    """
    graded = None
    if role == "score":  # nulls are NaN, which pandas writes as null: refused or ranked last by the join
        values = scores_in(roles, column, blame, "last")
    elif roles.one_grade is not None:
        values = np.full(len(side.codes), roles.one_grade)
    else:
        values, graded = grades_in(roles, column, blame)
    side = side._replace(values=values)
    if graded is not None:
        rows = np.flatnonzero(graded)
        side = rows_of(side, rows)
        intents = None if intents is None else intents.take(column_of(rows))
    if roles.duplicates == "first":
        rows = rows_of_first(side, intents)
        side, intents = rows_of(side, rows), None if intents is None else intents.take(column_of(rows))
    return side if intents is None else by_document(side, intents)


def first_of_each(side: Side) -> Side:
    """A side with the first row of each document of a query."""
    return rows_of(side, rows_of_first(side))


def rows_of_first(side: Side, intents: pa.Array | None = None) -> Array:
    """The first row of each document of a query, and of each intent where there are some."""
    keys = side.codes.astype(np.int64)
    for column in [side.docs, *([] if intents is None else [intents])]:
        coded = plain_ids(column).dictionary_encode()
        keys = keys * len(coded.dictionary) + array_of(coded.indices)
    return np.sort(np.unique(keys, return_index=True)[1])


def by_document(side: Side, names: pa.Array) -> Side:
    """A row for each judged document instead of one for each of its intents, documents of a query by falling
    id.

    Its grade is its highest. Intents are numbered in each query by their names.
    """
    check_values(side, "grade")
    docs, intents = (plain_ids(ids).dictionary_encode() for ids in (side.docs, names))
    document = -places_of(docs.dictionary)[array_of(docs.indices)]
    intent = places_of(intents.dictionary)[array_of(intents.indices)]
    width = len(intents.dictionary) + 1
    pairs, number = np.unique(side.codes.astype(np.int64) * width + intent, return_inverse=True)
    number -= np.searchsorted(pairs, np.arange(len(side.queries)) * width)[side.codes]
    order = np.lexsort((number, document, side.codes))
    codes, document, number = side.codes[order], document[order], number[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (codes[1:] != codes[:-1]) | (document[1:] != document[:-1])
    twice = np.flatnonzero(~new[1:] & (number[1:] == number[:-1]))
    if len(twice):
        first, second = sorted(order[twice[0] : twice[0] + 2].tolist())
        raise InputError(
            f"{side.place(second)}: {name_of(side, second)} has two grades for intent "
            f"{shown(names[second])}, the first at {side.place(first)}; drop one of the two"
        )
    starts, values = np.flatnonzero(new), side.values[order]
    judged = values >= 0
    ends = offsets_from(judged)[np.append(starts, len(order))]
    return rows_of(side, order[starts])._replace(
        values=np.maximum.reduceat(values, starts) if len(starts) else values,
        intents=IntentGrades(ends, number[judged], values[judged]),
    )


def rows_of(side: Side, rows: Array) -> Side:
    return side._replace(
        codes=side.codes[rows],
        docs=side.docs.take(column_of(rows)),
        values=side.values[rows],
        intents=None if side.intents is None else side.intents.take(rows),
        place=lambda row: side.place(int(rows[row])),
    )


def check_values(side: Side, what: Literal["grade", "score"]) -> None:
    """Raise for values that rankings cannot hold, while file and line are still known."""
    if side.values.dtype.kind not in "buif":
        raise InputTypeError(f"{side.name} has {what}s of dtype {side.values.dtype}; expected numbers")
    if side.values.dtype.kind != "f":
        return
    bad = np.isnan(side.values) if what == "score" else ~np.isfinite(side.values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{side.place(row)}: {what} {side.values[row]} of {name_of(side, row)}; {bad.sum():,} in all. "
            f"{or_last(side.ranks)[2:] if what == 'score' else 'Drop those rows.'}"
        )


def name_of(side: Side, row: int) -> str:
    return f"document {shown(side.docs[row])} of query {shown(side.queries[int(side.codes[row])])}"


def plain_ids(ids: Any) -> pa.Array:
    ids = decode(ids)
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.large_binary() if is_binary(ids.type) else pa.large_string())
    return combine(ids)
