"""`match_conventions`: which conventions give the numbers that somebody reports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.table import Table
from fastndcg.convention.claimed import Claimed, read_claimed
from fastndcg.convention.differences import asked_for, choices_of, field_of, reports_of, text_of
from fastndcg.convention.evaluation import check_rankings
from fastndcg.errors import ConventionError, InputTypeError, MeasureError
from fastndcg.measures import DEFINITIONS, Measure, MeasureLike
from fastndcg.measures.by_tool import Convention, conventions
from fastndcg.measures.measure import measure_named, resolve
from fastndcg.measures.rules import BY_COUNT, OF_MEASURE

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.convention.evaluation import Reported
    from fastndcg.rankings.rankings import Rankings

    Found = tuple[Reported, float] | str

_CUTOFFS = (None, 1, 3, 5, 10, 20, 32, 50, 100, 1000)
_TRIED = 3  # of the nearest conventions that do not fit: those whose choices are changed
_WINDOW = 300  # queries that changes are tried on first
_MOST = 200_000_000  # documents, times changes, that are worth their time: half a minute


class _Fit(NamedTuple):
    """How far a convention's numbers are from those that are reported; the first three say what is nearer."""

    differing: int  # numbers that differ by more than rounding and the tolerance
    misfit: float  # mean of what is beyond rounding; a number that one side lacks is 1
    distance: float  # mean of the differences
    largest: float
    mean: float
    numbers: Float64
    rule: Convention


class _Search(NamedTuple):
    """The numbers that conventions are compared with."""

    rankings: Rankings
    claimed: Claimed
    every: bool  # queries without a value were left out by the tool, and not by who reports
    threads: int | None

    def fit(self, rule: Convention, reported: Reported, mean: float) -> _Fit:
        given, numbers = self.claimed.joined(*self.claimed[:2]), self.claimed.joined(reported.values, mean)
        gaps = np.abs(numbers - given)
        lacking = (np.isnan(given) != np.isnan(numbers)) & (self.every | ~np.isnan(given))
        slack = 0.0 if self.claimed.decimals is None else 0.5000001 * 10.0**-self.claimed.decimals
        misfits = np.where(lacking, 1.0, np.maximum(np.nan_to_num(gaps) - slack, 0))
        differs = misfits > rule.tolerance * np.maximum(1, np.abs(np.nan_to_num(given)))
        distance = float(np.where(lacking, 1.0, np.nan_to_num(gaps)).mean())
        largest = float(gaps[~np.isnan(gaps)].max(initial=0.0))
        return _Fit(int(differs.sum()), float(misfits.mean()), distance, largest, mean, numbers, rule)

    def matching(self, rules: Iterable[Convention], measure: Measure) -> list[Convention]:
        """Those that give the numbers, a few at a time, so that their values fit into memory."""
        some, found = list(rules), list[Convention]()
        step = max(1, 20_000_000 // max(1, self.rankings.n_queries))
        for first in range(0, len(some), step):
            reports = reports_of(self.rankings, some[first : first + step], measure, self.threads)
            of_rules = ((rule, each) for rule, each in reports.items() if not isinstance(each, str))
            found += [rule for rule, each in of_rules if self.fit(rule, *each).differing == 0]
        return found

    def window(self, fit: _Fit) -> _Search:
        """The same for a few hundred queries, among them one that differs; itself for a mean."""
        if self.claimed.values is None:
            return self
        gaps = np.abs(fit.numbers[: self.rankings.n_queries] - self.claimed.values)
        first = max(0, int(np.argmax(np.nan_to_num(gaps, nan=1.0))) - _WINDOW // 2)
        part = slice(first, first + _WINDOW)
        claimed = self.claimed._replace(values=self.claimed.values[part], mean=None)
        return self._replace(rankings=self.rankings[part], claimed=claimed)


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
    values : float, sequence, mapping, table, Scores or path
        A mean, also as text, whose decimals then count; values in the order of the queries, NaN or None where
        one has none; values by the id of a query, also pytrec_eval's dicts; a table or CSV of ids and values;
        what trec_eval -q prints. A line "all" is the mean.
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
        with the same numbers; `changes`, if nothing matches: the one or two choices of `explain_conventions`
        that bring one of the three nearest to the numbers; `refused`, for those without a value, the reason.
        "fastndcg" is our own value, without a convention.

    Raises
    ------
    InputError, InputTypeError, SourceError
        Values of other queries, of several measures, without a number, or that cannot be read.
    MeasureError
        An unknown measure.

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
    {'convention': 'lightgbm', 'matches': True, 'equals': 'catboost_exp, xgboost, allrank'}
    """
    asked = asked_for(measure, "as given")
    check_rankings(rankings)
    if decimals is not None and (isinstance(decimals, bool) or not isinstance(decimals, int)):
        raise InputTypeError(f"decimals is a {type(decimals).__name__}; wanted a whole number, as in 4")
    claimed = read_claimed(values, asked, rankings, decimals)
    theirs = (rule for rule in conventions.values() if rule.find(asked.name, cut=asked.is_cut))
    own = Convention("fastndcg", of=asked.name, weights="weighted", missing="value", unjudged="value")
    rules = [own, *(rule.on(asked) for rule in theirs)]
    reports = reports_of(rankings, rules, asked, threads)
    refused = {rule.name: found for rule, found in reports.items() if isinstance(found, str)}
    valued = {rule: found for rule, found in reports.items() if not isinstance(found, str)}
    if not valued:
        raise ConventionError(f"no convention has a value of {asked} here: {next(iter(refused.values()))}")
    lacking = np.any([np.isnan(reported.values) for reported, _ in valued.values()], axis=0)
    every = claimed.values is None or bool(lacking[np.isnan(claimed.values)].all())
    search = _Search(rankings, claimed, every, threads)
    fits = [search.fit(rule, *found) for rule, found in valued.items()]
    may_be_exact = claimed.values is None and claimed.decimals in (1, 2)  # such as 1/4
    if may_be_exact and decimals is None and min(fit.distance for fit in fits) < 1e-12:
        search = search._replace(claimed=claimed._replace(decimals=None))
        fits = [search.fit(rule, *found) for rule, found in valued.items()]
    groups: list[list[_Fit]] = []
    for fit in sorted(fits, key=lambda fit: fit[:3]):
        alike = next((group for group in groups if _are_alike(group[0], fit)), None)
        groups.append([fit]) if alike is None else alike.append(fit)
    nearest = [group[0] for group in groups[:_TRIED]]
    changes = {} if nearest[0].differing == 0 else _changes(nearest, rules, asked, search)
    rows: list[dict[str, Any]] = []
    for first, *rest in groups:
        row = {"convention": first.rule.name, "value": first.mean, "largest": first.largest}
        row |= {"differing": first.differing, "matches": first.differing == 0}
        row |= {"equals": ", ".join(fit.rule.name for fit in rest), "changes": changes.get(first.rule, "")}
        rows.append(row | {"refused": ""})
    rows += [
        {"convention": name, "equals": "", "changes": "", "refused": why} for name, why in refused.items()
    ]
    types = {"convention": pa.string(), "value": pa.float64(), "largest": pa.float64()}
    types |= {"differing": pa.int64(), "matches": pa.bool_()}
    types |= dict.fromkeys(("equals", "changes", "refused"), pa.string())
    return Table(pa.Table.from_pylist(rows, pa.schema(types)))


def _are_alike(one: _Fit, other: _Fit) -> bool:
    """Whether the numbers cannot tell two conventions apart: both match, or both have the same values."""
    if one.differing == 0 or other.differing == 0:
        return one.differing == other.differing
    tolerance = max(one.rule.tolerance, other.rule.tolerance)
    return bool(np.allclose(one.numbers, other.numbers, rtol=0, atol=tolerance, equal_nan=True))


# ---- what would have to change ----


_Step = tuple[str, tuple[tuple[str, Any], ...]]  # a choice, and the fields that it sets


def _changes(
    nearest: list[_Fit], rules: list[Convention], asked: Measure, search: _Search
) -> dict[Convention, str]:
    """For conventions that do not fit: the changes that make them, one alone or else two."""
    at, starts = asked, {fit.rule: fit.rule for fit in nearest}
    if asked.cutoff is not None:  # the cutoff is a choice like any other
        at = measure_named(asked.name)(**asked.params)
        starts = {rule: rule.replace(default_cutoff=asked.cutoff) for rule in starts}
    singles = {rule: list(_others(start, rules, asked, search)) for rule, start in starts.items()}
    tried, found = 0, dict[Convention, str]()
    for size in (1, 2):
        for fit in nearest:
            start, small = starts[fit.rule], search.window(fit)
            changed: dict[Convention, tuple[_Step, ...]] = {}
            for steps in combinations(singles[fit.rule], size):
                with suppress(MeasureError):  # values that do not go together
                    if len({choice for choice, _ in steps}) == size:
                        fields = dict(field for _, pairs in steps for field in pairs)
                        rule = start.replace(**fields)
                        resolve(at, rule)
                        changed.setdefault(rule, steps)
            if small.rankings.n_docs * len(changed) > _MOST:
                continue
            tried += len(changed)
            fitting = small.matching(changed, at)
            fitting = fitting if small is search else search.matching(fitting[:50], at)
            texts = [
                " and ".join(
                    f"{choice} {text_of(rule, choice)} instead of {text_of(start, choice)}"
                    for choice, _ in changed[rule]
                )
                for rule in fitting[:3]
            ]
            if texts:
                found[fit.rule] = "; or ".join(texts)
        if found:
            return found
    text = f"none of {tried:,} changes of one or two choices" if tried else "not tried for so many documents"
    return {nearest[0].rule: text}


def _others(start: Convention, rules: list[Convention], asked: Measure, search: _Search) -> Iterator[_Step]:
    """Each other value of each choice: those of other conventions, and all that the measure has words for."""
    parameters = {each.name: each for each in DEFINITIONS[asked.name].parameters}
    plain, rankings = measure_named(asked.name), search.rankings
    choices = choices_of(asked.name, rules)
    choices |= {name: (name,) for name in parameters.keys() - choices - {"rounding", "recall"}}
    by_id = () if rankings.doc_ids is None else ("docid_desc", "docid_asc", "item_desc")
    more: dict[str, Iterable[Any]] = {
        "cutoff": [each for each in _CUTOFFS if each is None or each < rankings._longest],
        "empty": (0.0, 1.0, "skip", "nan"),
        "rel": [float(each) for each in rankings._distinct_grades[-6:] if each > 0],
        "weights": BY_COUNT,
    }
    for choice, names in sorted(choices.items()):
        if choice == "cutoff" and (asked.cutoff_column or DEFINITIONS[asked.name].cut != "rank"):
            continue
        if asked.params.get(choice) != plain.params.get(choice):  # it is given, and holds for all
            continue
        if choice == "weights" and search.claimed.mean is None:
            continue
        values = [tuple(field_of(rule, name) for name in names) for rule in rules]
        values = [] if choice == "weights" and rankings.weight is None else values
        values += [(each,) for each in more.get(choice, ())]
        if choice in parameters and choice != "rounding":  # IPrec's is no field
            words = [word for word, _ in parameters[choice].values if word.startswith("'")]
            values += [(ast.literal_eval(word),) for word in words]
            values += [(not each,) for each in [parameters[choice].default] if isinstance(each, bool)]
        if choice == "ties":
            values = [each for each in values if each[0] in (*OF_MEASURE, *by_id)]
        now = tuple(field_of(start, name) for name in names)
        for value in dict.fromkeys(values):
            if value != now:
                yield choice, tuple(zip(names, value, strict=True))
