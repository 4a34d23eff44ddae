"""`fastndcg report`: a page about one system or several, to send to others."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastndcg.cli.application import command, end
from fastndcg.cli.compare import ConfidenceOption, MissingOption, RunOption, ScoreOption
from fastndcg.cli.options import (
    AscendingOption,
    DocIdOption,
    GradesOption,
    IntentsOption,
    IsJudgedOption,
    MeasureOption,
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
from fastndcg.cli.reading import (
    Reading,
    check_confidence,
    check_sources,
    choose_columns,
    name_runs,
    number_or_word,
    open_paths,
    read_measures,
    read_qrels_runs,
    read_rankings,
    tell,
)
from fastndcg.files import check_writable
from fastndcg.progress import Task
from fastndcg.sources.columns import Roles

if TYPE_CHECKING:
    from fastndcg.rankings import Rankings

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...", help="A system each: predictions as Parquet, CSV, JSON Lines or Feather."
    ),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="System that all others are compared with: a file's name without endings, or a column of scores.",
        show_default="the first",
    ),
]
ByOption = Annotated[
    list[str] | None, typer.Option(help="Query-level column: a slice of each of its values; repeatable.")
]
TitleOption = Annotated[str | None, typer.Option(help="Of the page.", show_default="measure and systems")]


@command
def report(
    paths: PathsArgument = None,
    out: OutOption = Path("report.html"),
    qrels: QrelsOption = None,
    run: RunOption = None,
    measure: MeasureOption = None,
    score: ScoreOption = None,
    baseline: BaselineOption = None,
    by: ByOption = None,
    confidence: ConfidenceOption = 0.95,
    missing: MissingOption = "refuse",
    title: TitleOption = None,
    query: QueryOption = None,
    relevance: RelevanceOption = None,
    weight: WeightOption = None,
    is_judged: IsJudgedOption = None,
    intents: IntentsOption = None,
    propensity: PropensityOption = None,
    nan: NaNOption = NaN.refuse,
    rank: RankOption = None,
    ascending: AscendingOption = False,
    unjudged: UnjudgedOption = Unjudged.refuse,
    grades: GradesOption = None,
    doc_id: DocIdOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Write a page about systems: what was evaluated, means, comparison, pictures, queries to look at, definitions.

    It is one HTML file that loads nothing from anywhere. Lists of queries are of the first measure; pictures of the others open when they are asked for. It
    needs the extra report.

    \b
    Examples:
      fastndcg report predictions.parquet -o report.html
      fastndcg report base.parquet new.parquet -m nDCG@10 -m RR --by country -o release.html
      fastndcg report predictions.parquet --score bm25 --score rerank
      fastndcg report --qrels qrels.txt --run bm25.txt --run rerank.txt
    """
    from fastndcg.reporting import report as write_report
    from fastndcg.reporting.page import check_extra

    check_extra()
    check_confidence(confidence)
    paths, scores, slices = paths or [], score or [], tuple(dict.fromkeys(by or []))
    only_paths = {"--by": by, "--is-judged": is_judged, "--propensity": propensity}
    reading = Reading(rank, ascending, unjudged, grades)
    paths, judgments, runs = check_sources(paths, qrels, run, {}, only_paths)
    if len(scores) > 1 and len(paths) != 1:
        end(2, "--score is repeatable for one PATH alone; give one column, or one file")
    if out.exists() and any(Path(path).exists() and out.samefile(path) for path in [*paths, *runs]):
        end(2, f"--out: {out} is the input itself; name another file")
    check_writable(out)
    asked = read_measures(measure or ["nDCG@10"], [])
    roles = Roles(
        query,
        relevance,
        next(iter(scores), None),
        slices,
        weight,
        doc_id,
        is_judged,
        intents,
        propensity,
        nan.value,
        **reading.roles(),
    )
    of_intents = intents is not None or any(each.way == "intents" for each in asked)
    read = (
        _of_paths(paths, scores, roles, threads)
        if paths
        else _of_runs(judgments, runs, roles, threads, of_intents=of_intents)
    )
    systems: dict[str, Rankings] = {}
    sources: dict[str, str] = {}
    columns = {}
    for name, source, rankings, taken in read:
        if name in systems:
            end(2, f'two systems are called "{name}"; rename a file')
        systems[name], columns[name] = rankings, taken
        named = ", ".join(f"{role}={column}" for role, column in taken.items() if column is not None)
        sources[name] = f"{source}; columns: {named}" if named else source
    with Task("Writing the page"):
        write_report(
            systems,
            out,
            measures=asked,
            baseline=baseline,
            by=slices,
            confidence=confidence,
            missing=number_or_word(missing),
            title=title,
            sources=sources,
            command=shlex.join(["fastndcg", *sys.argv[1:]]),
            threads=threads,
        )
    for name, rankings in systems.items():
        tell(rankings.n_queries, rankings.n_docs, columns[name], name)


_Read = tuple[str, str, "Rankings", dict[str, str | None]]


def _of_paths(paths: list[str], scores: list[str], roles: Roles, threads: int | None) -> Iterator[_Read]:
    """Each file, or each column of scores of one file."""
    from dataclasses import replace

    names = name_runs(paths, "PATH") if len(paths) > 1 else [Path(paths[0]).stem]
    for path, name in zip(paths, names, strict=True):
        opened = open_paths([path], threads)
        for column in scores or (None,):
            chosen = choose_columns(opened, replace(roles, score=column), with_doc_id=True)
            rankings = read_rankings(chosen, threads)
            yield str(column if len(scores) > 1 else name), path, rankings, chosen.columns.taken


def _of_runs(
    qrels: str, runs: list[str], roles: Roles, threads: int | None, *, of_intents: bool
) -> Iterator[_Read]:
    """Each run, with all judged queries: one that a run lacks has an empty ranking."""
    names = name_runs(runs) if len(runs) > 1 else [Path(runs[0]).stem]
    each = read_qrels_runs(
        qrels, runs, roles, Missing.zero, threads, intents=roles.intents is not None or of_intents
    )
    for name, run, (rankings, taken) in zip(names, runs, each, strict=True):
        yield str(name), f"{run}, judged by {qrels}", rankings, taken
