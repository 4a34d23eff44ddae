"""A report about rankings: one HTML file that needs no network. It needs the extra `report`.

page      `report`: what is computed, and the file
facts     what was evaluated: documents, queries, grades, ties
sections  the parts of the page
blocks    tables and pictures, as the template takes them
page.html, page.css, page.js   how they are shown; all text is escaped, and no other script may run
"""

from fastndcg.reporting.page import report

__all__ = ["report"]
