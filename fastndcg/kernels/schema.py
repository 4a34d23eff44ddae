"""Measures and documents as kernels read them: tables of numbers, and their columns. No Numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# columns of Plan.rows
LIST, DISCOUNT, IDEAL, CUTOFF, UNDEFINED, OUT, DIVISOR, TOTAL = range(8)
UNCUT = np.iinfo(np.int64).max
AT_RELEVANT = -1  # cutoff at the number of relevant documents
# conditions under which a row has no value
NEVER, NO_DOCUMENTS, NO_IDEAL, NO_RELEVANT, NO_PAIR = range(5)
SKIPPABLE = (NO_IDEAL, NO_RELEVANT)
# divisors of a row's sum
AS_IS, BY_IDEAL, BY_CUTOFF, BY_RELEVANT, BY_FEWER, WEIGHTED = range(6)
BY_FEWER_RETURNED, BY_BOTH, SCALED, RESIDUAL, LEFT, SHARE_LEFT, POOL_TOTAL, BY_RETURNED = range(6, 14)
# columns of Plan.lists
TABLE, TIES, CONDENSED, TERM, RELEVANT, NONRELEVANT = range(6)
# terms: what each rank adds to a list; those after COUNT are compiled only for plans that use them
GAIN, COUNT, REACHED, FIRST, HITS, STOP = range(6)
PREFERENCE, INFERRED, INTERPOLATED, MEAN_OF_HITS, PAIRS, GRADED_PAIRS = range(6, 12)
# columns of Plan.term_parameters: a parameter, the cutoff of a list that holds one number, the value without
# a pair
PARAMETER, CUT_AT, EMPTY = range(3)
OF_BEST = 1.0  # parameter of FIRST: only documents with the best gain of the list count
NOT_BY_RANK = 1.0  # parameter of STOP: probabilities are not divided by the rank
AVERAGE, INPUT, WORST, BEST = range(4)
# lists of a query that were made side by side with those of other queries: none, those that average ties, or
# all linear ones
NONE_MADE, AVERAGED_MADE, ALL_MADE = range(3)
# columns of Plan.ideals, after TABLE; POOL is the "judged" ideal whose best gain a "full" ideal uses
SOURCE, OF_LIST, IDEAL_CUTOFF, POOL, LEAVES_OUT = 1, 2, 3, 4, 5
JUDGED, SCORED, RETURNED, FULL = range(4)
# kinds of gain where grades have no levels
LINEAR, EXP2, ONE, LOOKUP = range(4)

HELD = 8192  # queries with at most so many documents, and ranks of all lists, are scored side by side


class Plan(NamedTuple):
    """Measures as tables: T gain tables, L levels and one more for "unjudged", D discounts."""

    gains: Array  # float64 (T, L + 2): gain of each level, of an unjudged document, and 0 for a rank left out
    falling: Array  # int64 (T, L + 2): levels by falling gain
    # int64 (T,): levels of `falling` that count in an ideal: those that gain; all where a gain is negative
    earning: Array
    exact: Array  # bool (T,): gains are whole, so sums of them are exact in any order
    assumed: Array  # bool (T,): unjudged documents count as judged ones of an assumed grade
    top: Array  # float64 (T,): gain of the scale's best grade; NaN where the query's own best grade counts
    kinds: Array  # int64 (T,): kind of gain, where grades have no levels
    thresholds: Array  # float64 (T,): grades below it gain nothing, where grades have no levels
    grades: Array  # float64 (L,): grade of each column of `gains`, for kind LOOKUP
    lists: Array  # int64 (n_lists, 6): TABLE, TIES, CONDENSED, FOLD, and the totals RELEVANT and NONRELEVANT
    # float64 (n_lists, 3): PARAMETER, CUT_AT, EMPTY; None without terms after COUNT, so that none is compiled
    term_parameters: Any
    ideals: Array  # int64 (n_ideals, 6): TABLE, SOURCE, OF_LIST, IDEAL_CUTOFF, POOL, LEAVES_OUT
    totals: Array  # int64 (n_totals,): tables whose gains are added up over the judged documents
    discounts: Array  # float64 (D, ranks + 1)
    # int64 (n_rows, 8): LIST, DISCOUNT (-1: the list holds sums), IDEAL, CUTOFF, UNDEFINED, OUT, OVER, TOTAL
    rows: Array
    weights: Array  # float64 (n_rows,): beta^2, or 1 - p
    depth: int  # ranks that the lists need
    ideal_depth: int  # ranks that the ideal lists need
    condensing: bool  # some list drops unjudged documents
    first_needed: int  # documents with lower codes gain nothing by any table and need no rank
    # bool (2, L + 1): levels, and "unjudged", with a gain in an ideal of scored, and of judged documents
    promising: Array
    skippable: bool  # a query whose ideals gain nothing has no value by any row


class Documents(NamedTuple):
    """Columns of documents of consecutive queries, which begin at rows `base` and `pool_base` of all."""

    offsets: Array  # int64 (n_queries + 1,), of all queries
    relevance: Array  # uint8 levels, or float64 grades
    scores: Array  # float32, float64 or int64
    is_judged: Array  # bool; of length 0 if all are judged, or unjudged documents have a level of their own
    pool_offsets: Array  # int64 (n_queries + 1,), of all; of length 0 if the scored documents are the pool
    pool_relevance: Array
    base: int
    pool_base: int
    levels: int  # all codes are below it
    lowest: Any  # least value of the scores' dtype
