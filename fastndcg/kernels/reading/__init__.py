"""Reading and ordering.

rows      rows by query
decoders  pages of Parquet
words     bytes of text, eight at a time
joining   judgments and a run, by document id
"""
