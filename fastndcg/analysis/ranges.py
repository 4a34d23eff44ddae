"""What other orders of the returned documents, of tied ones, or other judgments could make of a measure.

The worst, a random and the best order are three rules for ties when all documents are tied, so the kernels
that compute values compute these too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import offsets_from, offsets_of, read_only, runs_of
from fastndcg.common.exports import AsFrame
from fastndcg.common.table import Table
from fastndcg.errors import InputError, InputTypeError, MeasureError, known_arguments
from fastndcg.measures import Measure, as_measures, find_measure
from fastndcg.measures.measure import hold_functions
from fastndcg.measures.parameters import Function, Numbers
from fastndcg.rankings.rankings import Rankings
from fastndcg.scores.scores import Scores
from fastndcg.scoring import gain_values, methods
from fastndcg.scoring.discount_tables import discount_table
from fastndcg.tables.checks import JudgedPool

if TYPE_CHECKING:
    from fastndcg.common.arrays import Float64
    from fastndcg.measures import Measures
    from fastndcg.typing import Chart, Ties


class Bounds(NamedTuple):
    """Three values of one measure, each float64, (n_queries,): `value` is that of the rankings as they are or
    the expected one; `low` and `high` are those at the ends that `tie_range` or `judgment_range` names.
    """

    low: Float64
    value: Float64
    high: Float64


class Anchor(NamedTuple):
    """The anchors of one measure; each field is float64, (n_queries,)."""

    worst: Float64
    random: Float64
    actual: Float64
    best: Float64
    position: Float64


class _OfOrders(AsFrame, ABC):
    """Values of measures for several orders or judgments of the documents by their names, and their means."""

    def __init__(self, measures: tuple[Measure, ...], values: dict[str, Float64], rankings: Rankings) -> None:
        """Take values, (n_measures, n_queries), by the name of their order or judgments."""
        self.measures, of = measures, (rankings, rankings.weight)
        empty = np.zeros((len(measures), rankings.n_queries), np.bool_)
        self._scores = {name: Scores(measures, each, empty, *of) for name, each in values.items()}

    @property
    def queries(self) -> pa.Table:
        return next(iter(self._scores.values())).queries

    def _values(self, measure: object) -> list[Float64]:
        row = self.measures.index(find_measure(measure, self.measures, "was not asked for"))
        return [scores.values[row] for scores in self._scores.values()]

    def _means(self) -> dict[str, list[float]]:
        rows = enumerate(map(str, self.measures))
        return {name: [scores._mean(row) for scores in self._scores.values()] for row, name in rows}

    def _table(self, columns: dict[str, pa.DataType], numbers: Callable[..., Iterable[Any]]) -> Table:
        """A row for each measure: the numbers of its means."""
        schema = pa.schema({"measure": pa.string(), **columns})
        rows = [(name, *numbers(*means)) for name, means in self._means().items()]
        return Table(
            pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        )

    def _rows(self, names: Sequence[str], values: list[Bounds] | list[Anchor]) -> pa.Table:
        """A row for each query and measure: the id, the measure, and the values of these names."""
        queries, n = self.queries, len(self.measures)
        places, of = np.repeat(np.arange(len(queries)), n), np.tile(np.arange(n), len(queries))
        measures = pa.array([str(measure) for measure in self.measures], pa.string())
        table: dict[str, Any] = {queries.column_names[0]: queries[0].take(pa.array(places))}
        table["measure"] = measures.take(pa.array(of))
        columns = np.array(values).reshape(n, len(names), -1)
        return pa.table(table | {name: columns[:, row].T.ravel() for row, name in enumerate(names)})

    @abstractmethod
    def summary(self) -> Table:
        """A row for each measure."""

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


class Ranges(_OfOrders):
    """The result of `tie_range` and `judgment_range`: `Bounds` of each of its `measures`, and their means; a
    table `queries`.
    """

    _stable: dict[str, float] | None = None  # the mean of the order of the data, by measure, for pictures

    def __getitem__(self, measure: object) -> Bounds:
        """Bounds of one measure. Raises `MeasureError` for one that was not asked for."""
        return Bounds(*self._values(measure))

    def summary(self) -> Table:
        """The three means of each measure, and `moves`: the first and last differ by more than 0.001."""
        columns = {**dict.fromkeys(self._scores, pa.float64()), "moves": pa.bool_()}
        return self._table(columns, lambda low, value, high: (low, value, high, abs(high - low) > 0.001))

    def to_arrow(self) -> pa.Table:
        """A row for each query and measure: the id, `measure`, and its three values."""
        return self._rows([*self._scores], [self[measure] for measure in self.measures])

    def plot(self) -> Chart:
        """Plot the three means of each measure, and over ties that of the order of the data. See
        `fastndcg.plot.ties`. It needs the extra `report`.
        """
        from fastndcg.charts import plots

        return plots.ties(self)


class Anchors(_OfOrders):
    """The result of `anchors`: an `Anchor` for each of its `measures`, and their means; a table `queries`."""

    def __getitem__(self, measure: object) -> Anchor:
        """Anchors of one measure. Raises `MeasureError` for one that was not asked for."""
        return _anchor(*self._values(measure))

    def summary(self) -> Table:
        """A row for each measure: the mean of each order, and their position."""
        columns = dict.fromkeys(Anchor._fields, pa.float64())
        return self._table(columns, lambda *means: map(float, _anchor(*map(np.float64, means))))

    def to_arrow(self) -> pa.Table:
        """A row for each query and measure: the id, measure, worst, random, actual, best, and position, NaN
        where undefined.
        """
        return self._rows(Anchor._fields, [self[measure] for measure in self.measures])


def check_rankings(rankings: object) -> None:
    if not isinstance(rankings, Rankings):
        kind = type(rankings).__name__
        raise InputTypeError(
            f"rankings is a {kind}; expected Rankings, as read_parquet returns them, or, of judgments and a "
            "run, Rankings.from_qrels_run"
        )


def values_by_rule(
    measures: Sequence[Measure], rankings: Rankings, rules: Sequence[Ties], threads: int | None
) -> list[Float64]:
    """The values of the measures with each rule for ties. Each query is ranked once."""
    variants = [[each(ties=rule) if "ties" in each.params else each for each in measures] for rule in rules]
    scores = methods.score(as_measures([each for of_rule in variants for each in of_rule]), rankings, threads)
    return [np.array([scores[each] for each in of_rule]) for of_rule in variants]


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
        actual = methods.score(asked, rankings, threads).values
        for measure in asked:
            _check_orders_known(measure, rankings)
        # of a dtype whose kernels are compiled already
        tied = rankings._with_scores(np.zeros(rankings.n_docs, rankings.scores.dtype))
        worst, random, best = values_by_rule(asked, tied, ("worst", "average", "best"), threads)
    return Anchors(asked, {"worst": worst, "random": random, "actual": actual, "best": best}, rankings)


def _anchor(worst: Any, random: Any, actual: Any, best: Any) -> Anchor:
    """The anchors of one measure, for each query or for means."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # equal up to what adding up in another order can make
        alike = best - worst <= 1e-12 * np.maximum(np.abs(best), np.abs(worst))
        position = np.where(alike, np.nan, (actual - random) / (best - random))
    return Anchor(worst, random, actual, best, position)


def _check_orders_known(measure: Measure, rankings: Rankings) -> None:
    """Raise `MeasureError` for a measure whose worst or best order is not known."""
    params, definition, cutoff = measure.params, measure.definition, measure.cutoff
    gain_values.check_best_known(measure)
    why = ""
    if params.get("score_above") is not None:
        why = "whether a document counts depends on its score"
    elif definition.method == "intents" and definition.name != "nDCG_IA":
        why = "it covers several intents"
    elif definition.name == "infAP" and rankings._grades.lowest < 0:
        why = "negative grades are unjudged documents of the pool to it"
    elif params.get("ideal") == "returned" and measure.is_cut:
        why = "its ideal changes with the order"
    elif isinstance(discount := params.get("discount"), Numbers | Function):
        longest = int(rankings.lengths.max(initial=0))
        is_cut = measure.cutoff_column is not None or (cutoff is not None and cutoff < longest)
        table = discount_table(discount, longest if cutoff is None else min(cutoff, longest))
        table = np.append(table, [0.0] * is_cut)
        for rank in (np.flatnonzero(np.diff(table) > 0) + 2)[:1].tolist():
            why = f"its discount is {table[rank - 1]:g} at rank {rank} and {table[rank - 2]:g} before it"
    if why:
        raise MeasureError(
            f"{measure} has no known worst or best order: {why}. Ask for a measure of one grade for each "
            "document, over discounts that do not rise, such as nDCG"
        )


@known_arguments
def tie_range(rankings: Rankings, measures: Any, *, threads: int | None = None) -> Ranges:
    """Compute the worst, expected and best value of each query over all orders of tied documents. Each query
    is ranked once.

    Parameters
    ----------
    rankings, measures, threads
        As in `evaluate`. The measures' own `ties` are ignored.

    Returns
    -------
    Ranges
        `ranges["nDCG@10"].low`, `.value` and `.high`; `.summary()` flags means that ties could move by more
        than 0.001.

    Raises
    ------
    MeasureError, InputError, InputTypeError
        As in `evaluate`.

    See Also
    --------
    judgment_range : values with the least and the greatest grade for unjudged documents.
    anchors : values of the worst, a random and the best order of the returned documents.

    Notes
    -----
    One order of ties ranks documents of low gain first, another those of high gain. The values of these two
    are the lowest and the highest possible, with four exceptions, for which they are only two more values:
    nDCG with `ideal="returned"`, whose ideal changes with the order; AP with `denominator="hits"`, where
    another hit may lower the mean; AUC with a cutoff; and infAP if documents of the pool were left unjudged.
    "worst" is then the least and "best" the greatest of these and of the expected value.

    References
    ----------
    McSherry and Najork, ECIR 2008.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> tie_range(Rankings.from_lists([[1, 0, 2]], [[0.5, 0.5, 0.1]]), ["RR", "P@3"])
    measure     worst  expected      best  moves
    RR       0.500000  0.750000  1.000000    yes
    P@3      0.666667  0.666667  0.666667
    """
    check_rankings(rankings)
    asked = as_measures(measures)
    with hold_functions(asked):
        *values, stable = values_by_rule(asked, rankings, ("worst", "average", "best", "input"), threads)
    # where the order of descending gain is not the best one, as for AUC with a cutoff
    orders = {"worst": np.minimum.reduce(values), "expected": values[1], "best": np.maximum.reduce(values)}
    ranges = Ranges(asked, orders, rankings)
    means = Ranges(asked, {"stable": stable}, rankings)._means()
    ranges._stable = {measure: mean for measure, (mean,) in means.items()}
    return ranges


@known_arguments
def judgment_range(rankings: Rankings, measures: Any, *, threads: int | None = None) -> Ranges:
    """Compute the value of each query if its unjudged documents had the least grade, as it is, and if they
    had the greatest grade that occurs.

    Parameters
    ----------
    rankings, measures
        With `is_judged`; if every document was judged, the three values are equal. Measures as in `evaluate`.
    threads : int, optional
        As in `evaluate`.

    Returns
    -------
    Ranges
        `ranges["nDCG@10"].low`, with the least grade; `.value`; `.high`, with the greatest grade.
        `.summary()` flags means that differ by more than 0.001.

    Raises
    ------
    MeasureError
        A measure of several intents, and one that counts judgments, such as `Judged` and `RBPresidual`.
    InputError
        No document was judged.

    See Also
    --------
    tie_range : how far ties could move a value.
    anchors : values of the worst, a random and the best order of the returned documents.

    Notes
    -----
    The least grade is 0, or the lowest grade that occurs if that is below 0. A document with such a grade
    counts as judged: it enters the ideal ranking and recall.

    For measures that no document with a higher grade can lower, as DCG, P, RR, Success, ERR and RBP, the two
    values are bounds: no grades of the unjudged documents give less or more. Measures that divide by what is
    judged, as nDCG, AP, R and F, can be lower or higher with some grades in between: of two unjudged
    documents only the lower ranked one may be relevant. There `high` may even be below `low`.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[0, 2, 1]], [[0.9, 0.8, 0.1]], is_judged=[False, True, True])
    >>> judgment_range(rankings, ["nDCG@2", "RR"])
    measure     least     value  greatest  moves
    nDCG@2   0.479625  0.479625  1.000000    yes
    RR       0.500000  0.500000  1.000000    yes
    """
    check_rankings(rankings)
    asked = as_measures(measures)
    for measure in asked:
        if measure.definition.divisor in ("judged", "residual") or measure.definition.method == "intents":
            raise MeasureError(
                f"{measure} counts judgments or covers intents, so that one grade for each unjudged document "
                "does not determine it. Ask for a measure with one grade per document, such as nDCG or RBP"
            )
    if not len(rankings._distinct_grades):
        raise InputError("no document was judged, so nothing says what the greatest grade is")
    least, greatest = min(0.0, float(rankings._grades.lowest)), float(rankings._grades.highest)
    by_name = {
        "least": _judged_as(rankings, least), "value": rankings, "greatest": _judged_as(rankings, greatest)
    }  # fmt: skip
    values = {name: evaluate(each, asked, threads=threads).values for name, each in by_name.items()}
    return Ranges(asked, values, rankings)


def _judged_as(rankings: Rankings, grade: float) -> Rankings:
    """The rankings with this grade for each unjudged document."""
    if rankings.is_judged is None:
        return rankings
    kind = np.int64 if rankings._grades.whole and grade == int(grade) else np.float64
    unjudged, pool = ~rankings.is_judged, rankings.judged
    relevance = np.full(rankings.n_docs, grade, kind)
    relevance[rankings.is_judged] = rankings.relevance[rankings.is_judged]
    if pool is not None:
        sizes = np.diff(pool.offsets)
        offsets = offsets_from(sizes + np.diff(offsets_of(unjudged, rankings.offsets)))
        grades = np.full(offsets[-1], grade, kind)
        grades[runs_of(offsets[:-1], sizes)] = pool.relevance
        pool = JudgedPool(read_only(offsets), read_only(grades))
    return rankings._with(relevance=read_only(relevance), judged=pool, is_judged=None)
