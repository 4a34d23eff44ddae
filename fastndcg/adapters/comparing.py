"""Columns of scores compared by an engine: the numbers of `fastndcg.compare`, from exact sums of parts.

    rows -> scored once by each column -> values of queries, kept by the workers
         -> sums of pairs -> means -> sums of squares about them -> `Comparison`

A spread is the sum of squares about a mean, which is known only after all parts: so workers add up the values
of queries twice. Rows are read, shuffled and scored once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from fastndcg.adapters.totals import merged
from fastndcg.common.arrow_types import array_of
from fastndcg.decide.comparison import Comparison
from fastndcg.decide.contrasts import Contrasts, Options, that_count
from fastndcg.decide.matching import MatchedSamples, caution_of_shares, pairs_of, shares_that_matter
from fastndcg.errors import InputError, check_choice
from fastndcg.statistics.exact_sums import Moments, differences_of
from fastndcg.statistics.intervals import check_confidence, check_size, scipy
from fastndcg.statistics.paired import CORRECTIONS, Centre, Spread

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.adapters.parts import Task
    from fastndcg.measures import Measure

_TWO, _NOTHING = Fraction(2), Moments.of(np.empty(0))


class Asked(NamedTuple):
    """What is compared."""

    measures: tuple[Measure, ...]
    systems: tuple[str, ...]
    pairs: tuple[tuple[str, ...], ...]  # systems and their baselines
    tolerance: float


class Paired(NamedTuple):
    """Sums over the queries that count for both systems of a pair; those of parts merge exactly."""

    own: Moments = _NOTHING
    theirs: Moments = _NOTHING
    differences: Moments = _NOTHING  # of queries that weigh
    size: float = 0.0  # the largest absolute value
    heaviest: float = 0.0  # the largest weight
    wins: int = 0
    losses: int = 0
    nonzero: int = 0

    def __add__(self, other: Paired) -> Paired:  # type: ignore[override]
        moments = map(merged, self[:3], other[:3])
        sums = (one + another for one, another in zip(self[5:], other[5:], strict=True))
        return Paired._make([*moments, *map(max, self[3:5], other[3:5]), *sums])


# by the place of a measure and a system: moments; by those of a measure and a pair: the others
Sums = dict[tuple[int, Any], Any]
Centres = Mapping[tuple[int, Any], tuple[Centre, int]]


def check_compared(
    measures: tuple[Measure, ...],
    systems: Sequence[str],
    baseline: str | None,
    correction: str | None,
    confidence: float,
    interval: str,
    tolerance: float,
) -> tuple[Asked, Options]:
    """What is compared, and how, checked as `fastndcg.compare` does."""
    if isinstance(systems, str) or not 2 <= len(systems) == len(set(systems)):
        raise InputError(f'scores is {systems!r}; wanted two or more columns, as in ["bm25", "rerank"]')
    scipy("special", "compare")
    check_choice("correction", correction, (None, *CORRECTIONS))
    check_choice("interval", interval, ("t", "logit"))
    tolerance = check_size("tolerance", tolerance, "a size of ties", 0.01)
    confidence = check_confidence(confidence)
    options = Options(baseline, "t", correction, confidence, tolerance, True, 0, 0, None, interval)
    return Asked(measures, tuple(systems), tuple(pairs_of(systems, baseline)), tolerance), options


def shares_of(measures: Sequence[Measure], task: Task) -> dict[Measure, list[Measure]]:
    """Shares of judged documents that are looked at, and the measures that may differ for them alone."""
    says = task.columns.is_judged is not None or task.columns.unjudged != "refuse"
    return shares_that_matter(measures) if says and task.convention is None else {}


def added(parts: Iterable[Sums]) -> Sums:
    return reduce(merged, parts, {})


# ---- in a worker ----


def _pairs(asked: Asked, table: pa.Table) -> Iterator[tuple[tuple[int, Any], tuple[Any, ...]]]:
    """Of each measure and system, or pair of systems: the values that count, and their weights."""
    columns, n = [array_of(column) for column in table.columns], len(asked.measures)
    every = n * len(asked.systems)
    weight = columns[2 * every] if len(columns) > 2 * every else None
    for row in range(n):
        values = dict(zip(asked.systems, columns[row:every:n], strict=True))
        counts = dict(zip(asked.systems, columns[every + row : 2 * every : n], strict=True))
        for name in asked.systems:
            yield (row, name), tuple(that_count(counts[name], values[name], weight))
        for pair in asked.pairs:
            both = counts[pair[0]] & counts[pair[1]]
            yield (row, pair), tuple(that_count(both, *(values[name] for name in pair), weight))


def first_sums(asked: Asked, tables: Iterable[pa.Table]) -> Sums:
    """Moments of systems, and sums of pairs."""

    def of(own: Any, *others: Any) -> Any:
        if len(others) == 1:
            return Moments.of(own, *others)
        theirs, weight = others
        differences = differences_of(own, theirs)
        weighs = slice(None) if weight is None else weight > 0
        return Paired(
            Moments.of(own, weight),
            Moments.of(theirs, weight),
            Moments.of(differences[weighs], None if weight is None else weight[weighs]),
            max(float(np.abs(each).max(initial=0.0)) for each in (own, theirs)),
            0.0 if weight is None else float(weight.max(initial=0.0)),
            int((differences > asked.tolerance).sum()),
            int((differences < -asked.tolerance).sum()),
            int(np.count_nonzero(differences)),
        )

    return added({key: of(*columns) for key, columns in _pairs(asked, table)} for table in tables)


def second_sums(asked: Asked, centres: Centres, tables: Iterable[pa.Table]) -> Sums:
    """Sums of squares about the means of pairs; weights are divided by a power of two."""

    def of(centre: Centre, power: int, own: Any, theirs: Any, weight: Any) -> Any:
        differences = differences_of(own, theirs)
        if weight is not None:
            differences, weight = differences[weight > 0], np.ldexp(weight[weight > 0], -power)
        return np.array(centre.squares(differences, weight), object)

    of_tables = (((key, each) for key, each in _pairs(asked, table) if key in centres) for table in tables)
    return added({key: of(*centres[key], *each) for key, each in pairs} for pairs in of_tables)


# ---- in the driver ----


def centres_of(first: Sums, n_measures: int, *, weighted: bool) -> Centres:
    """What squares are taken about, and the power of two of weights, where there are two values or more, of
    the first measures.
    """
    centres = {}
    for key, pair in first.items():
        if key[0] >= n_measures:
            continue
        if isinstance(pair, Paired) and pair.differences.n_values > 1 and not pair.differences.undefined:
            middle = pair.differences.mean(weighted=weighted)
            ends = pair.size, pair.differences.low, pair.differences.high
            centres[key] = Centre.of(middle, *ends), math.frexp(pair.heaviest)[1]
    return centres


class OfSums(Contrasts):
    """Contrasts whose sums workers have added up."""

    def __init__(
        self, asked: Asked, options: Options, first: Sums, centres: Centres, second: Sums, *, weighted: bool
    ) -> None:
        self._first, self._centres, self._second, self._weighted = first, centres, second, weighted
        super().__init__(asked.measures, Elsewhere(asked.systems), options)

    def comparison(self, looked_at: Asked, shares: Mapping[Measure, list[Measure]]) -> Comparison:
        """The result of `fastndcg.compare`, without the values of queries. Shares of judged documents, of
        which there are cautions, are among the measures that were looked at.
        """
        found = Comparison(self._measures, MatchedSamples(self._samples, {}), self._options, self)
        for judged, measures in shares.items():
            means = self._means_of(looked_at.measures.index(judged))
            found.cautions += caution_of_shares(judged, measures, means, self._options.baseline)
        return found

    def _means_of_systems(self) -> dict[str, dict[str, float]]:
        return {str(measure): self._means_of(row) for row, measure in enumerate(self._measures)}

    def _means_of(self, row: int) -> dict[str, float]:
        moments = {name: self._first.get((row, name), _NOTHING) for name in self._samples}
        return {name: each.mean(weighted=self._weighted) for name, each in moments.items()}

    def _paired(self, place: int, system: str, baseline: str) -> tuple[Spread, dict[str, Any]]:
        key = place, (system, baseline)
        pair: Paired = self._first.get(key, Paired())
        of_pair, n, queries = pair.differences, pair.differences.n_values, pair.own.n_values
        if key in self._centres:
            (centre, power), whole, of_weights = self._centres[key], Fraction(n), None
            if self._weighted:
                whole, of_weights = (
                    of_pair.weights / _TWO**power,
                    of_pair.weight_squares / _TWO ** (2 * power),
                )
            found = Spread.of_sums(n, centre, whole, of_weights, *self._second[key])
        else:
            found = Spread(n, of_pair.mean(weighted=self._weighted), math.nan, math.nan, math.nan)
        self._caution_of_few(place, system, baseline, pair.nonzero, queries)
        ends: dict[str, float] = {}
        if self._options.interval == "logit":
            ranges = [np.array([each.low, each.high]) for each in pair[:2]]
            ends = self._bounded(place, found, *ranges)._asdict()
        numbers = {"wins": pair.wins, "ties": queries - pair.wins - pair.losses, "losses": pair.losses}
        return found, {
            "mean": pair.own.mean(weighted=self._weighted),
            "baseline_mean": pair.theirs.mean(weighted=self._weighted),
            "p": found.p(),
            **ends,
            **numbers,
            "nonzero": pair.nonzero,
            "queries": queries,
        }


class Elsewhere(dict[str, Any]):
    """Samples of systems whose values are with an engine."""

    def __init__(self, systems: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(systems))

    def __getitem__(self, name: str) -> NoReturn:
        raise InputError(
            "the values of queries are with the engine, and a comparison has their sums alone; collect what "
            "evaluate returns for each column of scores, and compare these with fastndcg.compare"
        )

    def values(self) -> Any:
        return self[""]
