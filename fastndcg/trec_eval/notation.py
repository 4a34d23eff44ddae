"""Names of measures with their parameters, as after trec_eval's -m."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.errors import MeasureError, suggest
from fastndcg.trec_eval.measures import DEFINITIONS, SETS, Definition
from fastndcg.trec_eval.ranking import Form, Release, is_whole

if TYPE_CHECKING:
    from fastndcg.trec_eval.measures import Gains

FORMS: dict[Form, tuple[str, str]] = {  # of -R: what it reads, and a set of its measures
    "qrels": ("judgments", "official"),
    "qrels_jg": ("judgments of several groups", "qrels_jg"),
}


class Request(NamedTuple):
    """A measure with its parameters, and the name of each of its values."""

    definition: Definition
    parameters: Any
    names: list[str]


def read_names(
    texts: Sequence[str], release: Release = 10, form: Form = "qrels"
) -> tuple[list[Request], list[str]]:
    """Return measures in the order of the output, and notes about texts without effect.

    Each text is a name, or a name, a point and parameters separated by commas, as after trec_eval's -m. If a
    measure is named twice, its first parameters count, as in trec_eval. `form` is that of judgments, -R: a
    measure is of one.

    >>> [each.names for each in read_names(["ndcg_cut.10,5", "map"])[0]]
    [['map'], ['ndcg_cut_5', 'ndcg_cut_10']]

    Raise `MeasureError` if trec_eval or this package does not have a name or parameter.
    """
    chosen: dict[str, str] = {}
    notes = []
    known = {name: each for name, each in DEFINITIONS.items() if each.since <= release}
    for text in texts or ["official"]:
        name, point, parameters = text.partition(".")
        if point and not parameters:
            raise MeasureError(f'"{text}" has no parameters after the point; name some, or leave it out')
        names = [each for each in SETS[name] if each in known] if name in SETS else [name]
        if names == [name] and name not in known:
            raise MeasureError(_unknown_in_words(name, known, release))
        if name in SETS and parameters:
            notes.append(f"{text}: a set of measures takes no parameters; they have no effect")
        for each in names:
            if name in SETS or not parameters:
                chosen.setdefault(each, "")
            elif chosen.get(each):
                notes.append(
                    f"{text}: {each} has the parameters {chosen[each]} already; these have no effect"
                )
            else:
                chosen[each] = parameters
    reads, there_are = FORMS[form]
    for name in chosen:
        if known[name].form not in (None, form):
            raise MeasureError(
                f"{name} is not computed of -R {form}, {reads}; "
                f"expected -R {known[name].form}, or -m {there_are}"
            )
    return [_with_parameters(known[name], chosen[name]) for name in known if name in chosen], notes


def _unknown_in_words(name: str, known: dict[str, Definition], release: Release) -> str:
    if name.startswith("prefs_") or name in ("prefs", "all_prefs"):
        return f'"{name}" is a measure of preferences, which trec_eval itself computes with -R prefs'
    listed = "`fastndcg trec_eval --measures` lists all names."
    if name in DEFINITIONS:
        return f'trec_eval {release} has no measure "{name}", release {DEFINITIONS[name].since} has. {listed}'
    return f'no measure of trec_eval is called "{name}".{suggest(name, [*known, *SETS])} {listed}'


def _with_parameters(definition: Definition, text: str) -> Request:
    name, takes = definition.name, definition.takes
    if takes == "nothing":
        if text:
            raise MeasureError(f"{name} takes no parameters; got {text}")
        return Request(definition, None, [name])
    if takes == "gains":
        return Request(definition, _gains_of(name, text), [f"{name}_{text}" if text else name])
    values = [_number(name, each) for each in text.split(",")] if text else list(definition.default)
    if takes == "numbers":
        if len(values) != len(definition.default) and name != "11pt_avg":
            raise MeasureError(
                f"{name} takes {len(definition.default)} parameter{'s' * (len(definition.default) > 1)}, "
                f"but got {text}"
            )
        return Request(definition, values, [f"{name}_{text}" if text else name])
    if takes == "cutoffs":
        values = [int(value) for value in values]
    values.sort()
    if takes == "cutoffs" and values[0] < 1:
        raise MeasureError(f"{name} got the cutoff {values[0]}; expected 1 or more")
    if len(set(values)) < len(values):
        raise MeasureError(f"{name} got {text}, which repeats a value; name each once")
    form = "" if takes == "cutoffs" else ".2f"
    return Request(definition, values, [f"{name}_{value:{form}}" for value in values])


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        default = ",".join(f"{value:g}" for value in DEFINITIONS[name].default[:3])
        example = "1=3.5,2=9" if DEFINITIONS[name].takes == "gains" else default
        raise MeasureError(
            f'{name} got "{text}", which is not a number; expected for example {name}.{example}'
        )
    return value


def _gains_of(name: str, text: str) -> Gains:
    gains: Gains = {}
    for pair in text.split(",") if text else []:
        key, equals, value = pair.partition("=")
        if not equals or not (is_whole(key) or (key == "p" and name.startswith("rbp"))):
            raise MeasureError(f'{name} got "{pair}"; expected a grade and its gain, as in {name}.1=3.5,2=9')
        gains.setdefault(str(int(key)) if key != "p" else key, _number(name, value))
    return gains
