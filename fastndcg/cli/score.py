"""`fastndcg score`: values of measures, of one run or several."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fastndcg.cli.application import command
from fastndcg.cli.gates import check_means, hold
from fastndcg.cli.meanings import check_confidence, cutoff_columns, read_by, read_gates, read_measures
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
    check_out,
    check_sources,
    name_runs,
    open_letor,
    open_paths,
    options_of,
    read_qrels_runs,
    tell,
)
from fastndcg.cli.scored import (
    ConventionOption,
    How,
    Scored,
    WeightsOption,
    check_stored,
    columns_of_weights,
    open_runs,
    read_convention,
    stored_results,
    weigh,
    write_out,
)
from fastndcg.errors import about, count_of
from fastndcg.measures import Measure
from fastndcg.measures.spellings import is_of_trec_eval
from fastndcg.scoring import ways
from fastndcg.sources.columns import Roles
from fastndcg.sources.results import find_stored

if TYPE_CHECKING:
    from fastndcg import typing
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores


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
    weights: WeightsOption = None,
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
      fastndcg score predictions.parquet -m "AUC(empty='skip')" --weights n_relevant
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
    weighing = columns_of_weights(weights, anchored=anchors, convention=convention)
    roles = reading.roles(score, [*(keep or []), *by, *weighing, *cutoff_columns(measures)])
    how = How(rule, anchors, threads, memory, signed=format is Format.json)
    chosen = measures if measure or gates else None
    of_letor = None if scores is None else open_letor(paths, scores, roles, threads)
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
        write_out(out, scored)
    scored = list(weigh(scored, weights))
    _report(scored, format, {} if convention is None else {"convention": convention}, gates, by, confidence)


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
    is_json = format is Format.json
    each_facts = [each.facts | (each.signatures if is_json else {}) for each in scored]
    facts = each_facts[0] if len(scored) == 1 else {"runs": each_facts}
    write_summary(Summary(rows), format, facts | more, slices if by else None)
    hold([found for each in scored for found in check_means(gates, each.scores.mean(), each.run)])


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
