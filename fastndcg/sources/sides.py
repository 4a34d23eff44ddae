"""A side of a join: the judgments or the run, a row for each document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrays import negate, offsets_from
from fastndcg.common.arrow_types import (
    array_of,
    column_of,
    combine,
    decode,
    has_offsets,
    is_binary,
    places_of,
)
from fastndcg.errors import Argument, ColumnError, Given, InputError, InputTypeError, Step
from fastndcg.rankings.blame import shown
from fastndcg.rankings.grouping import encode, id_column, numbers_of
from fastndcg.rankings.intents import IntentGrades

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastndcg.sources.columns import Roles

Array = npt.NDArray[Any]

Role = Literal["relevance", "score"]

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
        if not getattr(roles, argument) or (argument == "grades" and roles.one_grade is not None):
            continue
        if argument == "keep":  # which the cutoffs of a measure may ask for
            column = roles.keep if isinstance(roles.keep, str) else roles.keep[0]
            given = Given(argument, column)
            raise ColumnError(
                f'there is no column "{column}" for ', given, f": {name} is {what}; give a table"
            )
        raise ColumnError(Argument(argument), f" is of a column, and {name} is {what}; give a table")


def in_order(side: Side, role: Role, roles: Roles) -> Side:
    """A side without columns, with the one grade of judgments, and with the highest score the best."""
    if role == "relevance" and roles.one_grade is not None:
        return side._replace(values=np.full(len(side.codes), roles.one_grade))
    if role == "score" and roles.ascending and not side.is_ordered:
        return side._replace(values=negate(side.values), is_ordered=True)
    return side


def side_of(
    name: str,
    query: pa.Array | pa.ChunkedArray,
    docs: pa.Array | pa.ChunkedArray,
    values: Array,
    first_row: int = 0,
) -> Side:
    ids = id_column(encode_runs(query))
    numbers = numbers_of(ids)
    codes = numbers.codes.astype(np.int64, copy=False)
    queries = ids.dictionary.take(ids.indices.take(pa.array(numbers.first_rows)))
    return Side(name, queries, codes, docs, values, lambda row: f"{name}, row {row + first_row}")


def encode_runs(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Ids as a dictionary. Where rows of a query stand together, only the first of each run is looked up.

    Ids other than whole numbers and texts are returned as they are.
    """
    import pyarrow.compute as pc

    ids = combine(ids)
    if not (pa.types.is_integer(ids.type) or has_offsets(ids.type)):
        return ids
    runs = pc.run_end_encode(ids, run_end_type=pa.int64())
    if 2 * len(runs.values) > len(ids):
        return encode(ids)
    found, lengths = encode(runs.values), np.diff(array_of(runs.run_ends), prepend=0)
    indices = np.repeat(array_of(found.indices), lengths)
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), found.dictionary)


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
    rows = order[starts]
    judged = values >= 0
    ends = offsets_from(judged)[np.append(starts, len(order))]
    return side._replace(
        codes=codes[starts],
        docs=side.docs.take(column_of(rows)),
        values=np.maximum.reduceat(values, starts) if len(starts) else values,
        place=lambda row: side.place(int(rows[row])),
        intents=IntentGrades(ends, number[judged], values[judged]),
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
            "Drop those rows",
            Step(" or pass ", Argument("nan", "last")) if what == "score" else "",
            ".",
        )


def name_of(side: Side, row: int) -> str:
    return f"document {shown(side.docs[row])} of query {shown(side.queries[int(side.codes[row])])}"


def plain_ids(ids: Any) -> pa.Array:
    ids = decode(ids)
    if not pa.types.is_integer(ids.type):
        ids = ids.cast(pa.large_binary() if is_binary(ids.type) else pa.large_string())
    return combine(ids)
