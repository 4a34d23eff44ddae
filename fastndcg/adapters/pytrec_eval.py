"""The interface of pytrec_eval: a script changes one import, and keeps names, shapes and values.

    from fastndcg.adapters import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg_cut.10"})
    evaluator.evaluate(run)["q1"]["ndcg_cut_10"]

The values have the same bits as trec_eval's, with scores as float32, as pytrec_eval reads them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from fastndcg.common.arrays import Float64, Int64, offsets_from, offsets_of
from fastndcg.errors import InputError, InputTypeError, MeasureError, SourceError, suggest
from fastndcg.trec_eval.asked import Asked, read_names
from fastndcg.trec_eval.declared import DECLARED, SETS
from fastndcg.trec_eval.printed import compute_values
from fastndcg.trec_eval.ranked import OUTSIDE, UNJUDGED, Ranked, rows_of

supported_measures = {each.name for each in DECLARED.values() if each.since == 9 and each.is_standard}
supported_nicknames = {  # but those of judgments of other forms
    name: supported_measures.intersection(SETS[name]) for name in ("official", "set", "all_trec")
}

_PARAMETERS = re.compile(r"[._]([0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*)")


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read a TREC run from its lines, as query -> document -> score. Raises `SourceError` for a malformed
    line and `InputError` for a repeated document.

    >>> parse_run(["301 Q0 A 1 2.5 me"])
    {'301': {'A': 2.5}}
    """
    return _parse(f_run, 6, 4, float, "a line of a TREC run: query Q0 doc rank score tag")


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read TREC judgments from their lines, as query -> document -> grade. Raises the errors of `parse_run`.

    >>> parse_qrel(["301 0 A 1", "301 0 B 2"])
    {'301': {'A': 1, 'B': 2}}
    """
    return _parse(f_qrel, 4, 3, int, "a line of a TREC qrels file: query iteration doc grade")


def compute_aggregated_measure(measure: str, values: Sequence[float]) -> float:
    """Aggregate over queries: the sum of counts, the geometric mean of `gm_` measures, otherwise the mean.

    >>> compute_aggregated_measure("num_ret", [2.0, 3.0]), compute_aggregated_measure("map", [0.5, 1.0])
    (5.0, 0.75)
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    return float(np.exp(np.mean(values)) if measure.startswith("gm_") else np.mean(values))


class RelevanceEvaluator:
    """Measures of trec_eval for runs in dictionaries: pytrec_eval's class, and faster.

    Parameters
    ----------
    query_relevance : dict of dicts, query -> document -> whole number
        It is read once. A negative grade marks an unjudged document of the pool. Queries without judgments do
        not count.
    measures : iterable of str
        Names of trec_eval, as in `supported_measures`, or sets of them, as in `supported_nicknames`;
        parameters follow a point or "_": "ndcg_cut.5,10" or "ndcg_cut_10".
    relevance_level : int
        The smallest grade that counts as relevant for binary measures.
    judged_docs_only_flag : bool
        True drops unjudged documents before ranking.

    Raises
    ------
    MeasureError, InputError, InputTypeError
        A measure or a parameter that does not exist; judgments that are not dictionaries, ids that are not
        strings, grades that are not whole numbers; a level below 1.

    Examples
    --------
    >>> evaluator = RelevanceEvaluator({"q1": {"a": 1, "b": 2}}, {"map", "ndcg_cut.2"})
    >>> evaluator.evaluate({"q1": {"b": 0.5, "c": 0.9}})
    {'q1': {'map': 0.25, 'ndcg_cut_2': 0.4796249331362629}}
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        if relevance_level < 1:
            raise InputError(f"relevance_level={relevance_level} is not known; wanted a grade, 1 or more")
        self._level, self._judged_only = relevance_level, judged_docs_only_flag
        self._wanted = _measures_asked_for(measures)
        self._names = [
            name
            for each in self._wanted
            for name in (each.names if each.declared.takes in ("cutoffs", "shares") else [each.declared.name])
        ]
        self._pools = _pools(query_relevance)
        self._numbers = {query: number for number, query in enumerate(self._pools)}
        self._pool_offsets = offsets_from([len(pool) for pool in self._pools.values()])
        grades = chain.from_iterable(pool.values() for pool in self._pools.values())
        self._pool = np.fromiter(grades, np.int64, int(self._pool_offsets[-1]))

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Values of each query that has judgments, in the order of the run: query -> measure -> value.

        `scores` is the run, query -> document -> number. Documents of equal score, as float32, are ranked by
        falling id. Raises `InputTypeError` for a run that is not dictionaries, ids that are not strings and
        scores that are not numbers, and `InputError` for a NaN score.
        """
        queries = [query for query in _mapping("the run", scores) if query in self._numbers]
        if not queries:
            return {}
        ranked = self._rank(queries, [_mapping(f"the run of {query!r}", scores[query]) for query in queries])
        columns = list(chain.from_iterable(_values(each, ranked) for each in self._wanted))
        rows = zip(*(column.tolist() for column in columns), strict=True) if columns else repeat(())
        return {query: dict(zip(self._names, row, strict=True)) for query, row in zip(queries, rows)}  # noqa: B905

    def _rank(self, queries: list[str], lists: list[Mapping[str, float]]) -> Ranked:
        offsets = offsets_from([len(documents) for documents in lists])
        pool, pool_offsets = self._pool, self._pool_offsets
        if queries != [*self._numbers]:
            numbers = np.array([self._numbers[query] for query in queries])
            rows, sizes = rows_of(pool_offsets, numbers, None)
            pool, pool_offsets = pool[rows], offsets_from(sizes)
        walk = Walk(queries, lists, [self._pools[query] for query in queries], offsets, pool_offsets)
        # look-ups take most of the time, so look up the shorter side; by_pool has to compute ranks from
        # scores, which costs more
        grades = walk.by_run() if 2 * len(pool) > offsets[-1] else walk.by_pool(pool)
        if self._judged_only:
            judged = grades >= 0
            offsets, grades = offsets_of(judged, offsets), grades[judged]
        judged = pool >= 0
        return Ranked(offsets, grades, offsets_of(judged, pool_offsets), pool[judged], self._level, 0, 9)


# ---- measures ----


def _measures_asked_for(measures: Iterable[str]) -> list[Asked]:
    """Return the measures in trec_eval's order. Different parameters of one measure are joined."""
    parameters: dict[str, set[str]] = {}
    for measure in measures:
        if measure in supported_nicknames:
            for name in supported_nicknames[measure]:
                parameters.setdefault(name, set())
            continue
        name, values = _split_parameters(measure)
        parameters.setdefault(name, set()).update(values)
    texts = [f"{name}.{','.join(sorted(values))}" if values else name for name, values in parameters.items()]
    return read_names(texts, release=9)[0] if texts else []


def _split_parameters(measure: str) -> tuple[str, list[str]]:
    if measure in supported_measures:
        return measure, []
    for name in supported_measures:
        if measure.startswith(name) and (found := _PARAMETERS.fullmatch(measure, len(name))):
            return name, found[1].split(",")
    raise MeasureError(
        f'unsupported measure "{measure}"; there are {", ".join(sorted(supported_measures))}, and the sets '
        f"{', '.join(supported_nicknames)}.{suggest(measure, [*supported_measures, *supported_nicknames])}"
    )


def _values(each: Asked, ranked: Ranked) -> list[Float64]:
    if each.declared.name == "num_q":
        return [np.ones(ranked.n_queries)]
    if each.declared.summed == "none":  # a text, for which pytrec_eval returns 0
        return [np.zeros(ranked.n_queries)]
    return [values.astype(np.float64) for values in compute_values(each, ranked)]


# ---- judgments ----


def _pools(query_relevance: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    pools = {}
    for query, documents in _mapping("the judgments", query_relevance).items():
        _check_id("query", query)
        pool = dict(_mapping(f"the judgments of {query!r}", documents))
        if not all(issubclass(kind, int | np.integer) for kind in set(map(type, pool.values()))):
            document, grade = next(pair for pair in pool.items() if not isinstance(pair[1], int | np.integer))
            raise InputTypeError(
                f"the grade of document {document!r} of query {query!r} is {grade!r}, "
                f"a {type(grade).__name__}; wanted a whole number"
            )
        if not all(issubclass(kind, str) for kind in set(map(type, pool))):
            _check_id("document", next(document for document in pool if not isinstance(document, str)))
        if pool:
            unjudged = min(pool.values()) < 0
            pools[query] = (
                {key: UNJUDGED if grade < 0 else grade for key, grade in pool.items()} if unjudged else pool
            )
    return pools


# ---- from dictionaries to grades by rank ----


class Walk(NamedTuple):
    """A run and the pools of its queries, as dictionaries.

    Queries are processed one by one, since most of the time goes to memory access: a second pass finds a
    dictionary in the cache.
    """

    queries: list[str]
    lists: list[Mapping[str, float]]
    pools: list[dict[str, int]]
    offsets: Int64
    pool_offsets: Int64

    def by_run(self) -> Int64:
        """Return grades by rank: look up each document of the run in its pool."""
        return self.rank(*self.look_up())[1]

    def look_up(self) -> tuple[Float64, Int64]:
        """Return scores and grades in the order of the run."""
        n = int(self.offsets[-1])
        scores = _numbers(chain.from_iterable(returned.values() for returned in self.lists), n)
        grades = (_grades(returned, pool) for _, returned, pool in self._each())
        return scores, np.fromiter(chain.from_iterable(grades), np.int64, n)

    def rank(self, scores: Float64, found: Int64) -> tuple[Int64, Int64]:
        """Return an order by falling score, and grades in it; those of equal score are by falling id."""
        keys = self._checked_keys(scores)
        order = np.argsort(keys)
        ranked, grades = keys[order], found[order]
        tied = ranked[1:] == ranked[:-1]
        differ = np.flatnonzero(tied & (grades[1:] != grades[:-1]))
        if len(differ):
            starts = np.flatnonzero(np.append(True, ~tied))
            groups = np.unique(np.searchsorted(starts, differ, "right") - 1)
            for start, end in zip(
                starts[groups].tolist(), np.append(starts, len(keys))[groups + 1].tolist(), strict=True
            ):
                documents, first = self._documents(order[start])
                rows = order[start:end].tolist()
                rows.sort(key=lambda row, of=documents, first=first: of[row - first], reverse=True)
                grades[start:end] = found[rows]
        return order, grades

    def by_pool(self, pool_grades: Int64) -> Int64:
        """Return grades by rank: look up each judged document in the run, and compute its rank."""
        scores, of_pools = np.empty(int(self.offsets[-1])), np.empty(int(self.pool_offsets[-1]))
        for (start, returned, pool), pool_start in zip(
            self._each(), self.pool_offsets.tolist(), strict=False
        ):
            scores[start : start + len(returned)] = _numbers(returned.values(), len(returned))
            looked_up = map(returned.get, pool, repeat(math.nan))
            of_pools[pool_start : pool_start + len(pool)] = _numbers(looked_up, len(pool))
        keys = self._checked_keys(scores)
        rows = np.flatnonzero(~np.isnan(of_pools))
        wanted = _keys(
            of_pools[rows], np.repeat(np.arange(len(self.pools)), np.diff(self.pool_offsets))[rows]
        )
        ranked = np.sort(keys)
        places = np.searchsorted(ranked, wanted)
        tied = np.flatnonzero(np.append(ranked, -1)[places + 1] == wanted)
        if len(tied):
            judged = [*chain.from_iterable(self.pools)]
            self._break_ties(keys, places, tied, [judged[row] for row in rows[tied].tolist()])
        grades = np.full(len(keys), OUTSIDE)
        grades[places] = pool_grades[rows]
        return grades

    def _break_ties(self, keys: Int64, places: Int64, tied: Int64, names: list[str]) -> None:
        """Set the places of tied documents among the documents of equal score, by falling id."""
        order = np.argsort(keys)
        ends = np.searchsorted(keys[order], keys[order[places[tied]]], "right").tolist()
        groups: dict[int, dict[str, int]] = {}
        for at, start, end, name in zip(tied.tolist(), places[tied].tolist(), ends, names, strict=True):
            if start not in groups:
                documents, first = self._documents(order[start])
                falling = sorted((documents[row - first] for row in order[start:end].tolist()), reverse=True)
                groups[start] = {document: start + place for place, document in enumerate(falling)}
            places[at] = groups[start][name]

    def _each(self) -> Iterator[tuple[int, Mapping[str, float], dict[str, int]]]:
        for start, returned, pool in zip(self.offsets.tolist(), self.lists, self.pools, strict=False):
            if returned:
                _check_id("document", next(iter(returned)))
            yield start, returned, pool

    def _documents(self, row: int) -> tuple[list[str], int]:
        """Return the documents of the query of a row, and the query's first row."""
        query = int(np.searchsorted(self.offsets, row, "right")) - 1
        return [*self.lists[query]], int(self.offsets[query])

    def _checked_keys(self, scores: Float64) -> Int64:
        query = np.repeat(np.arange(len(self.lists)), np.diff(self.offsets))
        missing = np.isnan(scores)
        if missing.any():
            row = int(np.argmax(missing))
            documents, first = self._documents(row)
            raise InputError(
                f"the score of document {documents[row - first]!r} of query {self.queries[query[row]]!r} "
                f"is NaN; {missing.sum():,} in all. trec_eval leaves the order of such documents to chance: "
                "drop them."
            )
        return _keys(scores, query)


def _grades(returned: Mapping[str, float], pool: dict[str, int]) -> Iterable[int]:
    """The grades of documents, in their order.

    Nothing is looked up where a pool has the same documents in the same order, as where a list is judged and
    then ranked anew.
    """
    n = len(returned)
    if 0 < n == len(pool) and next(iter(returned)) == next(iter(pool)) and [*returned] == [*pool]:
        return pool.values()
    if 1 < n <= len(pool):
        try:
            return itemgetter(*returned)(pool)
        except KeyError:  # of a document outside the pool
            pass
    # refuses other ids, and look-ups then find texts in the cache, which saves more than it takes
    try:
        "".join(returned)
    except TypeError:
        _check_id("document", next(each for each in returned if not isinstance(each, str)))
    return map(pool.get, returned, repeat(OUTSIDE))


def _keys(scores: Float64, query: Int64) -> Int64:
    """Return keys that sort rows by query and falling score; equal keys for scores equal as float32."""
    with np.errstate(over="ignore"):
        bits = (scores.astype(np.float32) + np.float32(0)).view(np.int32)  # + 0 makes -0.0 the zero it equals
    falling = ~(bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF)))
    keys: Int64 = (query << 32) + (falling.astype(np.int64) + (1 << 31))
    return keys


def _numbers(values: Iterable[float], n: int) -> Float64:
    try:
        return np.fromiter(values, np.float64, n)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"the run holds a score that is not a number: {error}") from None


def _mapping(name: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise InputTypeError(f"{name} is a {type(value).__name__}; wanted a dict")
    return value


def _check_id(of: str, value: Any) -> None:
    if not isinstance(value, str):
        kind = type(value).__name__
        raise InputTypeError(f"{of} id {value!r} is a {kind}; wanted a string, as in str({value!r})")


def _parse(lines: Iterable[str], width: int, place: int, read: Any, wanted: str) -> dict[str, dict[str, Any]]:
    parsed: dict[str, dict[str, Any]] = {}
    for line in lines:
        fields = line.split()
        try:
            (query, _, document), value = fields[:3], read(fields[place])
        except (ValueError, IndexError):
            value = None
        if value is None or len(fields) != width:
            raise SourceError(f"{line.rstrip()!r} is not {wanted}")
        documents = parsed.setdefault(query, {})
        if document in documents:
            raise InputError(
                f"document {document!r} of query {query!r} is there twice; "
                "a document has one entry for a query: drop one of the two"
            )
        documents[document] = value
    return parsed
