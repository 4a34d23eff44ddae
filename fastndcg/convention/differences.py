"""Compare all tools on one data set: what makes their values differ, and whose numbers somebody reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.markup import Texts, html_table, html_text
from fastndcg.common.table import Table, fit, wrapped
from fastndcg.common.threads import check_threads
from fastndcg.convention.evaluation import MeanSums, Reported, alike, check_rankings, report_alike
from fastndcg.errors import (
    ConventionError,
    InputError,
    InputTypeError,
    MeasureError,
    check_length,
    count_of,
    known_arguments,
)
from fastndcg.measures import DEFINITIONS, Measure, MeasureLike, as_measure
from fastndcg.measures.conventions import Convention, as_convention, conventions
from fastndcg.measures.measure import measure_named, resolve
from fastndcg.measures.parameters import show_number

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.rankings.rankings import Rankings

# fields that several measures share, in the order of steps
_PARAMETERS = ("rel", "gain", "discount", "ideal")
_RECALL = "rounding of recall"
_EXACT = 1e-6  # for tools that compute in float32
_MOST_DECIMALS = 9  # numbers with more decimals are not rounded


class ConventionTable(Table):
    """A table of conventions that prints conventions with equal numbers in one row, and reasons below."""

    def texts(self) -> Texts:
        """Return rows of texts, the header first; the last column has the names of equal conventions."""
        rows: dict[tuple[str, ...], list[str]] = {}
        for row in self._arrow.to_pylist():
            name, *_ = row.values()
            if not row.get("refused"):
                names = [name, *filter(None, [row.get("equals")])]
                rows.setdefault(tuple(self._cells(row).values()), []).extend(names)
        header = [*self._cells(dict.fromkeys(self._arrow.column_names)), "conventions"]
        return [header, *([*cells, ", ".join(names)] for cells, names in rows.items())]

    def _cells(self, row: dict[str, Any]) -> dict[str, str]:
        """Return the cells of a row, without its names."""
        if "measure" in row:
            return {name: str(row[name]) for name in ("measure", "ties", "missing", "weights")}
        if "matches" in row:
            cells = {"matches": "yes" if row["matches"] else "no"}
            cells |= {name: number_text(row[name]) for name in ("value", "largest")}
            return cells | {"differing": str(row["differing"])}
        effects = [name for name in row if name not in ("name", "value", "difference", "refused")]
        said = (f"{name} {number_text(row[name], '+')}" for name in effects if row[name])
        return {name: number_text(row[name]) for name in ("value", "difference")} | {
            "effects": ", ".join(said)
        }

    def answer(self) -> str:
        """Return the sentence above the table of `match_conventions`."""
        if "matches" not in self.column_names:
            return ""
        first = self._arrow.slice(0, 1).to_pylist()[0]
        names = ", ".join(filter(None, [first["convention"], first["equals"]]))
        if first["matches"]:
            largest = first["largest"]
            rounding = f", rounded: they differ by up to {number_text(largest)}" if largest > _EXACT else ""
            return f"These numbers are those of {names}{rounding}."
        return (
            f"No convention has these numbers. The nearest is {names}, with {number_text(first['value'])}, "
            f"which differs by up to {number_text(first['largest'])}."
        )

    def reasons(self) -> list[str]:
        """Return why conventions have no value, grouped by reason."""
        reasons: dict[str, tuple[str, list[str]]] = {}
        for row in self._arrow.to_pylist():
            if row.get("refused"):
                tool = next(iter(row.values()))
                reason = row["refused"].removeprefix(tool).strip()
                reasons.setdefault(reason.replace(f'"{tool}"', ""), (reason, []))[1].append(tool)
        return [f"{', '.join(tools)}: {reason}" for reason, tools in reasons.values()]

    def text(self, width: int = 0, see: str = "") -> str:  # noqa: ARG002 - it leaves nothing out
        """Return the answer, the table and the reasons. In a terminal, names are on separate lines."""
        texts, parts = self.texts(), [wrapped(self.answer(), width), ""] if self.answer() else []
        left = ("effects", "conventions", "measure", "ties", "missing", "weights")
        if width:
            above = fit([row[:-1] for row in texts], 0, (), 0, left=left).split("\n")
            if max(map(len, above)) > width:
                above = ["  ".join(row[:-1]) for row in texts]
            for line, row in zip(above, texts, strict=True):
                parts += [wrapped(line, width), wrapped(f"    {row[-1]}", width, 4)]
        else:
            parts.append(fit(texts, 0, (), 0, left=left))
        reasons = [wrapped(reason, width) for reason in self.reasons()]
        return "\n".join([*parts, *([""] if reasons else []), *reasons])

    def _repr_html_(self) -> str:
        texts, notes = self.texts(), "".join(f"<p>{html_text(reason)}</p>" for reason in self.reasons())
        answer = f"<p>{html_text(self.answer())}</p>" if self.answer() else ""
        return answer + html_table(texts, {len(texts[0]) - 1}) + notes


def number_text(value: float | None, sign: str = "") -> str:
    """Format a number for a column that is read row by row: 6 decimals, or 0."""
    if not value:
        return "" if value is None else "0"
    return format(value, f"{sign}.0e" if abs(value) < 5e-7 else f"{sign}.6f")


def choices_of(measure: str, rules: Iterable[Convention] = ()) -> dict[str, tuple[str, ...]]:
    """Return the choices in which conventions may differ, in the order of steps, with their fields.

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
        # IPrec has a parameter with the same name as a field
        **{name: (name,) for name in known if name in named and name != "rounding"},
        **({_RECALL: ("more",)} if "rounding" in named else {}),
        **{name: (name,) for name in ("ties", "empty") if name in known},
        "weights": ("weights",),
        "rounding": ("rounding",),
    }


def parse_measure(measure: MeasureLike | int, k: int | None = None) -> Measure:
    """Return the measure to compare; a bare cutoff is one of nDCG."""
    known = as_measure(f"nDCG@{measure}" if isinstance(measure, int) else measure)
    return known if k is None else known @ k


def _walk(start: Convention, end: Convention, measure: Measure) -> list[tuple[str, Convention]]:
    """Yield a choice and a convention for each step. Each step adopts one more choice of `end`."""
    steps, at = [], start
    plain = measure_named(measure.name)
    choices = choices_of(measure.name, (start, end))
    if start.ties == "block":  # no cutoff and no other denominator goes with it, so it changes first
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
    """Return the value of a field, or of a parameter that only some measures have."""
    if hasattr(rule, name):
        return getattr(rule, name)
    return dict(rule.more).get(name, measure_named(str(rule.of)).params[name])


def reports_of(
    rankings: Rankings, rules: Iterable[Convention], measure: Measure, threads: int | None
) -> dict[Convention, tuple[Reported, float] | str]:
    """Return the values and mean of each convention, or the error; equal rankings are scored once."""
    check_threads(threads)  # raised here, since errors below are returned as reasons
    reports: dict[Convention, tuple[Reported, float] | str] = {}
    for group in alike((rule, resolve(measure, rule)) for rule in rules):
        try:
            report = report_alike(rankings, group, threads)
        except (InputError, MeasureError) as error:
            if len(group) == 1:
                reports[group[0][0]] = str(error)
            else:  # find the conventions with this error
                for rule, _ in group:
                    reports |= reports_of(rankings, [rule], measure, threads)
            continue
        for (rule, _), reported in report.items():
            try:
                reports[rule] = reported, MeanSums.of(rule, reported).mean(rule)
            except MeasureError as error:
                reports[rule] = str(error)
    return reports


def _means(
    rankings: Rankings, rules: Iterable[Convention], measure: Measure, threads: int | None
) -> dict[Convention, float | str]:
    """Return means on a binary grid on which differences are exact; below 1 they move by at most 1e-16."""
    reports = reports_of(rankings, rules, measure, threads)
    means = {rule: report if isinstance(report, str) else report[1] for rule, report in reports.items()}
    finite = {rule: mean for rule, mean in means.items() if isinstance(mean, float) and math.isfinite(mean)}
    grid = 2.0 ** (math.frexp(max(map(abs, finite.values()), default=1.0))[1] - 53)
    return means | {rule: round(mean / grid) * grid for rule, mean in finite.items()}


@known_arguments
def compare_conventions(
    rankings: Rankings,
    measure: MeasureLike | int = "nDCG@10",
    names: Iterable[str | Convention] | None = None,
    *,
    k: int | None = None,
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
    k : int, optional
        Another cutoff.
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
    # the first convention refuses a measure that no tool has
    rules = [as_convention(name).on(chosen) for name in (known or ["sklearn"] if names is None else names)]
    if names is None:  # the first one with a value is the baseline
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
    return ConventionTable(pa.Table.from_pylist(rows, pa.schema(types)))


@known_arguments
def explain_conventions(
    rankings: Rankings,
    a: str | Convention,
    b: str | Convention,
    measure: MeasureLike | int = "nDCG@10",
    *,
    k: int | None = None,
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
                f"{start.name} cannot be turned into {end.name} on this data: {means[rule]}"
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
    """Return the value of a choice, in words."""
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
    return ConventionTable(pa.Table.from_pylist(rows))


# ---- whose numbers somebody reports ----


class _Fit(NamedTuple):
    """Distance of a convention's numbers from the reported ones; the first three fields sort."""

    differing: int  # numbers that differ by more than rounding and the tolerance
    misfit: float  # mean difference beyond rounding; 1 for a number that one side lacks
    distance: float  # mean of the differences
    largest: float
    mean: float
    numbers: Float64
    rule: Convention


@known_arguments
def match_conventions(
    rankings: Rankings,
    measure: MeasureLike | int,
    values: Any,
    *,
    decimals: int | None = None,
    threads: int | None = None,
) -> Table:
    """Find which conventions give the numbers that somebody reports, nearest first.

    Parameters
    ----------
    rankings : Rankings
    measure : Measure, notation, or cutoff of nDCG
        What the numbers are said to be, as in "AP@10". Parameters that it sets hold for every convention.
    values : float, array, sequence or mapping
        The mean; or the value of each query, in their order, NaN or None where one has none; or values by the
        id of a query.
    decimals : int, optional
        What the numbers are rounded to. Default: 9 or fewer, if all of them have as many. Values of queries
        with fewer than 3 are not rounded, since 0.25 may be 1/4.
    threads : int, optional
        As in `evaluate`.

    Returns
    -------
    Table
        A row for each definition that can be told apart here: `convention`; `value`, its mean; `largest`, the
        largest difference from the reported numbers; `differing`, how many of them differ by more than the
        convention's tolerance and the rounding; `matches`, whether none does; `equals`, other conventions
        with the same numbers; `refused`, for those without a value, the reason. "fastndcg" is our own value,
        without a convention.

    Raises
    ------
    InputError, InputTypeError
        Values of other queries, without a number, or of another type.
    MeasureError, ConventionError
        An unknown measure; no convention has a value.

    See Also
    --------
    compare_conventions, explain_conventions : each convention's value; how two of them differ.

    Notes
    -----
    Queries without a value are evidence if every one of them is left out by some convention. Otherwise the
    values are a sample, and queries that it lacks do not count.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[0, 3, 1], [0, 0], [1, 0, 2]])
    >>> table = match_conventions(rankings, "nDCG@3", [0.6443, 1, 0.6885])
    >>> table.select(["convention", "matches", "equals"]).to_pylist()[0]
    {'convention': 'catboost_exp', 'matches': True, 'equals': 'lightgbm, xgboost, allrank'}
    """
    chosen = parse_measure(measure)
    check_rankings(rankings)
    if decimals is not None and (isinstance(decimals, bool) or not isinstance(decimals, int)):
        raise InputTypeError(f"decimals is a {type(decimals).__name__}; expected a whole number, as in 4")
    target, is_mean = _numbers(values, rankings)
    rules = (rule for rule in conventions.values() if rule.find(chosen.name, cut=chosen.is_cut))
    ours = Convention("fastndcg", of=chosen.name, weights="weighted", missing="value", unjudged="value")
    reports = reports_of(rankings, [ours, *(rule.on(chosen) for rule in rules)], chosen, threads)
    refused = {rule.name: candidates for rule, candidates in reports.items() if isinstance(candidates, str)}
    valued = {rule: candidates for rule, candidates in reports.items() if not isinstance(candidates, str)}
    if not valued:
        raise ConventionError(f"no convention has a value of {chosen} here: {next(iter(refused.values()))}")
    left_out = np.any([np.isnan(reported.values) for reported, _ in valued.values()], axis=0)
    every = is_mean or bool(left_out[np.isnan(target)].all())

    def fits(decimals: int | None) -> list[_Fit]:
        candidates = (
            _fit(rule, target, np.array([mean]) if is_mean else reported.values, mean, decimals, every=every)
            for rule, (reported, mean) in valued.items()
        )
        return sorted(candidates, key=lambda each: each[:3])

    if decimals is not None:
        candidates = fits(decimals)
    else:
        if str(getattr(values, "dtype", "")) == "float32":
            decimals = 6
        else:
            decimals = _decimals_of(target[~np.isnan(target)].tolist(), 1 if is_mean else 3)
        candidates = fits(decimals)
        if is_mean and decimals in (1, 2) and candidates[0].distance < 1e-12:  # such as 1/4
            candidates = fits(None)
    groups: list[list[_Fit]] = []
    for each in candidates:
        known = next((group for group in groups if _are_alike(group[0], each)), None)
        groups.append([each]) if known is None else known.append(each)
    rows: list[dict[str, Any]] = []
    for first, *rest in groups:
        row = {"convention": first.rule.name, "value": first.mean, "largest": first.largest}
        row |= {"differing": first.differing, "matches": first.differing == 0}
        rows.append(row | {"equals": ", ".join(each.rule.name for each in rest), "refused": ""})
    rows += [{"convention": name, "equals": "", "refused": why} for name, why in refused.items()]
    types = {"convention": pa.string(), "value": pa.float64(), "largest": pa.float64()}
    types |= {"differing": pa.int64(), "matches": pa.bool_(), "equals": pa.string(), "refused": pa.string()}
    return ConventionTable(pa.Table.from_pylist(rows, pa.schema(types)))


def _fit(
    rule: Convention, target: Float64, numbers: Float64, mean: float, decimals: int | None, *, every: bool
) -> _Fit:
    gaps = np.abs(numbers - target)
    lacking = (np.isnan(target) != np.isnan(numbers)) & (every | ~np.isnan(target))
    slack = 0.0 if decimals is None else 0.5000001 * 10.0**-decimals
    misfits = np.where(lacking, 1.0, np.maximum(np.nan_to_num(gaps) - slack, 0))
    differs = misfits > rule.tolerance * np.maximum(1, np.abs(np.nan_to_num(target)))
    distance = float(np.where(lacking, 1.0, np.nan_to_num(gaps)).mean())
    largest = float(gaps[~np.isnan(gaps)].max(initial=0.0))
    return _Fit(int(differs.sum()), float(misfits.mean()), distance, largest, mean, numbers, rule)


def _are_alike(one: _Fit, other: _Fit) -> bool:
    """Return whether the numbers cannot tell two conventions apart: both match, or their values are equal."""
    if one.differing == 0 or other.differing == 0:
        return one.differing == other.differing
    tolerance = max(one.rule.tolerance, other.rule.tolerance)
    return bool(np.allclose(one.numbers, other.numbers, rtol=0, atol=tolerance, equal_nan=True))


def _numbers(target: Any, rankings: Rankings) -> tuple[Float64, bool]:
    """Return the value of each query, NaN where it has none, or a mean; and whether it is a mean."""
    if not rankings.n_queries:
        raise InputError("rankings has no queries, so there are no numbers to compare with; give one or more")
    if isinstance(target, Real) and not isinstance(target, bool | np.bool_):
        if not math.isfinite(target):
            raise InputError(f"values is {target}, which no mean can be compared with; give a finite number")
        return np.array([float(target)]), True
    if isinstance(target, Mapping):
        ids = [str(each) for each in rankings.query_ids.to_pylist()]
        by_id = {str(name): value for name, value in target.items()}
        if len(by_id) < len(target):
            raise InputError("values has a query twice, once as a number and once as text; give it one value")
        if unknown := by_id.keys() - {*ids}:
            raise InputError(
                f"values has {count_of(len(unknown), 'query')} that the rankings lack, such as "
                f"{min(unknown)}; their ids are like {', '.join(ids[:3])}. Give values of the same queries"
            )
        target = [by_id.get(each) for each in ids]
    elif isinstance(target, pa.Array | pa.ChunkedArray):
        target = target.to_pylist()
    try:
        if isinstance(target, str | bytes) or not hasattr(target, "__len__"):
            raise TypeError
        values = np.array(list(target), np.float64)  # None is NaN
    except (TypeError, ValueError):
        raise InputTypeError(
            f"values is a {type(target).__name__}; expected the mean as a number, the value of each query, "
            "or a mapping of their ids to values"
        ) from None
    check_length("values", len(values), rankings.n_queries, "query")
    values[np.isinf(values)] = np.nan
    if np.isnan(values).all():
        raise InputError("values has no number; give at least one query its value")
    return values, False


def _decimals_of(numbers: list[float], least: int) -> int | None:
    """Return the decimals of rounded numbers, if they are fewer than `_MOST_DECIMALS`; None: not rounded.

    Numbers with fewer than `least` decimals count as exact, since they may be shares such as 1/4.
    """
    texts = [repr(each).removesuffix(".0") for each in numbers]
    most = max(99 if "e" in each else len(each.partition(".")[2]) for each in texts)
    return most if least <= most <= _MOST_DECIMALS else None
