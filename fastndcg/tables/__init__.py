"""What a user hands in, in memory, as checked columns.

roles      roles of columns: named by the caller, or found by their usual names
frames     tables of any library as Arrow tables
arrow      Arrow tables, long or of lists, as the fields of `Rankings`
shapes     judgments or a run of any shape as a side: dicts, lists, tuples, records, tables
joins      the judgments and the run as sides, and their join
lists      columns of lists, of which each query has one
layouts    groups, ids of rows, matrices and lists as flat columns
values     Arrow columns of numbers, flags and ids as arrays
checks     columns, cast to the arrays that `Rankings` holds and checked, each once
intents    grades of documents for each intent of their query
grouping   rows grouped by query
locations  which row and query of the user's data a message is about
"""
