"""Numbers about values of queries: how sure a mean is, and which of several systems is better.

sums          exact sums and correctly rounded means; those of parts merge into exactly those of the whole
intervals     confidence intervals of means
"""

from fastndcg.statistics.sums import Moments, exact_sum, exact_sum_of_products, mean, quartiles

__all__ = ["Moments", "exact_sum", "exact_sum_of_products", "mean", "quartiles"]
