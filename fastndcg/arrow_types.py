"""Arrow arrays of all types brought to the few that are computed with: one chunk, no views, no dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.later import pa

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def decoded(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def plain_strings(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Views of strings as strings, which all of Arrow's functions know."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def combined(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
