"""Tables and files as one: the type that holds the values of all, and documents that stand in two files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import (
    array_of,
    combine,
    decode,
    is_list,
    is_number,
    is_text,
    without_views,
)
from fastndcg.common.table import quoted
from fastndcg.errors import Argument, ColumnError, InputError, SourceError, Step
from fastndcg.rankings.blame import shown
from fastndcg.sources.columns import Columns, fitting

if TYPE_CHECKING:
    from fastndcg.common.arrays import Int64
    from fastndcg.rankings.grouping import Grouped


def common_type(
    name: str,
    kinds: Sequence[tuple[str, pa.DataType]],
    join: Callable[[pa.DataType, pa.DataType], pa.DataType | None] | None = None,
) -> pa.DataType:
    """The type of a column that all files have, of their paths and types. Raises `SourceError`."""
    first, common = kinds[0]
    for path, kind in kinds[1:]:
        joined = (join or joined_type)(common, kind)
        if joined is None:
            raise SourceError(
                f'column "{name}" is {common} in {first} and {kind} in {path}; '
                "wanted types that fit together without loss. Write the files with one type."
            )
        if joined != common:
            first, common = path, joined
    return common


def joined_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both without loss, if there is one.

    >>> joined_type(pa.int8(), pa.int32()), joined_type(pa.int64(), pa.float64())
    (DataType(int32), None)
    """
    types = pa.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_dictionary(one) or types.is_dictionary(other):
        return joined_type(*(kind.value_type if types.is_dictionary(kind) else kind for kind in (one, other)))
    if is_text(one) and is_text(other):
        return pa.large_string()
    if all(types.is_binary(kind) or types.is_large_binary(kind) for kind in map(without_views, (one, other))):
        return pa.large_binary()
    if is_list(one) and is_list(other):
        values = joined_type(one.value_type, other.value_type)
        return None if values is None else pa.large_list(values)
    kinds = [array_of(pa.array([], kind)).dtype for kind in (one, other) if is_number(kind)]
    if len(kinds) < 2:
        return None
    joined = np.promote_types(*kinds)
    exact = all(
        kind.kind == joined.kind or kind.itemsize < 8 for kind in kinds
    )  # no float holds all 64-bit integers
    return pa.from_numpy_dtype(joined) if exact else None


def permissive_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type to which pyarrow promotes both, as it does of rows of text, if there is one.

    >>> permissive_type(pa.int64(), pa.float64()), permissive_type(pa.int64(), pa.string())
    (DataType(double), None)
    """
    schemas = [pa.schema([("", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


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
            codes = grouped.codes_of_rows
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
        wanted = np.flatnonzero(is_wanted[grouped.codes_of_rows])
        self.left -= len(wanted)
        places = wanted + numbers if isinstance(numbers, int) else numbers[wanted]
        try:
            coded = combine(decode(self.read(np.sort(places))).dictionary_encode())
        except ColumnError:
            return  # not all files have it
        codes, query = array_of(coded.indices, -1), grouped.codes_of_rows[wanted[np.argsort(places)]]
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


def id_to_check(names: Sequence[str], columns: Columns) -> str | None:
    """The column of document ids by which doubled documents are found where no ids are asked for."""
    found = fitting(names, "doc_id") if columns.doc_id is None and columns.query is not None else []
    return found[0] if len(found) == 1 and found[0] not in columns.names else None
