"""Grades of documents per intent of their query, for measures of diversity.

An intent, or subtopic, is one possible meaning of a query. Each document has a grade for some intents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.common.arrays import Array, Int64, offsets_from, plain_numbers, read_only, runs_of
from fastndcg.common.arrow_types import array_of, combine, is_list, is_number
from fastndcg.common.lazy import pa
from fastndcg.errors import InputError, InputTypeError, count_of


class IntentGrades(NamedTuple):
    """Document `d` owns `offsets[d]:offsets[d + 1]`; its intents ascend, numbered from 0 in each query."""

    offsets: Int64  # (n_docs + 1,)
    numbers: Int64  # (n_entries,), intent of each entry
    grades: Array  # (n_entries,), grade of the document for this intent

    def take(self, rows: Int64) -> IntentGrades:
        """Take the entries of these documents; a negative row has none.

        >>> intent_grades("intents", [[1, 0], [2]], 2).take(np.array([1, -1, 0])).grades
        array([2, 1, 0])
        """
        lengths = np.where(rows >= 0, np.diff(self.offsets)[rows] if len(self.offsets) > 1 else 0, 0)
        offsets = offsets_from(lengths)
        has_entries = len(lengths) > 0 and len(self.offsets) > 1
        entries = runs_of(self.offsets[:-1][rows] if has_entries else 0, lengths)
        return IntentGrades(*map(read_only, (offsets, self.numbers[entries], self.grades[entries])))


class IntentProbabilities(NamedTuple):
    """Query `q` owns `values[offsets[q]:offsets[q + 1]]`: the probabilities of its intents, in order."""

    offsets: Int64  # (n_queries + 1,)
    values: npt.NDArray[np.float64]


def intent_grades(name: str, values: Any, rows: int) -> IntentGrades:
    """Convert and check the intent grades of `rows` documents, in any form of `Rankings.from_offsets`.

    >>> intent_grades("intents", [[1, None, 2], None, [0]], 3)
    IntentGrades(offsets=array([0, 2, 2, 3]), numbers=array([0, 2, 0]), grades=array([1, 2, 0]))
    """
    result = values if isinstance(values, IntentGrades) else _of_lists(name, values)
    if len(result.offsets) - 1 != rows:
        raise InputError(
            f"{name} has lists for {count_of(len(result.offsets) - 1, 'document')} where there are {rows:,}; "
            "give one for each, which may be empty"
        )
    if result.grades.dtype.kind == "f" and not np.isfinite(result.grades).all():
        entry = int(np.argmin(np.isfinite(result.grades)))
        raise InputError(
            f"{name} has the grade {result.grades[entry]} for intent {result.numbers[entry]} "
            f"of {_document(result.offsets, entry)}; expected finite grades, and None for an intent that it "
            "was not judged for"
        )
    return IntentGrades(*map(plain_numbers, result))


def probabilities(values: Any, n_queries: int, name_of: Callable[[int], str] = str) -> IntentProbabilities:
    """Convert one list per query of finite numbers from 0, which need not sum to 1.

    >>> probabilities([[0.7, 0.3], [1]], 2).values
    array([0.7, 0.3, 1. ])
    """
    name = "intent_probabilities"
    lists = _list_array(name, values, "probabilities of its intents, as in [[0.7, 0.3], [1.0]]")
    if len(lists) != n_queries:
        raise InputError(
            f"{name} has {count_of(len(lists), 'list')} for {count_of(n_queries, 'query')}; "
            "give one for each, which may be empty"
        )
    offsets, flat = _flat(lists)
    if flat.null_count or lists.null_count:
        raise InputError(f"{name} has nulls; expected a probability for each intent")
    numbers = array_of(flat).astype(np.float64)
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        first = int(np.argmax(bad))
        query = int(np.searchsorted(offsets, first, side="right")) - 1
        raise InputError(
            f"{name} holds {numbers[first]} for intent {first - offsets[query]} of query {name_of(query)}; "
            "expected finite numbers from 0"
        )
    return IntentProbabilities(read_only(offsets), read_only(numbers))


def _of_lists(name: str, values: Any) -> IntentGrades:
    if isinstance(values, np.ndarray) and values.ndim == 2:
        if values.dtype.kind not in "buif":
            raise InputTypeError(f"{name} is of dtype {values.dtype}; expected integer or float grades")
        rows, width = values.shape
        numbers = np.tile(np.arange(width, dtype=np.int64), rows)
        return IntentGrades(np.arange(rows + 1, dtype=np.int64) * width, numbers, values.ravel())
    lists = _list_array(name, values, "grades, as in [[1, 0], [0, 2]]")
    offsets, flat = _flat(lists)
    numbers = runs_of(0, np.diff(offsets))
    if flat.null_count:
        judged = array_of(flat.is_valid())
        offsets = offsets_from(judged)[offsets]
        numbers, flat = numbers[judged], flat.drop_null()
    return IntentGrades(offsets, numbers, array_of(flat))


def _list_array(name: str, values: Any, wanted: str) -> pa.Array:
    """Convert values to one Arrow array of lists of numbers."""
    try:
        array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    except (TypeError, ValueError, pa.ArrowException):
        array = pa.nulls(0)
    array = combine(array)
    if pa.types.is_null(array.type):  # no documents, or no grades at all
        known = isinstance(values, pa.Array | pa.ChunkedArray | list | tuple) and len(array) == len(values)
        if known:
            return pa.array([None] * len(array), pa.large_list(pa.int64()))
    if not is_list(array.type):
        shown = array.type if isinstance(values, pa.Array | pa.ChunkedArray) else f"a {type(values).__name__}"
        raise InputTypeError(f"{name} is {shown}; expected a list of {wanted}")
    inner = array.type.value_type
    if pa.types.is_null(inner):
        return array.cast(pa.list_(pa.int64()))
    if not (is_number(inner) or pa.types.is_boolean(inner)):
        raise InputTypeError(f"{name} holds lists of {inner}; expected lists of {wanted}")
    return array


def _flat(lists: pa.Array) -> tuple[Int64, pa.Array]:
    """Return the offsets, from 0, and the flat values of an array of lists; null is an empty list."""
    import pyarrow.compute as pc

    lengths = np.zeros(len(lists), np.int64)
    if lists.null_count:
        # casts and lengths treat nulls differently for some types and slices
        judged = array_of(lists.is_valid())
        lists = lists.take(pa.array(np.flatnonzero(judged)))
        lengths[judged] = array_of(pc.list_value_length(lists))
    else:
        lengths[:] = array_of(pc.list_value_length(lists))
    return offsets_from(lengths), lists.flatten()


def _document(offsets: Int64, entry: int) -> str:
    return f"document {int(np.searchsorted(offsets, entry, side='right')) - 1}"
