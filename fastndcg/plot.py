"""Plots of measures, scores and comparisons, as Altair charts to restyle or save. Needs the extra `plot`.

Each function returns a chart, and raises `ExtraError` where Altair is not installed. `chart.save("x.png")`
also writes `.svg`, `.html` and `.json`. Only the HTML page needs a network: it loads Altair's library. The
colours suit colour-blind readers and light and dark backgrounds. More than 5,000 values are binned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastndcg.charts.means import anchors, cutoffs, effects, slices, ties
from fastndcg.charts.queries import against, differences, distribution
from fastndcg.charts.ranks import contributions, discounts, gains, grades, history, over_time
from fastndcg.typing import Chart

if TYPE_CHECKING:
    from fastndcg.analysis.comparison import Comparison
    from fastndcg.scores.scores import Scores

__all__ = [
    "Chart",
    "ComparisonPlots",
    "ScoresPlots",
    "against",
    "anchors",
    "contributions",
    "cutoffs",
    "differences",
    "discounts",
    "distribution",
    "effects",
    "gains",
    "grades",
    "history",
    "over_time",
    "slices",
    "ties",
]


class ScoresPlots:
    """Plots of `Scores`. Each method returns an Altair chart and needs the extra `plot`."""

    def __init__(self, scores: Scores) -> None:
        self._scores = scores

    def distribution(self, measure: object, bins: int = 40) -> Chart:
        """A histogram of the values of queries. See `fastndcg.plot.distribution`."""
        return distribution(self._scores, measure, bins)

    def cutoffs(self, measure: object = "nDCG", confidence: float = 0.95) -> Chart:
        """The mean at each cutoff that was evaluated. See `fastndcg.plot.cutoffs`."""
        return cutoffs(self._scores, measure, confidence)

    def slices(self, measure: object, by: str | Sequence[str], confidence: float = 0.95) -> Chart:
        """The mean of each group of queries, with its interval. See `fastndcg.plot.slices`."""
        return slices(self._scores, measure, by, confidence)

    def against(self, measure: object, column: str) -> Chart:
        """The value of each query against a number that was measured online. See `fastndcg.plot.against`."""
        return against(self._scores, measure, column)


class ComparisonPlots:
    """Plots of a `Comparison`. Each method returns an Altair chart and needs the extra `plot`."""

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison

    def differences(
        self, measure: object, system: str | None = None, *, baseline: str | None = None
    ) -> Chart:
        """The difference of each query, largest gain first. See `fastndcg.plot.differences`."""
        return differences(self._comparison, measure, system, baseline=baseline)

    def effects(self, measure: object = None) -> Chart:
        """The mean difference of each pair, with its interval. See `fastndcg.plot.effects`."""
        return effects(self._comparison, measure)
