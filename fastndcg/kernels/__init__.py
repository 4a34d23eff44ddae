"""Every compiled function of the package: rank each query once, fold the ranking into all measures.

flow     scoring, from drivers down to single steps
vectors  blocks that LLVM does not vectorise by itself, each beside the plain function that defines it
reading  rows by query
compile  how a function is compiled, kept and chosen

Kernels do not know measures or users' functions. They read tables (`flow.tables.Plan`): the gain of each
level, the discount of each rank, and rows. A row names a list, a discount, a cutoff and a divisor.

    code grades to levels -> ideal lists -> rank by score -> lists of contributions -> one sum for each row

A list holds the gain of each rank (`folds.gather`). For a measure that is not linear in the gains it holds
the precision at each relevant document, or the probability to stop at each rank (`folds.fold_by_rank`). With
averaged ties both are expectations. So every measure is a sum over ranks, and one pass gives the values at
all cutoffs.

Each module is loaded twice: as `fastndcg.kernels` it is plain Python and imports no Numba, as
`fastndcg.compiled` it is compiled.
"""
