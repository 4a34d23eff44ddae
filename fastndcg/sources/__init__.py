"""Files, tables and streams to `Rankings`. What can be opened is an `Opened`, whatever its format.

opened     `Opened`, the verbs of all that can be opened, and `Format`
formats    all formats of files, and which one a file has
given      what a caller passes in place of rankings, opened
read       `read_parquet`, `scan_parquet`, `read_csv`, `scan_csv`, `scan_arrow`
paths, opening
           the files of a path, their content, and errors in one line that names a file
columns    roles of columns: named by the caller, or found by their usual names
frames     tables of any library, in memory or batch by batch
parquet    Parquet files: their footers, columns and row groups
csv, json_lines, feather
           the other formats of tables
trec       judgments and a run to rankings, and their sides, from paths and from memory
sides, nested_sides
           one side, the judgments or the run: from TREC files and tables; from JSON, dicts and tuples
joins      the join of two sides, and whether their ids meet
ltr, lines
           LETOR, and the lines of text files
results    stored results, as `Scores` again
arrow, values
           Arrow columns to `Rankings`
joined     several files as one: types that fit together, documents that two have
streams, scan, ahead, groups
           rankings of any size, a part at a time
"""
