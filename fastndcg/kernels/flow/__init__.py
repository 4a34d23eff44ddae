"""Scoring: rank each query once, fold the ranking into all measures.

drivers    the serial driver, which defines the values, and the parallel one, which runs it over chunks
scoring    batches of queries, through the steps below
lanes      steps that are done for all queries of a batch side by side
gains, ideals, ranking, lists, folds, sums
           steps of one query, each a plain loop
expectations
           expected values over the orders of tied documents
pairs      shares of pairs of documents in the right order
sorting    sorting of values and keys
memory     the working memory of a thread
tables     arguments that Python passes to kernels; imports no Numba
powers     gains by a formula, for Python and for kernels: the grade, 2^grade - 1, 1
returned   nDCG over an ideal of the returned documents, which is not a sum over ranks
intent_folds, intent_orders, intent_tables
           measures of several intents
exact      sums without rounding
draws      random signs, orders and draws, for tests and intervals
"""
