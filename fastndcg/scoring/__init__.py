"""Scoring: from measures and rankings to values.

methods       `values` and `score`; the declaration of a measure names the method by which it is computed
plan          measures and grades as tables
gain_values   gains of grades
discount_tables
              weights of ranks
launch        kernels run serially or in parallel, in chunks, safe inside any host
ideals        ideal rankings whose length is not the cutoff
intents       measures of several intents
weighted_sums
              measures that are plain sums over other grades: of clicks, above a score, AP of tied blocks
"""
