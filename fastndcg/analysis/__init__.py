"""Analysis: comparisons, explanations, bounds, judgments, history, and pages about them.

compare          `compare`: which of several systems is better, and how sure that is; `Comparison`, its result
explain          `explain`: where the value of a query comes from, rank by rank
ranges           `anchors`, `tie_range`, `judgment_range`: what other orders or judgments could make of it
judgments        `check_judgments`: whether judgments can be used, and fit the runs that they judge; `pool`
history          `History`: values by query of many times, and since when a change is sure
clicks           click logs: `propensities` by rank from swaps, `snips`, `compare_clicks`
report           `report`: an HTML page for readers who do not know the package; and the page of a history
html             the page and its parts: text, tables, charts, and parts that open on a click
"""
