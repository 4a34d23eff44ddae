"""Parameters of measures: names, defaults, and readers that check values and make them canonical."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, NamedTuple, NoReturn

from fastndcg.errors import MeasureError, suggest
from fastndcg.measures.parameter_values import Function, GradeGains, Numbers


class Parameter(NamedTuple):
    """One parameter of a measure."""

    name: str
    default: Any
    read: Callable[[Any], Any]
    meaning: str
    values: tuple[tuple[str, str], ...] = ()  # its possible values as they are written, and their meanings
    # values with which a measure is computed another way, see `Definition.way`
    ways: tuple[tuple[Any, str], ...] = ()


def _refuse(name: str, got: object, wanted: str, hint: str = "") -> NoReturn:
    raise MeasureError(f"{name}={got!r} is not known: {name} is {wanted}.{hint}")


def as_str(word: str) -> str:
    """Convert a subclass of str, such as NumPy's or an enumeration's, to str, so that it prints as one."""
    return word if type(word) is str else "".join(word)


_OTHER_WORDS = {
    "exponential": "exp2",
    "exp": "exp2",
    "burges": "exp2",
    "power": "exp2",
    "identity": "linear",
    "mean": "average",
}


def _suggest_word(word: str, choices: Iterable[str]) -> str:
    """Return a suggestion as `suggest` does, also for the words of other tools."""
    other = _OTHER_WORDS.get(word.lower())
    return f' Did you mean "{other}"?' if other is not None and other in choices else suggest(word, choices)


def _read_word(name: str, value: Any, words: Iterable[str], wanted: str) -> str:
    if isinstance(value, str) and value in words:
        return as_str(value)
    _refuse(name, value, wanted, _suggest_word(str(value), words))


def _choice(name: str, *words: str) -> Callable[[Any], str]:
    return lambda value: _read_word(name, value, words, "one of " + ", ".join(map(repr, words)))


def _one_of(name: str, words: Mapping[str, str], meaning: str) -> Parameter:
    """Return a parameter that takes one of the words. The first is the default."""
    return Parameter(name, next(iter(words)), _choice(name, *words), meaning, _quote(words))


def _quote(words: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((repr(word), meaning) for word, meaning in words.items())


def _finite(name: str, value: Any) -> float:
    try:
        number = float("no number" if isinstance(value, str | bytes) else value)
    except (TypeError, ValueError):
        raise MeasureError(f"{name} holds {value!r}, where a number was wanted") from None
    except OverflowError:
        raise MeasureError(
            f"{name} holds a number beyond float64, where one up to 1.8e308 was wanted"
        ) from None
    if not math.isfinite(number):
        raise MeasureError(f"{name} holds {number}, where a finite number was wanted")
    return number + 0.0  # turns -0.0 into 0.0


def _sequence(name: str, values: Iterable[Any]) -> Numbers:
    numbers = Numbers(_finite(name, value) for value in values)
    if not numbers:
        raise MeasureError(f"{name}=[] is empty, where at least one number was wanted")
    return numbers


_GAINS = {"linear": "the grade", "exp2": "2^grade - 1", "binary": "1 from the grade `rel` on, 0 below it"}
_DISCOUNTS = {
    "log2": "1 / log2(i + 1)",
    "jarvelin": "1 at the ranks 1 and 2, then 1 / log2(i)",
    "reciprocal": "1 / i",
    "ln": "1 / ln(i + e)",
}


def _read_table(name: str, value: Any, words: Iterable[str], wanted: str) -> str | Numbers | Function:
    """Read a value for each grade or rank, given as a word, a sequence or a function."""
    if isinstance(value, str):
        return _read_word(name, value, words, wanted)
    if isinstance(value, Numbers | Function):
        return value
    if callable(value):
        return Function.of(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes | Set | Mapping):
        return _sequence(name, value)
    _refuse(name, value, wanted)


def _read_gain(value: Any) -> str | Numbers | GradeGains | Function:
    if isinstance(value, GradeGains):
        return value
    if isinstance(value, Mapping):
        return _grade_gains("gain", value, overrides=False)
    words = ", ".join(map(repr, _GAINS))
    wanted = f"{words}, a sequence or mapping grade -> gain, or a function of the grade"
    return _read_table("gain", value, _GAINS, wanted)


def _grade_gains(name: str, value: Any, *, overrides: bool) -> GradeGains:
    if not isinstance(value, Mapping) or not value:
        _refuse(name, value, "a mapping grade -> gain with at least one grade")
    pairs = {_finite(name, grade): _finite(name, gain) for grade, gain in value.items()}
    return GradeGains(tuple(sorted(pairs.items())), overrides)


def _read_discount(value: Any) -> str | float | Numbers | Function:
    words = ", ".join(map(repr, _DISCOUNTS))
    wanted = f"{words}, a base of the logarithm above 1, a sequence, or a function of the rank"
    if isinstance(value, bool | str | Iterable | Function) or callable(value):
        return _read_table("discount", value, _DISCOUNTS, wanted)
    base = _finite("discount", value)
    return base if base > 1 else _refuse("discount", value, wanted)


def _read_empty(value: Any) -> str | float:
    wanted = "a number, 'nan' or 'skip'"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, str):
        return _read_word("empty", value, ("nan", "skip"), wanted)
    return _refuse("empty", value, wanted) if isinstance(value, bool) else _finite("empty", value)


def _read_flag(name: str) -> Callable[[Any], bool]:
    return lambda value: bool(value) if value in (True, False) else _refuse(name, value, "True or False")


def _read_ips(value: Any) -> bool | str:
    if value == "snips":
        return "snips"
    return bool(value) if value in (True, False) else _refuse("ips", value, "True, False or 'snips'")


def _read_number(
    name: str, wanted: str, fits: Callable[[float], bool] = math.isfinite, *, none: bool = False
) -> Callable[[Any], Any]:
    """Return a reader that accepts numbers that fit, and None if `none`."""

    def read(value: Any) -> float | None:
        if value is None and none:
            return None
        number = math.nan if value is None or isinstance(value, bool) else _finite(name, value)
        return number if fits(number) else _refuse(name, value, wanted)

    return read


def _is_share(number: float) -> bool:
    return 0 <= number <= 1


def _read_ties_of_intents(value: Any) -> str:
    if value in ("worst", "best"):
        raise MeasureError(
            f"ties={value!r} is not computed for several intents: "
            f"the {value} order of tied documents is as hard to find as the ideal ranking. "
            'Use ties="average", the expected value, or ties="input".'
        )
    return _choice("ties", "average", "input")(value)


def _read_max_rel(*, none: bool) -> Callable[[Any], float | None]:
    return _read_number("max_rel", "a grade above 0 and up to 53", lambda grade: 0 < grade <= 53, none=none)


GAIN = Parameter(
    "gain",
    "linear",
    _read_gain,
    "the gain of a grade",
    (
        *_quote(_GAINS),
        ("a sequence", "the gains of the grades 0, 1, 2, ..."),
        ("a mapping", "grade -> gain"),
        ("a function", "of the grade; it is called once for each grade"),
    ),
)
DISCOUNT = Parameter(
    "discount",
    "log2",
    _read_discount,
    "the weight of a gain at a rank",
    (
        *_quote(_DISCOUNTS),
        ("a number b", "1 / log_b(i + 1)"),
        ("a sequence", "the discounts of the ranks 1, 2, 3, ..."),
        ("a function", "of the rank; it is called once for each rank"),
    ),
)
TIES = _one_of(
    "ties",
    {
        "average": "the expected value over all orders of tied documents",
        "input": "tied documents in the order of the data",
        "worst": "tied documents by rising gain",
        "best": "tied documents by falling gain",
    },
    "the order of documents with equal scores",
)
IDEAL = _one_of(
    "ideal",
    {
        "judged": "all judged documents; the scored documents if no pool is given",
        "scored": "the scored documents",
        "returned": "the documents on the first k ranks",
        "full": "k documents of the top grade",
        "judged_uncut": "all judged documents, whatever the cutoff",
        "judged_returned": "as many judged documents as were returned",
    },
    "the documents of the ideal ranking",
)._replace(ways=(("judged_uncut", "laid out"), ("judged_returned", "laid out")))
EMPTY = Parameter(
    "empty",
    0.0,
    _read_empty,
    "value of a query where the measure is undefined",
    (
        ("a number", "that value"),
        ("'nan'", "NaN, and the mean is NaN"),
        ("'skip'", "NaN, and the mean leaves the query out"),
    ),
)
JUDGED_ONLY = Parameter(
    "judged_only", False, _read_flag("judged_only"), "drop unjudged documents before ranking"
)
REL = Parameter(
    "rel",
    None,
    _read_number("rel", "a grade", none=True),
    "smallest grade that counts; with None every gain counts",
)
RELEVANT = Parameter("rel", 1.0, _read_number("rel", "a grade"), "smallest grade that counts as relevant")
UNJUDGED = Parameter(
    "unjudged", None, _read_number("unjudged", "a grade", none=True), "grade that unjudged documents get"
)
BETA = Parameter(
    "beta",
    1.0,
    _read_number("beta", "a number above 0 and below 1e+100", lambda beta: 0 < beta < 1e100),
    "weight of recall relative to precision",
)
PERSISTENCE = Parameter(
    "p",
    0.8,
    _read_number("p", "a number above 0 and below 1", lambda p: 0 < p < 1),
    "probability of going on to the next document",
)
RECALL = Parameter(
    "recall",
    None,
    _read_number("recall", "a number from 0 to 1", _is_share, none=True),
    "recall level; the best precision from there on counts; written IPrec@0.1",
)
DENOMINATOR = _one_of(
    "denominator",
    {"n_relevant": "all relevant documents", "min(n_relevant, k)": "all relevant documents, but at most k"},
    "the divisor of the sum of precisions",
)
RELATIVE = Parameter("relative", False, _read_flag("relative"), "divide by the highest possible precision")
MAX_REL = Parameter("max_rel", 4.0, _read_max_rel(none=False), "highest grade of the scale")
SCALE_TOP = Parameter(
    "max_rel",
    None,
    _read_number("max_rel", "a grade", none=True),
    "highest grade of the scale; it must be named",
)
SCALE_BOTTOM = Parameter(
    "min_rel", 0.0, _read_number("min_rel", "a grade"), "lowest grade of the scale, with gain 0"
)
IPS = Parameter(
    "ips",
    False,
    _read_ips,
    "divide gains by propensities: unbiased, but with a large variance if some are small; "
    "'snips' also divides by the sum of these gains",
    (
        ("False", "plain gains"),
        ("True", "gains divided by propensities"),
        ("'snips'", "gains divided by propensities, and the value of the query by the sum of these gains"),
    ),
    ways=((True, "propensities"), ("snips", "propensities")),
)
CLIP = Parameter(
    "clip",
    0.0,
    _read_number("clip", "a probability: a number from 0 to 1", _is_share),
    "lower bound of propensities: smaller ones are raised to it, which lowers the variance and biases "
    "towards 0",
)
ALPHA = Parameter(
    "alpha",
    0.5,
    _read_number("alpha", "a number from 0 to 1", _is_share),
    "share of its gain that an intent loses with each relevant document above",
)
TIES_OF_INTENTS = Parameter(TIES.name, TIES.default, _read_ties_of_intents, TIES.meaning, TIES.values[:2])
PERFECT = _one_of(
    "denominator",
    {
        "perfect": "the sum for a ranking of documents that are all perfect for every intent",
        "none": "nothing",
    },
    "the divisor of the sum",
)
GRADED = Parameter(
    "max_rel",
    None,
    _read_max_rel(none=True),
    "highest grade of the scale; None: users stop at grades from `rel` on with probability 1/2, "
    "at others never",
)


# ---- spellings of ir_measures ----


def spelling_of(name: str, value: object) -> str:
    return "gains" if isinstance(value, GradeGains) and value.overrides else name


def read_spellings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Convert ir_measures' parameters: `dcg='exp-log2'`, and `gains={grade: gain}` over linear gains."""
    read = dict(parameters)
    if "dcg" in read:
        dcg = _choice("dcg", "log2", "exp-log2")(read.pop("dcg"))
        gain = "exp2" if dcg == "exp-log2" else "linear"
        given = read.setdefault("gain", gain)
        if not isinstance(given, str) or given != gain:
            raise MeasureError(
                f"dcg={dcg!r} and gain={given!r} are both given, but dcg is ir_measures' name for the gain; "
                "give one of them"
            )
    if "gains" in read:
        gains = read.pop("gains")
        if "gain" in read and read["gain"] != "linear":
            raise MeasureError(
                "gain and gains are both given; give one: gain defines all grades, "
                "gains overrides some of a linear gain"
            )
        if gains is not None:
            read["gain"] = _grade_gains("gains", gains, overrides=True)
    return read
