"""How predictions and stored results of one input become scores, for `score` and `compare`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer

from fastndcg.api.evaluate import evaluate
from fastndcg.cli.conventions import find_convention
from fastndcg.cli.meanings import number_or_word
from fastndcg.cli.output import note, refuse
from fastndcg.cli.reading import (
    Sources,
    choose_columns,
    name_runs,
    read_qrels_runs,
    read_rankings,
    scan_rankings,
)
from fastndcg.common.progress import Task
from fastndcg.errors import SourceError, about
from fastndcg.measures import Measure
from fastndcg.measures.by_tool import Convention
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import COUNTS, SomeQueries
from fastndcg.sources.columns import Roles
from fastndcg.sources.results import find_stored

if TYPE_CHECKING:
    from fastndcg.decide.anchoring import Anchors
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.opened import Opened
    from fastndcg.sources.results import Stored
    from fastndcg.sources.scan import FileStream

ConventionOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Compute measures as this tool does; `fastndcg conventions` lists the tools."
    ),
]


def read_convention(name: str | None, *, anchored: bool) -> Convention | None:
    """The convention of that name. Ends the command if `--anchors` is given too."""
    if name is not None and anchored:
        refuse("--anchors and --convention do not go together: orders of other tools' ties are not all known")
    return None if name is None else find_convention("--convention", name)


WeightsOption = Annotated[
    str | None,
    typer.Option(
        metavar="n_relevant|n_docs|COLUMN|none",
        help="Weights of queries in means: their relevant or their returned documents, a column, or none.",
    ),
]


def columns_of_weights(weights: str | None, *, anchored: bool, convention: str | None) -> list[str]:
    """The column that `--weights` names, if any. Ends the command beside an option with other weights."""
    if weights is not None and (anchored or convention):
        refuse("--weights goes with neither --anchors nor --convention, which has weights of its own")
    return [] if weights is None or weights in ("none", *COUNTS) else [weights]


class Scored(NamedTuple):
    """The scores of one input, and facts about it."""

    scores: Scores
    documents: int | None  # None of stored results
    columns: dict[str, str | None]
    run: str | None = None  # its name, where there are several
    has_one_intent: bool = False  # though intents were asked for
    anchors: Anchors | None = None
    results: str | None = None  # the file of stored results whose column of runs has the name
    notes: tuple[str, ...] = ()  # lines for stderr

    def summary(self, confidence: float | None) -> list[dict[str, Any]]:
        """Rows of the summary, with anchors if they were requested."""
        rows = self.scores.summary(confidence).rows
        if self.anchors is not None:
            means = self.anchors.means()
            for row in rows:
                row |= {name: each for name, each in means[row["measure"]].items() if name != "actual"}
        return rows

    def knows_empty(self, measure: Measure) -> bool:
        """Whether it is known which queries are empty. Stored results tell it only by NaN."""
        return self.documents is not None or measure.params.get("empty") in ("nan", "skip")

    @property
    def signatures(self) -> dict[str, Any]:
        """The signature of each measure, as JSON shows them."""
        return {"signatures": list(self.scores._all_signatures().values())}

    @property
    def facts(self) -> dict[str, Any]:
        facts = {"queries": self.scores.n_queries, "documents": self.documents, "columns": self.columns}
        return facts if self.run is None else {"run": self.run} | facts


def open_runs(runs: list[str], threads: int | None) -> dict[str, Opened]:
    """Open the runs that are tables. Errors in other runs are reported when they are read."""
    from fastndcg.sources.given import open_tables

    opened: dict[str, Opened] = {}
    for run in runs:
        with suppress(SourceError):
            opened[run] = open_tables([run], threads)
    return opened


def stored_results(stored: Stored, asked: list[Measure], name: str | None = None) -> list[Scored]:
    """Results that `--out` wrote, one for each run if a column names runs; else one, called `name`."""
    from fastndcg.sources.results import read_results

    scored = []
    for run, scores in read_results(stored, asked).items():
        taken: dict[str, str | None] = {"query": scores.queries.column_names[0]}
        if scores.weight is not None:
            taken["weight"] = "weight"
        scored.append(Scored(scores, None, taken, run or name, results=stored.path if run else None))
    return scored


class _Nowhere:
    """Takes results that are not stored, so that their signatures are computed while they are read."""

    def write(self, results: pa.Table) -> None:
        pass

    def restart(self) -> None:
        pass

    def sign(self, signatures: dict[str, str]) -> None:
        pass


class How(NamedTuple):
    """How predictions are evaluated."""

    convention: Convention | None
    anchored: bool
    threads: int | None
    memory: str | None
    signed: bool = False  # whether signatures are shown

    def find_stored(self, opened: dict[str, Opened], roles: Roles) -> dict[str, Stored]:
        """The files that are stored results. Ends the command if an option needs values that they lack."""
        found = {path: find_stored(files, roles) for path, files in opened.items()}
        stored = {path: each for path, each in found.items() if each is not None}
        for path in stored:
            check_stored(path, {"--anchors": self.anchored, "--convention": self.convention})
        return stored

    def score(
        self,
        rankings: Rankings,
        measures: list[Measure],
        columns: dict[str, str | None],
        name: str | None = None,
    ) -> Scored:
        scores = evaluate(rankings, measures, convention=self.convention, threads=self.threads)
        has_one_intent = rankings.intents is not None and not rankings.intents.numbers.any()
        found = self._anchors(rankings, measures, threads=self.threads)
        return Scored(scores, rankings.n_docs, columns, name, has_one_intent, found)

    def score_opened(
        self, opened: Opened, roles: Roles, measures: list[Measure], out: Path | None = None
    ) -> Scored:
        """Scores of files that are one input: all at once, or a part at a time if they are too large."""
        by_id = self.convention is not None and self.convention.orders_by_id
        return self.score_chosen(choose_columns(opened, roles, with_doc_id=by_id), measures, out)

    def score_chosen(self, chosen: Opened, measures: list[Measure], out: Path | None) -> Scored:
        """As `score_opened`, of files whose columns are chosen."""
        from fastndcg.scores.storage import results_file
        from fastndcg.sources.messages import names_of

        taken = chosen.columns.taken
        with about(names_of(chosen.paths)):
            stream = scan_rankings(chosen, self.memory, self.threads)
            if stream is not None:
                nowhere = nullcontext(_Nowhere() if self.signed else None)
                with nowhere if out is None else results_file(out) as file:
                    scores = evaluate(stream, measures, convention=self.convention, sink=file)
                documents = stream._documents
                return Scored(scores, documents, taken, anchors=self._anchors(stream, measures))
            scored = self.score(read_rankings(chosen), measures, taken)
        if out is not None:
            write_out(out, [scored])
        return scored._replace(has_one_intent=False)  # only judgments may have meant none

    def _anchors(
        self, rankings: Rankings | FileStream, measures: list[Measure], **options: Any
    ) -> Anchors | None:
        from fastndcg.decide.anchoring import anchors

        return anchors(rankings, measures, **options) if self.anchored else None


def check_stored(path: str, options: dict[str, Any]) -> None:
    """End the command if an option is given that applies only to predictions."""
    for option, value in options.items():
        if value:
            refuse(f"{option} has no meaning with {path}, which holds stored results, not predictions")


def write_out(out: Path, scored: list[Scored]) -> None:
    """Write the values of each query; if there are several runs, the first column has the name of the run."""
    from fastndcg.scores.storage import results_file

    done, total = 0, sum(each.scores.n_queries for each in scored)
    with Task("Writing", "queries") as task, results_file(out) as file:
        signatures: dict[str, Any] = {each.run or "": each.scores._all_signatures() for each in scored}
        file.sign(signatures.get("", signatures))
        for each in scored:
            task.advance(done, total)
            done += each.scores.n_queries
            table = each.scores._frame()
            if each.run is not None:
                table = table.add_column(0, "run", pa.array([each.run] * len(table), pa.string()))
            file.write(table)


def weigh(scored: Iterable[Scored], weights: str | None) -> Iterator[Scored]:
    for each in scored:
        if weights is None:
            yield each
        else:
            yield each._replace(scores=each.scores._weighted_by(None if weights == "none" else weights))


# ---- systems to compare ----


def _count_queries(scores: Scores, convention: Convention | None) -> Any:
    """The number of queries that the convention leaves out of no mean."""
    if convention is None:
        return np.ones(scores.n_queries, np.bool_)
    counts: list[Any] = [scores._counts(row) for row in range(len(scores.measures))]
    return np.logical_and.reduce(counts)


def scored_paths(
    sources: Sources,
    opened: dict[str, Opened],
    roles: Roles,
    asked: list[Measure],
    stored: dict[str, Stored],
    how: How,
) -> Iterator[Scored]:
    for path, name in zip(sources.paths, name_runs(sources.paths), strict=True):
        if path in stored:
            yield from stored_results(stored[path], asked, name)
            continue
        for column in sources.scores or (None,):
            scored = how.score_opened(opened[path], replace(roles, score=column), asked)
            yield scored._replace(run=column if len(sources.scores) > 1 else name)


def scored_runs(
    sources: Sources, roles: Roles, asked: list[Measure], stored: dict[str, Stored], missing: str, how: How
) -> Iterator[Scored]:
    """Each run, with the judged queries that it has, or with all if missing queries count."""
    names = dict(zip(sources.runs, name_runs(sources.runs), strict=True))
    to_read = [run for run in sources.runs if run not in stored]
    each = read_qrels_runs(sources.qrels, to_read, roles, asked, how.threads)
    fresh: dict[str, Scored] = {}
    has: dict[str, Any] = {}
    for run, (rankings, taken) in zip(to_read, each, strict=True):
        has[run] = np.diff(rankings.offsets) > 0
        with about(run):
            fresh[run] = how.score(rankings, asked, taken, names[run])
    nobody = ~np.logical_or.reduce(list(has.values())) if has else np.zeros(0, np.bool_)
    counted = number_or_word(missing)
    if nobody.any() and isinstance(counted, str) and not stored:
        ids = next(iter(fresh.values())).scores.queries[0].filter(pa.array(nobody))
        first = ", ".join(map(str, ids[:3].to_pylist())) + (", ..." if len(ids) > 3 else "")
        note(f"no run has documents for {len(ids):,} judged queries, which are left out: {first}")
    for run in sources.runs:
        if run in stored:
            yield from stored_results(stored[run], asked, names[run])
        else:
            scores = fresh[run].scores
            rows, values = has[run] & _count_queries(scores, how.convention), scores.values.copy()
            if not isinstance(counted, str):
                rows, values[:, nobody] = rows | nobody, counted
            queries = SomeQueries(scores.queries.filter(pa.array(rows)), scores._rankings, rows)
            weight = None if scores.weight is None else scores.weight[rows]
            yield fresh[run]._replace(
                scores=Scores(scores.measures, values[:, rows], scores._empty[:, rows], queries, weight)
            )
