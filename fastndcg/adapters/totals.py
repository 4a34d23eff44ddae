"""What the parts of an engine's data add up to: a summary, or means of computed values.

A part sends only sums to the driver. Sums are fractions, so merging them in any order gives exactly the sums
of the whole.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.adapters.parts import Task, score
from fastndcg.convention.evaluation import ConventionScores, MeanSums, resolve_all
from fastndcg.errors import warn
from fastndcg.kernels.compile import caching
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.scores.scores import Scores
from fastndcg.scores.signatures import Digests, signature_of
from fastndcg.scores.slices import COUNTS, columns_of_means, groups_of
from fastndcg.scores.summary import Summary, interval_of
from fastndcg.sources.columns import check_column
from fastndcg.statistics import Moments, SumsOfGroups, quartiles
from fastndcg.statistics.intervals import SMALL, check_confidence

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]


class Sums(NamedTuple):
    """Sums over the queries of a part. The sums of all parts add up to exactly those of the whole."""

    queries: int
    empty: tuple[int, ...]  # for each measure, the number of queries without a value
    moments: tuple[Moments, ...]
    values: tuple[Float64, ...] | None  # for each measure; None if quartiles are not computed
    means: tuple[MeanSums, ...] | None  # for each measure; None without a convention
    digests: Digests  # of the queries and their judgments

    @classmethod
    def of(cls, scores: Scores, *, values: bool = False) -> Sums:
        rows = range(len(scores.measures))
        counted = [scores._values_that_count(row) for row in rows]
        return cls(
            scores.n_queries,
            tuple(scores._empty.sum(axis=1).tolist()),
            tuple(Moments.of(*each) for each in counted),
            tuple(each[0] for each in counted) if values else None,
            tuple(map(scores._mean_sums, rows)) if isinstance(scores, ConventionScores) else None,
            scores._digests_in(threads=1),
        )

    @classmethod
    def total(cls, measures: int, parts: Sequence[Sums]) -> Sums:
        """The sums over all parts; there may be no part."""
        moments = [Moments.of(np.empty(0))] * measures
        for part in parts:
            moments = list(map(Moments.merge, moments, part.moments))
        listed = [part.values for part in parts if part.values is not None]
        means = [part.means for part in parts if part.means is not None]
        return cls(
            sum(part.queries for part in parts),
            tuple(sum(part.empty[row] for part in parts) for row in range(measures)),
            tuple(moments),
            tuple(map(np.concatenate, zip(*listed, strict=True))) if listed else None,
            tuple(reduce(MeanSums.merge, of_measure) for of_measure in zip(*means, strict=True))
            if means
            else None,
            sum((part.digests for part in parts), Digests("returned", False, 0, 0)),
        )


def add_up(task: Task, tables: Iterable[pa.Table], *, values: bool) -> Sums:
    """Add up the sums over tables of whole queries."""
    return Sums.total(len(task.measures), [Sums.of(score(task, table)[0], values=values) for table in tables])


def summary_of(
    task: Task, found: Sequence[Sums], *, values: bool, confidence: float | None = None
) -> Summary:
    """Return the result of `Scores.summary` for all queries, with quartiles if the sums have values."""
    sums, rows, signatures = Sums.total(len(task.measures), found), [], {}
    weighted = task.columns.weight is not None
    rules = [None if task.convention is None else task.convention.on(each) for each in task.measures]
    weighs = weighted and any(rule is None or rule.weights != "ignored" for rule in rules)
    for row, column in enumerate(task.notations):
        moments = sums.moments[row]
        numbers: dict[str, Any] = {"measure": column, "mean": moments.mean(weighted=weighted)}
        rule = rules[row]
        heeds = weighted and (rule is None or rule.weights != "ignored")
        if rule is not None and sums.means is not None:
            numbers["mean"] = sums.means[row].mean(rule)
        if confidence is not None:
            numbers |= interval_of(numbers["mean"], moments, confidence, weighted=heeds)
        numbers["std"] = moments.std()
        numbers["min"], numbers["max"] = moments.range()
        if values:
            kept = np.empty(0) if sums.values is None else sums.values[row]
            numbers["q25"], numbers["median"], numbers["q75"] = quartiles(kept)
        rows.append({**numbers, "queries": sums.queries, "empty": sums.empty[row]})
        measure, tool = task.measures[row], task.convention
        resolved = measure if tool is None else resolve_all([measure], tool)[0]
        name = None if tool is None else tool.name
        signatures[str(measure)] = signature_of(resolved, sums.digests, name, weighted=weighs)
    return Summary(rows, signatures)


# ---- between workers and the driver ----


@contextmanager
def telling_the_driver() -> Iterator[None]:
    """Score in a worker whose results `pickle_row` packs: the driver says that kernels cannot be kept."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "compiled kernels cannot be kept")
        yield


_told: list[str] = []  # once in a driver


def pickle_row(found: Any, unkept: Sequence[str] = ()) -> pa.Table:
    """Return a table of one row with the result of a part, which is all that a worker sends to the driver,
    and where workers could not keep kernels.
    """
    told = [*caching._warned, *unkept][:1]
    return pa.table({"found": pa.array([pickle.dumps((found, told))], pa.binary())})


def unpickle(rows: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """Return the results of all parts from the rows of `pickle_row`, and where kernels could not be kept."""
    pairs = [pickle.loads(row["found"]) for row in rows]  # noqa: S301 - our own
    return [found for found, _ in pairs], [where for _, told in pairs for where in told]


def unpickle_rows(rows: Iterable[Any]) -> list[Any]:
    """Return the results of all parts, in the driver."""
    found, unkept = unpickle(rows)
    if unkept and not _told:
        _told.append(unkept[0])
        warn(
            f"workers cannot keep compiled kernels in {unkept[0]}; each of them compiles again, for about "
            "20 s. Ship a folder made by fastndcg compile --folder, or set NUMBA_CACHE_DIR for workers to a "
            "folder that they can write."
        )
    return found


# ---- means of computed values ----


class Means(NamedTuple):
    """The means to compute from results."""

    measures: tuple[Measure, ...]
    notations: tuple[str, ...]  # as in `Task`
    by: tuple[str, ...]
    weight: str | None
    confidence: float | None

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        return [*dict.fromkeys([*self.by, *([] if self.weight is None else [self.weight])]), *self.notations]


def check_means(
    names: Sequence[str],
    measures: Measures,
    *,
    by: str | Sequence[str] | None,
    weight: str | None,
    confidence: float | None = None,
) -> Means:
    """Return the means to compute, checked against the columns of the results."""
    known = as_measures(measures)
    groups = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if confidence is not None:
        check_confidence(confidence)
    means = Means(known, tuple(measure.label for measure in known), groups, weight, confidence)
    for name in means.by:
        check_column(names, "by", name)
    if weight is not None:
        weight = weight if weight in names else COUNTS.get(weight, weight)
        means = means._replace(weight=weight)
        check_column(names, "weight", weight)
    for column in means.notations:
        check_column(names, "measures", column)
    return means


# the sums of `Moments`, with the factors of each
_FACTORS = {
    "total": ("value",),
    "squares": ("value", "value"),
    "weights": ("weight",),
    "weighted": ("value", "weight"),
    "weight_squares": ("weight", "weight"),
    "weights_by_weighted": ("weight", "product"),
    "weighted_squares": ("product", "product"),
}


class Groups(NamedTuple):
    """Sums over the queries of each group. Those of all parts merge into exactly those of the whole."""

    by: list[pa.Array]  # the values of each group
    queries: Int64  # (n_groups,)
    counts: list[dict[str, Int64]]  # for each measure
    sums: list[dict[str, SumsOfGroups]]  # for each measure those that its means need

    @classmethod
    def merged(cls, parts: Sequence[Groups], kinds: Sequence[pa.DataType]) -> Groups:
        """The sums over all parts; there is at least one. `kinds` are the types of the groups."""
        columns = [
            pa.chunked_array([part.by[place].cast(kind) for part in parts])
            for place, kind in enumerate(kinds)
        ]
        by, codes = _numbered(columns, sum(len(part.queries) for part in parts))
        n = len(by[0]) if by else 1

        def added(counts: Sequence[Int64]) -> Int64:
            found = np.zeros(n, np.int64)
            np.add.at(found, codes, np.concatenate(counts))
            return found

        measures = range(len(parts[0].sums))
        return cls(
            by,
            added([part.queries for part in parts]),
            [
                {name: added([part.counts[row][name] for part in parts]) for name in parts[0].counts[row]}
                for row in measures
            ],
            [
                {
                    name: SumsOfGroups.merged(codes, n, [part.sums[row][name] for part in parts])
                    for name in parts[0].sums[row]
                }
                for row in measures
            ],
        )

    def moments(self, row: int) -> list[Moments]:
        """Those of each group, without the extremes."""
        n = len(self.queries)
        columns: dict[str, Sequence[Any]] = {name: [0] * n for name in Moments._fields}
        columns |= {name: [Fraction(0)] * n for name in _FACTORS}
        columns |= {name: counts.tolist() for name, counts in self.counts[row].items()}
        columns |= {name: sums.fractions() for name, sums in self.sums[row].items()}
        return list(map(Moments._make, zip(*columns.values(), strict=True)))


def sums_by(means: Means, table: pa.Table) -> Groups:
    """Return the sums of each group in a part of the results; one group without columns to group by."""
    by, codes = _numbered([table[name] for name in means.by], len(table))
    n = len(by[0]) if by else 1
    weight = None if means.weight is None else table[means.weight].to_numpy()
    nothing = np.zeros((len(means.measures), len(table)), np.bool_)
    values = np.stack([table[column].to_numpy() for column in means.notations])
    scores = Scores(means.measures, values, nothing, table, weight)
    needed = ["total"] if weight is None else ["weights", "weighted"]
    if means.confidence is not None:
        needed = list(_FACTORS)[:2] if weight is None else list(_FACTORS)[2:]
    counts, sums = [], []
    for row in range(len(means.measures)):
        of_row, (value, w) = scores._counts(row), scores._values_that_count(row)
        groups = codes if of_row is None else codes[of_row]
        finite = np.isfinite(value) if w is None else np.isfinite(value) & np.isfinite(w)
        found = {"n_values": groups, "undefined": groups[~finite]}
        groups, value, w = groups[finite], value[finite], None if w is None else w[finite]
        factors = {"value": value}
        if w is not None:
            found["weighing"] = groups[w != 0]
            factors |= {"weight": w, "product": w * value}
        counts.append({name: np.bincount(of_count, minlength=n) for name, of_count in found.items()})
        of_sums = {name: [factors[each] for each in _FACTORS[name]] for name in needed}
        sums.append({name: SumsOfGroups.of(groups, n, *each) for name, each in of_sums.items()})
    return Groups(by, np.bincount(codes, minlength=n), counts, sums)


def _numbered(columns: Sequence[pa.ChunkedArray], n: int) -> tuple[list[pa.Array], Int64]:
    """The values of each group, and the number of the group of each row, (n,)."""
    codes = np.zeros(n, np.int64)
    if not columns:
        return [], codes
    by, rows = groups_of(columns)
    if rows:
        codes[np.concatenate(rows)] = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    return by, codes


def means_of(means: Means, kinds: Sequence[pa.DataType], parts: Iterable[Groups]) -> pa.Table:
    """Return the result of `Scores.by`, ascending with null last. `kinds` are the types of the groups.

    Empty queries are not counted, since an empty query has the same value as a query of value 0.
    """
    kinds = [
        kind.value_type if pa.types.is_dictionary(kind) else kind
        for kind in kinds or [pa.null()] * len(means.by)
    ]
    nothing = dict.fromkeys(means.names, pa.array([], pa.float64()))
    nothing |= {name: pa.array([], kind) for name, kind in zip(means.by, kinds, strict=True)}
    found = Groups.merged([sums_by(means, pa.table(nothing)), *parts], kinds)
    columns: dict[str, Any] = dict(zip(means.by, found.by, strict=True))
    columns["queries"] = pa.array(found.queries)
    if means.confidence is not None:
        columns["small"] = pa.array(found.queries < SMALL)
    weighted = means.weight is not None
    for row, column in enumerate(means.notations):
        of_groups = found.moments(row)
        averages = [moments.mean(weighted=weighted) for moments in of_groups]
        columns |= columns_of_means(column, averages, of_groups, means.confidence, weighted=weighted)
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in means.by]) if means.by else table
