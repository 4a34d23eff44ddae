"""Warnings about data that can be evaluated but looks wrong, whatever its source.

All rows are examined only if the first ones look odd. With fewer than 20 queries, only the name of the score
column is examined, and whether grades are fractions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from fastndcg.errors import count_of, warn

if TYPE_CHECKING:
    from fastndcg.common.arrays import Array
    from fastndcg.measures import Measure
    from fastndcg.tables.checks import Grades
    from fastndcg.tables.joins import Side
    from fastndcg.tables.roles import Columns

V = TypeVar("V", bound=Any)  # rankings
_FEWEST = 20  # queries
_FIRST = 1 << 16  # documents
_MOST_LEVELS = 10  # scores that are whole numbers up to this may be grades
_LEAST_JUDGED = 0.1
_LISTED = 5  # most measures that a message names

_FALLING = re.compile(r"(^|_)(distance|dist|rank|ranking|position)$")


class Names(NamedTuple):
    """Names of the examined grades and scores for messages, and facts about them."""

    grades: str = "relevance"
    scores: str = "scores"
    column: str = ""  # name of the scores, if they have one
    is_ordered: bool = False  # the caller said that these are ranks, or that the lowest score is the best
    are_columns: bool = False  # grades and scores are columns, which an argument can name
    are_joined: bool = False  # from judgments and a run, which usually have unjudged documents


def names_of_table(columns: Columns) -> Names:
    is_ordered = columns.ascending or columns.rank is not None
    return Names(*columns.labels, columns.score, is_ordered, are_columns=True)


def names_of_sides(qrels: Side, run: Side) -> Names:
    grades, scores = (
        f'column "{side.column}" of {side.name}' if side.column else f"the {what} of {side.name}"
        for side, what in ((qrels, "grade"), (run, "score"))
    )
    both = bool(qrels.column and run.column)
    return Names(grades, scores, run.column, run.is_ordered, are_columns=both, are_joined=True)


def ranks_of(run: Side) -> tuple[Array, Array]:
    """Return scores and offsets in the order of the data, in which ranks show: a join orders rows by their
    scores.
    """
    changes = np.flatnonzero(np.diff(run.codes)) + 1
    return run.values, np.concatenate([[0], changes, [len(run.codes)]])


@dataclass
class SanityChecks:
    """Checks of rankings. Call `add` for each part that is read, and `warn` after the last one.

    >>> import pytest
    >>> from fastndcg import FastndcgWarning, Rankings
    >>> with pytest.warns(FastndcgWarning, match="no grade is above 0"):
    ...     found = Rankings.from_arrow(
    ...         {"qid": list(range(20)) * 2, "label": [0] * 40, "score": list(range(40))}
    ...     )
    """

    names: Names
    queries: int = 0
    documents: int = 0
    judged: int = 0
    score: object = None  # the first score; the only one while `tied` holds
    tied: bool = True
    irrelevant: bool = True
    swapped: bool = True
    ranks: bool = True

    def add(self, rankings: V, ranks: tuple[Array, Array] | None = None) -> V:
        """Examine a part, and return it.

        `ranks` are scores and the offsets of queries in the order of the data, if rankings have another.
        """
        if rankings.n_docs:
            pool = rankings.judged if self.names.are_joined else None
            grades, scores = rankings.relevance if pool is None else pool.relevance, rankings.scores
            if not self.documents:
                self.score = scores[0]
            for rows in (slice(_FIRST), slice(_FIRST, None)):  # the first ones are tested first
                self.tied = self.tied and bool((scores[rows] == self.score).all())
                self.irrelevant = self.irrelevant and bool((grades[rows] <= 0).all())
            self.swapped = self.swapped and are_swapped(grades[:_FIRST], scores[:_FIRST])
            self.ranks = self.ranks and are_ranks(*(ranks or (scores, rankings.offsets)))
            judged = rankings.is_judged
            self.judged += rankings.n_docs if judged is None else int(np.count_nonzero(judged))
        self.queries += rankings.n_queries
        self.documents += rankings.n_docs
        return rankings

    def warn(self) -> None:
        """Warn, with `FastndcgWarning`, about data that are probably a mistake.

        These are, besides names in `_FALLING`: scores 1, 2, 3 ... in the order of rows; fractions as grades
        beside small whole numbers as scores; all scores equal; one document for each query; no grade above 0;
        fewer than a tenth of the documents of a table judged.
        """
        names = self.names
        are_many = self.queries >= _FEWEST and self.documents > 0
        are_several = self.documents > self.queries
        in_snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "_", names.column).lower()
        is_named = bool(_FALLING.search(in_snake_case))
        if not names.is_ordered and (is_named or (are_many and self.ranks and are_several)):
            ranks = " 1, 2, 3 and so on in the order of each query's rows, as ranks are, and"
            warn(
                f"{names.scores} is{'' if is_named else ranks} taken for scores, of which the highest is best"
                "; if its lowest value is best, pass ascending=True"
                f"{' or, for ranks, rank=' if names.column else ''}"
            )
        if are_many and self.swapped and not names.is_ordered:
            _warn_of_swap(names)
        elif are_many and self.tied and are_several:
            warn(
                f"{names.scores} holds one value, {self.score}: all documents of a query are tied, "
                "and each measure is that of a random order; if that is not meant, check the scores"
            )
        if are_many and not are_several and not names.are_joined:
            warn(
                "there are no more documents than queries, so there is nothing to rank; "
                "if that is not meant, check the query ids"
            )
        if are_many and self.irrelevant:
            warn(
                f"{names.grades}: no grade is above 0, so no query has a relevant document; if that is not "
                "meant, check the grades"
            )
        if are_many and self.judged < _LEAST_JUDGED * self.documents and not names.are_joined:
            warn(
                f"{1 - self.judged / self.documents:.1%} of the documents are not judged and count as not "
                "relevant; the measure Judged@10 says how many of the first ten are judged"
            )


def warn_if_swapped(names: Names, grades: Array, scores: Array) -> None:
    """Warn about matrices whose rows look wrong as rankings."""
    if len(grades) >= _FEWEST and are_swapped(grades.ravel()[:_FIRST], scores.ravel()[:_FIRST]):
        _warn_of_swap(names)


def _warn_of_swap(names: Names) -> None:
    step = "name them by relevance= and score=" if names.are_columns else "give each in the other's place"
    warn(
        f"{names.grades} holds fractions and {names.scores} small whole numbers, as if grades and scores "
        f"were swapped; if they are, {step}"
    )


def run_sanity_checks(rankings: V, names: Names, ranks: tuple[Array, Array] | None = None) -> V:
    """Warn about rankings that look wrong, and return them."""
    checks = SanityChecks(names)
    checks.add(rankings, ranks)
    checks.warn()
    return rankings


def examined(rankings: V, columns: Mapping[str, Any]) -> V:
    """Return rankings of a user's arrays and other columns, after a warning if they look wrong."""
    names = Names(is_ordered=columns.get("ascending", False), are_joined=rankings.judged is not None)
    return run_sanity_checks(rankings, names) if rankings.n_queries >= _FEWEST else rankings


def warn_of_unreached(measures: Sequence[Measure], parts: Sequence[Grades], queries: int) -> None:
    """Warn, with `FastndcgWarning`, about measures that find nothing relevant because no grade reaches their
    `rel`, though grades are above 0. `parts` are facts about the grades of all queries.

    >>> import pytest
    >>> from fastndcg import FastndcgWarning, Rankings, evaluate
    >>> warned = "no grade reaches rel=1; the largest grade is 0.8, so .* AP and P@5"
    >>> with pytest.warns(FastndcgWarning, match=warned):
    ...     scores = evaluate(Rankings.from_lists([[0.8, 0.2]]), ["AP", "P@5", "nDCG@5"])
    """
    highest = max((grades.highest for grades in parts), default=0.0)
    are_whole = all(grades.whole for grades in parts)
    if highest <= 0 or (are_whole and queries < _FEWEST):
        return
    unreached: dict[Measure, float] = {}  # and the smallest relevant grade of each
    for measure in measures:
        rel, unjudged = measure.params.get("rel"), measure.params.get("unjudged")
        if rel is None and measure.params.get("gain") == "binary":
            rel = 1.0
        if rel is not None and (unjudged is None or unjudged < rel) and rel > highest:
            unreached[measure] = rel
    if not unreached:
        return
    names = [str(measure) for measure in unreached]
    if len(names) > _LISTED:
        names[_LISTED:] = [count_of(len(names) - _LISTED, "other measure")]
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    proposed = next(iter(unreached)).name + f"(rel={highest if are_whole else highest / 2:.1g})"
    warn(
        f"no grade reaches rel={min(unreached.values()):g}; "
        f"the largest grade is {highest:g}, so no document is relevant to {listed}. "
        f"If that is not meant, name the smallest relevant grade, as in {proposed}"
    )


def are_swapped(grades: Array, scores: Array) -> bool:
    """Return whether half of the grades or more are fractions, and the scores small whole numbers."""
    if grades.dtype.kind != "f" or not len(grades) or np.mean(grades != np.floor(grades)) < 0.5:
        return False
    lowest, highest = scores.min(), scores.max()
    return bool(0 <= lowest < highest <= _MOST_LEVELS and np.array_equal(scores, np.floor(scores)))


def are_ranks(scores: Array, offsets: Array) -> bool:
    """Return whether the scores of each query are 0, 1, 2 ... or 1, 2, 3 ..., in this order."""
    lengths = np.diff(offsets)
    first = scores[offsets[:-1][lengths > 0]]
    if not len(first):
        return True
    if first[0] not in (0, 1) or (first != first[0]).any():
        return False
    places = np.arange(len(scores)) - np.repeat(offsets[:-1], lengths)
    return np.array_equal(scores, places + int(first[0]))
