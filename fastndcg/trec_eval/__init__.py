"""What trec_eval prints, byte for byte.

printed    its output: values of queries, means, rounding
runs       judgments and a run, read as it reads them
ranked     rankings as it sees them; sums, quotients and logarithms
graded, binary
           measures of gains, and of relevant documents
declared   all measures, in its order
asked      names of measures and their parameters
"""
