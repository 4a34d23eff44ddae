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

from fastndcg.cli.application import option
from fastndcg.cli.exit_codes import GATE
from fastndcg.cli.options import FAIL_UNDER
from fastndcg.cli.output import end, note, refuse, write
from fastndcg.common.markup import markdown_table, markdown_text
from fastndcg.common.table import digits, name_of
from fastndcg.errors import SourceError, count_of, visible
from fastndcg.statistics.intervals import FAILS, HOLDS, UNDECIDED

if TYPE_CHECKING:
    from fastndcg.analysis.comparison import Comparison
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
    may_be_undecided: bool = False  # without ending the command with 1

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
        name, margin = self.no_worse_than, self.margin
        of_slices = {"--undecided-slices": self.undecided_slices, "--least-queries": self.least_queries}
        for given, value in {"--margin": margin, "--undecided": self.undecided, **of_slices}.items():
            if name is None and value is not None:
                refuse(f"{given} needs --no-worse-than NAME, the system that others are compared with")
            if not by and value is not None and given in of_slices:
                refuse(f"{given} needs --by COLUMN, whose values are the slices")
        if name is not None and baseline not in (None, name):
            refuse(f"--baseline {baseline} and --no-worse-than {name} differ; name one system")
        if margin is not None and not 0 <= margin < math.inf:
            refuse(f"--margin: {margin:g} is not a loss to accept; expected 0 or more, as in --margin 0.002")

    def failed(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """The verdicts that make the command exit with 1."""
        return [
            each
            for each in verdicts
            if each.verdict == FAILS or (each.verdict == UNDECIDED and not each.may_be_undecided)
        ]

    def facts(self, verdicts: list[Verdict], low: list[Verdict] | None) -> dict[str, Any]:
        """Verdicts for JSON: of `--no-worse-than`, and `low` of `--fail-under`, if requested."""
        facts: dict[str, Any] = {}
        if self.no_worse_than is not None:
            facts["gate"] = {
                "baseline": self.no_worse_than,
                "margin": self.margin or 0.0,
                "failed": [each.text for each in self.failed(verdicts)],
                "verdicts": [each.numbers for each in verdicts],
            }
        if low is not None:
            facts["fail_under"] = {"failed": [each.line() for each in self.failed(low)]}
        return facts

    def verdicts(
        self, compared: Comparison, slices: dict[tuple[Any, ...], Comparison], by: list[str]
    ) -> list[Verdict]:
        """The verdicts of `--no-worse-than` on each measure and slice, if it is given."""
        if self.no_worse_than is None:
            return []
        found = list(self._of_means(compared, {}))
        for key, of_slice in slices.items():
            found += self._of_means(of_slice, dict(zip(by, key, strict=True)))
        return found

    def _of_means(self, compared: Comparison, where: dict[str, Any]) -> Iterator[Verdict]:
        baseline, margin = str(self.no_worse_than), self.margin or 0.0
        least = (self.least_queries or 0) if where else 0
        table = compared.verdicts(baseline, margin, least_queries=least)
        named = ", ".join(
            f"{name} is null" if value is None else f"{name}={name_of(value)}"
            for name, value in where.items()
        )
        of_slice = f" where {named}" if named else ""
        undecided = (self.undecided_slices if where else None) or self.undecided
        for row in table.to_pylist():
            name, low, high = f"{row['measure']} of {row['system']}{of_slice}", row["low"], row["high"]
            verdict, difference = row["verdict"], f"difference {row['difference']:.6g}"
            queries = count_of(row["queries"], "query")
            numbers = f"{difference}, interval {low:.6g} to {high:.6g}, {queries}"
            is_small = row["queries"] < least
            if is_small:
                why = f"has {queries}, fewer than --least-queries {least} (mean {difference})"
            elif not (math.isfinite(low) and math.isfinite(high)):
                why = f"has no finite interval: {queries}, mean {difference}"
            else:
                over = f"{-low - margin:.6g} more than the margin {margin:g}"
                why = f"may lose {-low:.6g} to {baseline}, {over} ({numbers})"
            if verdict == UNDECIDED and row["needed"] is not None:
                why += f": undecided; about {row['needed']:,} such queries would decide"
            elif verdict != HOLDS:
                why += f": {verdict}"
            passes = is_small or undecided is Undecided.passes
            yield Verdict("--no-worse-than", name, verdict, f"{name} {why}", where | row, passes)


def check_means(
    bounds: Iterable[tuple[Measure, float]], means: Mapping[str, float], name: str | None = None
) -> Iterator[Verdict]:
    """The verdicts of `--fail-under` on the means of one system."""
    of_system = "" if name is None else f"{name}: "
    for measure, bound in bounds:
        mean = means[str(measure)]
        verdict = HOLDS if mean >= bound else FAILS
        why = f"is {mean}, {'not ' if verdict == HOLDS else ''}below {bound}"
        if math.isnan(mean):
            why = f"is NaN: a query has no value, or none counts; expected at least {bound}"
        text = f"{of_system}the mean of {measure}"
        numbers = {"measure": str(measure), "system": name, "verdict": verdict, "mean": mean, "bound": bound}
        yield Verdict("--fail-under", text, verdict, f"{text} {why}", numbers)


def hold(found: Sequence[Verdict], failed: Sequence[Verdict] | None = None) -> None:
    """Print undecided gates, and exit with a line for each failed gate, if any."""
    failed = [each for each in found if each.verdict != HOLDS] if failed is None else failed
    for each in found:
        if each.verdict == UNDECIDED and each not in failed:
            note(each.line())
    if failed:
        more = len(failed) - _MOST
        lines = [each.line() for each in failed[:_MOST]]
        end(GATE, *lines, *([f"and {more:,} more gates failed"] if more > 0 else []))


# ---- in the words of continuous integration ----


def write_junit(found: Sequence[Verdict], failed: Sequence[Verdict]) -> None:
    """Write a test case for each gate. Undecided gates that pass are skipped tests."""
    from xml.etree import ElementTree as ET

    def counts(**more: str) -> dict[str, str]:
        undecided = [each for each in found if each.verdict != HOLDS and each not in failed]
        numbers = {"tests": found, "failures": failed, "errors": (), "skipped": undecided}
        return more | {name: str(len(those)) for name, those in numbers.items()}

    whole = ET.Element("testsuites", counts())
    suite = ET.SubElement(whole, "testsuite", counts(name="fastndcg compare"))
    for each in found:
        case = ET.SubElement(suite, "testcase", classname=each.option.strip("-"), name=visible(each.name))
        if each in failed:
            ET.SubElement(case, "failure", type=each.verdict, message=visible(each.text))
        elif each.verdict != HOLDS:
            ET.SubElement(case, "skipped", message=visible(each.text))
    ET.indent(whole, "")
    write(f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(whole, "unicode")}\n')


def write_github(
    compared: Comparison, found: Sequence[Verdict], failed: Sequence[Verdict], *, ranks: bool
) -> None:
    """Write an annotation for each gate that does not pass, and a summary to the step page or stdout."""
    for each in found:
        if each.verdict != HOLDS:
            kind = "error" if each in failed else "warning"
            title = _escaped(f"{each.name}: {each.verdict}").replace(":", "%3A").replace(",", "%2C")
            write(f"::{kind} title={title}::{_escaped(each.line())}\n")
    text = _summary(compared, found, failed, ranks=ranks)
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
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _summary(
    compared: Comparison, found: Sequence[Verdict], failed: Sequence[Verdict], *, ranks: bool
) -> str:
    hold = f"{count_of(len(found), 'gate')}, {len(failed):,} of which failed"
    parts = [f"### fastndcg compare{f': {hold}' if found else ''}", markdown_text(compared.heading())]
    parts.append(compared.to_markdown(ranks=ranks).rstrip())
    parts += [f"> {markdown_text(f'caution: {caution}')}" for caution in compared.cautions]
    rows = [["gate", "verdict", "difference", "low", "high", "queries"]]
    ordered = sorted(found, key=lambda each: (each not in failed, each.verdict == HOLDS))
    for each in ordered[:_ROWS]:
        numbers = [each.numbers.get(name) for name in ("difference", "low", "high")]
        shown = ["" if number is None else digits(number, ".4f") for number in numbers]
        queries = each.numbers.get("queries")
        verdict = each.verdict if each.verdict == HOLDS else f"**{each.verdict}**"
        row = [markdown_text(each.name), verdict, *shown, "" if queries is None else f"{queries:,}"]
        rows.append(row)
    if found:
        parts.append(markdown_table(rows, 2, is_markdown=True))
    if len(ordered) > _ROWS:
        parts.append(f"... and {len(ordered) - _ROWS:,} more")
    return "\n\n".join(parts) + "\n"
