"""`fastndcg history`: means by date in one file, what changed, and a page of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import pyarrow as pa

from fastndcg.cli import options
from fastndcg.cli.application import argument, command, option
from fastndcg.cli.output import note, refuse, typed_command, write, write_table
from fastndcg.cli.reading import ComparedSystems, ReadingOfMeans
from fastndcg.cli.scored import How, Inputs
from fastndcg.errors import count_of

Action = StrEnum("Action", ["add", "show", "page"])
Format = StrEnum("Format", ["table", "json", "csv", "markdown", "openmetrics"])

_DROPS = (("centre", "limit_low", "limit_high"), ("change_low", "change_high"), ("queries",), ("outside",))


@command
def history(
    action: Action = argument("add|show|page", "What to do."),
    *,
    given: ComparedSystems,
    history: Path = option("The file of the history.", ..., "--history", "-H"),
    measure: list[str] | None = options.MEASURES,
    at: str | None = option("When the values were true, as 2026-11-24.", metavar="DATE", show_default="now"),
    name: str | None = option("Name of the system.", show_default="that of the file, if several"),
    by: list[str] | None = option("Query-level column whose slices are added, or shown."),
    since: str | None = option("Show changes since then.", metavar="DATE", show_default="the first run"),
    threshold: float | None = option("Drawn in the pictures of a page.", metavar="NUMBER"),
    out: Path = option("HTML file to write.", Path("history.html"), "--out", "-o"),
    confidence: float = options.CONFIDENCE,
    convention: str | None = options.CONVENTION,
    reading: ReadingOfMeans,
    format: Format = option("How `show` writes to stdout.", Format.table),
    threads: int | None = options.THREADS,
    memory: str | None = options.MEMORY,
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

    options.check_confidence(confidence)
    kept = History(history)
    if action is Action.add:
        sources = given.sources(reading.of_paths())
        inputs = Inputs(sources, reading.roles(sources.score), How(convention, threads, memory))
        asked = options.read_measures(measure or []) or inputs.measures()
        runs = list(inputs.score_systems(asked, [*(by or []), *options.cutoff_columns(asked)], 0.0))
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
        from fastndcg.look.page import history_page

        history_page(kept, out, confidence=confidence, threshold=threshold, command=typed_command())
        return
    if format is Format.openmetrics:
        for option, value in {"--measure": measure, "--name": name, "--by": by, "--since": since}.items():
            if value:
                refuse(f"--format openmetrics is of all series, and {option} chooses some; leave it out")
        write(kept.openmetrics())
        return
    slices = ", ".join(by) if by else None
    found = pa.concat_tables(
        kept.table(each, name=name, by=slices, confidence=confidence, since=since).to_arrow()
        for each in (options.read_measures(measure) if measure else [None])
    )
    dates = found["at"].to_pylist()
    if format in (Format.json, Format.csv):
        found = found.set_column(0, "at", pa.array([each.isoformat() for each in dates]))
    else:
        has_hours = any((each.hour, each.minute) != (0, 0) for each in dates)
        texts = [f"{each:%Y-%m-%d %H:%M}" if has_hours else f"{each:%Y-%m-%d}" for each in dates]
        found = found.set_column(0, "date", pa.array(texts))
    keys = 1 + sum(each in found.column_names for each in ("name", "measure", "slice"))
    write_table(found, "runs", format, keys, _DROPS)
