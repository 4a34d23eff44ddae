"""The answer and the sections of a page, of the tables and charts that results have.

The answer says which system is better, by how much, how sure that is, where it is worse, and what to be
careful about.
"""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.analysis.comparison import RANKS
from fastndcg.analysis.explain import explain
from fastndcg.analysis.html import bullets, fold, paragraph, picture, result, section, table
from fastndcg.charts import plots as plot
from fastndcg.common.table import Table, digits, name_of
from fastndcg.errors import MeasureError, count_of, visible
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.analysis.comparison import Comparison
    from fastndcg.analysis.ranges import Ranges
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores

_KEEP = "\N{NO-BREAK SPACE}"
# most queries in a list, explained queries, slices in a table, and slices in a sentence
_LISTED, _EXPLAINED, _SLICES, _NAMED = 10, 5, 40, 5


class Found(NamedTuple):
    """The results that a page shows."""

    rankings: dict[str, Rankings]
    scores: dict[str, Scores]  # scores of the chosen measures
    ties: dict[str, Ranges]
    comparison: Comparison | None  # with two or more systems
    slices: dict[tuple[Any, ...], Comparison]
    measures: tuple[Measure, ...]
    by: list[str]
    confidence: float
    sources: Mapping[str, str]

    @property
    def main(self) -> Measure:
        """The measure for the answer, pictures and lists of queries."""
        return self.measures[0]


def sections_of(found: Found, command: str) -> Iterator[str]:
    """Return all sections, in order."""
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


# ---- the answer ----


def answer(found: Found) -> list[str]:
    """Return the sentences of the answer."""
    sure = f"with {100 * found.confidence:g} % confidence"
    if found.comparison is None:
        ((name, scores),) = found.scores.items()
        row = scores.summary(found.confidence).rows[0]
        of = f"The mean {row['measure']} of {name} over {count_of(row['queries'], 'query')}"
        return [f"{of} is {digits(row['mean'], '.4f')} ({interval_of(row, '.4f')} {sure})."]
    rows = [row for row in found.comparison.rows if row["measure"] == str(found.main)]
    row = max(rows, key=lambda row: (not math.isnan(row["difference"]), row["difference"]))
    system, baseline = row["system"], row["baseline"]
    if math.isnan(row["difference"]):
        return [f"{system} and {baseline} cannot be compared: a mean of {found.main} is NaN."]
    first = f"It is open whether {system} is better than {baseline}"
    if not row["wins"] and not row["losses"]:
        first = f"{system} and {baseline} do not differ"
    elif row["low"] > 0 or row["high"] < 0:
        first = f"{system} is {'better' if row['low'] > 0 else 'worse'} than {baseline}"
    means = f"{row['mean']:.4f} against {row['baseline_mean']:.4f}, a difference of {row['difference']:+.4f}"
    said = [f"{first}: {found.main} is {means} ({interval_of(row)} {sure})."]
    said[0] += f" It is higher for {row['wins']:,} of {count_of(row['queries'], 'query')}, lower for "
    said[0] += f"{row['losses']:,} and equal for {row['ties']:,}."
    pair = [row for row in found.comparison.rows if (row["system"], row["baseline"]) == (system, baseline)]
    lower = [f"{each['measure']}, {_difference(each)}" for each in pair if each["high"] < 0]
    if lower and row["high"] >= 0:
        said.append(f"{system} is worse by {'; '.join(lower)}.")
    return said + _worse_slices(found, system, baseline)


def interval_of(row: Mapping[str, Any], form: str = "+.4f") -> str:
    ends = row["low"], row["high"]
    return "no interval" if any(map(math.isnan, ends)) else " to ".join(format(end, form) for end in ends)


def listed(names: list[str]) -> str:
    """Names as a part of a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _difference(row: Mapping[str, Any]) -> str:
    return f"{digits(row['difference'], '+.4f')} ({interval_of(row)})"


def _worse_slices(found: Found, system: str, baseline: str) -> list[str]:
    """Return the slices in which the system is worse than the baseline, the largest loss first."""
    if not found.slices:
        return []
    rows = [row for row in slice_rows(found, system, baseline) if row["difference"] < 0]
    clear = [row for row in rows if row["high"] < 0]
    listed = sorted(clear or rows, key=lambda row: row["difference"])[:_NAMED]
    named = "; ".join(f"{row['slice']}, {_difference(row)}" for row in listed)
    of = f"of {count_of(len(found.slices), 'slice')} by {', '.join(found.by)}"
    if clear:
        return [f"{system} is worse in {len(clear):,} {of}: {named}."]
    lower = f", but its mean is lower in {len(rows):,}: {named}" if rows else ""
    return [f"{system} is clearly worse in none {of}{lower}."]


def slice_rows(found: Found, system: str, baseline: str) -> list[dict[str, Any]]:
    """Return the row of each slice for the first measure and these systems, with the slice's name."""
    key = str(found.main), system, baseline
    return [
        {"slice": ", ".join(map(name_of, group))} | row
        for group, compared in found.slices.items()
        for row in compared.rows
        if (row["measure"], row["system"], row["baseline"]) == key
    ]


def cautions(found: Found) -> list[str]:
    """Return cautions; systems with the same caution are named together."""
    facts: dict[str, list[str]] = {}
    for name in found.rankings:
        for fact in _facts_of(found, name):
            facts.setdefault(fact, []).append(name)
    texts = [f"{listed(names)}: {fact}." for fact, names in facts.items()]
    sizes = {", ".join(map(name_of, group)): each.rows[0]["queries"] for group, each in found.slices.items()}
    small = [name for name, queries in sizes.items() if queries < SMALL]
    if small:
        more = f" and {len(small) - _NAMED:,} more" if len(small) > _NAMED else ""
        named = ", ".join(small[:_NAMED]) + more
        texts.append(f"Slices of fewer than {SMALL} queries, whose intervals are unreliable: {named}.")
    return [*(found.comparison.cautions if found.comparison else ()), *texts]


def _facts_of(found: Found, name: str) -> Iterator[str]:
    rankings, scores = found.rankings[name], found.scores[name]
    if rankings.is_judged is not None and (unjudged := int((~rankings.is_judged).sum())):
        yield f"{100 * unjudged / rankings.n_docs:.1f} % of the documents were not judged"
    if last := int((rankings.scores == -math.inf).sum()):
        yield f"{count_of(last, 'document')} scored NaN or minus infinity"
    if without := int((rankings.lengths == 0).sum()):
        yield f"{count_of(without, 'query')} without a returned document"
    if scores.weight is not None:
        yield "queries have weights, so that means are weighted"
    undefined: dict[tuple[int, Any], list[str]] = {}
    for measure, empty in zip(found.measures, scores._empty.sum(axis=1).tolist(), strict=True):
        undefined.setdefault((empty, measure.params.get("empty")), []).append(str(measure))
    for (empty, rule), measures in undefined.items():
        if empty:
            value = {"skip": "left out", "nan": "NaN"}.get(rule) or f"counted as {rule:g}"
            yield f"{', '.join(measures)} undefined for {count_of(empty, 'query')}, {value}"
    ties = found.ties[name].summary().to_pylist() if name in found.ties else []
    moves = [f"{row['measure']} from {row['worst']:.4f} to {row['best']:.4f}" for row in ties if row["moves"]]
    if moves:
        yield f"the order of tied documents could move {', '.join(moves)}"


# ---- sections ----


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
    """Return the main numbers of the comparison."""
    rows = list(rows)
    counts = ["queries"] * (len({row["queries"] for row in rows}) > 1 or name == "slice")
    shown = [[name, "difference", "interval", "p", "better for", "worse for", *counts]]
    for row in rows:
        difference, interval = digits(row["difference"], "+.4f"), interval_of(row)
        p = "< 0.0001" if row["p_adjusted"] < 0.0001 else digits(row["p_adjusted"], ".4f")
        numbers = (f"{row[count]:,}" for count in ("wins", "losses", *counts))
        # on narrow screens the interval may break once, p never
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
    """Return the first queries rank by rank, for each system."""
    for query in queries[0][:_EXPLAINED].to_pylist():
        try:
            parts = [result(name, explain(found.rankings[name], found.main, query)) for name in systems]
        except MeasureError as error:
            parts = [paragraph(str(error))]
        yield fold(f"Rank by rank: {name_of(query)}", *parts)


def _evaluated(found: Found, command: str) -> Iterator[str]:
    from importlib.metadata import PackageNotFoundError, version  # here, as it imports email and tempfile

    systems = [["system", "source", "queries", "documents", "longest list", "judged"]]
    for name, each in found.rankings.items():
        counts = each.n_queries, each.n_docs, int(each.lengths.max(initial=0))
        judged = "unknown" if each.is_judged is None else f"{100 * each.is_judged.mean():.1f} %"
        systems.append([name, found.sources.get(name, "Python"), *map("{:,}".format, counts), judged])
    yield table("Systems", systems, 2)
    for name, scores in found.scores.items():
        yield result(f"Means of {name}", scores.summary(found.confidence))
    for measure in found.measures:
        yield fold(f"Distribution of {measure}", picture(plot.distribution, found.scores, measure))
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
