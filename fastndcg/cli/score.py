"""`fastndcg score`: values of measures, of one run or several."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import pyarrow as pa
import typer

from fastndcg.api import evaluate
from fastndcg.cli.application import GATE, command, end
from fastndcg.cli.conventions import find_convention, needs_ids
from fastndcg.cli.options import DocIdOption, Format, FormatOption, Missing, NaN, ThreadsOption
from fastndcg.cli.output import Progress, write_summary
from fastndcg.cli.reading import (
    check_sources,
    doc_id_column,
    is_csv,
    name_runs,
    read_gates,
    read_measures,
    read_qrels_runs,
    read_rankings,
    scan_rankings,
    tell,
)
from fastndcg.convention.declarations import Convention
from fastndcg.files import check_writable
from fastndcg.measures import Measure

if TYPE_CHECKING:
    from fastndcg.rankings import Rankings
    from fastndcg.scores import ResultsFile, Scores
    from fastndcg.sources.scan import ParquetStream


@command
def score(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...", help="Parquet or CSV files, a folder, a glob, or a URI that pyarrow knows."
        ),
    ] = None,
    qrels: Annotated[
        str | None,
        typer.Option(help="Instead of PATH, with --run: judgments, as TREC qrels, Parquet or CSV."),
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            help="With --qrels: predictions, as a TREC run, Parquet or CSV; repeatable, for a row for each run."
        ),
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option(
            help="With --qrels: a judged query that the run lacks counts with an empty ranking, or not at all.",
            show_default="zero",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure", "-m", help="As in nDCG(gain='exp2')@1,3,5; repeatable.", show_default="nDCG@10"
        ),
    ] = None,
    query: Annotated[str | None, typer.Option(help="Column of query ids.")] = None,
    relevance: Annotated[str | None, typer.Option(help="Column of grades.")] = None,
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Query-level column to carry into --out; repeatable.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of each query's weight in the means.")] = None,
    is_judged: Annotated[
        str | None, typer.Option(help="Column that is false for documents without a judgment.")
    ] = None,
    intents: Annotated[
        str | None,
        typer.Option(
            help="Column of each document's grades for intent 0, 1, ..., as lists; with --qrels, of a judgment's intent."
        ),
    ] = None,
    propensity: Annotated[
        str | None,
        typer.Option(help="Column of the probability that a document was seen, for measures with ips=True."),
    ] = None,
    nan: Annotated[
        NaN, typer.Option(help="Documents with a NaN score: refused, or ranked last.")
    ] = NaN.refuse,
    like: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="As this tool computes nDCG; `fastndcg conventions` lists them."),
    ] = None,
    doc_id: DocIdOption = None,
    out: Annotated[Path | None, typer.Option(help="Parquet file to write each query's values to.")] = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="As in 512MB. PATH that takes more is scored a part at a time: same values, any size.",
            show_default="1GB",
        ),
    ] = None,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=NUMBER", help="Exit with 1 if the mean is below it, or NaN; repeatable."
        ),
    ] = None,
) -> None:
    """Score predictions and print the means.

    PATH has a row for each document, in any order, or a row for each query with lists. Columns with usual names are found
    by themselves; stderr says which. CSV (.csv or .tsv, packed or not) has their names in its first line. With --qrels and --run, judgments and predictions are joined on query and document id;
    documents of equal score are ordered by falling id, which measures with ties='input' see, as trec_eval orders them. Where a
    measure is of several intents, as alpha_nDCG, the second field of TREC qrels is the intent.

    \b
    Examples:
      fastndcg score --qrels qrels.txt --run run.txt.gz -m "nDCG(ties='input')@10"
      fastndcg score --qrels qrels.txt --run bm25.txt --run rerank.txt
      fastndcg score predictions.parquet -m nDCG@10 -m "nDCG(gain='exp2')@1,3,5"
      fastndcg score --qrels diversity.qrels --run run.txt -m alpha_nDCG@20 -m ERR_IA@20
      fastndcg score predictions.csv.gz --doc-id docno
      fastndcg score predictions.parquet --keep country --out per_query.parquet
      fastndcg score predictions.parquet -m nDCG@10 --like lightgbm
      fastndcg score canary.parquet --fail-under "nDCG@10=0.35" --format json
    """
    gates = read_gates(fail_under or [])
    measures = read_measures(measure or ([] if gates else ["nDCG@10"]), gates)
    paths = paths or []
    only_paths = {"--keep": keep, "--weight": weight, "--is-judged": is_judged, "--propensity": propensity}
    check_sources(paths, qrels, run, {"--missing": missing}, only_paths)
    if keep and out is None:
        end(
            2,
            "--keep carries columns into the file of --out, which is not given; name it, as in --out per_query.parquet",
        )
    if out is not None:
        _check_out(out, [*paths, *(run or []), *([] if qrels is None else [qrels])])
    convention = None if like is None else find_convention("--like", like)
    more = {} if like is None else {"like": like}
    if paths and is_csv(paths):
        if memory is not None:
            end(2, "--memory has no meaning with CSV, which is read whole; give Parquet to score it in parts")
    elif paths:
        of_paths = {
            "query": query,
            "relevance": relevance,
            "score": score,
            "keep": keep or [],
            "weight": weight,
            "is_judged": is_judged,
            "intents": intents,
            "propensity": propensity,
        }
        ids = doc_id_column(paths, of_paths, doc_id, wanted=needs_ids(convention))
        stream, bar = scan_rankings(paths, memory, **of_paths, doc_id=ids, nan=nan, threads=threads)
        if stream is not None:
            scores, documents = _score_stream(stream, bar, measures, convention, out)
            taken = {role: getattr(stream.columns, role) for role in ("query", "relevance", "score")}
            more_roles = {"is_judged": is_judged, "intents": intents, "propensity": propensity}
            taken |= {role: name for role, name in more_roles.items() if name}
            taken |= {} if ids is None else {"doc_id": ids}
            _report([_Scored(scores, documents, taken)], format, more, gates)
            return
    each: Iterator[tuple[Rankings, dict[str, str | None]]]
    if qrels is not None and run:
        named = {"query": query, "doc_id": doc_id, "relevance": relevance, "score": score}
        of_intents = intents or any(each.way == "intents" for each in measures)
        each = read_qrels_runs(qrels, run, named, missing or Missing.zero, nan, threads, intents=of_intents)
    else:
        one = read_rankings(
            paths,
            query,
            relevance,
            score,
            keep or [],
            weight,
            nan,
            threads,
            doc_id,
            with_ids=needs_ids(convention),
            is_judged=is_judged,
            intents=intents,
            propensity=propensity,
        )
        each = iter([one])
    scored = [
        _Scored(
            evaluate(rankings, measures, convention=convention, threads=threads),
            rankings.n_docs,
            columns,
            name,
            qrels is not None and rankings.intents is not None and not rankings.intents.numbers.any(),
        )
        for name, (rankings, columns) in zip(name_runs(run or []), each, strict=True)
    ]
    if out is not None:
        _write_out(out, scored)
    _report(scored, format, more, gates)


class _Scored(NamedTuple):
    """What is known of one input."""

    scores: Scores
    documents: int
    columns: dict[str, str | None]
    run: str | None = None  # its name, where there are several
    has_one_intent: bool = False  # though intents were asked for

    @property
    def facts(self) -> dict[str, Any]:
        facts = {"queries": self.scores.n_queries, "documents": self.documents, "columns": self.columns}
        return facts if self.run is None else {"run": self.run} | facts


def _write_out(out: Path, scored: list[_Scored]) -> None:
    """The values of each query, after the name of its run where there are several."""
    from fastndcg.scores import results_file

    with results_file(out) as file:
        for each in scored:
            table = each.scores.to_arrow()
            if each.run is not None:
                table = table.add_column(0, "run", pa.array([each.run] * len(table), pa.string()))
            file.write(table)


def _report(
    scored: list[_Scored],
    format: Format,  # noqa: A002 - the option's name
    more: dict[str, Any],
    gates: list[tuple[Measure, float]],
) -> None:
    from fastndcg.scores import Summary

    rows: list[dict[str, Any]] = []
    for each in scored:
        rows += [({} if each.run is None else {"run": each.run}) | row for row in each.scores.summary().rows]
    if any(each.has_one_intent for each in scored):
        sys.stderr.write(
            "no query has more than one intent; is the second field of the qrels the intent, and no iteration?\n"
        )
    for each in scored:
        tell(each.scores.n_queries, each.documents, each.columns, each.run)
    facts = scored[0].facts if len(scored) == 1 else {"runs": [each.facts for each in scored]}
    write_summary(Summary(rows), format, facts | more)
    _hold(gates, scored)


_TEXT_SUFFIXES = {".csv", ".json", ".jsonl", ".ndjson", ".tsv", ".txt"}


def _check_out(out: Path, paths: list[str]) -> None:
    """Refuse an output that cannot be meant, or cannot be written, before the input is read."""
    if out.suffix.lower() in _TEXT_SUFFIXES:
        end(
            2,
            f"--out: {out} is written as Parquet; name a file ending in .parquet. For a summary as text use --format csv or json.",
        )
    if out.exists() and any(Path(path).exists() and out.samefile(path) for path in paths):
        end(2, f"--out: {out} is the input itself; name another file")
    check_writable(out)


class _Results:
    """Counts the results of a stream and passes them on to a file."""

    def __init__(self, bar: Progress, file: ResultsFile | None) -> None:
        self._bar, self._file = bar, file
        self.documents = 0

    def write(self, results: pa.Table) -> None:
        self._bar.queries += len(results)
        if self._file is not None:
            self._file.write(results)

    def restart(self) -> None:
        self._bar.queries = self.documents = 0
        if self._file is not None:
            self._file.restart()


def _score_stream(
    stream: ParquetStream,
    bar: Progress,
    measures: list[Measure],
    convention: Convention | None,
    out: Path | None,
) -> tuple[Scores, int]:
    """Scores and the number of documents."""
    from fastndcg.scores import results_file
    from fastndcg.streams import evaluate as evaluate_stream

    with bar, nullcontext() if out is None else results_file(out) as file:
        results = _Results(bar, file)

        def score_part(rankings: Rankings) -> Scores:
            results.documents += rankings.n_docs
            return evaluate(rankings, measures, convention=convention, threads=stream.scoring_threads)

        scores = evaluate_stream(stream, score_part, results)
    return scores, results.documents


def _hold(gates: list[tuple[Measure, float]], scored: list[_Scored]) -> None:
    failed = []
    for each in scored:
        means, of_run = each.scores.mean(), "" if each.run is None else f"{each.run}: "
        failed += [
            of_run + _verdict(measure, bound, means[str(measure)])
            for measure, bound in gates
            if not means[str(measure)] >= bound
        ]
    if failed:
        end(GATE, "--fail-under: " + "; ".join(failed))


def _verdict(measure: Measure, bound: float, mean: float) -> str:
    if math.isnan(mean):
        return f"the mean of {measure} is NaN: a query has no value, or none counts; wanted at least {bound}"
    return f"the mean of {measure} is {mean}, below {bound}"
