"""HTML pages: `report` for readers who do not know the package, and the page of a history.

page      `report` and `history_page`: compute the results, and write the file
answer    its first sentences: which system is better, how sure that is, and what to be careful about
sections  the sections of a page, of the tables and charts that results have
html      their parts: text, tables, charts, and parts that open on a click
"""
