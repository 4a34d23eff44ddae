"""Every error and warning of this package: each message says what was got, what was wanted and the next step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class FastndcgError(Exception):
    """Root of the package's errors; catch it to catch them all."""


class InputError(FastndcgError, ValueError):
    """Data that cannot be evaluated: lengths that differ, NaN scores, nulls, a negative grade."""


class InputTypeError(FastndcgError, TypeError):
    """An argument of a type that has no meaning here."""


class MeasureError(FastndcgError, ValueError):
    """A measure, parameter or cutoff that does not exist, or that the data cannot bear."""


class ConventionError(MeasureError, KeyError):
    """A convention that does not exist, or that cannot be reproduced: on this data, or at all."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class ColumnError(InputError):
    """A column that is missing, or a role that several columns could play."""


class SourceError(InputError):
    """A file that cannot be found, read or written."""


class ExtraError(FastndcgError, ImportError):
    """A library that is not installed, and the extra of this package that brings it."""


def library(module: str, name: str, extra: str, what: str) -> Any:
    """A module of a library that an extra installs. Raises `ExtraError`, with the command to install it, where it is not there."""
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ExtraError(
            f"{what} needs {name}, which is not installed: pip install 'fastndcg[{extra}]'"
        ) from None


class FastndcgWarning(UserWarning):
    """Something that is probably not meant, or takes longer than it needs to, though the values that come out are right."""


def warn(message: str) -> None:
    """Warn at the line that called the package, once for each such line."""
    import inspect
    import warnings

    level, depth, frame = 1, 1, inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "fastndcg":
            level = depth + 1  # others, as Numba, may stand between
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, FastndcgWarning, stacklevel=level)


def suggest(word: str, candidates: Iterable[str]) -> str:
    """A closing question with the nearest candidate, or nothing where none is near.

    >>> suggest("nDGC", ["nDCG", "DCG"])
    ' Did you mean "nDCG"?'
    """
    import difflib

    by_lower: dict[str, str] = {}
    for candidate in candidates:  # of names that differ only in case, the first
        by_lower.setdefault(candidate.lower(), candidate)
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return f' Did you mean "{by_lower[near[0]]}"?' if near else ""


def count_of(number: int, noun: str) -> str:
    """A number and what it counts.

    >>> count_of(1, "entry"), count_of(1200, "entry"), count_of(2, "null")
    ('1 entry', '1,200 entries', '2 nulls')
    """
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"
