"""Statistics of the values of queries: means, confidence intervals, and tests of which system is better.

exact_sums  sums and means, correctly rounded; those of parts merge into exactly those of the whole
sums_of_groups
            exact sums of many groups at once
intervals   confidence intervals of means
paired      the difference of two systems, its significance and its effect
noncentral  the noncentral t distribution: what a test detects, and intervals of effects
resampling  tests and intervals by random signs, orders and draws
controlled  means that a second number of each value makes more precise
position_bias  how likely each rank is to be looked at
correlations  correlations of two measurements, and how often their signs agree, with intervals
agreement   agreement of two rankings, and of judges
"""

from fastndcg.statistics.exact_sums import Moments, exact_sum, exact_sum_of_products, mean, quartiles
from fastndcg.statistics.sums_of_groups import SumsOfGroups

__all__ = ["Moments", "SumsOfGroups", "exact_sum", "exact_sum_of_products", "mean", "quartiles"]
