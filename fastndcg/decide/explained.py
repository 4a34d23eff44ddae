"""One query, document by document: gains, discounts and contributions, what was missed, and exchanges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import combine
from fastndcg.common.table import Table
from fastndcg.errors import MeasureError
from fastndcg.rankings.rankings import Rankings
from fastndcg.scoring import laid_out, ways, worths
from fastndcg.scoring.ranks import Ranks, ranks_of, tie_numbers

if TYPE_CHECKING:
    from fastndcg.common.arrays import Array, Float64, Int64
    from fastndcg.measures import Measure

ROUNDING = 1e-12
_MOST_EXCHANGED = 4_000_000  # documents that `swaps` evaluates together: a list for each exchange
_NO = np.empty(0)
_NOTHING = Ranks(_NO, _NO, _NO, _NO, _NO, _NO, math.nan, 0.0)


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
        self._last = float(self._ranks.running[-1]) if len(self._ranks.running) else self._ranks.base
        self._gains = np.zeros(rankings.n_docs)
        if measure.definition.way != "intents":
            self._gains = worths.gains_of_documents(measure, rankings)
            if measure.params.get("ips") and rankings.propensity is not None:
                self._gains = self._gains / np.maximum(rankings.propensity, measure.clip)
        # documents by rank, dropped documents last, and the number of documents that are not dropped
        turn = {"best": -1.0, "worst": 1.0}.get(str(measure.params.get("ties")), 0.0)
        turn = -turn if measure.definition.over == "judged" else turn
        dropped = np.zeros(rankings.n_docs, np.bool_)
        if measure.params.get("judged_only") and rankings.is_judged is not None:
            dropped = ~rankings.is_judged
        number = tie_numbers(rankings.scores)
        self._order = np.lexsort((np.arange(rankings.n_docs), turn * self._gains, number, dropped))
        self._n_ranked = int((~dropped).sum())
        self._table = self._make_table()

    def _make_table(self) -> pa.Table:
        rankings, ranks, order = self._rankings, self._ranks, self._order
        n = max(len(order), len(ranks.ideal_gain))
        rows = np.arange(n)
        is_document, is_ranked = rows < len(order), rows < self._n_ranked

        def pad(values: Array, by: float = math.nan) -> Float64:
            return np.append(values[:n], np.full(max(n - len(values), 0), by))

        def null_where_nan(values: Float64) -> pa.Array:
            return pa.array(values, mask=np.isnan(values))

        taken = pa.array(np.append(order, np.zeros(n - len(order), np.int64)), mask=~is_document)
        grade = pad(rankings.relevance[order].astype(np.float64))
        if rankings.is_judged is not None:
            grade[: len(order)][~rankings.is_judged[order]] = np.nan
        # for each rank, a grade of the query with the gain that the ideal has there
        _, pool = laid_out.pool(rankings)
        known = np.unique(np.append(pool, rankings.relevance).astype(np.float64))
        worth = worths.worth_of(self.measure)
        if worth.unjudged is not None:
            known = np.append(known, worth.unjudged)
        of_gain = {worths.gain_of(worth, each): each for each in known.tolist()}
        ideal = np.array([of_gain.get(gain, math.nan) for gain in ranks.ideal_gain.tolist()], np.float64)
        # the number of each document's group of ties, in order of rank; null for documents that are not tied
        _, places, sizes = np.unique(rankings.scores[order], return_inverse=True, return_counts=True)
        several = dict.fromkeys(places[sizes[places] > 1].tolist())
        groups = {place: number for number, place in enumerate(several, 1)}
        ties = [groups.get(place) for place in places.tolist()] + [None] * (n - len(places))
        docs = pa.nulls(n) if rankings.doc_ids is None else combine(rankings.doc_ids).take(taken)
        columns = {
            "rank": pa.array(rows + 1, mask=~(is_ranked | ~is_document)),
            "doc_id": docs,
            "grade": null_where_nan(grade),
            "score": pa.array(rankings.scores).take(taken),
            "gain": null_where_nan(pad(self._gains[order])),
            "discount": null_where_nan(pad(ranks.discount)),
            "contribution": pa.array(pad(ranks.contribution, 0.0), mask=~is_ranked),
            "cumulative": pa.array(pad(ranks.running, self._last), mask=~is_ranked),
            "ideal_grade": null_where_nan(pad(ideal)),
            "ideal_contribution": null_where_nan(pad(ranks.ideal_contribution)),
            "tie_group": pa.array(ties, pa.int64()),
            "expected_gain": null_where_nan(pad(ranks.added)),
        }
        return pa.table(columns)

    @property
    def folded(self) -> float:
        """The sum of the contributions, in the order of the kernels; NaN where the query is empty."""
        return math.nan if self.is_empty else self._last

    @property
    def missed(self) -> Table:
        """Judged documents that were not returned, as a table of `grade`, `gain` and number of `documents`,
        best first.

        `at_top` is how much the value would rise if one of these documents were ranked first.
        """
        rankings, n = self._rankings, self._rankings.n_docs
        grades, left = np.empty(0), np.empty(0, np.int64)
        flags = np.ones(n, np.bool_) if rankings.is_judged is None else rankings.is_judged
        if rankings.judged is not None:
            grades, counts = np.unique(rankings.judged.relevance.astype(np.float64), return_counts=True)
            returned = rankings.relevance[flags].astype(np.float64)
            left = counts - np.array([np.count_nonzero(returned == grade) for grade in grades], np.int64)
            grades, left = grades[left > 0], left[left > 0]
        gains = grades
        if self.measure.definition.way != "intents":
            worth = worths.worth_of(self.measure)
            gains = np.array([worths.gain_of(worth, grade) for grade in grades.tolist()])
        order = np.argsort(-gains, kind="stable")
        scores, at_top = -np.insert(tie_numbers(rankings.scores) + 1, 0, 0), []
        for grade in grades[order].tolist():
            more = Rankings._from_offsets(
                [0, n + 1],
                np.insert(rankings.relevance.astype(np.float64), 0, grade),
                scores,
                is_judged=np.insert(flags, 0, True),
                judged=rankings.judged,
            )
            at_top.append(float(ways.score((self._cut,), more, 1).values[0, 0]) - self.value)
        columns = {
            "grade": pa.array(grades[order]),
            "gain": pa.array(gains[order]),
            "documents": pa.array(left[order], pa.int64()),
            "at_top": pa.array(at_top, pa.float64()),
        }
        return Table(pa.table(columns))

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
        whole = ranked * ranked * max(counted, 1) <= _MOST_EXCHANGED
        gains, pairs = self._gains[order], []
        for rank in range(min(counted, ranked)):
            others = gains[rank + 1 :]
            below = np.flatnonzero(others != gains[rank] if either else others > gains[rank]) + rank + 1
            if not whole:  # the first and last of each gain
                of_gain = [below[gains[below] == gain] for gain in np.unique(gains[below])]
                below = np.unique([end for each in of_gain for end in (each[0], each[-1])]).astype(np.int64)
            pairs += [(rank, int(other)) for other in below]
        rises = _NO if self.is_empty else self._exchange_pairs(order, pairs) - self.value
        best = [place for place in np.argsort(-rises, kind="stable")[: max(n, 0)] if rises[place] > ROUNDING]
        columns = {
            "rank": pa.array([pairs[place][0] + 1 for place in best], pa.int64()),
            "with_rank": pa.array([pairs[place][1] + 1 for place in best], pa.int64()),
            "gains": pa.array([rises[place] for place in best], pa.float64()),
        }
        return Table(pa.table(columns))

    def _exchange_pairs(self, order: Int64, pairs: list[tuple[int, int]]) -> Float64:
        """The value with each pair of documents exchanged."""
        rankings, size = self._rankings, len(order)
        values, step = [_NO], max(_MOST_EXCHANGED // max(size, 1), 1)
        _, pool = laid_out.pool(rankings)
        for first in range(0, len(pairs), step):
            some = np.array(pairs[first : first + step])
            rows, lists = np.tile(order, (len(some), 1)), np.arange(len(some))
            rows[lists, some[:, 0]], rows[lists, some[:, 1]] = order[some[:, 1]], order[some[:, 0]]
            several = Rankings._from_offsets(
                np.arange(len(some) + 1) * size,
                rankings.relevance[rows.ravel()],
                np.tile(rankings.scores[order], len(some)),
                is_judged=None if rankings.is_judged is None else rankings.is_judged[rows.ravel()],
                judged=(np.arange(len(some) + 1) * len(pool), np.tile(pool, len(some))),
                propensity=None if rankings.propensity is None else rankings.propensity[rows.ravel()],
            )
            values.append(ways.score((self._cut,), several, None).values[0])
        return np.concatenate(values)
