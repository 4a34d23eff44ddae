"""Turns predictions and stored results into scores, for `score`, `compare` and `history`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.cli import options
from fastndcg.cli.application import option
from fastndcg.cli.conventions import find_convention
from fastndcg.cli.inputs import Inputs, Sources, System, tell
from fastndcg.cli.output import note, refuse
from fastndcg.common.progress import Task
from fastndcg.errors import about, count_of
from fastndcg.measures import Measure
from fastndcg.measures.conventions import Convention
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores, write_results
from fastndcg.scores.slices import COUNTS
from fastndcg.sources.stored_scores import read_results
from fastndcg.tables.roles import Roles

if TYPE_CHECKING:
    from fastndcg.typing import Missing


class Scored(NamedTuple):
    """The scores of one system, and facts about it."""

    run: str | None  # its name, where there are several
    scores: Scores
    documents: int | None  # None of stored results
    columns: Mapping[str, str | None]
    results: str | None = None  # the file of stored results whose column of runs has the name

    def knows_empty(self, measure: Measure) -> bool:
        """Whether the empty queries are known. Stored results mark them only by NaN."""
        return self.documents is not None or measure.params.get("empty") in ("nan", "skip")

    def tell(self) -> None:
        """Print to stderr what was read."""
        tell(self.scores.n_queries, self.documents, self.columns, self.run)

    def facts(self) -> dict[str, Any]:
        """Facts for JSON, with the signature of each measure."""
        named: dict[str, Any] = {} if self.run is None else {"run": self.run}
        counts = {"queries": self.scores.n_queries, "documents": self.documents}
        signatures = [*self.scores._all_signatures().values()]
        return named | counts | {"columns": self.columns, "signatures": signatures}


@dataclass(frozen=True)
class Evaluation:
    """Options of the evaluation."""

    convention: str | None = options.CONVENTION
    threads: int | None = options.THREADS
    memory: str | None = options.MEMORY
    weights: str | None = option(
        "Query weights for means: the number of relevant or returned documents, a column, or none.",
        metavar="n_relevant|n_docs|COLUMN|none",
    )

    @cached_property
    def tool(self) -> Convention | None:
        return None if self.convention is None else find_convention("--convention", self.convention)

    @property
    def kept(self) -> list[str]:
        """The column that `--weights` names, if any."""
        return [] if self.weights in (None, "none", *COUNTS) else [str(self.weights)]

    def inputs(
        self,
        sources: Sources,
        roles: Roles,
        of_predictions: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> Inputs:
        """Open the inputs. Ends the command if options contradict each other, or if stored results are given
        and one needs predictions.
        """
        if self.weights is not None and self.convention:
            refuse("--weights cannot be combined with --convention, which defines the weights")
        by_id = self.tool is not None and self.tool.needs_ids
        inputs = Inputs(sources, roles, self.threads, memory=self.memory, by_id=by_id, **how)
        needed = {"--convention": self.convention} | dict(of_predictions or {})
        for path in inputs.stored:
            for name, value in needed.items():
                if value:
                    refuse(f"{name} cannot be used with {path}, which holds stored results, not predictions")
        return inputs

    def score(
        self,
        inputs: Inputs,
        measures: list[Measure],
        stored: Sequence[Measure] | None = None,
        missing: Missing = "zero",
        *,
        signed: bool = False,
    ) -> Iterator[Scored]:
        """Yield the scores of each system; of stored results the measures `stored`, or all. With `signed`,
        streams compute what signatures need.
        """
        for system in inputs.systems(measures, missing):
            if system.stored is not None:
                yield from _stored_scores(system, stored)
            else:
                with about(system.source):
                    scored = self._score(system, measures, signed=signed)
                yield scored

    def score_systems(
        self, inputs: Inputs, measures: list[Measure], missing: str | float
    ) -> Iterator[Scored]:
        """Scores of each system. A run has the judged queries that it has documents for, or all if `missing`
        is a number, which is the value of the others, unless a convention says what they count.
        """
        nobody: Any = True  # where no run has documents
        for system in inputs.systems(measures):
            if system.stored is not None:
                yield from _stored_scores(system, measures)
                nobody = False
                continue
            rankings = system.rankings
            lacks = rankings.lengths == 0 if inputs.sources.runs else np.zeros(0, np.bool_)
            nobody = nobody & lacks
            if lacks.any() and isinstance(missing, str):
                system = system._replace(rankings=system.rankings[~lacks])  # noqa: PLW2901
            with about(system.source):
                scored = self._score(system, measures)
            if lacks.any() and not isinstance(missing, str) and self.convention is None:
                named = _named(rankings, lacks)
                note(f"{system.name} has no documents for {named}: counted as {missing:g}")
                scores, values = scored.scores, scored.scores.values.copy()
                values[:, lacks] = missing
                filled = Scores(scores.measures, values, scores._empty, scores._source, scores.weight)
                scored = scored._replace(scores=filled)
            yield scored
        if isinstance(missing, str) and np.any(nobody):
            note(f"no run has documents for {_named(rankings, nobody)}; left out")

    def _score(self, system: System, measures: list[Measure], *, signed: bool = False) -> Scored:
        rankings = system.rankings
        if hasattr(rankings, "n_docs"):
            scores = evaluate(rankings, measures, convention=self.tool, threads=self.threads)
            return Scored(system.name, scores, rankings.n_docs, system.columns)
        rankings.keeps_digests = signed
        scores = evaluate(rankings, measures, convention=self.tool)
        return Scored(system.name, scores, rankings._documents, system.columns)

    def weigh(self, scored: Scored) -> Scored:
        if self.weights is None:
            return scored
        weights = None if self.weights == "none" else self.weights
        return scored._replace(scores=scored.scores._weighted_by(weights))


def _named(rankings: Rankings, chosen: Any) -> str:
    """How many judged queries are chosen, and the first of them."""
    ids = rankings.query_ids.filter(pa.array(chosen)).to_pylist()
    return f"{count_of(len(ids), 'judged query')} ({', '.join(map(str, ids[:3]))}{', ...' * (len(ids) > 3)})"


def _stored_scores(system: System, measures: Sequence[Measure] | None) -> Iterator[Scored]:
    """Results that `--out` wrote: each run, if a column names runs."""
    stored: Any = system.stored
    for run, scores in read_results(stored, [*(measures or stored.measures)]).items():
        columns = {"query": scores.queries.column_names[0]}
        if scores.weight is not None:
            columns["weight"] = "weight"
        yield Scored(run or system.name, scores, None, columns, stored.path if run else None)


def write_out(out: Path, scored: list[Scored]) -> None:
    """Write the values of each query; if there are several runs, the first column has the name of the run."""
    signatures: dict[str, Any] = {each.run or "": each.scores._all_signatures() for each in scored}

    def tables() -> Iterator[pa.Table]:
        for each in scored:
            table = each.scores._frame()
            if each.run is not None:
                table = table.add_column(0, "run", pa.array([each.run] * len(table), pa.string()))
            yield table

    with Task("Writing"):
        write_results(out, tables(), signatures.get("", signatures))
