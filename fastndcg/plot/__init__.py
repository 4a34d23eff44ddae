"""Pictures of measures, scores and comparisons, as Altair charts to restyle or save. It needs the extra `plot`.

    charts   a function for each picture
    methods  `scores.plot` and `comparison.plot`: the same, where people look for them
    looks    colours, axes and text of all pictures

`chart.save("x.png")`, or `.svg`, `.html` and `.json`, needs no network but for HTML, whose page loads Altair's library from it. Colours can
be told apart by the colour-blind and hold on light and on dark ground. Where there are more than 5,000 values they are binned.
"""

from fastndcg.plot.charts import (
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
from fastndcg.plot.looks import Chart
from fastndcg.plot.methods import ComparisonPlots, ScoresPlots

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
