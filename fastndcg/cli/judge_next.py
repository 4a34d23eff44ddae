"""`fastndcg judge-next`: what to judge, so that two systems can be told apart."""

from __future__ import annotations

from typing import Annotated

import typer

from fastndcg.cli.application import command
from fastndcg.cli.meanings import read_grades, read_measures
from fastndcg.cli.options import (
    DocIdOption,
    Format,
    FormatOption,
    QueryOption,
    RelevanceOption,
    ThreadsOption,
)
from fastndcg.cli.output import note, refuse, write_table
from fastndcg.cli.reading import check_sources, name_runs, read_qrels_runs
from fastndcg.errors import count_of
from fastndcg.sources.columns import Roles


@command
def judge_next(
    paths: Annotated[list[str] | None, typer.Argument(metavar="RUN RUN", help="Two runs.")] = None,
    *,
    qrels: Annotated[str | None, typer.Option(help="Judgments, as TREC qrels or a table.")] = None,
    run: Annotated[list[str] | None, typer.Option(help="A TREC or MS MARCO run or a table; twice.")] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="What is compared.")] = "nDCG@10",
    n: Annotated[int, typer.Option("-n", min=1, help="How many documents can be judged.")] = 200,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Column of the judgments whose values are slices that share -n alike; repeatable."),
    ] = None,
    top: Annotated[
        float | None, typer.Option(help="Highest grade.", show_default="the highest that occurs")
    ] = None,
    query: QueryOption = None,
    doc_id: DocIdOption = None,
    relevance: RelevanceOption = None,
    grades: Annotated[
        str | None,
        typer.Option(metavar="WORD=GRADE,...", help="Grades of words, or the grade of every judgment."),
    ] = None,
    threads: ThreadsOption = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
) -> None:
    """List what to judge to tell two systems apart.

    A row is an unjudged document; move is the most by which its grade alone could change the difference of
    the means, and grade the one that does. Largest moves come first.

    \b
    Examples:
      fastndcg judge-next --qrels qrels.txt bm25.run dense.run -n 100 --format csv > to-judge.csv
      fastndcg judge-next --qrels qrels.csv bm25.run dense.run -m AP@100 --by country
    """
    from fastndcg.decide.pools import judge_next as listed

    sources = check_sources(paths or [], qrels, run, {}, {})
    asked = read_measures([measure], [])
    if len(sources.runs) != 2 or len(asked) != 1:
        refuse(f"judge-next takes two runs and one measure; got {len(sources.runs)} and {len(asked)}")
    roles = Roles(query=query, doc_id=doc_id, relevance=relevance, grades=read_grades(grades), keep=by or ())
    read = read_qrels_runs(sources.qrels, sources.runs, roles, asked, threads)
    systems = {name: each for name, (each, _) in zip(name_runs(sources.runs), read, strict=True)}
    found = listed(systems, asked[0], n, by=by or (), top=top, threads=threads)
    write_table(found, "judge", format, keys=2, drops=((),), whole=True)
    note(f"{count_of(len(found), 'document')} to judge; {asked[0]} of {' and '.join(systems)}")
