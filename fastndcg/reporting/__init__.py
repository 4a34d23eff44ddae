"""The page of `report`, which shows everything that is known of rankings, and the page of a history.

page      `report` and `history_page`: compute the results, and write the file
sections  the sections of a page
blocks    their parts: text, tables, charts
drawing   charts drawn in a process of its own, which may end without harm
facts     what a page shows: results of each system, and what its data has
"""
