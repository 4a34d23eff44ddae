"""What values a parameter accepts: readers that check a value and return its canonical form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Integral
from typing import Any, NoReturn

from fastndcg.errors import MeasureError, suggest
from fastndcg.measures.parameter_values import Function, GradeGains, Numbers


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


def choice(name: str, *words: str) -> Callable[[Any], str]:
    return lambda value: _read_word(name, value, words, "one of " + ", ".join(map(repr, words)))


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


GAINS = {"linear": "the grade", "exp2": "2^grade - 1", "binary": "1 from the grade `rel` on, 0 below it"}
STOPS = ("exp2", "linear")
DISCOUNTS = {
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


def read_of_grade(name: str, words: Iterable[str]) -> Callable[[Any], str | Numbers | GradeGains | Function]:
    """Return a reader of a value for each grade."""

    def read(value: Any) -> str | Numbers | GradeGains | Function:
        if isinstance(value, GradeGains):
            return value
        if isinstance(value, Mapping):
            return grade_gains(name, value, overrides=False)
        listed = ", ".join(map(repr, words))
        wanted = f"{listed}, a sequence or mapping grade -> {name}, or a function of the grade"
        return _read_table(name, value, words, wanted)

    return read


def grade_gains(name: str, value: Any, *, overrides: bool) -> GradeGains:
    if not isinstance(value, Mapping) or not value:
        _refuse(name, value, "a mapping grade -> gain with at least one grade")
    pairs = {_finite(name, grade): _finite(name, gain) for grade, gain in value.items()}
    return GradeGains(tuple(sorted(pairs.items())), overrides)


def read_discount(value: Any) -> str | float | Numbers | Function:
    words = ", ".join(map(repr, DISCOUNTS))
    wanted = f"{words}, a base of the logarithm above 1, a sequence, or a function of the rank"
    if isinstance(value, bool | str | Iterable | Function) or callable(value):
        return _read_table("discount", value, DISCOUNTS, wanted)
    base = _finite("discount", value)
    return base if base > 1 else _refuse("discount", value, wanted)


def read_empty(value: Any) -> str | float:
    wanted = "a number, 'nan' or 'skip'"
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, str):
        return _read_word("empty", value, ("nan", "skip"), wanted)
    return _refuse("empty", value, wanted) if isinstance(value, bool) else _finite("empty", value)


def read_flag(name: str) -> Callable[[Any], bool]:
    return lambda value: bool(value) if value in (True, False) else _refuse(name, value, "True or False")


def read_ips(value: Any) -> bool | str:
    if value == "snips":
        return "snips"
    return bool(value) if value in (True, False) else _refuse("ips", value, "True, False or 'snips'")


def read_number(
    name: str, wanted: str, fits: Callable[[float], bool] = math.isfinite, *, none: bool = False
) -> Callable[[Any], Any]:
    """Return a reader that accepts numbers that fit, and None if `none`."""

    def read(value: Any) -> float | None:
        if value is None and none:
            return None
        number = math.nan if value is None or isinstance(value, bool) else _finite(name, value)
        return number if fits(number) else _refuse(name, value, wanted)

    return read


def is_share(number: float) -> bool:
    return 0 <= number <= 1


def read_max_fp(value: Any) -> float | None:
    """A share below 1, a whole number of documents, or None: all of them, which the share 1.0 is too."""
    if value == 1 and not isinstance(value, Integral | str):
        return None
    wanted = "a share of the documents above 0 and up to 1.0, a whole number of them, or None"
    number: float | None = read_number("max_fp", wanted, _is_max_fp, none=True)(value)
    return number if number is None or number < 1 else int(number)  # not 1.0, which is a share


def _is_max_fp(number: float) -> bool:
    return 0 < number < 1 or (1 <= number <= 2**53 and number == int(number))


def read_ties_of_intents(value: Any) -> str:
    if value in ("worst", "best"):
        raise MeasureError(
            f"ties={value!r} is not computed for several intents: "
            f"the {value} order of tied documents is as hard to find as the ideal ranking. "
            'Use ties="average", the expected value, or ties="input".'
        )
    return choice("ties", "average", "input")(value)


def read_max_rel(*, none: bool) -> Callable[[Any], float | None]:
    return read_number("max_rel", "a grade above 0 and up to 53", lambda grade: 0 < grade <= 53, none=none)
