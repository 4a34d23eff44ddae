"""Every compiled function of the package: rank each query once, fold the ranking into all measures.

The kernels know no measures, grades or callables; they know tables (`tables.Plan`): the gain of each level, the discount of
each rank, and rows that say which list is summed with which discount to which cutoff and what the sum is divided by.

    code grades to levels -> ideal lists -> rank by score -> lists of what each rank adds -> one sum for each row

A list holds the gain of each rank (`lists.gather`), or what a rank adds to a measure that is not linear in the gains: the
precision at a relevant document, the probability to stop there (`folds.fold_by_rank`). With averaged ties both are expectations,
so that every measure is a sum over ranks and all its cutoffs come from one pass.

Scoring, from what Python calls down to vectors:

    drivers      serial, which is the truth, and parallel, which runs the same code over chunks of queries
    scoring      batches of queries side by side, through the flow above
    gains, ideals, ranking, lists, folds, sums
                 its steps, each a plain loop
    sorting      what sorts values and keys
    vectors      blocks that LLVM's vectoriser does not find by itself, each beside the plain function that defines it
    memory       the working memory of a thread
    tables       what Python hands over; imports no Numba
    powers       2^grade, for Python and for kernels; imports no Numba
    returned     nDCG over an ideal of the returned documents, which is not a sum over ranks
    intents      measures of several intents
    exact        sums without rounding
    windows      the same of values that lie close together, and their quartiles
    resampling   random signs, orders and draws, for tests and intervals

Reading, and putting in order:

    rows         rows by query
    pages        pages of Parquet
    lines, decimals, words
                 TREC and LETOR files, the numbers in them, and their bytes
    joining      judgments and a run, by document id

And how it is compiled, or not:

    worlds       which driver runs: the plain one, or the compiled one once that pays; the one door to all drivers
    marks        what a function is; in the plain world a mark does nothing
    numba_parts  what vector blocks are written with
    compiling    the same marks for drivers and blocks that are compiled, with Numba's public parts
    private_numba
                 the same in less time, with private parts of versions that are known
    caching      where compiled drivers are kept
    interrupts   steps that no interrupt may end halfway
    llvm         what vector blocks are written with

The modules are executed twice: as `fastndcg.kernels` they are plain Python and import no Numba, as `fastndcg.compiled` they are compiled.
"""
