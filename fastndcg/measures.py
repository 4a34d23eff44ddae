"""Measures as values: `nDCG(gain="exp2") @ 10` is immutable, hashable, and `parse(str(m)) == m`.

A measure is a *definition* (one declaration below: what a document is worth, how a rank is discounted, what the sum is
divided by), the values of its parameters, and a cutoff. Nothing here computes: `plan` turns measures into tables and
`kernels` folds the tables over documents. The notation is that of ir_measures: `Name(parameter=value)@cutoff`.

Adding a measure is adding a `Definition` to `DEFINITIONS`, and its definition in `tests/oracle.py`.
"""

from __future__ import annotations

import ast
import math
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from keyword import iskeyword
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, Unpack

from fastndcg import spellings
from fastndcg.errors import InputTypeError, MeasureError, suggest
from fastndcg.later import pa
from fastndcg.typing import Empty, Ideal, IrMeasure, Parameters, Ties

if TYPE_CHECKING:
    from fastndcg.tables import Table


# ---- values of parameters: each has one canonical, hashable form that prints as it is read ----


class GradeGains(NamedTuple):
    """A gain for each listed grade; grades not listed are refused, or keep their own value where `overrides`."""

    gains: tuple[tuple[float, float], ...]
    overrides: bool

    def __str__(self) -> str:
        return "{" + ", ".join(f"{_number(grade)}: {_number(gain)}" for grade, gain in self.gains) + "}"


class Numbers(tuple[float, ...]):
    """Gains of the grades 0, 1, 2, ... or discounts of the ranks 1, 2, 3, ..."""

    __slots__ = ()

    def __str__(self) -> str:
        return "[" + ", ".join(map(_number, self)) + "]"


class Function:
    """A callable parameter: equal only to itself, printed by qualified name, numbered where another has that name."""

    __slots__ = ("__weakref__", "_answers", "_holders", "call", "name", "number")
    _alive: ClassVar[dict[str, weakref.WeakValueDictionary[int, Function]]] = {}

    def __init__(self, call: Callable[[Any], Any], name: str, number: int) -> None:
        self.call, self.name, self.number = call, name, number
        self._answers: dict[float, Any] = {}
        self._holders = 0

    @classmethod
    def of(cls, call: Callable[[Any], Any]) -> Function:
        named = call if hasattr(call, "__qualname__") else type(call)
        name = f"{named.__module__}.{named.__qualname__}"
        alive = cls._alive.setdefault(name, weakref.WeakValueDictionary())
        for function in alive.values():
            if function.call is call:
                return function
        new = cls(call, name, max(alive, default=0) + 1)
        alive[new.number] = new
        return new

    @classmethod
    def function_named(cls, name: str, number: int = 1) -> Function:
        known = cls._alive.get(name)
        function = None if known is None else known.get(number)
        if function is None:
            raise MeasureError(
                f"no function {name!r} is known here: pass the function itself, as in nDCG(gain=function)"
            )
        return function

    def ask(self, argument: float) -> Any:
        """What the function returns; it is asked once until `forget`."""
        if argument not in self._answers:
            self._answers[argument] = self.call(argument)
        return self._answers[argument]

    def forget(self) -> None:
        """Ask anew, since a function may answer differently in a later call; not while its answers are kept."""
        if not self._holders:
            self._answers.clear()

    @contextmanager
    def keep_answers(self) -> Iterator[None]:
        """Keep the answers: what is evaluated meanwhile, in parts, is one call."""
        self.forget()
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            self.forget()

    def __reduce__(self) -> tuple[Any, ...]:
        return Function.of, (self.call,)

    def __str__(self) -> str:
        return f"function({self.name!r}{f', {self.number}' if self.number > 1 else ''})"


@contextmanager
def hold_functions(measures: Iterable[Measure]) -> Iterator[None]:
    """Ask the functions of these measures once for each grade and rank, however many parts are evaluated."""
    with ExitStack() as stack:
        for measure in measures:
            for value in measure.params.values():
                if isinstance(value, Function):
                    stack.enter_context(value.keep_answers())
        yield


_MOST_CUTOFF = 10**100  # Python refuses to print integers of some thousand digits


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    whole = math.isfinite(value) and value == int(value) and abs(value) < 2**53
    return str(int(value)) if whole else repr(value)


def _show(value: object) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value)
    return _number(value) if isinstance(value, int | float) else str(value)


# ---- parameters: a name, a default, and a reader that returns the canonical value or says what was wanted ----


class Parameter(NamedTuple):
    """One parameter of a measure."""

    name: str
    default: Any
    read: Callable[[Any], Any]
    meaning: str
    values: tuple[tuple[str, str], ...] = ()  # what it takes, as it is written, and what each means
    # values with which a measure is computed another way, see `Definition.way`
    ways: tuple[tuple[Any, str], ...] = ()


def _refuse(name: str, got: object, wanted: str, hint: str = "") -> NoReturn:
    raise MeasureError(f"{name}={got!r} is not known: {name} is {wanted}.{hint}")


def _as_str(word: str) -> str:
    """A subclass of str, such as NumPy's or of an enumeration, as the str that it equals: others print otherwise."""
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
    """As `suggest`, by the words of other tools too."""
    other = _OTHER_WORDS.get(word.lower())
    return f' Did you mean "{other}"?' if other is not None and other in choices else suggest(word, choices)


def _read_word(name: str, value: Any, words: Iterable[str], wanted: str) -> str:
    if isinstance(value, str) and value in words:
        return _as_str(value)
    _refuse(name, value, wanted, _suggest_word(str(value), words))


def _choice(name: str, *words: str) -> Callable[[Any], str]:
    return lambda value: _read_word(name, value, words, "one of " + ", ".join(map(repr, words)))


def _one_of(name: str, words: Mapping[str, str], meaning: str) -> Parameter:
    """A parameter that takes one of some words, the default first."""
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
    return number + 0.0  # -0.0 and 0.0 are one value, and print alike


def _sequence(name: str, values: Iterable[Any]) -> Numbers:
    numbers = Numbers(_finite(name, value) for value in values)
    if not numbers:
        raise MeasureError(f"{name}=[] is empty, where at least one number was wanted")
    return numbers


_GAINS = {
    "linear": "the grade",
    "exp2": "2^grade - 1",
    "binary": "1 from the grade `rel` on, 0 below it",
}
_DISCOUNTS = {
    "log2": "1 / log2(i + 1)",
    "jarvelin": "1 at the ranks 1 and 2, then 1 / log2(i)",
    "reciprocal": "1 / i",
    "ln": "1 / ln(i + e)",
}


def _read_table(name: str, value: Any, words: Iterable[str], wanted: str) -> str | Numbers | Function:
    """A value for each grade or rank: by one of some words, as a sequence, or as a function."""
    if isinstance(value, str):
        return _read_word(name, value, words, wanted)
    if isinstance(value, Numbers | Function):
        return value
    if callable(value):
        return Function.of(value)
    if isinstance(value, Iterable) and not isinstance(value, bytes | Set):
        return _sequence(name, value)
    _refuse(name, value, wanted)


def _read_gain(value: Any) -> str | Numbers | GradeGains | Function:
    if isinstance(value, GradeGains):
        return value
    if isinstance(value, Mapping):
        return _grade_gains("gain", value, overrides=False)
    wanted = "'linear', 'exp2', 'binary', a sequence or mapping grade -> gain, or a function of the grade"
    return _read_table("gain", value, _GAINS, wanted)


def _grade_gains(name: str, value: Any, *, overrides: bool) -> GradeGains:
    if not isinstance(value, Mapping) or not value:
        _refuse(name, value, "a mapping grade -> gain with at least one grade")
    pairs = {_finite(name, grade): _finite(name, gain) for grade, gain in value.items()}
    return GradeGains(tuple(sorted(pairs.items())), overrides)


def _read_discount(value: Any) -> str | float | Numbers | Function:
    wanted = "'log2', 'jarvelin', 'reciprocal', 'ln', a base of the logarithm above 1, a sequence, or a function of the rank"
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
    """A reader of the numbers that fit, and of None where that is a value."""

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
            f"ties={value!r} has no exact value here: which order of tied documents is {value} for several intents together is as "
            'hard to find as the ideal ranking. Take ties="average", the expectation, or ties="input".'
        )
    return _choice("ties", "average", "input")(value)


def _read_max_rel(*, none: bool) -> Callable[[Any], float | None]:
    return _read_number("max_rel", "a grade above 0 and up to 53", lambda grade: 0 < grade <= 53, none=none)


GAIN = Parameter(
    "gain",
    "linear",
    _read_gain,
    "what a grade is worth",
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
    "what a gain is worth at a rank",
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
        "worst": "of tied documents, those that gain least first",
        "best": "of tied documents, those that gain most first",
    },
    "the order of documents with equal scores",
)
IDEAL = _one_of(
    "ideal",
    {
        "judged": "all judged documents; the scored documents where no others were judged",
        "scored": "the scored documents",
        "returned": "the documents on the first k ranks",
        "full": "k documents of the top grade",
        "judged_uncut": "all judged documents, whatever the cutoff",
        "judged_returned": "as many judged documents as were returned",
    },
    "what the ideal ranking is made of",
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
    "unjudged",
    None,
    _read_number("unjudged", "a grade", none=True),
    "grade that documents without a judgment are taken to have",
)
BETA = Parameter(
    "beta",
    1.0,
    _read_number("beta", "a number above 0 and below 1e+100", lambda beta: 0 < beta < 1e100),
    "how much recall weighs beside precision",
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
    "recall from which on the best precision counts; written IPrec@0.1",
)
DENOMINATOR = _one_of(
    "denominator",
    {
        "n_relevant": "all relevant documents",
        "min(n_relevant, k)": "all relevant documents, but at most k",
    },
    "what the sum of precisions is divided by",
)
RELATIVE = Parameter(
    "relative", False, _read_flag("relative"), "divide by the most that so many documents could have"
)
MAX_REL = Parameter("max_rel", 4.0, _read_max_rel(none=False), "highest grade of the scale")
SCALE_TOP = Parameter(
    "max_rel",
    None,
    _read_number("max_rel", "a grade", none=True),
    "highest grade of the scale; it must be named",
)
SCALE_BOTTOM = Parameter(
    "min_rel", 0.0, _read_number("min_rel", "a grade"), "lowest grade of the scale, worth nothing"
)
IPS = Parameter(
    "ips",
    False,
    _read_ips,
    "divide gains by propensities: unbiased, of large variance where some are small; 'snips' also divides the query by its sum of such gains",
    (
        ("False", "plain gains"),
        ("True", "gains divided by propensities"),
        ("'snips'", "and the query divided by the sum of such gains"),
    ),
    ways=((True, "propensities"), ("snips", "propensities")),
)
CLIP = Parameter(
    "clip",
    0.0,
    _read_number("clip", "a probability: a number from 0 to 1", _is_share),
    "smaller propensities count as this: less variance, a bias towards 0",
)
ALPHA = Parameter(
    "alpha",
    0.5,
    _read_number("alpha", "a number from 0 to 1", _is_share),
    "how much of its worth an intent loses with each relevant document above",
)
TIES_OF_INTENTS = Parameter(TIES.name, TIES.default, _read_ties_of_intents, TIES.meaning, TIES.values[:2])
PERFECT = _one_of(
    "denominator",
    {"perfect": "the sum of a ranking whose every document is perfect for every intent", "none": "nothing"},
    "what the sum is divided by",
)
GRADED = Parameter(
    "max_rel",
    None,
    _read_max_rel(none=True),
    "highest grade of the scale; with None a grade from `rel` on stops with probability 1/2 and no other",
)


# ---- definitions ----


class Definition(NamedTuple):
    """What a measure is, as data: a list of what each rank is worth, summed to a cutoff and divided by something.

    `plan` reads the fields up to `cut`, and people the others.
    """

    name: str
    worth: str  # what a document counts by its grade, see `plan.worth_of`
    over: str  # what the sum is divided by, see `plan.OVER`
    # when a query has no value: "no ideal" gain, "no relevant" document, "no documents", or "never"
    undefined: str
    parameters: tuple[Parameter, ...]
    summary: str
    formula: str
    source: str
    range: str = "0 to 1"
    # "system": documents by falling score; "ideal": the ideal ranking; "none": the pool alone
    ranking: str = "system"
    fold: str = "gain"  # what a rank adds to the sum, see `plan.FOLD`
    discount: str = "none"  # weight of the ranks: "none" 1, "parameter" its discount, "power" p^(i - 1)
    # what @ means: "rank" a cutoff, "recall" a recall level, nothing for "none" and "relevant", a cutoff at n_relevant
    cut: str = "rank"
    # how values are computed, unless a parameter says another way, see `fastndcg.scoring`
    way: str = "kernels"


_JARVELIN = "Järvelin and Kekäläinen, Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002"
_RIJSBERGEN = "van Rijsbergen, Information Retrieval, 2nd edition, Butterworths, 1979"
_BUCKLEY = "Buckley and Voorhees, Retrieval System Evaluation, in TREC: Experiment and Evaluation in IR, MIT Press, 2005"
_MOFFAT = (
    "Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, TOIS 27(1), 2008"
)
_JOACHIMS = "Joachims, Swaminathan and Schnabel, Unbiased learning-to-rank with biased feedback, WSDM 2017"
_CLARKE = "Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, Novelty and diversity in information retrieval evaluation, SIGIR 2008"
_AGRAWAL = "Agrawal, Gollapudi, Halverson and Ieong, Diversifying search results, WSDM 2009"
_CHAPELLE = "Chapelle, Metlzer, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009"
_GAINS_OF_ALL = (TIES, EMPTY, JUDGED_ONLY, REL, UNJUDGED)
_BINARY = (RELEVANT, TIES, EMPTY, JUDGED_ONLY, UNJUDGED)

DEFINITIONS: dict[str, Definition] = {
    definition.name: definition
    for definition in (
        Definition(
            "nDCG", "gain", "ideal", "no ideal", (GAIN, DISCOUNT, TIES, IDEAL, EMPTY, JUDGED_ONLY, REL, UNJUDGED), discount="parameter",
            summary="normalised discounted cumulative gain",
            formula="DCG@k / IDCG@k",
            range="0 to 1 for gains >= 0 and falling discounts",
            source=_JARVELIN,
        ),
        Definition(
            "DCG", "gain", "nothing", "no documents", (GAIN, DISCOUNT, *_GAINS_OF_ALL, IPS, CLIP), discount="parameter",
            summary="discounted cumulative gain",
            formula="sum over ranks i <= k of gain(grade_i) * discount(i); with ips of gain(grade_i) / max(propensity_i, clip) * discount(i)",
            range="0 and above for gains >= 0",
            source=f"{_JARVELIN}; ips: {_JOACHIMS}",
        ),
        Definition(
            "IDCG", "gain", "nothing", "no documents", (GAIN, DISCOUNT, TIES, IDEAL, EMPTY, JUDGED_ONLY, REL, UNJUDGED),
            ranking="ideal", discount="parameter",
            summary="DCG of the ideal ranking",
            formula="sum over ranks i <= k of gain(grade_i) * discount(i), documents by falling gain",
            range="0 and above for gains >= 0",
            source=_JARVELIN,
        ),
        Definition(
            "CG", "gain", "nothing", "no documents", (GAIN, *_GAINS_OF_ALL, IPS, CLIP),
            summary="cumulative gain",
            formula="sum over ranks i <= k of gain(grade_i); with ips of gain(grade_i) / max(propensity_i, clip)",
            range="0 and above for gains >= 0",
            source=f"{_JARVELIN}; ips: {_JOACHIMS}",
        ),
        Definition(
            "SDCG", "scaled", "ideal", "no documents", (SCALE_TOP, SCALE_BOTTOM, DISCOUNT, TIES, EMPTY, JUDGED_ONLY, UNJUDGED), discount="parameter",
            summary="scaled discounted cumulative gain: the ideal ranking is k documents of the highest grade of the scale",
            formula="sum over i <= k of g_i * discount(i) / sum over i <= k of discount(i), g = (grade - min_rel) / (max_rel - min_rel)",
            source="Moffat, Bailey, Scholer and Thomas, Incorporating user expectations and behavior into the measurement of search effectiveness, TOIS 35(3), 2017",
        ),
        Definition(
            "AP", "relevant", "relevant", "no relevant", (*_BINARY, DENOMINATOR), fold="hits",
            summary="average precision",
            formula="sum over ranks i <= k of relevant documents of P@i, / n_relevant or / min(n_relevant, k)",
            source="Harman, Evaluation issues in information retrieval, IP&M 28(4), 1992; trec_eval, map and map_cut",
        ),
        Definition(
            "RR", "relevant", "nothing", "no relevant", _BINARY, fold="first",
            summary="reciprocal rank",
            formula="1 / rank of the first relevant document; 0 where it is beyond k",
            source="Kantor and Voorhees, The TREC-5 confusion track, Information Retrieval 2, 2000; trec_eval, recip_rank",
        ),
        Definition(
            "P", "relevant", "cutoff", "no documents", _BINARY, fold="count",
            summary="precision",
            formula="relevant documents on the ranks i <= k / k; without a cutoff / documents returned",
            source=_RIJSBERGEN,
        ),
        Definition(
            "R", "relevant", "relevant", "no relevant", _BINARY, fold="count",
            summary="recall",
            formula="relevant documents on the ranks i <= k / n_relevant",
            source=_RIJSBERGEN,
        ),
        Definition(
            "F", "relevant", "weighted", "no relevant", (*_BINARY, BETA), fold="count",
            summary="weighted harmonic mean of precision and recall",
            formula="(1 + beta^2) P@k R@k / (beta^2 P@k + R@k) = (1 + beta^2) hits / (beta^2 n_relevant + k)",
            source=_RIJSBERGEN,
        ),
        Definition(
            "Rprec", "relevant", "relevant", "no relevant", _BINARY, fold="count", cut="relevant",
            summary="precision at rank n_relevant",
            formula="relevant documents on the ranks i <= n_relevant / n_relevant",
            source=_BUCKLEY,
        ),
        Definition(
            "Success", "relevant", "nothing", "no relevant", _BINARY, fold="reached",
            summary="whether any relevant document was returned; its expectation is a probability",
            formula="1 where a rank i <= k holds a relevant document, else 0",
            source="trec_eval, success",
        ),
        Definition(
            "ERR", "stop", "nothing", "no documents", (MAX_REL, TIES, EMPTY, JUDGED_ONLY, UNJUDGED), fold="stop",
            summary="expected reciprocal rank of the document where a user stops",
            formula="sum over ranks i <= k of 1/i * s_i * product over j < i of (1 - s_j), s = (2^grade - 1) / 2^max_rel",
            source=f"{_CHAPELLE}; gdeval",
        ),
        Definition(
            "RBP", "relevant", "power", "no documents", (PERSISTENCE, *_BINARY), discount="power",
            summary="rank-biased precision",
            formula="(1 - p) * sum over ranks i <= k of relevant documents of p^(i - 1)",
            source=_MOFFAT,
        ),
        Definition(
            "RBPresidual", "unjudged", "residual", "no documents", (PERSISTENCE, TIES, EMPTY), discount="power",
            summary="residual of rank-biased precision: what it could still gain from unjudged ranks and those beyond the list",
            formula="(1 - p) * sum over unjudged ranks i <= k of p^(i - 1) + p^min(k, documents)",
            source=_MOFFAT,
        ),
        Definition(
            "Bpref", "judgment", "relevant", "no relevant", (RELEVANT, TIES, EMPTY), fold="preference", cut="none",
            summary="binary preference: judged documents that are not relevant, above relevant ones",
            formula="1/R * sum over relevant documents of 1 - min(n above, R) / min(N, R), n judged and not relevant, N of them in all",
            source="Buckley and Voorhees, Retrieval evaluation with incomplete information, SIGIR 2004; trec_eval, bpref",
        ),
        Definition(
            "infAP", "judgment", "relevant", "no relevant", (RELEVANT, TIES, EMPTY), fold="inferred", cut="none", way="pooled",
            summary="inferred average precision; a negative grade, judged or not, is a document of the pool that was not judged",
            formula="1/R * sum over relevant ranks i of (1 + pool_above * (rel_above + e) / (judged_above + 2e)) / i, e = 0.00001",
            source="Yilmaz and Aslam, Estimating average precision with incomplete and imperfect judgments, CIKM 2006; trec_eval, infAP",
        ),
        Definition(
            "IPrec", "relevant", "nothing", "no relevant", (RECALL, *_BINARY), fold="interpolated", cut="recall",
            summary="interpolated precision at a recall level",
            formula="largest P@i over the ranks i whose hits are at least int(recall * n_relevant + 0.9)",
            source="trec_eval, iprec_at_recall",
        ),
        Definition(
            "Judged", "unjudged", "judged", "no documents", (TIES, EMPTY), fold="count",
            summary="share of the first k documents that were judged",
            formula="judged documents on the ranks i <= k / min(k, documents)",
            source="ir_measures, Judged",
        ),
        Definition(
            "NumRel", "relevant", "pool", "never", (RELEVANT, UNJUDGED), ranking="none", cut="none",
            summary="relevant documents, returned or not",
            formula="n_relevant",
            range="0 and above",
            source="trec_eval, num_rel",
        ),
        Definition(
            "NumRet", "found", "nothing", "never", (TIES, JUDGED_ONLY, REL, UNJUDGED), fold="count",
            summary="documents returned; with a cutoff the effective k, with rel only those of at least that grade",
            formula="min(k, documents)",
            range="0 to k",
            source="trec_eval, num_ret",
        ),
        Definition(
            "SetP", "relevant", "cutoff", "no documents", (RELATIVE, *_BINARY), fold="count", cut="none",
            summary="precision of all returned documents",
            formula="relevant documents returned / documents returned; relative=True: / min(documents returned, n_relevant)",
            source="trec_eval, set_P and set_relative_P",
        ),
        Definition(
            "SetR", "relevant", "relevant", "no relevant", _BINARY, fold="count", cut="none",
            summary="recall of all returned documents",
            formula="relevant documents returned / n_relevant",
            source="trec_eval, set_recall",
        ),
        Definition(
            "SetF", "relevant", "weighted", "no relevant", (*_BINARY, BETA), fold="count", cut="none",
            summary="weighted harmonic mean of SetP and SetR",
            formula="(1 + beta^2) hits / (beta^2 n_relevant + documents returned)",
            source="trec_eval, set_F",
        ),
        Definition(
            "SetAP", "relevant", "set", "no relevant", _BINARY, fold="count", cut="none",
            summary="precision times recall of all returned documents",
            formula="SetP * SetR",
            source="trec_eval, set_map",
        ),
        Definition(
            "alpha_DCG", "novel", "perfect", "no relevant", (ALPHA, RELEVANT, DISCOUNT, TIES_OF_INTENTS, EMPTY, JUDGED_ONLY, PERFECT),
            way="intents", fold="stop", discount="parameter",
            summary="DCG over several intents, of which each gains less from a relevant document the more of them it has seen",
            formula="sum over i <= k of discount(i) * sum over intents with a relevant document at i of (1 - alpha)^(relevant above i), / its largest value",
            range="0 to 1; with denominator='none' 0 and above",
            source=f"{_CLARKE}; ndeval, alpha-DCG, which at a cutoff of 1 leaves the division out",
        ),
        Definition(
            "alpha_nDCG", "novel", "greedy", "no relevant", (ALPHA, RELEVANT, DISCOUNT, TIES_OF_INTENTS, EMPTY, JUDGED_ONLY),
            way="intents", fold="stop", discount="parameter",
            summary="alpha_DCG over that of the ideal ranking, which takes the document that gains most for each next rank",
            formula="alpha_DCG@k / alpha_DCG@k of the greedy ideal of the judged documents",
            range="0 to 1; more where a ranking beats the greedy ideal, which is not always the best",
            source=f"{_CLARKE}; ndeval, alpha-nDCG",
        ),
        Definition(
            "ERR_IA", "intent stop", "perfect", "no relevant", (RELEVANT, GRADED, TIES_OF_INTENTS, EMPTY, JUDGED_ONLY, PERFECT),
            way="intents", fold="stop", discount="reciprocal",
            summary="expected ERR over the intents of a query",
            formula="sum over intents of P(intent) * ERR@k of its grades, / ERR@k of perfect documents",
            source=f"{_CHAPELLE}; ndeval, ERR-IA, which at a cutoff of 1 leaves the division out",
        ),
        Definition(
            "nERR_IA", "intent stop", "greedy", "no relevant", (RELEVANT, GRADED, TIES_OF_INTENTS, EMPTY, JUDGED_ONLY),
            way="intents", fold="stop", discount="reciprocal",
            summary="ERR_IA over that of the greedy ideal ranking",
            formula="ERR_IA@k / ERR_IA@k of the greedy ideal of the judged documents",
            range="0 to 1; more where a ranking beats the greedy ideal, which is not always the best",
            source="ndeval, nERR-IA",
        ),
        Definition(
            "nDCG_IA", "gain", "each ideal", "no relevant", (GAIN, DISCOUNT, TIES, EMPTY, JUDGED_ONLY, REL),
            way="intents", discount="parameter",
            summary="expected nDCG over the intents of a query",
            formula="sum over intents of P(intent) * nDCG@k of its grades",
            range="0 to 1 for gains >= 0 and falling discounts; 1 only where one ranking is ideal for every intent",
            source=_AGRAWAL,
        ),
        Definition(
            "StRecall", "first of intent", "intents", "no relevant", (RELEVANT, TIES_OF_INTENTS, EMPTY),
            way="intents", fold="stop",
            summary="subtopic recall: share of the intents that have a relevant document on the first ranks",
            formula="intents with a relevant document on a rank i <= k / intents with a relevant document",
            source="Zhai, Cohen and Lafferty, Beyond independent relevance, SIGIR 2003; ndeval, strec",
        ),
    )
}  # fmt: skip

_BY_KEY = {spellings.key(name): name for name in DEFINITIONS}


# ---- the value ----


class Measure:
    """A measure with the values of its parameters and its cutoff; immutable and hashable.

    Make one from the names this package exports, or from notation:

    >>> from fastndcg import nDCG, parse
    >>> nDCG(gain="exp2") @ 10
    nDCG(gain='exp2')@10
    >>> parse("nDCG(gain='exp2')@10") == nDCG(gain="exp2") @ 10
    True
    >>> (nDCG @ 10).gain
    'linear'

    Raises `MeasureError` for an unknown parameter or value and for a cutoff that is not a whole number from 1.
    """

    __slots__ = ("_hash", "_label", "_values", "cutoff", "cutoff_column", "definition", "params")

    definition: Definition
    cutoff: int | None
    cutoff_column: str | None
    """Query-level column that holds the cutoff of each query; `cutoff` is then None."""
    params: Mapping[str, Any]
    """Every parameter's value, defaults included, in the order of the declaration."""

    def __init__(
        self,
        definition: Definition,
        values: tuple[Any, ...],
        cutoff: int | None = None,
        label: str | None = None,
        cutoff_column: str | None = None,
    ) -> None:
        set_ = object.__setattr__
        set_(self, "_label", label)
        set_(self, "cutoff_column", cutoff_column)
        set_(self, "definition", definition)
        set_(self, "_values", values)
        set_(self, "cutoff", cutoff)
        names = (parameter.name for parameter in definition.parameters)
        set_(self, "params", MappingProxyType(dict(zip(names, values, strict=True))))
        set_(self, "_hash", hash((definition.name, values, cutoff, cutoff_column)))

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def label(self) -> str:
        """What its column is called in tables of results: the spelling it was asked for, or its notation.

        >>> measure = parse("Recall@10")
        >>> measure, measure.label, measure == R @ 10
        (R@10, 'Recall@10', True)
        """
        return self._label or str(self)

    @property
    def way(self) -> str:
        """How its values are computed, see `fastndcg.scoring`."""
        for parameter, value in zip(self.definition.parameters, self._values, strict=True):
            for other, way in parameter.ways:
                if value == other:
                    return way
        return self.definition.way

    @property
    def is_cut(self) -> bool:
        """Whether something stands after @: a cutoff, a column of them, or the recall of IPrec."""
        return self._at is not None or (self.definition.cut == "recall" and self.recall is not None)

    @property
    def _at(self) -> int | str | None:
        return self.cutoff if self.cutoff_column is None else self.cutoff_column

    def __call__(self, **parameters: Unpack[Parameters]) -> Measure:
        """This measure with other values of the named parameters; `like="lightgbm"` sets all of them as a convention does.

        `cutoff=10` is as @ 10, and `cutoff="slots"` as @ "slots".
        """
        if "cutoff" in parameters:
            cutoff = parameters.pop("cutoff")
            return self(**parameters) @ cutoff
        if "like" in parameters:
            return resolve_like(self, **parameters)
        values = dict(self.params)
        for name, value in _ir_measures_spelling({**parameters}).items():
            if name not in values:
                known = ", ".join(values) or "none"
                if name in ("ips", "clip") and self.name == "nDCG":
                    raise MeasureError(
                        "nDCG has no ips: the ideal order, which it divides by, is not known of documents that were never seen. "
                        "Take DCG(ips=True), or DCG(ips='snips'), which divides by the gains that were seen."
                    )
                raise MeasureError(
                    f"{self.name} has no parameter {name!r}; it has: {known}.{suggest(name, values)}"
                )
            parameter = next(parameter for parameter in self.definition.parameters if parameter.name == name)
            values[name] = parameter.read(value)
        if values.get("gain") == "binary" and values["rel"] == 1:
            values["rel"] = None  # 1 is what "binary" means when no threshold is named
        return Measure(self.definition, tuple(values.values()), self.cutoff, cutoff_column=self.cutoff_column)

    def __matmul__(self, cutoff: Any) -> Measure:
        """This measure over the first `cutoff` ranks; for IPrec, at that recall.

        The name of a column of whole numbers gives each query a cutoff of its own, as for pages with different numbers of places.

        >>> parse("nDCG@slots").cutoff_column
        'slots'
        """
        if self.definition.cut == "recall":
            return self(recall=cutoff)
        if self.definition.cut in ("none", "relevant"):
            raise MeasureError(
                f"{self.name} has no cutoff: it looks at all documents; wanted {self}, got {self}@{cutoff}"
            )
        if isinstance(cutoff, str) and cutoff.isidentifier() and not iskeyword(cutoff) and cutoff != "all":
            return Measure(self.definition, self._values, cutoff_column=_as_str(cutoff))
        try:
            number = 0 if isinstance(cutoff, bool) else operator.index(cutoff)
        except TypeError:
            number = 0
        if not 1 <= number <= _MOST_CUTOFF:
            shown = repr(cutoff) if number <= _MOST_CUTOFF else "beyond 10^100"
            raise MeasureError(
                f"cutoff {shown} of {self.name} is not a whole number from 1, as in {self.name}@10, nor a word that names a column of them"
            )
        return Measure(self.definition, self._values, number)

    if TYPE_CHECKING:  # so that a checker refuses a name that no measure has
        _hash: int
        _label: str | None
        _values: tuple[Any, ...]
        alpha: float
        beta: float
        clip: float
        denominator: str
        discount: Any
        empty: Empty
        gain: Any
        ideal: Ideal
        ips: bool | str
        judged_only: bool
        max_rel: Any
        min_rel: float
        p: float
        recall: Any
        rel: Any
        relative: bool
        ties: Ties
        unjudged: float | None
    else:

        def __getattr__(self, name: str) -> Any:
            if name not in self.__slots__ and name in self.params:
                return self.params[name]
            raise AttributeError(f"{type(self).__name__} {self.definition.name} has no attribute {name!r}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a measure is immutable; make another one, as in {self.name}({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a measure is immutable")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure):
            return NotImplemented
        return (
            self.definition.name == other.definition.name
            and self._at == other._at
            and self._values == other._values
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.name, dict(self.params), self._at, self._label)

    def __str__(self) -> str:
        shown = ", ".join(
            f"{_spelling(parameter.name, value)}={_show(value)}"
            for parameter, value in zip(self.definition.parameters, self._values, strict=True)
            if (value != parameter.default or type(value) is not type(parameter.default))
            and parameter is not RECALL
        )
        at = self.params.get("recall") if self.definition.cut == "recall" else self._at
        written = at if at is None or isinstance(at, str) else _number(at)
        return self.name + (f"({shown})" if shown else "") + ("" if written is None else f"@{written}")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from fastndcg.tables import html_table

        facts = {"what it is": self.definition.summary, "formula": self.definition.formula}
        if self.cutoff is not None:
            facts["cutoff"] = f"{self.cutoff:,}"
        facts |= {
            parameter.name: f"{_show(value)}: {parameter.meaning}"
            for parameter, value in zip(self.definition.parameters, self._values, strict=True)
        }
        return html_table([[str(self), ""], *map(list, facts.items())], 2)


MeasureLike = Measure | str | IrMeasure
"""What may name a measure: a `Measure`, a notation as in `"nDCG@10"`, or an object of ir_measures."""
Measures = MeasureLike | Iterable[MeasureLike]


def resolve_like(measure: Measure, like: object, **_: Any) -> Measure:
    """`nDCG(like="lightgbm")`; `conventions`, which are made of measures, put their own function here."""
    raise MeasureError(f"{measure}(like={like!r}) needs fastndcg.convention; import fastndcg itself")


def _spelling(name: str, value: object) -> str:
    return "gains" if isinstance(value, GradeGains) and value.overrides else name


def _restore(
    name: str, parameters: dict[str, Any], cutoff: int | str | None, label: str | None = None
) -> Measure:
    measure = _measure_named(name)(**parameters)
    return _with_label(measure if cutoff is None else measure @ cutoff, label)


def _with_label(measure: Measure, label: str | None) -> Measure:
    if label is None:
        return measure
    return Measure(measure.definition, measure._values, measure.cutoff, label, measure.cutoff_column)


def _ir_measures_spelling(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as ir_measures writes them: `dcg='exp-log2'`, `gains={grade: gain}` over a linear gain."""
    read = dict(parameters)
    if "dcg" in read:
        dcg = _choice("dcg", "log2", "exp-log2")(read.pop("dcg"))
        gain = "exp2" if dcg == "exp-log2" else "linear"
        given = read.setdefault("gain", gain)
        if not isinstance(given, str) or given != gain:
            raise MeasureError(
                f"dcg={dcg!r} and gain={given!r} are both given: dcg is ir_measures' word for the gain; take one of them"
            )
    if "gains" in read:
        gains = read.pop("gains")
        if "gain" in read and read["gain"] != "linear":
            raise MeasureError(
                "gain and gains are both given: gain defines every grade, gains overrides single grades of a linear gain"
            )
        if gains is not None:
            read["gain"] = _grade_gains("gains", gains, overrides=True)
    return read


def _default(name: str) -> Measure:
    definition = DEFINITIONS[name]
    return Measure(definition, tuple(parameter.default for parameter in definition.parameters))


nDCG = NDCG = _default("nDCG")
DCG = _default("DCG")
IDCG = _default("IDCG")
CG = _default("CG")
SDCG = _default("SDCG")
AP = MAP = _default("AP")
RR = MRR = _default("RR")
P = _default("P")
R = _default("R")
F = _default("F")
Rprec = _default("Rprec")
Success = _default("Success")
ERR = _default("ERR")
RBP = _default("RBP")
RBPresidual = _default("RBPresidual")
Bpref = _default("Bpref")
infAP = _default("infAP")
IPrec = _default("IPrec")
Judged = _default("Judged")
NumRel = _default("NumRel")
NumRet = _default("NumRet")
SetP = _default("SetP")
SetR = _default("SetR")
SetF = _default("SetF")
SetAP = _default("SetAP")
alpha_DCG = _default("alpha_DCG")
alpha_nDCG = _default("alpha_nDCG")
ERR_IA = _default("ERR_IA")
nERR_IA = _default("nERR_IA")
nDCG_IA = _default("nDCG_IA")
StRecall = _default("StRecall")

_MEASURES = {name: _default(name) for name in DEFINITIONS}


def _measure_named(name: str) -> Measure:
    if name not in _MEASURES:
        nearest = spellings.nearest(name, _BY_KEY)
        raise MeasureError(f'no measure is called "{name}".{nearest} There are: {", ".join(DEFINITIONS)}.')
    return _MEASURES[name]


class _Documentation:
    """The docstring of the class, and of a measure what its declaration says: `help(nDCG)` shows it."""

    def __init__(self, of_class: str | None) -> None:
        self._of_class = of_class

    def __get__(self, measure: Measure | None, owner: type) -> str | None:
        if measure is None:
            return self._of_class
        definition, lines = measure.definition, [f"{measure}: {measure.definition.summary}.\n"]
        lines += [f"    {measure.name} = {definition.formula}", f"    range: {definition.range}"]
        lines += [f"    source: {definition.source}\n", "Parameters" if definition.parameters else ""]
        for parameter in definition.parameters:
            shown = f"{parameter.name} = {_show(measure.params[parameter.name])}"
            lines.append(f"    {shown}\n        {parameter.meaning}")
            lines += [f"        {value}: {meaning}" for value, meaning in parameter.values]
        at = {"rank": " @ 10 counts the first ten ranks.", "recall": " @ 0.2 is at a recall of 0.2."}
        example = definition.parameters[0].name if definition.parameters else ""
        lines.append(
            f"\n{measure.name}({example and example + '=...'}) sets other values." if example else ""
        )
        lines.append(f"{measure.name}{at[definition.cut]}" if definition.cut in at else "")
        return "\n".join(lines).rstrip()


Measure.__doc__ = _Documentation(Measure.__doc__)  # type: ignore[assignment]


def table() -> Table:
    """A row for each measure: name, notation, summary, formula, parameters, range, source. The documentation is made of it.

    >>> [row["notation"] for row in table().to_pylist() if row["name"] == "AP"]
    ["AP(rel=1, ties='average', empty=0, judged_only=False, unjudged=None, denominator='n_relevant')@k"]
    """
    from fastndcg.tables import Table

    rows = []
    for definition in DEFINITIONS.values():
        defaults = ", ".join(
            f"{parameter.name}={_show(parameter.default)}" for parameter in definition.parameters
        )
        at = {"rank": "@k", "recall": "@recall"}.get(definition.cut, "")
        meanings = (f"{parameter.name}: {parameter.meaning}" for parameter in definition.parameters)
        rows.append(
            {
                "name": definition.name,
                "notation": f"{definition.name}({defaults}){at}",
                "summary": definition.summary,
                "formula": definition.formula,
                "parameters": "; ".join(meanings),
                "range": definition.range,
                "source": definition.source,
            }
        )
    return Table(pa.Table.from_pylist(rows))


# ---- notation ----

_SHOWN = 200  # characters of a text that is not a notation
_MOST_OF_RANGE = 1000  # cutoffs of a range


@lru_cache(maxsize=1024)
def _parse_plain(text: str) -> tuple[Measure, ...]:
    return tuple(_read_notation(text))


def parse_many(text: str) -> tuple[Measure, ...]:
    """The measures of a notation that may list cutoffs, ranges of them and measures with commas.

    A range is as many measures as it has cutoffs; `all` is the measure without a cutoff.

    Parameters
    ----------
    text : str
        Notation of one or several measures.

    Returns
    -------
    tuple of Measure

    Raises
    ------
    MeasureError
        The text is not a notation, or names what does not exist.

    See Also
    --------
    parse : exactly one measure.

    Examples
    --------
    >>> parse_many("nDCG(gain='exp2')@1,3,5")
    (nDCG(gain='exp2')@1, nDCG(gain='exp2')@3, nDCG(gain='exp2')@5)
    >>> parse_many("nDCG@1-3,10,all")
    (nDCG@1, nDCG@2, nDCG@3, nDCG@10, nDCG)
    >>> parse_many("nDCG@10, CG@5")
    (nDCG@10, CG@5)
    """
    # a function's name can mean another object later, so such a notation is read anew each time
    return tuple(_read_notation(text)) if "function(" in text else _parse_plain(text)


def parse(text: str) -> Measure:
    """The one measure that a notation names; the inverse of `str`.

    Parameters
    ----------
    text : str
        Notation of one measure, as "nDCG@10".

    Returns
    -------
    Measure

    Raises
    ------
    MeasureError
        The text is not a notation, or names what does not exist, or several measures.

    See Also
    --------
    parse_many : notations that list cutoffs or several measures.

    Examples
    --------
    >>> parse("nDCG(ties='worst')@5").ties
    'worst'
    """
    measures = parse_many(text)
    if len(measures) != 1:
        raise MeasureError(
            f"{text!r} names {len(measures)} measures where one was wanted; use parse_many for several"
        )
    return measures[0]


def _read_notation(text: str) -> Iterator[Measure]:
    asked = [element.strip() for element in spellings.elements(text)]
    spelt = [spellings.canonical(element, _BY_KEY) for element in asked]
    try:
        tree = ast.parse(",".join(spelt), mode="eval").body
        ast.unparse(tree)  # what is nested too deep for it is for no reader
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_notation(text) from None
    of: Measure | None = None  # what a cutoff that stands alone is a cutoff of
    label = ""  # of the last measure, where it is spelt otherwise than here
    for place, node in enumerate(tree.elts if isinstance(tree, ast.Tuple) else [tree]):
        cutoff: ast.expr | None = node
        if of is None or not _is_cutoff(node):
            named, cutoff = _split(node)
            of = _read_measure(named, text)
            label = asked[place] if asked[place : place + 1] != spelt[place : place + 1] else ""
        if cutoff is None:
            yield _with_label(of, label)
            of = None
            continue
        for measure in _cut(of, cutoff, text):
            at = measure.params.get("recall") if of.definition.cut == "recall" else measure.cutoff
            yield _with_label(
                measure, label if cutoff is not node and _is_one(cutoff) else spellings.with_cutoff(label, at)
            )


def _is_one(cutoff: ast.expr) -> bool:
    return isinstance(cutoff, ast.Constant | ast.Name)


def _is_cutoff(node: ast.expr) -> bool:
    """Whether it is a cutoff, a range of them, or "all"."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        return isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id == "all")


def _split(node: ast.expr) -> tuple[ast.expr, ast.expr | None]:
    """What stands before @ and after it; `nDCG@1-20` is (nDCG@1) - 20 to Python."""
    if not isinstance(node, ast.BinOp):
        return node, None
    if isinstance(node.op, ast.Sub):
        of, first = _split(node.left)
        if first is not None:
            return of, ast.BinOp(first, node.op, node.right)
    if isinstance(node.op, ast.MatMult) and not isinstance(node.left, ast.BinOp):
        return node.left, node.right
    return node, None


def _cut(of: Measure, cutoff: ast.expr, text: str) -> Iterator[Measure]:
    """A measure with a cutoff, with each one of a range, or with none for "all"."""
    if of.definition.cut == "rank" and isinstance(cutoff, ast.Name) and cutoff.id == "all":
        yield Measure(of.definition, tuple(of.params.values()))
        return
    if not (isinstance(cutoff, ast.BinOp) and isinstance(cutoff.op, ast.Sub) and of.definition.cut == "rank"):
        is_word = isinstance(cutoff, ast.Name) and of.definition.cut == "rank"
        yield of @ (cutoff.id if is_word else _read_value(cutoff, text))  # type: ignore[attr-defined]
        return
    first, last = (of @ _read_value(end, text) for end in (cutoff.left, cutoff.right))
    low, high = int(first.cutoff or 0), int(last.cutoff or 0)
    if not low < high < low + _MOST_OF_RANGE:
        raise MeasureError(
            f"{of.name}@{low}-{high} is not a range of cutoffs; wanted the lower one first, and at most {_MOST_OF_RANGE} of them, as in {of.name}@1-20"
        )
    for number in range(low, high + 1):
        yield of @ number


def _no_notation(text: str) -> MeasureError:
    shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
    return MeasureError(
        f"{shown} is not a measure; wanted Name(parameter=value)@cutoff, as in nDCG(gain='exp2')@10"
    )


def _read_measure(node: ast.expr, text: str) -> Measure:
    if isinstance(node, ast.Name):
        return _measure_named(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        parameters = {
            keyword.arg: _read_value(keyword.value, text) for keyword in node.keywords if keyword.arg
        }
        if len(parameters) == len(node.keywords):
            return _measure_named(node.func.id)(**parameters)
    raise _no_notation(text)


def _read_value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "function":
        match [_read_value(argument, text) for argument in node.args]:
            case [str(name)]:
                return Function.function_named(name)
            case [str(name), int(number)]:
                return Function.function_named(name, number)
        raise MeasureError(
            f"{ast.unparse(node)} in {text!r} names no function; pass the function itself, as in nDCG(gain=function)"
        )
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise MeasureError(
            f"{ast.unparse(node)} in {text!r} is not a value; write numbers plain and words in quotes, as in gain='exp2'"
        ) from None


def as_measure(measure: object) -> Measure:
    """The measure that a `Measure`, a notation or an ir_measures object stands for.

    >>> as_measure("nDCG@10")
    nDCG@10

    Raises `MeasureError` for what does not exist here, `InputTypeError` for any other object.
    """
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, str):
        return parse(measure)
    if type(measure).__module__.partition(".")[0] == "ir_measures":
        return parse(str(measure))
    raise InputTypeError(
        f"{measure!r} is a {type(measure).__name__}; a measure is nDCG@10, a string like 'nDCG@10', or an ir_measures object"
    )


def as_measures(measures: Any) -> tuple[Measure, ...]:
    """One or several measures, each as `as_measure` reads it; a string may list several. Repeated ones are kept once.

    >>> as_measures(["nDCG@1,3", CG @ 3, "nDCG@3"])
    (nDCG@1, nDCG@3, CG@3)
    """
    if (
        isinstance(measures, str | Measure)
        or not isinstance(measures, Iterable)
        or type(measures).__module__.startswith("ir_measures")
    ):
        measures = (measures,)
    several = [
        read
        for measure in measures
        for read in (parse_many(measure) if isinstance(measure, str) else (as_measure(measure),))
    ]
    if not several:
        raise MeasureError("no measure was given; name at least one, as in ['nDCG@10']")
    return tuple(dict.fromkeys(several))
