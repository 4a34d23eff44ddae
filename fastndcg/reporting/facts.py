"""What a page shows: the results of each system, and how many of its documents are tied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastndcg.analysis.compare import compare
from fastndcg.api.evaluate import evaluate
from fastndcg.charts.theme import by_name
from fastndcg.errors import InputError, about, check_system
from fastndcg.measures import Measure, as_measures
from fastndcg.reporting.blocks import LONGEST
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import column_names

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)

if TYPE_CHECKING:
    from fastndcg.analysis.comparison import Comparison
    from fastndcg.rankings.rankings import Rankings


def tied_documents(offsets: npt.NDArray[np.int64], scores: npt.NDArray[Any]) -> int:
    """Count the documents whose score equals that of another document of their query.

    >>> tied_documents(np.array([0, 3, 5]), np.array([2.0, 1.0, 2.0, 2.0, 1.0]))
    2
    """
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((scores, query))
    same = np.zeros(len(order) + 1, np.bool_)  # whether a document has the score of the one before it
    ranked, of = scores[order], query[order]
    same[1:-1] = (ranked[1:] == ranked[:-1]) & (of[1:] == of[:-1])
    return int((same[1:] | same[:-1]).sum())


class Found(NamedTuple):
    """The results that a page shows."""

    rankings: dict[str, Rankings]
    tied: dict[str, int]  # documents whose score equals that of another document of their query
    scores: dict[str, Scores]  # of the chosen measures
    curves: dict[str, Scores]  # of the first measure at several cutoffs; empty if it has no cutoff
    comparison: Comparison | None  # of two or more systems
    measures: tuple[Measure, ...]
    by: tuple[str, ...]
    confidence: float
    sources: Mapping[str, str]
    threads: int | None

    @property
    def main(self) -> Measure:
        """The measure of pictures and lists of queries."""
        return self.measures[0]


def find(
    systems: Any,
    measures: Any,
    baseline: str | None,
    by: str | Sequence[str],
    confidence: float,
    missing: str | float,
    sources: Mapping[str, str] | None,
    threads: int | None,
) -> Found:
    """The results that sections show."""
    rankings = by_name(systems, "Rankings, as read_parquet returns them", "n_docs", LONGEST)
    names = dict(zip(map(str, systems) if isinstance(systems, Mapping) else rankings, rankings, strict=True))
    for name, each in zip(names, rankings.values(), strict=True):
        if not each.n_queries:
            raise InputError(f'"{name}" has no queries, so that there is nothing to report')
    if baseline is not None:
        check_system(baseline, names, f'baseline="{baseline}"')
        baseline = names[baseline]
    asked = as_measures(measures)
    main, longest = asked[0], max(each._longest for each in rankings.values())
    curve = []
    if main.definition.cut == "rank" and longest > 1:
        last = next((k for k in CUTOFFS if k >= longest), CUTOFFS[-1])
        curve = [main @ k for k in CUTOFFS if k <= last]
    every = {}
    for name, each in rankings.items():
        with about(f'"{name}"'):
            every[name] = evaluate(each, list(dict.fromkeys([*asked, *curve])), threads=threads)
    scores = {name: only(each, asked) for name, each in every.items()}
    compared = None
    if len(scores) > 1:
        compared = compare(scores, baseline or next(iter(scores)), confidence=confidence, missing=missing)
    return Found(
        rankings,
        {name: tied_documents(each.offsets, each.scores) for name, each in rankings.items()},
        scores,
        {name: only(each, curve) for name, each in every.items()} if curve else {},
        compared,
        asked,
        tuple(column_names(by)),
        confidence,
        {names[name]: text for name, text in (sources or {}).items() if name in names},
        threads,
    )


def only(scores: Scores, measures: Sequence[Measure]) -> Scores:
    """Return the scores of some of the measures."""
    rows = [scores.measures.index(measure) for measure in measures]
    return Scores(measures, scores.values[rows], scores._empty[rows], scores._source, scores.weight)
