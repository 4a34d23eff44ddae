"""Statistics of the values of queries: means, confidence intervals, and tests of which system is better.

exact_sums  correctly rounded sums and means, of one or many groups; sums of parts merge exactly
significance
            intervals and tests by Student's t, and the corrections of several p-values by Holm and
            Benjamini-Hochberg
resampling  tests and intervals by random signs and draws
"""

from fastndcg.statistics.exact_sums import Moments, exact_sum, mean

__all__ = ["Moments", "exact_sum", "mean"]
