"""Where rankings come from; each module turns one kind of input into `Rankings`.

`arrow` takes anything that speaks Arrow, pandas, and mappings of arrays; `parquet` takes files, folders, globs,
hive-partitioned datasets and URIs; `columns` finds which column plays which role.
"""
