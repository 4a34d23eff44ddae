"""Results: values, means and tables.

scores   `Scores`: values for each query, their tables and files
summary  `Means` and `Summary`: the numbers of each measure over all queries
slices   groups of queries by kept columns, their means, and weights of queries in means
signatures  one line that says exactly how a number was made, and from which queries and judgments
"""

from fastndcg.scores.scores import Scores as Scores
