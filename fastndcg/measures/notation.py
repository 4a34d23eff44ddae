"""Parse measures from the notation of ir_measures, `Name(parameter=value)@cutoff`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from fastndcg.errors import InputTypeError, MeasureError, suggest
from fastndcg.measures import aliases
from fastndcg.measures.measure import Measure, measure_named, with_label
from fastndcg.measures.parameters import Function

_SHOWN = 200  # most characters of a faulty text that a message quotes
_MOST_CUTOFFS_OF_RANGE = 1000


def parse_many(text: str) -> tuple[Measure, ...]:
    """Parse a notation that may list several measures, cutoffs and ranges of cutoffs, separated by commas.

    Parameters
    ----------
    text : str
        A range stands for a measure with each of its cutoffs, and `all` for the measure without a cutoff.

    Returns
    -------
    tuple of Measure

    Raises
    ------
    MeasureError
        The text is not a notation, or it names a measure or parameter that does not exist.
    InputTypeError
        It is not a string.

    See Also
    --------
    parse : parse the notation of exactly one measure.

    Examples
    --------
    >>> parse_many("nDCG(gain='exp2')@1,3,5")
    (nDCG(gain='exp2')@1, nDCG(gain='exp2')@3, nDCG(gain='exp2')@5)
    >>> parse_many("nDCG@1-3,10,all")
    (nDCG@1, nDCG@2, nDCG@3, nDCG@10, nDCG)
    >>> parse_many("nDCG@10, CG@5")
    (nDCG@10, CG@5)
    """
    if not isinstance(text, str):
        raise InputTypeError(
            f"text is a {type(text).__name__}; expected the notation of measures, as in 'nDCG@10'. "
            "evaluate takes objects and lists of them"
        )
    # not cached if it names a function, since the name may later refer to another object
    return _read_notation.__wrapped__(text) if "function(" in text else _read_notation(text)


def parse(text: str) -> Measure:
    """Parse the notation of one measure; the inverse of `str`.

    Parameters
    ----------
    text : str
        The notation of one measure, such as "nDCG@10".

    Returns
    -------
    Measure

    Raises
    ------
    MeasureError, InputTypeError
        As `parse_many`; also for several measures.

    See Also
    --------
    parse_many : parse a notation that lists cutoffs or several measures.

    Examples
    --------
    >>> parse("nDCG(ties='worst')@5").ties
    'worst'
    """
    measures = parse_many(text)
    if len(measures) != 1:
        raise MeasureError(
            f"{text!r} names {len(measures)} measures where one was expected; use parse_many for several"
        )
    return measures[0]


@lru_cache(maxsize=1024)
def _read_notation(text: str) -> tuple[Measure, ...]:
    measures = list[Measure]()
    elements = [element.strip() for element in aliases.elements(text)]
    canonical = [aliases.canonical(element) for element in elements]
    try:
        tree = ast.parse(",".join(canonical), mode="eval").body
        ast.unparse(tree)  # raises RecursionError if values are nested too deeply to be read
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _no_notation(text) from None
    of: Measure | None = None  # the measure of a cutoff that follows without a name
    label = ""  # the caller's spelling of the last measure, if it differs
    for place, node in enumerate(tree.elts if isinstance(tree, ast.Tuple) else [tree]):
        cutoff: ast.expr | None = node
        is_range = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        ends = [node.left, node.right] if is_range else [node]  # type: ignore[attr-defined]
        is_all = isinstance(node, ast.Name) and node.id == "all"
        if of is None or not (is_all or all(isinstance(end, ast.Constant) for end in ends)):
            named, cutoff = _split(node)
            of = _read_measure(named, text)
            label = elements[place] if elements[place : place + 1] != canonical[place : place + 1] else ""
        if cutoff is None:
            measures.append(with_label(of, label))
            of = None
            continue
        for measure in _cut(of, cutoff, text):
            is_one = cutoff is not node and isinstance(cutoff, ast.Constant | ast.Name)
            own_label = label if is_one else aliases.with_cutoff(label, measure._written)
            measures.append(with_label(measure, own_label))
    return tuple(measures)


def _split(node: ast.expr) -> tuple[ast.expr, ast.expr | None]:
    """Split a node at @ into measure and cutoff. Python parses `nDCG@1-20` as (nDCG@1) - 20."""
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
    """Yield a measure with a cutoff, with each cutoff of a range, or, for "all", without a cutoff."""
    by_rank = of.definition.cut == "rank"
    if by_rank and isinstance(cutoff, ast.Name):
        yield Measure(of.definition, tuple(of.params.values())) if cutoff.id == "all" else of @ cutoff.id
        return
    if not (isinstance(cutoff, ast.BinOp) and isinstance(cutoff.op, ast.Sub) and by_rank):
        yield of @ _read_value(cutoff, text)
        return
    first, last = (of @ _read_value(end, text) for end in (cutoff.left, cutoff.right))
    low, high = int(first.cutoff or 0), int(last.cutoff or 0)
    if not low < high < low + _MOST_CUTOFFS_OF_RANGE:
        raise MeasureError(
            f"{of.name}@{low}-{high} is not a range of cutoffs; expected "
            f"the lower one first, and at most {_MOST_CUTOFFS_OF_RANGE} of them, as in {of.name}@1-20"
        )
    for number in range(low, high + 1):
        yield of @ number


def _no_notation(text: str) -> MeasureError:
    shown = repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."
    return MeasureError(
        f"{shown} is not a measure; expected Name(parameter=value)@cutoff, as in nDCG(gain='exp2')@10"
    )


def _read_measure(node: ast.expr, text: str) -> Measure:
    if isinstance(node, ast.Name):
        return measure_named(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        parameters: dict[str, Any] = {
            # a word may stand without quotes, as in gain=exp2
            keyword.arg: keyword.value.id
            if isinstance(keyword.value, ast.Name)
            else _read_value(keyword.value, text)
            for keyword in node.keywords
            if keyword.arg
        }
        if len(parameters) == len(node.keywords):
            return measure_named(node.func.id)(**parameters)
    raise _no_notation(text)


def _read_value(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "function":
        match [_read_value(argument, text) for argument in node.args]:
            case [str(name)]:
                return Function.function_named(name)
            case [str(name), int(number)]:
                return Function.function_named(name, number)
        raise MeasureError(
            f"{ast.unparse(node)} in {text!r} names no function; "
            "pass the function itself, as in nDCG(gain=function)"
        )
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise MeasureError(
            f"{ast.unparse(node)} in {text!r} is not a value; write numbers plain and words in quotes, "
            "as in gain='exp2'"
        ) from None


def is_notation(text: str) -> bool:
    """Return whether a text, such as a path that does not exist, names measures."""
    try:
        return bool(parse_many(text))
    except MeasureError:
        return False


def as_measure(measure: object) -> Measure:
    """Return the measure that a `Measure`, a notation or an ir_measures object stands for.

    >>> as_measure("nDCG@10")
    nDCG@10

    Raises `MeasureError` if the measure does not exist, and `InputTypeError` for any other object.
    """
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, str):
        return parse(measure)
    if type(measure).__module__.partition(".")[0] == "ir_measures":
        return parse(re.sub(r"^Accuracy\b", "AUC", str(measure)))  # other tools' name for Success
    raise InputTypeError(
        f"{measure!r} ({type(measure).__name__}) is not a measure; expected nDCG@10, a string like "
        "'nDCG@10', or an ir_measures object"
    )


def find_measure(measure: object, known: Sequence[Measure], fault: str) -> Measure:
    """Return the equal element of `known`. Raises `MeasureError` with the text `fault` if there is none."""
    asked = as_measure(measure)
    if asked not in known:
        names = [str(each) for each in known]
        raise MeasureError(f"{asked} {fault}; these were: {', '.join(names)}.{suggest(str(asked), names)}")
    return known[known.index(asked)]


def as_measures(measures: Any) -> tuple[Measure, ...]:
    """Return measures, each converted by `as_measure`, without duplicates. A string may list several.

    >>> from fastndcg import CG
    >>> as_measures(["nDCG@1,3", CG @ 3, "nDCG@3"])
    (nDCG@1, nDCG@3, CG@3)
    """
    if isinstance(measures, str) or not isinstance(measures, Iterable):
        measures = (measures,)
    several = [
        read
        for measure in measures
        for read in (parse_many(measure) if isinstance(measure, str) else (as_measure(measure),))
    ]
    if not several:
        raise MeasureError("no measure was given; name at least one, as in ['nDCG@10']")
    return tuple(dict.fromkeys(several))
