"""The same measures for several orders of documents, or several assignments of grades."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastndcg.measures import Measure, find_measure

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from fastndcg.scores.scores import Scores


class OfOrders:
    """Values and means of measures for several orders."""

    def __init__(self, scores: Scores, orders: int) -> None:
        self._scores = scores  # for each order in turn, all measures
        self.measures: tuple[Measure, ...] = scores.measures[: len(scores.measures) // orders]

    @property
    def queries(self) -> pa.Table:
        return self._scores.queries

    def _values(self, measure: object) -> npt.NDArray[np.float64]:
        """The values of a measure, (n_orders, n_queries). Raises `MeasureError` for one not asked for."""
        row = self.measures.index(find_measure(measure, self.measures, "was not asked for"))
        return self._scores.values[row :: len(self.measures)]

    def _means(self) -> dict[str, list[float]]:
        """The mean for each order, by measure."""
        n = len(self.measures)
        return {
            str(measure): [self._scores._mean(each) for each in range(row, len(self._scores.measures), n)]
            for row, measure in enumerate(self.measures)
        }
