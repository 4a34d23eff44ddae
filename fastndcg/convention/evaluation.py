"""Prepare data and compute, round and average values as a given tool does."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg import statistics
from fastndcg.common.arrays import (
    Flags,
    Float64,
    Int64,
    codes_from,
    falling_keys,
    offsets_from,
    offsets_of,
    read_only,
)
from fastndcg.common.arrow_types import array_of, decode, places_of
from fastndcg.errors import ConventionError, InputError, InputTypeError, MeasureError, count_of
from fastndcg.measures import Measure, Measures, NumRel, NumRet, as_measure, as_measures
from fastndcg.measures.conventions import Convention, as_convention
from fastndcg.measures.measure import resolve
from fastndcg.measures.tools import BY_COUNT, BY_ID, BY_ROW, OF_MEASURE
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scoring import gain_values, ideals, methods
from fastndcg.tables.checks import JudgedPool
from fastndcg.tables.joins import alike as alike_ids

if TYPE_CHECKING:
    from fastndcg.measures.tools import Rounding
Pair = tuple[Convention, Measure]  # a convention for one measure, and the measure with its parameters


# ---- data, as a tool ranks it ----


def prepare(rankings: Rankings, convention: Convention, measures: Sequence[Measure]) -> Rankings:
    """Cast scores to the tool's type, and order tied documents as the tool does.

    Raise `ConventionError` if that order is unknown and a value depends on it.
    """
    rankings = without_pool(rankings, convention)
    if rankings._rows_of_run is not None and (convention.ties in BY_ROW or convention.grades == "distinct"):
        rankings = _ordered_by(rankings, rankings._rows_of_run)
    if convention.grades == "distinct":
        grades = rankings.relevance if rankings.is_judged is None else rankings.relevance * rankings.is_judged
        query = codes_from(rankings.offsets)
        falling = np.empty(rankings.n_docs, np.int64)
        falling[np.lexsort((falling_keys(grades), query))] = np.arange(rankings.n_docs)
        distinct = read_only(rankings.offsets[1:][query] - 1 - falling)
        rankings = rankings._with(relevance=distinct, is_judged=None, judged=None)
    if convention.score_dtype == "float32" and rankings.scores.dtype != np.float32:
        with np.errstate(over="ignore"):  # the tools overflow to infinity as well
            rankings = rankings._with(scores=read_only(rankings.scores.astype(np.float32)))
    if convention.ties in OF_MEASURE:
        return rankings
    if convention.ties == "numba_argsort":
        from fastndcg.kernels.compile import dispatch

        # Numba's function decides the order of ties, which is not documented
        scores = read_only(np.ascontiguousarray(rankings.scores, np.float64))
        rows = dispatch.run("rows.argsort_falling", math.inf, rankings.offsets, scores)
        return _with_rows(rankings, rows)
    if convention.ties in ("input_to_16", "unspecified") or rankings.doc_ids is None:
        _refuse_ties(rankings, convention, measures, 16 if convention.ties == "input_to_16" else 0)
        return rankings
    distinct = decode(pc.unique(rankings.doc_ids))  # text is ordered by UTF-8 bytes, as by strcmp
    places = places_of(distinct if convention.ties == "item_desc" else distinct.cast(pa.string()))
    place = places[array_of(pc.index_in(decode(rankings.doc_ids), distinct))]
    return _ordered_by(rankings, place if convention.ties == "docid_asc" else -place)


def without_pool(rankings: Rankings, convention: Convention) -> Rankings:
    """Return the rankings with the documents that the tool knows as judged."""
    if convention.pool == "listed":
        return rankings._with_pooled or rankings
    if convention.pool == "judged" or rankings.judged is None:
        return rankings
    return rankings._with(judged=None)


def without_own(rankings: Rankings, convention: Convention) -> Rankings:
    """Return the rankings without documents whose id is that of their query, if the tool drops them."""
    if not convention.drops_own or rankings.doc_ids is None or rankings.__dict__["_query_ids"] is None:
        return rankings
    documents, queries = alike_ids(rankings.doc_ids, rankings.query_ids)
    query = codes_from(rankings.offsets)
    kept = ~array_of(pc.equal(documents, queries.take(pa.array(query))))
    if kept.all():
        return rankings
    fields = {name: rankings.__dict__[name] for name in ("relevance", "scores", "is_judged", "_rows")}
    return rankings._with(
        **{name: None if column is None else read_only(column[kept]) for name, column in fields.items()},
        offsets=read_only(offsets_of(kept, rankings.offsets)),
        doc_ids=rankings.doc_ids.filter(pa.array(kept)),
        judged=JudgedPool(*map(read_only, ideals.pool(rankings))),
    )


def _ordered_by(rankings: Rankings, keys: Int64) -> Rankings:
    """Return the rankings with the rows of each query in ascending order of keys."""
    return _with_rows(rankings, np.lexsort((keys, codes_from(rankings.offsets))))


def _with_rows(rankings: Rankings, rows: Int64) -> Rankings:
    """Return the rankings with rows in this order, without document ids."""
    is_judged = None if rankings.is_judged is None else rankings.is_judged[rows]
    return Rankings._from_offsets(
        rankings.offsets,
        rankings.relevance[rows],
        rankings.scores[rows],
        judged=rankings.judged,
        is_judged=is_judged,
        query_ids=rankings.query_ids,
    )


def _refuse_ties(
    rankings: Rankings, convention: Convention, measures: Sequence[Measure], longest: int
) -> None:
    """Raise `ConventionError` if the order of ties in a list longer than `longest` changes a value."""
    orders = [
        measure(ties=ties) for ties in ("worst", "best") for measure in measures if "ties" in measure.params
    ]
    worst, best = np.split(methods.values(tuple(orders), rankings), 2)
    differs = (worst != best) & ~(np.isnan(worst) & np.isnan(best)) & (rankings.lengths > longest)
    if not differs.any():
        return
    first = rankings._name_of(int(np.flatnonzero(differs.any(axis=0))[0]))
    where = f"query {first} has tied documents with different gains"
    if convention.ties in BY_ID:
        raise ConventionError(
            f"{convention.name} orders ties by document id, but {where}, and the rankings have no document "
            "ids. Give doc_ids= for arrays or doc_id= for a table."
        )
    raise ConventionError(
        f"{convention.name} does not define the order of ties"
        f"{f' in lists of more than {longest}' if longest else ''}, "
        f"and {where}, so its value cannot be reproduced. Use its measure with another rule, "
        f'as in {measures[0].name}(like="{convention.name}", ties="average").'
    )


# ---- what it reports ----


class Reported(NamedTuple):
    """Values of one measure as a tool reports them."""

    values: Float64  # NaN for queries that the tool does not report
    averaged: Float64  # the values that the mean is computed from
    empty: Flags  # whether the query has no ideal gain
    counted: Flags  # whether the query counts in the mean
    weight: Float64  # weight of each query in the tool's mean

    def part(self, part: Any) -> Reported:
        return Reported(*(column[part] for column in self))


def report(convention: Convention, measure: Measure, values: Float64, rankings: Rankings) -> Reported:
    """Turn the measure's values, NaN for empty queries, into those that the tool reports."""
    returned, (offsets, grades) = rankings.lengths > 0, ideals.pool(rankings)
    judged = np.diff(offsets) > 0
    if convention.unjudged == "skip_irrelevant":
        known = convention.measure()
        counts_all = known.definition.gain == "found" and known.rel is None
        gains = gain_values.gains_of_grades(NumRel if counts_all else known, grades) > 0
        judged = np.diff(offsets_from(gains)[offsets]) > 0
    left_out = ~(returned | judged)
    if convention.missing != "value":
        left_out |= ~returned
    if convention.unjudged != "value":
        left_out |= ~judged
    left_out |= rankings.lengths < convention.shortest
    empty = np.isnan(values)
    empty_value = measure.empty
    instead = math.nan if isinstance(empty_value, str) else empty_value
    values = np.where(empty, instead, values)
    if convention.only_relevant is not None and empty.any():
        both, at = (NumRet(rel=measure.rel), NumRet), measure.cutoff
        hits, answers = both if at is None else (each @ at for each in both)
        of_hits, of_found = values_of(rankings, [hits, answers], None).values()
        full = empty & (of_hits == of_found) & returned
        values = np.where(full, convention.only_relevant, values)
    if convention.no_nonrelevant is not None:
        relevant = values_of(rankings, [NumRel(rel=measure.rel)], None)[NumRel(rel=measure.rel)]
        all_relevant = (relevant > 0) & (relevant == np.diff(offsets))
        values = np.where(all_relevant, convention.no_nonrelevant, values)
    if convention.weights == "or_zero" and rankings.weight is not None:
        values = np.where(rankings.weight > 0, values, 0.0)
    values = np.where(left_out, math.nan, values)
    counted = ~left_out & ~(empty & (empty_value == "skip"))
    shown = averaged = values
    if (rounding := convention.rounding) is not None:
        shown = np.array([_round(value, rounding) for value in values.tolist()], dtype=np.float64)
        averaged = shown if rounding.when == "stored" else values
    weight = np.ones(len(values))
    if convention.weights in BY_COUNT:
        known = NumRel(rel=measure.rel)
        weight = np.nan_to_num(values_of(without_pool(rankings, convention), [known], None)[known])
        if measure.cutoff is not None and convention.weights != "n_relevant":
            weight = np.minimum(weight, measure.cutoff)
    elif convention.weights not in ("ignored", "or_zero") and rankings.weight is not None:
        weight = rankings.weight
    return Reported(shown, averaged, empty & ~left_out, counted, weight)


def _round(value: float, rounding: Rounding) -> float:
    if math.isnan(value):
        return value
    if rounding.when == "stored":  # Java's Math.round(value * 100) / 100
        return float(math.floor(value * 10**rounding.decimals + 0.5) / 10**rounding.decimals)
    return float(f"{value:.{rounding.decimals}f}")


class MeanSums(NamedTuple):
    """Exact sums for a mean under any rule of weights. Sums of parts add up exactly.

    >>> queries = Rankings.from_lists(
    ...     [[1, 0], [0, 0], [2, 1]], [[0.1, 0.2], [0.3, 0.4], [0.6, 0.6]], weight=[0.5, 2, 1])
    >>> parts = queries[:1], queries[1:]
    >>> first, rest = (evaluate_by_convention(part, "nDCG", "tf_ranking") for part in parts)
    >>> whole = first._mean_sums(0) + rest._mean_sums(0)
    >>> whole.mean(first.convention) == evaluate_by_convention(queries, "nDCG", "tf_ranking").mean()["nDCG"]
    True
    """

    undefined: int  # number of NaN values, which the sums leave out
    total: Fraction  # of values times their weights
    weights: Fraction
    queries: int  # queries with a weight above 0
    # queries without an ideal gain whose weight depends on all others; the sums above leave them out
    empty: int
    empty_total: Fraction

    @classmethod
    def of(cls, convention: Convention, reported: Reported) -> MeanSums:
        values, empty, weight = reported.averaged, reported.empty, reported.weight
        counted = reported.counted & ~np.isnan(values)
        later = counted & empty & (convention.weights == "tf_ranking")
        step, later = counted & ~later, later & (weight > 0)
        if (weight == 1).all():  # equal weights are left out: adding values alone takes half the time
            total, weights = statistics.exact_sum(values[step]), Fraction(int(np.count_nonzero(step)))
        else:
            of_empty = 1.0 if convention.weights in ("lightgbm", "xgboost") else weight
            factors = np.where(empty, of_empty, weight)
            total = statistics.exact_sum(values[step], factors[step])
            weights = statistics.exact_sum(weight[step])
        undefined = int(np.count_nonzero(reported.counted)) - int(np.count_nonzero(counted))
        queries = int(np.count_nonzero(weight[step]))
        return cls(
            undefined,
            total,
            weights,
            queries,
            int(np.count_nonzero(later)),
            statistics.exact_sum(values[later]),
        )

    def __add__(self, other: MeanSums) -> MeanSums:  # type: ignore[override]
        """Return the sums over the queries of both."""
        return MeanSums(*map(operator.add, self, other))

    def mean(self, convention: Convention) -> float:
        """Return the mean as the tool computes it. Raise `ConventionError` if the tool would fail."""
        # TF-Ranking stores the mean weight, which empty queries get, as a float64
        usual = Fraction(float(self.weights / self.queries)) if self.queries else Fraction(1)
        total, divisor = self.total + usual * self.empty_total, self.weights + usual * self.empty
        mean = float(total / divisor) if divisor and not self.undefined else math.nan
        if convention.weights == "xgboost" and mean > 1:
            if mean > 1 + 1e-6:
                raise ConventionError(
                    f"{convention.name} ends with an error here: it counts empty queries as 1 whatever "
                    f'their weight, so that the mean is {mean:g}. Use weights of 1 and more, or "lightgbm", '
                    "which reports such means."
                )
            mean = 1.0
        rounding = convention.rounding
        return _round(mean, rounding) if rounding is not None and rounding.when == "printed" else mean


class ConventionScores(Scores):
    """`Scores` as one tool computes them: its values, rounding and means.

    Attributes
    ----------
    convention : Convention
    resolved : tuple of Measure, (n_measures,)
        For each of `measures`, the measure with the convention's parameters.
    rules : tuple of Convention, (n_measures,)
        For each of `measures`, the convention for it.
    """

    convention: Convention
    resolved: tuple[Measure, ...]
    rules: tuple[Convention, ...]
    _reported: Sequence[Reported]

    def __init__(
        self,
        convention: Convention,
        measures: tuple[Measure, ...],
        resolved: tuple[Measure, ...],
        reported: Sequence[Reported],
        queries: Rankings | pa.Table,
        weight: Float64 | None,
    ) -> None:
        values = np.stack([each.values for each in reported])
        empty = np.stack([each.empty for each in reported])
        super().__init__(measures, values, empty, queries, weight)
        rules = tuple(convention.on(measure) for measure in measures)
        self.__dict__.update(convention=convention, resolved=resolved, rules=rules, _reported=reported)

    def _of(self, queries: pa.Table, order: Int64 | slice = slice(None)) -> ConventionScores:
        weight = None if self.weight is None else self.weight[order]
        return self._again([each.part(order) for each in self._reported], queries, weight)

    @staticmethod
    def _join(parts: Sequence[Scores], queries: pa.Table, weight: Float64 | None) -> ConventionScores:
        scored = [part for part in parts if isinstance(part, ConventionScores)]
        reported = [
            Reported(*map(np.concatenate, zip(*of_measure, strict=True)))
            for of_measure in zip(*(part._reported for part in scored), strict=True)
        ]
        return scored[0]._again(reported, queries, weight)

    def _weighted_by(self, weights: str | None) -> Scores:
        raise InputError(
            f"weights={weights!r} and the convention {self.convention.name} are both given, which has "
            "weights of its own; take the mean without weights, or evaluate without convention"
        )

    def _again(
        self, reported: Sequence[Reported], queries: pa.Table, weight: Float64 | None
    ) -> ConventionScores:
        return ConventionScores(self.convention, self.measures, self.resolved, reported, queries, weight)

    def __getitem__(self, measure: object) -> Float64:
        """Return the values of a measure of `measures` or `resolved`, (n_queries,)."""
        parsed = as_measure(measure)
        if parsed not in self.measures and parsed in self.resolved:
            row: Float64 = self.values[self.resolved.index(parsed)]
            return row
        return super().__getitem__(measure)

    def _counts(self, row: int) -> Flags:
        return self._reported[row].counted

    @property
    def _weight(self) -> Float64 | None:
        return None if all(rule.weights == "ignored" for rule in self.rules) else self.weight

    def _mean_of(self, moments: Any, row: int) -> float:  # noqa: ARG002 - a convention has sums of its own
        return self._mean(row)

    def _mean(self, row: int, part: Any = slice(None)) -> float:
        return self._mean_sums(row, part).mean(self.rules[row])

    def _means_by(self, row: int, codes: Int64, n: int, moments: Any) -> list[float]:  # noqa: ARG002
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=n))[:-1]
        return [self._mean(row, part) for part in np.split(order, ends)[:n]]

    def _mean_sums(self, row: int, part: Any = slice(None)) -> MeanSums:
        """Return the sums for the mean of a measure over all queries or a part of them."""
        return MeanSums.of(self.rules[row], self._reported[row].part(part))

    def __repr__(self) -> str:
        queries = count_of(self.n_queries, "query")
        return self.summary().under(f"Scores of {queries}, as {self.convention.name} computes them")


def resolve_all(measures: Iterable[Measure], convention: object) -> tuple[Measure, ...]:
    """Call `resolve` for each measure. `convention` may be a name."""
    rule, resolved = as_convention(convention), []
    for measure in measures:
        if measure.cutoff_column is not None:
            raise MeasureError(
                f"{measure} has a cutoff for each query, which no convention has; "
                f"name one, as in {measure.name}@10"
            )
        resolved.append(resolve(measure, rule))
    return tuple(resolved)


def evaluate_by_convention(
    rankings: Rankings, measures: Measures, convention: object, *, threads: int | None = None
) -> ConventionScores:
    """Evaluate by the whole convention of a tool, not only by the parameters of its measure."""
    rule = as_convention(convention)
    requested = as_measures(measures)
    resolved = resolve_all(requested, rule)
    check_rankings(rankings)
    pairs = [(rule.on(measure), measure) for measure in resolved]
    reported: dict[Pair, Reported] = {}
    for group in alike(pairs):
        reported |= report_alike(rankings, group, threads)
    return ConventionScores(
        rule, requested, resolved, [reported[pair] for pair in pairs], rankings, rankings.weight
    )


def check_rankings(rankings: object) -> Rankings:
    if isinstance(rankings, Rankings):
        return rankings
    raise InputTypeError(
        f"rankings is a {type(rankings).__name__}; expected Rankings, made by Rankings.from_offsets, "
        "from_arrow or read_parquet"
    )


def alike(pairs: Iterable[Pair]) -> Iterable[list[Pair]]:
    """Group pairs whose rankings are prepared the same way, to rank once for each group."""
    groups: dict[tuple[str | bool | None, ...], list[Pair]] = {}
    for pair in dict.fromkeys(pairs):
        rule, _ = pair
        ordering = "" if rule.ties in OF_MEASURE and rule.ties not in BY_ROW else rule.ties
        alike_in = (rule.score_dtype, ordering, rule.pool, rule.grades, rule.drops_own)
        groups.setdefault(alike_in, []).append(pair)
    return groups.values()


def report_alike(rankings: Rankings, pairs: Sequence[Pair], threads: int | None) -> dict[Pair, Reported]:
    """Return the reported values for each pair of a group of `alike`."""
    measures = [measure for _, measure in pairs]
    rankings = without_own(rankings, pairs[0][0])
    values = values_of(prepare(rankings, pairs[0][0], measures), measures, threads)
    return {pair: report(*pair, values[pair[1]], rankings) for pair in pairs}


def values_of(rankings: Rankings, measures: Iterable[Measure], threads: int | None) -> dict[Measure, Float64]:
    """Return the values of measures, NaN where they are undefined."""
    requested = {measure: measure(empty="nan") for measure in measures}
    distinct = tuple(dict.fromkeys(requested.values()))
    values = dict(zip(distinct, methods.score(distinct, rankings, threads).values, strict=True))
    return {measure: values[each] for measure, each in requested.items()}
