"""`fastndcg conventions`: one data set as every tool computes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer

from fastndcg.cli.application import command
from fastndcg.cli.explain import OneMeasureOption
from fastndcg.cli.meanings import read_measures
from fastndcg.cli.options import (
    DocIdOption,
    Format,
    FormatOption,
    QrelsOption,
    QueryOption,
    RelevanceOption,
    ThreadsOption,
    WeightOption,
)
from fastndcg.cli.output import refuse, write, write_csv, write_json
from fastndcg.cli.reading import (
    check_sources,
    choose_columns,
    open_paths,
    read_qrels_runs,
    read_rankings,
    tell,
)
from fastndcg.common.exports import without_nan
from fastndcg.common.markup import markdown_table
from fastndcg.common.table import (
    Table,
    in_columns,
    terminal_width,
    wrapped,
)
from fastndcg.convention.differences import compare_conventions, describe, explain_conventions
from fastndcg.convention.matches import match_conventions
from fastndcg.errors import InputError, MeasureError, about, suggest
from fastndcg.measures.by_tool import Convention
from fastndcg.measures.by_tool import conventions as known_conventions
from fastndcg.sources.columns import Roles

if TYPE_CHECKING:
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings


@command
def conventions(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH...]",
            help=(
                "Parquet, CSV, JSON Lines or Feather: files, a folder, a glob, "
                "a URI that pyarrow knows, or - for standard input."
            ),
        ),
    ] = None,
    measure: OneMeasureOption = "nDCG@10",
    cutoff: Annotated[
        int | None, typer.Option("--cutoff", "-k", min=1, help="Another cutoff of the measure.")
    ] = None,
    uncut: Annotated[bool, typer.Option("--uncut", help="Only the tools' own cutoffs.")] = False,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", "-n", help="Only this convention; repeatable, the first is the baseline."),
    ] = None,
    explain: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="FROM TO", help="Explain how TO differs from FROM, one choice at a time."),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="VALUES",
            help=(
                "Find whose number this is: a mean, or a file of queries and values, such as the output of "
                "trec_eval -q or a CSV."
            ),
        ),
    ] = None,
    id: Annotated[  # noqa: A002 - the option's name
        str | None, typer.Option(metavar="ID", help="Use only this query.")
    ] = None,
    qrels: QrelsOption = None,
    run: Annotated[
        str | None, typer.Option(help="With --qrels: predictions, as a TREC or MS MARCO run or a table.")
    ] = None,
    query: QueryOption = None,
    relevance: RelevanceOption = None,
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
    weight: WeightOption = None,
    doc_id: DocIdOption = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
) -> None:
    """List how tools compute a measure, or score data as they do.

    With PATH, or --qrels and --run, it shows each tool's value, and how much each choice (gain, ideal, ties,
    empty queries, ...) changes it from the first tool's value. The first tool's value plus the effects in a
    row is the value of that row.

    With --match it shows which definitions give a number, nearest first, and what would have to change.

    \b
    Examples:
      fastndcg conventions
      fastndcg conventions predictions.parquet -k 10
      fastndcg conventions predictions.parquet -k 10 --explain sklearn lightgbm
      fastndcg conventions predictions.parquet -m AP@10 --explain trec_eval lightgbm
      fastndcg conventions predictions.parquet -m AP@10 --match 0.4321
      fastndcg conventions --qrels qrels.txt --run run.txt -m AP --match trec_eval_q.txt
      fastndcg conventions predictions.parquet -n lightgbm -n xgboost --id 17
      fastndcg conventions --qrels qrels.txt --run run.txt
    """
    asked = read_measures([measure], [])
    if len(asked) > 1:
        refuse("--measure: conventions are shown for one measure; give one")
    names = None if name is None else [find_convention("--name", each, asked).name for each in name]
    if not paths and qrels is None and run is None:
        if explain is not None or id is not None:
            refuse("--explain and --id need data: fastndcg conventions PATH --explain FROM TO")
        if match is not None:
            refuse("--match needs data: fastndcg conventions PATH --match VALUES")
        _write_conventions(asked[0].name, names, format)
        return
    if explain is not None:
        names = [find_convention("--explain", each, asked).name for each in explain]
    if match is not None and (explain is not None or names is not None or cutoff is not None or uncut):
        refuse("--match takes the measure with its cutoff as -m, and no --explain, -n, -k or --uncut")
    if match is not None and not (re.fullmatch(r"[-+.\de]+", match) or Path(match).exists()):
        refuse(f"--match: there is no file {match}, and it is no number")
    for path in paths or []:
        _refuse_name(path)
    roles = Roles(query, relevance, score, weight=weight, doc_id=doc_id)
    sources = check_sources(paths or [], qrels, None if run is None else [run], {}, {})
    if len(sources.runs) > 1:
        refuse("--run: conventions are shown for one run; give one")
    if sources.paths:
        chosen = choose_columns(open_paths(sources.paths, threads), roles, with_doc_id=True)
        rankings, taken = read_rankings(chosen), chosen.columns.taken
    else:
        rankings, taken = next(read_qrels_runs(sources.qrels, sources.runs, roles, (), threads))
    if id is not None:
        rankings = _one_query(rankings, id)
    k: Any = None if uncut else "as given" if cutoff is None else cutoff
    with about((sources.paths or sources.runs)[0]):
        if match is not None:
            table = match_conventions(rankings, asked[0], match, threads=threads)
        elif explain is not None:
            table = explain_conventions(rankings, *explain, asked[0], k=k, threads=threads)
        else:
            table = compare_conventions(rankings, asked[0], names, k=k, threads=threads)
    tell(rankings.n_queries, rankings.n_docs, taken)
    _write_table(table, format)


def find_convention(option: str, name: str, measures: Iterable[Measure] = ()) -> Convention:
    """The convention of that name. Ends the command if there is none, or if it lacks a measure."""
    try:
        found = known_conventions[name]
        for measure in measures:
            found.on(measure)
        return found
    except MeasureError as error:
        refuse(f"{option}: {error}")


def _refuse_name(path: str) -> None:
    """End the command if a path is no file, and looks like the name of a convention."""
    if path != "-" and re.fullmatch(r"[\w-]+", path) and not Path(path).exists():
        if path in known_conventions:
            refuse(f"{path} is a convention and no file; name it as in -n {path}")
        near = suggest(path, known_conventions)
        refuse(f'there is no file "{path}", and no convention of this name.{near} -n names a convention')


def _one_query(rankings: Rankings, name: str) -> Rankings:
    ids = [str(each) for each in rankings.query_ids.to_pylist()]
    if name not in ids:
        raise InputError(
            f'there is no query "{name}"; '
            f"the first ones are {', '.join(ids[:5])}.{suggest(name, ids[:10_000])}"
        )
    at = ids.index(name)
    return rankings[at : at + 1]


def _write_conventions(
    measure: str,
    names: list[str] | None,
    format: Format,  # noqa: A002 - the option's name
) -> None:
    table = describe(measure)
    if names is not None:
        table = table.filter(pa.array([name in names for name in table["name"].to_pylist()]))
    for name in () if format is Format.json else ("caveats", "measures"):  # the others have a line for each
        joined = pa.array(["; ".join(each) for each in table[name].to_pylist()])
        table = table.drop_columns(name).append_column(name, joined)
    if format in (Format.table, Format.markdown):
        shown = ["name", "measure", "ties", "missing", "weights", "tolerance", "tool"]
        _write_table(table.select(shown), format)
        refused = known_conventions.refused if measure == "nDCG" else {}
        notes = [f"{name} cannot be reproduced: {why}" for name, why in refused.items()]
        rest = [name for name in table.column_names if name not in shown]
        notes.append(f"Not in this table: {', '.join(rest)}; --format csv has them.")
        others = {each for rule in known_conventions.values() for each in rule.names_of_measures} - {measure}
        notes.append(f"-m lists the tools that have another measure: {', '.join(sorted(others))}.")
        write("\n".join(["", *(wrapped(line, terminal_width()) for line in notes), ""]))
    else:
        _write_table(table, format)


def _write_table(table: pa.Table | Table, format: Format) -> None:  # noqa: A002 - the option's name
    rows = without_nan(table.to_pylist())
    if format is Format.json:
        write_json(rows)
    elif format is Format.csv:
        write_csv(rows)
    else:
        write(_as_text(table.column_names, _with_round_effects(rows), markdown=format is Format.markdown))


_DECIMALS = 6
_NO_CHOICE = ("name", "value", "difference", "refused")  # columns of a comparison that are no effects


def _with_round_effects(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose effects add up as they are printed: each is the difference of two rounded values."""
    if not rows or "value" not in rows[0] or "matches" in rows[0]:
        return rows
    shown = [dict(row) for row in rows]
    at = rows[0]["value"]
    for row, original in zip(shown[1:], rows[1:], strict=True):
        if "effect" in original:
            at, row["effect"] = original["value"], _rounded_step(at, original["value"])
        elif original["value"] is not None:
            reached = rows[0]["value"]
            row["difference"] = _rounded_step(reached, original["value"])
            for choice in (name for name in row if name not in _NO_CHOICE):
                following = None if None in (reached, original[choice]) else reached + original[choice]
                reached, row[choice] = following, _rounded_step(reached, following)
    return shown


def _rounded_step(before: float | None, after: float | None) -> float | None:
    if before is None or after is None:  # NaN, or a step that has no value on this data
        return None
    scale = 10**_DECIMALS
    return float(round(after * scale) - round(before * scale)) / float(scale)


def _as_text(names: list[str], rows: list[dict[str, Any]], *, markdown: bool) -> str:
    """A line for each row; columns that say nothing are left out, and reasons stand below."""
    kept = [
        name for name in names if name != "refused" and any(row[name] not in (None, 0.0, "") for row in rows)
    ]
    shown = [row for row in rows if not row.get("refused") or "matches" not in row]
    texts = [kept] + [[_cell(row[name]) for name in kept] for row in shown]
    left = {place for place, name in enumerate(kept) if not any(isinstance(row[name], float) for row in rows)}
    if markdown:
        text = markdown_table(texts, left)
    else:
        text = in_columns(texts, 1, {kept[place] for place in left}, terminal_width())
    refused: dict[str, list[str]] = {}
    for row in rows:
        if row.get("refused"):
            tool = row[names[0]]
            refused.setdefault(row["refused"].removeprefix(tool).strip(), []).append(tool)
    width = 0 if markdown else terminal_width()
    reasons = [wrapped(f"{', '.join(those)}: {reason}", width) for reason, those in refused.items()]
    return "\n".join([text, *([""] if reasons else []), *reasons]) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return (
            "0"
            if value == 0
            else f"{value:.0e}"
            if abs(value) < 10**-_DECIMALS / 2
            else f"{value:.{_DECIMALS}f}"
        )
    return "" if value is None else str(value)
