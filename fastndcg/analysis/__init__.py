"""Analysis: comparisons, explanations, bounds, judgments, history, and pages about them.

compare          `compare`: which of several systems is better, and how sure that is
alignment        scores of several systems, matched by query
comparison       `Comparison`: numbers of each measure and pair of systems, ranks, gates, and printed tables
anchors          `anchors`: what the order of the returned documents could have made of a measure
explain          `explain`: where the value of a query comes from, rank by rank
ranges           `tie_range`, `judgment_range`: how far ties and unjudged documents could move a measure
check_judgments  `check_judgments`: whether judgments can be used, and fit the runs that they judge
pool             `pool`: the first documents of several runs, and which are judged
history          `History`: values by query of many times, and since when a change is sure
clicks           click logs: `propensities` by rank from swaps, `snips`, `compare_clicks`
report           `report`: an HTML page for readers who do not know the package; and the page of a history
html             the page and its parts: text, tables, charts, and parts that open on a click
"""
