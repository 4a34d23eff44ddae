"""Pictures and pages.

mean_charts, query_charts, rank_charts  a function for each plot, public in `fastndcg.plot`
looks     what they share: colours, axes, text, curves, bars, intervals; alone imports Altair
page      `report`: a page of everything that is known of rankings; a page of a history
sections  the sections of the page
blocks    their parts: text, tables, pictures
drawing   pictures drawn in a process of their own, which may end without harm
facts     what a page shows: results of each system, and what its data has
"""
