"""`fastndcg judges`: how far judges agree, and whether one drifts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from fastndcg.cli.application import command
from fastndcg.cli.gates import FAILS, HOLDS, Verdict, hold
from fastndcg.cli.options import (
    ConfidenceOption,
    DocIdOption,
    Format,
    FormatOption,
    QueryOption,
    RelevanceOption,
)
from fastndcg.cli.output import note, write_table
from fastndcg.cli.reading import read_once
from fastndcg.errors import count_of

Metric = StrEnum("Metric", ["ordinal", "nominal", "interval", "ratio"])

_DROPS = (("repeated",), ("bias_low", "bias_high"), ("kappa",), ("drift_low", "drift_high"), ("items",))


@command
def judges(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A row for each grade: query, document, judge, grade.")
    ],
    *,
    query: QueryOption = None,
    doc_id: DocIdOption = None,
    judge: Annotated[str | None, typer.Option(help="Column of judges, people or models.")] = None,
    relevance: RelevanceOption = None,
    batch: Annotated[str | None, typer.Option(help="Column of batches.")] = None,
    time: Annotated[str | None, typer.Option(help="Column that says when a grade was given.")] = None,
    gold: Annotated[
        str | None, typer.Option(help="Column of known grades, empty where there is none.")
    ] = None,
    metric: Annotated[Metric, typer.Option(help="How far apart two grades are.")] = Metric.ordinal,
    confidence: ConfidenceOption = 0.95,
    fail_under: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="Exit with 1 if alpha of all, a batch or a judge is NaN or below this."
        ),
    ] = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
) -> None:
    """Show how far judges agree, with each other and over time.

    Shown are all judges, each batch, each judge with the others, and with known grades. alpha is
    Krippendorff's and kappa Fleiss', where all items have as many grades. bias is how far grades are above
    known ones (gold), and drift how far a judge's grades rose from the first half of its time to the second.
    Columns with usual names are found.

    \b
    Examples:
      fastndcg judges grades.csv
      fastndcg judges grades.parquet --judge annotator --gold truth --fail-under 0.6
    """
    from fastndcg.decide.judging import check_judges

    found = check_judges(
        read_once(path),
        query=query,
        doc_id=doc_id,
        judge=judge,
        relevance=relevance,
        batch=batch,
        time=time,
        gold=gold,
        metric=metric.value,
        confidence=confidence,
    )
    rows = found.to_pylist()
    write_table(found, "judges", format, keys=2, drops=_DROPS)
    note(f"{count_of(rows[0]['grades'], 'grade')} of {count_of(rows[0]['items'], 'document')}")
    if fail_under is not None:
        hold([_verdict(row, fail_under) for row in rows])


def _verdict(row: dict[str, Any], least: float) -> Verdict:
    name, verdict = f"alpha of {row['group']} {row['name']}", HOLDS if row["alpha"] >= least else FAILS
    is_less = f"{name} is {row['alpha']:.6g}, not {least:g} or more"
    return Verdict("--fail-under", name, verdict, is_less, row | {"verdict": verdict})
