"""Compare all tools on one data set, and explain which choices make their values differ."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from fastndcg.common.table import Table
from fastndcg.common.threads import check_threads
from fastndcg.convention.evaluation import MeanSums, check_rankings, report, values_of
from fastndcg.convention.preparation import find_left_out, prepare
from fastndcg.errors import ConventionError, InputError, MeasureError
from fastndcg.measures.by_tool import Convention, as_convention, conventions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings

    Float64 = npt.NDArray[np.float64]

CHOICES = {
    "cutoff": ("default_cutoff",),
    "queries": ("missing", "unjudged"),
    "scores": ("score_dtype",),
    "rel": ("rel",),
    "gain": ("gain",),
    "discount": ("discount",),
    "ideal": ("ideal",),
    "ties": ("ties",),
    "empty": ("empty",),
    "weights": ("weights",),
    "rounding": ("rounding",),
}


def _walk(start: Convention, end: Convention, k: int | None) -> list[tuple[str, Convention]]:
    """Return a choice and a convention for each step. Each step takes one more choice of `end`."""
    steps, at = [], start
    for choice, names in CHOICES.items():
        if choice == "cutoff" and k is not None:  # k replaces the cutoff of every tool
            continue
        following = at.replace(**{name: getattr(end, name) for name in names})
        if following != at:
            steps.append((choice, following))
            at = following
    return steps


def _means(
    rankings: Rankings, rules: Iterable[Convention], k: int | None, threads: int | None
) -> dict[Convention, float | str]:
    """Return each convention's mean, or why it has none. Those that order rows alike share one pass."""
    check_threads(threads)  # here, since errors below are returned as reasons
    groups: dict[tuple[str | None, str], list[Convention]] = {}
    for rule in dict.fromkeys(rules):
        ordering = rule.ties if rule.ties not in ("average", "input", "worst", "best") else ""
        groups.setdefault((rule.score_dtype, ordering), []).append(rule)
    means: dict[Convention, float | str] = {}
    for group in groups.values():
        try:
            prepared = prepare(rankings, group[0])
        except ConventionError as error:
            _, *reason = map(str, error.parts)  # the first part is the convention's name
            means |= {rule: "".join([rule.name, *reason]) for rule in group}
            continue
        measures = {rule: rule.measure(k) for rule in group}
        values: dict[Measure, Float64 | str] = {}
        try:
            values |= values_of(prepared, measures.values(), threads)
        except (InputError, MeasureError):  # find the measures that are not defined for this data
            for measure in measures.values():
                try:
                    values |= values_of(prepared, [measure], threads)
                except (InputError, MeasureError) as error:
                    values[measure(empty="nan")] = str(error)
        for rule, measure in measures.items():
            found = values[measure(empty="nan")]
            if isinstance(found, str):
                means[rule] = found
                continue
            try:
                reported = report(rule, measure, found, find_left_out(rankings, rule))
                means[rule] = MeanSums.of(rule, reported, rankings.weight).mean(rule)
            except ConventionError as error:
                means[rule] = str(error)
    return means


def _on_grid(numbers: Iterable[float]) -> dict[float, float]:
    """Round numbers to a binary grid on which their differences are exact; by at most 1e-16 below 1."""
    numbers = [number for number in numbers if math.isfinite(number)]
    grid = 2.0 ** (math.frexp(max(map(abs, numbers), default=1.0))[1] - 53)
    return {number: round(number / grid) * grid for number in numbers}


def compare_conventions(
    rankings: Rankings,
    k: int | None = 10,
    names: Iterable[str | Convention] | None = None,
    *,
    threads: int | None = None,
) -> Table:
    """Compute nDCG@k by every convention, and the effect of each choice on the first convention's value.

    Parameters
    ----------
    rankings : Rankings
    k : int or None
        Cutoff. None uses each convention's own cutoff, which is 32 for XGBoost.
    names : names or Conventions, optional
        Default: all conventions, "sklearn" first.
    threads : int, optional
        As in `evaluate`.

    Returns
    -------
    Table
        A row for each convention: `name`, `value`, `difference` from the first value, and the effect of each
        choice on this data (cutoff, queries, scores, rel, gain, discount, ideal, ties, empty, weights,
        rounding). Choices are changed in this order. The first value plus the effects of a row is exactly the
        value of that row. If a convention has no value, `refused` gives the reason.

    Raises
    ------
    ConventionError
        A convention does not exist, or the first one has no value on this data.

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
    rules = [as_convention(name) for name in (conventions if names is None else names)]
    if not rules:
        raise ConventionError(
            "no convention was named; name at least one, as in names=['sklearn', 'lightgbm']"
        )
    walks = {rule: _walk(rules[0], rule, k) for rule in rules}
    means = _means(
        check_rankings(rankings), [*rules, *(step for walk in walks.values() for _, step in walk)], k, threads
    )
    if isinstance(means[rules[0]], str):
        raise ConventionError(f"{rules[0].name} has no value here to compare with: {means[rules[0]]}")
    placed = _on_grid(mean for mean in means.values() if not isinstance(mean, str))

    def value_of(rule: Convention) -> float:
        mean = means[rule]
        return math.nan if isinstance(mean, str) else placed.get(mean, mean)

    rows, first = [], value_of(rules[0])
    for rule in rules:
        if isinstance(means[rule], str):
            rows.append({"name": rule.name, "refused": means[rule]})
            continue
        effects, at = dict.fromkeys(CHOICES, 0.0), first
        for choice, step in walks[rule]:
            effects[choice], at = value_of(step) - at, value_of(step)
        value = value_of(rule)
        rows.append({"name": rule.name, "value": value, "difference": value - first, **effects})
    numbers = dict.fromkeys(("value", "difference", *CHOICES), pa.float64())
    types = {"name": pa.string(), **numbers, "refused": pa.string()}
    return Table(pa.Table.from_pylist(rows, pa.schema(types)))


def explain_conventions(
    rankings: Rankings,
    a: str | Convention,
    b: str | Convention,
    k: int | None = 10,
    *,
    threads: int | None = None,
) -> Table:
    """Show how nDCG@k changes from one convention to another, one choice at a time.

    Parameters
    ----------
    rankings : Rankings
    a, b : name or Convention
        The first and the last convention.
    k : int, optional
        Cutoff. None uses each convention's own cutoff, as in `compare_conventions`.
    threads : int, optional
        As in `evaluate`.

    Returns
    -------
    Table
        A row for each step: `choice`, its values `before` and `after`, `effect`, and `value` after the step.
        The first row has the value of `a`. That value plus all effects is exactly the last value, that of
        `b`.

    Raises
    ------
    ConventionError
        A convention that does not exist, or has no value on this data.

    See Also
    --------
    compare_conventions : compare many conventions.
    evaluate : compute values by one convention, with `convention=`.

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
    start, end = as_convention(a), as_convention(b)
    walk = _walk(start, end, k)
    means = _means(check_rankings(rankings), [start, *(step for _, step in walk)], k, threads)
    for rule in (start, *(step for _, step in walk)):
        if isinstance(means[rule], str):
            raise ConventionError(
                f"there is no way from {start.name} to {end.name} on this data: {means[rule]}"
            )
    numbers = {rule: mean for rule, mean in means.items() if not isinstance(mean, str)}
    placed = _on_grid(numbers.values())
    at, value = start, placed.get(numbers[start], numbers[start])
    rows = [{"choice": start.name, "before": None, "after": None, "effect": None, "value": value}]
    for choice, step in walk:
        reached = placed.get(numbers[step], numbers[step])
        before, after = (_text_of(rule, choice) for rule in (at, step))
        rows.append(
            {"choice": choice, "before": before, "after": after, "effect": reached - value, "value": reached}
        )
        at, value = step, reached
    types = dict.fromkeys(rows[0], pa.string()) | {"effect": pa.float64(), "value": pa.float64()}
    return Table(pa.Table.from_pylist(rows, pa.schema(types)))


def _text_of(rule: Convention, choice: str) -> str:
    values = [getattr(rule, name) for name in CHOICES[choice]]
    if choice == "cutoff":
        return str(values[0]).lower()
    if choice == "rounding":
        return "none" if values[0] is None else f"{values[0].decimals} decimals {values[0].when}"
    if choice == "scores":
        return "as given" if values[0] is None else str(values[0])
    if choice == "queries":
        return f"missing {values[0]}, unjudged {values[1]}"
    value = values[0]
    return f"{value:g}" if isinstance(value, float | int) else str(value).lower()


def describe() -> Table:
    """Return all conventions as a table: a row for each convention, a column for each field."""
    rows = [
        {
            "name": rule.name,
            "measure": str(rule.measure()),
            "ties": rule.ties,
            "scores": _text_of(rule, "scores"),
            "rounding": _text_of(rule, "rounding"),
            "missing": rule.missing,
            "unjudged": rule.unjudged,
            "weights": rule.weights,
            "tolerance": rule.tolerance,
            "tool": rule.tool,
            "source": rule.source,
            "caveats": list(rule.caveats),
        }
        for rule in conventions.values()
    ]
    return Table(pa.Table.from_pylist(rows))
