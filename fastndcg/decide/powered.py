"""`prediction_powered`: few labels of people, and many of a judge that may err."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import array_of, decode
from fastndcg.common.table import Table
from fastndcg.decide.matching import Sample, common_measures, match_queries, missing_text, pairs_of, scores_of
from fastndcg.decide.standings import HOLDS, verdict_of
from fastndcg.errors import InputError, InputTypeError, check_system
from fastndcg.scores.slices import check_free, check_kept, column_names, groups_of
from fastndcg.statistics.exact_sums import differences_of
from fastndcg.statistics.intervals import check_confidence, check_size
from fastndcg.statistics.paired import controlled

if TYPE_CHECKING:
    from fastndcg.common.arrays import Flags, Int64
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores

_NUMBERS = {
    **dict.fromkeys(("mean", "low", "high", "weight"), pa.float64()),
    **dict.fromkeys(("n", "n_judge"), pa.int64()),
    "effective": pa.float64(),
}


class PredictionPowered(Table):
    """The result of `prediction_powered`: a `Table` that can hold a gate."""

    def no_worse_than(
        self, baseline: str, margin: float = 0.0, *, system: str | None = None
    ) -> dict[str, bool]:
        """Whether the intervals exclude a loss of more than `margin` against the baseline, by measure, as
        `Comparison.no_worse_than` says it, with its errors; within every slice, if there are slices.
        """
        margin = check_size("margin", margin, "a loss to accept", 0.002)
        if "baseline" not in self.column_names:
            raise InputError(
                "these are means of one system, which is worse than none; give mappings of two systems"
            )
        found: dict[str, list[bool]] = {}
        for row in self.to_pylist():
            pair, ends = (row["system"], row["baseline"]), (row["low"], row["high"])
            if pair[0] == baseline:
                pair, ends = pair[::-1], (-ends[1], -ends[0])
            if pair[1] == baseline and system in (None, pair[0]):
                found.setdefault(row["measure"], []).append(verdict_of(*ends, margin) == HOLDS)
        if not found:
            check_system(baseline, dict.fromkeys(self["baseline"].to_pylist() + self["system"].to_pylist()))
            raise InputError(f'"{baseline}" was compared with no "{system}"')
        return {measure: all(each) for measure, each in found.items()}


def prediction_powered(
    human: Scores | Rankings | Mapping[str, Scores | Rankings],
    judge: Scores | Rankings | Mapping[str, Scores | Rankings],
    confidence: float = 0.95,
    *,
    baseline: str | None = None,
    measures: Any = None,
    by: str | Sequence[str] = (),
) -> PredictionPowered:
    """Estimate means by few labels of people and many of a judge, such as a language model.

    The judge's values of all queries are corrected by how they differ from people's on the queries that
    people labelled:

        mean = mean(human) + weight * (mean(judge, unlabelled) - mean(judge, labelled))

    This has no bias however much the judge errs, if the labelled queries were drawn at random from those of
    the judge, and values of a query are of the same documents for both. A judge that agrees with people makes
    the interval narrower; one that does not gets the weight 0, which leaves the people's mean.

    Parameters
    ----------
    human, judge : Scores, or Rankings with `measures`, or mappings of names to them
        Values by labels of people, for some of the queries, and by those of the judge, for all. Queries are
        matched by id. With mappings the differences of systems are estimated, query by query.
    confidence : float
        Confidence of the intervals.
    baseline, measures : optional
        As in `compare`: the system that all others are compared with, and the measures to evaluate or to
        estimate.
    by : str or sequence of str
        Kept columns of the judge's queries: an estimate for each group of queries, in the order of
        `Scores.by`.

    Returns
    -------
    PredictionPowered
        A Table with a row for each group, measure and pair of systems: the columns of `by`; measure; with
        mappings system and baseline; `mean`, with mappings that of the differences, and its interval from
        `low` to `high`; `weight` from 0 to 1; `n` queries that people labelled, and `n_judge` of the judge;
        `effective`, the number of people's labels that alone would give as narrow an interval. NaN for fewer
        than 2 labelled queries. `no_worse_than(baseline, margin)` is a gate, as that of a Comparison.

    Raises
    ------
    InputError, InputTypeError
        Labelled queries that the judge lacks; queries that are repeated or differ in weight; queries that
        `empty="skip"` leaves out for one of the two; mappings of different systems, of one, or beside
        something else than a mapping.
    ColumnError, MeasureError
        A column that was not kept; no measure was evaluated for all.

    See Also
    --------
    compare : systems that people judged for all queries.
    fleiss_kappa, krippendorff_alpha : whether the judge agrees with people at all.

    Notes
    -----
    The weight is that of PPI++, clipped to 0 to 1: cov(human, judge) / ((1 + n / N) * var(judge)), N being
    the number of unlabelled queries. Intervals are by Student's t, a little wider than those of the paper,
    which miss the mean too often with few labels. Weighted queries have the linearised error of a ratio.

    References
    ----------
    Angelopoulos, Duchi and Zrnic, PPI++, 2023, arXiv 2311.01453; of ranking measures: Oosterhuis et al., KDD
    2024, arXiv 2407.02464, and Divekar, 2026, arXiv 2606.05308.

    Examples
    --------
    >>> import numpy as np
    >>> from fastndcg import Rankings, evaluate
    >>> random = np.random.default_rng(0)
    >>> grades = random.integers(0, 3, (400, 10))
    >>> by_model = np.clip(grades + random.integers(0, 2, grades.shape), 0, 3)  # which is too generous
    >>> scores = grades + random.normal(0, 2, grades.shape)
    >>> judge = evaluate(Rankings.from_dense(by_model, scores), "P(rel=2)@5")
    >>> human = evaluate(Rankings.from_dense(grades[:60], scores[:60]), "P(rel=2)@5")
    >>> prediction_powered(human, judge)
    measure        mean       low      high    weight   n  n_judge  effective
    P(rel=2)@5 ...  60      400 ...
    """
    confidence = check_confidence(confidence)
    pairs = None
    if isinstance(human, Mapping) and isinstance(judge, Mapping):
        if {*map(str, human)} != {*map(str, judge)} or len(human) < 2:
            raise InputError(
                f"human has the systems {', '.join(map(str, human)) or 'of none'} and judge "
                f"{', '.join(map(str, judge)) or 'of none'}; give the same, two or more, to both"
            )
        given = {f"judge {name}": each for name, each in judge.items()}
        given |= {f"human {name}": each for name, each in human.items()}
        pairs = pairs_of([*map(str, human)], baseline)
    elif isinstance(human, Mapping) or isinstance(judge, Mapping):
        raise InputTypeError(
            f"human is a {type(human).__name__} and judge a {type(judge).__name__}; "
            "give both as Scores, or both as mappings of the same systems"
        )
    else:
        given = {"judge": judge, "human": human}
    scored = {name: scores_of(name, each, measures) for name, each in given.items()}
    asked, names = common_measures(scored, measures), column_names(by)
    found = match_queries(scored, asked, None, 0.0)
    lacking = {name: ids for name, ids in found.missing.items() if name.startswith("judge")}
    if lacking:
        raise InputError(f"{missing_text(lacking)} Give the judge's values for all queries.")
    queries = next(iter(found.samples.values())).queries
    labelled = np.ones(len(queries), np.bool_)
    for ids in found.missing.values():
        labelled &= ~array_of(pc.is_in(decode(queries[0]).cast(ids.type), value_set=ids))
    check_kept(names, queries.column_names)
    kinds = dict.fromkeys(("measure", *(() if pairs is None else ("system", "baseline"))), pa.string())
    check_free(names, {*kinds, *_NUMBERS})
    groups, distinct = [np.arange(len(queries))], list[pa.Array]()
    if names:
        distinct, groups = groups_of([queries[name] for name in names])
    rows: list[dict[str, Any]] = []
    for group in groups:
        for place, measure in enumerate(asked):
            for pair in [("",)] if pairs is None else pairs:
                people, machine = (
                    [found.samples[f"{who} {name}".strip()] for name in pair] for who in ("human", "judge")
                )
                numbers = _estimate(place, str(measure), people, machine, labelled, group, confidence)
                rows.append(dict(zip(kinds, (str(measure), *pair), strict=False)) | numbers)
    table = pa.Table.from_pylist(rows, pa.schema(kinds | _NUMBERS))
    of_groups = pa.array(np.repeat(np.arange(len(groups)), len(rows) // max(len(groups), 1)))
    for number, (name, column) in enumerate(zip(names, distinct, strict=True)):
        table = table.add_column(number, name, column.take(of_groups))
    return PredictionPowered(table, len(names) + len(kinds))


def _estimate(
    place: int,
    measure: str,
    people: list[Sample],
    machine: list[Sample],
    labelled: Flags,
    rows: Int64,
    confidence: float,
) -> dict[str, Any]:
    """The numbers of one measure of a system, or of the difference of two, over some queries."""
    numbers, counts = [], []
    for side in (people, machine):
        values = [sample.values[place][rows] for sample in side]
        numbers.append(values[0] if len(values) == 1 else differences_of(values[0], values[1]))
        counts.append(np.logical_and.reduce([sample.counts[place][rows] for sample in side]))
    chosen = labelled[rows]
    if (counts[0] != counts[1])[chosen].any():
        raise InputError(
            f'{measure} has empty="skip", which leaves out a query for people or the judge alone, so that '
            "their means are of different queries; evaluate it with empty=0"
        )
    own, others = np.flatnonzero(chosen & counts[1]), np.flatnonzero(~chosen & counts[1])
    weight = people[0].weight
    weights = None if weight is None else (weight[rows][own], weight[rows][others])
    found = controlled(numbers[0][own], numbers[1][own], numbers[1][others], weights)
    ends = found.interval(confidence)
    n = len(own), len(own) + len(others)
    return dict(zip(_NUMBERS, (found.mean, *ends, found.weight, *n, found.effective), strict=True))
