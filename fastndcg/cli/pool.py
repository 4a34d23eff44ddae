"""`fastndcg pool`: the top documents of several runs, for judging."""

from __future__ import annotations

from typing import Any

from fastndcg.cli import options
from fastndcg.cli.application import argument, command, option
from fastndcg.cli.inputs import Columns, name_runs, read_once
from fastndcg.cli.output import Format, note, write_table
from fastndcg.errors import count_of


@command
def pool(
    paths: list[str] = argument("RUN...", "TREC or MS MARCO runs or tables."),
    *,
    depth: int = option("Number of documents to take from each run and query.", 20, min=1),
    qrels: str | None = option("Existing judgments: TREC qrels or a table."),
    columns: Columns,
    score: str | None = options.SCORE,
    ascending: bool = options.ASCENDING,
    nan: options.NaN = options.NAN,
    grades: str | None = options.GRADES,
    format: Format = options.FORMAT,
) -> None:
    """Pool the top documents of several runs.

    One row per query and document: its best rank in any run, the runs that return it, and whether it is
    judged. If the whole pool is judged, the runs can be compared fairly.

    \b
    Examples:
      fastndcg pool runs/*.txt --depth 20 --qrels qrels.txt
      fastndcg pool bm25.run dense.parquet --depth 10 --format csv > to_judge.csv
    """
    from fastndcg.analysis.judgments import pool as pool_runs

    files = read_once(*paths, *([] if qrels is None else [qrels]))
    judgments = None if qrels is None else files.pop()
    runs: dict[str, Any] = dict(zip(name_runs(files), files, strict=True))
    pooled = pool_runs(
        runs,
        depth,
        judgments,
        score=score,
        ascending=ascending,
        nan="last" if nan is options.NaN.last else "refuse",
        grades=options.read_grades(grades),
        **columns.keywords(),
    )
    write_table(pooled, "pool", format, keys=2, drops=(("systems",), ("judged",)), whole=True)
    judged = sum(pooled["judged"].to_pylist())
    note(f"{count_of(len(pooled), 'document')} of {count_of(len(runs), 'run')}, {judged:,} judged")
