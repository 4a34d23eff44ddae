"""What trec_eval prints, byte for byte.

output       judgments and a run, read as it reads them, and what it prints: values, means, rounding
ranking      rankings as it sees them; sums, quotients and logarithms
measures     all measures, in its order, and their names with parameters
"""
