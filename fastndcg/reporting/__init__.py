"""HTML pages: `report` for readers who do not know the package, and the page of a history.

page      `report` and `history_page`
sections  the results of a page, its answer and its sections
html      the page and its parts: text, tables, charts, and parts that open on a click
"""
