"""Scores of several systems, matched by query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrow_types import array_of, decode
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
from fastndcg.tables.joins import alike

if TYPE_CHECKING:
    from fastndcg.common.arrays import Flags, Float64, Int64


class Sample(NamedTuple):
    """Values of one system, for the matched queries of all systems or for its own queries."""

    values: Float64  # (n_measures, n_queries)
    counts: Flags  # same shape: whether a value counts in the mean
    weight: Float64 | None
    clusters: Int64 | None
    queries: pa.Table

    def of(self, rows: Int64) -> Sample:
        """Return the sample of some of the queries."""
        weight = None if self.weight is None else self.weight[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        queries = self.queries.take(pa.array(rows))
        return Sample(self.values[:, rows], self.counts[:, rows], weight, clusters, queries)


def scores_of(name: object, given: Any, measures: Any) -> Scores:
    """Return the scores of one system, which may be Rankings."""
    if isinstance(given, Rankings):
        if measures is None:
            said = 'is Rankings; name what to evaluate, as in measures=["nDCG@10"], or give Scores'
            raise InputError(f'"{name}" {said}')
        with about(f'"{name}"'):
            return evaluate(given, measures)
    if not isinstance(given, Scores):
        kind = type(given).__name__
        raise InputTypeError(f'"{name}" is a {kind}; expected Scores, as evaluate returns them, or Rankings')
    return given


def pairs_of(systems: Sequence[str], baseline: str | None) -> list[tuple[str, str]]:
    """Return pairs of systems and baselines: the named baseline, or every earlier system."""
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
UNJUDGED = 0.05
_TOP = 10  # documents examined for measures without a cutoff, which depend most on the first ones
_KNOWING = ("unjudged", "judgment", "found")  # gains of measures that know which documents were judged


def shares_that_differ(
    scored: dict[str, Scores], measures: Sequence[Measure], baseline: str | None
) -> list[str]:
    """Return a caution for each cutoff at which systems' shares of judged documents differ. The shares of
    stored results, and of rankings without judgment marks, are unknown.
    """
    ranked = {name: scores._rankings for name, scores in scored.items()}
    known = {name: each for name, each in ranked.items() if each is not None and each.is_judged is not None}
    # shares of judged documents, and measures for which unjudged documents are not relevant
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
        if max(abs(share - other) for share in shares.values() for other in others) <= UNJUDGED:
            continue
        listed = ", ".join(f"{100 * share:.1f} % of {name}" for name, share in shares.items())
        cautions.append(
            f"Of the first {judged.cutoff} documents were judged: {listed}. Unjudged documents count as not "
            f"relevant, so that {', '.join(map(str, blind))} may differ for that alone. In Python, "
            f'judgment_range(rankings, "{blind[0]}") has the values of each with the least and the greatest '
            "grade for them."
        )
    return cautions


def highest_grade(scores: Scores) -> float | None:
    """Return the highest grade of the judgments, if they are available and any document is relevant."""
    grades = getattr(scores._rankings, "_grades", None)
    return None if grades is None or not grades.highest > 0 else float(grades.highest)


def _values_of(scores: Scores, measures: Sequence[Measure]) -> tuple[Float64, Flags]:
    """Return the values of some measures, and whether each value counts in the mean."""
    rows = [scores.measures.index(measure) for measure in measures]
    counts = np.ones((len(rows), scores.n_queries), np.bool_)
    for place, row in enumerate(rows):
        of_row = scores._counts(row)
        counts[place] = True if of_row is None else of_row
    whole = rows == list(range(len(scores.measures)))
    return scores.values if whole else scores.values[rows], counts


def unmatched_samples(
    scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any
) -> dict[str, Sample]:
    samples = {}
    for name, scores in scored.items():
        clusters = None if cluster is None else _clusters(cluster, scores.queries)
        samples[name] = Sample(*_values_of(scores, measures), scores._weight, clusters, scores.queries)
    return samples


def find_rows(columns: Mapping[str, pa.ChunkedArray]) -> tuple[pa.Array, dict[str, Int64]]:
    """Return all ids in order of first appearance, and the row of each in every column, -1 if absent. The
    number 7 and the text "7" are one id. Raises `InputError` for an id that a column has more than once.
    """
    first, *others = ids = alike(*columns.values())
    same = all(each.equals(first) for each in others)
    encoded = (first if same else pa.concat_arrays(ids)).dictionary_encode(null_encoding="encode")
    every, codes = encoded.dictionary, array_of(encoded.indices)
    rows, start = {}, 0
    for name, own in zip(columns, ids, strict=True):
        rows[name] = np.full(len(every), -1)
        of_own = codes[start : start + len(own)]
        rows[name][of_own] = np.arange(len(own))
        if np.count_nonzero(rows[name] >= 0) < len(own):
            row = int(np.argmax(rows[name][of_own] > np.arange(len(own))))
            query = columns[name][row].as_py()
            raise InputError(f'"{name}" has query {query!r} more than once; give each query one row')
        start += 0 if same else len(own)
    return as_texts(every), rows


def as_texts(ids: pa.Array) -> pa.Array:
    """Return ids for people: bytes as text if they are text."""
    try:
        return ids.cast(pa.large_string()) if pa.types.is_large_binary(ids.type) else ids
    except pa.ArrowInvalid:
        return ids


def match_queries(
    scored: dict[str, Scores], measures: Sequence[Measure], cluster: Any, missing: str | float
) -> tuple[dict[str, Sample], dict[str, pa.Array]]:
    """Return the values of all systems for the same queries in the same order, and the ids they lack."""
    is_number = isinstance(missing, int | float) and not isinstance(missing, bool) and math.isfinite(missing)
    if not is_number and missing not in ("refuse", "drop"):
        raise InputError(f'missing={missing!r} is not known; expected "refuse", "drop" or a finite number')
    every, rows = find_rows({name: scores.queries[0] for name, scores in scored.items()})
    absent = {name: every.filter(pa.array(own < 0)) for name, own in rows.items() if (own < 0).any()}
    if absent and missing == "refuse":
        raise InputError(
            f'{missing_text(absent)} Pass missing="drop", or the value that they count, as in missing=0.0.'
        )
    if missing == "drop":
        shared = np.logical_and.reduce([own >= 0 for own in rows.values()])
        rows = {name: own[shared] for name, own in rows.items()}
    weight, queries, clusters = _common_weight(scored, rows), _common_queries(scored, rows), None
    first = next(iter(scored))
    if isinstance(cluster, str):
        clusters = _clusters(cluster, queries)
    elif cluster is not None:
        clusters = _clusters(cluster, scored[first].queries)[rows[first]]
        if (rows[first] < 0).any():
            raise InputError(
                f'cluster is an array for the queries of "{first}", which lacks some; name a column instead'
            )
    samples = {}
    for name, scores in scored.items():
        values, counts = _values_of(scores, measures)
        if not _is_identity(own := rows[name], scores.n_queries):
            filled = np.full(len(values), missing if is_number else 0.0)  # -1, for a query that is absent
            values = np.column_stack([values, filled])[:, own]
            counts = np.column_stack([counts, np.full(len(values), True)])[:, own]
        samples[name] = Sample(values, counts, weight, clusters, queries)
    return samples, absent


def _is_identity(rows: Int64, n: int) -> bool:
    return len(rows) == n and np.array_equal(rows, np.arange(n))


def missing_text(absent: Mapping[str, pa.Array]) -> str:
    notes = []
    for name, ids in absent.items():
        named = ", ".join(map(repr, ids[:3].to_pylist())) + (", ..." if len(ids) > 3 else "")
        notes.append(f'"{name}" lacks {count_of(len(ids), "query")} that others have: {named}.')
    return " ".join(notes)


def _common_weight(scored: dict[str, Scores], rows: dict[str, Int64]) -> Float64 | None:
    """Return the weights of the matched queries. Raises `InputError` if systems have different weights."""
    weights = {name: scores._weight for name, scores in scored.items() if scores._weight is not None}
    if not weights:
        return None
    first = next(iter(weights))
    if len(weights) < len(scored):
        without = next(name for name in scored if name not in weights)
        raise InputError(f'"{first}" has weights and "{without}" has none; give all systems the same')
    common = np.full(len(rows[first]), np.nan)
    for name, weight in weights.items():
        own = np.append(weight, np.nan)[rows[name]]  # NaN where the system lacks the query
        differ = ~np.isnan(own) & ~np.isnan(common) & (own != common)
        if differ.any():
            row = int(np.argmax(differ))
            query = scored[name].queries[0][int(rows[name][row])].as_py()
            raise InputError(
                f'query {query!r} weighs {own[row]:g} in "{name}" and {common[row]:g} in "{first}"; '
                "give all systems the same weights"
            )
        common = np.where(np.isnan(common), own, common)
    return common


def _common_queries(scored: dict[str, Scores], rows: dict[str, Int64]) -> pa.Table:
    """Return a row for each matched query. Each column has the values of the first system that has both the
    column and the query, and the ids have the name that the first system has for them.
    """
    named: dict[str, dict[str, pa.ChunkedArray]] = {}  # by column and system
    ids = next(iter(scored.values())).queries.column_names[0]
    for system, scores in scored.items():
        for name, column in zip([ids, *scores.queries.column_names[1:]], scores.queries.columns, strict=True):
            named.setdefault(name, {})[system] = column
    columns = {}
    for name, of_systems in named.items():
        used: list[pa.ChunkedArray] = []
        source, start = np.full(len(next(iter(rows.values()))), -1), 0
        for system, column in of_systems.items():
            new = (source < 0) & (rows[system] >= 0)
            if new.any():
                source[new], start = rows[system][new] + start, start + len(column)
                used.append(column)
        used = used or [next(iter(of_systems.values()))]
        if name == ids and len({each.type for each in used}) > 1:
            used = [pa.chunked_array([as_texts(each)]) for each in alike(*used)]
        tables = [pa.table([each], [name]) for each in used]
        whole = pa.concat_tables(tables, promote_options="permissive")[name] if used[1:] else used[0]
        is_all = _is_identity(source, len(whole))
        columns[name] = whole if is_all else whole.take(pa.array(source, mask=source < 0))
    return pa.table(columns)


def _clusters(cluster: Any, queries: pa.Table) -> Int64:
    """Return the number of each query's cluster."""
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
