"""Readers of parameter values: each checks a value and returns its canonical, hashable form, which prints as
it is read.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Set
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, NoReturn

from fastndcg.errors import MeasureError, suggest
from fastndcg.measures.gains_and_discounts import DISCOUNTS

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
    found = math.nan if isinstance(value, bool) else _finite(name, value)
    if 0 < found < 1:
        return found
    if not (1 <= found <= 2**53 and found == int(found)):
        _refuse(
            name, value, "a share of the documents above 0 and up to 1.0, a whole number of them, or None"
        )
    return int(found)  # 1 is a number of documents, 1.0 a share


def read_ties_of_intents(name: str, value: Any) -> str:
    if value in ("worst", "best"):
        raise MeasureError(
            f"ties={value!r} is not computed for several intents: "
            f"the {value} order of tied documents is as hard to find as the ideal ranking. "
            'Use ties="average", the expected value, or ties="input".'
        )
    word: str = choice("average", "input")(name, value)
    return word
