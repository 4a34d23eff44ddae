"""The noun: what is evaluated.

rankings  `Rankings`: the value and its constructors
casts     arguments of the constructors as the arrays that it holds, checked once
intents   grades of documents for each intent of their query
grouping  rows grouped by query
"""
