"""`report`: compute the results for a page, and write the file. `history_page`: a page of a history."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastndcg.analysis import html
from fastndcg.analysis.compare import compare
from fastndcg.analysis.ranges import tie_range
from fastndcg.analysis.report_sections import Found, listed, sections_of
from fastndcg.api.evaluate import evaluate
from fastndcg.charts.plots import first_sure, over_time
from fastndcg.charts.theme import by_name
from fastndcg.common.files import check_writable
from fastndcg.common.table import shown_value
from fastndcg.errors import (
    FastndcgError,
    InputError,
    MeasureError,
    about,
    check_system,
    count_of,
    known_arguments,
    library,
)
from fastndcg.measures import as_measures
from fastndcg.scores.slices import column_names

if TYPE_CHECKING:
    from fastndcg.analysis.history import History
    from fastndcg.measures import Measures
    from fastndcg.rankings.rankings import Rankings

_LONGEST = 200  # most characters of a name on the page
_ADDRESSES = 100 << 30  # bytes; with a limit of 64 GB vl-convert 1.9 ended the process, with 100 GB it drew


@known_arguments
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
    """Write an HTML page about one or several systems, for readers who do not know this package.

    It begins with the answer: which system is better, by how much, how sure that is, where it is worse, and
    what to be careful about. The comparison, slices, the queries that differ most, the worst queries and
    what was evaluated follow. The page is one file without scripts that loads nothing from the network.
    Needs the extra `report`.

    Parameters
    ----------
    systems : Rankings, or a mapping of names to Rankings
    path : file to write
    measures : one or several of Measure, notation, or ir_measures object
        The answer and lists of queries use the first measure.
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
        The page is at `path`, whole or not at all.

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
    ExtraError, FastndcgError
        Altair or vl-convert-python is not installed; the virtual memory of this process is limited.

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
    check_extra()
    check_writable(path)
    rankings = by_name(systems, "Rankings, as read_parquet returns them", "n_docs", _LONGEST)
    names = dict(zip(map(str, systems) if isinstance(systems, Mapping) else rankings, rankings, strict=True))
    for name, each in zip(names, rankings.values(), strict=True):
        if not each.n_queries:
            raise InputError(f'"{name}" has no queries, so there is nothing to report')
    if baseline is not None:
        check_system(baseline, names, f'baseline="{baseline}"')
    asked, columns = as_measures(measures), column_names(by)
    scores, ties = {}, {}
    for name, each in rankings.items():
        with about(f'"{name}"'):
            scores[name] = evaluate(each, asked, threads=threads)
            with suppress(MeasureError):
                ties[name] = tie_range(each, asked, threads=threads)
    compared, slices = None, {}
    if len(scores) > 1:
        first = next(iter(scores)) if baseline is None else names[baseline]
        compared = compare(scores, baseline=first, confidence=confidence, missing=missing)
        slices = compared.slices(columns) if columns else {}
    own = {names[name]: text for name, text in (sources or {}).items() if name in names}
    found = Found(rankings, scores, ties, compared, slices, asked, columns, confidence, own)
    named = listed(list(scores)) if len(scores) < 4 else count_of(len(scores), "system")
    queries = count_of(max(each.n_queries for each in scores.values()), "query")
    subtitle = f"{queries}; {', '.join(map(str, asked))}; made {_now()}"
    html.write(path, title or f"{found.main} of {named}", subtitle, sections_of(found, command))


def history_page(
    history: History,
    path: str | os.PathLike[str],
    *,
    confidence: float,
    threshold: float | None,
    command: str,
) -> None:
    """Write an HTML page of all measures of a history by date: a picture and a table each.

    It is written whole or not at all, loads nothing from the network, and needs the extra `report`. Raises
    what `History.table` and `report` raise.
    """
    check_extra()
    check_writable(path)
    every = history.table(confidence=confidence).to_pylist()
    series: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in every:
        series.setdefault(row["measure"], {}).setdefault(row.get("name") or "", []).append(row)
    sections = []
    for number, (measure, systems) in enumerate(series.items()):
        parts = []
        for name, rows in systems.items():
            caption = f"{measure} of {name}" if name else measure
            columns = [column for column in rows[0] if column not in ("at", "name", "measure")]
            shown = [["date", *columns]]
            for row in rows:
                date = f"{row['at']:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
                shown.append([date, *(shown_value(row[column]) for column in columns)])
            parts.append(html.paragraph(f"{caption}: {first_sure(rows)}."))
            parts.append(html.picture(over_time, rows, threshold))
            parts.append(html.table(caption, shown, (0, len(columns))))
        sections.append(html.section(f"measure-{number}", measure, *parts))
    subtitle = f"{count_of(len({row['at'] for row in every}), 'run')}; made {_now()} by {command}"
    html.write(path, "Measures by date", subtitle, sections)


def check_extra() -> None:
    """Import the libraries of a page. Raise `ExtraError` if one is missing, and `FastndcgError` if the one
    that draws would end this process: V8 in vl-convert aborts where it cannot reserve addresses.
    """
    library("altair", "Altair", "report", "a report")
    library(*html.CONVERTER)
    with suppress(ModuleNotFoundError):  # Windows has no such limit
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if 0 <= limit < _ADDRESSES:
            raise FastndcgError(
                f"a report needs {_ADDRESSES >> 30} GB of virtual memory to draw its pictures, most of which "
                f"it only reserves; this process is limited to {limit / (1 << 30):.1f}. Lift the limit, as "
                "with ulimit -v unlimited"
            )


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
