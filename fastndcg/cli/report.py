"""`fastndcg report`: a page about one system or several, to send to others."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from fastndcg.cli.application import command
from fastndcg.cli.meanings import check_confidence, number_or_word, read_measures
from fastndcg.cli.options import (
    ConfidenceOption,
    ItemsOption,
    LacksOption,
    MeasureOption,
    ThreadsOption,
    TrainOption,
)
from fastndcg.cli.reading import ReadingOfMeans, Systems, check_out, columns_in_words, read_systems, tell
from fastndcg.common.progress import Task

OutOption = Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Compare all other systems with this one: a file's name without endings, or a column of scores.",
        show_default="the first",
    ),
]
ByOption = Annotated[
    list[str] | None, typer.Option(help="Query-level column: show a slice for each value; repeatable.")
]
TitleOption = Annotated[
    str | None, typer.Option(help="Title of the page.", show_default="measure and systems")
]


@command
def report(
    *,
    given: Systems,
    out: OutOption = Path("report.html"),
    measure: MeasureOption = None,
    baseline: BaselineOption = None,
    by: ByOption = None,
    confidence: ConfidenceOption = 0.95,
    missing: LacksOption = "refuse",
    title: TitleOption = None,
    items: ItemsOption = None,
    train: TrainOption = None,
    reading: ReadingOfMeans,
    threads: ThreadsOption = None,
) -> None:
    """Write an HTML page about one or several systems.

    It shows what was evaluated, means, comparison, pictures, queries to look at and definitions. The page is
    one file that loads nothing from the network. Lists of queries use the first measure. Pictures of the
    other measures are closed until the reader opens them. The command needs the extra report.

    \b
    Examples:
      fastndcg report predictions.parquet -o report.html
      fastndcg report base.parquet new.parquet -m nDCG@10 -m RR --by country -o release.html
      fastndcg report predictions.parquet --score bm25 --score rerank
      fastndcg report --qrels qrels.txt --run bm25.txt --run rerank.txt
      fastndcg report recommendations.parquet --doc-id item_id --items items.parquet --train history.parquet
    """
    from fastndcg.look.page import check_extra
    from fastndcg.look.page import report as write_report

    check_extra()
    check_confidence(confidence)
    sources = given.sources(reading.of_paths())
    check_out(out, [*sources.paths, *sources.runs, sources.qrels])
    asked = read_measures(measure or ["nDCG@10"], [])
    slices = tuple(dict.fromkeys(by or []))
    roles = reading.roles(sources.score, slices)
    systems = {each.name: each for each in read_systems(sources, roles, asked, threads)}
    with Task("Writing the page"):
        write_report(
            {name: system.rankings for name, system in systems.items()},
            out,
            measures=asked,
            baseline=baseline,
            by=slices,
            confidence=confidence,
            missing=number_or_word(missing),
            title=title,
            items=int(items) if items is not None and items.isdecimal() else items,
            train=train,
            sources={name: each.source + columns_in_words(each.columns) for name, each in systems.items()},
            command=shlex.join(["fastndcg", *sys.argv[1:]]),
            threads=threads,
        )
    for name, system in systems.items():
        tell(system.rankings.n_queries, system.rankings.n_docs, system.columns, name)
