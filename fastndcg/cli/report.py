"""`fastndcg report`: an HTML page about one or several systems."""

from __future__ import annotations

from pathlib import Path

from fastndcg.cli import options
from fastndcg.cli.application import command, option
from fastndcg.cli.inputs import Inputs, ReadingOfMeans, Systems, check_out, columns_in_words
from fastndcg.cli.output import typed_command
from fastndcg.common.progress import Task


@command
def report(
    *,
    given: Systems,
    out: Path = option("HTML file to write.", Path("report.html"), "--out", "-o"),
    measure: list[str] | None = options.MEASURES,
    baseline: str | None = option(
        "Compare all other systems with this one: a file name without its suffixes, or a column of scores.",
        metavar="NAME",
        show_default="the first",
    ),
    by: list[str] | None = option("Show a slice for each value of this query-level column; repeatable."),
    confidence: float = options.CONFIDENCE,
    missing: str = options.LACKS,
    title: str | None = option("Page title.", show_default="measure and systems"),
    reading: ReadingOfMeans,
    threads: int | None = options.THREADS,
) -> None:
    """Write an HTML page about one or several systems.

    It begins with the answer: which system is better, by how much, how significantly, where it is worse, and
    what to be careful about. The page is a single file without scripts and loads nothing from the network.
    The answer and the lists of queries use the first measure. Requires the extra report.

    \b
    Examples:
      fastndcg report predictions.parquet -o report.html
      fastndcg report base.parquet new.parquet -m nDCG@10 -m RR --by country -o release.html
      fastndcg report predictions.parquet --score bm25 --score rerank
      fastndcg report --qrels qrels.txt --run bm25.txt --run rerank.txt
    """
    from fastndcg.analysis.report import check_extra
    from fastndcg.analysis.report import report as write_report

    check_extra()
    options.check_confidence(confidence)
    sources = given.sources(reading)
    check_out(out, [*sources.paths, *sources.runs, sources.qrels], is_page=True)
    asked = options.read_measures(measure or ["nDCG@10"])
    slices = tuple(dict.fromkeys(by or []))
    inputs = Inputs(sources, reading.roles(sources.score, slices), threads, whole=True)
    systems, judged = list(inputs.systems(asked)), f", judged by {sources.qrels}" if sources.runs else ""
    with Task("Writing the page"):
        write_report(
            {str(each.name): each.rankings for each in systems},
            out,
            measures=asked,
            baseline=baseline,
            by=slices,
            confidence=confidence,
            missing=options.number_or_word(missing),
            title=title,
            sources={
                str(each.name): f"{each.source}{judged}{columns_in_words(each.columns)}" for each in systems
            },
            command=typed_command(),
            threads=threads,
        )
    for each in systems:
        each.tell()
