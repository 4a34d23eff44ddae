"""`fastndcg conventions`: one data set as every tool computes it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from fastndcg.cli import options
from fastndcg.cli.application import command, option, refusing
from fastndcg.cli.inputs import Columns, Inputs, Systems
from fastndcg.cli.output import Format, refuse, rows_text, write, write_data
from fastndcg.common.exports import without_nan
from fastndcg.common.table import Table, terminal_width, wrapped
from fastndcg.convention.differences import (
    ConventionTable,
    compare_conventions,
    describe,
    explain_conventions,
    match_conventions,
)
from fastndcg.errors import about, count_of
from fastndcg.measures import Measure
from fastndcg.measures.conventions import Convention
from fastndcg.measures.conventions import conventions as known_conventions
from fastndcg.tables.roles import Roles


@command
def conventions(
    *,
    given: Systems,
    measure: str = options.ONE_MEASURE,
    name: list[str] | None = option(
        "Only this convention; repeatable, the first is the baseline.", None, "--name", "-n"
    ),
    explain: tuple[str, str] | None = option(
        "Explain how TO differs from FROM, one choice at a time.", metavar="FROM TO"
    ),
    match: str | None = option("Find the tools that give this mean.", metavar="NUMBER"),
    columns: Columns,
    weight: str | None = options.WEIGHT,
    format: Format = options.FORMAT,
    threads: int | None = options.THREADS,
) -> None:
    """List how tools compute a measure, or score data as they do.

    With PATH, or --qrels and --run, show each tool's value, and how much each choice (gain, ideal, ties,
    empty queries, ...) moves it away from the first tool's value: that value plus the effects of a row is the
    value of the row, up to rounding. Without a cutoff, as in -m nDCG, each tool uses its own.

    With --match, show which definitions give a mean, nearest first.

    \b
    Examples:
      fastndcg conventions
      fastndcg conventions predictions.parquet -m nDCG@5
      fastndcg conventions predictions.parquet --explain sklearn lightgbm
      fastndcg conventions predictions.parquet -m AP@10 --explain trec_eval lightgbm
      fastndcg conventions predictions.parquet -m AP@10 --match 0.4321
      fastndcg conventions predictions.parquet -n lightgbm -n xgboost
      fastndcg conventions --qrels qrels.txt --run run.txt
    """
    asked = options.read_measures([measure])
    if len(asked) > 1:
        refuse(f"--measure: {measure} is {count_of(len(asked), 'measure')}; expected one")
    names = None if name is None else [find_convention("--name", each, asked).name for each in name]
    if not (given.paths or given.qrels or given.run):
        for option, value in {"--explain FROM TO": explain, "--match NUMBER": match}.items():
            if value is not None:
                refuse(f"{option.split()[0]} needs data, as in fastndcg conventions PATH {option}")
        _write_conventions(asked[0].name, names, format)
        return
    for each in explain or ():
        find_convention("--explain", each, asked)
    if match is not None and (explain is not None or names is not None):
        refuse("--match compares all definitions, so it cannot be combined with --explain or --name")
    if match is not None and not re.fullmatch(r"-?\d*\.?\d+", match):
        refuse(f'--match is "{match}"; expected a mean, as in --match 0.4321')
    sources = given.sources(columns)
    if len(sources.runs) > 1 or len(sources.scores) > 1:
        refuse("conventions takes one system; give one --run, or one --score")
    roles = Roles(score=sources.score, weight=weight, **columns.keywords())
    (system,) = Inputs(sources, roles, threads, together=True, whole=True).systems()
    system, rankings = system._replace(name=None), system.rankings
    with about(system.source):
        if match is not None:
            decimals = len(match.partition(".")[2])
            table = match_conventions(
                rankings, asked[0], float(match), decimals=decimals or None, threads=threads
            )
        elif explain is not None:
            table = explain_conventions(rankings, *explain, asked[0], threads=threads)
        else:
            table = compare_conventions(rankings, asked[0], names, threads=threads)
    system.tell()
    _write_table(table, format)


def find_convention(option: str, name: str, measures: Iterable[Measure] = ()) -> Convention:
    """The convention of that name. Ends the command if there is none, or if it lacks a measure."""
    with refusing(f"{option}: "):
        rule = known_conventions[name]
        for measure in measures:
            rule.on(measure)
        return rule


def _write_conventions(measure: str, names: list[str] | None, format: Format) -> None:
    table = describe(measure).to_arrow()
    if names is not None:
        table = table.filter(pa.array([name in names for name in table["name"].to_pylist()]))
    for name in () if format is Format.json else ("caveats", "measures"):  # the others have a line for each
        joined = pa.array(["; ".join(each) for each in table[name].to_pylist()])
        table = table.drop_columns(name).append_column(name, joined)
    if _write_table(ConventionTable(table), format):
        return
    others = {each for rule in known_conventions.values() for each in rule.names_of_measures} - {measure}
    more = f"-m lists the tools that have another measure: {', '.join(sorted(others))}."
    write(f"\n{wrapped(more, terminal_width())}\n")


def _write_table(table: Table, format: Format) -> bool:
    """Write a table; whether it was written as data and not as text."""
    rows = without_nan(table.to_pylist())
    is_data = write_data(format, rows, rows)
    if not is_data:
        is_steps = not isinstance(table, ConventionTable)
        write((rows_text(rows, 3) if is_steps else table.text(terminal_width())) + "\n")
    return is_data
