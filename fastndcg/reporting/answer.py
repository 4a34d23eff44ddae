"""The answer of a page: which system is better, by how much, how sure that is, where it is worse, and what to
be careful about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fastndcg.common.table import digits, name_of
from fastndcg.errors import count_of
from fastndcg.statistics.intervals import SMALL

if TYPE_CHECKING:
    from fastndcg.analysis.comparison import Comparison
    from fastndcg.analysis.ranges import Ranges
    from fastndcg.measures import Measure
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores

_LISTED = 5  # slices that a sentence names, at most


class Found(NamedTuple):
    """The results that a page shows."""

    rankings: dict[str, Rankings]
    scores: dict[str, Scores]  # of the chosen measures
    curves: dict[str, Scores]  # with the first measure at several cutoffs; empty if it has no cutoff
    ties: dict[str, Ranges]
    comparison: Comparison | None  # of two or more systems
    slices: dict[tuple[Any, ...], Comparison]
    measures: tuple[Measure, ...]
    by: list[str]
    confidence: float
    sources: Mapping[str, str]
    threads: int | None

    @property
    def main(self) -> Measure:
        """The measure of the answer, of pictures and of lists of queries."""
        return self.measures[0]


def answer(found: Found) -> list[str]:
    """The sentences of the answer."""
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
    """The slices in which the system is worse than the baseline, the largest loss first."""
    if not found.slices:
        return []
    rows = [row for row in slice_rows(found, system, baseline) if row["difference"] < 0]
    clear = [row for row in rows if row["high"] < 0]
    listed = sorted(clear or rows, key=lambda row: row["difference"])[:_LISTED]
    named = "; ".join(f"{row['slice']}, {_difference(row)}" for row in listed)
    of = f"of {count_of(len(found.slices), 'slice')} by {', '.join(found.by)}"
    if clear:
        return [f"{system} is worse in {len(clear):,} {of}: {named}."]
    lower = f", but its mean is lower in {len(rows):,}: {named}" if rows else ""
    return [f"{system} is clearly worse in none {of}{lower}."]


def slice_rows(found: Found, system: str, baseline: str) -> list[dict[str, Any]]:
    """The row of each slice for the first measure and these systems, with the name of the slice."""
    key = str(found.main), system, baseline
    return [
        {"slice": ", ".join(map(name_of, group))} | row
        for group, compared in found.slices.items()
        for row in compared.rows
        if (row["measure"], row["system"], row["baseline"]) == key
    ]


def cautions(found: Found) -> list[str]:
    """Cautions; systems with the same caution are named together."""
    facts: dict[str, list[str]] = {}
    for name in found.rankings:
        for fact in _facts_of(found, name):
            facts.setdefault(fact, []).append(name)
    texts = [f"{listed(names)}: {fact}." for fact, names in facts.items()]
    sizes = {", ".join(map(name_of, group)): each.rows[0]["queries"] for group, each in found.slices.items()}
    small = [name for name, queries in sizes.items() if queries < SMALL]
    if small:
        more = f" and {len(small) - _LISTED:,} more" if len(small) > _LISTED else ""
        named = ", ".join(small[:_LISTED]) + more
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
