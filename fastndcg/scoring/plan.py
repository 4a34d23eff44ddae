"""Turn measures into tables: a gain for each grade, a discount for each rank, a row for each measure.

This is the first step that sees both measures and data, so it refuses grades for which a measure has no gain.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastndcg.common.arrays import freeze, offsets_of
from fastndcg.errors import MeasureError
from fastndcg.kernels import schema
from fastndcg.kernels.schema import Plan
from fastndcg.measures.parameters import Function, Numbers
from fastndcg.scoring.discount_tables import (
    MOST_PERFECT,
    Power,
    check_discount,
    discount_of,
    discount_table,
    exceeds_int64,
    kernel_cutoff,
    ranks_discounted,
    term_parameters,
)
from fastndcg.scoring.gain_values import (
    EXACT,
    ONES,
    NoGainError,
    check_complete,
    check_gains,
    gain_function_of,
    gain_row,
    kind_of,
    threshold_of,
    top_of,
)

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings

_LEVELS = 255  # codes of one byte; the last is for unjudged documents


class Coding(NamedTuple):
    """How grades are coded: as levels that start at the grade `lowest`, or, without `levels`, not at all."""

    levels: bool
    lowest: int
    n_levels: int


def build(measures: tuple[Measure, ...], rankings: Rankings) -> tuple[Plan, Coding]:
    """Tables of the measures for these rankings.

    Raises `MeasureError` where a measure lacks a discount for some ranks, and `InputError` where it has no
    gain for a grade that occurs.
    """
    # not cached with functions, which may return other values in a later call
    asks = any(isinstance(value, Function) for measure in measures for value in measure.params.values())
    needs = (_needs.__wrapped__ if asks else _needs)(measures)
    grades, coding = rankings._grades, Coding(False, 0, 0)
    if grades.whole and grades.lowest >= -EXACT and grades.highest <= EXACT:
        lowest, highest = int(grades.lowest), int(grades.highest)
        if rankings.relevance.dtype == np.uint8 and lowest > 0:  # bytes are used as levels without a cast
            lowest = 0
        if highest - lowest < _LEVELS:
            coding = Coding(True, lowest, highest - lowest + 1)
    distinct: tuple[float, ...] | None = None
    if needs.every_grade or (needs.every_real_grade and not coding.levels):
        distinct = tuple(rankings._distinct_grades.tolist())
    occurring = (grades.lowest, grades.highest) if distinct is None else distinct
    longest = rankings._longest
    assumed = _ranks_assumed(rankings) if needs.assumed else longest
    try:
        check = (_check.__wrapped__ if asks else _check)(measures, occurring, longest, assumed)
    except NoGainError as error:
        raise error.in_rankings(rankings) from None
    # the next power of two, so that rankings of similar length share tables
    longest = 1 << max(check.longest - 1, 15).bit_length()
    make_tables = _tables.__wrapped__ if asks else _tables
    return make_tables(measures, coding, distinct, longest, check.widths), coding


class _Needs(NamedTuple):
    """What measures need to know about the grades."""

    every_grade: bool  # every grade that occurs
    every_real_grade: bool
    assumed: bool  # unjudged documents have a grade, so ideals include them


@lru_cache(maxsize=128)
def _needs(measures: tuple[Measure, ...]) -> _Needs:
    functions = [gain_function_of(measure) for measure in measures]
    return _Needs(
        not all(isinstance(function.gain, str) for function in functions),
        any(kind_of(function) == schema.LOOKUP for function in functions),
        any(function.unjudged is not None for function in functions),
    )


class _Checked(NamedTuple):
    longest: int  # documents of the longest list or ideal
    widths: tuple[tuple[Function, int], ...]  # discounts, and how many ranks each needs


@lru_cache(maxsize=128)
def _check(
    measures: tuple[Measure, ...], occurring: tuple[float, ...], longest: int, assumed: int
) -> _Checked:
    """Raise for measures that are incomplete, or not defined for these grades and lists of this length.

    `assumed` is the length where unjudged documents have a grade.
    """
    most, widths = 1, dict[Function, int]()
    for measure in measures:
        check_complete(measure)
    for measure in measures:
        function = gain_function_of(measure)
        check_gains(measure, function, occurring, longest)
        ranks = longest if function.unjudged is None else assumed
        needed = ranks_discounted(measure, ranks)
        if needed > max(ranks, MOST_PERFECT):
            raise MeasureError(
                f"{measure} has an ideal of {measure.cutoff} documents; "
                f"expected a cutoff of at most {MOST_PERFECT}"
            )
        most = max(most, ranks)
        if isinstance(discount := measure.params.get("discount"), Numbers | Function):
            check_discount(measure, ranks)
            if isinstance(discount, Function):
                widths[discount] = max(needed, widths.get(discount, 0))
    return _Checked(most, tuple(widths.items()))


def _ranks_assumed(rankings: Rankings) -> int:
    """Return the length of the longest list or ideal, for ideals that include unjudged documents."""
    if rankings.judged is None or rankings.is_judged is None:
        return rankings._longest
    assumed = np.diff(rankings.judged.offsets) + np.diff(offsets_of(~rankings.is_judged, rankings.offsets))
    return max(rankings._longest, int(assumed.max(initial=0)))


# ---- names in declarations, and their numbers in kernels ----


def _numbers_of(*names: str) -> dict[str, int]:
    return {name: getattr(schema, name.upper().replace(" ", "_")) for name in names}


_SOURCE = _numbers_of("judged", "scored", "returned")
_TIES = _numbers_of("average", "input", "worst", "best")
_UNDEFINED = _numbers_of("never", "no documents", "no ideal", "no relevant", "no pair")
_RANK_BY_RANK = _numbers_of("gain", "first", "hits", "stop")
TERM = _RANK_BY_RANK | _numbers_of(  # their lists hold the sum so far
    *("count", "reached", "preference", "inferred", "interpolated", "mean of hits", "pairs", "graded pairs")
)
DIVISOR = {
    "nothing": schema.AS_IS,
    "ideal": schema.BY_IDEAL,
    "cutoff": schema.BY_CUTOFF,
    "relevant": schema.BY_RELEVANT,
    "fewer": schema.BY_FEWER,
    "fewer returned": schema.BY_FEWER_RETURNED,
    "weighted": schema.WEIGHTED,
    "set": schema.BY_BOTH,
    "returned": schema.BY_RETURNED,
    "judged": schema.SHARE_LEFT,
    "left": schema.LEFT,
    "power": schema.SCALED,
    "residual": schema.RESIDUAL,
    "pool": schema.POOL_TOTAL,
}


def ties_of(measure: Measure) -> int:
    ties = measure.params["ties"]
    if measure.definition.divisor == "judged":  # counts unjudged documents: the best order has the fewest
        ties = {"best": "worst", "worst": "best"}.get(ties, ties)
    return _TIES[ties]


def _divisor_and_weight(measure: Measure) -> tuple[int, float]:
    """Return the divisor of a measure, and the number in `Plan.weights`."""
    divisor, params = measure.definition.divisor, measure.params
    # kernels hold cutoffs as int64; a larger divisor is applied as the factor 1 / cutoff
    if divisor == "cutoff" and exceeds_int64(measure):
        return schema.SCALED, 1.0 / float(measure.cutoff)  # type: ignore[arg-type]
    if measure.definition.gain == "found" and measure.rel is None:
        divisor = "left"
    elif divisor == "capped":
        divisor = "relevant" if measure.cutoff is None else "fewer"
    weight = float(params["beta"]) ** 2 if "beta" in params else 1.0 - float(params.get("p", 1.0))
    return DIVISOR[divisor], weight


# ---- tables ----


class _Keys(list[Any]):
    """Return the distinct keys, and the index of each key."""

    def index_of(self, key: Any) -> int:
        if key not in self:
            self.append(key)
        return self.index(key)


class _List(NamedTuple):
    """Return a row of `Plan.lists`, and one of `Plan.term_parameters`."""

    table: int
    ties: int
    condensed: int
    term: int
    relevant: int  # totals that terms need, or -1
    nonrelevant: int
    parameter: float
    cut_at: float
    empty: float


class _Ideal(NamedTuple):
    """Return a row of `Plan.ideals` without its last column."""

    table: int
    source: int
    of_list: int
    cutoff: int
    pool: int


class _Entries(NamedTuple):
    """Tables to which rows of a plan refer by number; equal tables are shared."""

    functions: _Keys
    lists: _Keys
    ideals: _Keys
    discounts: _Keys
    totals: _Keys

    def row_of(self, out: int, measure: Measure) -> tuple[int, ...]:
        """Return the row of a plan for a measure whose values go to row `out` of the result."""
        definition, params, term = measure.definition, measure.params, measure.definition.term
        function = gain_function_of(measure)
        total = nonrelevant = ranking = ideal = -1
        if (
            definition.undefined == "no relevant"
            or definition.ranking == "none"
            or definition.divisor in ("fewer", "fewer returned")
            or term == "pairs"
        ):
            total = self.totals.index_of(self.functions.index_of(function._replace(gain="relevant")))
        if term == "preference":
            nonrelevant = self.totals.index_of(self.functions.index_of(function._replace(gain="nonrelevant")))
        table = self.functions.index_of(function)
        cutoff = schema.AT_RELEVANT if definition.cut == "relevant" else kernel_cutoff(measure)
        if definition.ranking != "none":
            needs = (total, nonrelevant) if term in ("preference", "interpolated", "pairs") else (-1, -1)
            condensed = int(params.get("judged_only", False))
            how = (table, ties_of(measure), condensed, TERM[term], *needs, *term_parameters(measure))
            ranking = self.lists.index_of(_List(*how))
        else:
            cutoff = 1
        if definition.divisor == "ideal" or definition.ranking == "ideal":
            full = definition.gain == "scaled" or params["ideal"] == "full"
            source, pool = schema.FULL if full else _SOURCE[params["ideal"]], -1
            if source == schema.RETURNED and not measure.is_cut:
                source = schema.SCORED
            if full:
                pool = self.ideals.index_of(_Ideal(table, schema.JUDGED, -1, schema.UNCUT, -1))
            of_list = -1 if source == schema.JUDGED else ranking
            shown = cutoff if source in (schema.RETURNED, schema.FULL) else schema.UNCUT
            ideal = self.ideals.index_of(_Ideal(table, source, of_list, shown, pool))
        discount = self.discounts.index_of(discount_of(measure)) if term in _RANK_BY_RANK else -1
        ranked = ranking if definition.ranking == "system" else -1
        undefined = _UNDEFINED[definition.undefined]
        if (params.get("max_fp") or 0.0) >= 1.0:  # a query whose documents are all relevant has a value too
            undefined = schema.NO_RELEVANT
        return ranked, discount, ideal, cutoff, undefined, out, _divisor_and_weight(measure)[0], total


@lru_cache(maxsize=128)
def _tables(
    measures: tuple[Measure, ...],
    coding: Coding,
    distinct: tuple[float, ...] | None,
    longest: int,
    widths: tuple[tuple[Function, int], ...],
) -> Plan:
    """Build tables for lists of up to `longest` documents; functions are called only for ranks in use."""
    functions, lists, ideals, discounts, totals = entries = _Entries(*(_Keys() for _ in range(5)))
    weighted = sorted(
        (entries.row_of(out, measure), _divisor_and_weight(measure)[1])
        for out, measure in enumerate(measures)
    )
    rows = [row for row, _ in weighted]
    # ranks that a row needs, in rankings and in ideals
    depth = min(max(schema.UNCUT if row[3] == schema.AT_RELEVANT else row[3] for row in rows), longest)
    if any(row.term == schema.FIRST and row.parameter == schema.OF_BEST for row in lists):
        depth = longest
    full = [each.cutoff for each in ideals if each.source == schema.FULL and each.cutoff != schema.UNCUT]
    ideal_depth = max(depth, *(min(cutoff, 1 << 40) for cutoff in full), 0)
    table_of_discounts = np.zeros((max(len(discounts), 1), ideal_depth + 1))
    for place, discount in enumerate(discounts):
        # a residual needs the discount of the rank after the last
        width = dict(widths).get(discount, ideal_depth + isinstance(discount, Power))
        table_of_discounts[place, :width] = discount_table(discount, width)
    grades = np.array(distinct or (), np.float64)
    if coding.levels:
        grades = np.arange(coding.lowest, coding.lowest + coding.n_levels, dtype=np.float64)
    gains = np.array([gain_row(function, grades, distinct) for function in functions])
    finite = float(np.abs(gains).max(initial=0.0)) * max(longest, 1) < EXACT
    exact = finite & (gains == np.floor(gains)).all(axis=1)
    if not coding.levels:
        exact &= [function.gain in (*ONES, "judgment", "nonrelevant") for function in functions]
    condensing = any(row.condensed for row in lists)
    # whether each ideal leaves out unjudged documents; which levels, and "unjudged", gain in ideals of scored
    # and of judged documents
    leaves_out, promising = [], np.zeros((2, gains.shape[1] - 1), np.bool_)
    for table, source, of_list, *_ in ideals:
        leaves_out.append(
            bool(lists[of_list].condensed) if source == schema.SCORED else functions[table].unjudged is None
        )
        if source in (schema.SCORED, schema.JUDGED):
            counted = gains[table, :-1] > 0
            counted[-1] &= not leaves_out[-1]
            promising[int(source == schema.JUDGED)] |= counted
    first_needed, gaining = 0, (gains != 0).any(axis=0)
    if coding.levels and all(row.ties != schema.INPUT for row in lists):
        first_needed = int(np.argmax(gaining)) if gaining.any() else len(gaining)
        # a list that drops unjudged documents has to rank them too
        first_needed = min(first_needed, len(gaining) - 2) if condensing else first_needed
    term_parameters = [row[6:] for row in lists] if any(row.term > schema.COUNT for row in lists) else None
    return Plan(
        gains=freeze(gains, np.float64),
        falling=freeze(np.argsort(-gains, axis=1, kind="stable"), np.int64),
        earning=freeze(np.where((gains >= 0).all(axis=1), (gains > 0).sum(axis=1), gains.shape[1]), np.int64),
        exact=freeze(exact, np.bool_),
        assumed=freeze([function.unjudged is not None for function in functions], np.bool_),
        top=freeze([top_of(function) for function in functions], np.float64),
        kinds=freeze([kind_of(function) for function in functions], np.int64),
        thresholds=freeze([threshold_of(function) for function in functions], np.float64),
        grades=freeze(grades, np.float64),
        lists=freeze(np.reshape([row[:6] for row in lists], (len(lists), 6)), np.int64),
        term_parameters=None if term_parameters is None else freeze(term_parameters, np.float64),
        ideals=freeze(
            np.reshape(
                [(*each, leaves) for each, leaves in zip(ideals, leaves_out, strict=True)], (len(ideals), 6)
            ),
            np.int64,
        ),
        totals=freeze(totals, np.int64),
        discounts=freeze(table_of_discounts, np.float64),
        rows=freeze(rows, np.int64),
        weights=freeze([weight for _, weight in weighted], np.float64),
        depth=depth,
        ideal_depth=ideal_depth,
        condensing=condensing,
        first_needed=first_needed,
        promising=freeze(promising, np.bool_),
        skippable=all(row[4] in schema.SKIPPABLE for row in rows)
        and all(each.source in (schema.JUDGED, schema.SCORED) for each in ideals),
    )
