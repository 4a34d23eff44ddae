"""Every compiled function of the package: rank each query once, compute all measures from the ranking.

drivers      the two drivers, and the scoring of a batch of queries whose grades are levels
real_grades  the scoring of queries whose grades have no levels
batches      steps that are done for all queries of a batch side by side
ranking, accumulation, sums
             steps of one query: its ranks, its lists, ideals and the sums of rows
tie_expectations
             expected values over the orders of tied documents
auc          shares of pairs of documents in the right order
sorting      sorting of values and keys
workspace    the working memory of a thread
schema       arguments that Python passes to kernels; imports no Numba
powers       gains by a formula, for Python and for kernels: the grade, 2^grade - 1, 1
intents      measures of several intents
resampling   random signs, orders and draws, for tests and intervals
rows         rows by query, and rows in the order of their scores
vectors      blocks that LLVM does not vectorise by itself, each beside the plain function that defines it
compile      how a function is compiled, kept and chosen

Kernels do not know measures or users' functions. They read tables (`schema.Plan`): the gain of each
level, the discount of each rank, and rows. A row names a list, a discount, a cutoff and a divisor.

    code grades to levels -> ideal lists -> rank by score -> lists of contributions -> one sum for each row

A list holds the gain of each rank (`accumulation.gather`). For a measure that is not linear in the gains it
holds the precision at each relevant document, or the probability to stop at each rank
(`accumulation.terms_by_rank`). With averaged ties both are expectations. So every measure is a sum over
ranks, and one pass gives the values at all cutoffs.

Each module is loaded twice: as `fastndcg.kernels` it is plain Python and imports no Numba, as
`fastndcg.compiled` it is compiled.
"""
