"""Scores of several systems, matched by query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrow_types import array_of, combine, decode, is_text
from fastndcg.errors import (
    InputError,
    InputTypeError,
    MeasureError,
    about,
    check_length,
    check_system,
    count_of,
)
from fastndcg.measures import Judged, Measure, as_measures
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import check_kept
from fastndcg.scoring import methods

if TYPE_CHECKING:
    from fastndcg.common.arrays import Flags, Float64, Int64


class Sample(NamedTuple):
    """The values of one system, for the matched queries of all systems or for its own queries."""

    values: Float64  # (n_measures, n_queries)
    counts: Flags  # of the same shape: whether a value enters the mean
    weight: Float64 | None
    clusters: Int64 | None
    queries: pa.Table

    def of(self, rows: Int64) -> Sample:
        """Return the sample of some of the queries."""
        weight = None if self.weight is None else self.weight[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        queries = self.queries.take(pa.array(rows))
        return Sample(self.values[:, rows], self.counts[:, rows], weight, clusters, queries)


class MatchedSamples(NamedTuple):
    samples: dict[str, Sample]
    missing: dict[str, pa.Array]  # ids of queries that a system does not have


def scores_of(name: object, given: Any, measures: Any) -> Scores:
    """The scores of one system, which may be given as Rankings."""
    if isinstance(given, Rankings):
        if measures is None:
            said = 'is Rankings; name what to evaluate, as in measures=["nDCG@10"], or give Scores'
            raise InputError(f'"{name}" {said}')
        with about(f'"{name}"'):
            return evaluate(given, measures)
    if not isinstance(given, Scores):
        kind = type(given).__name__
        raise InputTypeError(f'"{name}" is a {kind}; wanted Scores, as evaluate returns them, or Rankings')
    return given


def pairs_of(systems: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Each system and its baseline: the one that is named, or every earlier one."""
    if baseline is None:
        return [(system, earlier) for earlier, system in combinations(systems, 2)]
    check_system(baseline, systems, f'baseline="{baseline}"')
    return [(name, baseline) for name in systems if name != baseline]


def common_measures(scored: dict[str, Scores], measures: Any) -> list[Measure]:
    if measures is not None:
        asked = list(as_measures(measures))
        for system in scored.values():
            for measure in asked:
                system[measure]  # raises an error that names the measures that were evaluated
        return asked
    first, *others = scored.values()
    common = [measure for measure in first if all(measure in system.measures for system in others)]
    if not common:
        evaluated = "; ".join(f"{name}: {', '.join(map(str, each))}" for name, each in scored.items())
        raise MeasureError(f"no measure was evaluated for all systems ({evaluated}); evaluate the same ones")
    return common


# Shares of judged documents that differ by more than this are worth a caution: P@k then can differ by that
# alone, since unjudged documents count as not relevant, and few systems differ by more.
_UNJUDGED = 0.05
_TOP = 10  # documents that are looked at for measures without a cutoff, which most depend on the first
_KNOWING = ("unjudged", "judgment", "found")  # the worth of documents of measures that know which were judged


def shares_that_differ(
    scored: dict[str, Scores], measures: Sequence[Measure], baseline: str | None
) -> list[str]:
    """A caution for each cutoff with which the shares of judged documents of systems differ. Nothing is known
    of stored results, and of rankings that do not say what was judged.
    """
    ranked = {name: scores._rankings for name, scores in scored.items()}
    known = {name: each for name, each in ranked.items() if each is not None and each.is_judged is not None}
    # the shares of judged documents, and the measures that take documents without one as not relevant
    by_share: dict[Measure, list[Measure]] = {}
    for measure in measures if len(known) > 1 else ():
        parts, params = measure.definition, measure.params
        is_blind = parts.ranking == "system" and parts.gain not in _KNOWING
        if is_blind and not params.get("judged_only") and params.get("unjudged") is None:
            by_share.setdefault(Judged(empty="skip") @ (measure.cutoff or _TOP), []).append(measure)
    cautions: list[str] = []
    for judged, blind in by_share.items():
        shares = {name: methods.score((judged,), each)._mean(0) for name, each in known.items()}
        others = shares.values() if baseline not in shares else [shares[str(baseline)]]
        if max(abs(share - other) for share in shares.values() for other in others) <= _UNJUDGED:
            continue
        listed = ", ".join(f"{100 * share:.1f} % of {name}" for name, share in shares.items())
        cautions.append(
            f"Of the first {judged.cutoff} documents were judged: {listed}. Unjudged documents count as not "
            f"relevant, so that {', '.join(map(str, blind))} may differ for that alone. In Python, "
            f'judgment_range(rankings, "{blind[0]}") has the values of each with the least and the greatest '
            "grade for them."
        )
    return cautions


def _values_of(scores: Scores, measures: Sequence[Measure]) -> tuple[Float64, Flags]:
    """The values of some measures, and whether each value enters the mean."""
    rows = [scores.measures.index(measure) for measure in measures]
    counts = np.ones((len(rows), scores.n_queries), np.bool_)
    for place, row in enumerate(rows):
        of_row = scores._counts(row)
        counts[place] = True if of_row is None else of_row
    whole = rows == list(range(len(scores.measures)))
    return scores.values if whole else scores.values[rows], counts


def unmatched_samples(scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any) -> MatchedSamples:
    samples = {}
    for name, scores in scored.items():
        clusters = None if cluster is None else _clusters(cluster, scores.queries)
        samples[name] = Sample(*_values_of(scores, measures), scores._weight, clusters, scores.queries)
    return MatchedSamples(samples, {})


def unique_ids(name: str, scores: Scores, known: pa.Array | None) -> pa.Array:
    """Unique ids of a system's queries; `known` are those of another system, already checked."""
    column = decode(scores.queries[0])
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        column = column.cast(pa.int64())
    elif is_text(column.type):
        column = column.cast(pa.large_string())
    ids = combine(column)
    if known is not None and ids.equals(known):
        return known
    if pa.types.is_integer(ids.type) and not ids.null_count:
        numbers = array_of(ids)
        if (numbers[1:] > numbers[:-1]).all():
            return ids
    if pc.count_distinct(ids, mode="all").as_py() < len(ids):
        counts = pc.value_counts(ids)
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        raise InputError(f'"{name}" has query {twice[0].as_py()!r} more than once; give each query one row')
    return ids


def match_queries(
    scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any, missing: str | float
) -> MatchedSamples:
    """Return the values of all systems for the same queries, in the same order."""
    is_number = isinstance(missing, int | float) and not isinstance(missing, bool) and math.isfinite(missing)
    if not is_number and missing not in ("refuse", "drop"):
        raise InputError(f'missing={missing!r} is not known; expected "refuse", "drop" or a finite number')
    ids: dict[str, pa.Array] = {}
    for name, scores in scored.items():
        ids[name] = unique_ids(name, scores, next(iter(ids.values()), None))
    first = next(iter(ids))
    filled = next((name for name, own in ids.items() if len(own)), first)
    ids = {name: own if len(own) else ids[filled][:0] for name, own in ids.items()}
    every = ids[first]
    for name, own in ids.items():
        if own.type != every.type:
            raise InputTypeError(
                f'query ids are {every.type} in "{filled}" and {own.type} in "{name}", which never match; '
                "cast one of them"
            )
        if not own.equals(every):
            new = own.filter(pc.is_null(pc.index_in(own, every)))
            every = pa.concat_arrays([every, new]) if len(new) else every
    places = {name: places_in(every, own) for name, own in ids.items()}
    absent = {name: every.filter(pa.array(place < 0)) for name, place in places.items() if (place < 0).any()}
    if absent and missing == "refuse":
        raise InputError(
            f'{missing_text(absent)} Pass missing="drop", or the value that they count, as in missing=0.0.'
        )
    if missing == "drop":
        rows = np.flatnonzero(np.logical_and.reduce([place >= 0 for place in places.values()]))
        places = {name: place[rows] for name, place in places.items()}
    weight, queries, clusters = _common_weight(scored, places), _common_queries(scored, places), None
    if isinstance(cluster, str):
        clusters = _clusters(cluster, queries)
    elif cluster is not None:
        clusters = _clusters(cluster, scored[first].queries)[places[first]]
        if (places[first] < 0).any():
            raise InputError(
                f'cluster is an array for the queries of "{first}", which lacks some; name a column instead'
            )
    samples = {}
    for name, scores in scored.items():
        values, counts = _values_of(scores, measures)
        place = places[name]
        if len(place) != values.shape[1] or not np.array_equal(place, np.arange(len(place))):
            there = place >= 0
            own, enter = values[:, place[there]], counts[:, place[there]]
            values, counts = own, enter
            if not there.all():
                values = np.full((len(own), len(place)), missing, np.float64)
                counts = np.ones(values.shape, np.bool_)
                values[:, there], counts[:, there] = own, enter
        samples[name] = Sample(values, counts, weight, clusters, queries)
    return MatchedSamples(samples, absent)


def places_in(every: pa.Array, own: pa.Array) -> Int64:
    """The position of each id among the system's ids; -1 where the system lacks the id."""
    if own.equals(every):
        return np.arange(len(every))
    found: Int64 = array_of(pc.index_in(every, own), -1).astype(np.int64)
    return found


def missing_text(absent: Mapping[str, pa.Array]) -> str:
    notes = []
    for name, ids in absent.items():
        named = ", ".join(map(repr, ids[:3].to_pylist())) + (", ..." if len(ids) > 3 else "")
        notes.append(f'"{name}" lacks {count_of(len(ids), "query")} that others have: {named}.')
    return " ".join(notes)


def _common_weight(scored: dict[str, Scores], places: dict[str, Int64]) -> Float64 | None:
    """Weights of the matched queries. Raises `InputError` if systems have different weights."""
    weights = {name: scores._weight for name, scores in scored.items() if scores._weight is not None}
    if not weights:
        return None
    first = next(iter(weights))
    if len(weights) < len(scored):
        without = next(name for name in scored if name not in weights)
        raise InputError(f'"{first}" has weights and "{without}" has none; give all systems the same')
    common = np.full(len(places[first]), np.nan)
    for name, weight in weights.items():
        place = places[name]
        own = np.where(place >= 0, weight[place] if len(weight) else np.nan, np.nan)
        differ = (place >= 0) & ~np.isnan(common) & (own != common)
        if differ.any():
            row = int(np.argmax(differ))
            query = scored[name].queries[0][int(place[row])].as_py()
            raise InputError(
                f'query {query!r} weighs {own[row]:g} in "{name}" and {common[row]:g} in "{first}"; '
                "give all systems the same weights"
            )
        common = np.where(np.isnan(common), own, common)
    return common


def _common_queries(scored: dict[str, Scores], places: dict[str, Int64]) -> pa.Table:
    """A row for each matched query, from the first system that has the query; kept columns that the first
    system lacks come from any system that has all queries.
    """
    left = np.ones(len(next(iter(places.values()))), np.bool_)
    tables: list[pa.Table] = []
    order: list[Int64] = []
    ids = next(iter(scored.values())).queries.column_names[0]  # other systems may use another name
    for name, scores in scored.items():
        chosen = np.flatnonzero(left & (places[name] >= 0))
        rows, left[chosen] = places[name][chosen], False
        if len(chosen) or not tables:
            queries = scores.queries.rename_columns([ids, *scores.queries.column_names[1:]])
            is_whole = len(rows) == scores.n_queries and np.array_equal(rows, np.arange(len(rows)))
            tables.append(queries if is_whole else queries.take(pa.array(rows)))
            order.append(chosen)
    tables = [table for table in tables if len(table)] or tables
    common = tables[0]
    if len(tables) > 1:
        joined = pa.concat_tables(tables, promote_options="permissive")
        common = joined.take(pa.array(np.argsort(np.concatenate(order), kind="stable")))
    for name, scores in scored.items():
        for column in scores.queries.column_names[1:] if (places[name] >= 0).all() else ():
            if column not in common.column_names:
                common = common.append_column(column, scores.queries[column].take(pa.array(places[name])))
    return common


def _clusters(cluster: Any, queries: pa.Table) -> Int64:
    """The number of each query's cluster."""
    if isinstance(cluster, str):
        check_kept([cluster], queries.column_names, " to cluster by")
        column = queries[cluster]
    else:
        try:
            column = pa.chunked_array([pa.array(cluster, from_pandas=True)])
        except pa.ArrowException:
            column = pa.chunked_array([[]], pa.list_(pa.null()))
        if pa.types.is_nested(column.type):
            raise InputTypeError(
                f"cluster is a {type(cluster).__name__} that holds neither numbers nor strings alone; "
                "give a column, or a number or string for each query"
            )
        check_length("cluster", len(column), len(queries), "query")
    if column.null_count:
        raise InputError(f"cluster has {count_of(column.null_count, 'null')}; give each query its cluster")
    codes: Int64 = array_of(decode(column).combine_chunks().dictionary_encode().indices).astype(np.int64)
    return codes
