"""`fastndcg measures`: every measure with its parameters."""

from __future__ import annotations

from typing import Annotated

import typer

from fastndcg.cli.application import command
from fastndcg.cli.options import Format, FormatOption
from fastndcg.cli.output import write, write_csv, write_json
from fastndcg.common.markup import markdown_table
from fastndcg.common.table import entries, terminal_width, wrapped
from fastndcg.measures import DEFINITIONS, parse
from fastndcg.measures import table as measure_table


@command
def measures(
    name: Annotated[str | None, typer.Argument(help="Show only this measure, with its parameters.")] = None,
    format: FormatOption = Format.table,  # noqa: A002 - the option's name
) -> None:
    """List every measure, with its formula, parameters and source.

    \b
    Example:
      fastndcg measures AP
    """
    wanted = None if name is None else parse(name).name
    rows = [row for row in measure_table().to_pylist() if wanted in (None, row["name"])]
    if format is Format.json:
        write_json(rows)
    elif format is Format.csv:
        write_csv(rows)
    elif format is Format.markdown:
        write(markdown_table([list(rows[0]), *(list(row.values()) for row in rows)], len(rows[0])) + "\n")
    else:
        shown = [(row["name"], row["summary"]) for row in rows] if wanted is None else _facts(rows[0])
        more = "`fastndcg measures NAME` shows notation, formula, parameters and source."
        notes = ["", wrapped(more, terminal_width())] if wanted is None else []
        write("\n".join([entries(shown, terminal_width()), *notes]) + "\n")


def _facts(row: dict[str, str]) -> list[tuple[str, str]]:
    """The facts about a measure, and its parameters with the meanings of their values."""
    facts = [(name, fact) for name, fact in row.items() if name != "parameters"]
    for parameter in DEFINITIONS[row["name"]].parameters:
        values = (f"{value}: {meaning}" for value, meaning in parameter.values)
        facts.append((parameter.name, "; ".join([parameter.meaning, *values])))
    return facts
