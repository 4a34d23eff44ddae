"""Options that several commands take."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Missing(StrEnum):
    """What becomes of judged queries that the run lacks."""

    zero = "zero"
    skip = "skip"


class Format(StrEnum):
    """How results are written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"


class NaN(StrEnum):
    """What becomes of documents without a score."""

    refuse = "refuse"
    last = "last"


class Unjudged(StrEnum):
    """What becomes of documents without a grade."""

    refuse = "refuse"
    null = "null"


class Layout(StrEnum):
    """How a comparison is written."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


class Test(StrEnum):
    """Tests of a difference."""

    t = "t"
    randomisation = "randomisation"
    wilcoxon = "wilcoxon"
    tukey = "tukey"


class Interval(StrEnum):
    """How the interval of a difference is computed."""

    t = "t"
    percentile = "percentile"
    bca = "bca"
    studentised = "studentised"


class Correction(StrEnum):
    """Corrections for several pairs."""

    holm = "holm"
    bh = "bh"


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
        help="Measures, such as nDCG(gain='exp2')@1-3,5,all; @COLUMN takes cutoffs from a column; repeatable.",
        show_default="nDCG@10",
    ),
]
QueryOption = Annotated[str | None, typer.Option(help="Column of query ids.")]
RelevanceOption = Annotated[str | None, typer.Option(help="Column of grades.")]
WeightOption = Annotated[str | None, typer.Option(help="Column of each query's weight in the means.")]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory for files, such as 512MB. Larger files are scored a part at a time; values are the same.",
        show_default="1GB",
    ),
]
QrelsOption = Annotated[
    str | None,
    typer.Option(help="Judgments, as TREC qrels or a table; with --run, in place of PATH."),
]
