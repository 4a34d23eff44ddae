"""A report about rankings: one HTML file that needs no network. Needs the extra `report`.

page      `report`: computes the results and writes the file
facts     counts of the data: documents, queries, grades, ties
sections  the sections of the page
blocks    text, tables and pictures, for the template
drawing   pictures, drawn by another process
page.html, page.css, page.js   the template, its style and its script
"""

from fastndcg.reporting.page import report

__all__ = ["report"]
