"""`fastndcg judges`, `check` and `judge-next`: whether judgments can be trusted, and what to judge next."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from fastndcg.cli import options
from fastndcg.cli.application import argument, command, option
from fastndcg.cli.gates import FAILS, HOLDS, Verdict, hold
from fastndcg.cli.output import Format, note, refuse, write_table
from fastndcg.cli.reading import check_sources, name_runs, read_once, read_systems
from fastndcg.errors import count_of
from fastndcg.sources.columns import Roles

Metric = StrEnum("Metric", ["ordinal", "nominal", "interval", "ratio"])


@command
def judges(
    path: str = argument("PATH", "A row for each grade: query, document, judge, grade."),
    *,
    query: str | None = options.QUERY,
    doc_id: str | None = options.DOC_ID,
    judge: str | None = option("Column of judges, people or models."),
    relevance: str | None = options.RELEVANCE,
    batch: str | None = option("Column of batches."),
    time: str | None = option("Column that says when a grade was given."),
    gold: str | None = option("Column of known grades, empty where there is none."),
    metric: Metric = option("How far apart two grades are.", Metric.ordinal),
    confidence: float = options.CONFIDENCE,
    fail_under: float | None = option(
        "Exit with 1 if alpha of all, a batch or a judge is NaN or below this.", metavar="NUMBER"
    ),
    format: Format = options.FORMAT,
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

    columns = {"query": query, "doc_id": doc_id, "judge": judge, "relevance": relevance, "batch": batch}
    columns |= {"time": time, "gold": gold}
    found = check_judges(read_once(path), **columns, metric=metric.value, confidence=confidence)
    drops = (("repeated",), ("bias_low", "bias_high"), ("kappa",), ("drift_low", "drift_high"), ("items",))
    write_table(found, "judges", format, keys=2, drops=drops)
    rows = found.to_pylist()
    note(f"{count_of(rows[0]['grades'], 'grade')} of {count_of(rows[0]['items'], 'document')}")
    verdicts = []
    for row in rows if fail_under is not None else ():
        of = "all" if row["group"] == "all" else f"{row['group']} {row['name']}"
        name, verdict = f"alpha of {of}", HOLDS if row["alpha"] >= fail_under else FAILS
        why = f"{name} is {row['alpha']:.6g}, not {fail_under:g} or more"
        verdicts.append(Verdict("--fail-under", name, verdict, why, row))
    hold(verdicts)


@command
def check(
    paths: list[str] | None = argument("RUN...", "Runs, like --run.", None),
    *,
    qrels: str | None = options.JUDGMENTS,
    run: list[str] | None = option("A TREC or MS MARCO run or a table; repeatable."),
    corpus: str | None = option(
        "Ids of all documents: a table with a column of them, or a text file, one a line."
    ),
    text: str | None = option("Column of the judgments with texts of queries.", show_default="query_text"),
    by: list[str] | None = option("Column of the judgments whose values are slices of queries; repeatable."),
    at: str = option("Ranks at which shares of judged documents are told.", "5,10,20", metavar="K,..."),
    least_judged: float = option("A share of judged documents below this fails.", 0.0, min=0, max=1),
    strict: bool = option("Cautions fail too.", False, "--strict"),
    query: str | None = options.QUERY,
    doc_id: str | None = options.DOC_ID,
    relevance: str | None = options.RELEVANCE,
    score: str | None = options.SCORE,
    grades: str | None = option(
        "Grades of words; a number is the grade of every judgment.", metavar="WORD=GRADE,..."
    ),
    format: Format = options.FORMAT,
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
    from fastndcg.decide.judgment_checks import CAUTION, check_judgments

    ranks = [int(each) for each in at.split(",") if each.strip().isdecimal() and int(each)]
    if not ranks or len(ranks) != at.count(",") + 1:
        refuse(f'--at is "{at}"; wanted ranks from 1, as in --at 5,10,20')
    sources = check_sources(paths, qrels, run)
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
        grades=options.read_grades(grades),
    )
    drops = (("slice",), ("total",), ("share",), ("system",))
    write_table(found, "checks", format, keys=3, drops=drops)
    note(f"{count_of(len(found), 'check')} of {count_of(len(runs), 'run')}")
    verdicts = []
    for row in found.to_pylist():
        where = ", ".join(row[name] for name in ("system", "slice") if row[name] is not None)
        name = row["check"] + (f" ({where})" if where else "")
        share = "" if row["share"] is None else f", share {row['share']:.6g}"
        examples = f": {row['examples']}" if row["examples"] else ""
        why = f"{name}: {row['count']:,} of {row['total']:,}{share}{examples}"
        verdict = row["verdict"]
        if verdict == CAUTION:
            verdict = FAILS if strict else HOLDS
        verdicts.append(Verdict("check", name, verdict, why, row))
    hold(verdicts)


@command
def judge_next(
    paths: list[str] | None = argument("RUN RUN", "Two runs.", None),
    *,
    qrels: str | None = options.JUDGMENTS,
    run: list[str] | None = option("A TREC or MS MARCO run or a table; twice."),
    measure: str = option("What is compared.", "nDCG@10", "--measure", "-m"),
    n: int = option("How many documents can be judged.", 200, "-n", min=1),
    by: list[str] | None = option(
        "Column of the judgments whose values are slices that share -n alike; repeatable."
    ),
    top: float | None = option("Highest grade.", show_default="the highest that occurs"),
    query: str | None = options.QUERY,
    doc_id: str | None = options.DOC_ID,
    relevance: str | None = options.RELEVANCE,
    grades: str | None = option("Grades of words, or the grade of every judgment.", metavar="WORD=GRADE,..."),
    threads: int | None = options.THREADS,
    format: Format = options.FORMAT,
) -> None:
    """List what to judge to tell two systems apart.

    A row is an unjudged document; move is the most by which its grade alone could change the difference of
    the means, and grade the one that does. Largest moves come first.

    \b
    Examples:
      fastndcg judge-next --qrels qrels.txt bm25.run dense.run -n 100 --format csv > to-judge.csv
      fastndcg judge-next --qrels qrels.csv bm25.run dense.run -m AP@100 --by country
    """
    from fastndcg.decide.pools import judge_next

    sources = check_sources(paths, qrels, run)
    asked = options.read_measures([measure])
    if len(sources.runs) != 2 or len(asked) != 1:
        refuse(f"judge-next takes two runs and one measure; got {len(sources.runs)} and {len(asked)}")
    roles = Roles(
        query=query, doc_id=doc_id, relevance=relevance, grades=options.read_grades(grades), keep=by or ()
    )
    systems = {each.name: each.rankings for each in read_systems(sources, roles, asked, threads)}
    found = judge_next(systems, asked[0], n, by=by or (), top=top, threads=threads)
    write_table(found, "judge", format, keys=2, drops=((),), whole=True)
    note(f"{count_of(len(found), 'document')} to judge; {asked[0]} of {' and '.join(systems)}")
