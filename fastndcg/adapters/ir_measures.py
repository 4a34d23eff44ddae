"""ir_measures: a provider that computes values for its functions, its command line and PyTerrier.

from fastndcg.adapters import ir_measures as fni

fni.provider().calc_aggregate([nDCG @ 10, AP], qrels, run)
fni.provider(first=True)  # ir_measures.calc_aggregate and pt.Experiment ask this provider before all others
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import ir_measures
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from ir_measures import providers
from ir_measures.measures import MeanAgg

from fastndcg import statistics
from fastndcg.adapters.pytrec_eval import DictQrels, DictRun
from fastndcg.api.evaluate import evaluate
from fastndcg.errors import FastndcgError, MeasureError
from fastndcg.measures import Measure, as_measure
from fastndcg.rankings.rankings import Rankings
from fastndcg.tables.joins import join
from fastndcg.tables.roles import Roles
from fastndcg.tables.shapes import side_of_data

if TYPE_CHECKING:
    from fastndcg.tables.joins import Side
    from fastndcg.typing import TieOrder, Ties

_COLUMNS = Roles("query_id", "relevance", "score", doc_id="doc_id", intents="iteration")


def provider(*, ties: Ties = "input", first: bool = False, threads: int | None = None) -> Provider:
    """Make a provider for ir_measures, registered as "fastndcg".

    Parameters
    ----------
    ties : "input", "average", "worst" or "best"
        "input" ranks tied documents as the other providers of ir_measures do: by descending id, or by
        ascending id for judgments of intents and for Judged. Scores are compared as float32, for Judged as
        they are.
        "average" is the expected value over all orders, without casting scores.
    first : bool
        True: `ir_measures.calc_aggregate`, its command line and PyTerrier's `pt.Experiment` ask this provider
        first.
    threads : int, optional
        As in `fastndcg.evaluate`.

    Returns
    -------
    ir_measures.providers.Provider
        It takes judgments and runs as named tuples, DataFrames and dicts of dicts. A judged query that the
        run lacks has the measure's default value, as in ir_measures.

    Raises while evaluating: `MeasureError` for a measure that does not exist here, and as
    `Rankings.from_qrels_run` does.

    Examples
    --------
    >>> import ir_measures
    >>> qrels, run = {"q1": {"a": 1, "b": 2}}, {"q1": {"b": 0.5, "c": 0.9}}
    >>> provider().calc_aggregate([ir_measures.nDCG @ 10, ir_measures.RR], qrels, run)
    {nDCG@10: 0.479..., RR: 0.5}
    """
    made = Provider(ties, threads)
    providers.register(made)
    if first:
        asked = ir_measures.DefaultPipeline.providers
        asked[:] = [made, *(other for other in asked if other.NAME != made.NAME)]
    return made


class Provider(providers.Provider):
    """The result of `provider`."""

    NAME = "fastndcg"

    def __init__(self, ties: Ties = "input", threads: int | None = None) -> None:
        super().__init__()
        self.ties, self.threads = ties, threads

    def supports(self, measure: Any) -> bool:
        try:
            measure.validate_params()
            _as_ours(measure, self.ties)
        except (MeasureError, AssertionError, ValueError):
            return False
        return True

    def qrel_inputs(self, measures: Iterable[Any]) -> list[str]:
        of_intents = any(_as_ours(measure, self.ties).definition.method == "intents" for measure in measures)
        return ["query_id", "doc_id", "relevance", *(["iteration"] if of_intents else [])]

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> Evaluator:
        return Evaluator([*measures], qrels, self.ties, self.threads)


class Evaluator(providers.Evaluator):
    """Evaluates runs with judgments that are read once."""

    def __init__(self, measures: list[Any], qrels: Any, ties: Ties, threads: int | None) -> None:
        self._ties, self._threads = ties, threads
        if isinstance(qrels, Iterator):
            qrels = [*qrels]
        ours = {measure: _as_ours(measure, ties) for measure in measures}
        self._parts: list[tuple[Side | DictQrels, dict[Any, Measure], str]] = []
        for kind in ("grades", "intents", "Judged"):
            of_kind = {measure: one for measure, one in ours.items() if _kind(one) == kind}
            if of_kind:
                pools = _pools(qrels) if kind == "grades" else None
                self._parts.append((pools or _side_of(qrels, kind), of_kind, kind))
        self._queries: list[Any] = []
        if self._parts:
            judged = self._parts[0][0]
            self._queries = [*judged.pools] if isinstance(judged, DictQrels) else judged.queries.to_pylist()
        super().__init__(measures, self._queries)

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        for queries, measure, values in self._values(run):
            for query, value in zip(queries, values.tolist(), strict=True):
                yield ir_measures.Metric(query_id=query, measure=measure, value=value)

    def calc_aggregate(self, run: Any) -> dict[Any, float]:
        """A number for each measure: the exact mean, or the aggregate that ir_measures defines."""
        aggregates = {}
        for _, measure, values in self._values(run):
            missing = len(self._queries) - len(values)
            everything = np.append(values, np.full(missing, measure.DEFAULT))
            aggregator = measure.aggregator()
            if type(aggregator) is MeanAgg and len(everything):
                aggregates[measure] = statistics.mean(everything)
                continue
            for value in everything.tolist():
                aggregator.add(value)
            aggregates[measure] = aggregator.result()
        return {measure: aggregates[measure] for measure in self.measures}

    def _values(self, run: Any) -> Iterator[tuple[list[Any], Any, Any]]:
        """Measures, each with the returned queries and its values."""
        run_side: Side | None = None
        for judged, measures, kind in self._parts:
            rankings = self._ranked(judged, run) if isinstance(judged, DictQrels) else None
            if rankings is None:
                run_side = run_side or side_of_data("run", run, "score", _COLUMNS)
                rankings = self._joined(judged, run_side, kind)
            returned = np.flatnonzero(np.diff(rankings.offsets))
            queries = rankings.query_ids.take(returned).to_pylist()
            scores = evaluate(rankings, [*measures.values()], threads=self._threads)
            for measure, ours in measures.items():
                yield queries, measure, scores[ours][returned]

    def _joined(self, judged: Side | DictQrels, run: Side, kind: str) -> Rankings:
        if isinstance(judged, DictQrels):
            judged = _side_of(judged.pools, kind)
        if self._ties == "input" and kind != "Judged":
            with np.errstate(over="ignore"):
                run = run._replace(values=run.values.astype(np.float32))
        order: TieOrder = "docid_desc" if kind == "grades" else "docid_asc"
        return Rankings._of(**join(judged, run, "zero", order, "refuse"))

    def _ranked(self, pools: DictQrels, run: Any) -> Rankings | None:
        """Rankings of dictionaries without their ids: to look up a document takes half of what it takes to
        hand its text to Arrow. None for what has to be joined, or refused, as everything else is.
        """
        if type(run) is not dict:
            return None
        lists = [run.get(query, {}) for query in pools.pools]
        returned = list(filter(None, lists))
        if (
            2 * len(returned) < len(lists)
            or {*map(type, returned)} != {dict}
            or {*map(type, run)} != {str}
            or {*map(type, chain.from_iterable(documents.values() for documents in returned))} != {float}
        ):
            return None
        dict_run = DictRun([*pools.pools], lists, [*pools.pools.values()])
        scores: npt.NDArray[Any]
        try:
            scores, grades = dict_run.look_up()
        except FastndcgError:
            return None
        if self._ties == "input":
            order, grades = dict_run.rank(scores, grades)
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32)[order]
        return Rankings.from_offsets(
            dict_run.offsets,
            np.maximum(grades, 0),
            scores,
            judged=(pools.offsets, pools.grades),
            is_judged=grades >= 0,
            query_ids=pa.array(pools.pools),
        )


def _pools(qrels: Any) -> DictQrels | None:
    """Judgments of dictionaries with a grade of 0 or above for each document; None for all others."""
    try:
        pools = DictQrels(qrels)
    except (FastndcgError, OverflowError):
        return None
    return pools if len(pools.pools) == len(qrels) > 0 and pools.grades.min() >= 0 else None


def _side_of(qrels: Any, kind: str) -> Side:
    judged = side_of_data("qrels", qrels, "relevance", _COLUMNS, intents=kind == "intents")
    if kind == "Judged":  # ir_measures' own provider counts documents of negative grades too
        judged = judged._replace(values=np.maximum(judged.values, 0))
    return judged


def _kind(measure: Measure) -> str:
    """Rankings for a measure, prepared as other ir_measures providers do."""
    if measure.name == "Judged":
        return "Judged"
    return "intents" if measure.definition.method == "intents" else "grades"


def _as_ours(measure: Any, ties: Ties) -> Measure:
    ours = as_measure(measure)
    if measure.NAME == "SetF":  # it has trec_eval's formula, whose beta is the square of the usual one
        ours = ours(beta=math.sqrt(measure["beta"]))
    try:
        return ours(ties=ties)
    except FastndcgError:  # the measure has no parameter ties, since ties cannot change it
        return ours
