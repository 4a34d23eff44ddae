"""`fastndcg history`: values of many times in a folder, what changed, and a page of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import pyarrow as pa

from fastndcg.cli import options
from fastndcg.cli.application import argument, command, option
from fastndcg.cli.gates import Verdict, check_means, hold
from fastndcg.cli.inputs import ReadingOfMeans, Systems
from fastndcg.cli.output import Format, note, refuse, typed_command, write_table
from fastndcg.cli.scores import Evaluation
from fastndcg.errors import count_of

Action = StrEnum("Action", ["add", "show", "page"])

_DROPS = (("change_low", "change_high"), ("queries",), ("paired",), ("low", "high"))


@command
def history(
    action: Action = argument("add|show|page", "What to do."),
    *,
    given: Systems,
    history: Path = option("Folder of the history.", ..., "--history", "-H"),
    measure: list[str] | None = options.MEASURES,
    at: str | None = option("Date of the values, such as 2026-11-24.", metavar="DATE", show_default="now"),
    name: str | None = option("Name of the system.", show_default="that of the file, if several"),
    fail_under: list[str] | None = option(
        "Exit with 1 if the last mean is NaN or below this number; for `show`, repeatable.",
        metavar="MEASURE=NUMBER",
    ),
    out: Path = option("HTML file to write.", Path("history.html"), "--out", "-o"),
    confidence: float = options.CONFIDENCE,
    convention: str | None = options.CONVENTION,
    reading: ReadingOfMeans,
    format: Format = option("Output format of `show` on stdout.", Format.table),
    threads: int | None = options.THREADS,
    memory: str | None = options.MEMORY,
) -> None:
    """Keep values by date, and show what changed and since when.

    `add` scores files as `compare` does and stores the values of each query; of stored results it takes all
    measures by default. A date is added completely or not at all, and never overwritten. `show` prints means,
    intervals, changes, and since when a change is significant; dates with the same queries are compared in
    pairs. `page` writes an HTML page and requires the extra report.

    \b
    Examples:
      fastndcg history add predictions.parquet -m nDCG@10 --history search --at 2026-11-24
      fastndcg history show -H search -m nDCG@10 --fail-under nDCG@10=0.6
      fastndcg history page -H search -o search.html
    """
    from fastndcg.analysis.history import History

    options.check_confidence(confidence)
    kept = History(history)
    if action is not Action.show and fail_under:
        refuse(f"--fail-under cannot be used with {action.value}; pass it to `fastndcg history show`")
    if action is Action.add:
        sources = given.sources(reading)
        asked = options.read_measures(measure or [])
        how = Evaluation(convention, threads, memory, None)
        inputs = how.inputs(sources, reading.roles(sources.score))
        runs = list(how.score_systems(inputs, asked or inputs.measures(), 0.0))
        if name is not None and len(runs) > 1:
            refuse("--name applies to one system; several take the names of their files")
        for each in runs:
            run_name = (each.run or "") if len(runs) > 1 else (name or "")
            kept.add(each.scores, at=at, name=run_name)
            note(
                f"{history}: {run_name + ', ' if run_name else ''}{count_of(each.scores.n_queries, 'query')}"
            )
        return
    if given.paths:
        refuse(f"{action.value} reads --history alone; {given.paths[0]} is for `fastndcg history add`")
    if action is Action.page:
        from fastndcg.analysis.report import history_page

        history_page(kept, out, confidence=confidence, command=typed_command())
        return
    bounds = options.read_gates(fail_under or [])
    chosen = options.read_measures(measure, bounds) if measure else [None]
    tables = {each: kept.table(each, name=name, confidence=confidence) for each in chosen}
    joined = pa.concat_tables(each.to_arrow() for each in tables.values())
    verdicts: list[Verdict] = []
    for gate in bounds:
        table = tables.get(gate[0]) or kept.table(gate[0], name=name)
        last = {row.get("name"): row for row in table.to_pylist()}  # by date
        for system, row in last.items():
            verdicts += check_means([gate], {row["measure"]: row["mean"]}, system)
    is_text = format is Format.table
    days = [f"{each:%Y-%m-%d %H:%M}".removesuffix(" 00:00") for each in joined["at"].to_pylist()]
    if is_text:
        for day, row in zip(days, joined.to_pylist(), strict=True):
            if row["differs"] is not None:
                note(f"{day}: {row['measure']} is not comparable with the time before: {row['differs']}")
        joined = joined.drop_columns("differs").set_column(0, "date", pa.array(days))
    else:
        joined = joined.set_column(0, "at", pa.array([each.isoformat() for each in joined["at"].to_pylist()]))
    write_table(joined, "runs", format, joined.column_names.index("queries"), _DROPS)
    hold(verdicts)
