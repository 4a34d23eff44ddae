"""`fastndcg check`: whether judgments can be used, and whether they fit the runs that they judge."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fastndcg.cli.application import command
from fastndcg.cli.gates import Verdict, hold
from fastndcg.cli.meanings import read_grades
from fastndcg.cli.options import DocIdOption, Format, FormatOption, QueryOption, RelevanceOption
from fastndcg.cli.output import note, refuse, write_table
from fastndcg.cli.reading import check_sources, name_runs, read_once
from fastndcg.errors import count_of

_DROPS = (("slice",), ("total",), ("share",), ("system",))


@command
def check(
    paths: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Runs, like --run.")] = None,
    *,
    qrels: Annotated[str | None, typer.Option(help="Judgments, as TREC qrels or a table.")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="A TREC or MS MARCO run or a table; repeatable.")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="Ids of all documents: a table with a column of them, or a text file, one a line."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Column of the judgments with texts of queries.", show_default="query_text"),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(help="Column of the judgments whose values are slices of queries; repeatable."),
    ] = None,
    at: Annotated[
        str, typer.Option(metavar="K,...", help="Ranks at which shares of judged documents are told.")
    ] = "5,10,20",
    least_judged: Annotated[
        float, typer.Option(min=0, max=1, help="A share of judged documents below this fails.")
    ] = 0.0,
    strict: Annotated[bool, typer.Option("--strict", help="Cautions fail too.")] = False,
    query: QueryOption = None,
    doc_id: DocIdOption = None,
    relevance: RelevanceOption = None,
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
    grades: Annotated[
        str | None,
        typer.Option(
            metavar="WORD=GRADE,...", help="Grades of words; a number is the grade of every judgment."
        ),
    ] = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
) -> None:
    """Check judgments and how they fit runs.

    Exit with 1 if a check fails. These fail: queries that nothing can win, judged documents that the corpus
    lacks, two grades of one document, queries with one text, judged queries that a run lacks, documents twice
    in a run, scores that are NaN, grades and scores that look swapped. Cautions are for looking at.

    \b
    Examples:
      fastndcg check --qrels qrels.txt --run bm25.run --run dense.run
      fastndcg check --qrels qrels.csv --run run.parquet --corpus corpus.jsonl --by country --format json
    """
    from fastndcg.decide.judgment_checks import check_judgments

    ranks = [int(each) for each in at.split(",") if each.strip().isdecimal() and int(each)]
    if not ranks or len(ranks) != at.count(",") + 1:
        refuse(f'--at is "{at}"; wanted ranks from 1, as in --at 5,10,20')
    sources = check_sources(paths or [], qrels, run, {}, {})
    runs: Any = dict(zip(name_runs(sources.runs), sources.runs, strict=True))
    found = check_judgments(
        sources.qrels,
        runs,
        None if corpus is None else read_once(corpus),
        text=text,
        by=by or [],
        cutoffs=ranks,
        least_judged=least_judged,
        query=query,
        doc_id=doc_id,
        relevance=relevance,
        score=score,
        grades=read_grades(grades),
    )
    rows = found.to_pylist()
    write_table(found, "checks", format, keys=3, drops=_DROPS)
    verdicts = [_verdict(row, strict=strict) for row in rows]
    note(f"{count_of(len(rows), 'check')} of {count_of(len(runs), 'run')}")
    hold(verdicts)


def _verdict(row: dict[str, Any], *, strict: bool) -> Verdict:
    """A check as a gate: cautions hold unless they fail too."""
    from fastndcg.decide.judgment_checks import CAUTION, FAILS, HOLDS

    verdict = {CAUTION: FAILS if strict else HOLDS}.get(row["verdict"], row["verdict"])
    where = ", ".join(str(row[name]) for name in ("system", "slice") if row[name] is not None)
    name = row["check"] + (f" ({where})" if where else "")
    share = "" if row["share"] is None else f", share {row['share']:.6g}"
    examples = f": {row['examples']}" if row["examples"] else ""
    return Verdict(
        "check", name, verdict, f"{name}: {row['count']:,} of {row['total']:,}{share}{examples}", row
    )
