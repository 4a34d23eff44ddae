"""`fastndcg score`: values of measures, of one run or several."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import pyarrow as pa
import typer

from fastndcg.api import evaluate, evaluate_part
from fastndcg.cli.application import GATE, command, end
from fastndcg.cli.conventions import find_convention
from fastndcg.cli.options import (
    AscendingOption,
    DocIdOption,
    Format,
    FormatOption,
    GradesOption,
    IntentsOption,
    IsJudgedOption,
    MeasureOption,
    MemoryOption,
    Missing,
    NaN,
    NaNOption,
    PropensityOption,
    QrelsOption,
    QueryOption,
    RankOption,
    RelevanceOption,
    ThreadsOption,
    Unjudged,
    UnjudgedOption,
    WeightOption,
)
from fastndcg.cli.output import slices_of, write_summary
from fastndcg.cli.reading import (
    Reading,
    check_confidence,
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
from fastndcg.convention.declarations import Convention
from fastndcg.errors import SourceError
from fastndcg.files import check_writable
from fastndcg.measures import Measure
from fastndcg.progress import Task
from fastndcg.sources.columns import Roles
from fastndcg.sources.oddities import Reach
from fastndcg.sources.results import find_stored

if TYPE_CHECKING:
    from fastndcg.anchoring import Anchors
    from fastndcg.rankings import Rankings
    from fastndcg.scores import ResultsFile, Scores
    from fastndcg.sources.given import Chosen, Opened
    from fastndcg.sources.results import Stored
    from fastndcg.sources.scan import FileStream


PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Parquet, CSV, JSON Lines or Feather: files, a folder, a glob, a URI that pyarrow knows, or - for standard input.",
    ),
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="With --qrels: predictions, as a TREC or MS MARCO run or a table; repeatable, for a row for each run."
    ),
]
MissingOption = Annotated[
    Missing | None,
    typer.Option(
        help="With --qrels: a judged query that the run lacks counts with an empty ranking, or not at all.",
        show_default="zero",
    ),
]
ScoresOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Of PATH that is LETOR: a score for each of its lines, as text, .npy or Parquet."
    ),
]
ScoreOption = Annotated[str | None, typer.Option(help="Column of scores.")]
KeepOption = Annotated[
    list[str] | None, typer.Option(help="Query-level column to carry into --out; repeatable.")
]
ConventionOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="As this tool computes nDCG; `fastndcg conventions` lists them."),
]
OutOption = Annotated[
    Path | None,
    typer.Option(help="File to write each query's values to: .parquet, .csv, .jsonl or .feather."),
]
ByOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Query-level column: means of each of its values, and of each combination if repeated."
    ),
]
AnchorsOption = Annotated[
    bool,
    typer.Option(
        "--anchors", help="Add the means of the worst, a random and the best order of what was returned."
    ),
]
ConfidenceOption = Annotated[
    float | None, typer.Option(help="As in 0.95: adds the interval of each mean, low to high.")
]
FailUnderOption = Annotated[
    list[str] | None,
    typer.Option(metavar="MEASURE=NUMBER", help="Exit with 1 if the mean is below it, or NaN; repeatable."),
]


@command
def score(
    paths: PathsArgument = None,
    qrels: QrelsOption = None,
    run: RunsOption = None,
    missing: MissingOption = None,
    measure: MeasureOption = None,
    query: QueryOption = None,
    relevance: RelevanceOption = None,
    score: ScoreOption = None,
    scores: ScoresOption = None,
    keep: KeepOption = None,
    weight: WeightOption = None,
    is_judged: IsJudgedOption = None,
    intents: IntentsOption = None,
    propensity: PropensityOption = None,
    nan: NaNOption = NaN.refuse,
    rank: RankOption = None,
    ascending: AscendingOption = False,
    unjudged: UnjudgedOption = Unjudged.refuse,
    grades: GradesOption = None,
    convention: ConventionOption = None,
    doc_id: DocIdOption = None,
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

    PATH has a row for each document, in any order, or a row for each query with lists. Columns with usual names are found
    by themselves; stderr says which. A file is known by its first bytes, and may be packed by gzip, bzip2 or Zstandard. CSV has the
    names of columns in its first line.

    With --qrels, each PATH is a run, as --run is; judgments, which are read once, and predictions are joined on query and document id. Documents of equal score are ordered by
    falling id, as trec_eval orders them; measures with ties='input' see that order. Where a measure is of several intents, as
    alpha_nDCG, the second field of TREC qrels is the intent.

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
    paths = paths or []
    if qrels is not None:
        run, paths = [*(run or []), *paths], []
    by = read_by(by, ["run", "measure", "mean", "low", "high", "queries", "empty", "small"])
    if confidence is not None:
        check_confidence(confidence)
    reading = Reading(rank, ascending, unjudged, grades)
    only_paths = {"--is-judged": is_judged, "--propensity": propensity, "--scores": scores}
    paths, judgments, runs = check_sources(paths, qrels, run, {"--missing": missing}, only_paths)
    if keep and out is None:
        end(
            2,
            "--keep carries columns into the file of --out, which is not given; name it, as in --out per_query.parquet",
        )
    if out is not None:
        _check_out(out, [*paths, *runs, judgments])
    if anchors and convention is not None:
        end(2, "--anchors and --convention do not go together: orders of other tools' ties are not all known")
    rule = None if convention is None else find_convention("--convention", convention)
    more = {} if convention is None else {"convention": convention}
    kept = tuple(dict.fromkeys([*(keep or []), *by, *cutoff_columns(measures)]))
    roles = Roles(
        query,
        relevance,
        score,
        kept,
        weight,
        doc_id,
        is_judged,
        intents,
        propensity,
        nan.value,
        **reading.roles(),
    )
    of_letor = None if scores is None else open_letor(paths, scores, roles)
    opened = open_paths(paths, threads) if paths and of_letor is None else None
    stored = None if opened is None or len(paths) > 1 else find_stored(opened, roles)
    if of_letor is not None:
        scored = [score_chosen(of_letor, measures, rule, threads, memory, out, anchored=anchors)]
    elif stored is not None:
        others = {"--keep": keep, "--convention": convention, "--anchors": anchors}
        _check_stored(paths[0], options_of(roles) | others)
        scored = stored_results(stored, measures if measure or gates else stored.measures)
    elif opened is not None:
        scored = [score_opened(opened, roles, measures, rule, threads, memory, out, anchored=anchors)]
    else:
        held = stored_runs(runs, roles, threads)
        for path in held:
            _check_stored(path, {"--convention": convention, "--anchors": anchors})
        to_read = [each for each in runs if each not in held]
        of_intents = bool(intents) or any(each.way == "intents" for each in measures)
        sides = read_qrels_runs(
            judgments, to_read, roles, missing or Missing.zero, threads, intents=of_intents
        )
        fresh = _score_runs(sides, measures, rule, threads, anchored=anchors)
        scored = []
        for path, name in zip(runs, name_runs(runs), strict=True):
            asked = measures if measure or gates or path not in held else held[path].measures
            found = stored_results(held[path], asked) if path in held else [next(fresh)]
            scored += [each._replace(run=each.run or name) for each in found]
    if out is not None and (stored is not None or not paths):
        _write_out(out, scored)
    _report(scored, format, more, gates, by, confidence)


def _check_stored(path: str, options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value:
            end(2, f"{option} has no meaning with {path}, which holds stored results, not predictions")


def _score_runs(
    sides: Iterable[tuple[Rankings, dict[str, str | None]]],
    measures: list[Measure],
    convention: Convention | None,
    threads: int | None,
    *,
    anchored: bool,
) -> Iterator[Scored]:
    from fastndcg.anchoring import anchors

    for rankings, columns in sides:
        scores = evaluate(rankings, measures, convention=convention, threads=threads)
        has_one_intent = rankings.intents is not None and not rankings.intents.numbers.any()
        found = anchors(rankings, measures, threads=threads) if anchored else None
        yield Scored(scores, rankings.n_docs, columns, None, has_one_intent, found)


class Scored(NamedTuple):
    """What is known of one input."""

    scores: Scores
    documents: int | None  # None of stored results
    columns: dict[str, str | None]
    run: str | None = None  # its name, where there are several
    has_one_intent: bool = False  # though intents were asked for
    anchors: Anchors | None = None

    def summary(self, confidence: float | None) -> list[dict[str, Any]]:
        """Rows of the summary, with anchors where they were asked for."""
        rows = self.scores.summary(confidence).rows
        if self.anchors is not None:
            means = self.anchors.means()
            for row in rows:
                row |= {name: each for name, each in means[row["measure"]].items() if name != "actual"}
        return rows

    def knows_empty(self, measure: Measure) -> bool:
        """Whether it is known which queries are empty: stored results show it by their NaN alone."""
        return self.documents is not None or measure.params.get("empty") in ("nan", "skip")

    @property
    def facts(self) -> dict[str, Any]:
        facts = {"queries": self.scores.n_queries, "documents": self.documents, "columns": self.columns}
        return facts if self.run is None else {"run": self.run} | facts


def open_runs(runs: list[str], threads: int | None) -> dict[str, Opened]:
    """Those runs that are tables, opened; whoever reads another as a run says what is wrong with it."""
    from fastndcg.sources.given import open_tables

    opened: dict[str, Opened] = {}
    for run in runs:
        with suppress(SourceError):
            opened[run] = open_tables([run], threads)
    return opened


def stored_runs(runs: list[str], roles: Roles, threads: int | None) -> dict[str, Stored]:
    """Those runs that are results of an earlier run."""
    found = {path: find_stored(opened, roles) for path, opened in open_runs(runs, threads).items()}
    return {path: stored for path, stored in found.items() if stored is not None}


def stored_results(stored: Stored, asked: list[Measure]) -> list[Scored]:
    """What `--out` wrote to files, of each run if they have a column of runs."""
    from fastndcg.sources.results import read_results

    scored = []
    for run, scores in read_results(stored, asked).items():
        taken: dict[str, str | None] = {"query": scores.queries.column_names[0]}
        if scores.weight is not None:
            taken["weight"] = "weight"
        scored.append(Scored(scores, None, taken, run))
    return scored


def score_opened(
    opened: Opened,
    roles: Roles,
    measures: list[Measure],
    convention: Convention | None,
    threads: int | None,
    memory: str | None,
    out: Path | None = None,
    *,
    anchored: bool = False,
) -> Scored:
    """Scores of files that are one input: at once, or a part at a time where it is too large for that."""
    chosen = choose_columns(opened, roles, with_doc_id=convention is not None and convention.orders_by_id)
    return score_chosen(chosen, measures, convention, threads, memory, out, anchored=anchored)


def score_chosen(
    chosen: Chosen,
    measures: list[Measure],
    convention: Convention | None,
    threads: int | None,
    memory: str | None,
    out: Path | None,
    *,
    anchored: bool,
) -> Scored:
    """As `score_opened`, of files whose columns are chosen."""
    from fastndcg.anchoring import anchors

    taken = chosen.columns.taken
    stream = scan_rankings(chosen, memory, threads)
    if stream is not None:
        scores, documents = _score_stream(stream, measures, convention, out)
        return Scored(scores, documents, taken, anchors=anchors(stream, measures) if anchored else None)
    rankings = read_rankings(chosen, threads)
    scores = evaluate(rankings, measures, convention=convention, threads=threads)
    of_orders = anchors(rankings, measures, threads=threads) if anchored else None
    scored = Scored(scores, rankings.n_docs, taken, anchors=of_orders)
    if out is not None:
        _write_out(out, [scored])
    return scored


def _write_out(out: Path, scored: list[Scored]) -> None:
    """The values of each query, after the name of its run where there are several."""
    from fastndcg.scores import results_file

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
    from fastndcg.scores import Summary

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
        sys.stderr.write(
            "no query has more than one intent; is the second field of the qrels the intent, and no iteration?\n"
        )
    for each in scored:
        tell(each.scores.n_queries, each.documents, each.columns, each.run)
    facts = scored[0].facts if len(scored) == 1 else {"runs": [each.facts for each in scored]}
    write_summary(Summary(rows), format, facts | more, slices if by else None)
    _hold(gates, scored)


_OTHER_SUFFIXES = {".json", ".md", ".tsv", ".txt", ".xlsx"}


def _check_out(out: Path, paths: list[str]) -> None:
    """Refuse an output that cannot be meant, or cannot be written, before the input is read."""
    ending = out.suffix.lower()
    if ending in _OTHER_SUFFIXES:
        end(
            2,
            f"--out: {out} is written as Parquet, CSV, JSON Lines or Feather; name a file ending in .parquet, .csv, .jsonl or "
            ".feather. For a summary as text use --format csv or json.",
        )
    if out.exists() and any(Path(path).exists() and out.samefile(path) for path in paths):
        end(2, f"--out: {out} is the input itself; name another file")
    check_writable(out)


class _Results:
    """Counts the results of a stream and passes them on to a file."""

    def __init__(self, file: ResultsFile | None) -> None:
        self._file = file
        self.documents = 0

    def write(self, results: pa.Table) -> None:
        if self._file is not None:
            self._file.write(results)

    def restart(self) -> None:
        self.documents = 0
        if self._file is not None:
            self._file.restart()


def _score_stream(
    stream: FileStream,
    measures: list[Measure],
    convention: Convention | None,
    out: Path | None,
) -> tuple[Scores, int]:
    """Scores and the number of documents."""
    from fastndcg.scores import results_file
    from fastndcg.streams import evaluate_stream

    with nullcontext() if out is None else results_file(out) as file:
        results, reach = _Results(file), Reach(measures)

        def score_part(rankings: Rankings) -> Scores:
            results.documents += rankings.n_docs
            return evaluate_part(reach.add(rankings), tuple(measures), convention, stream._scoring_threads)

        scores = evaluate_stream(stream, score_part, results)
    reach.warn()
    return scores, results.documents


def _hold(gates: list[tuple[Measure, float]], scored: list[Scored]) -> None:
    failed = []
    for each in scored:
        means, of_run = each.scores.mean(), "" if each.run is None else f"{each.run}: "
        failed += [
            of_run + _verdict(measure, bound, means[str(measure)])
            for measure, bound in gates
            if not means[str(measure)] >= bound
        ]
    if failed:
        end(GATE, "--fail-under: " + "; ".join(failed))


def _verdict(measure: Measure, bound: float, mean: float) -> str:
    if math.isnan(mean):
        return f"the mean of {measure} is NaN: a query has no value, or none counts; wanted at least {bound}"
    return f"the mean of {measure} is {mean}, below {bound}"
