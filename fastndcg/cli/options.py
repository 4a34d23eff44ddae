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


class NaN(StrEnum):
    """What becomes of documents without a score."""

    refuse = "refuse"
    last = "last"


FormatOption = Annotated[Format, typer.Option("--format", help="How results are written to stdout.")]


ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Default: all cores. Values do not depend on it.")
]


DocIdOption = Annotated[
    str | None, typer.Option(help="Column of document ids, by which some tools order ties.")
]
