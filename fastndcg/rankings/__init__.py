"""What is evaluated.

rankings       `Rankings` and its constructors
value          what it holds: columns, views, facts, slices
sanity_checks  warnings of data that look wrong
"""

from fastndcg.rankings.rankings import Rankings as Rankings
