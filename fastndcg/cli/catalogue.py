"""`fastndcg catalogue`: which items users are shown, beyond how relevant they are."""

from __future__ import annotations

from typing import Any

from fastndcg.cli import options
from fastndcg.cli.application import argument, command, option
from fastndcg.cli.output import Format, write_table
from fastndcg.cli.reading import read_once


@command
def catalogue(
    path: str = argument("PATH", "A row for each user and item, with a score."),
    *,
    items: str | None = options.ITEMS,
    train: str | None = options.TRAIN,
    k: int = option("How many ranks count.", 10, "-k"),
    query: str | None = options.QUERY,
    doc_id: str | None = options.DOC_ID,
    score: str | None = options.SCORE,
    rank: str | None = option("Column of ranks, in place of scores."),
    category: str | None = option("Column of --items that holds categories."),
    vector: str | None = option("Column of --items that holds vectors."),
    by: list[str] | None = option("Query-level column: rows for each value; repeatable."),
    tail: float = option("Share of the items that are the tail.", 0.1),
    confidence: float | None = option("Add bootstrap intervals over users; for example 0.95."),
    format: Format = options.FORMAT,
) -> None:
    """Show how much of a catalogue users are shown, and how evenly.

    With --train also how popular the items are, how much they say (novelty), and what users had already; with
    categories or vectors in --items how varied lists are.

    \b
    Examples:
      fastndcg catalogue recommendations.parquet --items items.parquet --train history.parquet -k 10
      fastndcg catalogue recommendations.csv --items 5000 --by country --confidence 0.95
    """
    from fastndcg.decide.exposure import catalogue

    columns: Any = {"query": query, "doc_id": doc_id, "score": score, "rank": rank}
    columns |= {"category": category, "vector": vector}
    given, known = read_once(path), options.read_items(items)
    found = catalogue(given, known, train, k, by=by or None, confidence=confidence, tail=tail, **columns)
    write_table(found, "catalogue", format, keys=len(by or []) + 1, whole=True)
