"""`fastndcg measures`: every measure with its parameters."""

from __future__ import annotations

from fastndcg.cli.application import argument, command
from fastndcg.cli.options import FORMAT
from fastndcg.cli.output import Format, write, write_data
from fastndcg.common.table import entries, terminal_width, wrapped
from fastndcg.measures import DEFINITIONS, parse
from fastndcg.measures import table as measure_table


@command
def measures(
    name: str | None = argument(None, "Show only this measure, with its parameters.", None),
    format: Format = FORMAT,
) -> None:
    """List every measure, with its formula, parameters and source.

    \b
    Example:
      fastndcg measures AP
    """
    wanted = None if name is None else parse(name).name
    rows = [row for row in measure_table().to_pylist() if wanted in (None, row["name"])]
    if write_data(format, rows, rows):
        return
    if wanted is None:
        more = wrapped(
            "`fastndcg measures NAME` shows notation, formula, parameters and source.", terminal_width()
        )
        shown = [(row["name"], row["summary"]) for row in rows]
        write(f"{entries(shown, terminal_width())}\n\n{more}\n")
    else:
        facts = [(fact, text) for fact, text in rows[0].items() if fact != "parameters"]
        for parameter in DEFINITIONS[wanted].parameters:
            values = (f"{value}: {meaning}" for value, meaning in parameter.values)
            facts.append((parameter.name, "; ".join([parameter.meaning, *values])))
        write(entries(facts, terminal_width()) + "\n")
