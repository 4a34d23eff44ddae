"""Files, tables and streams to `Rankings`.

dataset    `Opened`, the methods of all that can be opened
formats    all formats of files, and which one a file has
inputs     what a caller passes in place of rankings, opened
readers    `read_parquet`, `scan_parquet`, `read_csv`, `scan_csv`, `scan_arrow`
paths, open_file
           the files of a path, their content, and errors in one line that names a file
frames     tables of any library, in memory or batch by batch
parquet    Parquet files: their footers, columns and row groups
csv, json_lines, feather
           the other formats of tables
trec       judgments and a run to rankings, and their sides, from paths and from memory
sides, nested_sides
           one side, the judgments or the run: from TREC files and tables; from JSON, dicts and tuples
joins      the join of two sides, and whether their ids meet
letor, text_lines
           LETOR, and the lines of text files
stored_scores
           stored results, as `Scores` again
arrow      Arrow columns to `Rankings`
schemas    the types of several files as one
streams, scanning, prefetch, regrouping
           rankings of any size, a part at a time
"""
