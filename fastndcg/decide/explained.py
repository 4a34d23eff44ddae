"""One query, document by document: gains, discounts and contributions, what was missed, and exchanges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import combine
from fastndcg.common.table import Table
from fastndcg.errors import MeasureError
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, ways, worths
from fastndcg.scoring.ranks import Ranks, ranks_of, tie_numbers

if TYPE_CHECKING:
    from fastndcg.measures import Measure

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

ROUNDING = 1e-12
_MOST_EXCHANGED = 4_000_000  # documents that `swaps` evaluates together: a list for each exchange


class Explained:
    """One query, document by document, from the numbers that the kernels sum."""

    def __init__(self, rankings: Rankings, measure: Measure) -> None:
        self.measure, self._rankings = measure, rankings
        self.query = rankings.query_ids[0].as_py()
        scores = ways.score((measure,), rankings, 1)
        self.value, self.is_empty = float(scores.values[0, 0]), bool(scores._empty[0, 0])
        if measure.cutoff_column is not None:
            measure @= int(ways.own_cutoffs(measure.cutoff_column, rankings)[0])
        self._cut = measure
        self._ranks = _NOTHING if self.is_empty else ranks_of(measure, rankings)
        self._gains = _gains(measure, rankings)
        self._order, self._n_ranked = _order(measure, rankings, self._gains)
        self._table = self._make_table()

    def _make_table(self) -> pa.Table:
        rankings, ranks, order, n = self._rankings, self._ranks, self._order, self._n_ranked
        counted = len(ranks.added)
        rows = np.arange(max(len(order), len(ranks.ideal_gain)))
        is_document, is_ranked = rows < len(order), rows < n
        taken = pa.array(np.append(order, np.zeros(len(rows) - len(order), np.int64)), mask=~is_document)
        judged = np.ones(len(order), np.bool_) if rankings.is_judged is None else rankings.is_judged[order]
        grade = _pad(rankings.relevance[order].astype(np.float64), len(rows))
        grade[: len(order)][~judged] = np.nan
        running = np.append(ranks.running, np.full(max(len(rows) - counted, 0), self._last()))[: len(rows)]
        parts = _pad(ranks.contribution, len(rows), 0.0)
        columns = {
            "rank": pa.array(rows + 1, mask=~(is_ranked | ~is_document)),
            "doc_id": pa.nulls(len(rows))
            if rankings.doc_ids is None
            else combine(rankings.doc_ids).take(taken),
            "grade": _null_where_nan(grade),
            "score": pa.array(rankings.scores).take(taken),
            "gain": _null_where_nan(_pad(self._gains[order], len(rows))),
            "discount": _null_where_nan(_pad(ranks.discount, len(rows))),
            "contribution": pa.array(parts, mask=~is_ranked),
            "cumulative": pa.array(running, mask=~is_ranked),
            "ideal_grade": _null_where_nan(_pad(self._ideal_grades(), len(rows))),
            "ideal_contribution": _null_where_nan(_pad(ranks.ideal_contribution, len(rows))),
            "tie_group": _tie_groups(rankings.scores[order], len(rows)),
            "expected_gain": _null_where_nan(_pad(ranks.added, len(rows))),
        }
        return pa.table(columns)

    def _last(self) -> float:
        return float(self._ranks.running[-1]) if len(self._ranks.running) else self._ranks.base

    def _ideal_grades(self) -> Float64:
        """For each rank, a grade of the query with the gain that the ideal has there."""
        gains = self._ranks.ideal_gain
        _, pool = laid_out.pool(self._rankings)
        known = np.unique(np.append(pool, self._rankings.relevance).astype(np.float64))
        worth = worths.worth_of(self.measure)
        if worth.unjudged is not None:
            known = np.append(known, worth.unjudged)
        of_grade = {worths.gain_of(worth, grade): grade for grade in known.tolist()}
        return np.array([of_grade.get(gain, math.nan) for gain in gains.tolist()], np.float64)

    @property
    def folded(self) -> float:
        """The sum of the contributions, in the order of the kernels; NaN where the query is empty."""
        return math.nan if self.is_empty else self._last()

    @property
    def missed(self) -> Table:
        """Judged documents that were not returned, as a table of `grade`, `gain` and number of `documents`,
        best first.

        `at_top` is how much the value would rise if one of these documents were ranked first.
        """
        rankings = self._rankings
        grades, counts = _missed_grades(rankings)
        worth = worths.worth_of(self.measure) if self.measure.way != "intents" else None
        gains = np.array([worths.gain_of(worth, grade) for grade in grades.tolist()]) if worth else grades
        order = np.argsort(-gains, kind="stable")
        at_top = [self._with_at_top(grade) - self.value for grade in grades[order].tolist()]
        return Table(
            pa.table(
                {
                    "grade": pa.array(grades[order]),
                    "gain": pa.array(gains[order]),
                    "documents": pa.array(counts[order], pa.int64()),
                    "at_top": pa.array(at_top, pa.float64()),
                }
            )
        )

    def by_rank(self) -> Table:
        """The measure at every cutoff, as a table: `rank`, `doc_id`, `grade`, and at this rank `cg`, the sum
        of gains; `dcg`, that of discounted gains; `idcg`, that of the ideal; and `ndcg` = dcg / idcg.

        nDCG only. Of tied documents the gain is the expected one, so that a value is that of `evaluate` at
        this cutoff up to rounding. It ends at the cutoff of the measure, and is empty if nDCG is undefined.

        >>> from fastndcg import Rankings, explain
        >>> explain(Rankings.from_lists([[0, 2, 1]]), "nDCG", query=0).by_rank()
        rank  doc_id     grade        cg       dcg      idcg      ndcg
           1          0.000000  0.000000  0.000000  2.000000  0.000000
           2          2.000000  2.000000  1.261860  2.630930  0.479625
           3          1.000000  3.000000  1.761860  2.630930  0.669672
        """
        if self.measure.name != "nDCG" or self.measure.ideal == "returned":
            raise MeasureError(f"{self.measure} is not divided by one ideal at every rank; explain nDCG")
        ranks, n = self._ranks, len(self._ranks.added)
        ideal = ranks.ideal_contribution[:n] * ranks.ideal
        idcg = np.cumsum(np.append(ideal, np.zeros(n - len(ideal))))
        dcg = np.cumsum(ranks.added * ranks.discount)
        with np.errstate(divide="ignore", invalid="ignore"):
            sums = {"cg": np.cumsum(ranks.added), "dcg": dcg, "idcg": idcg, "ndcg": dcg / idcg}
        table = self._table.slice(0, n).select(["rank", "doc_id", "grade"])
        for name, values in sums.items():
            table = table.append_column(name, pa.array(values, mask=idcg == 0 if name == "ndcg" else None))
        return Table(table)

    def _with_at_top(self, grade: float) -> float:
        """The value if a document of this grade were ranked first."""
        rankings, n = self._rankings, self._rankings.n_docs
        place = tie_numbers(rankings.scores) + 1
        flags = np.ones(n, np.bool_) if rankings.is_judged is None else rankings.is_judged
        more = Rankings._from_offsets(
            [0, n + 1],
            np.insert(rankings.relevance.astype(np.float64), 0, grade),
            -np.insert(place, 0, 0),
            is_judged=np.insert(flags, 0, True),
            judged=rankings.judged,
        )
        return float(ways.score((self._cut,), more, 1).values[0, 0])

    def swaps(self, n: int = 10) -> Table:
        """The exchanges of two documents that raise the value most: `rank`, `with_rank` and the rise,
        `gains`; largest first.

        Each exchange is evaluated by itself. In a long list not all are tried: for each rank that counts and
        each larger gain, only those with the highest and the lowest document of that gain below the rank. If
        one of several tied ranks counts, all of them do.
        """
        order, ranked = self._order[: self._n_ranked], self._n_ranked
        number, counted = tie_numbers(self._rankings.scores)[order], len(self._ranks.added)
        if 0 < counted < ranked:  # a group of ties that crosses the cutoff counts as a whole
            counted = int(np.searchsorted(number, number[counted - 1], "right"))
        # moving a document up that "gains" less can raise what counts judgments
        either = self.measure.definition.worth in ("judgment", "unjudged")
        pairs = _pairs(self._gains[order], counted, ranked, either=either)
        gains = np.empty(0) if self.is_empty else self._exchange_pairs(order, pairs) - self.value
        best = [place for place in np.argsort(-gains, kind="stable")[: max(n, 0)] if gains[place] > ROUNDING]
        return Table(
            pa.table(
                {
                    "rank": pa.array([pairs[place][0] + 1 for place in best], pa.int64()),
                    "with_rank": pa.array([pairs[place][1] + 1 for place in best], pa.int64()),
                    "gains": pa.array([gains[place] for place in best], pa.float64()),
                }
            )
        )

    def _exchange_pairs(self, order: Int64, pairs: list[tuple[int, int]]) -> Float64:
        """The value with each pair of documents exchanged."""
        rankings, size = self._rankings, len(order)
        values, step = [np.empty(0)], max(_MOST_EXCHANGED // max(size, 1), 1)
        _, pool = laid_out.pool(rankings)
        scores = np.array(rankings.scores[order])
        for first in range(0, len(pairs), step):
            some = np.array(pairs[first : first + step])
            rows = np.tile(order, (len(some), 1))
            lists = np.arange(len(some))
            rows[lists, some[:, 0]], rows[lists, some[:, 1]] = order[some[:, 1]], order[some[:, 0]]
            several = Rankings._from_offsets(
                np.arange(len(some) + 1) * size,
                rankings.relevance[rows.ravel()],
                np.tile(scores, len(some)),
                is_judged=None if rankings.is_judged is None else rankings.is_judged[rows.ravel()],
                judged=(np.arange(len(some) + 1) * len(pool), np.tile(pool, len(some))),
                propensity=None if rankings.propensity is None else rankings.propensity[rows.ravel()],
            )
            values.append(ways.score((self._cut,), several, None).values[0])
        return np.concatenate(values)


# ---- parts ----


_NO = np.empty(0)
_NOTHING = Ranks(_NO, _NO, _NO, _NO, _NO, _NO, math.nan, 0.0)


def _gains(measure: Measure, rankings: Rankings) -> Float64:
    if measure.way == "intents":
        return np.zeros(rankings.n_docs)
    gains = worths.gains_of_documents(measure, rankings)
    if measure.params.get("ips") and rankings.propensity is not None:
        gains = gains / np.maximum(rankings.propensity, measure.clip)
    return gains


def _order(measure: Measure, rankings: Rankings, gains: Float64) -> tuple[Int64, int]:
    """Documents by rank, dropped documents last, and the number of documents that are not dropped."""
    ties, number = measure.params.get("ties"), tie_numbers(rankings.scores)
    turn = {"best": -1.0, "worst": 1.0}.get(str(ties), 0.0)
    turn = -turn if measure.definition.over == "judged" else turn
    dropped = np.zeros(rankings.n_docs, np.bool_)
    if measure.params.get("judged_only") and rankings.is_judged is not None:
        dropped = ~rankings.is_judged
    order = np.lexsort((np.arange(rankings.n_docs), turn * gains, number, dropped))
    return order, int((~dropped).sum())


def _pad(values: Float64, n: int, by: float = math.nan) -> Float64:
    return np.append(values[:n], np.full(max(n - len(values), 0), by))


def _null_where_nan(values: Float64) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))


def _tie_groups(scores: npt.NDArray[Any], n: int) -> pa.Array:
    """The number of each document's group of ties, in order of rank; null for documents that are not tied."""
    _, places, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    several = sizes[places] > 1
    groups = {place: number for number, place in enumerate(dict.fromkeys(places[several].tolist()), 1)}
    numbers = [groups.get(place) for place in places.tolist()]
    return pa.array(numbers + [None] * (n - len(numbers)), pa.int64())


def _missed_grades(rankings: Rankings) -> tuple[Float64, Int64]:
    """Grades of judged documents that were not returned, and the number of documents of each grade."""
    if rankings.judged is None:
        return np.empty(0), np.empty(0, np.int64)
    flags = slice(None) if rankings.is_judged is None else rankings.is_judged
    grades, counts = np.unique(rankings.judged.relevance.astype(np.float64), return_counts=True)
    returned = rankings.relevance[flags].astype(np.float64)
    left = counts - np.array([np.count_nonzero(returned == grade) for grade in grades], np.int64)
    return grades[left > 0], left[left > 0]


def _pairs(gains: Float64, counted: int, ranked: int, *, either: bool) -> list[tuple[int, int]]:
    """Pairs of ranks whose lower document gains more, or otherwise: all; in a long list the first and last of
    each gain.
    """
    whole = ranked * ranked * max(counted, 1) <= _MOST_EXCHANGED
    pairs: list[tuple[int, int]] = []
    for rank in range(min(counted, ranked)):
        others = gains[rank + 1 :]
        below = np.flatnonzero(others != gains[rank] if either else others > gains[rank]) + rank + 1
        if not whole:
            of_gain = [below[gains[below] == gain] for gain in np.unique(gains[below])]
            below = np.unique([end for each in of_gain for end in (each[0], each[-1])]).astype(np.int64)
        pairs += [(rank, int(other)) for other in below]
    return pairs
