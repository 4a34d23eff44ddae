"""How much ties, or the grades of unjudged documents, could change a measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.analysis.anchors import OfOrders, check_rankings, values_by_rule
from fastndcg.api.evaluate import evaluate
from fastndcg.common.arrays import offsets_from, offsets_of, read_only, runs_of
from fastndcg.common.table import Table
from fastndcg.errors import InputError, MeasureError, known_arguments
from fastndcg.measures import as_measures
from fastndcg.measures.measure import hold_functions
from fastndcg.tables.checks import JudgedPool

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.typing import Chart


class Bounds(NamedTuple):
    """Three values of one measure, each float64, (n_queries,): `value` is that of the rankings as they are or
    the expected one; `low` and `high` are those at the ends that `tie_range` or `judgment_range` names.
    """

    low: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


class Ranges(OfOrders):
    """The result of `tie_range` and `judgment_range`: `Bounds` of each of its `measures`, and their means; a
    table `queries`.
    """

    _stable: dict[str, float] | None = None  # the mean of the order of the data, by measure, for pictures

    def __getitem__(self, measure: object) -> Bounds:
        """Bounds of one measure. Raises `MeasureError` for one that was not asked for."""
        return Bounds(*self._values(measure))

    def summary(self) -> Table:
        """The three means of each measure, and `moves`: the first and last differ by more than 0.001."""
        rows = []
        for measure, means in self._means().items():
            low, _, high = means.values()
            rows.append({"measure": measure, **means, "moves": abs(high - low) > 0.001})
        kinds = {"measure": pa.string(), **dict.fromkeys(self._orders, pa.float64()), "moves": pa.bool_()}
        return Table(pa.Table.from_pylist(rows, pa.schema(kinds)))

    def to_arrow(self) -> pa.Table:
        """A row for each query: its columns, then "AP worst", "AP expected", "AP best" for each measure."""
        table = self.queries
        for row, measure in enumerate(self.measures):
            for name, scores in self._orders.items():
                table = table.append_column(f"{measure} {name}", pa.array(scores.values[row]))
        return table

    def plot(self) -> Chart:
        """Plot the three means of each measure, and over ties that of the order of the data. See
        `fastndcg.plot.ties`. It needs the extra `report`.
        """
        from fastndcg.charts import plots

        return plots.ties(self)

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


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
    means = OfOrders(asked, {"stable": stable}, rankings)._means()
    ranges._stable = {measure: mean["stable"] for measure, mean in means.items()}
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
        if measure.definition.divisor in ("judged", "residual"):
            raise MeasureError(
                f"{measure} counts judgments and not grades: if all documents are judged, it has one value. "
                "Ask for RBP, or another measure of what was found"
            )
        if measure.definition.method == "intents":
            raise MeasureError(
                f"{measure} covers several intents, and an unjudged document has no grade for them. "
                "Ask for a measure with one grade per document, such as nDCG or ERR"
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
