"""Write the tables of the READMEs and of docs/ from a record, and format tables in Markdown and plain text.

python -m bench.tables            # from the newest record
python -m bench.tables RECORD
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench import record
from bench.errors import BenchError
from bench.record import MACHINE, Row

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = {
    "kernels": "Scoring, one thread unless it says otherwise",
    "rivals": "Rivals, one thread each, the same question on the same data",
    "start": "Cold start, small calls, memory",
    "runs": "The same job again and again, whole processes from an empty home",
    "reading": "From Parquet to a mean",
    "shuffled": "From Parquet to a mean, rows in any order",
    "instructions": "Instructions, counted by callgrind",
}
# the rivals in the main README; docs/performance.md has all of them
SHOWN = (
    "scikit-learn ndcg_score",
    "pytrec_eval ndcg_cut_10",
    "ranx evaluate",
    "Polars expressions",
    "XGBoost ndcg@10 (C++)",
    "LightGBM ndcg@10 (C++)",
)


def number(value: float | None, unit: str = "") -> str:
    """Format a number with three digits; a dash if it was not measured."""
    if value is None:
        return "-"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
    return f"{text} {unit}".strip()


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        + "\n"
    )


def plain(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a terminal, with padded columns."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


HEAD = ("", "time", "against", "its time", "ratio", "bar", "moonshot", "")
HEADS = {"rivals": ("", "our time", "asked for", "its time", "times as long", "bar", "moonshot", "")}


def cells(row: Row) -> tuple[str, ...]:
    """Return a row of the long tables: processor times, but wall times of several threads."""
    by_wall = row.wants == "more" and row.section in ("kernels", "cores")
    mine, base = (row.wall, row.baseline_wall) if by_wall else (row.cpu, row.baseline_cpu)
    sign = {"more": "≥ ", "less": "≤ "}[row.wants]
    goals = [sign + f"{goal:g}" if goal is not None else "" for goal in (row.bar, row.moonshot)]
    verdict = "; ".join(filter(None, (row.verdict, row.note)))
    ratio = "" if row.ratio is None else f"{number(row.ratio)}x"
    return (row.name, number(mine, row.unit), row.baseline, number(base, row.unit), ratio, *goals, verdict)


def losses(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in which a bar is missed or another tool is faster."""
    return [
        row
        for row in rows
        if row.verdict == "missed" or (row.section == "rivals" and row.ratio is not None and row.ratio < 1)
    ]


def fact(rows: Iterable[Row], name: str) -> str:
    return next((row.note for row in rows if row.section == MACHINE and row.name == name), "unknown")


def sentence(rows: Sequence[Row], path: Path) -> str:
    note, settings = fact(rows, "note"), fact(rows, "settings")
    how = "" if settings == "unknown" else f"{settings[0].upper()}{settings[1:]}. "
    where = f"{fact(rows, 'date')}, {fact(rows, 'processor')}, {fact(rows, 'cores')} cores"
    return f"{how}{where}{'' if note == 'unknown' else f'; {note}'}. Record: `bench/record/{path.name}`.\n"


def rivals_table(rows: Iterable[Row]) -> str:
    """Return a table of the rivals that ran, slowest first."""
    answered = sorted(
        (row for row in rows if row.section == "rivals" and row.ratio is not None),
        key=lambda row: -(row.ratio or 0),
    )
    return markdown(
        ("tool", "asked for", "ns a document", "fastndcg", "times as long"),
        [
            (row.name, f"`{row.baseline}`", number(row.baseline_cpu), number(row.cpu), number(row.ratio))
            for row in answered
            if row.ratio is not None
        ],
    )


def short_table(rows: Sequence[Row], path: Path) -> str:
    """Return the table of the main README: the best-known rivals."""
    return f"{rivals_table(row for row in rows if row.name in SHOWN)}\n{sentence(rows, path)}"


def pages_tables(rows: Sequence[Row], path: Path) -> str:
    """Return the tables of docs/performance.md: rivals, reading, starting, where the package is behind."""
    parts = [sentence(rows, path), "## Other tools\n", rivals_table(rows)]
    for section in ("reading", "shuffled", "runs", "start"):
        title = "Starting, small calls, memory" if section == "start" else SECTIONS[section]
        chosen = [cells(row) for row in rows if row.section == section]
        if chosen:
            parts += [f"## {title}\n", markdown(HEAD[:5], (cell[:5] for cell in chosen))]
    return "\n".join([*parts, "## Where fastndcg is behind\n", list_of_losses(rows)])


def list_of_losses(rows: Iterable[Row]) -> str:
    behind = losses(rows)
    if not behind:
        return "Nowhere in this record.\n"
    return (
        "\n".join(
            (
                f"- {row.name}{f' (against {row.baseline})' if row.ratio is not None else ''}: "
                f"{number(row.value)}{'x' if row.ratio is not None else f' {row.unit}'}, "
                f"wanted {'at least' if row.wants == 'more' else 'at most'} {row.bar or 1:.3g}"
            )
            for row in behind
        )
        + "\n"
    )


def long_tables(rows: Sequence[Row], path: Path) -> str:
    """Return the tables of the bench README: first the missed bars, then all measurements."""
    parts = [sentence(rows, path), "### Where we lose\n", list_of_losses(rows)]
    for section, title in SECTIONS.items():
        chosen = [cells(row) for row in rows if row.section == section]
        if chosen:
            parts += [f"### {title}\n", markdown(HEADS.get(section, HEAD), chosen)]
    machine = [f"{row.name} {row.note}" for row in rows if row.section == MACHINE]
    return "\n".join([*parts, "### Machine and versions\n", "; ".join(machine) + ".\n"])


GENERATED: dict[str, tuple[Path, Callable[[Sequence[Row], Path], str]]] = {
    "rivals": (ROOT / "README.md", short_table),
    "speed": (ROOT / "docs" / "performance.md", pages_tables),
    "record": (ROOT / "bench" / "README.md", long_tables),
}


def insert(text: str, name: str, table: str, writer: str = "bench/tables.py") -> str:
    """Return the text with the table between its two marks."""
    begin, end = f"<!-- {name}: written by {writer} -->\n", f"<!-- end of {name} -->"
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise BenchError(
            f"the text has no place for the table {name!r}; wanted the lines {begin.strip()} and {end}"
        )
    return f"{head}{begin}\n{table}\n{end}{tail}"


def main(arguments: Sequence[str]) -> int:
    path = Path(arguments[0]) if arguments else record.newest()
    if path is None:
        print("bench/record has no record; python bench/run.py makes one", file=sys.stderr)
        return 1
    rows = record.read(path)
    for name, (target, table) in GENERATED.items():
        target.write_text(
            insert(target.read_text(encoding="utf-8"), name, table(rows, path)), encoding="utf-8"
        )
        print(f"{target.relative_to(ROOT)}: {name} from {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
