"""`fastndcg history`: means by date in one file, what changed, and a page of it."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fastndcg.cli.application import command
from fastndcg.cli.compare import ComparedSystems, measures_of_all
from fastndcg.cli.meanings import check_confidence, cutoff_columns, read_measures
from fastndcg.cli.options import ConfidenceOption, MeasureOption, MemoryOption, ThreadsOption
from fastndcg.cli.options import Format as Shown
from fastndcg.cli.output import note, refuse, shown_as, write, write_csv, write_json
from fastndcg.cli.reading import ReadingOfMeans, open_paths
from fastndcg.cli.scored import (
    ConventionOption,
    How,
    Scored,
    open_runs,
    read_convention,
    scored_paths,
    scored_runs,
)
from fastndcg.common.table import shown_value
from fastndcg.errors import count_of

Action = StrEnum("Action", ["add", "show", "page"])
Format = StrEnum("Format", ["table", "json", "csv", "markdown", "openmetrics"])

_DROPS = (("centre", "limit_low", "limit_high"), ("change_low", "change_high"), ("queries",), ("outside",))


@command
def history(
    action: Annotated[Action, typer.Argument(help="What to do.")],
    *,
    given: ComparedSystems,
    history: Annotated[Path, typer.Option("--history", "-H", help="The file of the history.")],
    measure: MeasureOption = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="When the values were true, as 2026-11-24.", show_default="now"),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the system.", show_default="that of the file, if several")
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Query-level column whose slices are added, or shown.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Show changes since then.", show_default="the first run"),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Drawn in the pictures of a page.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path("history.html"),
    confidence: ConfidenceOption = 0.95,
    convention: ConventionOption = None,
    reading: ReadingOfMeans,
    format: Annotated[Format, typer.Option("--format", help="How `show` writes to stdout.")] = Format.table,  # noqa: A002 - the option's name
    threads: ThreadsOption = None,
    memory: MemoryOption = None,
) -> None:
    """Keep means by date, and show what changed since when.

    `add` scores files as `compare` does, and adds their means: of stored results, by default, all that they
    have. Nothing is ever taken from a history, two processes may add at once, and a run is added whole or not
    at all. `show` has intervals, changes, and since when a change is sure; --format openmetrics is for a
    scraper. `page` needs the extra report.

    \b
    Examples:
      fastndcg history add predictions.parquet -m nDCG@10 --history search.parquet --at 2026-11-24
      fastndcg history add today.parquet -m nDCG@10 --by country -H search.parquet
      fastndcg history show -H search.parquet -m nDCG@10 --by country
      fastndcg history page -H search.parquet -o search.html
    """
    from fastndcg.decide.over_time import History

    check_confidence(confidence)
    kept = History(history)
    if action is Action.add:
        runs = _scored(given, measure, by or [], convention, reading, threads, memory)
        if name is not None and len(runs) > 1:
            refuse("--name is for one system; several are named by their files")
        for each in runs:
            own = (each.run or "") if len(runs) > 1 else (name or "")
            kept.add(each.scores, at=at, name=own, by=by or [])
            note(f"{history}: {own + ', ' if own else ''}{count_of(each.scores.n_queries, 'query')}")
        return
    if given.paths:
        refuse(f"{action.value} reads --history alone; {given.paths[0]} is for `fastndcg history add`")
    if action is Action.page:
        import shlex
        import sys

        from fastndcg.look.history_page import history_page

        words = shlex.join(["fastndcg", *sys.argv[1:]])
        history_page(kept, out, confidence=confidence, threshold=threshold, command=words)
        return
    if format is Format.openmetrics:
        for option, value in {"--measure": measure, "--name": name, "--by": by, "--since": since}.items():
            if value:
                refuse(f"--format openmetrics is of all series, and {option} chooses some; leave it out")
        write(kept.openmetrics())
        return
    asked = read_measures(measure, []) if measure else [None]
    slices = ", ".join(by) if by else None
    rows = [
        row
        for each in asked
        for row in kept.table(each, name=name, by=slices, confidence=confidence, since=since).to_pylist()
    ]
    _show(rows, format)


def _scored(
    given: ComparedSystems,
    measure: list[str] | None,
    by: list[str],
    convention: str | None,
    reading: ReadingOfMeans,
    threads: int | None,
    memory: str | None,
) -> list[Scored]:
    sources = given.sources(reading.of_paths())
    roles = reading.roles(sources.score)
    opened = {path: open_paths([path], threads) for path in sources.paths} | open_runs(sources.runs, threads)
    how = How(read_convention(convention, anchored=False), False, threads, memory)
    stored = how.find_stored(opened, roles)
    asked = read_measures(measure or [], []) or measures_of_all([found.measures for found in stored.values()])
    roles = replace(roles, keep=tuple(dict.fromkeys([*by, *cutoff_columns(asked)])))
    if sources.paths:
        return [*scored_paths(sources, opened, roles, asked, stored, how)]
    return [*scored_runs(sources, roles, asked, stored, "0", how)]


def _show(rows: list[dict[str, Any]], format: Format) -> None:  # noqa: A002 - the option's name
    if format is Format.json:
        write_json({"runs": [row | {"at": row["at"].isoformat()} for row in rows]})
    elif format is Format.csv:
        write_csv([row | {"at": row["at"].isoformat()} for row in rows])
    else:
        names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
        texts = [["date", *names[1:]]]
        for row in rows:
            at = f"{row['at']:%Y-%m-%d}" if not _has_hours(rows) else f"{row['at']:%Y-%m-%d %H:%M}"
            texts.append([at, *(shown_value(row[name]) for name in names[1:])])
        left = 1 + sum(name in names for name in ("name", "measure", "slice"))
        write(shown_as(Shown(format.value), texts, left, _DROPS) + "\n")


def _has_hours(rows: list[dict[str, Any]]) -> bool:
    return any((row["at"].hour, row["at"].minute) != (0, 0) for row in rows)
