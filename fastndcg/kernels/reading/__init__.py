"""Reading and ordering.

rows      rows by query
words     bytes of text, eight at a time
ids       ids, hashed and compared
joining   judgments and a run, by document id
digests   hashes of queries and of their judgments
"""
