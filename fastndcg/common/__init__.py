"""Helpers for all layers that know nothing about rankings.

arrays       offsets, views and order of arrays
arrow_types  Arrow arrays of all types brought to the few that are computed with
lazy         pyarrow, imported when something of it is first used
subprocesses  processes of this Python that run no modules of the current folder
exports      results as data frames of other libraries, and as JSON
hashes       keys of 64 bits for ids
files        files that appear whole or not at all
markup       rows of texts as HTML and Markdown
progress     how far a long call is, in terminals and notebooks
removed      names that the package no longer has, and the recipe that replaces each
table        `Table`: what shows itself, in terminals of any width
threads      the one rule for `threads=`
"""
