"""Reading and ordering.

rows      rows by query
decoders  pages of Parquet, and their texts
page_headers, codes
          their headers, their values and their compression
words     bytes of text, eight at a time
ids       ids, hashed and compared
joining   judgments and a run, by document id
digests   hashes of queries and of their judgments
"""
