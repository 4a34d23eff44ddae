"""Options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

# the words that options take
Format = StrEnum("Format", ["table", "json", "csv", "markdown"])
# of a comparison
Layout = StrEnum("Layout", ["table", "json", "csv", "markdown", "latex", "junit", "github"])
Missing = StrEnum("Missing", ["zero", "skip"])  # judged queries that the run lacks
NaN = StrEnum("NaN", ["refuse", "last"])  # documents without a score
Unjudged = StrEnum("Unjudged", ["refuse", "null"])  # documents without a grade
Test = StrEnum("Test", ["t", "randomisation", "wilcoxon", "tukey"])
Interval = StrEnum("Interval", ["t", "logit", "percentile", "bca", "studentised"])
Undecided = StrEnum("Undecided", [("fails", "fail"), ("passes", "pass")])  # pass is a keyword of Python
Signatures = StrEnum("Signatures", ["refuse", "ignore"])  # results that were not made alike
Correction = StrEnum("Correction", ["holm", "bonferroni", "bh"])

FormatOption = Annotated[Format, typer.Option("--format", help="How results are written to stdout.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Default: all cores. Values do not depend on it.")
]
DocIdOption = Annotated[
    str | None, typer.Option(help="Column of document ids; some tools order ties by them.")
]
MeasureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help=(
            "Measures, such as nDCG(gain='exp2')@1-3,5,all; @COLUMN takes cutoffs from a column; repeatable."
        ),
        show_default="nDCG@10",
    ),
]
ItemsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|FILE", help="The catalogue: how many items it has, or a table with a row for each."
    ),
]
TrainOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Training: items and counts, or a row for each user and item."),
]
QueryOption = Annotated[str | None, typer.Option(help="Column of query ids.")]
RelevanceOption = Annotated[str | None, typer.Option(help="Column of grades.")]
WeightOption = Annotated[str | None, typer.Option(help="Column of each query's weight in the means.")]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help=(
            "Memory for files, such as 512MB. Larger files are scored a part at a time; values are the same."
        ),
        show_default="1GB",
    ),
]
QrelsOption = Annotated[
    str | None, typer.Option(help="Judgments, as TREC qrels or a table; each PATH is a run then, like --run.")
]
ScoresOption = Annotated[
    list[str] | None, typer.Option(help="Column of scores; with one PATH repeatable, once for each system.")
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option(help="With --qrels: a TREC or MS MARCO run or a table; repeatable, once for each system."),
]
LacksOption = Annotated[
    str,
    typer.Option(
        metavar="refuse|drop|NUMBER",
        help="Queries that a system lacks: refuse them, drop them for all systems, or count this value.",
    ),
]
FailUnderOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MEASURE=NUMBER",
        help=(
            "Exit with 1 if the mean of a run or system is NaN or below this number; repeatable. "
            "The baseline of a comparison is free of it."
        ),
    ),
]
ConfidenceOption = Annotated[float, typer.Option(help="Confidence of all intervals.")]
