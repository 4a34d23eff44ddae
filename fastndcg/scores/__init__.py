"""What comes out.

scores   `Scores`: values for each query, and their tables
summary  `Means` and `Summary`: the numbers of each measure over all queries
slices   groups of queries by kept columns, and their means
weights  weights of queries in means: counts of documents, or a column
signatures  one line that says exactly how a number was made
digests  what it was computed of: hashes of queries and their judgments
storage  results of queries as columns and in files
"""

from fastndcg.scores.scores import Scores as Scores
