"""All errors and warnings. A message says what was found, what was expected and what to do.

Messages name arguments as Python does (`nan="last"`, `query=`). The command line puts its options in their
place.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# what a terminal, a page or a picture would obey or could not show: controls, ends of lines, marks that turn
# the direction of text, halves of surrogate pairs, and code points that are no characters
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""Escape characters that cannot be seen, such as terminal escapes and line ends, as `repr` does.

    >>> print(visible("q\x1b[31m\n\u202e"), visible("שאילתה"))
    q\x1b[31m\n\u202e שאילתה
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Message:
    """Return the message of an error or warning, with control characters of data escaped."""

    def __init__(self, message: str = "") -> None:
        super().__init__("\n".join(map(visible, str(message).split("\n"))))  # type: ignore[call-arg]


class FastndcgError(Message, Exception):
    """Base class of all errors of this package."""


class InputError(FastndcgError, ValueError):
    """Data that cannot be evaluated: lengths that differ, NaN scores, nulls, a negative grade."""


class InputTypeError(FastndcgError, TypeError):
    """An argument of the wrong type."""


class MeasureError(FastndcgError, ValueError):
    """A measure, parameter or cutoff that does not exist, or that is not defined for the data."""


class ConventionError(MeasureError, KeyError):
    """A convention that does not exist, or that cannot be reproduced for this data or for any."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class ColumnError(InputError):
    """A column that is missing, or several columns that could have one role."""


class SourceError(InputError):
    """A file that cannot be found, read or written."""


class ExtraError(FastndcgError, ImportError):
    """A library that is not installed. The message names the extra that installs it."""


@contextmanager
def about(name: str) -> Iterator[None]:
    """Prefix errors with the name of a file or system unless they contain it.

    >>> with about("b.parquet"):
    ...     raise InputError("a grade is negative")
    Traceback (most recent call last):
    fastndcg.errors.InputError: b.parquet: a grade is negative
    """
    try:
        yield
    except ConventionError:  # faults of a measure, whatever the data
        raise
    except FastndcgError as error:
        raise error if name in str(error) else type(error)(f"{name}: {error}") from None


def library(module: str, name: str, extra: str, what: str) -> Any:
    """Import a module of an optional library. Raises `ExtraError` with the command that installs it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ExtraError(
            f"{what} needs {name}, which is not installed: pip install 'fastndcg[{extra}]'"
        ) from None


class FastndcgWarning(Message, UserWarning):
    """Input that is probably a mistake, or a slow way to compute. The values are correct."""


def warn(message: str) -> None:
    """Warn, once for each line of the caller's code."""
    import inspect
    import warnings

    level, depth, frame = 1, 1, inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "fastndcg":
            level = depth + 1  # frames of others, such as Numba, may lie between ours
        depth, frame = depth + 1, frame.f_back
    warnings.warn(FastndcgWarning(message), stacklevel=level)


# names of arguments and options that people write, each with the names used here
SYNONYMS: dict[str, tuple[str, ...]] = {
    word: tuple(names.split())
    for words, names in {
        "metric metrics measure measures eval_metric": "measures measure",
        "k topk top_k at cutoffs": "cutoff k at depth n",
        "ci conf alpha confidence_level confidence_interval": "confidence",
        "gains label_gain label_gains": "gain",
        "discounts": "discount",
        "tie tie_breaking": "ties",
        "equivalence equivalent noninferiority non_inferiority tost": "no_worse_than margin",
        "epsilon delta": "margin tolerance",
        "qid qids query_id query_ids": "query query_ids",
        "groups group_id group_ids": "group query query_ids",
        "docid docno doc_ids item item_id": "doc_id doc_ids",
        "label labels grade y_true": "relevance",
        "y_score y_pred preds prediction predictions": "score scores",
        "qrel judgments judgements ground_truth": "qrels",
        "runs": "run",
        "sample_weight sample_weights": "weight weights",
        "n_jobs jobs workers num_threads n_threads num_workers": "threads",
        "random_state random_seed": "seed",
        "n_boot n_bootstrap n_resamples permutations": "resamples",
        "stat_test statistic significance": "test",
        "reference control": "baseline",
        "group_by groupby slice slices": "by",
        "output outfile": "out",
    }.items()
    for word in words.split()
}


def suggest(word: str, candidates: Iterable[str]) -> str:
    """Return a question that suggests the synonyms, or the most similar candidate, or an empty
    string if none is similar.

    >>> suggest("nDGC", ["nDCG", "DCG"]), suggest("metrics", ["measures", "threads"])
    (' Did you mean "nDCG"?', ' Did you mean "measures"?')
    """
    import difflib

    candidates = list(candidates)
    if alike := [name for name in SYNONYMS.get(word, ()) if name in candidates and name != word]:
        return ' Did you mean "{}"?'.format('" or "'.join(alike))
    by_lower: dict[str, str] = {}
    for candidate in candidates:  # keep the first of names that differ only in case
        by_lower.setdefault(candidate.lower(), candidate)
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.5)
    return f' Did you mean "{by_lower[matches[0]]}"?' if matches else ""


def unknown_argument(function: str, name: str, known: Sequence[str]) -> InputTypeError:
    """Return the error for an argument that a function does not have."""
    return InputTypeError(
        f"{function} has no argument {name}=; it takes {', '.join(known)}.{suggest(name, known)}"
    )


def known_arguments(function: Function) -> Function:
    """Decorate a function to raise `unknown_argument` for unknown keywords."""
    import functools
    import inspect

    parameters = inspect.signature(function).parameters
    known = [name for name in parameters if name not in ("self", "cls")]
    first = [name for name in parameters if parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY]

    @functools.wraps(function)
    def checked(*values: Any, **named: Any) -> Any:
        if len(values) > len(first):
            joined = " Join judgments and a run by Rankings.from_qrels_run." if "rankings" in first else ""
            raise InputTypeError(
                f"{function.__name__} takes {', '.join(first)} by position, and {len(values)} values are "
                f"given; it takes {', '.join(known)}.{joined}"
            )
        for name in named:
            if name not in known:
                raise unknown_argument(function.__name__, name, known)
        return function(*values, **named)

    return checked  # type: ignore[return-value]


def check_choice(name: str, value: object, wanted: Sequence[object]) -> None:
    """Raise `InputError` for an argument that is none of these values; `InputTypeError` if they are bools."""
    if any(value is each or (isinstance(value, str) and value == each) for each in wanted):
        return
    words = [f'"{each}"' if isinstance(each, str) else repr(each) for each in wanted]
    hint = suggest(str(value), [each for each in wanted if isinstance(each, str)])
    error = InputTypeError if isinstance(wanted[0], bool) else InputError
    raise error(f"{name}={value!r} is not known; expected {', '.join(words[:-1])} or {words[-1]}.{hint}")


def check_system(name: str, systems: Collection[str], shown: str = "") -> None:
    """Raise `InputError` for a name that is not a system. The message begins with `shown` or the name."""
    if name not in systems:
        named = f"is not one of the systems: {', '.join(systems)}.{suggest(str(name), systems)}"
        raise InputError(f"""{shown or f'"{name}"'} {named}""")


def check_whole(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least`. Raises `InputTypeError` or `InputError` otherwise."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise InputTypeError(f"{name}={value!r} is a {type(value).__name__}; expected a whole number")
    if number < least:
        raise InputError(f"{name}={number}; expected a whole number of at least {least}")
    return number


def check_length(name: str, length: int, wanted: int, noun: str) -> None:
    """Raise `InputError` for an argument with too few or too many values."""
    if length != wanted:
        values, wanted_in_words = count_of(length, "value"), count_of(wanted, noun)
        raise InputError(f"{name} has {values} for {wanted_in_words}; give one for each")


def count_of(number: int, noun: str, which: str = "") -> str:
    """Return a number with its noun in singular or plural, and an optional property.

    >>> count_of(1, "entry"), count_of(1200, "entry"), count_of(2, "null")
    ('1 entry', '1,200 entries', '2 nulls')
    >>> count_of(1, "value", "not finite"), count_of(2, "value", "not finite")
    ('1 value that is not finite', '2 values that are not finite')
    """
    is_one = number == 1
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    counted = f"1 {noun}" if is_one else f"{number:,} {several}"
    return f"{counted} that {'is' if is_one else 'are'} {which}" if which else counted
