"""Gates: minimum means, and differences from a baseline. Each gate has a verdict.

Verdicts are printed as text, as JUnit XML, or as GitHub annotations with a step summary.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.cli import GATE
from fastndcg.cli.application import option
from fastndcg.cli.options import FAIL_UNDER
from fastndcg.cli.output import end, note, refuse, write
from fastndcg.common.markup import markdown_table, markdown_text
from fastndcg.common.table import name_of
from fastndcg.errors import SourceError, count_of, visible
from fastndcg.statistics.significance import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from fastndcg.analysis.compare import Comparison
    from fastndcg.measures import Measure

Undecided = StrEnum("Undecided", [("fails", "fail"), ("passes", "pass")])  # pass is a keyword of Python
_MOST = 100  # failures that stderr lists
_ROWS = 500  # gates that a summary lists, of which GitHub takes 1 MiB


class Verdict(NamedTuple):
    """The verdict of one gate."""

    option: str  # that asked for it
    name: str  # of what was held
    verdict: str
    text: str  # why, in a line
    numbers: dict[str, Any]  # by their names in JSON
    fails: bool  # ends the command with 1

    def line(self) -> str:
        return f"{self.option}: {self.text}"


@dataclass(frozen=True)
class Gates:
    """Options that make a comparison exit with 1."""

    no_worse_than: str | None = option(
        "Exit with 1 unless the interval excludes a loss of more than --margin against this system.",
        metavar="NAME",
    )
    margin: float | None = option("The loss that --no-worse-than accepts.", show_default="0")
    undecided: Undecided | None = option(
        "Exit code of a gate whose interval includes the margin: fail is 1, pass is 0.", show_default="fail"
    )
    undecided_slices: Undecided | None = option(
        "Exit code of an undecided gate of a slice of --by.", show_default="as --undecided"
    )
    least_queries: int | None = option(
        "Gates of slices with fewer queries are undecided, and never fail.", metavar="N", min=1
    )
    fail_under: list[str] | None = FAIL_UNDER

    def check(self, baseline: str | None, by: Sequence[str]) -> None:
        """End the command if options contradict each other."""
        name = self.no_worse_than
        for field in ("margin", "undecided", "undecided_slices", "least_queries"):
            option = "--" + field.replace("_", "-")
            if getattr(self, field) is None:
                continue
            if name is None:
                refuse(f"{option} needs --no-worse-than NAME, the system that others are compared with")
            if not by and field in ("undecided_slices", "least_queries"):
                refuse(f"{option} needs --by COLUMN, whose values are the slices")
        if name is not None and baseline not in (None, name):
            refuse(f"--baseline {baseline} and --no-worse-than {name} differ; name one system")

    def facts(self, verdicts: list[Verdict], low: list[Verdict] | None) -> dict[str, Any]:
        """Verdicts for JSON: of `--no-worse-than`, and `low` of `--fail-under`, if requested."""
        facts: dict[str, Any] = {}
        if self.no_worse_than is not None:
            facts["gate"] = {
                "baseline": self.no_worse_than,
                "margin": self.margin or 0.0,
                "failed": [each.text for each in verdicts if each.fails],
                "verdicts": [each.numbers for each in verdicts],
            }
        if low is not None:
            facts["fail_under"] = {"failed": [each.line() for each in low if each.fails]}
        return facts

    def verdicts(
        self, compared: Comparison, slices: dict[tuple[Any, ...], Comparison], by: list[str]
    ) -> Iterator[Verdict]:
        """The verdicts of `--no-worse-than` on each measure and slice, if it is given."""
        baseline, margin = self.no_worse_than, self.margin or 0.0
        for key, each in {(): compared, **slices}.items() if baseline is not None else ():
            least = (self.least_queries or 0) if key else 0
            undecided = (self.undecided_slices if key else None) or self.undecided
            where = dict(zip(by, key, strict=False))
            named = ", ".join(
                f"{name} is null" if value is None else f"{name}={name_of(value)}"
                for name, value in where.items()
            )
            for row in each.verdicts(str(baseline), margin, least_queries=least).to_pylist():
                is_small, verdict = row["queries"] < least, row["verdict"]
                fails = verdict == FAILS or (
                    verdict == UNDECIDED and not is_small and undecided is not Undecided.passes
                )
                name = f"{row['measure']} of {row['system']}" + (f" where {named}" if named else "")
                why = f"{name} {_why(row, str(baseline), margin, least if is_small else 0)}"
                yield Verdict("--no-worse-than", name, verdict, why, where | row, fails)


def _why(row: dict[str, Any], baseline: str, margin: float, least: int) -> str:
    """Why a gate has its verdict; `least` is the number of queries that it lacks, or 0."""
    low, high, queries = row["low"], row["high"], count_of(row["queries"], "query")
    difference = f"difference {row['difference']:.6g}"
    numbers = f"{difference}, interval {low:.6g} to {high:.6g}, {queries}"
    if row["verdict"] == HOLDS:
        return f"loses at most the margin {margin:g} ({numbers})"
    more = ""
    if least:
        why = f"has {queries}, fewer than --least-queries {least} (mean {difference})"
    elif not (math.isfinite(low) and math.isfinite(high)):
        why = f"has no finite interval: {queries}, mean {difference}"
    else:
        over = f"{-low - margin:.6g} more than the margin {margin:g}"
        why = f"may lose {-low:.6g} to {baseline}, {over} ({numbers})"
        far, half = abs(row["difference"] + margin), (high - low) / 2
        if row["verdict"] == UNDECIDED and far > 0:
            more = f"; about {math.ceil(row['queries'] * (half / far) ** 2):,} such queries would decide"
    return f"{why}: {row['verdict']}{more}"


def check_means(
    bounds: Iterable[tuple[Measure, float]], means: Mapping[str, float], name: str | None = None
) -> Iterator[Verdict]:
    """The verdicts of `--fail-under` on the means of one system."""
    for measure, bound in bounds:
        mean = means[str(measure)]
        verdict = HOLDS if mean >= bound else FAILS
        why = f"is {mean}, {'not ' if verdict == HOLDS else ''}below {bound}"
        if math.isnan(mean):
            why = f"is NaN: a query has no value, or none counts; expected at least {bound}"
        text = ("" if name is None else f"{name}: ") + f"the mean of {measure}"
        numbers = {"measure": str(measure), "system": name, "verdict": verdict, "mean": mean, "bound": bound}
        yield Verdict("--fail-under", text, verdict, f"{text} {why}", numbers, verdict == FAILS)


def hold(verdicts: Sequence[Verdict]) -> None:
    """Print undecided gates, and exit with a line for each failed gate, if any."""
    for each in verdicts:
        if each.verdict == UNDECIDED and not each.fails:
            note(each.line())
    if failed := [each.line() for each in verdicts if each.fails]:
        more = [f"and {len(failed) - _MOST:,} more gates failed"] if len(failed) > _MOST else []
        end(GATE, *failed[:_MOST], *more)


# ---- in the words of continuous integration ----


def write_junit(verdicts: Sequence[Verdict]) -> None:
    """Write a test case for each gate. Undecided gates that pass are skipped tests."""
    from xml.etree import ElementTree as ET

    kinds = ["failure" if each.fails else "" if each.verdict == HOLDS else "skipped" for each in verdicts]
    counts = {
        "tests": len(verdicts),
        "failures": kinds.count("failure"),
        "errors": 0,
        "skipped": kinds.count("skipped"),
    }
    texts = {name: str(count) for name, count in counts.items()}
    root = ET.Element("testsuites", texts)
    suite = ET.SubElement(root, "testsuite", texts, name="fastndcg compare")
    for each, kind in zip(verdicts, kinds, strict=True):
        case = ET.SubElement(suite, "testcase", classname=each.option.strip("-"), name=visible(each.name))
        if kind:
            ET.SubElement(case, kind, type=each.verdict, message=visible(each.text))
    ET.indent(root, "")
    write(f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, "unicode")}\n')


def write_github(compared: Comparison, verdicts: Sequence[Verdict]) -> None:
    """Write an annotation for each gate that does not pass, and a summary to the step page or stdout."""
    for each in verdicts:
        if each.verdict != HOLDS:
            title = _escaped(f"{each.name}: {each.verdict}").replace(":", "%3A").replace(",", "%2C")
            write(f"::{'error' if each.fails else 'warning'} title={title}::{_escaped(each.line())}\n")
    text = _summary(compared, verdicts)
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        write(text)
        return
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SourceError(
            f"GITHUB_STEP_SUMMARY: {path} cannot be written: {error.strerror}. Unset it to print the summary."
        ) from None


def _escaped(text: str) -> str:
    """Escape text for a GitHub workflow command."""
    return visible(text).replace("%", "%25")


def _summary(compared: Comparison, verdicts: Sequence[Verdict]) -> str:
    failed = sum(each.fails for each in verdicts)
    hold = f": {count_of(len(verdicts), 'gate')}, {failed:,} of which failed" if verdicts else ""
    parts = [f"### fastndcg compare{hold}", markdown_text(compared.heading())]
    parts.append(compared.to_markdown().rstrip())
    parts += [f"> {markdown_text(f'caution: {caution}')}" for caution in compared.cautions]
    ordered = sorted(verdicts, key=lambda each: (not each.fails, each.verdict == HOLDS))
    rows = [["gate", "verdict", "why"]]
    rows += [[each.name, each.verdict, each.text.removeprefix(f"{each.name} ")] for each in ordered[:_ROWS]]
    parts += [markdown_table(rows, 3)] if verdicts else []
    parts += [f"... and {len(ordered) - _ROWS:,} more"] if len(ordered) > _ROWS else []
    return "\n\n".join(parts) + "\n"
