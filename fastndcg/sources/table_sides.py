"""Sides from tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import JOINED
from fastndcg.common.arrow_types import column_of, combine, plain, whole_ids, without_points
from fastndcg.errors import Argument, ColumnError, FastndcgError, InputTypeError, Step
from fastndcg.rankings.blame import BY_ROW, Blame
from fastndcg.sources.columns import (
    Columns,
    Roles,
    check_column,
    find_column,
    find_order,
    fitting,
    kept_names,
    normalised,
)
from fastndcg.sources.sides import Role, Side, by_document, side_of
from fastndcg.sources.values import grades_in, numbers_in, refuse_nulls, scores_in

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = npt.NDArray[Any]

# the column of each role of judgments or a run
Taken = dict[str, str]


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
            value = find_grades(present, roles)
            kept = dict.fromkeys(kept_names(present, roles.keep))
            kept |= {} if roles.weight is None else {check_column(present, "weight", roles.weight): None}
        else:
            roles, value = find_order(present, roles)
        query, doc_id = (find_column(present, each, getattr(roles, each)) for each in ("query", "doc_id"))
        intent = find_column(present, "intent", roles.intents) if intents else None
        return _Found(query, doc_id, value, intent, [each for each in kept if each != query], roles)
    except ColumnError as error:
        raise error.within(f"{name}: ") from None


def table_side(
    name: str, table: pa.Table, found: _Found, role: Role, first_row: int = 0, *, is_text: bool = False
) -> Side:
    graded, roles, blame = None, found.roles, Blame(numbers=first_row)
    try:
        named = [each for each in (found.query, found.doc_id, found.intent) if each is not None]
        as_ids = without_points if is_text else whole_ids
        query, doc, *intent = ids = [as_ids(plain(table[column])) for column in named]
        for column, held in zip(named, ids, strict=True):
            refuse_nulls(column, held, blame)
        for column, held, of in zip(named, ids, ("query", "document"), strict=False):
            if pa.types.is_floating(held.type) or pa.types.is_nested(held.type):
                raise InputTypeError(
                    f'column "{column}" is {held.type}; wanted whole numbers or strings as {of} ids'
                )
        of_values = found.value or ""
        columns = Columns(
            relevance=of_values, score=of_values, nan="last", ascending=roles.ascending,
            unjudged=roles.unjudged, grades=roles.grades,
        )  # fmt: skip
        if found.value is None:
            values = np.full(len(table), roles.one_grade)
        elif role == "relevance":
            values, graded = grades_in(columns, table[of_values], blame)
        else:  # nulls are NaN, which pandas writes as null: refused or ranked last where they are joined
            values = scores_in(columns, table[of_values], blame)
        of_queries = _columns_of_queries(
            table, found.query, found.kept, roles.weight, first_row, is_text=is_text
        )
    except FastndcgError as error:
        parts = (part for part in error.parts if part != JOINED)  # which these judgments are not
        raise type(error)(f"{name}: ", *parts) from None
    side = side_of(name, query, doc, values, first_row)._replace(
        query_name=found.query, column=of_values, is_ordered=roles.ascending, **of_queries
    )
    intents = combine(intent[0]) if intent else None
    if graded is not None:
        rows = np.flatnonzero(graded)
        of_row, docs = side.place, side.docs.take(column_of(rows))
        side = side._replace(
            codes=side.codes[rows], docs=docs, values=values[rows], place=lambda row: of_row(int(rows[row]))
        )
        intents = None if intents is None else intents.take(column_of(rows))
    return side if intents is None else by_document(side, intents)


def _columns_of_queries(
    table: pa.Table, query: str, kept: Sequence[str], weight: str | None, first_row: int, *, is_text: bool
) -> dict[str, Any]:
    """Fields of a side: the kept columns and weights of its queries."""
    if not kept:
        return {}
    from fastndcg.sources.query_columns import columns_of_queries
    from fastndcg.sources.values import integers_if_written_so

    found = columns_of_queries(table, query, kept, first_row)
    weights = None if weight is None else numbers_in(weight, found[weight], "weights", BY_ROW)
    names = [name for name in kept if name != weight]
    columns = [integers_if_written_so(found[name]) if is_text else found[name] for name in names]
    return {"kept": pa.table(columns, names=names) if names else None, "weight": weights}


def find_grades(names: Sequence[str], roles: Roles) -> str | None:
    """The column of grades of judgments; None if `grades` is one number. BEIR calls it "score"."""
    if roles.one_grade is not None:
        if roles.relevance is not None:
            raise ColumnError(
                Argument("relevance", roles.relevance),
                " and ",
                Argument("grades", roles.grades),
                " are given; grades are in a column, or the same for all",
            )
        return None
    if roles.relevance is None and not fitting(names, "relevance"):
        scores = [name for name in names if isinstance(name, str) and normalised(name) == "score"]
        if len(scores) == 1:
            return scores[0]
    try:
        return find_column(names, "relevance", roles.relevance)
    except ColumnError as error:
        if roles.relevance is not None or fitting(names, "relevance"):
            raise
        raise ColumnError(
            *error.parts, Step("; if every row is a relevant document, pass ", Argument("grades", 1))
        ) from None
