"""Plots of measures, scores and comparisons, as Altair charts to restyle or save. Needs the extra `plot`.

`chart.save("x.png")` also writes `.svg`, `.html` and `.json`. Only the HTML page needs a network: it loads
Altair's library. The colours suit colour-blind readers and light and dark backgrounds. More than 5,000 values
are binned.
"""

from fastndcg.look.mean_charts import anchors, cutoffs, effects, slices, ties
from fastndcg.look.methods import ComparisonPlots, ScoresPlots
from fastndcg.look.query_charts import against, differences, distribution
from fastndcg.look.rank_charts import contributions, discounts, gains, grades
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
