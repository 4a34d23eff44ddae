"""A side of a join, the judgments or the run: a row for each document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.arrays import JOINED, Array, negate, offsets_from
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    decode,
    is_binary,
    places_of,
    plain,
    whole_ids,
    without_points,
)
from fastndcg.errors import (
    ColumnError,
    FastndcgError,
    InputError,
    InputTypeError,
)
from fastndcg.tables.arrow import columns_of_queries
from fastndcg.tables.grouping import group_rows
from fastndcg.tables.intents import IntentGrades
from fastndcg.tables.locations import BY_ROW, Blame, shown
from fastndcg.tables.roles import (
    Columns,
    Roles,
    check_column,
    find_column,
    find_order,
    fitting,
    named_columns,
    normalised,
)
from fastndcg.tables.values import grades_in, integers_if_written_so, nulls_in, numbers_in, scores_in, whole

if TYPE_CHECKING:
    from collections.abc import Callable


Role = Literal["relevance", "score"]

# the column of each role of judgments or a run
Taken = dict[str, str]

_OF_TABLES = {"relevance": ("grades", "keep", "weight"), "score": ("rank",)}


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
    is_ordered: bool = False  # the values were ranks, or scores of which the lowest is the best


def refuse_columns(name: str, role: Role, roles: Roles, what: str) -> None:
    """Raise for names of columns where the input has none."""
    for argument in _OF_TABLES[role]:
        needs_none = argument == "grades" and (roles.one_grade is not None or roles.new_grades)
        if not getattr(roles, argument) or needs_none:
            continue
        if argument == "keep":  # which the cutoffs of a measure may ask for
            column = roles.keep if isinstance(roles.keep, str) else roles.keep[0]
            raise ColumnError(f'there is no column "{column}": {name} is {what}; give a table')
        raise ColumnError(f"{argument}= is of a column, and {name} is {what}; give a table")


def in_order(side: Side, role: Role, roles: Roles) -> Side:
    """A side without columns, with the grades that are asked for, and with the highest score the best."""
    if role == "relevance" and roles.one_grade is not None:
        return side._replace(values=np.full(len(side.codes), roles.one_grade))
    if role == "relevance" and (new := roles.new_grades):
        if side.intents is not None:
            raise ColumnError(f"grades= is of a column, and {side.name} has intents; give a table")
        levels, codes = np.unique(side.values, return_inverse=True)
        lacks = np.array([float(level) not in new for level in levels], np.bool_)
        if lacks.any():
            row, those = int(np.argmax(lacks[codes])), ", ".join(f"{old:g}" for old in new)
            raise InputError(
                f"{side.place(row)}: the grade is {side.values[row]:g}, for which grades= has no grade; "
                f"it has one for {those}"
            )
        values = whole(np.array([new[float(level)] for level in levels], np.float64))
        return side._replace(values=values[codes])
    if role == "score" and roles.ascending and not side.is_ordered:
        return side._replace(values=negate(side.values), is_ordered=True)
    return side


def side_of(
    name: str,
    query: pa.Array | pa.ChunkedArray,
    docs: pa.Array | pa.ChunkedArray,
    values: Array,
    numbers: int | Array = 0,
) -> Side:
    """A side from columns."""
    grouped = group_rows(query if isinstance(query, pa.ChunkedArray) else pa.chunked_array([query]))
    codes, queries = grouped.codes_of_rows.astype(np.int64, copy=False), combine(decode(grouped.query_ids))
    blame = Blame(numbers=numbers)
    return Side(name, queries, codes, docs, values, lambda row: f"{name}, row {blame.number(row)}")


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
        raise InputTypeError(f"{side.name} has {what}s of dtype {side.values.dtype}; wanted numbers")
    if side.values.dtype.kind != "f":
        return
    bad = np.isnan(side.values) if what == "score" else ~np.isfinite(side.values)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{side.place(row)}: {what} {side.values[row]} of {name_of(side, row)}; {bad.sum():,} in all. "
            f"""Drop those rows{' or pass nan="last"' if what == "score" else ""}."""
        )


def name_of(side: Side, row: int) -> str:
    return f"document {shown(side.docs[row])} of query {shown(side.queries[int(side.codes[row])])}"


def plain_ids(ids: Any) -> pa.Array:
    ids = decode(ids)
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.large_binary() if is_binary(ids.type) else pa.large_string())
    return combine(ids)


# ---- tables ----


class _Found(NamedTuple):
    """Columns of judgments or of a run."""

    query: str
    doc_id: str
    value: str | None  # grades, scores or ranks; None if all judgments have one grade
    intent: str | None
    kept: list[str]  # of judgments
    roles: Roles

    @property
    def names(self) -> list[str]:
        named = (self.query, self.doc_id, self.value, self.intent, *self.kept)
        return list(dict.fromkeys(name for name in named if name is not None))

    def taken(self, role: Role) -> Taken:
        order = "rank" if role == "score" and self.roles.rank is not None else role
        value = {} if self.value is None else {order: self.value}
        return {"query": self.query, "doc_id": self.doc_id} | value


def find_columns(name: str, present: list[str], role: Role, roles: Roles, *, intents: bool) -> _Found:
    """The columns of judgments or of a run."""
    kept: dict[str, None] = {}
    try:
        value: str | None
        if role == "relevance":
            value = _find_grades(present, roles)
            kept = dict.fromkeys(named_columns(present, "keep", roles.keep))
            kept |= {} if roles.weight is None else {check_column(present, "weight", roles.weight): None}
        else:
            roles, value = find_order(present, roles)
        query, doc_id = (find_column(present, each, getattr(roles, each)) for each in ("query", "doc_id"))
        intent = find_column(present, "intent", roles.intents) if intents else None
        return _Found(query, doc_id, value, intent, [each for each in kept if each != query], roles)
    except ColumnError as error:
        raise ColumnError(f"{name}: {error}") from None


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


def table_side(
    name: str, table: pa.Table, found: _Found, role: Role, numbers: int | Array = 0, *, is_text: bool = False
) -> Side:
    """A side of rows of a table with these numbers, or the first of which has this number."""
    graded, roles, blame = None, found.roles, Blame(numbers=numbers)
    of_values, of_queries = found.value or "", dict[str, Any]()
    try:
        named = [each for each in (found.query, found.doc_id, found.intent) if each is not None]
        as_ids = without_points if is_text else whole_ids
        query, doc, *intent = ids = [as_ids(plain(table[column])) for column in named]
        for column, held in zip(named, ids, strict=True):
            if held.null_count:
                raise nulls_in(column, held, blame)
        for column, held, of in zip(named, ids, ("query", "document"), strict=False):
            if pa.types.is_floating(held.type) or pa.types.is_nested(held.type):
                raise InputTypeError(
                    f'column "{column}" is {held.type}; wanted whole numbers or strings as {of} ids'
                )
        columns = Columns(
            relevance=of_values, score=of_values, nan="last", ascending=roles.ascending,
            unjudged=roles.unjudged, grades=roles.grades,
        )  # fmt: skip
        if found.value is None:
            values = np.full(len(table), roles.one_grade)
        elif role == "relevance":
            values, graded = grades_in(columns, plain(table[of_values]), blame)
        else:  # nulls are NaN, which pandas writes as null: refused or ranked last where they are joined
            values = scores_in(columns, plain(table[of_values]), blame)
        if found.kept:
            of_queries = _columns_of_queries(table, found, numbers, is_text=is_text)
    except FastndcgError as error:
        said = str(error).replace(JOINED, "")  # which these judgments are not
        raise type(error)(f"{name}: {said}") from None
    side = side_of(name, query, doc, values, numbers)._replace(
        query_name=found.query, column=of_values, is_ordered=roles.ascending, **of_queries
    )
    intents = combine(intent[0]) if intent else None
    if graded is not None:
        rows = np.flatnonzero(graded)
        side = rows_of(side, rows)
        intents = None if intents is None else intents.take(column_of(rows))
    return side if intents is None else by_document(side, intents)


def _columns_of_queries(
    table: pa.Table, found: _Found, numbers: int | Array, *, is_text: bool
) -> dict[str, Any]:
    """Fields of a side: the kept columns and weights of its queries."""
    weight = found.roles.weight
    of_queries = columns_of_queries(table, found.query, found.kept, numbers)
    weights = None if weight is None else numbers_in(weight, plain(of_queries[weight]), "weights", BY_ROW)
    names = [name for name in found.kept if name != weight]
    columns = [of_queries[name] for name in names]
    columns = [integers_if_written_so(column) for column in columns] if is_text else columns
    return {"kept": pa.table(columns, names=names) if names else None, "weight": weights}
