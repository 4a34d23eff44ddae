"""The sections of a page. Each function returns the blocks of a section."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import TYPE_CHECKING, Any

from fastndcg import plot
from fastndcg.analysis.anchors import anchors
from fastndcg.analysis.comparison import RANKS
from fastndcg.analysis.explain import explain
from fastndcg.analysis.ranges import tie_range
from fastndcg.errors import InputError, MeasureError, count_of
from fastndcg.measures import Measure, table
from fastndcg.measures.conventions import conventions
from fastndcg.reporting.blocks import Section, Table, cell_of, id_cells, picture_of, table_of
from fastndcg.reporting.facts import Found, only
from fastndcg.scoring.discounts import discount_of

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.analysis.comparison import Comparison
    from fastndcg.scores.scores import Scores

# queries in a list; how many of them are explained; rows of an explanation
_WORST, _EXPLAINED, _RANKS = 20, 5, 50


def sections_of(found: Found, command: str) -> Iterator[Section]:
    """Return all sections with content, in order."""
    yield Section("evaluated", "What was evaluated", _evaluated_section(found))
    yield Section("summary", "Summary", _summary(found))
    if found.comparison is not None:
        yield Section("comparison", "Comparison", _comparison(found, found.comparison))
    if found.curves:
        yield Section(
            "cutoffs", "Cutoffs", [picture_of(plot.cutoffs(found.curves, found.main, found.confidence))]
        )
    yield Section(
        "distribution",
        f"Distribution of {found.main}",
        _each_measure(found, lambda one: [picture_of(plot.distribution(found.scores, one))]),
    )
    if found.by:
        yield Section("slices", f"Slices by {', '.join(found.by)}", _slices(found))
    yield Section("anchors", "Worst, random and best order", _or_message(partial(_anchors, found)))
    yield Section("ties", "Ties", _or_message(partial(_ties, found)))
    yield Section("worst", "Worst queries", _worst(found))
    if found.comparison is not None:
        yield Section("movers", "Largest movers", _movers(found, found.comparison))
    yield Section("measures", "Measures", _measures(found))
    yield Section("made", "How this page was made", _made_section(found, command))


def _or_message(make: Callable[[], list[Any]]) -> list[Any]:
    """Return the blocks of a section, or the reason why a measure or the data have none."""
    try:
        return make()
    except (InputError, MeasureError) as error:
        return [str(error)]


# ---- sections ----


def _evaluated_section(found: Found) -> list[Any]:
    of_systems = {
        name: {
            "source": found.sources.get(name, "given in Python"),
            "queries": each.n_queries,
            "documents": each.n_docs,
            "documents of the longest list": int(each.lengths.max(initial=0)),
            "queries without documents": int((each.lengths == 0).sum()),
            "documents with the score of another document of the query": _share(
                found.tied[name], each.n_docs
            ),
            "unjudged documents": "not known"
            if each.is_judged is None
            else _share(int((~each.is_judged).sum()), each.n_docs),
            "judged documents in the pool": None if each.judged is None else len(each.judged.relevance),
        }
        for name, each in found.rankings.items()
    }
    names = list(next(iter(of_systems.values())))
    cells = [[cell_of(name), *(cell_of(facts[name]) for facts in of_systems.values())] for name in names]
    blocks: list[Any] = [Table("Systems", ["", *of_systems], cells, sorts=False)]
    if all(each.is_judged is None for each in found.rankings.values()):
        unknown = "The data do not say which documents were judged, so every document counts as judged."
        blocks.append(unknown)
    return [*blocks, *_or_message(lambda: [picture_of(plot.grades(found.rankings))])]


def _summary(found: Found) -> list[Any]:
    rows = _of_systems(found.scores, lambda scores: scores.summary(found.confidence).rows)
    weighted = any(scores.weight is not None for scores in found.scores.values())
    note = (
        f"Intervals of {100 * found.confidence:g} %, low to high, by Student's t. "
        f"A query is empty if the measure is undefined for it.{' Means are weighted.' * weighted}"
    )
    return [note, table_of("Means over all queries", rows)]


def _comparison(found: Found, comparison: Comparison) -> list[Any]:
    blocks: list[Any] = [comparison.heading()]
    blocks += [f"Caution: {caution}" for caution in comparison.cautions]
    blocks += [table_of("Differences of means", comparison.rows), picture_of(comparison.plot.effects())]
    if len(comparison.systems) > 2:
        blocks.append(f"Ranks: {RANKS}.")
        blocks.append(table_of("Ranks of systems", comparison.ranks().to_pylist()))

    def of(measure: Measure) -> list[Any]:
        def picture(system: str, baseline: str) -> list[Any]:
            return [picture_of(comparison.plot.differences(measure, system, baseline=baseline))]

        return [block for pair in _pairs(comparison) for block in _or_message(partial(picture, *pair))]

    return blocks + _each_measure(found, of)


def _slices(found: Found) -> list[Any]:
    def groups(scores: Scores) -> Iterator[dict[str, Any]]:
        for group in id_cells(scores.by(list(found.by), found.confidence).to_pylist(), found.by):
            small = group.pop("small")
            yield group | {"fewer than 30 queries": small}

    def of(measure: Measure) -> list[Any]:
        scores = {name: only(each, [measure]) for name, each in found.scores.items()}
        return [picture_of(plot.slices(scores, measure, found.by, found.confidence))]

    rows = _of_systems(found.scores, groups)
    return [*_each_measure(found, of), table_of(f"Means by {', '.join(found.by)}", rows)]


def _anchors(found: Found) -> list[Any]:
    of = {name: anchors(each, found.measures, threads=found.threads) for name, each in found.rankings.items()}
    rows = _of_systems(of, lambda each: [{"measure": one} | means for one, means in each.means().items()])
    note = (
        "Means of the worst, a random, the actual and the best order of the returned documents. "
        "Position is 0 for a random order and 1 for the best order."
    )
    return [note, picture_of(plot.anchors(of)), table_of("Means of each order", rows)]


def _ties(found: Found) -> list[Any]:
    if not any(found.tied.values()):
        return ["No two documents of a query have the same score, so there are no ties."]
    tied = partial(tie_range, measures=found.measures, threads=found.threads)
    of = {name: tied(each) for name, each in found.rankings.items()}
    rows = _of_systems(of, lambda each: each.summary().to_pylist())
    note = (
        "Means over the worst, all, and the best orders of tied documents. "
        "moves: the worst and best differ by more than 0.001."
    )
    return [note, picture_of(plot.ties(of)), table_of("Means over orders of ties", rows)]


def _worst(found: Found) -> list[Any]:
    blocks: list[Any] = []
    for name, scores in found.scores.items():
        queries = scores.worst(found.main, _WORST)
        undefined = int(scores._empty[0].sum())
        if undefined:
            left_out = count_of(undefined, "query")
            blocks.append(f"{name}, without {left_out} where {found.main} is undefined:")
        blocks.append(table_of(f"Lowest {found.main} of {name}", _rows(queries, 1)))
        blocks += _explained_section(found, [name], queries)
    return blocks


def _movers(found: Found, comparison: Comparison) -> list[Any]:
    blocks: list[Any] = []
    for system, baseline in _pairs(comparison):
        queries = comparison.movers(found.main, system, _WORST, baseline=baseline)
        if not len(queries):
            blocks.append(f"No query differs between {system} and {baseline}.")
            continue
        names = {"baseline": baseline, "system": system} if baseline != system else {}
        blocks.append(table_of(f"{found.main}, {system} against {baseline}", _rows(queries, 3), names))
        blocks += _explained_section(found, [baseline, system], queries)
    return blocks


def _measures(found: Found) -> list[Any]:
    declared = {row["name"]: row for row in table().to_pylist()}
    blocks: list[Any] = []
    for measure in found.measures:
        row = declared[measure.name]
        facts = {
            "what it is": row["summary"],
            "formula": row["formula"],
            "cutoff": "none" if measure.cutoff is None else f"{measure.cutoff:,}",
            "range": row["range"],
            "source": row["source"],
        }
        if measure.name == "nDCG":
            rules = {name: each.find("nDCG", cut=measure.is_cut) for name, each in conventions.items()}
            alike = [name for name, rule in rules.items() if rule and rule.measure(measure.cutoff) == measure]
            facts["conventions with these parameters"] = ", ".join(alike) or "none that is known"
        shown = [{"": name, "value": text} for name, text in facts.items()]
        blocks.append(table_of(str(measure), shown, sorts=False))
        meanings = {parameter.name: parameter.meaning for parameter in measure.definition.parameters}
        parameters = [
            {"parameter": name, "value": str(value), "means": meanings[name]}
            for name, value in measure.params.items()
        ]
        blocks += [table_of(f"Parameters of {measure}", parameters)] if parameters else []
    discounted = [measure for measure in found.measures if discount_of(measure) != "none"]
    blocks += [picture_of(plot.discounts(discounted))] if discounted else []
    gaining = [measure for measure in found.measures if measure.definition.method != "intents"]
    distinct = (each._distinct_grades[:_RANKS].tolist() for each in found.rankings.values())
    grades = sorted({*chain.from_iterable(distinct)})
    return blocks + (_or_message(lambda: [picture_of(plot.gains(gaining, grades))]) if gaining else [])


def _made_section(found: Found, command: str) -> list[Any]:
    rows = [{"": "command", "value": command}, {"": "Python", "value": sys.version.split()[0]}]
    for name in ("fastndcg", "numpy", "numba", "pyarrow", "scipy", "altair", "vl-convert-python"):
        with suppress(PackageNotFoundError):
            rows.append({"": name, "value": version(name)})
    rows.append({"": "platform", "value": platform.platform()})
    signed = _of_systems(
        found.scores, lambda scores: [{"signature": scores.signature(one)} for one in found.measures]
    )
    signatures = table_of("Signatures: how each number was made", signed, sorts=False)
    return [signatures, table_of("Versions", rows, sorts=False)]


# ---- parts ----


def _share(count: int, of: int) -> str:
    return f"{count:,} ({100 * count / max(of, 1):.1f} %)"


def _each_measure(found: Found, make: Callable[[Measure], list[Any]]) -> list[Any]:
    """Return the blocks of the first measure, and closed blocks of the others, which open on a click."""
    first, *others = (_or_message(partial(make, measure)) for measure in found.measures)
    closed = zip(map(str, found.measures[1:]), others, strict=True)
    return [*first, *(Section("", title, blocks) for title, blocks in closed)]


def _of_systems(
    of: Mapping[str, Any], rows: Callable[[Any], Iterable[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Rows of all systems, each with the name of its system."""
    return [{"system": name} | row for name, each in of.items() for row in rows(each)]


def _pairs(comparison: Comparison) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row["system"], row["baseline"]) for row in comparison.rows))


def _rows(queries: pa.Table, numbers: int) -> list[dict[str, Any]]:
    """Return rows of a table. The last columns are numbers, the others are ids and kept columns."""
    return id_cells(queries.to_pylist(), queries.column_names[:-numbers])


def _explained_section(found: Found, systems: list[str], queries: pa.Table) -> Iterator[Section]:
    """Yield the first queries rank by rank, for each system."""
    rankings = {name: found.rankings[name] for name in systems}
    for query in queries[0][:_EXPLAINED].to_pylist():
        try:
            explanations = explain(rankings, found.main, query)
        except MeasureError as error:
            yield Section("", f"query {query}", [str(error)])
            continue
        blocks: list[Any] = []
        for name, explained in explanations.items():
            shown = explained.to_arrow().slice(0, _RANKS)
            kept = [column for column in shown.column_names if shown[column].null_count < len(shown)]
            rows = id_cells(shown.select(kept).to_pylist(), ["doc_id"])
            blocks.append(table_of((f"{name}: " if len(rankings) > 1 else "") + explained.heading(), rows))
            more = len(explained.to_arrow()) - len(shown)
            blocks += [f"... and {more:,} more"] if more > 0 else []
            blocks += explained.notes()
        yield Section("", f"query {query}: why", blocks)
