"""Compare a run with an earlier record: ratios side by side, and a check of instruction counts."""

from __future__ import annotations

from collections.abc import Iterable

from bench.record import MACHINE, Row
from bench.tables import number, plain

GROWTH = 1.02  # allowed growth of instructions per document, which repeat to a millionth


def matched(rows: Iterable[Row], earlier: Iterable[Row]) -> list[tuple[Row, Row]]:
    """Return the pairs of rows of both records that measure the same thing and have a value."""
    before = {(row.section, row.name, row.baseline, row.unit): row for row in earlier}
    pairs = [(row, before.get((row.section, row.name, row.baseline, row.unit))) for row in rows]
    return [
        (row, old)
        for row, old in pairs
        if old is not None and row.section != MACHINE and row.value is not None and old.value is not None
    ]


def table(rows: Iterable[Row], earlier: Iterable[Row]) -> str:
    lines = []
    for row, old in matched(rows, earlier):
        now, then = row.value or 0.0, old.value or 0.0
        change = f"{(now / then - 1) * 100:+.1f}%" if then else ""
        lines.append((row.section, row.name, number(then), number(now), change))
    return plain(("", "", "then", "now", "change"), lines)


def regressions(rows: Iterable[Row], earlier: Iterable[Row]) -> list[str]:
    """Describe the rows that take more instructions than before."""
    return [
        f"{row.name}: {number(row.value)} instructions a document, {number(old.value)} before"
        for row, old in matched(rows, earlier)
        if row.section == "instructions" and (row.value or 0.0) > (old.value or 0.0) * GROWTH
    ]
