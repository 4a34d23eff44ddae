"""Files, tables and streams to `Rankings`.

dataset    `Dataset`, the methods of all that can be opened, and how many rows a table of a stream has
formats    all formats of files, and which one a file has
inputs     what a caller passes in place of rankings, opened: paths, tables, and batches of other programs
readers    `read_parquet`, `scan_parquet`, `read_csv`, `scan_csv`, `scan_arrow`
paths, open_file
           the files of a path, their content, and errors in one line that names a file
parquet    Parquet files: their footers, columns and row groups
csv, json_lines, feather
           the other formats of tables
trec       judgments and a run from files
letor, text_lines
           LETOR, and the lines of text files
stored_scores
           stored results, as `Scores` again
streams, prefetch, regrouping
           rankings of any size, a part at a time
"""
