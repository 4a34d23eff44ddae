"""Reading and ordering: rows by query, pages of Parquet, lines of text. The map is in `fastndcg.kernels`."""
