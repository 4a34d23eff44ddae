"""Scoring: rank each query once, fold the ranking into all measures.

drivers    the two drivers, and the scoring of a batch of queries whose grades are levels
uncoded    the scoring of queries whose grades have no levels
lanes      steps that are done for all queries of a batch side by side
ranking, folds, sums
           steps of one query: its ranks, its lists, ideals and the sums of rows
expectations
           expected values over the orders of tied documents
pairs      shares of pairs of documents in the right order
sorting    sorting of values and keys
memory     the working memory of a thread
tables     arguments that Python passes to kernels; imports no Numba
powers     gains by a formula, for Python and for kernels: the grade, 2^grade - 1, 1
intent_folds, intent_orders
           measures of several intents
draws      random signs, orders and draws, for tests and intervals
"""
