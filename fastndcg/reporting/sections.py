"""The sections of a page, made of the tables and charts that results have."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from fastndcg import plot
from fastndcg.analysis.anchors import anchors
from fastndcg.analysis.comparison import RANKS
from fastndcg.analysis.explain import explain
from fastndcg.common.table import Table, digits, name_of
from fastndcg.errors import MeasureError, visible
from fastndcg.reporting.answer import Found, answer, cautions, interval_of, slice_rows
from fastndcg.reporting.html import bullets, fold, paragraph, picture, result, section, table

if TYPE_CHECKING:
    from fastndcg.analysis.comparison import Comparison
    from fastndcg.typing import Chart

_KEEP = "\N{NO-BREAK SPACE}"
_LISTED, _EXPLAINED, _SLICES = 10, 5, 40  # queries in a list, and how many are explained; slices in a table


def sections_of(found: Found, command: str) -> Iterator[str]:
    """All sections, in order."""
    careful = cautions(found)
    yield section(
        "answer",
        "Answer",
        *map(paragraph, answer(found)),
        *([paragraph("Be careful:"), bullets(careful)] if careful else []),
    )
    if found.comparison is not None:
        yield section("comparison", "Comparison", *_comparison(found, found.comparison))
    if found.by:
        yield section("slices", f"Slices by {', '.join(found.by)}", *_slices(found))
    if found.comparison is not None:
        yield section("movers", "Largest movers", *_movers(found, found.comparison))
    yield section("worst", "Worst queries", *_worst(found))
    yield section("evaluated", "What was evaluated", *_evaluated(found, command))


def _comparison(found: Found, comparison: Comparison) -> Iterator[str]:
    yield paragraph(comparison.heading() + ".")
    yield picture(comparison.plot.effects)
    for system, baseline in comparison._pairs:
        rows = [row for row in comparison.rows if (row["system"], row["baseline"]) == (system, baseline)]
        yield _differences(f"{system} minus {baseline}", "measure", rows)
    if len(comparison.systems) > 2:
        yield result(f"Ranks of systems ({RANKS})", comparison.ranks())
    yield fold("All numbers of the comparison", result("Differences", Table(comparison.to_arrow(), 3)))
    for measure in found.measures:
        for system, baseline in comparison._pairs:
            drawn = picture(comparison.plot.differences, measure, system, baseline=baseline)
            yield fold(f"{measure} of each query: {system} minus {baseline}", drawn)


def _differences(caption: str, name: str, rows: Iterable[dict[str, Any]]) -> str:
    """The main numbers of the comparison."""
    rows = list(rows)
    counts = ["queries"] * (len({row["queries"] for row in rows}) > 1 or name == "slice")
    shown = [[name, "difference", "interval", "p", "better for", "worse for", *counts]]
    for row in rows:
        difference, interval = digits(row["difference"], "+.4f"), interval_of(row)
        p = "< 0.0001" if row["p_adjusted"] < 0.0001 else digits(row["p_adjusted"], ".4f")
        numbers = (f"{row[count]:,}" for count in ("wins", "losses", *counts))
        # a narrow screen breaks the interval once, and p nowhere
        keep = interval.replace(" to", f"{_KEEP}to"), p.replace(" ", _KEEP)
        shown.append([row[name], difference, *keep, *numbers])
    return table(caption, shown)


def _slices(found: Found) -> Iterator[str]:
    yield picture(plot.slices, found.scores, found.main, found.by, found.confidence)
    for system, baseline in found.comparison._pairs if found.slices and found.comparison else ():
        rows = slice_rows(found, system, baseline)
        largest = sorted(row["queries"] for row in rows)[-_SLICES:]
        title = f"{found.main}: {system} minus {baseline}"
        if len(rows) > _SLICES:
            title += f", the largest {_SLICES} of {len(rows):,} slices"
        rows = [row for row in rows if row["queries"] >= largest[0]][:_SLICES]
        yield _differences(title, "slice", rows)
    means = (result(name, scores.by(found.by, found.confidence)) for name, scores in found.scores.items())
    yield fold(f"Means by {', '.join(found.by)}", *means)


def _movers(found: Found, comparison: Comparison) -> Iterator[str]:
    for system, baseline in comparison._pairs:
        queries = comparison.movers(found.main, system, _LISTED, baseline=baseline)
        if len(queries):
            *columns, _, _, difference = queries.column_names
            named = queries.rename_columns([*columns, *map(visible, (baseline, system)), difference])
            yield result(f"{found.main}: {system} minus {baseline}", Table(named))
            yield from _explained(found, [baseline, system], queries)
        else:
            yield paragraph(f"No query differs between {system} and {baseline}.")


def _worst(found: Found) -> Iterator[str]:
    for name, scores in found.scores.items():
        queries = scores.worst(found.main, _LISTED)
        yield result(f"Lowest {found.main} of {name}", queries)
        yield from _explained(found, [name], queries)


def _explained(found: Found, systems: list[str], queries: Table) -> Iterator[str]:
    """The first queries rank by rank, for each system."""
    for query in queries[0][:_EXPLAINED].to_pylist():
        try:
            parts = [result(name, explain(found.rankings[name], found.main, query)) for name in systems]
        except MeasureError as error:
            parts = [paragraph(str(error))]
        yield fold(f"Rank by rank: {name_of(query)}", *parts)


def _evaluated(found: Found, command: str) -> Iterator[str]:
    systems = [["system", "source", "queries", "documents", "longest list", "judged"]]
    for name, each in found.rankings.items():
        counts = each.n_queries, each.n_docs, int(each.lengths.max(initial=0))
        judged = "unknown" if each.is_judged is None else f"{100 * each.is_judged.mean():.1f} %"
        systems.append([name, found.sources.get(name, "Python"), *map("{:,}".format, counts), judged])
    yield table("Systems", systems, 2)
    summaries = {name: scores.summary(found.confidence) for name, scores in found.scores.items()}
    means = [["system", "measure", "mean", "interval", "queries"]]
    for name, summary in summaries.items():
        for row in summary.rows:
            mean, interval = digits(row["mean"], ".4f"), interval_of(row, ".4f")
            means.append([name, row["measure"], mean, interval, f"{row['queries']:,}"])
    yield table(f"Means, with intervals of {100 * found.confidence:g} %", means, 2)
    yield fold("All numbers of the systems", *(result(*each) for each in summaries.items()))
    if found.curves:
        yield fold("Cutoffs", picture(plot.cutoffs, found.curves, found.main, found.confidence))
    for measure in found.measures:
        yield fold(f"Distribution of {measure}", picture(plot.distribution, found.scores, measure))
    yield fold("Grades", picture(plot.grades, found.rankings))
    yield fold("Worst, random and best order", picture(_draw_anchors, found))
    if found.ties:
        yield fold("Ties", picture(plot.ties, found.ties))
    said = [f"{measure}: {measure.definition.summary}" for measure in found.measures]
    said += [
        f"{name}: {scores.signature(measure)}"
        for name, scores in found.scores.items()
        for measure in found.measures
    ]
    said += [f"made by {command}", f"Python {sys.version.split()[0]} on {platform.platform()}"]
    for name in ("fastndcg", "numpy", "numba", "pyarrow", "altair", "vl-convert-python"):
        with suppress(PackageNotFoundError):
            said.append(f"{name} {version(name)}")
    yield fold("How each number was made", bullets(said))


def _draw_anchors(found: Found) -> Chart:
    of = (anchors(each, found.measures, threads=found.threads) for each in found.rankings.values())
    return plot.anchors(dict(zip(found.rankings, of, strict=True)))
