"""Gates in the words of continuous integration: JUnit's XML, and GitHub's annotations and step summary."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fastndcg.cli.gates import HOLDS, Verdict
from fastndcg.cli.output import write
from fastndcg.common.markup import markdown_table, markdown_text
from fastndcg.common.table import digits
from fastndcg.errors import SourceError, count_of, visible

if TYPE_CHECKING:
    from fastndcg.decide.comparison import Comparison

_ROWS = 500  # gates that a summary lists, of which GitHub takes 1 MiB


def write_junit(found: Sequence[Verdict], failed: Sequence[Verdict]) -> None:
    """A test case for each gate. One that is undecided, and passes so, is skipped."""
    from xml.sax.saxutils import quoteattr

    def attributes(**values: object) -> str:
        return "".join(f" {name}={quoteattr(visible(str(value)))}" for name, value in values.items())

    undecided = [each for each in found if each.verdict != HOLDS and each not in failed]
    counts = attributes(tests=len(found), failures=len(failed), errors=0, skipped=len(undecided))
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites{counts}>"]
    lines.append(f"<testsuite{attributes(name='fastndcg compare')}{counts}>")
    for each in found:
        case = f"<testcase{attributes(classname=each.option.strip('-'), name=each.name)}"
        if each.verdict == HOLDS:
            lines.append(f"{case}/>")
        elif each in failed:
            lines.append(f"{case}><failure{attributes(type=each.verdict, message=each.text)}/></testcase>")
        else:
            lines.append(f"{case}><skipped{attributes(message=each.text)}/></testcase>")
    write("\n".join([*lines, "</testsuite>", "</testsuites>", ""]))


def write_github(
    compared: Comparison, found: Sequence[Verdict], failed: Sequence[Verdict], *, ranks: bool
) -> None:
    """An annotation for each gate that does not hold; then a summary, for the step's page or for stdout."""
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
    """A text in a command of GitHub's runners."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _summary(
    compared: Comparison, found: Sequence[Verdict], failed: Sequence[Verdict], *, ranks: bool
) -> str:
    hold = f"{count_of(len(found), 'gate')}, {len(failed):,} of which do not hold"
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
