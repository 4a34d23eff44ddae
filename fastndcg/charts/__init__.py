"""Charts: rows in, an Altair chart out. They are public as `fastndcg.plot`.

means, queries, ranks
       a function for each chart
theme  what all charts share: colours, axes, text, curves, bars, intervals; alone imports Altair
"""
