"""Pictures and pages.

mean_charts, query_charts, rank_charts  a function for each plot, public in `fastndcg.plot`
chart_parts  what they share: curves, bars, intervals, names and numbers in words
looks     colours, axes and text of all plots; alone imports Altair
timeline  measures by date: a control chart
history_page  a page of them
page      `report`: a page of everything that is known of rankings
sections  the sections of the page
blocks    their parts: text, tables, pictures
drawing   pictures drawn in a process of their own, which may end without harm
facts     what a page shows: results of each system, and what its data has
"""
