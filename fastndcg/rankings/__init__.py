"""The noun: what is evaluated.

rankings  `Rankings` and its constructors
value     what it holds: columns, views, facts, slices
shapes    groups, ids of rows, matrices and lists as flat columns
checks    columns, cast to the arrays that it holds and checked, each once
blame     which row and query of the user's data a message is about
oddities  warnings of data that look wrong
intents   grades of documents for each intent of their query
grouping  rows grouped by query
"""

from fastndcg.rankings.rankings import Rankings as Rankings
