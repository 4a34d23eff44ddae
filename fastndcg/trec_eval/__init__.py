"""What trec_eval prints, byte for byte.

output       what it prints: values of queries, means, rounding
inputs       judgments and a run, read as it reads them
ranking      rankings as it sees them; sums, quotients and logarithms
measures     all measures, in its order
notation     names of measures and their parameters
"""
