"""Parameters of measures: names, defaults, and what their values mean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from fastndcg.errors import MeasureError
from fastndcg.measures.gains_and_discounts import DISCOUNTS, GAINS
from fastndcg.measures.validation import (
    STOPS,
    GradeGains,
    Reader,
    choice,
    grade_gains,
    is_share,
    number,
    of_grade,
    read_discount,
    read_empty,
    read_flag,
    read_ips,
    read_max_fp,
    read_ties_of_intents,
)


class Parameter(NamedTuple):
    """One parameter of a measure."""

    name: str
    default: Any
    reader: Reader
    meaning: str
    values: tuple[tuple[str, str], ...] = ()  # possible values as they are written, and their meanings
    # fields of `Definition` that change with a value, and with any value but the default
    changes: Mapping[Any, Mapping[str, str]] = MappingProxyType({})
    otherwise: Mapping[str, str] = MappingProxyType({})

    def read(self, value: Any) -> Any:
        """Return the canonical form of a value. Raise `MeasureError` for an unknown one."""
        return self.reader(self.name, value)

    def __hash__(self) -> int:
        return hash((self.name, self.default, self.meaning))


def _one_of(name: str, meaning: str, words: Mapping[str, str], **changes: Mapping[str, str]) -> Parameter:
    """Return a parameter that takes one of these words. The first is the default; `changes` are by word."""
    values = tuple((repr(word), text) for word, text in words.items())
    return Parameter(name, next(iter(words)), choice(*words), meaning, values, changes)


_SEQUENCE = "a sequence", "the gains of the grades 0, 1, 2, ..."
_OF_GRADE = "a function", "of the grade; it is called once for each grade"
_PROBABILITY = number("a probability: a number from 0 to 1", is_share)

GAIN = _one_of("gain", "the gain of a grade", {word: gain.meaning for word, gain in GAINS.items()})
GAIN = GAIN._replace(
    reader=of_grade(GAINS), values=(*GAIN.values, _SEQUENCE, ("a mapping", "grade -> gain"), _OF_GRADE)
)
STOP_OF_SCALE = Parameter(
    "stop",
    "exp2",
    of_grade(STOPS),
    "the probability that a user stops at a document, by its grade",
    (
        ("'exp2'", "(2^grade - 1) / 2^max_rel"),
        ("'linear'", "the grade itself, from 0 to 1"),
        ("a sequence", "the probabilities of the grades 0, 1, 2, ..."),
        ("a mapping", "grade -> probability"),
        _OF_GRADE,
    ),
)
STOP = STOP_OF_SCALE._replace(default="linear", reader=of_grade(STOPS[1:]), values=STOP_OF_SCALE.values[1:])
DISCOUNT = _one_of(
    "discount",
    "the weight of a gain at a rank",
    {word: discount.meaning for word, discount in DISCOUNTS.items()},
)
DISCOUNT = DISCOUNT._replace(
    reader=read_discount,
    values=(
        *DISCOUNT.values,
        ("a number b", "1 / log_b(i + 1)"),
        ("a sequence", "the discounts of the ranks 1, 2, 3, ..."),
        ("a function", "of the rank; it is called once for each rank"),
    ),
)
TIES = _one_of(
    "ties",
    "the order of documents with equal scores",
    {
        "average": "the expected value over all orders of tied documents",
        "input": "tied documents in the order of the data",
        "worst": "tied documents by ascending gain",
        "best": "tied documents by descending gain",
    },
)
_BLOCK = "tied documents together: each has the precision at the end of its group, as in scikit-learn"
TIES_OF_AP = TIES._replace(
    reader=choice("average", "input", "worst", "best", "block"),
    values=(*TIES.values, ("'block'", _BLOCK)),
    changes={"block": {"method": "blocks"}},
)
TIES_OF_INTENTS = TIES._replace(reader=read_ties_of_intents, values=TIES.values[:2])
IDEAL = _one_of(
    "ideal",
    "the documents of the ideal ranking",
    {
        "judged": "all judged documents; the scored documents if no pool is given",
        "scored": "the scored documents",
        "returned": "the documents on the first k ranks",
        "full": "k documents of the top grade",
        "judged_uncut": "all judged documents, whatever the cutoff",
        "judged_returned": "as many judged documents as were returned",
    },
    judged_uncut={"method": "built ideals"},
    judged_returned={"method": "built ideals"},
)
EMPTY = Parameter(
    "empty",
    0.0,
    read_empty,
    "value of a query where the measure is undefined",
    (
        ("a number", "that value"),
        ("'nan'", "NaN, and the mean is NaN"),
        ("'skip'", "NaN, and the mean leaves the query out"),
    ),
)
# counts have a value for every query, unless the caller asks for another
EMPTY_OF_RELEVANT = EMPTY._replace(otherwise={"undefined": "no relevant"})
EMPTY_OF_RETURNED = EMPTY._replace(otherwise={"undefined": "no documents"})
FLOOR = _one_of(
    "floor",
    "the DCG that has the value 0; that of the ideal ranking has the value 1",
    {
        "zero": "0",
        "worst": "the DCG of the judged documents by ascending gain, so that gains may be negative",
    },
    worst={"method": "built ideals"},
)
JUDGED_ONLY = Parameter("judged_only", False, read_flag, "drop unjudged documents before ranking")
REL = Parameter(
    "rel", None, number("a grade", none=True), "smallest grade that counts; with None every gain counts"
)
RELEVANT = Parameter("rel", 1.0, number("a grade"), "smallest grade that counts as relevant")
UNJUDGED = Parameter("unjudged", None, number("a grade", none=True), "grade that unjudged documents get")
BETA = Parameter(
    "beta",
    1.0,
    number("a number above 0 and below 1e+100", lambda beta: 0 < beta < 1e100),
    "weight of recall relative to precision",
)
PERSISTENCE = Parameter(
    "p",
    0.8,
    number("a number above 0 and below 1", lambda p: 0 < p < 1),
    "probability of going on to the next document",
)
RECALL = Parameter(
    "recall",
    None,
    number("a number from 0 to 1", is_share, none=True),
    "recall level; the best precision from there on counts; written IPrec@0.1",
)
PRECISIONS = _one_of(
    "denominator",
    "the divisor of the sum of precisions",
    {
        "n_relevant": "all relevant documents, as in trec_eval",
        "cutoff": "all relevant documents, but at most k",
        "returned": "all relevant documents, but at most k, and at most the documents returned",
        "hits": "relevant documents on the first k ranks",
        "k": "k, whatever is relevant; without a cutoff the documents returned",
        "none": "none: the mean of P@1, P@2, ... and P@k, which needs a cutoff",
    },
    cutoff={"divisor": "capped"},
    returned={"divisor": "fewer returned"},
    hits={"divisor": "nothing", "term": "mean of hits"},
    k={"divisor": "cutoff"},
    none={"divisor": "cutoff", "term": "gain", "discount": "harmonic"},
)
DOCUMENTS = _one_of(
    "denominator",
    "the divisor of the number of relevant documents found",
    {
        "cutoff": "k; without a cutoff the documents returned",
        "returned": "k, but at most the documents returned",
        "n_relevant": "k, but at most all relevant documents",
    },
    returned={"divisor": "returned"},
    n_relevant={"divisor": "fewer"},
)
FOUND = _one_of(
    "denominator",
    "the divisor of the number of relevant documents found",
    {"n_relevant": "all relevant documents", "cutoff": "all relevant documents, but at most k"},
    cutoff={"divisor": "capped"},
)
PERFECT = _one_of(
    "denominator",
    "the divisor of the sum",
    {
        "perfect": "the sum for a ranking of documents that are all perfect for every intent",
        "none": "nothing",
    },
)
OF = _one_of(
    "of",
    "the document whose rank counts",
    {
        "first": "the first relevant document",
        "best": "the first of those with the best grade of all returned, or of all above score_above",
    },
    best={"gain": "best"},
)
SCORE_ABOVE = Parameter(
    "score_above",
    None,
    number("a score", none=True),
    "documents found count only if their score is greater",
    otherwise={"method": "above a score"},
)
ROUNDING = _one_of(
    "rounding",
    "how the number of relevant documents at a recall level is made whole",
    {
        "up": "int(recall * n_relevant + 0.9), as in trec_eval up to 9",
        "nearest": "to the nearest whole number, halves up, as in trec_eval 10",
    },
)
DECAY = Parameter(
    "decay", 0.85, _PROBABILITY, "probability of going on to the next document for a user who did not stop"
)
PAIRS = _one_of(
    "pairs",
    "the pairs of documents whose order counts",
    {
        "relevant": "a relevant document and one that is not",
        "graded": "two documents of different grades; all of them, without a cutoff",
    },
    graded={"gain": "grade", "term": "graded pairs", "cut": "none"},
)
MAX_FP = Parameter(
    "max_fp",
    None,
    read_max_fp,
    "how many documents that are not relevant the ROC curve is followed for; None: all",
    (
        ("a share", "of those returned, corrected by McClish as scikit-learn's max_fpr; 1.0 is all"),
        ("a whole number", "the first so many, as in RecTools' PartialAUC"),
    ),
)
RELATIVE = Parameter(
    "relative",
    False,
    read_flag,
    "divide by the highest possible precision",
    otherwise={"divisor": "fewer returned"},
)
_SCALE = "a grade above 0 and up to 53", lambda grade: 0 < grade <= 53
MAX_REL = Parameter("max_rel", 4.0, number(*_SCALE), "highest grade of the scale")
GRADED = Parameter(
    "max_rel",
    None,
    number(*_SCALE, none=True),
    "highest grade of the scale; None: users stop at grades from `rel` on with probability 1/2, "
    "at others never",
)
SCALE_TOP = Parameter(
    "max_rel", None, number("a grade", none=True), "highest grade of the scale; it must be named"
)
SCALE_BOTTOM = Parameter("min_rel", 0.0, number("a grade"), "lowest grade of the scale, with gain 0")
IPS = Parameter(
    "ips",
    False,
    read_ips,
    "divide gains by propensities: unbiased, but with a large variance if some are small; "
    "'snips' also divides by the sum of these gains",
    (
        ("False", "plain gains"),
        ("True", "gains divided by propensities"),
        ("'snips'", "gains divided by propensities, and the value of the query by the sum of these gains"),
    ),
    otherwise={"method": "propensities"},
)
CLIP = Parameter(
    "clip",
    0.0,
    _PROBABILITY,
    "lower bound of propensities: smaller ones are raised to it, which lowers the variance and biases "
    "towards 0",
)
ALPHA = Parameter(
    "alpha",
    0.5,
    number("a number from 0 to 1", is_share),
    "share of its gain that an intent loses with each relevant document above",
)


# ---- spellings of ir_measures ----


def spelling_of(name: str, value: object) -> str:
    return "gains" if isinstance(value, GradeGains) and value.overrides else name


def read_spellings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Convert ir_measures' parameters: `dcg='exp-log2'`, and `gains={grade: gain}` over linear gains."""
    read = dict(parameters)
    if "dcg" in read:
        dcg = choice("log2", "exp-log2")("dcg", read.pop("dcg"))
        gain = "exp2" if dcg == "exp-log2" else "linear"
        other = read.setdefault("gain", gain)
        if not isinstance(other, str) or other != gain:
            raise MeasureError(
                f"dcg={dcg!r} and gain={other!r} were both passed, but dcg is ir_measures' name for "
                "the gain; pass only one"
            )
    if "gains" in read:
        gains = read.pop("gains")
        if "gain" in read and read["gain"] != "linear":
            raise MeasureError(
                "gain and gains were both passed; pass only one: gain defines all grades, "
                "gains overrides some of a linear gain"
            )
        if gains is not None:
            read["gain"] = grade_gains("gains", gains, overrides=True)
    return read
