"""Values of parameters. Each has one canonical, hashable form, which prints as it is read."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from fastndcg.errors import MeasureError


class GradeGains(NamedTuple):
    """A gain for each listed grade. Other grades raise an error, or are their own gain if `overrides`."""

    gains: tuple[tuple[float, float], ...]
    overrides: bool

    def __str__(self) -> str:
        return (
            "{" + ", ".join(f"{show_number(grade)}: {show_number(gain)}" for grade, gain in self.gains) + "}"
        )


class Numbers(tuple[float, ...]):
    """Gains of the grades 0, 1, 2, ... or discounts of the ranks 1, 2, 3, ..."""

    __slots__ = ()

    def __str__(self) -> str:
        return "[" + ", ".join(map(show_number, self)) + "]"


class Function:
    """A function as a parameter, equal only to itself; printed by name, and by number if names are equal."""

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
        """Return the function's value. It is called once for each argument until `forget`."""
        if argument not in self._answers:
            self._answers[argument] = self.call(argument)
        return self._answers[argument]

    def forget(self) -> None:
        """Discard the values, which may differ in a later call; do nothing within `keep_answers`."""
        if not self._holders:
            self._answers.clear()

    @contextmanager
    def keep_answers(self) -> Iterator[None]:
        """Keep the values within this context, in which one call evaluates its parts."""
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


MOST_CUTOFF = 10**100  # Python does not print integers of more than 4,300 digits


def show_number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    whole = math.isfinite(value) and value == int(value) and abs(value) < 2**53
    return str(int(value)) if whole else repr(value)


def show_value(value: object) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value)
    return show_number(value) if isinstance(value, int | float) else str(value)
