"""`report`: compute the results for a page, and write the file. `history_page`: a page of a history."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastndcg.common.files import check_writable, whole_file
from fastndcg.common.table import quoted
from fastndcg.errors import count_of, library, visible, warn

if TYPE_CHECKING:
    from fastndcg.analysis.history import History
    from fastndcg.measures import Measures
    from fastndcg.rankings.rankings import Rankings


def report(
    systems: Rankings | Mapping[str, Rankings],
    path: str | os.PathLike[str],
    *,
    measures: Measures = "nDCG@10",
    baseline: str | None = None,
    by: str | Sequence[str] = (),
    confidence: float = 0.95,
    missing: str | float = "refuse",
    title: str | None = None,
    sources: Mapping[str, str] | None = None,
    command: str = "fastndcg.report(...) in Python",
    threads: int | None = None,
) -> None:
    """Write an HTML page about one or several systems: means, comparison, pictures, notable queries.

    The page is one file that loads nothing from the network. Tables can be sorted, and long tables are split
    into pages. Needs the extra `plot`.

    Parameters
    ----------
    systems : Rankings, or a mapping of names to Rankings
    path : file to write
    measures : one or several of Measure, notation, or ir_measures object
        Lists of queries use the first measure. Pictures of the other measures are closed until the reader
        opens them.
    baseline : name, optional
        The system that all others are compared with. Default: the first.
    by : str or sequence of str
        Kept columns whose groups of queries are shown.
    confidence : float
        Confidence of all intervals.
    missing : "refuse", "drop" or a number
        What to do with queries that some systems lack, as in `compare`.
    title : str, optional
    sources : mapping of names to texts, optional
        Where the rankings of a system come from.
    command : str
        The command that made the page, which the page shows.
    threads : int, optional
        Default: all threads that Numba has. The values do not depend on it.

    Returns
    -------
    None
        The page is at `path`, whole or not at all. Pictures are drawn by another process. If it dies, as
        where memory is short, the page and a `FastndcgWarning` say which pictures are missing and why, and
        the page has their numbers.

    Raises
    ------
    InputError
        A system has no queries, or lacks queries of another; the baseline is not one of the systems; the
        confidence is not between 0 and 1.
    InputTypeError
        A system is not Rankings.
    ColumnError
        A column of `by` was not kept.
    SourceError
        The path cannot be written.
    ExtraError
        Altair, vl-convert-python, Jinja2 or SciPy is not installed.

    See Also
    --------
    compare : compute the comparison as a table.
    explain : explain one query, rank by rank.

    Examples
    --------
    >>> import os, tempfile
    >>> from fastndcg import Rankings
    >>> bm25 = Rankings.from_lists([[0, 1, 2], [1, 0]], queries={"country": ["de", "fr"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report({"bm25": bm25}, f"{folder}/report.html", measures=["nDCG@10", "RR"], by="country")
    ...     os.listdir(folder)
    ['report.html']
    """
    jinja = check_extra()
    from fastndcg.reporting.blocks import draw
    from fastndcg.reporting.facts import find
    from fastndcg.reporting.sections import sections_of

    check_writable(path)
    found = find(systems, measures, baseline, by, confidence, missing, sources, threads)
    names = list(found.rankings)
    named = " and ".join(names) if len(names) < 4 else count_of(len(names), "system")
    queries = count_of(max(each.n_queries for each in found.rankings.values()), "query")
    sections = list(sections_of(found, command))
    missing_pictures = draw(sections)
    subtitle = f"{queries}; {', '.join(map(str, found.measures))}; made {_now()}"
    _write(path, jinja, title=title or f"{found.main} of {named}", subtitle=subtitle, sections=sections)
    if missing_pictures:
        first = missing_pictures[0]
        warn(
            f"{path} lacks {count_of(len(missing_pictures), 'picture')}, but has the numbers; the first is "
            f"{quoted(first.title)}: {first.missing}. Write it again with more memory (ulimit -v), or with "
            "another version of vl-convert-python."
        )


def history_page(
    history: History,
    path: str | os.PathLike[str],
    *,
    confidence: float,
    threshold: float | None,
    command: str,
) -> None:
    """Write an HTML page of all measures of a history by date: a picture and a table each.

    It is written whole or not at all, loads nothing from the network, and needs the extra `plot`. Raises
    what `History.table` and `report` raise.
    """
    jinja = check_extra()
    from fastndcg.charts.series import first_sure, over_time
    from fastndcg.reporting.blocks import Section, draw, picture_of, table_of

    check_writable(path)
    every = history.table(confidence=confidence).to_pylist()
    sections = []
    for number, measure in enumerate(dict.fromkeys(row["measure"] for row in every)):
        rows = [row for row in every if row["measure"] == measure]
        blocks: list[Any] = []
        for name in dict.fromkeys(row.get("name") for row in rows):
            chart = over_time([row for row in rows if row.get("name") == name], threshold)
            blocks.append(picture_of(chart))
        shown = [
            {"date": f"{row['at']:%Y-%m-%d %H:%M}"}
            | {key: value for key, value in row.items() if key not in ("at", "measure")}
            for row in rows
        ]
        blocks.append(table_of(f"{measure} by date; {first_sure(rows)}", shown))
        sections.append(Section(f"measure-{number}", measure, blocks))
    draw(sections)
    subtitle = f"{count_of(len({row['at'] for row in every}), 'run')}; made {_now()} by {command}"
    _write(path, jinja, title="Measures by date", subtitle=subtitle, sections=sections)


def check_extra() -> Any:
    """Import Jinja2 and the other libraries of a page. Raise `ExtraError` if one is missing."""
    for module, name in (("altair", "Altair"), ("vl_convert", "vl-convert-python"), ("scipy", "SciPy")):
        library(module, name, "plot", "a report")
    return library("jinja2", "Jinja2", "plot", "a report")


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def _write(path: str | os.PathLike[str], jinja: Any, **parts: Any) -> None:
    """Write the template with its style and script. All text is escaped, and no other script may run."""
    import hashlib  # here, because it is slow to import
    from importlib import resources  # here, because it imports tempfile, which imports random

    from fastndcg._version import __version__

    folder = resources.files("fastndcg.reporting")
    page, style, script = (
        (folder / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", "page.js")
    )
    for name, text in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        parts |= {name: jinja.utils.markupsafe.Markup(text), f"{name}_hash": digest}
    template = jinja.Environment(
        autoescape=True,
        undefined=jinja.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,  # not of Markup
    ).from_string(page)
    whole = template.render(**parts, version=__version__)
    with whole_file(path) as draft:
        draft.write_text(whole, encoding="utf-8")
