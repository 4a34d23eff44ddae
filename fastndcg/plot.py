"""Plots of measures, scores and comparisons, as Altair charts to restyle or save. Needs the extra `report`.

Each function returns a chart, and raises `ExtraError` if Altair is not installed. `chart.save("x.png")`
also writes `.svg`, `.html` and `.json`. Only the HTML page needs a network: it loads Altair's library. The
colours suit colour-blind readers and light and dark backgrounds. Many values are binned.
"""

from fastndcg.charts.plots import *  # noqa: F403
from fastndcg.charts.plots import __all__  # noqa: F401
