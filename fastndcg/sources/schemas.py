"""Tables and files as one: the type that holds the values of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, is_list, is_number, is_text, without_views
from fastndcg.errors import SourceError


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
                "expected types that fit together without loss. Write the files with one type."
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
