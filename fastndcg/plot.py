"""Plots of measures, scores and comparisons, as Altair charts to restyle or save. Needs the extra `plot`.

Each function returns a chart, and raises `ExtraError` if Altair is not installed. `chart.save("x.png")`
also writes `.svg`, `.html` and `.json`. Only the HTML page needs a network: it loads Altair's library. The
colours suit colour-blind readers and light and dark backgrounds. Many values are binned.
"""

from fastndcg.analysis.plots import (
    ComparisonPlots,
    anchors,
    contributions,
    differences,
    effects,
    grades,
    ties,
)
from fastndcg.charts.series import history, over_time
from fastndcg.scores.plots import ScoresPlots, cutoffs, distribution, slices
from fastndcg.typing import Chart

__all__ = [
    "Chart",
    "ComparisonPlots",
    "ScoresPlots",
    "anchors",
    "contributions",
    "cutoffs",
    "differences",
    "distribution",
    "effects",
    "grades",
    "history",
    "over_time",
    "slices",
    "ties",
]
