"""Check the answers, measure everything that has a bar, and print it, beside the record where there is one.

Settings are those that users have. What runs many calls in a process is measured once more with kernels that are
compiled and kept, and where that differs the notes say so. Other tools are compared in test_rivals.py.

python bench/run.py                       everything that has a bar
python bench/run.py --record              and store it in bench/record/, a file for each section
python bench/run.py --quick               small inputs, one minute
python bench/run.py --only kernels cores  these sections; what has no bar is measured when it is named
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a script, from anywhere

from bench import record, tables
from bench.record import Row

# the module of each section; those that are recorded come first, and are measured where no section is named
SECTIONS = {
    "kernels": "workloads",
    "start": "cold",
    "runs": "runs",
    "reading": "reading",
    "shuffled": "shuffled",
    "instructions": "instructions",
    "engines": "engines",
    "cores": "cores",
}
RECORDED = list(tables.SECTIONS)
STORED = [*RECORDED, "engines"]


def rows_of(section: str, *, quick: bool) -> Iterator[Row]:
    yield from import_module(f"bench.{SECTIONS[section]}").rows(quick=quick)


_TWICE = ("kernels", "reading", "shuffled")
_GROWTH = 1.02  # of instructions, which repeat to a millionth
_ALIKE = 1.05  # times of two measurements that say the same


def measure(section: str, *, quick: bool) -> list[Row]:
    began, rows = time.perf_counter(), []
    for row in both(section, quick=quick):
        rows.append(row)
        seconds = time.perf_counter() - began
        print(
            f"{seconds:4.0f} s  {section}: {row.name} {tables.number(row.value)} {row.note}", file=sys.stderr
        )
    return rows


def both(section: str, *, quick: bool) -> Iterator[Row]:
    """Measure with default settings, and note where kernels that are compiled and kept take another time."""
    if section not in _TWICE or record.settings():
        yield from rows_of(section, quick=quick)
        return
    as_it_is = list(rows_of(section, quick=quick))
    os.environ["FASTNDCG_KERNELS"] = "compiled"
    try:
        kept = {(row.name, row.baseline): row.cpu for row in rows_of(section, quick=quick)}
    finally:
        del os.environ["FASTNDCG_KERNELS"]
    for row in as_it_is:
        other = kept.get((row.name, row.baseline))
        if row.cpu and other and not 1 / _ALIKE < row.cpu / other < _ALIKE:
            note = f"kernels compiled and kept: {tables.number(other, row.unit)}"
            yield row._replace(note="; ".join(filter(None, [row.note, note])))
        else:
            yield row


def beside_record(rows: list[Row], earlier: list[Row]) -> tuple[str, list[str]]:
    """A table of the values in the record and now; and the rows that take more instructions than they did."""
    before = {
        (row.name, row.baseline, row.unit): row.value for row in earlier if row.section != record.MACHINE
    }
    lines, grown = [], []
    for row in rows:
        now, then = row.value, before.get((row.name, row.baseline, row.unit))
        if now is None or not then:
            continue
        lines.append((row.name, tables.number(then), tables.number(now), f"{(now / then - 1) * 100:+.1f}%"))
        if row.section == "instructions" and now > then * _GROWTH:
            grown.append(
                f"{row.name}: {tables.number(now)} instructions a document, {tables.number(then)} before"
            )
    return tables.plain(("", "record", "now", "change"), lines), grown


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="bench/run.py"
    )
    parser.add_argument("--quick", action="store_true", help="small inputs and few runs")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=RECORDED, metavar="SECTION",
                        help=f"some of {', '.join(SECTIONS)}")  # fmt: skip
    parser.add_argument("--record", action="store_true", help="store the sections that have a record")
    parser.add_argument(
        "--note", default="", help="about the machine, kept in the record: what else was running"
    )
    options = parser.parse_args()
    if options.quick and options.record:
        parser.error("--quick measures other sizes than the records have; leave out --quick or --record")

    failed = []
    for section in options.only:
        rows, path = measure(section, quick=options.quick), record.path_of(section)
        print(f"\n{section}\n{tables.plain(tables.HEAD, map(tables.cells, rows))}", flush=True)
        wrong = [f"{row.name}: {row.note}" for row in rows if row.note.startswith("failed: ")]
        if path.exists() and not options.quick:
            table, grown = beside_record(rows, record.read(path))
            print(f"\n{table}", flush=True)
            failed += grown
        if options.record and section in STORED and not wrong:
            record.write([*record.settings(), *rows, *record.machine(options.note)], path)
            print(f"\nstored in {path}; python -m scripts.pages makes the tables from it")
        failed += wrong
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
