"""`fastndcg check`: whether judgments can be used, and whether they fit the runs that they judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastndcg.cli import options
from fastndcg.cli.application import argument, command, option
from fastndcg.cli.gates import Verdict, hold
from fastndcg.cli.inputs import Columns, find_sources, name_runs, read_once
from fastndcg.cli.output import Format, note, write_table
from fastndcg.errors import count_of
from fastndcg.statistics.significance import FAILS, HOLDS


@command
def check(
    paths: list[str] | None = argument("RUN...", "Runs, like --run.", None),
    *,
    qrels: str = option("Judgments: TREC qrels or a table.", ...),
    run: list[str] | None = option("A TREC or MS MARCO run or a table; repeatable."),
    corpus: str | None = option("Ids of all documents: a table with a column of ids."),
    by: list[str] | None = option("Check slices of queries by this column of the judgments; repeatable."),
    least_judged: float = option("Fail if the share of judged documents is lower.", 0.0, min=0, max=1),
    strict: bool = option("Fail on cautions too.", False),
    columns: Columns,
    score: str | None = options.SCORE,
    grades: str | None = options.GRADES,
    format: Format = options.FORMAT,
) -> None:
    """Check judgments, and whether they fit the runs.

    Exits with 1 if a check fails. Failing checks: queries without a relevant document, judged documents that
    are not in the corpus, documents with two grades, judged queries missing from a run, repeated documents
    in a run, NaN scores, grades and scores that look swapped. Cautions do not fail.

    \b
    Examples:
      fastndcg check --qrels qrels.txt --run bm25.run --run dense.run
      fastndcg check --qrels qrels.csv --run run.parquet --corpus corpus.jsonl --by country --format json
    """
    from fastndcg.analysis.judgments import CAUTION, check_judgments

    sources = find_sources(paths, qrels, run)
    # a name alone is a file, and not the text of ids
    paths_of_runs = [Path(each) if Path(each).name == each else each for each in sources.runs]
    runs: Any = dict(zip(name_runs(sources.runs), paths_of_runs, strict=True))
    checks = check_judgments(
        sources.qrels,
        runs,
        None if corpus is None else read_once(corpus)[0],
        by=by or [],
        least_judged=least_judged,
        score=score,
        grades=options.read_grades(grades),
        **columns.keywords(),
    )
    drops = (("slice",), ("total",), ("share",), ("system",))
    write_table(checks, "checks", format, keys=3, drops=drops)
    note(f"{count_of(len(checks), 'check')} of {count_of(len(runs), 'run')}")
    verdicts = []
    for row in checks.to_pylist():
        where = ", ".join(row[name] for name in ("system", "slice") if row[name] is not None)
        name = row["check"] + (f" ({where})" if where else "")
        share = "" if row["share"] is None else f", share {row['share']:.6g}"
        examples = f": {row['examples']}" if row["examples"] else ""
        why = f"{name}: {row['count']:,} of {row['total']:,}{share}{examples}"
        verdict = row["verdict"]
        if verdict == CAUTION:
            verdict = FAILS if strict else HOLDS
        verdicts.append(Verdict("check", name, verdict, why, row, verdict == FAILS))
    hold(verdicts)
