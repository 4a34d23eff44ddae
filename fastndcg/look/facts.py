"""Count what the data has: documents, queries, grades, ties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings

_GRADES = 20  # distinct grades that are counted separately, at most


class Facts(NamedTuple):
    """Counts of the data of one system."""

    queries: int
    documents: int
    longest: int  # documents of the longest list
    without_documents: int  # queries without documents
    tied: int  # documents whose score equals that of another document of their query
    unjudged: int | None  # documents; None if the data do not say which are judged
    judged: int | None  # documents of the pool; None if the returned documents are the pool
    grades: list[tuple[str, int]]  # judged documents of each grade, or each range of grades


def facts_of(rankings: Rankings) -> Facts:
    lengths = rankings.lengths
    return Facts(
        rankings.n_queries,
        rankings.n_docs,
        int(lengths.max(initial=0)),
        int((lengths == 0).sum()),
        tied_documents(rankings.offsets, rankings.scores),
        None if rankings.is_judged is None else int((~rankings.is_judged).sum()),
        None if rankings.judged is None else len(rankings.judged.relevance),
        _grades(rankings),
    )


def tied_documents(offsets: npt.NDArray[np.int64], scores: npt.NDArray[Any]) -> int:
    """Count the documents whose score equals that of another document of their query.

    >>> tied_documents(np.array([0, 3, 5]), np.array([2.0, 1.0, 2.0, 2.0, 1.0]))
    2
    """
    lengths, tied = np.diff(offsets), 0
    order = np.argsort(lengths, kind="stable")
    ends = np.flatnonzero(np.diff(lengths[order], append=-1))
    first = 0
    for end in ends.tolist():  # queries of equal length form a matrix, whose rows are sorted together
        length = int(lengths[order[end]])
        starts = offsets[:-1][order[first : end + 1]]
        first = end + 1
        step = max(_AT_ONCE // max(length, 1), 1)
        for start in range(0, len(starts), step) if length > 1 else ():
            rows = starts[start : start + step, None] + np.arange(length)
            ranked = np.sort(scores[rows], axis=1)
            same = np.zeros((len(ranked), length + 1), np.bool_)
            same[:, 1:-1] = ranked[:, 1:] == ranked[:, :-1]
            tied += int((same[:, 1:] | same[:, :-1]).sum())
    return tied


_AT_ONCE = 1 << 22  # documents


def _grades(rankings: Rankings) -> list[tuple[str, int]]:
    relevance = rankings.relevance
    if rankings.is_judged is not None:
        relevance = relevance[rankings.is_judged]
    if len(rankings._distinct_grades) <= _GRADES:
        counts = {each["values"]: each["counts"] for each in pc.value_counts(pa.array(relevance)).to_pylist()}
        return [(f"{grade:g}", counts[grade]) for grade in sorted(counts)]
    found, edges = np.histogram(relevance, _GRADES)
    ranges = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [
        (f"{low:g} to {high:g}", count) for (low, high), count in zip(ranges, found.tolist(), strict=True)
    ]
