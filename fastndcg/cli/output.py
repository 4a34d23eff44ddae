"""Output of commands: tables, JSON and CSV on stdout, messages on stderr, exit codes."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from fastndcg.cli import USAGE
from fastndcg.common.exports import without_nan
from fastndcg.common.files import csv_rows
from fastndcg.common.table import fit, name_of, shown_value, terminal_width
from fastndcg.errors import visible

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.common.table import Table
    from fastndcg.scores.scores import Scores
    from fastndcg.scores.summary import Summary

Rows = list[dict[str, Any]]
Format = StrEnum("Format", ["table", "json", "csv"])


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def note(text: str) -> None:
    """Write one line to stderr, if stderr can be written."""
    with suppress(OSError, ValueError):
        sys.stderr.write(visible(text.replace("\n", " ")) + "\n")


def end(code: int, *messages: str) -> NoReturn:
    """End the command with an exit code and messages, each of which is one line."""
    for message in messages:
        note(message)
    raise typer.Exit(code)


def refuse(message: str) -> NoReturn:
    """End the command with an error of usage."""
    end(USAGE, message)


def typed_command() -> str:
    """The command line as typed, for the page."""
    import shlex

    return shlex.join(["fastndcg", *sys.argv[1:]])


def write_json(document: Any) -> None:
    write(json.dumps(without_nan(document), indent=2, allow_nan=False, default=str) + "\n")


def write_csv(rows: Rows, names: list[str] | None = None) -> None:
    """Write rows as CSV. Without rows, `names` are the columns."""
    text = io.StringIO(newline="")
    names = list(rows[0]) if names is None else names
    csv.writer(text).writerows(
        csv_rows([names, *([row[name] for name in names] for row in without_nan(rows))])
    )
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # CSV has no escapes for characters that another one lacks
    write(text.getvalue())


def write_data(format: str, document: Any, rows: Rows, names: list[str] | None = None) -> bool:
    """Write `whole` as JSON or `rows` as CSV if requested; return whether anything was written."""
    if format == Format.json:
        write_json(document)
    elif format == Format.csv:
        write_csv(rows, names)
    return format in (Format.json, Format.csv)


def rows_text(rows: Rows, keys: int, drops: Any = (), see: str = "--format csv") -> str:
    """Rows as a table that fits the terminal, with the first `keys` columns at the left, measures in full."""
    texts = [
        [str(value) if name == "measure" else shown_value(value) for name, value in row.items()]
        for row in rows
    ]
    return fit([list(rows[0]), *texts], keys, drops, terminal_width(), see)


def write_table(
    found: Table | pa.Table, name: str, format: str, keys: int, drops: Any = (), *, whole: bool = False
) -> None:
    """Write a table as JSON under a name, as CSV, or as text with `keys` left-aligned columns.

    Text has no columns that are null in all rows, unless it is to be `whole`.
    """
    rows = found.to_pylist()
    if not write_data(format, {name: rows}, rows, found.column_names):
        names = [each for each in found.column_names if whole or found[each].null_count < len(found)]
        left = sum(each in names for each in found.column_names[:keys])
        shown = [{each: row[each] for each in names} for row in rows]
        write((rows_text(shown, left, drops) if rows else "  ".join(names)) + "\n")


def write_summary(
    summary: Summary, format: Format, facts: dict[str, Any], slices: Rows | None = None
) -> None:
    """Write the means and those of slices; CSV has only the slices if there are any."""
    document = facts | {"measures": summary.rows} | ({} if slices is None else {"slices": slices})
    if not write_data(format, document, summary.rows if slices is None else slices):
        see = "--format csv" if slices is None else "--format json"  # CSV is one table
        shown = [summary.text(terminal_width(), see)]
        shown += (
            [slices_text(slices, list(slices[0]).index("mean"), (("empty",), ("queries",)))] if slices else []
        )
        write("\n\n".join(shown) + "\n")


def slices_of(scores: Scores, by: Sequence[str], confidence: float | None) -> Rows:
    """One row per slice and measure: mean, numbers of queries and empty queries, whether it is small."""
    rows = []
    for group in scores.by(by, confidence or 0.95).to_pylist():
        for measure in scores.measures:
            label = measure.label
            row = {name: group[name] for name in by} | {"measure": str(measure), "mean": group[label]}
            if confidence is not None:
                row |= {end: group[f"{label}_{end}"] for end in ("low", "high")}
            counts = {"queries": group["queries"], "empty": group[f"{label}_empty"], "small": group["small"]}
            rows.append(row | counts)
    return rows


def slices_text(rows: Rows, keys: int, drops: Any, see: str = "--format csv") -> str:
    """Slices as text, small ones marked; the first `keys` columns are names, of which null is one."""
    names = [*rows[0]][:keys]
    shown = [
        {name: value for name, value in row.items() if name != "small"}
        | {name: name_of(row[name]) for name in names}
        | {name: f"{row[name]:,}" for name in ("queries", "empty") if row.get(name) is not None}
        | {"": "small" if row["small"] else ""}
        for row in rows
    ]
    return rows_text(shown, keys, drops, see)
