"""Helpers for all layers that know nothing about rankings.

arrays       offsets, views and order of arrays
arrow_types  Arrow arrays of any type as one of the few types used here
lazy         pyarrow, imported on first use
exports      results as data frames of other libraries, and values for JSON
hashes       keys of 64 bits for ids
files        files that appear whole or not at all
markup       rows of texts as HTML and Markdown
progress     the progress of long calls, in terminals and notebooks
removed      names that the package no longer has, and the recipe that replaces each
table        `Table`, which prints in terminals of any width
threads      the one rule for `threads=`
"""
