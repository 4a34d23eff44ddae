"""Reading and ordering.

rows      rows by query
"""
