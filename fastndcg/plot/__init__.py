"""Pictures of measures, scores and comparisons, as Altair charts to restyle or save. It needs the extra
`plot`.

    charts   a function for each picture
    methods  `scores.plot` and `comparison.plot`: the same, where people look for them
    looks    colours, axes and text of all pictures

`chart.save("x.png")` also writes `.svg`, `.html` and `.json`. Only the HTML page needs a network: it loads
Altair's library. The colours suit colour-blind readers and light and dark backgrounds. More than 5,000 values
are binned.
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
