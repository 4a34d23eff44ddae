"""Check the answers, measure everything that has a bar, print a table, and write a record.

Settings are those that users have. What runs many calls in a process is measured once more with kernels that are
compiled and kept, and where that differs the notes say so.

python bench/run.py                       everything; writes a record to bench/record/
python bench/run.py --quick               small inputs, one minute, no record
python bench/run.py --only kernels rivals --compare
python bench/run.py --only cores           what has no bar is measured when it is named
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

from bench import compare, record, tables
from bench.record import Row

# the module of each section; those of the record come first, and are measured where no section is named
SECTIONS = {
    "kernels": "workloads",
    "rivals": "rivals",
    "start": "cold",
    "runs": "runs",
    "reading": "reading",
    "shuffled": "shuffled",
    "instructions": "instructions",
    "evaluators": "evaluators",
    "engines": "engines",
    "cores": "cores",
}
RECORDED = list(tables.SECTIONS)


def rows_of(section: str, *, quick: bool) -> Iterator[Row]:
    yield from import_module(f"bench.{SECTIONS[section]}").rows(quick=quick)


_TWICE = ("kernels", "rivals", "reading", "shuffled")
_ALIKE = 1.05  # times of two measurements that say the same


def measure(sections: list[str], *, quick: bool) -> list[Row]:
    began, rows = time.perf_counter(), []
    for section in sections:
        for row in both(section, quick=quick):
            rows.append(row)
            seconds = time.perf_counter() - began
            print(
                f"{seconds:4.0f} s  {section}: {row.name} {tables.number(row.value)} {row.note}",
                file=sys.stderr,
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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="bench/run.py"
    )
    parser.add_argument("--quick", action="store_true", help="small inputs and few runs; keeps no record")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=RECORDED, metavar="SECTION",
                        help=f"some of {', '.join(SECTIONS)}; keeps no record")  # fmt: skip
    parser.add_argument(
        "--compare", nargs="?", const="", metavar="RECORD", help="with the last record, or this one"
    )
    parser.add_argument(
        "--note", default="", help="about the machine, kept in the record: what else was running"
    )
    options = parser.parse_args()
    if options.quick and options.compare is not None:
        parser.error(
            "--quick measures other sizes than the records have, so they do not compare; "
            "leave one of the two out"
        )

    earlier_path = Path(options.compare) if options.compare else record.newest()
    earlier = record.read(earlier_path) if options.compare is not None and earlier_path is not None else None
    rows = measure(options.only, quick=options.quick)
    everything = [*record.settings(), *rows, *record.machine(options.note)]
    print(tables.plain(("section", *tables.HEAD), [(row.section, *tables.cells(row)) for row in rows]))
    failed = [f"{row.name}: {row.note}" for row in rows if row.note.startswith("failed: ")]
    if options.quick:
        print("\nsmall inputs: Python's part of a call weighs more here, and bars are those of the full run")
    elif options.only == RECORDED and not failed:
        path = record.path_of_today()
        record.write(everything, path)
        print(f"\nrecorded in {path}; python -m bench.tables writes the READMEs' tables from it")
    if earlier is not None and earlier_path is not None:
        print(f"\nagainst {earlier_path.name}, then and now\n{compare.table(rows, earlier)}")
        failed += compare.regressions(rows, earlier)
    elif options.compare is not None:
        print("\nno earlier record to compare with")
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
