"""The roofline: one vectorised pass that only adds up the scores and the grades of each query.

Every exact ranking measure has to read these, so this is the least time that memory and vector units allow.
Sums are reordered (fastmath), so that they can be vectorised. The package itself never reorders the sums of a
result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True, fastmath=True)
def sum_of_scores(scores: Array) -> Any:
    total = np.float32(0)
    for document in range(scores.shape[0]):
        total += scores[document]
    return total


@njit(cache=True, nogil=True)
def sum_of_grades(grades: Array) -> Any:
    total = np.int32(0)
    for document in range(grades.shape[0]):
        total += np.int32(grades[document])
    return total


@njit(cache=True, nogil=True)
def sum_queries(offsets: Array, grades: Array, scores: Array, out: Array) -> None:
    for query in range(offsets.shape[0] - 1):
        # slices are vectorised, indexing from the offsets is not: 0.14 and 1.0 ns a document
        first, last = offsets[query], offsets[query + 1]
        out[query] = sum_of_scores(scores[first:last]) + sum_of_grades(grades[first:last])
