"""Compare all tools on one data set, and explain which choices make their values differ."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from fastndcg.common.table import Table
from fastndcg.common.threads import check_threads
from fastndcg.convention.evaluation import (
    MeanSums,
    Reported,
    alike,
    check_rankings,
    report_alike,
)
from fastndcg.errors import ConventionError, InputError, MeasureError, known_arguments
from fastndcg.measures import DEFINITIONS, Measure, MeasureLike, as_measure
from fastndcg.measures.conventions import Convention, as_convention, conventions
from fastndcg.measures.measure import measure_named, resolve
from fastndcg.measures.validation import show_number

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings

_PARAMETERS = ("rel", "gain", "discount", "ideal")  # those that several measures share; the order of steps
_RECALL = "rounding of recall"


def choices_of(measure: str, rules: Iterable[Convention] = ()) -> dict[str, tuple[str, ...]]:
    """The choices that may differ between conventions for a measure, in the order of steps, and their fields.

    Parameters that only some measures have are choices if a convention names them.
    """
    known = [parameter.name for parameter in DEFINITIONS[measure].parameters]
    variants = [rule.find(measure) for rule in (*conventions.values(), *rules)]
    named = {name for rule in variants if rule is not None for name, _ in rule.more}
    return {
        "cutoff": ("default_cutoff",),
        "queries": ("missing", "unjudged"),
        **({} if measure == "nDCG" else {"pool": ("pool",)}),
        "scores": ("score_dtype",),
        **{name: (name,) for name in _PARAMETERS if name in known},
        # IPrec has a parameter with the name of a field
        **{name: (name,) for name in known if name in named and name != "rounding"},
        **({_RECALL: ("more",)} if "rounding" in named else {}),
        **{name: (name,) for name in ("ties", "empty") if name in known},
        "weights": ("weights",),
        "rounding": ("rounding",),
    }


def parse_measure(measure: MeasureLike | int | None, k: int | Literal["as given"] | None) -> Measure:
    """The measure to compare; a cutoff alone is that of nDCG."""
    if measure is None or isinstance(measure, int):
        measure = "nDCG" if measure is None else f"nDCG@{measure}"
    known = as_measure(measure)
    if k == "as given":
        return known
    return measure_named(known.name)(**known.params) if k is None else known @ k


def _walk(start: Convention, end: Convention, measure: Measure) -> list[tuple[str, Convention]]:
    """Return a choice and a convention for each step. Each step takes one more choice of `end`."""
    steps, at = [], start
    plain = measure_named(measure.name)
    choices = choices_of(measure.name, (start, end))
    if start.ties == "block":  # which goes with no cutoff and no other denominator: it is left first
        choices = {"ties": choices["ties"], **choices}
    for choice, names in choices.items():
        if choice == "cutoff" and measure.is_cut:  # it replaces the cutoff of every tool
            continue
        if measure.params.get(choice) != plain.params.get(choice):  # so does a parameter that is given
            continue
        following = at.replace(**{name: field_of(end, name) for name in names})
        if following != at:
            steps.append((choice, following))
            at = following
    return steps


def field_of(rule: Convention, name: str) -> Any:
    """The value of a field, or of a parameter that only some measures have."""
    if hasattr(rule, name):
        return getattr(rule, name)
    return dict(rule.more).get(name, measure_named(str(rule.of)).params[name])


def reports_of(
    rankings: Rankings, rules: Iterable[Convention], measure: Measure, threads: int | None
) -> dict[Convention, tuple[Reported, float] | str]:
    """What each convention reports, and its mean, or why it has none; those that rank alike share a pass."""
    check_threads(threads)  # here, since errors below are returned as reasons
    reports: dict[Convention, tuple[Reported, float] | str] = {}
    for group in alike((rule, resolve(measure, rule)) for rule in rules):
        try:
            found = report_alike(rankings, group, threads)
        except (InputError, MeasureError) as error:
            if len(group) == 1:
                reports[group[0][0]] = str(error)
            else:  # find those that it is about
                for rule, _ in group:
                    reports |= reports_of(rankings, [rule], measure, threads)
            continue
        for (rule, _), reported in found.items():
            try:
                reports[rule] = reported, MeanSums.of(rule, reported).mean(rule)
            except MeasureError as error:
                reports[rule] = str(error)
    return reports


def _means(
    rankings: Rankings, rules: Iterable[Convention], measure: Measure, threads: int | None
) -> dict[Convention, float | str]:
    """Means, moved by at most 1e-16 below 1 to a binary grid on which their differences are exact."""
    reports = reports_of(rankings, rules, measure, threads)
    means = {rule: found if isinstance(found, str) else found[1] for rule, found in reports.items()}
    finite = {rule: mean for rule, mean in means.items() if isinstance(mean, float) and math.isfinite(mean)}
    grid = 2.0 ** (math.frexp(max(map(abs, finite.values()), default=1.0))[1] - 53)
    return means | {rule: round(mean / grid) * grid for rule, mean in finite.items()}


@known_arguments
def compare_conventions(
    rankings: Rankings,
    measure: MeasureLike | int | None = "nDCG@10",
    names: Iterable[str | Convention] | None = None,
    *,
    k: int | Literal["as given"] | None = "as given",
    threads: int | None = None,
) -> Table:
    """Compute a measure by every convention, and the effect of each choice on the first convention's value.

    Parameters
    ----------
    rankings : Rankings
    measure : Measure, notation, or cutoff of nDCG
        Parameters that it sets hold for every convention. Without a cutoff it has each convention's own,
        which is 32 for XGBoost.
    names : names or Conventions, optional
        Default: all conventions that have the measure. The first that has a value is the first row, with
        which others are compared: "sklearn" for nDCG.
    k : int or None, optional
        Another cutoff. None uses each convention's own.
    threads : int, optional
        As in `evaluate`.

    Returns
    -------
    Table
        A row for each convention: `name`, `value`, `difference` from the first value, and the effect of each
        choice on this data, in the order in which they are changed, such as cutoff, queries, gain and ties.
        The first value plus the effects of a row is exactly the value of that row. If a convention has no
        value, `refused` gives the reason.

    Raises
    ------
    ConventionError
        A convention does not exist, or lacks the measure, or the first one has no value on this data.

    See Also
    --------
    explain_conventions : show the steps from one convention to another.
    evaluate : compute values by one convention, with `convention=`.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[0, 3, 1], [0, 0]])
    >>> table = compare_conventions(rankings, 3, ["sklearn", "xgboost-", "lightgbm"])
    >>> table.select(["name", "value", "gain", "empty"]).to_pylist()[2]
    {'name': 'lightgbm', 'value': 0.8221..., 'gain': -0.007..., 'empty': 0.5}
    """
    chosen = parse_measure(measure, k)
    check_rankings(rankings)
    known = [name for name, rule in conventions.items() if rule.find(chosen.name, cut=chosen.is_cut)]
    # a measure that no tool has is refused by the first one
    rules = [as_convention(name).on(chosen) for name in (known or ["sklearn"] if names is None else names)]
    if names is None:  # the first with a value here is what others are compared with
        alone = ((rule, _means(rankings, [rule], chosen, 1)[rule]) for rule in rules)
        valued = (rule for rule, mean in alone if isinstance(mean, float) and not math.isnan(mean))
        rules = list(dict.fromkeys([next(valued, rules[0]), *rules]))
    if not rules:
        raise ConventionError(
            "no convention was named; name at least one, as in names=['sklearn', 'lightgbm']"
        )
    walks = {rule: _walk(rules[0], rule, chosen) for rule in rules}
    steps = [step for walk in walks.values() for _, step in walk]
    means = _means(rankings, [*rules, *steps], chosen, threads)
    choices = choices_of(chosen.name, rules)
    if isinstance(means[rules[0]], str):
        raise ConventionError(f"{rules[0].name} has no value here to compare with: {means[rules[0]]}")
    values = {rule: mean if isinstance(mean, float) else math.nan for rule, mean in means.items()}
    rows, first = [], values[rules[0]]
    for rule in rules:
        if isinstance(means[rule], str):
            rows.append({"name": rule.name, "refused": means[rule]})
            continue
        effects, at = dict.fromkeys(choices, 0.0), first
        for choice, step in walks[rule]:
            effects[choice], at = values[step] - at, values[step]
        value = values[rule]
        rows.append({"name": rule.name, "value": value, "difference": value - first, **effects})
    numbers = dict.fromkeys(("value", "difference", *choices), pa.float64())
    types = {"name": pa.string(), **numbers, "refused": pa.string()}
    return Table(pa.Table.from_pylist(rows, pa.schema(types)))


@known_arguments
def explain_conventions(
    rankings: Rankings,
    a: str | Convention,
    b: str | Convention,
    measure: MeasureLike | int | None = "nDCG@10",
    *,
    k: int | Literal["as given"] | None = "as given",
    threads: int | None = None,
) -> Table:
    """Show how a measure changes from one convention to another, one choice at a time.

    Parameters
    ----------
    rankings : Rankings
    a, b : name or Convention
        The first and the last convention.
    measure : Measure, notation, or cutoff of nDCG
        As in `compare_conventions`.
    k, threads
        As in `compare_conventions`.

    Returns
    -------
    Table
        A row for each step: `choice`, its values `before` and `after`, `effect`, and `value` after the step.
        The first row has the value of `a`, which plus all effects is exactly the last value, that of `b`.

    Raises
    ------
    ConventionError
        A convention that does not exist, lacks the measure, or has no value on this data.

    See Also
    --------
    compare_conventions : compare many conventions.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[0, 3, 1], [0, 0]])
    >>> for step in explain_conventions(rankings, "sklearn", "lightgbm", 3).to_pylist():
    ...     step["choice"], step["before"], step["after"], round(step["value"], 4)
    ('sklearn', None, None, 0.3295)
    ('gain', 'linear', 'exp2', 0.3221)
    ('ties', 'average', 'input', 0.3221)
    ('empty', '0', '1', 0.8221)
    ('weights', 'weighted', 'lightgbm', 0.8221)
    """
    chosen = parse_measure(measure, k)
    start, end = (as_convention(name).on(chosen) for name in (a, b))
    walk = _walk(start, end, chosen)
    rules = [start, *(step for _, step in walk)]
    means = _means(check_rankings(rankings), rules, chosen, threads)
    for rule in rules:
        if isinstance(means[rule], str):
            raise ConventionError(
                f"there is no way from {start.name} to {end.name} on this data: {means[rule]}"
            )
    values = {rule: mean for rule, mean in means.items() if isinstance(mean, float)}
    at, value = start, values[start]
    rows: list[dict[str, Any]] = [
        {"choice": start.name, "before": None, "after": None, "effect": None, "value": value}
    ]
    for choice, step in walk:
        before, after = (text_of(rule, choice) for rule in (at, step))
        row = {"choice": choice, "before": before, "after": after, "effect": values[step] - value}
        rows.append(row | {"value": values[step]})
        at, value = step, values[step]
    types = dict.fromkeys(rows[0], pa.string()) | {"effect": pa.float64(), "value": pa.float64()}
    return Table(pa.Table.from_pylist(rows, pa.schema(types)))


def text_of(rule: Convention, choice: str) -> str:
    """The value of a choice of `choices_of`, in words."""
    if choice == _RECALL:
        return str(rule.measure().params["rounding"])
    if choice == "queries":
        return f"missing {rule.missing}, unjudged {rule.unjudged}"
    value = field_of(rule, {"cutoff": "default_cutoff", "scores": "score_dtype"}.get(choice, choice))
    if choice == "rel" and value is None:
        value = rule.measure().params["rel"]
    if choice == "rounding":
        return "none" if value is None else f"{value.decimals} decimals {value.when}"
    if choice == "scores":
        return "as given" if value is None else str(value)
    return show_number(value) if type(value) in (int, float) else str(value).lower()


def describe(measure: str = "nDCG") -> Table:
    """Return all conventions that have a measure: a row for each convention, a column for each field."""
    rows = [
        {
            "name": rule.name,
            "measure": str(rule.measure()),
            "ties": rule.ties,
            "scores": text_of(rule, "scores"),
            "rounding": text_of(rule, "rounding"),
            "missing": rule.missing,
            "unjudged": rule.unjudged,
            "weights": rule.weights,
            "tolerance": rule.tolerance,
            "tool": rule.tool,
            "source": rule.source,
            "caveats": list(rule.caveats),
            "measures": list(tool.names_of_measures),
        }
        for tool in conventions.values()
        if tool.find(measure)
        for rule in [tool.on(measure)]
    ]
    return Table(pa.Table.from_pylist(rows))
