"""Readers: each module turns one kind of input into `Rankings`.

`arrow` takes anything that speaks Arrow, pandas, and mappings of arrays; `parquet` takes files, folders,
globs, hive-partitioned datasets and URIs; `columns` finds which column plays which role. `trec` joins
judgments to a run, from TREC files, tables, dicts or tuples; `ltr` takes LETOR and svmlight files; both read
text through `lines`.
"""
