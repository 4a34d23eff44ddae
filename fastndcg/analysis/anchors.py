"""Anchors: values of the worst, a random and the best order of the returned documents.

The three orders are three rules for ties when all documents are tied, so the kernels that compute values
compute anchors too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.common.exports import AsFrame
from fastndcg.errors import InputTypeError, MeasureError, count_of, known_arguments
from fastndcg.measures import Measure, as_measures, find_measure
from fastndcg.measures.measure import hold_functions
from fastndcg.measures.parameters import Function, Numbers
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scores.summary import Summary
from fastndcg.scoring import gain_values, methods
from fastndcg.scoring.discount_tables import discount_table

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.measures import Measures
    from fastndcg.typing import Ties


def check_rankings(rankings: object) -> None:
    if not isinstance(rankings, Rankings):
        kind = type(rankings).__name__
        raise InputTypeError(
            f"rankings is a {kind}; expected Rankings, as read_parquet returns them, or, of judgments and a "
            "run, Rankings.from_qrels_run"
        )


class OfOrders:
    """Values of measures, (n_measures, n_queries), for several orders of the documents by their names."""

    def __init__(self, measures: tuple[Measure, ...], orders: dict[str, Float64], rankings: Rankings) -> None:
        self.measures, of = measures, (rankings, rankings.weight)
        empty = np.zeros((len(measures), rankings.n_queries), np.bool_)
        self._orders = {name: Scores(measures, values, empty, *of) for name, values in orders.items()}

    @property
    def queries(self) -> pa.Table:
        return next(iter(self._orders.values())).queries

    def _values(self, measure: object) -> list[Float64]:
        """The values of a measure for each order. Raises `MeasureError` for one not asked for."""
        row = self.measures.index(find_measure(measure, self.measures, "was not asked for"))
        return [scores.values[row] for scores in self._orders.values()]

    def _means(self) -> dict[str, dict[str, float]]:
        """The mean for each order, by measure."""
        return {
            str(measure): {name: scores._mean(row) for name, scores in self._orders.items()}
            for row, measure in enumerate(self.measures)
        }


def values_by_rule(
    measures: Sequence[Measure], rankings: Rankings, rules: Sequence[Ties], threads: int | None
) -> list[Float64]:
    """The values of the measures with each rule for ties. Each query is ranked once."""
    variants = [[each(ties=rule) if "ties" in each.params else each for each in measures] for rule in rules]
    scores = methods.score(as_measures([each for of_rule in variants for each in of_rule]), rankings, threads)
    return [np.array([scores[each] for each in of_rule]) for of_rule in variants]


class Anchor(NamedTuple):
    """The anchors of one measure; each field is float64, (n_queries,)."""

    worst: Float64
    random: Float64
    actual: Float64
    best: Float64
    position: Float64


class Anchors(OfOrders, AsFrame):
    """The result of `anchors`: an `Anchor` for each of its `measures`, and their means; a table `queries`."""

    _empty: list[int]  # by measure, queries for which it is undefined

    def __len__(self) -> int:
        return len(self.queries)

    def __getitem__(self, measure: object) -> Anchor:
        """Anchors of one measure. Raises `MeasureError` for one that was not asked for."""
        return _anchor(*self._values(measure))

    def means(self) -> dict[str, dict[str, float]]:
        """By measure: the means of worst, random, actual and best, and their position."""
        found = {name: _anchor(*map(np.float64, means.values())) for name, means in self._means().items()}
        return {
            name: dict(zip(Anchor._fields, map(float, each), strict=True)) for name, each in found.items()
        }

    def summary(self) -> Summary:
        """A row for each measure: its mean, those of the other orders, and their position."""
        rows = []
        for (name, numbers), empty in zip(self.means().items(), self._empty, strict=True):
            row = {"measure": name, "mean": numbers.pop("actual")} | numbers
            rows.append(row | {"queries": len(self), "empty": empty})
        return Summary(rows)

    def to_arrow(self) -> pa.Table:
        """A row for each query and measure: the id, measure, worst, random, actual, best, and position, NaN
        where undefined.
        """
        ids, n = self.queries.column_names[0], len(self.measures)
        places = pa.array(np.repeat(np.arange(len(self)), n))
        names = pa.array([str(measure) for measure in self.measures], pa.string())
        table: dict[str, Any] = {ids: self.queries[0].take(places)}
        table["measure"] = names.take(pa.array(np.tile(np.arange(n), len(self))))
        values = np.array([self[measure] for measure in self.measures]).reshape(n, len(Anchor._fields), -1)
        return pa.table(table | {name: values[:, row].T.ravel() for row, name in enumerate(Anchor._fields)})

    def __repr__(self) -> str:
        return self.summary().under(f"Anchors of {count_of(len(self), 'query')}")

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@known_arguments
def anchors(rankings: Rankings, measures: Measures, *, threads: int | None = None) -> Anchors:
    """Compute the values of the worst, a random and the best order of the returned documents.

    Parameters
    ----------
    rankings, measures : Rankings; as in `evaluate`
        The measures' own `ties` affect only `actual`.
    threads : int, optional
        Default: all threads that Numba has. The values do not depend on it.

    Returns
    -------
    Anchors
        `found["nDCG@10"]` has the numbers of each query, `found.to_arrow()` those of all measures,
        `found.summary()` the means:

        - `worst`, `random`, `best`: the value of the worst order of the returned documents, the exact
          expected value over all orders, and the value of the best order. `actual` is that of the ranking
          itself.
        - `position` = (actual - random) / (best - random): 0 is a random order, 1 is the best order, and less
          than 0 is worse than random. NaN if all orders have the same value.

        In `summary()`, the position is computed from the means.

    Raises
    ------
    MeasureError
        A measure whose best and worst orders are not those of descending and ascending gain: nDCG with
        `ideal="returned"` and a cutoff; discounts that rise or are negative; infAP with negative grades;
        measures of several intents, except nDCG_IA.
    InputError, InputTypeError
        As in `evaluate`.

    See Also
    --------
    tie_range : how far ties alone could move a value.
    judgment_range : values with the least and the greatest grade for unjudged documents.
    explain : where the value of one query comes from.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> found = anchors(Rankings.from_lists([[0, 1, 2, 0], [1, 0, 0, 0]]), "nDCG@2")
    >>> found.to_arrow().select(["query_id", "random", "actual", "best"]).to_pylist()[0]
    {'query_id': 0, 'random': 0.46492..., 'actual': 0.23981..., 'best': 1.0}
    >>> found["nDCG@2"].position.round(3).tolist()
    [-0.421, 1.0]
    """
    check_rankings(rankings)
    asked = as_measures(measures)
    with hold_functions(asked):
        actual = methods.score(asked, rankings, threads)
        for measure in asked:
            _check(measure, rankings)
        # of a dtype whose kernels are compiled already
        tied = rankings._with_scores(np.zeros(rankings.n_docs, rankings.scores.dtype))
        worst, random, best = values_by_rule(asked, tied, ("worst", "average", "best"), threads)
    orders = {"worst": worst, "random": random, "actual": actual.values, "best": best}
    found = Anchors(asked, orders, rankings)
    found._empty = actual._empty.sum(axis=1).tolist()
    return found


def _anchor(worst: Any, random: Any, actual: Any, best: Any) -> Anchor:
    """The anchors of one measure, for each query or for means."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # equal up to what adding up in another order can make
        alike = best - worst <= 1e-12 * np.maximum(np.abs(best), np.abs(worst))
        position = np.where(alike, np.nan, (actual - random) / (best - random))
    return Anchor(worst, random, actual, best, position)


def _check(measure: Measure, rankings: Rankings) -> None:
    """Raise `MeasureError` for a measure whose worst or best order is not known."""
    params, definition = measure.params, measure.definition
    gain_values.check_best_known(measure)
    if params.get("score_above") is not None:
        raise MeasureError(
            f"{measure} has no anchors: whether a document counts depends on its score, which another order "
            f"has not. Ask for {measure(score_above=None)}"
        )
    if definition.method == "intents" and definition.name != "nDCG_IA":
        raise MeasureError(
            f"{measure} has no known best order: which one is best for several intents together is as hard "
            "to find as the ideal ranking. Ask for nDCG_IA, or a measure of one grade for each document"
        )
    if definition.name == "infAP" and rankings._grades.lowest < 0:
        raise MeasureError(
            f"{measure} has no known worst order beside negative grades, which are unjudged documents "
            "of the pool to it. Ask for AP, or drop these rows"
        )
    if params.get("ideal") == "returned" and measure.is_cut:
        raise MeasureError(
            f"{measure} has no known worst order: the ideal is made of the documents on the first "
            f"{measure.cutoff or measure.cutoff_column} ranks, which another order changes. "
            'Take ideal="scored" or ideal="judged"'
        )
    discount = params.get("discount")
    if isinstance(discount, Numbers | Function):
        cutoff, longest = measure.cutoff, int(rankings.lengths.max(initial=0))
        is_cut = measure.cutoff_column is not None or (cutoff is not None and cutoff < longest)
        shown = min(cutoff, longest) if cutoff is not None else longest
        table = np.append(discount_table(discount, shown), [0.0] * is_cut)
        rises = np.flatnonzero(np.diff(table) > 0) + 2
        for rank in rises[:1].tolist():
            raise MeasureError(
                f"{measure} has no known best order: its discount is {table[rank - 1]:g} at rank {rank} and "
                f"{table[rank - 2]:g} before it; expected discounts that do not rise, and end at 0 or above"
            )
