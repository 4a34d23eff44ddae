"""Named cases with values that can be checked by hand, by the literature, or by running the tool that is
named.

Numbers 1 to 12 are those of the design's "undefined and unusual input"; the ids of the tests carry them.
"""

import math
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """Lists of one or more queries, a measure, and the value of each query."""

    number: int
    title: str
    relevance: Any
    scores: Any
    measure: str
    expected: list[float]


class Refusal(NamedTuple):
    """Input that must be refused, and what the message must say."""

    number: int
    title: str
    relevance: Any
    scores: Any
    measure: str
    message: str


# discount of each rank, from 1, correctly rounded: 1 / math.log2(3) is not
D = [math.nan] + [float(Decimal(2).ln() / Decimal(rank + 1).ln()) for rank in range(1, 11)]
INF, NAN = math.inf, math.nan

CASES = [
    Case(1, "empty query gives the default of empty", [[], [1]], [[], [0.5]], "nDCG@3", [0.0, 1.0]),
    Case(1, "empty query gives empty=1", [[], [1]], [[], [0.5]], "nDCG(empty=1.0)@3", [1.0, 1.0]),
    Case(1, "empty query gives empty='nan'", [[], [1]], [[], [0.5]], "nDCG(empty='nan')@3", [NAN, 1.0]),
    Case(1, "empty query gives empty='skip'", [[], [1]], [[], [0.5]], "nDCG(empty='skip')@3", [NAN, 1.0]),
    Case(1, "empty query under DCG", [[], [1]], [[], [0.5]], "DCG(empty='nan')", [NAN, 1.0]),
    Case(1, "empty query under CG", [[], [1]], [[], [0.5]], "CG(empty=0.5)", [0.5, 1.0]),
    Case(1, "empty query under IDCG", [[], [1]], [[], [0.5]], "IDCG(empty=0.5)", [0.5, 1.0]),
    Case(1, "empty query under IDCG of what was returned", [[], [1]], [[], [0.5]], "IDCG(ideal='returned', empty=0.5)", [0.5, 1.0]),
    Case(1, "empty query under IDCG of what was scored", [[], [1]], [[], [0.5]], "IDCG(ideal='scored', empty=0.5)", [0.5, 1.0]),
    Case(1, "empty query under IDCG of a full list", [[], [1]], [[], [0.5]], "IDCG(ideal='full', empty=0.5)@2", [0.5, D[1] + D[2]]),
    Case(1, "empty query though the full list is not", [[], [1]], [[], [0.5]], "nDCG(gain='binary', ideal='full', empty=0.5)@1", [0.5, 1.0]),
    Case(1, "empty query has no documents, which is a number", [[], [1]], [[], [0.5]], "NumRet", [0.0, 1.0]),
    Case(2, "no relevant document", [[0, 0, 0], [0, 1]], [[3, 2, 1], [2, 1]], "nDCG", [0.0, D[2]]),
    Case(2, "no relevant document, empty=1", [[0, 0, 0]], [[3, 2, 1]], "nDCG(empty=1.0)@2", [1.0]),
    Case(2, "no relevant document, empty='nan'", [[0, 0, 0]], [[3, 2, 1]], "nDCG(empty='nan')", [NAN]),
    Case(2, "none at or above the threshold", [[1, 1, 0]], [[3, 2, 1]], "nDCG(gain='binary', rel=2, empty=0.25)", [0.25]),
    Case(2, "no relevant document is no empty query to DCG", [[0, 0]], [[2, 1]], "DCG(empty=1.0)", [0.0]),
    Case(3, "k beyond the list", [[0, 1]], [[2, 1]], "nDCG@10", [D[2]]),
    Case(3, "k beyond the list gains nothing more", [[1, 1]], [[2, 1]], "DCG@10", [D[1] + D[2]]),
    Case(3, "effective k", [[1, 1], [1, 0, 0]], [[2, 1], [3, 2, 1]], "NumRet@2", [2.0, 2.0]),
    Case(3, "effective k is the list", [[1, 1], [1, 0, 0]], [[2, 1], [3, 2, 1]], "NumRet@10", [2.0, 3.0]),
    Case(3, "ideal='full' does count the ranks beyond the list", [[1]], [[1]], "nDCG(ideal='full')@2", [1 / (D[1] + D[2])]),
    Case(4, "all tied is one group", [[1, 0]], [[7, 7]], "nDCG", [(D[1] + D[2]) / 2]),
    Case(4, "all tied, cut inside the group", [[1, 0, 0]], [[7, 7, 7]], "nDCG@1", [1 / 3]),
    Case(4, "all tied, worst", [[1, 0, 0]], [[7, 7, 7]], "nDCG(ties='worst')", [D[3]]),
    Case(4, "all tied, best", [[0, 0, 1]], [[7, 7, 7]], "nDCG(ties='best')", [1.0]),
    Case(4, "all tied, input order", [[0, 1, 0]], [[7, 7, 7]], "nDCG(ties='input')", [D[2]]),
    Case(4, "all tied and alike is perfect", [[0.1] * 7], [[7] * 7], "nDCG@3", [1.0]),
    Case(5, "one document", [[2], [0]], [[0.3], [0.3]], "nDCG", [1.0, 0.0]),
    Case(5, "one document under DCG", [[2], [0]], [[0.3], [0.3]], "DCG@1", [2.0, 0.0]),
    Case(7, "infinite scores are ordered as such", [[0, 3, 1]], [[-INF, INF, 0.0]], "nDCG", [1.0]),
    Case(7, "minus infinity is last and ties with itself", [[0, 1, 1]], [[-INF, 5.0, -INF]], "DCG", [D[1] + (D[2] + D[3]) / 2]),
    Case(7, "plus infinity ties with itself", [[1, 0]], [[INF, INF]], "DCG", [(D[1] + D[2]) / 2]),
    Case(8, "negative grade that binary gain maps to 0", [[-1, 1]], [[2, 1]], "nDCG(gain='binary')", [D[2]]),
    Case(8, "negative grade that a mapping maps to 0", [[-1, 1]], [[2, 1]], "nDCG(gain={-1: 0, 1: 3})", [D[2]]),
    Case(8, "negative grade below the threshold", [[-1, 1]], [[2, 1]], "nDCG(rel=1)", [D[2]]),
    Case(8, "negative grade under DCG", [[-1, 1]], [[2, 1]], "DCG", [D[2] - D[1]]),
    Case(10, "the highest grade whose 2^rel - 1 is exact", [[53, 0]], [[2, 1]], "CG(gain='exp2')", [float(2**53 - 1)]),
    Case(11, "integers that float64 cannot tell apart", [[0, 1]], [np.array([2**53, 2**53 + 1])], "nDCG", [1.0]),
    Case(11, "integers that float64 cannot tell apart, negative", [[1, 0]], [np.array([-(2**53), -(2**53) - 1])], "nDCG", [1.0]),
    Case(11, "the smallest int8 is not negated", [[1, 0]], [np.array([0, -128], np.int8)], "nDCG", [1.0]),
    Case(11, "the smallest int64 is not negated", [[1, 0]], [np.array([0, -(2**63)], np.int64)], "nDCG", [1.0]),
    Case(12, "unsigned scores", [[0, 1, 2]], [np.array([0, 1, 2], np.uint8)], "nDCG", [1.0]),
    Case(12, "unsigned grades", [np.array([0, 1, 2], np.uint8)], [[0, 1, 2]], "nDCG", [1.0]),
    Case(12, "scores near the end of uint64", [[0, 1]], [np.array([2**64 - 2, 2**64 - 1], np.uint64)], "nDCG", [1.0]),
    Case(12, "truth values as scores", [[0, 1, 1]], [np.array([False, True, True])], "nDCG", [1.0]),
]  # fmt: skip

REFUSALS = [
    Refusal(6, "NaN score", [[1, 0], [1, 0]], [[0.5, 0.1], [0.5, NAN]], "nDCG", r"scores has 1 NaN value; .* position 1 of query 1"),
    Refusal(8, "negative grade", [[1, 0], [1, -1]], [[2, 1], [2, 1]], "nDCG", r"-1"),
    Refusal(8, "negative grade under exp2", [[1, -1]], [[2, 1]], "nDCG(gain='exp2')", r"-1"),
    Refusal(10, "gain overflow", [[54, 0]], [[2, 1]], "nDCG(gain='exp2')", r"54"),
]  # fmt: skip

# Järvelin and Kekäläinen's definition with linear gain, as textbooks and blog posts work it out, to two
# places.
LITERATURE_LINEAR = ([4, 2, 5, 3, 5], {1: 0.80, 2: 0.65, 3: 0.76, 4: 0.79, 5: 0.90})

# Published as "DCG 12.79 of 13.36" for gain 2^rel - 1 and discount 1/log2(rank + 1). By hand:
#   DCG  = 7 + 3/log2(3) + 7/2 + 0/log2(5) + 1/log2(6) = 7 + 1.892789 + 3.5 + 0 + 0.386853 = 12.779642
#   IDCG = 7 + 7/log2(3) + 3/2 + 1/log2(5)             = 7 + 4.416508 + 1.5 + 0.430677     = 13.347185
# so both published figures are 0.01 too high (12.78 and 13.35 are right); their ratio, 0.957, is not affected.
LITERATURE_EXP2 = ([3, 2, 3, 0, 1], 12.779642067948915, 13.347184833073596)


class Golden(NamedTuple):
    """A system's own number for one query, by its convention and by the parameters that say how it got there."""

    system: str  # the name of its convention
    cutoff: int | None
    measure: str
    expected: float
    order: tuple[int, ...] = (
        0,
        1,
        2,
        3,
        4,
        5,
    )  # rows as a reader with a rule of document ids would hand them over
    judged: bool = False  # whether the pool, with its document that was not retrieved, is known to it


GOLDEN_GRADES = [3, 0, 2, 1, 0, 1]
GOLDEN_SCORES = [0.9, 0.8, 0.8, 0.7, 0.1, 0.1]
GOLDEN_POOL = [3, 0, 2, 1, 0, 1, 2]
_BY_FALLING_ID = (5, 4, 3, 2, 1, 0)

GOLDEN = [
    Golden("pytrec_eval", None, "nDCG(ties='input')", 0.8355097821539982, _BY_FALLING_ID, True),
    Golden("pytrec_eval", 3, "nDCG(ties='input')@3", 0.8099531166420328, _BY_FALLING_ID, True),
    Golden("ranx", None, "nDCG(ties='input')", 0.7873955500483762, judged=True),
    Golden("ranx", 3, "nDCG(ties='input')@3", 0.7601875334318685, judged=True),
    Golden("ranx_burges", None, "nDCG(gain='exp2', ties='input')", 0.8284228178513983, judged=True),
    Golden("ranx_burges", 3, "nDCG(gain='exp2', ties='input')@3", 0.8178747578506881, judged=True),
    Golden("sklearn", None, "nDCG", 0.9500437256203499),
    Golden("sklearn", 3, "nDCG@3", 0.8675034925694373),
    Golden("lightgbm", 3, "nDCG(gain='exp2', ties='input', empty=1.0)@3", 0.9049495058460971),
    Golden("lightgbm", 6, "nDCG(gain='exp2', ties='input', empty=1.0)@6", 0.9453775191460313),
    Golden("xgboost", 3, "nDCG(gain='exp2', ties='input', empty=1.0)@3", 0.9049495058460971),
    Golden("xgboost", None, "nDCG(gain='exp2', ties='input', empty=1.0)@32", 0.9453775191460311),
    Golden("catboost", None, "nDCG(ties='worst', empty=1.0)", 0.9218778040363993),
    Golden("catboost", 3, "nDCG(ties='worst', empty=1.0)@3", 0.8400079830158564),
    Golden("catboost_exp", 3, "nDCG(gain='exp2', ties='worst', empty=1.0)@3", 0.9049495058460971),
    Golden("catboost_position", 3, "nDCG(discount='reciprocal', ties='worst', empty=1.0)@3", 0.8461538461538461),
    # log2(max(rank, 2)) is 1 at ranks 1 and 2, which is Järvelin and Kekäläinen's rule for base 2
    Golden("lenskit", 3, "nDCG(discount='jarvelin', ties='input')@3", 0.6806060567602009, judged=True),
]  # fmt: skip
