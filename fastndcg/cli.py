"""The command line, outside and looking in: results go to stdout, all else to stderr.

A command that fails says why in one line and exits with 1; wrong usage exits with 2, Ctrl-C with 130. What a command
writes appears whole or not at all.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import os
import re
import shlex
import signal
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn, ParamSpec, get_type_hints

import pyarrow as pa
import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from fastndcg import __version__
from fastndcg.api import evaluate
from fastndcg.convention.comparison import CHOICES, compare_conventions, describe, explain_conventions
from fastndcg.convention.declarations import Convention
from fastndcg.convention.declarations import conventions as known_conventions
from fastndcg.demo import QUERIES
from fastndcg.errors import (
    ColumnError,
    FastndcgError,
    FastndcgWarning,
    InputError,
    MeasureError,
    suggest,
)
from fastndcg.files import check_writable
from fastndcg.measures import Measure, parse, parse_many
from fastndcg.measures import table as measure_table

if TYPE_CHECKING:
    from typing import Self

    from fastndcg.rankings import Rankings
    from fastndcg.scores import ResultsFile, Scores, Summary
    from fastndcg.sources import trec
    from fastndcg.sources.columns import Columns
    from fastndcg.sources.scan import ParquetStream
    from fastndcg.trec_eval import Declared

P = ParamSpec("P")

# plain help and errors: a message that a box wraps is no longer one line
app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


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


# ---- what ends a command ----


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app(prog_name="fastndcg")
    except KeyboardInterrupt:
        sys.exit(130)


def _terminated(*_: object) -> NoReturn:
    sys.exit(143)  # an exception, unlike the signal itself, removes drafts on its way


def _end(code: int, message: str = "") -> NoReturn:
    if message:
        sys.stderr.write(" ".join(message.splitlines()) + "\n")
    raise typer.Exit(code)


def _options_of(function: Callable[..., None]) -> dict[str, str]:
    """The options of a command, by the names of its function's parameters."""
    options = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        for declared in getattr(hint, "__metadata__", ()):
            if isinstance(declared, OptionInfo):
                # of what is annotated typer takes the first name for a default
                names = [declared.default, *(declared.param_decls or ())]
                long = [each for each in names if isinstance(each, str) and each.startswith("--")]
                options[name] = long[0] if long else f"--{name.replace('_', '-')}"
    return options


def _as_option(message: str, options: dict[str, str]) -> str:
    """A message that proposes an argument of a function, as in `score="s1"`, with the option of that name instead.

    What a command has no option for, it does not propose.
    """
    message = message.replace('intent="', 'intents="')  # one option names the column of either
    message = message.replace("as in read_trec(qrels, run, intents=True)", "as in --qrels and --run")

    def replaced(match: re.Match[str]) -> str:
        verb, name, value = match.group(2, 3, 4)
        if name in options:
            return match[0].replace(f'{verb} {name}="{value}"', f'{verb} {options[name]} "{value}"')
        return "" if verb == "pass" else match[0]

    return re.sub(r'(,? or |; |, )?(as in|pass) (\w+)="(.*?)"( to [^.,;]*)?', replaced, message)


def _command(function: Callable[P, None], **settings: Any) -> Callable[P, None]:
    """Register a command, with every foreseen failure as one line and an exit code."""

    def as_option(message: object) -> str:
        return _as_option(str(message), _options_of(function))

    @functools.wraps(function)
    def guarded(*arguments: P.args, **options: P.kwargs) -> None:
        try:
            with _plain_warnings(as_option):
                function(*arguments, **options)
        except FastndcgError as error:
            _end(1, as_option(error))
        except BrokenPipeError:
            _end(141)  # the reader of the pipe has what it wanted: what a shell shows for other tools
        except OSError as error:
            _end(1, str(error))
        except MemoryError:
            _end(
                1, "There is not enough memory for this input. Score it in parts, or on a machine with more."
            )
        except KeyboardInterrupt:
            _end(130, "Interrupted.")

    return app.command(cls=_Once, **settings)(guarded)


@contextmanager
def _plain_warnings(told: Callable[[object], str]) -> Iterator[None]:
    """Warnings of the package as one line each on stderr, without the line of code that they come from."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FastndcgWarning)
        shown = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any) -> None:
            if issubclass(category, FastndcgWarning):
                sys.stderr.write(f"Warning: {told(message)}\n")
            else:
                shown(message, category, *where)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


class _Once(TyperCommand):
    """A command that refuses an option of one value which is given several times: all but the last would be lost in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param, times in Counter(order).items():
            if times > 1 and param.param_type_name == "option" and not (param.multiple or param.is_flag):  # type: ignore[attr-defined]
                name = max(param.opts, key=len)
                _end(2, f"{name} is given {times} times; it takes one value. Keep the one that is meant.")
        return super().parse_args(ctx, args)


# ---- options ----


def _version(wanted: bool) -> None:
    if wanted:
        _write(f"fastndcg {__version__}\n")
        raise typer.Exit


@app.callback()
def _fastndcg(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Exact ranking measures, nDCG and its relatives, from Parquet, CSV and TREC files."""


FormatOption = Annotated[Format, typer.Option("--format", help="How results are written to stdout.")]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Default: all cores. Values do not depend on it.")
]
DocIdOption = Annotated[
    str | None, typer.Option(help="Column of document ids, by which some tools order ties.")
]


# ---- commands ----


@_command
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
    gates = _gates(fail_under or [])
    measures = _measures(measure or ([] if gates else ["nDCG@10"]), gates)
    paths = paths or []
    only_paths = {"--keep": keep, "--weight": weight, "--is-judged": is_judged, "--propensity": propensity}
    _check_sources(paths, qrels, run, {"--missing": missing}, only_paths)
    if keep and out is None:
        _end(
            2,
            "--keep carries columns into the file of --out, which is not given; name it, as in --out per_query.parquet",
        )
    if out is not None:
        _check_out(out, [*paths, *(run or []), *([] if qrels is None else [qrels])])
    convention = None if like is None else _convention("--like", like)
    more = {} if like is None else {"like": like}
    if paths and _is_csv(paths):
        if memory is not None:
            _end(
                2, "--memory has no meaning with CSV, which is read whole; give Parquet to score it in parts"
            )
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
        ids = _doc_id_column(paths, of_paths, doc_id, wanted=_needs_ids(convention))
        stream, bar = _scan(paths, memory, **of_paths, doc_id=ids, nan=nan, threads=threads)
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
        each = _read_qrels_runs(qrels, run, named, missing or Missing.zero, nan, threads, intents=of_intents)
    else:
        one = _read(
            paths,
            query,
            relevance,
            score,
            keep or [],
            weight,
            nan,
            threads,
            doc_id,
            with_ids=_needs_ids(convention),
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
        for name, (rankings, columns) in zip(_names_of_runs(run or []), each, strict=True)
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
        _tell(each.scores.n_queries, each.documents, each.columns, each.run)
    facts = scored[0].facts if len(scored) == 1 else {"runs": [each.facts for each in scored]}
    _write_summary(Summary(rows), format, facts | more)
    _hold(gates, scored)


@_command
def conventions(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH...]", help="Parquet or CSV files, a folder, a glob, or a URI that pyarrow knows."
        ),
    ] = None,
    cutoff: Annotated[int, typer.Option("--cutoff", "-k", min=1, help="Ranks that count.")] = 10,
    uncut: Annotated[bool, typer.Option("--uncut", help="No cutoff but the tools' own.")] = False,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", "-n", help="Only this convention; repeatable; the first is compared with."),
    ] = None,
    explain: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="FROM TO", help="The way from one number to the other, a choice at a time."),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--query", metavar="ID", help="Show it for this query alone.")
    ] = None,
    query: Annotated[str | None, typer.Option("--query-column", help="Column of query ids.")] = None,
    relevance: Annotated[str | None, typer.Option(help="Column of grades.")] = None,
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of each query's weight in the means.")] = None,
    doc_id: DocIdOption = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
) -> None:
    """Everybody's nDCG: list how each tool computes it, or score data as all of them do.

    With PATH it shows each tool's number, and which choices (gain, ideal, ties, empty queries, ...) move it from the first
    one's by how much: the first value and the effects add up to the value.

    \b
    Examples:
      fastndcg conventions
      fastndcg conventions predictions.parquet -k 10
      fastndcg conventions predictions.parquet -k 10 --explain sklearn lightgbm
      fastndcg conventions predictions.parquet -n lightgbm -n xgboost --query 17
    """
    names = [_convention("--name", each).name for each in name or known_conventions]
    if not paths:
        if explain is not None or only is not None:
            _end(2, "--explain and --query need data: fastndcg conventions PATH --explain FROM TO")
        _write_conventions(names, format)
        return
    if explain is not None:
        names = [_convention("--explain", each).name for each in explain]
    rankings, columns = _read(
        paths, query, relevance, score, [], weight, "refuse", threads, doc_id, with_ids=True
    )
    if only is not None:
        rankings = _one_query(rankings, only)
    k = None if uncut else cutoff
    if explain is not None:
        table = explain_conventions(rankings, *explain, k, threads=threads)
    else:
        table = compare_conventions(rankings, k, names, threads=threads)
    _tell(rankings.n_queries, rankings.n_docs, columns)
    _write_table(table, format)


def _convention(option: str, name: str) -> Convention:
    try:
        return known_conventions[name]
    except MeasureError as error:
        _end(2, f"{option}: {error}")


def _needs_ids(convention: Convention | None) -> bool:
    return convention is not None and convention.ties in ("docid_desc", "docid_asc", "item_desc")


def _one_query(rankings: Rankings, name: str) -> Rankings:
    ids = [str(each) for each in rankings.query_ids.to_pylist()]
    if name not in ids:
        raise InputError(
            f'there is no query "{name}"; the first ones are {", ".join(ids[:5])}.{suggest(name, ids[:10_000])}'
        )
    at = ids.index(name)
    return rankings[at : at + 1]


def _write_conventions(names: list[str], format: Format) -> None:  # noqa: A002 - the option's name
    table = describe()
    table = table.filter(pa.array([name in names for name in table["name"].to_pylist()]))
    if format is not Format.json:  # the other two have a line for each
        caveats = pa.array(["; ".join(each) for each in table["caveats"].to_pylist()])
        table = table.drop_columns("caveats").append_column("caveats", caveats)
    if format is Format.table:
        shown = ["name", "measure", "ties", "missing", "weights", "tolerance", "tool"]
        _write_table(table.select(shown), format)
        _write(
            "\n"
            + "\n".join(
                f"{name} cannot be reproduced: {why}" for name, why in known_conventions.refused.items()
            )
            + "\n"
        )
    else:
        _write_table(table, format)


def _write_table(table: pa.Table, format: Format) -> None:  # noqa: A002 - the option's name
    rows = [{name: _json_number(value) for name, value in row.items()} for row in table.to_pylist()]
    if format is Format.json:
        _write(json.dumps(rows, indent=2, allow_nan=False) + "\n")
    elif format is Format.csv:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, table.column_names)
        writer.writeheader()
        writer.writerows(
            {name: "" if value is None else value for name, value in row.items()} for row in rows
        )
        _write(text.getvalue())
    else:
        _write(_as_text(table.column_names, _with_round_effects(rows)))


_DECIMALS = 6


def _with_round_effects(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose effects add up as they are printed: each is the difference of two rounded values."""
    if not rows or "value" not in rows[0]:
        return rows
    shown = [dict(row) for row in rows]
    at = rows[0]["value"]
    for row, original in zip(shown[1:], rows[1:], strict=True):
        if "effect" in original:
            at, row["effect"] = original["value"], _rounded_step(at, original["value"])
        elif original["value"] is not None:
            reached = rows[0]["value"]
            row["difference"] = _rounded_step(reached, original["value"])
            for choice in CHOICES:
                following = reached + original[choice]
                reached, row[choice] = following, _rounded_step(reached, following)
    return shown


def _rounded_step(before: float, after: float) -> float:
    scale = 10**_DECIMALS
    return float(round(after * scale) - round(before * scale)) / float(scale)


def _as_text(names: list[str], rows: list[dict[str, Any]]) -> str:
    """A line for each row; columns that say nothing are left out, and reasons stand below."""
    kept = [name for name in names if name != "refused" and any(row[name] not in (None, 0.0) for row in rows)]
    lines = [kept] + [[_cell(row[name]) for name in kept] for row in rows]
    numeric = [any(isinstance(row[name], float) for row in rows) for name in kept]
    widths = [max(len(line[column]) for line in lines) for column in range(len(kept))]
    text = "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )
    refused: dict[str, list[str]] = {}
    for row in rows:
        if row.get("refused"):
            refused.setdefault(row["refused"].removeprefix(row["name"]).strip(), []).append(row["name"])
    reasons = [f"{', '.join(those)}: {reason}" for reason, those in refused.items()]
    return "\n".join([text, *([""] if reasons else []), *reasons]) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return (
            "0"
            if value == 0
            else f"{value:.0e}"
            if abs(value) < 10**-_DECIMALS / 2
            else f"{value:.{_DECIMALS}f}"
        )
    return "" if value is None else str(value)


@_command
def demo(
    queries: Annotated[int, typer.Option(min=1, help="About 110 documents each.")] = QUERIES,
    out: Annotated[Path, typer.Option(help="Parquet file to write the sample to.")] = Path(
        "fastndcg-demo.parquet"
    ),
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same sample.")] = 0,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
) -> None:
    """Write a realistic sample, score it, say what to try.

    By default ten million documents: queries of very different lengths, skewed grades, some ties, some queries without a
    relevant document.

    \b
    Example:
      fastndcg demo --queries 1000 --out sample.parquet
    """
    from fastndcg.demo import write_sample

    clock = _Clock()
    with _Progress("Writing the sample", "queries") as bar:
        sample = write_sample(out, queries, seed, progress=bar.advance)
    clock.lap("write")
    rankings, columns = _read([str(out)], None, None, None, [], None, "refuse", threads)
    clock.lap("read")
    measures = _measures(["nDCG@10", "nDCG(gain='exp2')@1,3,5", "nDCG", "nDCG(ties='worst')@10", "CG@10"], [])
    with _Progress("Scoring, after compiling if this is the first run"):
        evaluate(rankings, measures, threads=threads)
    clock.lap("first_score")
    scores = evaluate(rankings, measures, threads=threads)
    clock.lap("score")
    _tell(rankings.n_queries, rankings.n_docs, columns)

    facts = {
        "path": str(out),
        "seed": seed,
        "queries": sample.queries,
        "documents": sample.documents,
        "columns": columns,
    }
    _write_summary(scores.summary(), format, facts | {"seconds": clock.seconds})
    if format is Format.table:
        _write(_demo_closing(out, sample.documents, clock.seconds, len(measures)))


def _trec_eval_measures(wanted: bool) -> None:
    if wanted:
        from fastndcg.trec_eval import DECLARED, SETS

        lines = [f"{each.name:<22} {each.summary}{_defaults(each)}\n" for each in DECLARED.values()]
        sets = [f"{name:<22} {', '.join(names)}\n" for name, names in SETS.items()]
        _write("".join([*lines, "\nSets:\n", *sets]))
        raise typer.Exit


def _defaults(declared: Declared) -> str:
    if declared.takes == "gains":
        return "; GRADE=GAIN,..."
    return f"; {','.join(f'{value:g}' for value in declared.default)}" if declared.default else ""


def trec_eval(
    qrels: Annotated[str, typer.Argument(metavar="QRELS", help="Judgments: query iteration doc grade.")],
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="Run: query Q0 doc rank score tag; - is standard input.")
    ],
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure",
            "-m",
            metavar="NAME[.PARAMETERS]",
            help="As in ndcg_cut.5,10; repeatable; also official, set, all_trec.",
            show_default="official",
        ),
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--query_eval_wanted", "-q", help="Values of each query too.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option(
            "--complete_rel_info_wanted", "-c", help="Judged queries that the run lacks count as 0."
        ),
    ] = False,
    no_summary: Annotated[bool, typer.Option("--nosummary", "-n", help="No values of all queries.")] = False,
    judged_only: Annotated[
        bool, typer.Option("--Judged_docs_only", "-J", help="Drop documents without a judgment.")
    ] = False,
    level: Annotated[
        int, typer.Option("--level_for_rel", "-l", min=0, help="The smallest grade that is relevant.")
    ] = 1,
    most: Annotated[
        int | None,
        typer.Option(
            "--Max_retrieved_per_topic", "-M", min=0, help="Documents of a query that are looked at."
        ),
    ] = None,
    collection: Annotated[
        int, typer.Option("--Number_docs_in_coll", "-N", min=0, help="Documents there are, for utility.")
    ] = 0,
    release: Annotated[
        int,
        typer.Option(
            min=9,
            max=10,
            help="9: 9.0.8, with scores as float32, its own levels of recall, and -q without queries that the run lacks.",
        ),
    ] = 10,
    threads: ThreadsOption = None,
    _: Annotated[
        bool,
        typer.Option(
            "--measures", callback=_trec_eval_measures, is_eager=True, help="List the measures and exit."
        ),
    ] = False,
) -> None:
    """Print what trec_eval prints, byte for byte.

    Options have trec_eval's own names, so that its command lines work unchanged. Documents of equal score stand by falling id,
    and where -m names a measure twice, the first parameters count. Unlike trec_eval 10, which ends there, it leaves out judged
    queries that the run lacks where -c is not given. Packed files are read too.

    \b
    Examples:
      fastndcg trec_eval qrels.txt run.txt.gz
      fastndcg trec_eval -q -c -m map -m ndcg_cut.10,20 -M 1000 qrels.txt run.txt
      fastndcg trec_eval --measures
    """
    from fastndcg.trec_eval import asked, report

    try:
        asked(measure or [], 9 if release == 9 else 10)
    except MeasureError as error:
        _end(2, f"--measure: {error}")
    bar = _Progress("Reading", "bytes")
    parts = report(
        qrels,
        run,
        measure or [],
        per_query=per_query,
        summary=not no_summary,
        complete=complete,
        release=9 if release == 9 else 10,
        note=lambda text: sys.stderr.write(text + "\n"),
        judged_only=judged_only,
        level=level,
        most=most,
        collection=collection,
        threads=threads,
        progress=bar.advance,
    )
    with bar:
        first = next(parts, "")  # nothing fails after it
    for part in chain([first], parts):
        _write(part)


_command(trec_eval, name="trec_eval", context_settings={"help_option_names": ["-h", "--help"]})


@_command
def measures(
    name: Annotated[str | None, typer.Argument(help="Show this measure only, in full.")] = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
) -> None:
    """List every measure: notation, formula, parameters, range, source.

    \b
    Example:
      fastndcg measures AP
    """
    wanted = None if name is None else parse(name).name
    rows = [row for row in measure_table() if wanted in (None, row["name"])]
    if format is Format.json:
        _write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    elif format is Format.csv:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        _write(text.getvalue())
    elif wanted is None:
        width = max(len(row["name"]) for row in rows)
        _write("".join(f"{row['name']:<{width}}  {row['summary']}\n" for row in rows))
    else:
        width = max(map(len, rows[0]))
        _write("".join(f"{field:<{width}}  {value}\n" for field, value in rows[0].items()))


def _demo_closing(out: Path, documents: int, seconds: dict[str, float], n_measures: int) -> str:
    path = shlex.quote(str(out))
    return f"""
{documents:,} documents in {path}, {out.stat().st_size / 1e6:.1f} MB, written in {seconds["write"]:.1f} s
read   {documents / seconds["read"] / 1e6:8.1f} million documents per second ({seconds["read"]:.2f} s)
score  {documents / seconds["score"] / 1e6:8.1f} million documents per second ({seconds["score"]:.2f} s for {n_measures} measures; \
{seconds["first_score"]:.1f} s the first time, when kernels are compiled or loaded)

Try next:
  fastndcg score {path} -m nDCG@10 -m "nDCG(ties='worst')@10" -m "nDCG(ties='best')@10"
  fastndcg score {path} -m nDCG@5,10 --keep country --keep device --out per_query.parquet
  fastndcg score {path} --fail-under "nDCG@10=0.5" --format json
"""


class _Clock:
    """Seconds of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now


# ---- reading the command line ----


def _measures(texts: list[str], gates: list[tuple[Measure, float]]) -> list[Measure]:
    try:
        asked = [measure for text in texts for measure in parse_many(text)]
    except MeasureError as error:
        _end(2, f"--measure: {error}")
    return list(dict.fromkeys([*asked, *(measure for measure, _ in gates)]))


def _gates(texts: list[str]) -> list[tuple[Measure, float]]:
    gates = []
    for text in texts:
        notation, _, number = text.rpartition("=")
        try:
            bound = float(number)
            if not notation or not math.isfinite(bound):
                raise ValueError
        except ValueError:
            _end(
                2,
                f'--fail-under: "{text}" is not a measure and a number; wanted MEASURE=NUMBER, as in "nDCG@10=0.35"',
            )
        try:
            gates += [(measure, bound) for measure in parse_many(notation)]
        except MeasureError as error:
            _end(2, f"--fail-under: {error}")
    return gates


_TEXT_SUFFIXES = {".csv", ".json", ".jsonl", ".ndjson", ".tsv", ".txt"}


def _check_out(out: Path, paths: list[str]) -> None:
    """Refuse an output that cannot be meant, or cannot be written, before the input is read."""
    if out.suffix.lower() in _TEXT_SUFFIXES:
        _end(
            2,
            f"--out: {out} is written as Parquet; name a file ending in .parquet. For a summary as text use --format csv or json.",
        )
    if out.exists() and any(Path(path).exists() and out.samefile(path) for path in paths):
        _end(2, f"--out: {out} is the input itself; name another file")
    check_writable(out)


def _read(
    paths: list[str],
    query: str | None,
    relevance: str | None,
    score: str | None,
    keep: list[str],
    weight: str | None,
    nan: str,
    threads: int | None,
    doc_id: str | None = None,
    *,
    with_ids: bool = False,
    is_judged: str | None = None,
    intents: str | None = None,
    propensity: str | None = None,
) -> tuple[Rankings, dict[str, str | None]]:
    """The rankings, and the columns they were made of, which it tells on stderr."""
    source = paths[0] if len(paths) == 1 else paths
    named = {"query": query, "relevance": relevance, "score": score}
    more = {"is_judged": is_judged, "intents": intents, "propensity": propensity}
    if _is_csv(paths):
        if intents is not None:
            _end(
                2, "--intents names a column of lists, which CSV has not; give Parquet, or --qrels and --run"
            )
        del more["intents"]
    columns = _find_columns(paths, **named, keep=keep, weight=weight, doc_id=doc_id, **more)
    taken = {"query": columns.query, "relevance": columns.relevance, "score": columns.score}
    ids = _doc_id_column(paths, named | {"keep": keep, "weight": weight}, doc_id, wanted=with_ids)
    if ids is not None:
        taken["doc_id"] = ids
    options: dict[str, Any] = {
        **taken,
        **more,
        "keep": keep,
        "weight": weight,
        "nan": nan,
        "threads": threads,
    }
    with _Progress("Reading") as bar:
        if _is_csv(paths):
            from fastndcg.sources.csv import read_csv

            rankings = read_csv(source, **options)
        else:
            from fastndcg.sources.parquet import read_parquet

            rankings = read_parquet(source, **options, progress=bar.advance)
    if not rankings.n_queries:
        raise InputError(
            f"{', '.join(paths)} has no rows, so there is nothing to score. Give a file with at least one query."
        )
    return rankings, taken | {role: name for role, name in more.items() if name is not None}


def _doc_id_column(
    paths: list[str], named: dict[str, Any], doc_id: str | None, *, wanted: bool
) -> str | None:
    """The column of document ids that is named, or one with a usual name where ids are wanted."""
    if doc_id is not None or not wanted:
        return doc_id
    return _usual_doc_id(lambda name: _find_columns(paths, **named, doc_id=name))


def _is_csv(paths: list[str]) -> bool:
    from fastndcg.sources.csv import is_csv

    found = [is_csv(path) for path in paths]
    if any(found) and not all(found):
        _end(
            2,
            f"{paths[found.index(True)]} is CSV and {paths[found.index(False)]} is not; give files of one kind",
        )
    return any(found)


def _find_columns(paths: list[str], **options: Any) -> Columns:
    """The columns that would be read, by the header of CSV or the footer of Parquet."""
    from fastndcg.sources.csv import find_csv_columns
    from fastndcg.sources.parquet import find_parquet_columns

    source = paths[0] if len(paths) == 1 else paths
    return find_csv_columns(source, **options) if _is_csv(paths) else find_parquet_columns(source, **options)


_IN_MEMORY = "1GB"  # larger input is streamed


def _scan(paths: list[str], memory: str | None, **options: Any) -> tuple[ParquetStream | None, _Progress]:
    """The paths as a stream, if they are too large to be read at once, and what shows its progress."""
    from fastndcg.sources.scan import bytes_of, scan_parquet

    try:
        budget = bytes_of(memory or _IN_MEMORY)
    except InputError as error:
        _end(2, f"--memory: {error}")
    bar = _Progress("Scoring")
    stream = scan_parquet(
        paths[0] if len(paths) == 1 else paths,
        memory=None if memory is None else budget,
        progress=bar.advance,
        **options,
    )
    return (stream if stream.nbytes > budget else None), bar


class _Results:
    """Counts the results of a stream and passes them on to a file."""

    def __init__(self, bar: _Progress, file: ResultsFile | None) -> None:
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
    bar: _Progress,
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


def _usual_doc_id(find: Callable[[str], object]) -> str | None:
    """The column of document ids by its usual names, or None. Raises `ColumnError` where two could be it."""
    from fastndcg.sources.columns import USUAL_NAMES

    found = []
    for name in USUAL_NAMES["doc_id"]:
        with suppress(ColumnError):
            find(name)
            found.append(name)
    if len(found) > 1:
        raise ColumnError(
            f"columns {' and '.join(found)} could each be the doc_id; name the one that is meant, as in --doc-id {found[0]}"
        )
    return found[0] if found else None


def _tell(queries: int, documents: int, taken: dict[str, str | None], name: str | None = None) -> None:
    """Say on stderr what was read; once nothing can fail, so that a failing command leaves one line there."""
    named = ", ".join(f"{role}={column}" for role, column in taken.items() if column is not None)
    listed = f"; columns: {named}" if named else ""
    of_run = "" if name is None else f"{name}: "
    sys.stderr.write(f"{of_run}{queries:,} queries, {documents:,} documents{listed}\n")


def _check_sources(
    paths: list[str],
    qrels: str | None,
    run: list[str] | None,
    of_qrels: dict[str, Any],
    of_paths: dict[str, Any],
) -> None:
    """Refuse options of one kind of source with the other, and half of a pair."""
    if (qrels is None) != (not run):
        _end(2, "--qrels and --run go together: judgments in one file, predictions in the other")
    if qrels is not None and paths:
        _end(2, f"PATH {paths[0]} is given beside --qrels and --run; give one or the other")
    if qrels is None and not paths:
        _end(2, "Error: nothing to score. Give PATH, or --qrels and --run.")
    for option, value in (of_qrels if qrels is None else of_paths).items():
        if value:
            _end(2, f"{option} has no meaning {'without' if qrels is None else 'with'} --qrels and --run")


def _read_qrels_runs(
    qrels: str,
    runs: list[str],
    named: dict[str, str | None],
    missing: Missing,
    nan: NaN,
    threads: int | None,
    *,
    intents: bool | str,
) -> Iterator[tuple[Rankings, dict[str, str | None]]]:
    """As `_read`, of judgments and each run."""
    from fastndcg.sources import trec

    found = [trec.find_qrels_run_columns(qrels, run, **named) for run in runs]
    bar = _Progress("Reading", "bytes")
    each = trec.read_qrels_runs(
        qrels,
        runs,
        trec.Columns(**named),
        missing.value,
        nan=nan.value,
        intents=intents,
        threads=threads,
        progress=bar.advance,
    )
    for judged, scored in found:
        with bar:
            rankings = next(each)
        yield rankings, _taken(named, judged, scored)


def _taken(
    named: Iterable[str], judged: trec.Columns | None, scored: trec.Columns | None
) -> dict[str, str | None]:
    """The column of each role, or that of each file where they differ."""
    taken: dict[str, str | None] = {}
    for role in named:
        sides = [getattr(side, role) for side in (judged, scored) if side is not None]
        names = [name for name in sides if name is not None]
        if len(set(names)) > 1:
            taken |= {f"{role} of qrels": names[0], f"{role} of run": names[1]}
        elif names:
            taken[role] = names[0]
    return taken


def _names_of_runs(paths: list[str]) -> list[str | None]:
    """What each of several runs is called: its file's name without endings, or its path where others have that name too."""
    if len(paths) < 2:
        return [None]
    for path, times in Counter(paths).items():
        if times > 1:
            _end(2, f"--run: {path} is given {times} times; give each run once")
    stems = [Path(re.sub(r"\.(gz|bz2|zst)$", "", path)).stem for path in paths]
    return [path if stems.count(stem) > 1 else stem for path, stem in zip(paths, stems, strict=True)]


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
        _end(1, "--fail-under: " + "; ".join(failed))


def _verdict(measure: Measure, bound: float, mean: float) -> str:
    if math.isnan(mean):
        return f"the mean of {measure} is NaN: a query has no value, or none counts; wanted at least {bound}"
    return f"the mean of {measure} is {mean}, below {bound}"


# ---- writing ----


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError:
        # the interpreter flushes once more as it ends, and would complain once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _write_summary(summary: Summary, format: Format, facts: dict[str, Any]) -> None:  # noqa: A002 - the option's name
    if format is Format.json:
        rows = [{name: _json_number(value) for name, value in row.items()} for row in summary.rows]
        _write(json.dumps(facts | {"measures": rows}, indent=2, allow_nan=False) + "\n")
    elif format is Format.csv:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(summary.rows[0]))
        writer.writeheader()
        writer.writerows(
            {name: "" if _json_number(value) is None else value for name, value in row.items()}
            for row in summary.rows
        )
        _write(text.getvalue())
    else:
        _write(_table(summary))


def _json_number(value: Any) -> Any:
    """None for NaN, which neither JSON nor most readers of CSV know."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(summary: Summary) -> str:
    plain = f"{summary!r}\n"
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return plain
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(
        file=io.StringIO(), force_terminal=True, width=os.get_terminal_size(sys.stdout.fileno()).columns
    )
    header, *rows = summary.texts()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column, name in enumerate(header):
        table.add_column(
            name,
            justify="left" if column < len(summary.names) else "right",
            no_wrap=True,
            style="bold" if name == "mean" else "",
        )
    for row in rows:
        table.add_row(*map(Text, row))  # a list of gains in brackets is no markup
    if console.measure(table).minimum > console.width:
        return plain  # rich would cut numbers to fit
    with console.capture() as capture:
        console.print(table)
    return capture.get()


_PATIENCE = 1.0  # seconds after which a terminal shows how far a task is


class _Progress:
    """How far a task is, on stderr: nothing where stderr is no terminal, and nothing for what is done in a moment."""

    def __init__(self, task: str, unit: str = "rows") -> None:
        self._task, self._unit = task, unit
        self._done, self._total, self._started = 0, 0, time.monotonic()
        self._bars: Any = None
        self._bar: Any = None
        self._timer: threading.Timer | None = None
        self.queries = 0

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if sys.stderr.isatty():
            self._timer = threading.Timer(_PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._bars is not None:
            self._bars.stop()

    def advance(self, done: int, total: int) -> None:
        """So much of so much is done."""
        self._done, self._total = done, total
        if self._bars is not None:
            self._bars.update(self._bar, completed=done, total=total, counts=self.counts())

    def counts(self) -> str:
        """What is done, how much there is, and how fast it goes."""
        if not self._total:
            return ""
        rate = self._done / max(time.monotonic() - self._started, 1e-9)
        queries = f", {self.queries:,} queries" if self.queries else ""
        return f"{self._done:,} of {self._total:,} {self._unit}{queries}, {_short(rate)} {self._unit}/s"

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            "{task.description}",
            BarColumn(20),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
        )
        bars = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar = bars.add_task(
            self._task, total=self._total or None, completed=self._done, counts=self.counts()
        )
        bars.start()
        self._bars = bars


def _short(number: float) -> str:
    """A number in three digits or so, as in 34.5 M."""
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {name}"
    return f"{number:.0f}"
