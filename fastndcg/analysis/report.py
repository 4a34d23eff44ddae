"""`report`: an HTML page about systems, from the answer to what was evaluated; and the page of a history."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.analysis.compare import compare
from fastndcg.analysis.explain import explain
from fastndcg.analysis.html import CONVERTER, bullets, fold, paragraph, picture, section, table, write
from fastndcg.api.evaluate import evaluate
from fastndcg.charts import plots
from fastndcg.charts.theme import by_name
from fastndcg.common.files import check_writable
from fastndcg.common.table import Table, digits, name_of, shown_value
from fastndcg.errors import (
    InputError,
    MeasureError,
    about,
    check_system,
    count_of,
    known_arguments,
    library,
    visible,
)
from fastndcg.measures import as_measures
from fastndcg.scores.slices import column_names
from fastndcg.statistics.significance import SMALL

if TYPE_CHECKING:
    from fastndcg.analysis.compare import Comparison
    from fastndcg.analysis.history import History
    from fastndcg.measures import Measure, Measures
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores

_KEEP = "\N{NO-BREAK SPACE}"
_LONGEST = 200  # most characters of a name on the page
# most queries in a list, explained queries, slices in a table, and slices in a sentence
_LISTED, _EXPLAINED, _SLICES, _NAMED = 10, 5, 40, 5


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
    ExtraError
        Altair or vl-convert-python is not installed.

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
    if baseline is not None:
        check_system(baseline, names, f'baseline="{baseline}"')
    asked, columns, scores = as_measures(measures), column_names(by), {}
    for name, each in rankings.items():
        with about(f'"{name}"'):
            if not each.n_queries:
                raise InputError(f'"{name}" has no queries, so there is nothing to report')
            scores[name] = evaluate(each, asked, threads=threads)
    compared, slices = None, {}
    if len(scores) > 1:
        first = next(iter(scores)) if baseline is None else names[baseline]
        compared = compare(scores, baseline=first, confidence=confidence, missing=missing)
        slices = compared.slices(columns) if columns else {}
    page = _Page(rankings, scores, compared, slices, asked[0], columns, confidence)
    systems_in_words = _listed(list(scores)) if len(scores) < 4 else count_of(len(scores), "system")
    queries = count_of(max(each.n_queries for each in scores.values()), "query")
    subtitle = f"{queries}; {', '.join(map(str, asked))}; made {_now()}"
    shown = {names[name]: text for name, text in (sources or {}).items() if name in names}
    write(path, title or f"{page.main} of {systems_in_words}", subtitle, page.sections(shown, command))


def history_page(history: History, path: str | os.PathLike[str], *, confidence: float, command: str) -> None:
    """Write an HTML page of all measures of a history by date: a picture and a table for each system.

    It is written whole or not at all, loads nothing from the network, and needs the extra `report`. Raises
    what `History.table` and `report` raise.
    """
    check_extra()
    check_writable(path)
    every = history.table(confidence=confidence).to_pylist()
    series: dict[str, list[dict[str, Any]]] = {}
    for row in every:
        name = f" of {row['name']}" if row.get("name") else ""
        series.setdefault(row["measure"] + name, []).append(row)
    sections = []
    for number, (caption, rows) in enumerate(series.items()):
        columns = [column for column in rows[0] if column not in ("at", "name", "measure")]
        shown = [["date", *columns]]
        for row in rows:
            date = f"{row['at']:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
            shown.append([date, *(shown_value(row[column]) for column in columns)])
        parts = picture(plots.over_time, rows), table("Values by date", shown, (0, len(columns)))
        sections.append(section(f"series-{number}", caption, paragraph(f"{plots.first_sure(rows)}."), *parts))
    subtitle = f"{count_of(len({row['at'] for row in every}), 'run')}; made {_now()} by {command}"
    write(path, "Measures by date", subtitle, sections)


def check_extra() -> None:
    """Import the libraries of a page. Raise `ExtraError` if one is missing."""
    library("altair", "Altair", "report", "a report")
    library(*CONVERTER)


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


class _Page(NamedTuple):
    """The results that a page shows, and its sections."""

    rankings: dict[str, Rankings]
    scores: dict[str, Scores]  # of the chosen measures
    comparison: Comparison | None  # of two or more systems
    slices: dict[tuple[Any, ...], Comparison]
    main: Measure  # for the answer, pictures and lists of queries
    by: list[str]
    confidence: float

    def sections(self, sources: Mapping[str, str], command: str) -> Iterator[str]:
        careful = self.cautions()
        said = [
            *map(paragraph, self.answer()),
            *([paragraph("Be careful:"), bullets(careful)] if careful else []),
        ]
        yield section("answer", "Answer", *said)
        if self.comparison is not None:
            yield section("comparison", "Comparison", *self._compared(self.comparison))
        if self.by:
            yield section("slices", f"Slices by {', '.join(self.by)}", *self._sliced())
        if self.comparison is not None:
            yield section("movers", "Largest movers", *self._movers(self.comparison))
        yield section("worst", "Worst queries", *self._worst())
        yield section("evaluated", "What was evaluated", *self._evaluated(sources, command))

    def answer(self) -> list[str]:
        """Which system is better, by how much, how sure that is, and where it is worse, in sentences."""
        sure = f"with {100 * self.confidence:g} % confidence"
        if self.comparison is None:
            ((name, scores),) = self.scores.items()
            row = scores.summary(self.confidence).rows[0]
            of = f"The mean {row['measure']} of {name} over {count_of(row['queries'], 'query')}"
            return [f"{of} is {digits(row['mean'], '.4f')} ({_interval_of(row, '.4f')} {sure})."]
        rows = [row for row in self.comparison.rows if row["measure"] == str(self.main)]
        row = max(rows, key=lambda row: (not math.isnan(row["difference"]), row["difference"]))
        system, baseline = row["system"], row["baseline"]
        if math.isnan(row["difference"]):
            return [f"{system} and {baseline} cannot be compared: a mean of {self.main} is NaN."]
        first = f"It is open whether {system} is better than {baseline}"
        if not row["wins"] and not row["losses"]:
            first = f"{system} and {baseline} do not differ"
        elif row["low"] > 0 or row["high"] < 0:
            first = f"{system} is {'better' if row['low'] > 0 else 'worse'} than {baseline}"
        means = (
            f"{row['mean']:.4f} against {row['baseline_mean']:.4f}, a difference of {row['difference']:+.4f}"
        )
        said = [f"{first}: {self.main} is {means} ({_interval_of(row)} {sure})."]
        counted = f"It is higher for {row['wins']:,} of {count_of(row['queries'], 'query')}"
        said[0] += f" {counted}, lower for {row['losses']:,} and equal for {row['ties']:,}."
        pair = [
            each for each in self.comparison.rows if (each["system"], each["baseline"]) == (system, baseline)
        ]
        lower = [f"{each['measure']}, {_difference(each)}" for each in pair if each["high"] < 0]
        if lower and row["high"] >= 0:
            said.append(f"{system} is worse by {'; '.join(lower)}.")
        return said + self._worse_slices(system, baseline)

    def _worse_slices(self, system: str, baseline: str) -> list[str]:
        """The slices in which the system is worse than the baseline, the largest loss first."""
        if not self.slices:
            return []
        rows = [row for row in self.slice_rows(system, baseline) if row["difference"] < 0]
        clear = [row for row in rows if row["high"] < 0]
        largest = sorted(clear or rows, key=lambda row: row["difference"])[:_NAMED]
        named = "; ".join(f"{row['slice']}, {_difference(row)}" for row in largest)
        of = f"of {count_of(len(self.slices), 'slice')} by {', '.join(self.by)}"
        if clear:
            return [f"{system} is worse in {len(clear):,} {of}: {named}."]
        lower = f", but its mean is lower in {len(rows):,}: {named}" if rows else ""
        return [f"{system} is clearly worse in none {of}{lower}."]

    def slice_rows(self, system: str, baseline: str) -> list[dict[str, Any]]:
        """The row of each slice for the first measure and these systems, with the slice's name."""
        key = str(self.main), system, baseline
        return [
            {"slice": ", ".join(map(name_of, group))} | row
            for group, compared in self.slices.items()
            for row in compared.rows
            if (row["measure"], row["system"], row["baseline"]) == key
        ]

    def cautions(self) -> list[str]:
        """What to be careful about; systems with the same caution are named together."""
        facts: dict[str, list[str]] = {}
        for name in self.rankings:
            for fact in self._facts_of(name):
                facts.setdefault(fact, []).append(name)
        texts = [f"{_listed(names)}: {fact}." for fact, names in facts.items()]
        small = [
            ", ".join(map(name_of, group))
            for group, each in self.slices.items()
            if each.rows[0]["queries"] < SMALL
        ]
        if small:
            named = ", ".join(small[:_NAMED]) + (
                f" and {len(small) - _NAMED:,} more" if len(small) > _NAMED else ""
            )
            texts.append(f"Slices of fewer than {SMALL} queries, whose intervals are unreliable: {named}.")
        return [*(self.comparison.cautions if self.comparison else ()), *texts]

    def _facts_of(self, name: str) -> Iterator[str]:
        rankings, scores = self.rankings[name], self.scores[name]
        if rankings.is_judged is not None and (unjudged := int((~rankings.is_judged).sum())):
            yield f"{100 * unjudged / rankings.n_docs:.1f} % of the documents were not judged"
        if last := int((rankings.scores == -math.inf).sum()):
            yield f"{count_of(last, 'document')} scored NaN or minus infinity"
        if without := int((rankings.lengths == 0).sum()):
            yield f"{count_of(without, 'query')} without a returned document"
        if scores.weight is not None:
            yield "queries have weights, so that means are weighted"
        undefined: dict[tuple[int, Any], list[str]] = {}
        for measure, empty in zip(scores, scores._empty.sum(axis=1).tolist(), strict=True):
            undefined.setdefault((empty, measure.params.get("empty")), []).append(str(measure))
        for (empty, rule), measures in undefined.items():
            if empty:
                value = {"skip": "left out", "nan": "NaN"}.get(rule) or f"counted as {rule:g}"
                yield f"{', '.join(measures)} undefined for {count_of(empty, 'query')}, {value}"

    def _compared(self, comparison: Comparison) -> Iterator[str]:
        yield paragraph(comparison.heading() + ".")
        yield picture(comparison.plot.effects)
        for system, baseline in comparison._pairs:
            rows = [row for row in comparison.rows if (row["system"], row["baseline"]) == (system, baseline)]
            yield _differences(f"{system} minus {baseline}", "measure", rows)
        if len(comparison.systems) > 2:
            yield table("Ranks of systems (a shared letter: no significant difference)", comparison.ranks())
        yield fold("All numbers of the comparison", table("Differences", Table(comparison.to_arrow(), 3)))
        for measure in next(iter(self.scores.values())):
            for system, baseline in comparison._pairs:
                drawn = picture(comparison.plot.differences, measure, system, baseline=baseline)
                yield fold(f"{measure} of each query: {system} minus {baseline}", drawn)

    def _sliced(self) -> Iterator[str]:
        yield picture(plots.slices, self.scores, self.main, self.by, self.confidence)
        for system, baseline in self.comparison._pairs if self.slices and self.comparison else ():
            rows = self.slice_rows(system, baseline)
            largest = sorted(row["queries"] for row in rows)[-_SLICES:]
            title = f"{self.main}: {system} minus {baseline}"
            if len(rows) > _SLICES:
                title += f", the largest {_SLICES} of {len(rows):,} slices"
            yield _differences(
                title, "slice", [row for row in rows if row["queries"] >= largest[0]][:_SLICES]
            )
        means = (table(name, scores.by(self.by, self.confidence)) for name, scores in self.scores.items())
        yield fold(f"Means by {', '.join(self.by)}", *means)

    def _movers(self, comparison: Comparison) -> Iterator[str]:
        for system, baseline in comparison._pairs:
            queries = comparison.movers(self.main, system, _LISTED, baseline=baseline)
            if len(queries):
                *columns, _, _, difference = queries.column_names
                named = queries.rename_columns([*columns, *map(visible, (baseline, system)), difference])
                yield table(f"{self.main}: {system} minus {baseline}", Table(named))
                yield from self._explained([baseline, system], queries)
            else:
                yield paragraph(f"No query differs between {system} and {baseline}.")

    def _worst(self) -> Iterator[str]:
        for name, scores in self.scores.items():
            queries = scores.worst(self.main, _LISTED)
            yield table(f"Lowest {self.main} of {name}", queries)
            yield from self._explained([name], queries)

    def _explained(self, systems: list[str], queries: Table) -> Iterator[str]:
        """The first queries rank by rank, for each system."""
        for query in queries[0][:_EXPLAINED].to_pylist():
            try:
                parts = [table(name, explain(self.rankings[name], self.main, query)) for name in systems]
            except MeasureError as error:
                parts = [paragraph(str(error))]
            yield fold(f"Rank by rank: {name_of(query)}", *parts)

    def _evaluated(self, sources: Mapping[str, str], command: str) -> Iterator[str]:
        systems = [["system", "source", "queries", "documents", "longest list", "judged"]]
        for name, each in self.rankings.items():
            counts = each.n_queries, each.n_docs, int(each.lengths.max(initial=0))
            judged = "unknown" if each.is_judged is None else f"{100 * each.is_judged.mean():.1f} %"
            systems.append([name, sources.get(name, "Python"), *map("{:,}".format, counts), judged])
        yield table("Systems", systems, 2)
        for name, scores in self.scores.items():
            yield table(f"Means of {name}", scores.summary(self.confidence))
        every = [(name, scores, measure) for name, scores in self.scores.items() for measure in scores]
        said = [
            f"{measure}: {measure.definition.summary}" for measure in dict.fromkeys(each[2] for each in every)
        ]
        said += [f"{name}: {scores.signature(measure)}" for name, scores, measure in every]
        yield fold("How each number was made", bullets([*said, f"made by {command}"]))


def _interval_of(row: Mapping[str, Any], form: str = "+.4f") -> str:
    ends = row["low"], row["high"]
    return "no interval" if any(map(math.isnan, ends)) else " to ".join(format(end, form) for end in ends)


def _listed(names: list[str]) -> str:
    """Names as a part of a sentence.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _difference(row: Mapping[str, Any]) -> str:
    return f"{digits(row['difference'], '+.4f')} ({_interval_of(row)})"


def _differences(caption: str, name: str, rows: list[dict[str, Any]]) -> str:
    """The main numbers of the comparison as a table."""
    counts = ["queries"] * (len({row["queries"] for row in rows}) > 1 or name == "slice")
    shown = [[name, "difference", "interval", "p", "better for", "worse for", *counts]]
    for row in rows:
        p = "< 0.0001" if row["p_adjusted"] < 0.0001 else digits(row["p_adjusted"], ".4f")
        # on narrow screens the interval may break once, p never
        keep = _interval_of(row).replace(" to", f"{_KEEP}to"), p.replace(" ", _KEEP)
        numbers = (f"{row[count]:,}" for count in ("wins", "losses", *counts))
        shown.append([row[name], digits(row["difference"], "+.4f"), *keep, *numbers])
    return table(caption, shown)
