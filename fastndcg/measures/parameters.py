"""Parameters of measures: names, defaults, what values mean, and readers.

A reader checks a value and returns its canonical, hashable form, which prints as it is read.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, NoReturn

from fastndcg.errors import MeasureError, suggest
from fastndcg.measures.gains_and_discounts import DISCOUNTS, GAINS

MOST_CUTOFF = 10**100  # Python does not print integers of more than 4,300 digits


# ---- forms ----


class GradeGains(NamedTuple):
    """A gain for each listed grade. Other grades raise an error, or are their own gains if `overrides`."""

    gains: tuple[tuple[float, float], ...]
    overrides: bool

    def __str__(self) -> str:
        pairs = (f"{show_number(grade)}: {show_number(gain)}" for grade, gain in self.gains)
        return f"{{{', '.join(pairs)}}}"


class Numbers(tuple[float, ...]):
    """Gains of the grades 0, 1, 2, ... or discounts of the ranks 1, 2, 3, ..."""

    __slots__ = ()

    def __str__(self) -> str:
        return "[" + ", ".join(map(show_number, self)) + "]"


class Function:
    """A function as a parameter, equal only to itself; printed by name, and by number if names are equal."""

    __slots__ = ("__weakref__", "_answers", "_holders", "call", "name", "number")
    _alive: ClassVar[weakref.WeakValueDictionary[tuple[str, int], Function]] = weakref.WeakValueDictionary()

    def __init__(self, call: Callable[[Any], Any], name: str, number: int) -> None:
        self.call, self.name, self.number = call, name, number
        self._answers: dict[float, Any] = {}
        self._holders = 0

    @classmethod
    def of(cls, call: Callable[[Any], Any]) -> Function:
        named = call if hasattr(call, "__qualname__") else type(call)
        name = f"{named.__module__}.{named.__qualname__}"
        namesakes = [function for function in cls._alive.values() if function.name == name]
        for function in namesakes:
            if function.call is call:
                return function
        new = cls(call, name, max((function.number for function in namesakes), default=0) + 1)
        cls._alive[name, new.number] = new
        return new

    @classmethod
    def function_named(cls, name: str, number: int = 1) -> Function:
        function = cls._alive.get((name, number))
        if function is None:
            raise MeasureError(
                f"no function {name!r} is known here: pass the function itself, as in nDCG(gain=function)"
            )
        return function

    def ask(self, argument: float) -> Any:
        """Return the function's value. It is called once for each argument until `forget`."""
        if argument not in self._answers:
            self._answers[argument] = self.call(argument)
        return self._answers[argument]

    def forget(self) -> None:
        """Discard the values unless a call holds them: the function may return others later."""
        if not self._holders:
            self._answers.clear()

    def hold(self, holders: int) -> None:
        """Count a call that needs the values while it evaluates parts: 1 when it begins, -1 when it ends."""
        self.forget()
        self._holders += holders
        self.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return Function.of, (self.call,)

    def __str__(self) -> str:
        return f"function({self.name!r}{f', {self.number}' if self.number > 1 else ''})"


def show_number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    is_whole = math.isfinite(value) and value == int(value) and abs(value) < 2**53
    return str(int(value)) if is_whole else repr(value)


def show_value(value: object) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value)
    return show_number(value) if isinstance(value, int | float) else str(value)


def as_str(word: str) -> str:
    """Convert a subclass of str, such as NumPy's or an enumeration's, to str, so that it prints as one."""
    return word if type(word) is str else "".join(word)


# ---- readers ----

Reader = Callable[[str, Any], Any]  # takes the name of a parameter, for messages, and a value


STOPS = ("exp2", "linear")
# other tools' words
_OTHER_WORDS = dict.fromkeys(("exponential", "exp", "burges", "power"), "exp2")
_OTHER_WORDS |= {"identity": "linear", "mean": "average"}


def _refuse(name: str, got: object, expected: str, hint: str = "") -> NoReturn:
    raise MeasureError(f"{name}={got!r} is not known: {name} is {expected}.{hint}")


def _read_word(name: str, value: Any, words: Iterable[str], expected: str) -> str:
    if isinstance(value, str) and value in words:
        return as_str(value)
    other = _OTHER_WORDS.get(str(value).lower(), "")
    hint = f' Did you mean "{other}"?' if other in words else suggest(str(value), words)
    _refuse(name, value, expected, hint)


def _finite(name: str, value: Any) -> float:
    try:
        number = float("no number" if isinstance(value, str | bytes) else value)
    except (TypeError, ValueError):
        raise MeasureError(f"{name} holds {value!r}, where a number was expected") from None
    except OverflowError:
        raise MeasureError(
            f"{name} holds a number beyond float64, where one up to 1.8e308 was expected"
        ) from None
    if not math.isfinite(number):
        raise MeasureError(f"{name} holds {number}, where a finite number was expected")
    return number + 0.0  # turns -0.0 into 0.0


def _read_table(name: str, value: Any, words: Iterable[str], expected: str) -> str | Numbers | Function:
    """Read a value for each grade or rank, given as a word, a sequence or a function."""
    if isinstance(value, str):
        return _read_word(name, value, words, expected)
    if isinstance(value, Numbers | Function):
        return value
    if callable(value):
        return Function.of(value)
    if not isinstance(value, Iterable) or isinstance(value, bytes | Set | Mapping):
        _refuse(name, value, expected)
    numbers = Numbers(_finite(name, each) for each in value)
    if not numbers:
        raise MeasureError(f"{name}=[] is empty, where at least one number was expected")
    return numbers


def grade_gains(name: str, value: Any, *, overrides: bool) -> GradeGains:
    if not isinstance(value, Mapping) or not value:
        _refuse(
            name, value, "a mapping grade -> gain with at least one grade", " Words and functions are gain=."
        )
    pairs = {_finite(name, grade): _finite(name, gain) for grade, gain in value.items()}
    return GradeGains(tuple(sorted(pairs.items())), overrides)


def of_grade(words: Iterable[str]) -> Reader:
    """Return a reader of a value for each grade."""

    def read(name: str, value: Any) -> str | Numbers | GradeGains | Function:
        if isinstance(value, GradeGains):
            return value
        if isinstance(value, Mapping):
            return grade_gains(name, value, overrides=False)
        listed = ", ".join(map(repr, words))
        expected = f"{listed}, a sequence or mapping grade -> {name}, or a function of the grade"
        return _read_table(name, value, words, expected)

    return read


def read_discount(name: str, value: Any) -> str | float | Numbers | Function:
    words = ", ".join(map(repr, DISCOUNTS))
    expected = f"{words}, a base of the logarithm above 1, a sequence, or a function of the rank"
    if isinstance(value, bool | str | Iterable | Function) or callable(value):
        return _read_table(name, value, DISCOUNTS, expected)
    base = _finite(name, value)
    return base if base > 1 else _refuse(name, value, expected)


def read_empty(name: str, value: Any) -> str | float:
    expected = "a number, 'nan' or 'skip'"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, str):
        return _read_word(name, value, ("nan", "skip"), expected)
    return _refuse(name, value, expected) if isinstance(value, bool) else _finite(name, value)


def choice(*words: str) -> Reader:
    return lambda name, value: _read_word(name, value, words, "one of " + ", ".join(map(repr, words)))


def read_flag(name: str, value: Any, expected: str = "True or False") -> bool:
    return bool(value) if value in (True, False) else _refuse(name, value, expected)


def read_ips(name: str, value: Any) -> bool | str:
    return "snips" if value == "snips" else read_flag(name, value, "True, False or 'snips'")


def number(expected: str, fits: Callable[[float], bool] = math.isfinite, *, none: bool = False) -> Reader:
    """Return a reader of numbers that fit, and of None if `none`."""

    def read(name: str, value: Any) -> float | None:
        if value is None and none:
            return None
        found = math.nan if value is None or isinstance(value, bool) else _finite(name, value)
        return found if fits(found) else _refuse(name, value, expected)

    return read


def is_share(number: float) -> bool:
    return 0 <= number <= 1


def read_max_fp(name: str, value: Any) -> float | None:
    """Read a share below 1, a whole number of documents, or None, which means all, as the share 1.0 does."""
    if value is None or (value == 1 and not isinstance(value, Integral | str)):
        return None
    number = math.nan if isinstance(value, bool) else _finite(name, value)
    if 0 < number < 1:
        return number
    if not (1 <= number <= 2**53 and number == int(number)):
        _refuse(
            name, value, "a share of the documents above 0 and up to 1.0, a whole number of them, or None"
        )
    return int(number)  # 1 is a number of documents, 1.0 a share


# ---- declarations ----


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
TIES_OF_INTENTS = TIES._replace(reader=choice("average", "input"), values=TIES.values[:2])
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
