"""`fastndcg score`: values of measures, of one run or several."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer

from fastndcg.api.evaluate import evaluate
from fastndcg.cli.application import command
from fastndcg.cli.conventions import find_convention
from fastndcg.cli.gates import hold, means_below
from fastndcg.cli.options import (
    FailUnderOption,
    Format,
    FormatOption,
    MeasureOption,
    MemoryOption,
    Missing,
    QrelsOption,
    ThreadsOption,
)
from fastndcg.cli.output import note, refuse, slices_of, write_summary
from fastndcg.cli.reading import (
    ReadingOfMeans,
    check_confidence,
    check_out,
    check_sources,
    choose_columns,
    cutoff_columns,
    name_runs,
    open_letor,
    open_paths,
    options_of,
    read_by,
    read_gates,
    read_measures,
    read_qrels_runs,
    read_rankings,
    scan_rankings,
    tell,
)
from fastndcg.common.progress import Task
from fastndcg.errors import SourceError, about, count_of
from fastndcg.measures import Measure
from fastndcg.measures.by_tool import Convention
from fastndcg.measures.spellings import is_of_trec_eval
from fastndcg.scoring import ways
from fastndcg.sources.columns import Roles
from fastndcg.sources.results import find_stored

if TYPE_CHECKING:
    from fastndcg import typing
    from fastndcg.decide.anchoring import Anchors
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores
    from fastndcg.sources.given import Chosen, Opened
    from fastndcg.sources.results import Stored
    from fastndcg.sources.scan import FileStream


PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help=(
            "Parquet, CSV, JSON Lines or Feather: files, a folder, a glob, a URI that pyarrow knows, "
            "or - for standard input."
        ),
    ),
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "With --qrels: predictions, as a TREC or MS MARCO run or a table; repeatable: a row for each run."
        )
    ),
]
MissingOption = Annotated[
    Missing | None,
    typer.Option(
        help=(
            "With --qrels: a judged query that the run lacks counts as an empty ranking (zero) or not (skip)."
        ),
        show_default="zero",
    ),
]
ScoresOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="If PATH is LETOR: a score for each of its lines, as text, .npy or Parquet."
    ),
]
ScoreOption = Annotated[str | None, typer.Option(help="Column of scores.")]
KeepOption = Annotated[
    list[str] | None, typer.Option(help="Query-level column to copy into --out; repeatable.")
]
ConventionOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Compute nDCG as this tool does; `fastndcg conventions` lists the tools."
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(help="File to write each query's values to: .parquet, .csv, .jsonl or .feather."),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(help="Query-level column: show means for each value; repeatable, for combinations."),
]
AnchorsOption = Annotated[
    bool,
    typer.Option(
        "--anchors", help="Add the means of the worst, a random and the best order of the returned documents."
    ),
]
ConfidenceOption = Annotated[
    float | None, typer.Option(help="Add a confidence interval for each mean; for example 0.95.")
]


@command
def score(
    *,
    paths: PathsArgument = None,
    qrels: QrelsOption = None,
    run: RunsOption = None,
    missing: MissingOption = None,
    measure: MeasureOption = None,
    score: ScoreOption = None,
    scores: ScoresOption = None,
    keep: KeepOption = None,
    reading: ReadingOfMeans,
    convention: ConventionOption = None,
    out: OutOption = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
    by: ByOption = None,
    confidence: ConfidenceOption = None,
    anchors: AnchorsOption = False,
    fail_under: FailUnderOption = None,
) -> None:
    """Score predictions and print the means.

    PATH has a row for each document, in any order, or a row for each query with lists. Columns with usual
    names are found automatically; stderr says which. The first bytes of a file decide its format. Files may
    be packed with gzip, bzip2 or Zstandard. The first line of CSV has the names of the columns.

    With --qrels, each PATH is a run, like --run. Judgments are read once, and joined with predictions on
    query and document id. Documents with equal scores are ordered by falling id, as in trec_eval; measures
    with ties='input' keep that order. If a measure is for several intents, such as alpha_nDCG, the second
    field of TREC qrels is the intent.

    \b
    Examples:
      fastndcg score --qrels qrels.txt --run run.txt.gz -m "nDCG(ties='input')@10"
      fastndcg score --qrels qrels.txt runs/*.txt
      fastndcg score predictions.parquet -m nDCG@10 -m "nDCG(gain='exp2')@1,3,5"
      fastndcg score --qrels diversity.qrels --run run.txt -m alpha_nDCG@20 -m ERR_IA@20
      fastndcg score predictions.csv.gz --doc-id docno
      duckdb -csv -c "FROM predictions WHERE day = current_date" | fastndcg score -
      fastndcg score test.letor --scores predictions.txt
      fastndcg score judged.csv --grades "Perfect=4,Good=2,Fair=1,Bad=0" --unjudged null
      fastndcg score predictions.parquet --keep country --out per_query.parquet
      fastndcg score predictions.parquet --by country --by device --confidence 0.95
      fastndcg score predictions.parquet --anchors
      fastndcg score predictions.parquet -m nDCG@1-20 -m nDCG@slots
      fastndcg score predictions.parquet -m nDCG@10 --convention lightgbm
      fastndcg score canary.parquet --fail-under "nDCG@10=0.35" --format json
    """
    gates = read_gates(fail_under or [])
    measures = read_measures(measure or ([] if gates else ["nDCG@10"]), gates)
    by = read_by(by, ["run", "measure", "mean", "low", "high", "queries", "empty", "small"])
    if confidence is not None:
        check_confidence(confidence)
    of_paths = reading.of_paths() | {"--scores": scores}
    paths, judgments, runs, _ = check_sources(paths or [], qrels, run, {"--missing": missing}, of_paths)
    _check_results(out, keep, [*paths, *runs, judgments, *([scores] if scores else [])])
    rule = read_convention(convention, anchored=anchors)
    roles = reading.roles(score, [*(keep or []), *by, *cutoff_columns(measures)])
    how = How(rule, anchors, threads, memory)
    chosen = measures if measure or gates else None
    of_letor = None if scores is None else open_letor(paths, scores, roles)
    opened = open_paths(paths, threads) if paths and of_letor is None else None
    stored = None if opened is None or len(paths) > 1 else find_stored(opened, roles)
    if of_letor is not None:
        scored = [how.score_chosen(of_letor, measures, out)]
    elif stored is not None:
        check_stored(
            paths[0], {"--keep": keep, "--convention": convention, "--anchors": anchors} | options_of(roles)
        )
        scored = stored_results(stored, chosen or stored.measures)
    elif opened is not None:
        scored = [how.score_opened(opened, roles, measures, out)]
    else:
        scored = list(_of_runs(judgments, runs, roles, measures, chosen, missing, how))
    if out is not None and (stored is not None or not paths):
        _write_out(out, scored)
    _report(scored, format, {} if convention is None else {"convention": convention}, gates, by, confidence)


def read_convention(name: str | None, *, anchored: bool) -> Convention | None:
    """The convention of that name. Ends the command if `--anchors` is given too."""
    if name is not None and anchored:
        refuse("--anchors and --convention do not go together: orders of other tools' ties are not all known")
    return None if name is None else find_convention("--convention", name)


def _of_runs(
    judgments: str,
    runs: list[str],
    roles: Roles,
    measures: list[Measure],
    chosen: list[Measure] | None,
    missing: Missing | None,
    how: How,
) -> Iterator[Scored]:
    """Each run. Stored results are read for the chosen measures, or else for all of theirs."""
    stored = how.find_stored(open_runs(runs, how.threads), roles)
    to_read = [run for run in runs if run not in stored]
    lacking: typing.Missing = "skip" if missing is Missing.skip else "zero"
    fresh = read_qrels_runs(judgments, to_read, roles, measures, how.threads, lacking)
    names = name_runs(runs)
    for path, name in zip(runs, names if len(runs) > 1 else [None], strict=True):
        if path in stored:
            yield from stored_results(stored[path], chosen or stored[path].measures, name)
        else:
            rankings, columns = next(fresh)
            with about(path):
                scored = how.score(rankings, measures, columns, name)
            yield (
                scored
                if how.convention
                else scored._replace(notes=_ties_of_trec_eval(rankings, scored.scores, how.threads))
            )


def _ties_of_trec_eval(rankings: Rankings, scores: Scores, threads: int | None) -> tuple[str, ...]:
    """A line for each measure that is spelled as in trec_eval, where its order of ties gives other values."""
    asked = {
        measure: measure(ties="input")
        for measure in scores.measures
        if is_of_trec_eval(measure.label) and measure.params.get("ties") == "average"
    }
    if not asked:
        return ()
    theirs = ways.score(tuple(asked.values()), rankings, threads)
    notes = []
    for measure, by_id in asked.items():
        differs = int((np.abs(scores[measure] - theirs[by_id]) > _ROUNDING).sum())
        if differs:
            notes.append(
                f"{measure.label}: tied documents matter in {count_of(differs, 'query')}; trec_eval orders "
                f'them by falling id and would print {theirs.mean()[str(by_id)]:.4f}: -m "{by_id}"'
            )
    return tuple(notes)


_ROUNDING = 1e-12


def check_stored(path: str, options: dict[str, Any]) -> None:
    """End the command if an option is given that applies only to predictions."""
    for option, value in options.items():
        if value:
            refuse(f"{option} has no meaning with {path}, which holds stored results, not predictions")


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


class How(NamedTuple):
    """How predictions are evaluated."""

    convention: Convention | None
    anchored: bool
    threads: int | None
    memory: str | None

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

    def score_chosen(self, chosen: Chosen, measures: list[Measure], out: Path | None) -> Scored:
        """As `score_opened`, of files whose columns are chosen."""
        from fastndcg.scores.storage import results_file
        from fastndcg.sources.parquet import names_of

        taken = chosen.columns.taken
        with about(names_of(chosen.paths)):
            stream = scan_rankings(chosen, self.memory, self.threads)
            if stream is not None:
                with nullcontext() if out is None else results_file(out) as file:
                    scores = evaluate(stream, measures, convention=self.convention, sink=file)
                documents = stream._documents
                return Scored(scores, documents, taken, anchors=self._anchors(stream, measures))
            scored = self.score(read_rankings(chosen, self.threads), measures, taken)
        if out is not None:
            _write_out(out, [scored])
        return scored._replace(has_one_intent=False)  # only judgments may have meant none

    def _anchors(
        self, rankings: Rankings | FileStream, measures: list[Measure], **options: Any
    ) -> Anchors | None:
        from fastndcg.decide.anchoring import anchors

        return anchors(rankings, measures, **options) if self.anchored else None


def _write_out(out: Path, scored: list[Scored]) -> None:
    """Write the values of each query; if there are several runs, the first column has the name of the run."""
    from fastndcg.scores.storage import results_file

    done, total = 0, sum(each.scores.n_queries for each in scored)
    with Task("Writing", "queries") as task, results_file(out) as file:
        for each in scored:
            task.advance(done, total)
            done += each.scores.n_queries
            table = each.scores.to_arrow()
            if each.run is not None:
                table = table.add_column(0, "run", pa.array([each.run] * len(table), pa.string()))
            file.write(table)


def _report(
    scored: list[Scored],
    format: Format,  # noqa: A002 - the option's name
    more: dict[str, Any],
    gates: list[tuple[Measure, float]],
    by: list[str],
    confidence: float | None,
) -> None:
    from fastndcg.scores.summary import Summary

    rows: list[dict[str, Any]] = []
    slices: list[dict[str, Any]] = []
    for each in scored:
        of_run = {} if each.run is None else {"run": each.run}
        found = each.summary(confidence), slices_of(each.scores, by, confidence) if by else []
        known = {str(measure): each.knows_empty(measure) for measure in each.scores}
        for into, of_each in zip((rows, slices), found, strict=True):
            for row in of_each:
                into.append(of_run | row | ({} if known[row["measure"]] else {"empty": None}))
    if any(each.has_one_intent for each in scored):
        note(
            "no query has more than one intent; is the second field of the qrels the intent, "
            "and no iteration?"
        )
    for each in scored:
        tell(each.scores.n_queries, each.documents, each.columns, each.run)
        for line in each.notes:
            note(line if each.run is None else f"{each.run}: {line}")
    facts = scored[0].facts if len(scored) == 1 else {"runs": [each.facts for each in scored]}
    write_summary(Summary(rows), format, facts | more, slices if by else None)
    hold([line for each in scored for line in means_below(gates, each.scores.mean(), each.run)])


_OTHER_SUFFIXES = {".json", ".md", ".tsv", ".txt", ".xlsx"}


def _check_results(out: Path | None, keep: list[str] | None, paths: list[str]) -> None:
    """End the command, before it reads input, if the output is unusable or cannot be written."""
    if out is None:
        if keep:
            refuse(
                "--keep carries columns into the file of --out, which is not given; "
                "name it, as in --out per_query.parquet"
            )
        return
    ending = out.suffix.lower()
    if ending in _OTHER_SUFFIXES:
        refuse(
            f"--out: {out} is written as Parquet, CSV, JSON Lines or Feather; "
            "name a file ending in .parquet, .csv, .jsonl or .feather. "
            "For a summary as text use --format csv or json."
        )
    check_out(out, paths)
