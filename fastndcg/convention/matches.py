"""`match_conventions`: which conventions give the numbers that somebody reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.convention.differences import ConventionTable, parse_measure, reports_of
from fastndcg.convention.evaluation import check_rankings
from fastndcg.errors import (
    ConventionError,
    InputError,
    InputTypeError,
    check_length,
    count_of,
    known_arguments,
)
from fastndcg.measures.conventions import Convention, conventions

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.common.table import Table
    from fastndcg.measures import MeasureLike
    from fastndcg.rankings.rankings import Rankings

_MOST_DECIMALS = 9  # numbers with more decimals are not rounded


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
    chosen = parse_measure(measure, "as given")
    check_rankings(rankings)
    if decimals is not None and (isinstance(decimals, bool) or not isinstance(decimals, int)):
        raise InputTypeError(f"decimals is a {type(decimals).__name__}; expected a whole number, as in 4")
    target, is_mean = _numbers(values, rankings)
    rules = (rule for rule in conventions.values() if rule.find(chosen.name, cut=chosen.is_cut))
    ours = Convention("fastndcg", of=chosen.name, weights="weighted", missing="value", unjudged="value")
    reports = reports_of(rankings, [ours, *(rule.on(chosen) for rule in rules)], chosen, threads)
    refused = {rule.name: found for rule, found in reports.items() if isinstance(found, str)}
    valued = {rule: found for rule, found in reports.items() if not isinstance(found, str)}
    if not valued:
        raise ConventionError(f"no convention has a value of {chosen} here: {next(iter(refused.values()))}")
    left_out = np.any([np.isnan(reported.values) for reported, _ in valued.values()], axis=0)
    every = is_mean or bool(left_out[np.isnan(target)].all())

    def fits(decimals: int | None) -> list[_Fit]:
        found = (
            _fit(rule, target, np.array([mean]) if is_mean else reported.values, mean, decimals, every=every)
            for rule, (reported, mean) in valued.items()
        )
        return sorted(found, key=lambda fit: fit[:3])

    if decimals is not None:
        found = fits(decimals)
    else:
        if str(getattr(values, "dtype", "")) == "float32":
            decimals = 6
        else:
            decimals = _decimals_of(target[~np.isnan(target)].tolist(), 1 if is_mean else 3)
        found = fits(decimals)
        if is_mean and decimals in (1, 2) and found[0].distance < 1e-12:  # such as 1/4
            found = fits(None)
    groups: list[list[_Fit]] = []
    for fit in found:
        alike = next((group for group in groups if _are_alike(group[0], fit)), None)
        groups.append([fit]) if alike is None else alike.append(fit)
    rows: list[dict[str, Any]] = []
    for first, *rest in groups:
        row = {"convention": first.rule.name, "value": first.mean, "largest": first.largest}
        row |= {"differing": first.differing, "matches": first.differing == 0}
        rows.append(row | {"equals": ", ".join(fit.rule.name for fit in rest), "refused": ""})
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


# ---- what somebody reports ----


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
