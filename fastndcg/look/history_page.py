"""`history_page`: a page of all series of a history."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastndcg.common.files import check_writable, whole_file
from fastndcg.errors import count_of
from fastndcg.look.blocks import Section, draw, picture_of, table_of
from fastndcg.look.page import check_extra, render
from fastndcg.look.timeline import first_sure, over_time

if TYPE_CHECKING:
    from fastndcg.decide.over_time import History


def history_page(
    history: History,
    path: str | os.PathLike[str],
    *,
    confidence: float = 0.95,
    threshold: float | None = None,
    title: str | None = None,
    command: str = "fastndcg.look.history_page.history_page(...) in Python",
) -> None:
    """Write an HTML page of all measures of a history by date: a picture and a table each.

    It is written whole or not at all, loads nothing from the network, and needs the extra `report`. Raises
    what `History.table` and `report` raise.
    """
    jinja = check_extra()
    check_writable(path)
    every = history.table(confidence=confidence).to_pylist()
    sections = []
    for number, measure in enumerate(dict.fromkeys(row["measure"] for row in every)):
        rows = [row for row in every if row["measure"] == measure]
        shown = [{"date": f"{row['at']:%Y-%m-%d %H:%M}"} | _without(row) for row in rows]
        blocks: list[Any] = []
        for name in dict.fromkeys(row.get("name") for row in rows):
            chart = over_time(history, measure, name=name, confidence=confidence, threshold=threshold)
            blocks.append(picture_of(chart))
        blocks.append(table_of(f"{measure} by date; {first_sure(rows)}", shown))
        sections.append(Section(f"measure-{number}", measure, blocks))
    draw(sections)
    runs = len({row["at"] for row in every})
    text = render(
        jinja,
        title=title or "Measures by date",
        subtitle=f"{count_of(runs, 'run')}; made {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by {command}",
        sections=sections,
    )
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def _without(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("at", "measure")}
