"""`Rankings`: the input of an evaluation.

rankings       `Rankings` and its constructors
sanity_checks  warnings of data that look wrong
"""

from fastndcg.rankings.rankings import Rankings as Rankings
