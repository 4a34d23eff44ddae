"""Make the tables of README.md, of this folder and of docs/ from the records; scripts/pages.py writes them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from bench import record
from bench.record import MACHINE, Row

SECTIONS = {
    "kernels": "Scoring, one thread unless it says otherwise",
    "start": "Cold start, small calls, memory",
    "runs": "The same job again and again, whole processes from an empty home",
    "reading": "From Parquet to a mean",
    "shuffled": "From Parquet to a mean, rows in any order",
    "instructions": "Instructions, counted by callgrind",
}
# the tools in README.md; docs/performance.md has all of them
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


HEAD = ("", "clock", "time", "against", "its time", "ratio", "bar", "moonshot", "")


def clock_of(row: Row) -> str:
    """Return the clock of a row's ratio: "processor" or "wall", or "" for a row that is not a time."""
    if row.unit.startswith(("MB", "instr")):
        return ""
    if row.ratio is None or not (row.wall and row.baseline_wall and row.baseline_cpu):
        return "processor"
    quotient = 1 / row.ratio if row.wants == "more" else row.ratio
    wall, processor = row.wall / row.baseline_wall, (row.cpu or 0.0) / row.baseline_cpu
    return "wall" if abs(wall - quotient) < abs(processor - quotient) else "processor"


def cells(row: Row) -> tuple[str, ...]:
    """Return a row of the long tables, with times of the clock that its ratio compares."""
    clock = clock_of(row)
    mine, base = (row.wall, row.baseline_wall) if clock == "wall" else (row.cpu, row.baseline_cpu)
    sign = {"more": "≥ ", "less": "≤ "}[row.wants]
    goals = [sign + f"{goal:g}" if goal is not None else "" for goal in (row.bar, row.moonshot)]
    verdict = "; ".join(filter(None, (row.verdict, row.note)))
    ratio = "" if row.ratio is None else f"{number(row.ratio)}x"
    times = (number(mine, row.unit), row.baseline, number(base, row.unit))
    return (row.name, clock, *times, ratio, *goals, verdict)


# ---- other tools, from the record of pytest-benchmark ----


def tools(shown: Collection[str] = ()) -> str:
    """A table of these tools, or of all, and a sentence about the record."""
    path = max(record.FOLDER.glob("*/*.json"), key=lambda path: path.name)
    stored = json.loads(path.read_text(encoding="utf-8"))
    pairs: dict[str, dict[str, Any]] = {}
    for each in stored["benchmarks"]:
        pairs.setdefault(each["params"]["name"], {})[each["params"]["who"]] = each
    lines = []
    for name, pair in pairs.items():
        facts = pair["theirs"]["extra_info"]
        theirs, ours = (
            pair[who]["stats"]["median"] / facts["documents"] * 1e9 for who in ("theirs", "fastndcg")
        )
        if name in (shown or pairs):
            cells = (name, f"`{facts['measure']}`", number(theirs), number(ours), number(theirs / ours))
            lines.append((theirs / ours, cells if shown else (*cells, facts["note"])))
    lines.sort(reverse=True)
    head = ("tool", "measure", "ns a document", "fastndcg", "slowdown", *(() if shown else ("",)))
    machine, rounds = stored["machine_info"], min(each["stats"]["rounds"] for each in stored["benchmarks"])
    about = (
        f"{stored['datetime'][:10]}, {machine['processor']}, {machine['cores']} cores, load average {stored['load']}; processor time "
        f"of one thread, the median of at least {rounds} rounds.\n"
        f"Record: `bench/{path.relative_to(record.FOLDER.parent).as_posix()}`."
    )
    return f"{markdown(head, [cells for _, cells in lines])}\n{about}\n"


# ---- the sections of bench/run.py ----


def fact(rows: Iterable[Row], name: str) -> str:
    return next((row.note for row in rows if row.section == MACHINE and row.name == name), "")


def sentence(section: str, rows: Sequence[Row]) -> str:
    settings, note = fact(rows, "settings"), fact(rows, "note")
    how = f"{settings[0].upper()}{settings[1:]}. " if settings else ""
    where = f"{fact(rows, 'date')}, {fact(rows, 'processor')}, {fact(rows, 'cores')} cores"
    return f"{how}{where}{f'; {note}' if note else ''}. Record: `bench/record/{section}.csv`.\n"


def sections(shown: Collection[str] = (), columns: int = len(HEAD)) -> str:
    """Tables of these sections with so many columns; or of all sections, and the bars that are missed."""
    parts, missed = [], []
    for section, title in SECTIONS.items():
        path = record.path_of(section)
        rows = record.read(path) if path.exists() else []
        measured = [row for row in rows if row.section == section]
        missed += [row for row in measured if row.verdict == "missed"]
        if measured and section in (shown or SECTIONS):
            table = markdown(HEAD[:columns], (cells(row)[:columns] for row in measured))
            parts += [f"### {title}\n", sentence(section, rows), table]
    return "\n".join(parts if shown else [*parts, "### Where fastndcg is behind\n", list_of(missed)])


ORDERS = ("sorted", "any order")


def engines() -> str:
    """Each engine after its first call, beside two bases; then whole applications, whose workers find kernels or not."""
    stored = record.read(record.path_of("engines"))
    found: dict[str, dict[tuple[str, str], Row]] = {}
    for row in stored:
        if row.section == "engines":
            what, size, order = row.name.rsplit(", ", 2)
            found.setdefault(what, {})[order, size] = row
    alone = found["one process, files"]
    columns = sorted(alone, key=lambda key: (ORDERS.index(key[0]), int(key[1].split()[0])))
    warm, cold = [], []
    for what, rows in found.items():
        shown = what.replace(", files", ", workers read files").replace(", rows", ", its own rows")
        cells = ["one process" if what == "one process, files" else shown]
        for key in columns:
            row = rows.get(key)
            if row is None or row.cpu is None:
                cells.append("-")
            elif row.unit == "s":
                cells.append(f"{number(row.cpu)} s, {number(row.wall)} s")
            else:
                beside_one = row.cpu / (alone[key].cpu or 1.0)
                ratios = f" ({number(row.ratio)}x, {number(beside_one)}x)" if row.ratio else ""
                cells.append(f"{number(row.cpu)}{ratios}")
        (cold if "first job" in what else warm).append(cells)
    head = ["", *(f"{size} rows, {order}" for order, size in columns)]
    about = sentence("engines", stored)
    return f"{markdown(head, warm)}\n{markdown(head, cold)}\n{about}"


def list_of(missed: Iterable[Row]) -> str:
    lines = (
        f"- {row.name}{f' (against {row.baseline})' if row.ratio is not None else ''}: "
        f"{number(row.value)}{'x' if row.ratio is not None else f' {row.unit}'}, "
        f"expected {'at least' if row.wants == 'more' else 'at most'} {row.bar:.3g}"
        for row in missed
    )
    return "\n".join(lines) or "Nowhere in these records."
