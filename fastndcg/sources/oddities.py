"""Warnings of data that look wrong, though they can be evaluated: swapped columns, distances as scores, grades that are all 0.

A look at the first rows is enough for most data; all rows are looked at only where the first ones are odd. Sets of fewer than
20 queries are not looked at, but for the names of their columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fastndcg.errors import Argument, Step, warn

if TYPE_CHECKING:
    from fastndcg.arrays import Array
    from fastndcg.rankings import Rankings
    from fastndcg.sources.columns import Columns

_FEWEST = 20  # queries
_FIRST = 1 << 16  # documents
_MOST_LEVELS = 10  # whole numbers from 0 to this are taken for grades
_LEAST_JUDGED = 0.1

_FALLING = re.compile(r"(^|_)(distance|dist|rank|ranking|position)$")


def warn_of_oddities(rankings: Rankings, columns: Columns) -> Rankings:
    """Warn, with `FastndcgWarning`, of what is probably not meant, and return the same rankings.

    These are: a score column whose name ends in distance, dist, rank, ranking or position; fractions as grades beside small whole
    numbers as scores; all scores equal; one document for each query; no grade above 0; fewer than a tenth of the documents judged.

    >>> import pytest
    >>> from fastndcg import FastndcgWarning, Rankings
    >>> with pytest.warns(FastndcgWarning, match="no grade is above 0"):
    ...     found = Rankings.from_arrow({"qid": list(range(20)) * 2, "label": [0] * 40, "score": list(range(40))})
    """
    grades, scores = f'column "{columns.relevance}"', f'column "{columns.score}"'
    is_ordered = columns.ascending or columns.rank is not None
    if not is_ordered and _FALLING.search(_snake(columns.score)):
        warn(
            f"{scores} is taken for scores, of which the highest is best; if its lowest value is best",
            Step(", pass ", Argument("ascending", True)),
            Step(" or, for ranks, ", Argument("rank")),
        )
    if rankings.n_queries < _FEWEST or not rankings.n_docs:
        return rankings
    if not is_ordered and _are_swapped(rankings.relevance[:_FIRST], rankings.scores[:_FIRST]):
        warn(
            f"{grades} holds fractions and {scores} small whole numbers, as if grades and scores were swapped; if they are, name them by ",
            Argument("relevance"),
            " and ",
            Argument("score"),
        )
    elif _all(rankings.scores, lambda values: values == rankings.scores[0]):
        warn(
            f"{scores} holds one value, {rankings.scores[0]}: all documents of a query are tied, and each measure is that of a random "
            "order. If that is not meant, name the column of scores by ",
            Argument("score"),
        )
    if rankings.n_docs <= rankings.n_queries:
        warn(
            "no query has more than one document, so there is nothing to rank. If that is not meant, name the column that rows of a "
            "query share by ",
            Argument("query"),
        )
    if _all(rankings.relevance, lambda values: values <= 0):
        warn(
            f"{grades}: no grade is above 0, so that no query has a relevant document. If that is not meant, name the column of grades by ",
            Argument("relevance"),
        )
    if rankings.is_judged is not None and rankings.is_judged[:_FIRST].mean() < _LEAST_JUDGED:
        share = rankings.is_judged.mean()
        if share < _LEAST_JUDGED:
            warn(
                f"{1 - share:.1%} of the documents are not judged and count as not relevant; the measure Judged@10 says how many of the "
                "first ten are"
            )
    return rankings


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower()


def _are_swapped(grades: Array, scores: Array) -> bool:
    """Whether most grades are fractions, and all scores small whole numbers of which there are several."""
    if grades.dtype.kind != "f" or np.mean(grades != np.floor(grades)) < 0.5:
        return False
    lowest, highest = scores.min(), scores.max()
    return bool(0 <= lowest < highest <= _MOST_LEVELS and np.array_equal(scores, np.floor(scores)))


def _all(values: Array, holds: Callable[[Array], Array]) -> bool:
    """Whether something holds for all values; the first few are asked first."""
    return bool(holds(values[:_FIRST]).all() and holds(values[_FIRST:]).all())
