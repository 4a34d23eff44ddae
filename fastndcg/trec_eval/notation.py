"""Names of measures with their parameters, as after trec_eval's -m."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from fastndcg.errors import MeasureError, suggest
from fastndcg.trec_eval.measures import DEFINITIONS, SETS, Definition, Gains
from fastndcg.trec_eval.ranking import Release, is_whole


class Request(NamedTuple):
    """A measure with its parameters, and the name of each of its values."""

    definition: Definition
    parameters: Any
    names: list[str]


def read_names(texts: Sequence[str], release: Release = 10) -> tuple[list[Request], list[str]]:
    """Return measures in the order of the output, and notes about texts without effect.

    Each text is a name, or a name, a point and parameters separated by commas, as after trec_eval's -m. If a
    measure is named twice, its first parameters count, as in trec_eval.

    >>> [each.names for each in read_names(["ndcg_cut.10,5", "map"])[0]]
    [['map'], ['ndcg_cut_5', 'ndcg_cut_10']]

    Raise `MeasureError` if trec_eval or this package does not have a name or parameter.
    """
    chosen: dict[str, str | None] = {}  # None without a point
    notes = []
    known = {name: each for name, each in DEFINITIONS.items() if each.since <= release}
    for text in texts or ["official"]:
        name, point, parameters = text.partition(".")
        if name in SETS:
            for each in SETS[name]:
                chosen.setdefault(each, None)
            notes += [f"{text}: a set of measures takes no parameters; they have no effect"] * bool(point)
        elif name not in known:
            own = " trec_eval itself computes measures of preferences, with -R prefs." * ("prefs" in name)
            raise MeasureError(
                f'trec_eval {release} has no measure "{name}".{suggest(name, [*known, *SETS])}{own} '
                "`fastndcg trec_eval --measures` lists all names."
            )
        elif point and chosen.get(name) is not None:
            notes.append(f"{text}: {name} has the parameters {chosen[name]} already; these have no effect")
        elif point or name not in chosen:
            chosen[name] = parameters if point else None
    return [_with_parameters(known[name], chosen[name]) for name in known if name in chosen], notes


def _with_parameters(definition: Definition, text: str | None) -> Request:
    name, takes = definition.name, definition.takes
    written = name if text is None else f"{name}_{text}"
    if takes == "nothing":
        if text is not None:
            raise MeasureError(f"{name} takes no parameters; got {text}")
        return Request(definition, None, [name])
    if takes == "gains":
        return Request(definition, {} if text is None else _gains_of(name, text), [written])
    values = list(definition.default)
    if text is not None:
        values = [_number(name, each) for each in text.split(",")]
    if takes == "numbers":
        if len(values) != len(definition.default) and name != "11pt_avg":
            raise MeasureError(f"{name} takes {len(definition.default)} numbers; got {text}")
        return Request(definition, values, [written])
    values = sorted(map(int, values)) if takes == "cutoffs" else sorted(values)
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
        default = ",".join(f"{value:g}" for value in DEFINITIONS[name].default[:3]) or "1=3.5,2=9"
        raise MeasureError(
            f'{name} got "{text}", which is not a number; expected for example {name}.{default}'
        )
    return value


def _gains_of(name: str, text: str) -> Gains:
    gains: Gains = {}
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if not equals or not (is_whole(key) or (key == "p" and name.startswith("rbp"))):
            raise MeasureError(f'{name} got "{pair}"; expected a grade and its gain, as in {name}.1=3.5,2=9')
        gains.setdefault(str(int(key)) if key != "p" else key, _number(name, value))
    return gains
