"""Array helpers: offsets, views, order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrow_types import array_of, column_of, combine, plain
from fastndcg.common.lazy import is_arrow, pa
from fastndcg.errors import (
    InputError,
    InputTypeError,
    check_choice,
    check_length,
    count_of,
)

Array = npt.NDArray[Any]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# advice on missing grades
JOINED = (
    ", or, if a left join of a run with judgments left them, use Rankings.from_qrels_run(qrels=..., run=...)"
)
OR_FIRST = ', or pass duplicates="first" to keep the first'
OR_UNJUDGED = f', or pass unjudged="null" where nobody judged those documents{JOINED}'


def codes_from(offsets: Int64) -> Int64:
    """Return the group of each row: the inverse of `offsets_from` over the lengths of groups.

    >>> codes_from(np.array([0, 2, 2, 3]))
    array([0, 0, 2])
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def offsets_from(lengths: npt.ArrayLike) -> Int64:
    """Return the offsets of lists of these lengths.

    >>> offsets_from([2, 0, 1])
    array([0, 2, 2, 3])
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64, copy=False)


def runs_of(starts: Int64 | int, lengths: Int64) -> Int64:
    """Return start, start + 1, ... of each run, concatenated.

    >>> runs_of(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)


def parts_of(offsets: Int64, most: int) -> Iterator[slice]:
    """Yield runs of lists with at most `most` entries together, or of one longer list.

    >>> list(parts_of(offsets_from([2, 1, 5, 1]), 3))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    first = 0
    while first < len(offsets) - 1:
        last = max(int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1, first + 1)
        yield slice(first, last)
        first = last


def unmask(name: str, values: Any, unjudged: str = "refuse") -> Any:
    """Return values unchanged, except masked arrays of NumPy, whose data is returned, and tensors, which are
    moved to the processor.

    With unjudged="null", masked, null and None values become NaN, and all values floats. Otherwise raises
    `InputError` for a masked value.

    >>> unmask("relevance", [3, None], "null"), unmask("relevance", np.ma.masked_equal([3, 0], 0), "null")
    (array([ 3., nan]), array([ 3., nan]))
    """
    check_choice("unjudged", unjudged, ("refuse", "null"))
    # importing it takes 15 ms, and no masked array exists before
    kind = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    is_masked = kind is not None and isinstance(values, kind)
    if unjudged == "null":
        return _with_nan(name, values, is_masked=is_masked)
    if not is_masked:
        return _on_processor(values)
    masked = np.ma.getmaskarray(values).ravel()
    if masked.any():
        raise InputError(
            f"{name} has {count_of(int(masked.sum()), 'masked value')}; "
            f"the first is at position {int(np.argmax(masked))}. "
            "Drop those rows, or fill them, as in values.filled(0)"
            f"{OR_UNJUDGED if name in ('relevance', 'y_true') else ''}."
        )
    return values.data


def _with_nan(name: str, values: Any, *, is_masked: bool) -> Any:
    """Return values unchanged if none is missing, otherwise as floats with NaN."""
    if is_arrow(values):
        if not values.null_count:
            return values
        floats = combine(values).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        is_exact = pa.types.is_floating(values.type)
    elif is_masked:
        if not np.ma.is_masked(values):
            return values.data
        floats, is_exact = values.astype(np.float64).filled(np.nan), values.dtype.kind == "f"
    else:
        array = np.asarray(_on_processor(values))
        if array.dtype.kind != "O":
            return array
        try:  # pandas' NA is not a float
            floats = (
                values.to_numpy(np.float64, na_value=np.nan)
                if hasattr(values, "to_numpy")
                else array.astype(float)
            )
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"{name} is not an array of numbers: {error}") from None
        is_exact = False
    if not is_exact and (abs(floats) >= 1 << 53).any():
        raise InputError(
            f"{name} has nulls and whole numbers beyond 2^53, which floats cannot tell apart. "
            "Drop the rows with nulls."
        )
    return floats


def _on_processor(values: Any) -> Any:
    """Convert a tensor of PyTorch, CuPy or JAX to NumPy, without a copy if possible; others stay."""
    # Arrow's nulls are not numbers
    if not hasattr(values, "__dlpack__") or isinstance(values, np.ndarray) or is_arrow(values):
        return values
    if hasattr(values, "detach"):  # PyTorch's may require a gradient, or have a dtype that NumPy lacks
        values = values.detach().cpu()
        return np.asarray(values.float() if str(values.dtype) == "torch.bfloat16" else values)
    array = values.get() if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get") else values
    array = np.asarray(array) if hasattr(array, "__array__") else np.from_dlpack(array)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def as_array(name: str, values: Any, unjudged: str = "refuse") -> Array:
    values = unmask(name, values, unjudged)
    if isinstance(values, np.ndarray):
        array = values
    elif is_arrow(values):
        if values.null_count:
            raise InputError(
                f"{name} has {count_of(values.null_count, 'null')}. Drop those rows or fill them"
                f"{OR_UNJUDGED if name in ('relevance', 'y_true') else ''}."
            )
        array = array_of(combine(values))
    else:
        try:
            array = np.asarray(values)
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"{name} is not an array of numbers: {error}") from None
    if array.ndim != 1:
        raise InputError(
            f"{name} has shape {array.shape}; expected one dimension. "
            "Use from_dense for a matrix, from_lists for lists."
        )
    return array


def split_unjudged(grades: Array, is_judged: Flags | None = None) -> tuple[Array, Flags | None]:
    """Return grades with 0 for NaN, and which documents were judged: those marked by `is_judged` that are not
    NaN.

    >>> split_unjudged(np.array([1.0, np.nan]))
    (array([1., 0.]), array([ True, False]))
    """
    if grades.dtype.kind != "f" or not len(grades) or not np.isnan(grades.min()):
        return grades, is_judged
    missing = np.isnan(grades)
    return np.where(missing, grades.dtype.type(0), grades), combine_flags(is_judged, ~missing)


def combine_flags(one: Flags | None, other: Flags | None) -> Flags | None:
    """Return which documents are judged according to both masks; None means all."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


def negate(numbers: Array) -> Array:
    """Return keys that ascend as numbers descend; equal numbers have equal keys.

    >>> negate(np.array([1, 200], np.uint8)), negate(np.array([-(2**63)])), negate(np.array([0.5]))
    (array([  -1, -200]), array([9223372036854775807]), array([-0.5]))
    """
    if numbers.dtype.kind == "f":
        return -numbers
    low, high = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if low == -(2**63) or high >= 2**63:  # -1 - number, which fits for every integer
        return ~numbers
    return -numbers.astype(np.int64)


def falling_keys(scores: Array) -> Int64:
    """Return keys that sort scores in descending order; equal scores have equal keys.

    >>> falling_keys(np.array([0.5, -0.0, 2.0, 0.0])).argsort(kind="stable")
    array([2, 0, 1, 3])
    """
    if scores.dtype == np.uint64:
        rising = (scores ^ np.uint64(1 << 63)).view(np.int64)
    elif scores.dtype.kind in "bui":
        rising = scores.astype(np.int64)
    else:
        bits = (scores.astype(np.float64) + 0.0).view(np.int64)  # + 0.0 makes -0.0 the zero it equals
        rising = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    return ~rising


def offsets_of(chosen: npt.NDArray[np.bool_], offsets: Int64) -> Int64:
    """Return the offsets of only the chosen documents.

    >>> offsets_of(np.array([True, False, True]), np.array([0, 2, 3]))
    array([0, 1, 2])
    """
    return read_only(offsets_from(chosen)[offsets])


def read_only(array: Array) -> Array:
    """Return a read-only view. Writeable arrays would need kernels compiled for them."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def plain_numbers(array: Array) -> Array:
    """Return numbers for kernels: booleans as 0 and 1, half floats as float32, contiguous, native."""
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    is_half = array.dtype.kind == "f" and array.itemsize == 2
    kind = np.dtype(np.float32) if is_half else array.dtype.newbyteorder("=")
    return read_only(np.ascontiguousarray(array, dtype=kind))


def freeze(values: Any, dtype: npt.DTypeLike) -> Array:
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array


def arrow_column(name: str, values: Any, rows: int | None = None) -> pa.Array | pa.ChunkedArray:
    column = values = unmask(name, values)
    if not is_arrow(values):
        try:
            if hasattr(values, "__arrow_c_stream__"):
                column = pa.chunked_array(values)
            elif isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1:
                column = column_of(values.astype(values.dtype.newbyteorder("="), copy=False))
            else:
                column = pa.array(values)
        except (TypeError, ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputTypeError(f"{name} is not a column of ids: {error}") from None
    if rows is not None:
        check_length(name, len(column), rows, "query" if name == "query_ids" else "document")
    column = plain(column)
    return column.cast(pa.int64()) if pa.types.is_null(column.type) and not len(column) else column
