"""Cast and check the arguments of the constructors of `Rankings`, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import as_array, negate, read_only, unmask
from fastndcg.common.arrow_types import array_of, combine, plain
from fastndcg.common.later import pa
from fastndcg.errors import InputError, InputTypeError, check_flag, check_length, count_of

if TYPE_CHECKING:
    from fastndcg.typing import Unjudged

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]


class JudgedPool(NamedTuple):
    """The judged documents of each query, returned or not: `relevance[offsets[q]:offsets[q + 1]]`."""

    offsets: Int64
    relevance: Array


def cast_rows(name: str, values: Any, n_rows: int) -> Array:
    array = as_array(name, values)
    check_length(name, len(array), n_rows, "query id")
    return array


def _kind_error(name: str, array: Array, wanted: str) -> InputTypeError:
    shown = f", beginning with {array[0]!r}" if len(array) else ""
    return InputTypeError(f"{name} is of dtype {array.dtype}{shown}; wanted {wanted}")


def cast_relevance(name: str, values: npt.ArrayLike, unjudged: Unjudged = "refuse") -> Array:
    array = as_array(name, values, unjudged)
    return _cast_numbers(name, array, "integer or float grades")


def cast_scores(values: npt.ArrayLike, *, ascending: bool) -> Array:
    check_flag("ascending", ascending)
    scores = _cast_numbers("scores", as_array("scores", values), "integer or float scores")
    return read_only(negate(scores)) if ascending else scores


def _cast_numbers(name: str, array: Array, wanted: str) -> Array:
    if not len(array) and array.dtype.kind in "OU":
        return read_only(np.empty(0, np.float64))
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        raise _kind_error(name, array, wanted)
    return plain_numbers(array)


def plain_numbers(array: Array) -> Array:
    """Return numbers for kernels: booleans as 0 and 1, half floats as float32, contiguous, native."""
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    is_half = array.dtype.kind == "f" and array.itemsize == 2
    kind = np.dtype(np.float32) if is_half else array.dtype.newbyteorder("=")
    return read_only(np.ascontiguousarray(array, dtype=kind))


def cast_integers(name: str, values: npt.ArrayLike) -> Int64:
    array = as_array(name, values)
    if array.dtype.kind not in "ui" and (len(array) or array.dtype.kind != "f"):
        raise _kind_error(name, array, "integers")
    if array.dtype == np.uint64 and len(array) and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{name} holds {array.max()}; wanted row numbers below 2**63")
    return read_only(np.ascontiguousarray(array, dtype=np.int64))


def cast_offsets(name: str, values: npt.ArrayLike) -> Int64:
    array = cast_integers(name, values)
    if not len(array) or array[0] != 0:
        got = f"begins with {array[0]}" if len(array) else "is empty"
        raise InputError(f"{name} {got}; wanted 0 first, then the end of each query")
    falls = array[1:] < array[:-1]
    if falls.any():
        first = int(np.argmax(falls))
        raise InputError(
            f"{name} does not ascend: {array[first]} then {array[first + 1]} at position {first + 1}. "
            "Each entry is the end of a query."
        )
    return array


def check_end(name: str, offsets: Int64, rows: int, of: str) -> None:
    if offsets[-1] != rows:
        raise InputError(
            f"{name} ends at {offsets[-1]:,}, but {of} has {count_of(rows, 'value')}; "
            "the last offset is the number of documents"
        )


def cast_pool(judged: tuple[npt.ArrayLike, npt.ArrayLike], n_queries: int) -> JudgedPool:
    try:
        given_offsets, given_relevance = judged
    except (TypeError, ValueError):
        raise InputTypeError(
            f"judged is a {type(judged).__name__}; wanted the pair (offsets, "
            "relevance) of all judged documents"
        ) from None
    offsets = cast_offsets("judged offsets", given_offsets)
    relevance = cast_relevance("judged relevance", given_relevance)
    if len(offsets) - 1 != n_queries:
        raise InputError(
            f"judged has {count_of(len(offsets) - 1, 'query')} and the rankings {n_queries:,}; "
            "give a pool, maybe empty, for each query"
        )
    check_end("judged offsets", offsets, len(relevance), "judged relevance")
    return JudgedPool(offsets, relevance)


def cast_flags(values: npt.ArrayLike, rows: int) -> npt.NDArray[np.bool_]:
    flags = cast_column("is_judged", values, "b", "True and False", rows, "document")
    return read_only(np.ascontiguousarray(flags, dtype=np.bool_))


def cast_column(name: str, values: npt.ArrayLike, kinds: str, wanted: str, rows: int, of: str) -> Array:
    """Return an array with an entry for each query or document. Its dtype must be of one of these kinds."""
    array = as_array(name, values)
    if array.dtype.kind not in kinds and len(array):
        raise _kind_error(name, array, wanted)
    check_length(name, len(array), rows, of)
    return array


def cast_weight(
    values: npt.ArrayLike, n_queries: int, name_of: Callable[[int], str]
) -> npt.NDArray[np.float64]:
    array = cast_column("weight", values, "buif", "numbers", n_queries, "query")
    weight = np.ascontiguousarray(array, dtype=np.float64)
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        first = int(np.argmax(bad))
        raise InputError(
            f"weight is {weight[first]} for query {name_of(first)}; wanted finite numbers from 0"
        )
    return read_only(weight)


def cast_queries(queries: Any, n_queries: int) -> pa.Table | None:
    if queries is None:
        return None
    try:
        table = queries if isinstance(queries, pa.Table) else pa.table(queries)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise InputTypeError(f"queries is a {type(queries).__name__} that is not a table: {error}") from None
    if table.num_rows != n_queries:
        raise InputError(
            f"queries has {count_of(table.num_rows, 'row')} for {count_of(n_queries, 'query')}; "
            "give a row for each query"
        )
    # extension types are kept: those of pandas are periods and intervals of its own
    columns = [
        column if isinstance(column.type, pa.BaseExtensionType) else plain(column) for column in table.columns
    ]
    return pa.table(columns, table.column_names)


def flatten(name: str, lists: Any, unjudged: str = "refuse") -> tuple[Int64, Array]:
    """Return the lengths and the joined values of lists, one list for each query."""
    if isinstance(lists, pa.Array | pa.ChunkedArray):
        import pyarrow.compute as pc

        column = combine(lists)
        lengths = array_of(pc.list_value_length(column)).astype(np.int64)
        return lengths, as_array(name, column.flatten(), unjudged)
    if isinstance(lists, str | bytes) or not isinstance(lists, Iterable):
        raise InputTypeError(
            f"{name} is a {type(lists).__name__}; wanted a list for each query, as in [[3, 0], [1, 2, 0]]"
        )
    arrays = [
        np.asarray(unmask(f"{name} of query {query}", values, unjudged))
        for query, values in enumerate(unmask(name, lists))
    ]
    for query, array in enumerate(arrays):
        if array.ndim != 1:
            raise InputError(
                f"{name} of query {query} has shape {array.shape}; wanted a list of numbers for each query"
            )
    filled = [array for array in arrays if array.size]  # an empty list says nothing about the dtype
    lengths = np.fromiter((array.size for array in arrays), np.int64, len(arrays))
    flat = np.concatenate(filled) if filled else np.empty(0, np.float64)
    if flat.dtype.kind == "f":
        _check_widening(name, arrays)
    return lengths, flat


def _check_widening(name: str, arrays: list[Array]) -> None:
    """Refuse whole numbers that would lose digits as float64, to which lists of mixed dtypes are joined."""
    for query, array in enumerate(arrays):
        if array.dtype.kind in "iu" and array.size and (array.max() > 2**53 or array.min() < -(2**53)):
            raise InputError(
                f"{name} of query {query} holds whole numbers beyond 2**53 and other lists do not fit their "
                "dtype, so they would be rounded together as float64; give all lists as one integer dtype"
            )
