"""The interface of pytrec_eval: change one import, and names, shapes and values stay the same.

    from fastndcg.adapters import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"map", "ndcg_cut.10"})
    evaluator.evaluate(run)["q1"]["ndcg_cut_10"]

The values have the same bits as trec_eval's, with scores as float32, as pytrec_eval reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np

from fastndcg.common.arrays import Float64, Int64, offsets_from, offsets_of
from fastndcg.errors import InputError, InputTypeError, MeasureError, SourceError, suggest
from fastndcg.trec_eval.measures import DEFINITIONS, SETS, Request, read_names
from fastndcg.trec_eval.ranking import OUTSIDE, UNJUDGED, Ranked, rows_of

supported_measures = {each.name for each in DEFINITIONS.values() if each.since == 9 and each.is_standard}
supported_nicknames = {  # but those of judgments of other forms
    name: supported_measures.intersection(SETS[name]) for name in ("official", "set", "all_trec")
}

_WITH_PARAMETERS = re.compile(r"(.+?)[._]([0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*)")


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
    """A faster replacement for pytrec_eval's class: trec_eval's measures for runs in dictionaries.

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
            raise InputError(f"relevance_level={relevance_level} is not known; expected a grade, 1 or more")
        self._level, self._judged_only = relevance_level, judged_docs_only_flag
        self._asked = _measures_asked_for(measures)
        self._qrels = DictQrels(query_relevance)
        self._numbers = {query: number for number, query in enumerate(self._qrels.pools)}

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Values of each query that has judgments, in the order of the run: query -> measure -> value.

        `scores` is the run, query -> document -> number. Documents of equal score, as float32, are ranked by
        falling id. Raises `InputTypeError` for a run that is not dictionaries, ids that are not strings and
        scores that are not numbers, and `InputError` for a NaN score.
        """
        queries = [query for query in _mapping("the run", scores) if query in self._numbers]
        if not queries:
            return {}
        run = DictRun(
            queries,
            [_mapping(f"the run of {query!r}", scores[query]) for query in queries],
            [self._qrels.pools[query] for query in queries],
        )
        numbers = np.array([self._numbers[query] for query in queries])
        in_pool, sizes = rows_of(self._qrels.offsets, numbers, None)
        pool, pool_offsets = self._qrels.grades[in_pool], offsets_from(sizes)
        _, grades = run.rank(*run.look_up())
        offsets = run.offsets
        if self._judged_only:
            offsets, grades = offsets_of(grades >= 0, offsets), grades[grades >= 0]
        pool_offsets, pool = offsets_of(pool >= 0, pool_offsets), pool[pool >= 0]
        ranked = Ranked(offsets, grades, pool_offsets, pool, self._level, 0, 9)
        columns = dict(chain.from_iterable(_columns(each, ranked) for each in self._asked))
        rows = zip(*columns.values(), strict=True) if columns else repeat(())
        return {query: dict(zip(columns, row, strict=True)) for query, row in zip(queries, rows)}  # noqa: B905


# ---- measures ----


def _measures_asked_for(measures: Iterable[str]) -> list[Request]:
    """Return the measures in trec_eval's order. Different parameters of one measure are joined."""
    parameters: dict[str, set[str]] = {}
    for measure in chain.from_iterable(supported_nicknames.get(each, [each]) for each in measures):
        match = None if measure in supported_measures else _WITH_PARAMETERS.fullmatch(measure)
        name, values = match.groups() if match else (measure, "")
        if name not in supported_measures:
            raise MeasureError(
                f'unsupported measure "{measure}"; there are {", ".join(sorted(supported_measures))}, '
                f"and the sets {', '.join(supported_nicknames)}."
                f"{suggest(measure, [*supported_measures, *supported_nicknames])}"
            )
        parameters.setdefault(name, set()).update(filter(None, values.split(",")))
    texts = [f"{name}.{','.join(sorted(values))}" if values else name for name, values in parameters.items()]
    return read_names(texts, release=9)[0] if texts else []


def _columns(each: Request, ranked: Ranked) -> Iterable[tuple[str, list[float]]]:
    """Return names and values of all queries, as pytrec_eval has them."""
    name, takes = each.definition.name, each.definition.takes
    if name == "num_q":
        return [(name, [1.0] * ranked.n_queries)]
    if each.definition.summed == "none":  # a text, for which pytrec_eval returns 0
        return [(name, [0.0] * ranked.n_queries)]
    names = each.names if takes in ("cutoffs", "shares") else [name]
    values = [values.astype(np.float64).tolist() for values in each.values(ranked)]
    return zip(names, values, strict=True)


# ---- dictionaries ----


class DictQrels:
    """Judgments of queries that have any, as dictionaries. A negative grade becomes `UNJUDGED`."""

    def __init__(self, qrels: Mapping[str, Mapping[str, int]]) -> None:
        self.pools: dict[str, dict[str, int]] = {}
        _check_ids("query", _mapping("the judgments", qrels))
        for query, documents in qrels.items():
            pool = dict(_mapping(f"the judgments of {query!r}", documents))
            _check_ids("document", pool)
            if not all(issubclass(kind, int | np.integer) for kind in set(map(type, pool.values()))):
                document, grade = next(
                    pair for pair in pool.items() if not isinstance(pair[1], int | np.integer)
                )
                raise InputTypeError(
                    f"the grade of document {document!r} of query {query!r} is {grade!r}, "
                    f"a {type(grade).__name__}; expected a whole number"
                )
            if pool and min(pool.values()) < 0:
                pool = {document: UNJUDGED if grade < 0 else grade for document, grade in pool.items()}
            if pool:
                self.pools[query] = pool
        self.offsets = offsets_from([len(pool) for pool in self.pools.values()])
        grades = chain.from_iterable(pool.values() for pool in self.pools.values())
        self.grades = np.fromiter(grades, np.int64, int(self.offsets[-1]))


class DictRun:
    """A run and the judgments of its queries, as dictionaries."""

    def __init__(
        self, queries: Sequence[str], lists: Sequence[Mapping[str, float]], pools: Sequence[dict[str, int]]
    ) -> None:
        self.queries, self.lists, self.pools = queries, lists, pools
        self.offsets = offsets_from([len(returned) for returned in lists])

    def look_up(self) -> tuple[Float64, Int64]:
        """Return scores and grades in the order of the run."""
        n = int(self.offsets[-1])
        grades = np.fromiter(chain.from_iterable(map(_grades, self.lists, self.pools)), np.int64, n)
        values = chain.from_iterable(returned.values() for returned in self.lists)
        try:
            scores = np.fromiter(values, np.float64, n)
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"the run holds a score that is not a number: {error}") from None
        missing = np.flatnonzero(np.isnan(scores))
        if len(missing):
            query, documents, first = self._query_of(missing[0])
            raise InputError(
                f"the score of document {documents[missing[0] - first]!r} of query {self.queries[query]!r} "
                f"is NaN; {len(missing):,} in all. trec_eval leaves the order of such documents to chance: "
                "drop them."
            )
        return scores, grades

    def rank(self, scores: Float64, grades: Int64) -> tuple[Int64, Int64]:
        """Return the order by descending float32 score, then by descending id, and the grades in it."""
        with np.errstate(over="ignore"):
            narrow = scores.astype(np.float32) + np.float32(0)  # which makes -0.0 the zero that it equals
        bits = narrow.view(np.int32)
        falling = ~(bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF)))
        query = np.repeat(np.arange(len(self.lists)), np.diff(self.offsets))
        # keys that sort rows by query and falling score, equal for scores that are equal as float32
        keys: Int64 = (query << 32) + (falling.astype(np.int64) + (1 << 31))
        order = np.argsort(keys)
        ranked, ranked_grades = keys[order], grades[order]
        starts = np.flatnonzero(np.diff(ranked, prepend=-1))
        ends = np.append(starts[1:], len(keys))
        # ids are compared only where they change a grade
        differ = np.maximum.reduceat(ranked_grades, starts) > np.minimum.reduceat(ranked_grades, starts)
        documents: list[str] = []
        first = 0
        for start, end in zip(starts[differ].tolist(), ends[differ].tolist(), strict=True):
            if not first <= order[start] < first + len(documents):
                _, documents, first = self._query_of(order[start])
            rows = sorted((order[start:end] - first).tolist(), key=documents.__getitem__, reverse=True)
            ranked_grades[start:end] = grades[first + np.array(rows)]
        return order, ranked_grades

    def _query_of(self, row: int) -> tuple[int, list[str], int]:
        """Return the query of a row, its documents, and its first row."""
        query = int(np.searchsorted(self.offsets, row, "right")) - 1
        return query, [*self.lists[query]], int(self.offsets[query])


def _grades(returned: Mapping[str, float], pool: dict[str, int]) -> Iterable[int]:
    if 1 < len(returned) <= len(pool):  # 1.2 times as fast where all documents are judged
        try:
            return itemgetter(*returned)(pool)
        except KeyError:  # of a document outside the pool
            pass
    _check_ids("document", returned)  # look-ups then find ids in the cache, which saves more than it takes
    return map(pool.get, returned, repeat(OUTSIDE))


def _mapping(name: str, value: Any) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise InputTypeError(f"{name} is a {type(value).__name__}; expected a dict")
    return value


def _check_ids(kind: str, ids: Iterable[Any]) -> None:
    if not all(issubclass(each, str) for each in {*map(type, ids)}):
        wrong = next(each for each in ids if not isinstance(each, str))
        raise InputTypeError(
            f"{kind} id {wrong!r} is a {type(wrong).__name__}; expected a string, as in str({wrong!r})"
        )


def _parse(
    lines: Iterable[str], width: int, place: int, read: Any, expected: str
) -> dict[str, dict[str, Any]]:
    parsed: dict[str, dict[str, Any]] = {}
    for line in lines:
        fields = line.split()
        try:
            value = read(fields[place]) if len(fields) == width else None
        except ValueError:
            value = None
        if value is None:
            raise SourceError(f"{line.rstrip()!r} is not {expected}")
        documents = parsed.setdefault(fields[0], {})
        if fields[2] in documents:
            raise InputError(
                f"document {fields[2]!r} of query {fields[0]!r} appears twice; drop one of the two"
            )
        documents[fields[2]] = value
    return parsed
