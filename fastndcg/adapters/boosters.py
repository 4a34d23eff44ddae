"""What the adapters of boosters share: a data set is read once, and its measures are computed whenever its scores change."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.api import evaluate
from fastndcg.convention.declarations import as_convention
from fastndcg.convention.evaluation import resolve_all
from fastndcg.errors import InputError
from fastndcg.measures import as_measures
from fastndcg.rankings import Rankings

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.scores import Scores

Array = npt.NDArray[Any]


class Groups(NamedTuple):
    """All of a data set but its scores."""

    offsets: Array  # (n_queries + 1,)
    relevance: Array  # (n_docs,), as bytes where they hold every grade: those are not cast in each iteration
    weight: Array | None  # (n_queries,)

    @classmethod
    def of(cls, offsets: Any, relevance: Any, weight: Any = None) -> Self:
        grades = np.asarray(relevance)
        if grades.dtype.kind == "f" and len(grades) and grades.min() >= 0 and grades.max() < 255:
            narrow = grades.astype(np.uint8)
            grades = narrow if np.array_equal(narrow, grades) else grades
        # the booster's arrays may be views of memory that it frees
        weight = None if weight is None else np.array(weight, np.float64)
        return cls(np.array(offsets, np.int64), np.array(grades), weight)

    @classmethod
    def of_sizes(cls, sizes: Any, relevance: Any, weight: Any = None) -> Self:
        return cls.of(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), relevance, weight)

    def rankings(self, scores: Any) -> Rankings:
        return Rankings.from_offsets(self.offsets, self.relevance, scores, weight=self.weight)


class Meter:
    """Measures that are computed again and again, of data sets whose scores alone change.

    A data set is known by its identity and held weakly. It travels to workers without what it has read.
    """

    def __init__(self, measures: Any, like: Any = None, threads: int | None = None) -> None:
        self.measures = as_measures(measures)
        self.like = None if like is None else as_convention(like)
        self.threads = threads
        self.names = [printed(measure) for measure in self.measures]
        self._read: dict[int, tuple[weakref.ref[Any], Groups]] = {}
        if self.like is not None:
            resolve_all(self.measures, self.like)  # a measure without a convention is refused before training

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.measures, self.like, self.threads)

    def groups(self, data: Any, read: Callable[[], Groups]) -> Groups:
        """What `read` says of a data set, asked once."""
        key = id(data)
        known, found = self._read.get(key, (None, None))
        if known is None or found is None or known() is not data:
            found = read()
            self._read[key] = weakref.ref(data, lambda _: self._read.pop(key, None)), found
        return found

    def scores(self, groups: Groups, scores: Any) -> Scores:
        predicted = np.asarray(scores)
        if predicted.shape != groups.relevance.shape:
            raise InputError(
                f"the model predicts an array of shape {predicted.shape} for {len(groups.relevance)} documents; "
                "wanted one score for each, so train it to rank"
            )
        return evaluate(groups.rankings(predicted), self.measures, convention=self.like, threads=self.threads)

    def means(self, groups: Groups, scores: Any) -> list[tuple[str, float]]:
        """The name and the mean of each measure."""
        return list(zip(self.names, self.scores(groups, scores).mean().values(), strict=True))


def printed(measure: Any) -> str:
    """A measure's notation as boosters can print it: XGBoost and LightGBM take their lines apart at spaces and colons."""
    return str(measure).replace(" ", "").replace(":", "=")
