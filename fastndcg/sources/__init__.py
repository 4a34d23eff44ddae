"""Files, tables and streams to `Rankings`.

given      what a caller passes in place of rankings, opened
formats    the format of a file, by its first bytes and its name
paths      the files of a path
columns    roles of columns: named by the caller, or found by their usual names
arrow, frames, values
           tables of any library, and their columns as arrays
parquet, footers, pages
           Parquet files, their footers and pages
csv, whole
           CSV; JSON Lines and Feather
trec       judgments and a run to rankings, and their sides, from paths and from memory
sides      one side: the judgments or the run, a row for each document
text_sides, nested_sides, table_sides
           sides from TREC files; from JSON, dicts and tuples; from tables
joins, id_texts, meeting
           the join of two sides, ids as its kernels take them, and whether ids meet
ltr, lines
           LETOR, and the lines of text files
results    stored results, as `Scores` again
streams, scan, scan_csv, ahead
           rankings of any size, a part at a time
opening    a file, a URI or standard input, plain or packed
messages   errors of Arrow and of the system, in one line that names the file
"""
