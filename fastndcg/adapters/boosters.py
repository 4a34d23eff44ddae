"""Shared code of the booster adapters: read a data set once and measure it repeatedly."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastndcg.api.evaluate import evaluate
from fastndcg.common.threads import check_threads
from fastndcg.convention.evaluation import resolve_all
from fastndcg.errors import InputError
from fastndcg.measures import as_measures
from fastndcg.measures.conventions import as_convention
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.scores.scores import Scores


def unscored_rankings(offsets: Any, relevance: Any, weight: Any = None) -> Rankings:
    """Return rankings without scores. Arrays are copied, since a booster may free their memory."""
    grades = np.array(relevance)
    if grades.dtype.kind == "f" and len(grades) and grades.min() >= 0 and grades.max() < 255:
        narrow = grades.astype(np.uint8)  # so that grades are not cast in each iteration
        grades = narrow if np.array_equal(narrow, grades) else grades
    weight = None if weight is None else np.array(weight, np.float64)
    return Rankings._from_offsets(
        np.array(offsets, np.int64), grades, np.zeros(len(grades), np.int8), weight=weight
    )


class Meter:
    """Computes measures repeatedly for data sets of which only the scores change, and which it references
    weakly, by their identity. A pickled meter has none.
    """

    def __init__(self, measures: Any, like: Any = None, threads: int | None = None) -> None:
        self.measures, self.threads = as_measures(measures), check_threads(threads)
        self.like = None if like is None else as_convention(like)
        # without spaces and colons, which boosters use as separators
        self.names = [each.label.replace(" ", "").replace(":", "=") for each in self.measures]
        self.__name__ = ", ".join(self.names)  # which scikit-learn's interfaces of boosters ask for
        self._read: dict[int, tuple[weakref.ref[Any], Rankings]] = {}
        if self.like is not None:  # refuses a measure that the convention lacks, before training
            resolve_all(self.measures, self.like)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_read": {}}

    def rankings(self, data: Any, read: Callable[[], Rankings]) -> Rankings:
        """Return the rankings of a data set. `read` is called once for each data set."""
        key = id(data)
        if key not in self._read or self._read[key][0]() is not data:
            self._read[key] = weakref.ref(data, lambda _: self._read.pop(key, None)), read()
        return self._read[key][1]

    def _evaluate(self, rankings: Rankings) -> Scores:
        return evaluate(rankings, self.measures, convention=self.like, threads=self.threads)

    def scores(self, rankings: Rankings, predictions: Any) -> Scores:
        scores = np.asarray(predictions)
        if scores.ndim != 1:
            raise InputError(
                f"the model predicts an array of shape {scores.shape} for {rankings.n_docs} documents; "
                "expected one score for each, so train it to rank"
            )
        return self._evaluate(rankings._with_scores(scores))

    def means(self, rankings: Rankings, predictions: Any) -> list[float]:
        return list(self.scores(rankings, predictions).mean().values())
