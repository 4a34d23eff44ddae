"""Statistics of the values of queries: means, confidence intervals, and tests of which system is better.

sums          exact sums and correctly rounded means; those of parts merge into exactly those of the whole
intervals     confidence intervals of means
"""

from fastndcg.statistics.exact_sums import Moments, exact_sum, exact_sum_of_products, mean, quartiles

__all__ = ["Moments", "exact_sum", "exact_sum_of_products", "mean", "quartiles"]
