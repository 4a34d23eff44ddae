"""Every compiled function of the package: rank each query once, fold the ranking into all measures.

Kernels do not know measures or users' functions. They read tables (`tables.Plan`): the gain of each level,
the discount of each rank, and rows. A row names a list, a discount, a cutoff and a divisor.

    code grades to levels -> ideal lists -> rank by score -> lists of contributions -> one sum for each row

A list holds the gain of each rank (`lists.gather`). For a measure that is not linear in the gains it holds
the precision at each relevant document, or the probability to stop at each rank (`folds.fold_by_rank`). With
averaged ties both are expectations. So every measure is a sum over ranks, and one pass gives the values at
all cutoffs.

Scoring, in `flow`, from the functions that Python calls down to vector instructions:

    drivers      the serial driver, which defines the values, and the parallel one, which runs it over chunks
    scoring      batches of queries, through the flow above
    lanes        the steps that are done for all queries of a batch side by side
    gains, ideals, ranking, lists, folds, sums
                 the steps of one query, each a plain loop
    expectations
                 expected values over the orders of tied documents
    sorting      sorting of values and keys
    vectors      blocks that LLVM does not vectorise by itself, each beside the plain function that defines it
    memory       the working memory of a thread
    tables       arguments that Python passes to kernels; imports no Numba
    powers       gains by a formula, for Python and for kernels: the grade, 2^grade - 1, 1
    returned     nDCG over an ideal of the returned documents, which is not a sum over ranks
    intent_folds, intent_orders, intent_tables
                 measures of several intents
    exact        sums without rounding
    draws        random signs, orders and draws, for tests and intervals

Reading and ordering, in `reading`:

    rows         rows by query
    decoders     pages of Parquet
    words        bytes of text, eight at a time
    joining      judgments and a run, by document id

Compiling, in `compile`:

    worlds       chooses the plain or the compiled driver; all other modules call drivers through it
    marks        decorators that mark a function as a driver, a block and so on; no effect in plain Python
    numba_parts  names of Numba and llvmlite that vector blocks use
    compiling    the decorators of `marks` for compiled functions, with Numba's public interface
    private_numba
                 the same with Numba's private interface, which takes less time, for versions that were tested
    caching      the folder that keeps compiled drivers
    interrupts   steps that an interrupt must not end halfway
    llvm         vector code: values whose operators write instructions
    emitting     intrinsics of Numba whose code a vector block writes

Each module is loaded twice: as `fastndcg.kernels` it is plain Python and imports no Numba, as
`fastndcg.compiled` it is compiled.
"""
