"""Convert Arrow arrays of any type to the few types used here: one chunk, no views, no dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.lazy import pa

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Whether a column of this type holds bytes, which some files store text as."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def has_offsets(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text or bytes contiguously, unlike views."""
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds a list for each row."""
    types, names = pa.types, ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def decode(column: Any) -> Any:
    """Return the values of a dictionary column, or the column unchanged."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def plain(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return the column in a type that all Arrow functions support: no views, run-end encoding or extensions.

    >>> str(plain(pa.array(["a"], pa.string_view())).type)
    'large_string'
    """
    kind, types = column.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.cast(kind.storage_type))
    if types.is_run_end_encoded(kind):
        import pyarrow.compute as pc

        return plain(pc.run_end_decode(column))
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return column.cast(without_views(kind))
    if not types.is_dictionary(kind):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    if types.is_string_view(kind.value_type) or types.is_binary_view(kind.value_type):
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, plain(chunk.dictionary), ordered=kind.ordered)
            for chunk in chunks
        ]
        kind = without_views(kind)
        column = pa.chunked_array(chunks, kind) if isinstance(column, pa.ChunkedArray) else chunks[0]
    if types.is_null(kind.value_type) or any(chunk.dictionary.null_count for chunk in chunks):
        return decode(column)  # so that every null counts as one
    return column


_EXACT = {16: 1 << 11, 32: 1 << 24, 64: 1 << 53}  # whole numbers below it are distinct as floats


def whole_ids(ids: Any) -> Any:
    """Return float ids as integers, undoing pandas' conversion of integers with missing values; NaN is null.

    Other ids, and floats that are not all whole, are returned unchanged.

    >>> whole_ids(pa.array([1.0, 2.0])).type, whole_ids(pa.array([1.5])).type
    (DataType(int64), DataType(double))
    """
    if not pa.types.is_floating(ids.type):
        return ids
    import pyarrow.compute as pc

    floats = ids.cast(pa.float64())
    missing = pc.is_nan(floats)
    if pc.any(missing).as_py():
        floats = pc.if_else(missing, None, floats)
    largest = pc.max(pc.abs(floats)).as_py()
    if largest is not None and largest >= _EXACT[ids.type.bit_width]:
        return ids
    try:
        return floats.cast(pa.int64())
    except pa.ArrowInvalid:
        return ids


def without_points(ids: Any) -> Any:
    """Return ids without a trailing ".0", if all are whole numbers that pandas wrote as floats.

    >>> without_points(pa.array(["7.0", None, "10.0"])).to_pylist()
    ['7', None, '10']
    """
    import pyarrow.compute as pc

    if not len(ids) or not str(ids[0].as_py()).endswith(".0"):
        return ids
    are_whole = pc.all(pc.match_substring_regex(ids, r"^-?(0|[1-9][0-9]*)\.0$")).as_py()
    return pc.utf8_slice_codeunits(ids, 0, -2) if are_whole else ids


def with_long_offsets(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Cast strings of 2 GiB and more to the large type, whose offsets have 64 bits."""
    is_too_long = pa.types.is_string(column.type) and column.nbytes >= 2**31
    return column.cast(pa.large_string()) if is_too_long else column


def combine(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks <= 1:
        return column.chunk(0) if column.num_chunks else pa.nulls(0, column.type)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def array_of(column: pa.Array | pa.ChunkedArray, null: int | None = None) -> Array:
    """Convert a column as `to_numpy` does, with a number for nulls if one is given.

    Numbers are viewed in place, because pyarrow's own conversions, in both directions, import pandas if it is
    installed.

    >>> array_of(pa.chunked_array([[3, 1], [2]])), array_of(pa.array([None, True, False])[1:])
    (array([3, 1, 2]), array([ True, False]))
    >>> array_of(pa.array([7, None, 9])[1:], -1)
    array([-1,  9])
    """
    if isinstance(column, pa.ChunkedArray):
        column = combine(column)
    kind, missing = column.type, column.null_count
    if is_number(kind) and (not missing or null is not None):
        held = column.buffers()[1] or b""
        numbers = np.frombuffer(held, kind.to_pandas_dtype(), column.offset + len(column))[column.offset :]
        return np.where(_bits(column, 0), numbers, numbers.dtype.type(null)) if missing else numbers
    if pa.types.is_boolean(kind) and not missing:
        return _bits(column, 1)
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _bits(column: pa.Array, buffer: int) -> npt.NDArray[np.bool_]:
    held = np.frombuffer(column.buffers()[buffer] or b"", np.uint8)
    bits = np.unpackbits(held, count=column.offset + len(column), bitorder="little")
    return bits[column.offset :].view(np.bool_)


def column_of(numbers: Array, kind: pa.DataType | None = None) -> pa.Array:
    """Return numbers as a column of a type of their size, without a copy or checks.

    >>> column_of(np.array([3, 1])).to_pylist()
    [3, 1]
    """
    held = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(kind or pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, held])


def in_runs(ends: pa.Array, values: pa.Array) -> pa.RunEndEncodedArray:
    """Row i of the result holds the values up to row i. pyarrow's own way imports pandas wherever it is
    installed, in 0.3 s, as do `pa.array`, `pa.scalar` and `Schema.empty_table`.

    >>> in_runs(pa.array([2, 3], pa.int32()), pa.array([7, 8])).to_pylist()
    [7, 7, 8]
    """
    kind = pa.run_end_encoded(ends.type, values.type)
    return pa.Array.from_buffers(kind, ends[-1].as_py(), [None], 0, children=[ends, values])


def places_of(ids: pa.Array) -> Int64:
    """Return the rank of each of these distinct ids in ascending order, texts by their bytes.

    >>> places_of(pa.array(["b", "é", "B"]))
    array([1, 2, 0])
    """
    import pyarrow.compute as pc

    places = np.empty(len(ids), np.int64)
    places[array_of(pc.sort_indices(ids))] = np.arange(len(ids))
    return places


def without_views(kind: pa.DataType) -> pa.DataType:
    """Return the plain type of values: not every pyarrow function supports views.

    >>> without_views(pa.list_(pa.binary_view()))
    LargeListType(large_list<item: large_binary>)
    """
    types = pa.types
    if types.is_string_view(kind):
        return pa.large_string()
    if types.is_binary_view(kind):
        return pa.large_binary()
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, without_views(kind.value_type), kind.ordered)
    if not is_list(kind) or types.is_fixed_size_list(kind):
        return kind
    values = without_views(kind.value_type)
    return kind if values == kind.value_type else pa.large_list(values)
