"""How predictions and stored results become scores, for `score`, `compare` and `history`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.cli.conventions import find_convention
from fastndcg.cli.options import read_measures
from fastndcg.cli.output import note, refuse
from fastndcg.cli.reading import (
    Columns,
    Sources,
    choose_columns,
    name_runs,
    open_paths,
    read_qrels_runs,
    read_rankings,
    scan_rankings,
)
from fastndcg.common.progress import Task
from fastndcg.errors import SourceError, about, count_of
from fastndcg.measures import Measure
from fastndcg.measures.conventions import Convention
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scores.slices import COUNTS, SomeQueries
from fastndcg.sources.dataset import Opened
from fastndcg.sources.stored_scores import Stored, find_stored, read_results
from fastndcg.tables.roles import Roles

if TYPE_CHECKING:
    from fastndcg.analysis.anchors import Anchors
    from fastndcg.sources.scanning import FileStream
    from fastndcg.typing import Missing


class Scored(NamedTuple):
    """The scores of one input, and facts about it."""

    scores: Scores
    documents: int | None  # None of stored results
    columns: Columns
    run: str | None = None  # its name, where there are several
    anchors: Anchors | None = None
    results: str | None = None  # the file of stored results whose column of runs has the name

    def summary(self, confidence: float | None) -> list[dict[str, Any]]:
        """Rows of the summary, with anchors if they were requested."""
        rows = self.scores.summary(confidence).rows
        means = {} if self.anchors is None else self.anchors.means()
        for row in rows:
            of_orders = means.get(row["measure"], {})
            row |= {name: each for name, each in of_orders.items() if name != "actual"}
        return rows

    def knows_empty(self, measure: Measure) -> bool:
        """Whether it is known which queries are empty. Stored results tell it only by NaN."""
        return self.documents is not None or measure.params.get("empty") in ("nan", "skip")

    @property
    def facts(self) -> dict[str, Any]:
        facts = {"queries": self.scores.n_queries, "documents": self.documents, "columns": self.columns}
        return facts if self.run is None else {"run": self.run} | facts

    @property
    def signed(self) -> dict[str, Any]:
        """The facts with the signature of each measure, as JSON shows them."""
        return self.facts | {"signatures": list(self.scores._all_signatures().values())}


# takes results that are not stored, so that their signatures are computed while they are read
_NOWHERE: Any = SimpleNamespace(**dict.fromkeys(("write", "restart", "sign"), lambda *_: None))


@dataclass
class How:
    """How predictions are evaluated. Ends the command where options do not go together."""

    tool: str | None
    threads: int | None
    memory: str | None
    anchored: bool = False
    weights: str | None = None
    signed: bool = False  # whether signatures are shown
    convention: Convention | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.tool is not None:
            if self.anchored:
                refuse(
                    "--anchors and --convention do not go together: "
                    "orders of other tools' ties are not all known"
                )
            self.convention = find_convention("--convention", self.tool)
        if self.weights is not None and (self.anchored or self.convention):
            refuse("--weights goes with neither --anchors nor --convention, which has weights of its own")

    @property
    def kept(self) -> list[str]:
        """The column that `--weights` names, if any."""
        return [] if self.weights in (None, "none", *COUNTS) else [str(self.weights)]

    def score(
        self, rankings: Rankings, measures: list[Measure], columns: Columns, name: str | None = None
    ) -> Scored:
        scores = evaluate(rankings, measures, convention=self.convention, threads=self.threads)
        found = self._anchors(rankings, measures, threads=self.threads)
        return Scored(scores, rankings.n_docs, columns, name, found)

    def score_opened(
        self, opened: Opened, roles: Roles, measures: list[Measure], out: Path | None = None
    ) -> Scored:
        """Scores of files that are one input: all at once, or a part at a time if they are too large."""
        by_id = self.convention is not None and self.convention.orders_by_id
        return self.score_chosen(choose_columns(opened, roles, with_doc_id=by_id), measures, out)

    def score_chosen(self, chosen: Opened, measures: list[Measure], out: Path | None) -> Scored:
        """As `score_opened`, of files whose columns are chosen."""
        from fastndcg.sources.open_file import names_of

        taken = chosen.columns.taken
        with about(names_of(chosen.paths)):
            stream = scan_rankings(chosen, self.memory, self.threads)
            if stream is not None:
                return self.score_stream(stream, taken, measures, out)
            scored = self.score(read_rankings(chosen), measures, taken)
        if out is not None:
            write_out(out, [scored])
        return scored

    def score_stream(
        self,
        stream: FileStream,
        taken: Columns,
        measures: list[Measure],
        out: Path | None,
        name: str | None = None,
    ) -> Scored:
        from fastndcg.scores.storage import results_file

        nowhere = nullcontext(_NOWHERE if self.signed else None)
        with nowhere if out is None else results_file(out) as file:
            scores = evaluate(stream, measures, convention=self.convention, sink=file)
        return Scored(scores, stream._documents, taken, name, self._anchors(stream, measures))

    def _anchors(
        self, rankings: Rankings | FileStream, measures: list[Measure], **options: Any
    ) -> Anchors | None:
        from fastndcg.analysis.anchors import anchors

        return anchors(rankings, measures, **options) if self.anchored else None

    def weigh(self, scored: Scored) -> Scored:
        if self.weights is None:
            return scored
        weights = None if self.weights == "none" else self.weights
        return scored._replace(scores=scored.scores._weighted_by(weights))


def check_stored(path: str, options: dict[str, Any]) -> None:
    """End the command if an option is given that applies only to predictions."""
    for option, value in options.items():
        if value:
            refuse(f"{option} has no meaning with {path}, which holds stored results, not predictions")


def stored_results(stored: Stored, asked: Sequence[Measure], name: str | None = None) -> list[Scored]:
    """Results that `--out` wrote, one for each run if a column names runs; else one, called `name`."""
    scored = []
    for run, scores in read_results(stored, [*asked]).items():
        taken: Columns = {"query": scores.queries.column_names[0]}
        if scores.weight is not None:
            taken["weight"] = "weight"
        scored.append(Scored(scores, None, taken, run or name, results=stored.path if run else None))
    return scored


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


class Inputs:
    """Predictions and stored results of several systems or runs: opened at once, and scored one by one."""

    def __init__(self, sources: Sources, roles: Roles, how: How) -> None:
        """Open all. Ends the command if an option needs values that stored results lack."""
        from fastndcg.sources.inputs import open_tables

        self._sources, self._roles, self._how = sources, roles, how
        self._opened = {path: open_paths([path], how.threads) for path in sources.paths}
        for run in sources.runs:  # of which those that are no tables are opened as they are read
            with suppress(SourceError):
                self._opened[run] = open_tables([run], how.threads)
        found = {path: find_stored(files, roles) for path, files in self._opened.items()}
        self.stored = {path: each for path, each in found.items() if each is not None}
        for path in self.stored:
            check_stored(path, {"--anchors": how.anchored, "--convention": how.convention})

    def measures(self) -> list[Measure]:
        """The measures that all stored results have; nDCG@10 where there are none."""
        first, *others = [each.measures for each in self.stored.values()] or [[]]
        shared = [measure for measure in first if all(measure in other for other in others)]
        return shared or read_measures(["nDCG@10"])

    def score_systems(
        self, asked: list[Measure], keep: Iterable[str], missing: str | float
    ) -> Iterator[Scored]:
        """Each file, column of scores, or run.

        A run has the judged queries that it has documents for, or all if `missing` is a number, which is
        the value of a query that no run has documents for.
        """
        self._roles = replace(self._roles, keep=tuple(dict.fromkeys(keep)))
        if self._sources.runs:
            yield from self._without_missing([*self.score_runs(asked, asked)], missing)
        for path, name in zip(self._sources.paths, name_runs(self._sources.paths), strict=True):
            if path in self.stored:
                yield from stored_results(self.stored[path], asked, name)
                continue
            for column in self._sources.scores or (None,):
                roles = replace(self._roles, score=column)
                scored = self._how.score_opened(self._opened[path], roles, asked)
                yield scored._replace(run=column if len(self._sources.scores) > 1 else name)

    def score_runs(
        self,
        asked: list[Measure],
        stored: list[Measure] | None,
        missing: Missing = "zero",
        *,
        named: bool = True,
    ) -> Iterator[Scored]:
        """Each run, with all judged queries; stored results with the measures `stored`, or all of theirs."""
        runs, how = self._sources.runs, self._how
        qrels, roles = self._sources.qrels, self._roles
        new = [run for run in runs if run not in self.stored]
        if new and how.memory is not None:
            refuse(
                "--memory has no meaning with --run, which is read whole; to score it in parts, store the "
                "grades of its documents as a column of a Parquet file"
            )
        each = read_qrels_runs(qrels, new, roles, asked, how.threads, missing)
        for run, name in zip(runs, name_runs(runs) if named else [None], strict=True):
            if run in self.stored:
                of_run = self.stored[run]
                yield from stored_results(of_run, stored or of_run.measures, name)
            else:
                rankings, columns = next(each)
                with about(run):
                    yield how.score(rankings, asked, columns, name)

    def _without_missing(self, found: list[Scored], missing: str | float) -> Iterator[Scored]:
        has = [each.scores._rankings.lengths > 0 for each in found if each.documents is not None]
        nobody = ~np.logical_or.reduce(has) if has else np.zeros(0, np.bool_)
        if nobody.any() and isinstance(missing, str) and not self.stored:
            ids = found[0].scores.queries[0].filter(pa.array(nobody))
            first = ", ".join(map(str, ids[:3].to_pylist())) + (", ..." if len(ids) > 3 else "")
            note(f"no run has documents for {count_of(len(ids), 'judged query')}; left out: {first}")
        for each in found:
            if each.documents is None:
                yield each
                continue
            scores, rows = each.scores, has.pop(0)
            values = scores.values.copy()
            if self._how.convention is not None:  # which may leave queries out of means
                counts: list[Any] = [scores._counts(row) for row in range(len(values))]
                rows &= np.logical_and.reduce(counts)
            if not isinstance(missing, str):
                rows, values[:, nobody] = rows | nobody, missing
            queries = SomeQueries(scores.queries.filter(pa.array(rows)), scores._rankings, rows)
            weight = None if scores.weight is None else scores.weight[rows]
            yield each._replace(
                scores=Scores(scores.measures, values[:, rows], scores._empty[:, rows], queries, weight)
            )
