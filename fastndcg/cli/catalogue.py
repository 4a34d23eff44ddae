"""`fastndcg catalogue`: which items users are shown, beyond how relevant they are."""

from __future__ import annotations

from typing import Annotated

import typer

from fastndcg.cli.application import command
from fastndcg.cli.options import (
    DocIdOption,
    Format,
    FormatOption,
    ItemsOption,
    QueryOption,
    TrainOption,
)
from fastndcg.cli.output import write_table
from fastndcg.cli.reading import read_once


@command
def catalogue(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A row for each user and item, with a score.")],
    *,
    items: ItemsOption = None,
    train: TrainOption = None,
    k: Annotated[int, typer.Option("-k", help="How many ranks count.")] = 10,
    query: QueryOption = None,
    doc_id: DocIdOption = None,
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
    rank: Annotated[str | None, typer.Option(help="Column of ranks, in place of scores.")] = None,
    category: Annotated[str | None, typer.Option(help="Column of --items that holds categories.")] = None,
    vector: Annotated[str | None, typer.Option(help="Column of --items that holds vectors.")] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Query-level column: rows for each value; repeatable.")
    ] = None,
    tail: Annotated[float, typer.Option(help="Share of the items that are the tail.")] = 0.1,
    confidence: Annotated[
        float | None, typer.Option(help="Add bootstrap intervals over users; for example 0.95.")
    ] = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
) -> None:
    """Show how much of a catalogue users are shown, and how evenly.

    With --train also how popular the items are, how much they say (novelty), and what users had already; with
    categories or vectors in --items how varied lists are.

    \b
    Examples:
      fastndcg catalogue recommendations.parquet --items items.parquet --train history.parquet -k 10
      fastndcg catalogue recommendations.csv --items 5000 --by country --confidence 0.95
    """
    from fastndcg.decide.exposure import catalogue as measured

    found = measured(
        read_once(path),
        int(items) if items is not None and items.isdecimal() else items,
        train,
        k,
        by=by or None,
        confidence=confidence,
        tail=tail,
        category=category,
        vector=vector,
        query=query,
        doc_id=doc_id,
        score=score,
        rank=rank,
    )
    write_table(found, "catalogue", format, keys=len(by or []) + 1, whole=True)
