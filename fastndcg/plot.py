"""Plots of measures, scores and comparisons, as Altair charts to restyle or save. Needs the extra `plot`.

    charts   a function for each plot
    methods  `scores.plot` and `comparison.plot`: the same plots as methods
    looks    colours, axes and text of all plots

`chart.save("x.png")` also writes `.svg`, `.html` and `.json`. Only the HTML page needs a network: it loads
Altair's library. The colours suit colour-blind readers and light and dark backgrounds. More than 5,000 values
are binned.
"""

from fastndcg.look.charts import (
    against,
    anchors,
    contributions,
    cutoffs,
    differences,
    discounts,
    distribution,
    effects,
    gains,
    grades,
    slices,
    ties,
)
from fastndcg.look.methods import ComparisonPlots, ScoresPlots
from fastndcg.typing import Chart

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
    "slices",
    "ties",
]
