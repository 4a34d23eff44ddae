"""`fastndcg measures`: every measure with its parameters."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated

import typer

from fastndcg.cli.application import command
from fastndcg.cli.options import Format, FormatOption
from fastndcg.cli.output import write
from fastndcg.measures import parse
from fastndcg.measures import table as measure_table
from fastndcg.tables import markdown_table


@command
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
        write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    elif format is Format.csv:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        write(text.getvalue())
    elif format is Format.markdown:
        write(markdown_table([list(rows[0]), *(list(row.values()) for row in rows)], len(rows[0])) + "\n")
    elif wanted is None:
        width = max(len(row["name"]) for row in rows)
        write("".join(f"{row['name']:<{width}}  {row['summary']}\n" for row in rows))
    else:
        width = max(map(len, rows[0]))
        write("".join(f"{field:<{width}}  {value}\n" for field, value in rows[0].items()))
