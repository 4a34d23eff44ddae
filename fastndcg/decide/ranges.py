"""Bounds of a measure over all orders of tied documents, and over all grades of unjudged documents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.api.evaluate import evaluate
from fastndcg.common.table import Table, digits
from fastndcg.decide.anchoring import OfOrders
from fastndcg.errors import InputError, check_choice
from fastndcg.measures import Measure, as_measures
from fastndcg.measures.measure import hold_functions
from fastndcg.scores.scores import Scores
from fastndcg.scoring import assignments
from fastndcg.scoring.laid_out import pool
from fastndcg.scoring.unjudged import grades_of_scale
from fastndcg.statistics.resampling import check_resamples

if TYPE_CHECKING:
    import numpy.typing as npt

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.typing import Chart, Ties


class Bounds(NamedTuple):
    """Lowest, actual and highest value of one measure; each field is float64, (n_queries,)."""

    low: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


class Ranges(OfOrders):
    """The result of `tie_range` and `judgment_range`: `Bounds` of each of its `measures`, and their means; a
    table `queries`.
    """

    def __init__(
        self, names: tuple[str, str, str], bounds: dict[Measure, Bounds], rankings: Rankings
    ) -> None:
        values = np.array(list(bounds.values())).swapaxes(0, 1).reshape(-1, rankings.n_queries)
        empty = np.zeros(values.shape, np.bool_)
        super().__init__(Scores([*bounds] * 3, values, empty, rankings, rankings.weight), 3)
        self._names = names
        self._stable: dict[str, float] = {}  # the mean of the order of the data, by measure, for pictures
        # expected value and quantiles over grades that are drawn, of queries and of the mean, by their names
        self._drawn: dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] = {}

    def __getitem__(self, measure: object) -> Bounds:
        """Bounds of one measure. Raises `MeasureError` for one that was not asked for."""
        return Bounds(*self._values(measure))

    def summary(self) -> Table:
        """The three means of each measure, and `moves`: worst and best differ by more than 0.001. With a
        prior also `expected`, and quantiles of the mean, such as `q2.5`.
        """
        rows = [
            {"measure": measure, **dict(zip(self._names, means, strict=True))}
            | {"moves": abs(means[2] - means[0]) > 0.001}
            | {name: of_mean[place] for name, (_, of_mean) in self._drawn.items()}
            for place, (measure, means) in enumerate(self._means().items())
        ]
        kinds = {"measure": pa.string(), **dict.fromkeys(self._names, pa.float64()), "moves": pa.bool_()}
        kinds |= dict.fromkeys(self._drawn, pa.float64())
        return Table(pa.Table.from_pylist(rows, pa.schema(kinds)))

    def to_arrow(self) -> pa.Table:
        """A row for each query: its columns, then "AP worst", "AP expected", "AP best" for each measure. With
        a prior also "AP q2.5" and so on.
        """
        table = self.queries
        for measure in self.measures:
            for name, values in zip(self._names, self[measure], strict=True):
                table = table.append_column(f"{measure} {name}", pa.array(values))
            for name, (of_queries, _) in self._drawn.items():
                values = of_queries[self.measures.index(measure)]
                table = table.append_column(f"{measure} {name}", pa.array(values))
        return table

    def plot(self) -> Chart:
        """Plot the three means of each measure, and over ties that of the order of the data. See
        `fastndcg.plot.ties`. It needs the extra `plot`.
        """
        from fastndcg import plot

        return plot.ties(self)

    def __repr__(self) -> str:
        width, names = max(len(str(measure)) for measure in self.measures), (*self._names, *self._drawn)
        lines = [" " * width + "".join(f"{name:>12}" for name in names)]
        for row in self.summary().to_pylist():
            numbers = [row[name] for name in names]
            flag = f"   could move by {abs(numbers[2] - numbers[0]):.6f}" if row["moves"] else ""
            shown = "".join(f"{digits(each):>12}" for each in numbers)
            lines.append(f"{row['measure']:<{width}}{shown}{flag}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


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
    judgment_range : bounds over the grades of unjudged documents.
    anchors : values of the worst, a random and the best order of the returned documents.

    Notes
    -----
    Within ties, the worst value ranks documents of low gain first, and the best value those of high gain.
    These are the lowest and highest possible values, with four exceptions: nDCG with `ideal="returned"`,
    whose ideal changes with the order; AP with `denominator="hits"`, where another hit may lower the mean;
    AUC with a cutoff; and infAP if documents of the pool were left unjudged.

    References
    ----------
    McSherry and Najork, ECIR 2008.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> tie_range(Rankings.from_lists([[1, 0, 2]], [[0.5, 0.5, 0.1]]), ["RR", "P@3"])
           worst    expected        best
    RR    0.500000    0.750000    1.000000   could move by 0.500000
    P@3    0.666667    0.666667    0.666667
    """
    asked = as_measures(measures)
    rules: tuple[Ties, ...] = ("worst", "average", "best", "input")
    variants = {
        (measure, rule): measure(ties=rule) if "ties" in measure.params else measure
        for measure in asked
        for rule in rules
    }
    scores = evaluate(rankings, list(variants.values()), threads=threads)
    bounds = {measure: Bounds(*(scores[variants[measure, rule]] for rule in rules[:3])) for measure in asked}
    ranges = Ranges(("worst", "expected", "best"), bounds, rankings)
    means = scores.mean()
    ranges._stable = {str(measure): means[str(variants[measure, "input"])] for measure in asked}
    return ranges


def judgment_range(
    rankings: Rankings,
    measures: Any,
    *,
    top: float | None = None,
    prior: Literal["pool"] | Mapping[float, float] | None = None,
    quantiles: Sequence[float] = (0.025, 0.5, 0.975),
    resamples: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> Ranges:
    """Compute the lowest, actual and highest value of each query over all grades that its unjudged documents
    may have; with a prior also what is to be expected.

    Parameters
    ----------
    rankings, measures
        With `is_judged`; if every document was judged, the three values are equal. Measures as in `evaluate`.
    top : float, optional
        The highest grade that an unjudged document may have. Default: the highest grade that occurs.
    prior : "pool" or mapping of grades to their probabilities, optional
        How likely each grade of an unjudged document is: "pool" as often as it occurs among all judged
        documents, up to `top`.
    quantiles, resamples, seed : numbers between 0 and 1; int
        Quantiles over the draws of a prior, of each query and of the mean; how often grades are drawn, 100
        times or more, and where the generator starts.
    threads : int, optional
        As in `evaluate`.

    Returns
    -------
    Ranges
        `ranges["nDCG@10"].low`, `.value` and `.high`; `.summary()` flags means that judgments could move by
        more than 0.001. With a prior, `.summary()` and `.to_arrow()` also have `expected`, and quantiles such
        as `q2.5`, all within the bounds.

    Raises
    ------
    MeasureError
        A measure without an exact range; the message names an alternative. These are measures of several
        intents; nDCG with `ideal="returned"`, and AP with `denominator="hits"`, if a group of tied documents
        crosses the cutoff; discounts that rise; `Judged` and `RBPresidual`, which count judgments.
    InputError
        No document was judged, and `top` is not given or not finite; a prior, quantiles or resamples that are
        none.

    See Also
    --------
    tie_range : how far ties could move a value.
    anchors : values of the worst, a random and the best order of the returned documents.

    Notes
    -----
    An unjudged document may get the grade 0, any grade that occurs up to `top`, or `top`, and then counts as
    judged: it enters the ideal ranking and recall. `value`, that of the rankings as they are, may lie outside
    the bounds if unjudged documents are dropped, or have a gain that no grade has. An assignment that makes a
    query empty counts by the measure's `empty`, and is left out if that is "nan" or "skip". A prior draws a
    grade for each unjudged document independently; "pool" draws as many judged documents anew each time,
    whose shares of grades then count. Measures that divide by the number of relevant documents take as many
    evaluations as a query has unjudged documents, others a few.

    References
    ----------
    Fröbe, Gienapp, Potthast and Hagen, Bootstrapped nDCG estimation in the presence of unjudged documents,
    ECIR 2023.

    Examples
    --------
    >>> from fastndcg import Rankings
    >>> rankings = Rankings.from_lists([[0, 2, 1]], [[0.9, 0.8, 0.1]], is_judged=[False, True, True])
    >>> judgment_range(rankings, ["nDCG@2", "RR"])
                 least       value    greatest
    nDCG@2    0.479625    0.479625    1.000000   could move by 0.520375
    RR        0.500000    0.500000    1.000000   could move by 0.500000
    """
    asked = as_measures(measures)
    with hold_functions(asked):
        found = assignments.bounds(asked, rankings, top, threads)
        bounds = {measure: Bounds(*of_measure) for measure, of_measure in zip(asked, found, strict=True)}
        ranges = Ranges(("least", "value", "greatest"), bounds, rankings)
        if prior is None:
            return ranges
        chances, of = _chances(prior, rankings, top)
        try:
            levels = [float(level) for level in quantiles]
        except (TypeError, ValueError):
            levels = [math.nan]
        if not all(0 < level < 1 for level in levels):
            raise InputError(f"quantiles={quantiles!r}; wanted numbers between 0 and 1, as in (0.025, 0.975)")
        drawn = assignments.draws(
            asked, rankings, chances, of, *check_resamples(resamples, seed), levels, threads
        )
    lows, _, highs = np.array([list(each) for each in bounds.values()]).swapaxes(0, 1)
    means = np.array([*ranges._means().values()])
    of_queries = np.clip(drawn[0], lows[:, None], highs[:, None])  # against rounding
    of_means = np.clip(drawn[1], means[:, :1], means[:, 2:])
    for place, name in enumerate(["expected", *(f"q{100 * level:g}" for level in levels)]):
        ranges._drawn[name] = of_queries[:, place], of_means[:, place]
    return ranges


def _chances(prior: Any, rankings: Rankings, top: float | None) -> tuple[dict[float, float], int | None]:
    """The probability of each grade, and of how many documents these are shares."""
    possible = grades_of_scale(rankings, top)
    if isinstance(prior, Mapping):
        numbers = {float(grade): float(chance) for grade, chance in prior.items()}
        if not numbers or min(numbers.values()) < 0 or abs(math.fsum(numbers.values()) - 1) > 1e-9:
            raise InputError(f"prior={prior!r} has no probabilities; wanted numbers from 0 that sum up to 1")
        if not possible[0] <= min(numbers) <= max(numbers) <= possible[-1]:
            raise InputError(
                f"prior has grades from {min(numbers):g} to {max(numbers):g}; an unjudged document may have "
                f"{possible[0]:g} to {possible[-1]:g}. Name the highest with top="
            )
        return numbers, None
    check_choice("prior", prior, ("pool", None))
    judged = np.asarray(pool(rankings)[1], np.float64)
    levels, counts = np.unique(judged[judged <= possible[-1]], return_counts=True)
    if not len(levels):
        raise InputError(
            'no document of the pool was judged, so that prior="pool" has no grades; give their probabilities'
        )
    shares = (counts / counts.sum()).tolist()
    return dict(zip(levels.tolist(), shares, strict=True)), int(counts.sum())
