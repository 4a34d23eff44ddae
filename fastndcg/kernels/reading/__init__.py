"""Reading and ordering.

rows      rows by query
decoders  pages of Parquet
page_headers, codes, snappy, plain_texts
          their headers, their values, their compression, and their texts
words     bytes of text, eight at a time
ids       ids, hashed and compared
joining   judgments and a run, by document id
digests   hashes of queries and of their judgments
"""
