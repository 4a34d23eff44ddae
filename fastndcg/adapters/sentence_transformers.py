"""sentence-transformers: its retrieval evaluator, with grades, any measure, values of queries and intervals.

evaluator = InformationRetrievalEvaluator(queries, corpus, {"q1": {"d7": 3, "d9": 1}}, ndcg_at_k=[10])
evaluator(model)  # {"cosine_ndcg@10": ..., "cosine_ndcg@10_low": ..., ...}
evaluator.scores["cosine"].to_pandas()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sentence_transformers.sentence_transformer import evaluation

from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import offsets_from
from fastndcg.errors import InputTypeError
from fastndcg.measures import Measure, Measures, as_measures, nDCG
from fastndcg.rankings.rankings import Rankings

if TYPE_CHECKING:
    from fastndcg.scores.scores import Scores


class InformationRetrievalEvaluator(evaluation.InformationRetrievalEvaluator):
    """The sentence-transformers class of this name, with graded nDCG and other measures.

    Parameters
    ----------
    queries, corpus : dicts, id -> text
    relevant_docs : dict, query id -> document id -> grade; or a set of documents, whose grade is 1
        The class's own measures but nDCG count documents whose grade is above 0 as relevant.
    measures : one or several of Measure or notation, optional
        More measures, of the hits that the class keeps: `["AP@100", "ERR@10", "RR@10"]` adds
        `"cosine_ERR@10"`. They take tied documents in its order unless they say otherwise.
    gain : "linear", "exp2" or another gain of `nDCG`
    confidence : float or None
        Confidence of the intervals by Student's t, `..._ndcg@k_low` to `..._ndcg@k_high`; None leaves them
        out.
    others
        As in sentence-transformers: `ndcg_at_k`, `batch_size`, `name`, ...

    Attributes
    ----------
    scores : dict, score function -> Scores
        nDCG, and `measures`, of each query in the last call.

    Raises
    ------
    InputTypeError
        Judgments that are neither dicts nor sets.
    MeasureError
        A gain or a measure that does not exist.

    Notes
    -----
    With sets, the values are those of sentence-transformers, which ranks tied documents by rising id.
    """

    def __init__(
        self,
        queries: Mapping[str, Any],
        corpus: Mapping[str, Any],
        relevant_docs: Mapping[str, Any],
        *others: Any,
        measures: Measures = (),
        gain: Any = "linear",
        confidence: float | None = 0.95,
        **options: Any,
    ) -> None:
        self._grades = {query: _grades_of(query, documents) for query, documents in relevant_docs.items()}
        relevant = {
            query: {document for document, grade in grades.items() if grade > 0}
            for query, grades in self._grades.items()
        }
        super().__init__(queries, corpus, relevant, *others, **options)
        self._gain, self._confidence = gain, confidence
        self._names: Iterator[str] = iter(())
        self.scores: dict[str, Scores] = {}
        self._keys: dict[Measure, str] = {nDCG(gain=gain, ties="input") @ k: "ndcg@k" for k in self.ndcg_at_k}
        for measure in as_measures(measures) if measures else ():
            key = str(measure) if measure.cutoff is None else f"{str(measure).rpartition('@')[0]}@k"
            ordered = measure(ties="input") if measure.params.get("ties") == "average" else measure
            self._keys.setdefault(ordered, key)

    def compute_all_metrics(self, *arguments: Any, **options: Any) -> Any:
        self._names = iter([*self.score_functions])
        return super().compute_all_metrics(*arguments, **options)

    def compute_metrics(self, queries_result_list: list[Any]) -> dict[str, dict[int, float]]:
        values: dict[str, dict[int, float]] = super().compute_metrics(queries_result_list)
        if not self._keys:
            return values
        scores = evaluate(self._rankings(queries_result_list), [*self._keys])
        self.scores[next(self._names, "")] = scores
        rows = scores.summary(self._confidence).to_arrow().to_pylist()
        for (measure, key), row in zip(self._keys.items(), rows, strict=True):
            for end in ("", "_low", "_high") if self._confidence is not None else ("",):
                values.setdefault(key + end, {})[measure.cutoff or 0] = row[end[1:] or "mean"]
        return values

    def _rankings(self, returned: list[Any]) -> Rankings:
        """Return each query's documents in the order of the base class, and all judged ones as pools."""
        hits = [sorted(each, key=lambda hit: (-hit["score"], hit["corpus_id"])) for each in returned]
        pools = [self._grades[query] for query in self.queries_ids]
        grades = [
            [pool.get(hit["corpus_id"], 0) for hit in each] for each, pool in zip(hits, pools, strict=True)
        ]
        judged = [grade for pool in pools for grade in pool.values()]
        return Rankings._from_offsets(
            offsets_from([len(each) for each in hits]),
            np.array([grade for each in grades for grade in each]),
            np.array([hit["score"] for each in hits for hit in each], np.float64),
            judged=(offsets_from([len(pool) for pool in pools]), np.array(judged)),
            query_ids=self.queries_ids,
        )


def _grades_of(query: Any, documents: Any) -> dict[Any, float]:
    if isinstance(documents, Mapping):
        return dict(documents)
    if isinstance(documents, set | frozenset | list | tuple):
        return dict.fromkeys(documents, 1)
    raise InputTypeError(
        f"relevant_docs[{query!r}] is a {type(documents).__name__}; "
        "wanted a dict from document id to grade, or a set of ids"
    )
