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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastndcg.common.arrow_types import combine, decode, is_binary
from fastndcg.convention.evaluation import ConventionScores, MeanSums, resolve_all
from fastndcg.decide.anchoring import ORDERS, summary_of_orders
from fastndcg.errors import warn
from fastndcg.kernels.compile import kernel_cache
from fastndcg.measures import Measure, Measures, as_measures
from fastndcg.scores.scores import Scores
from fastndcg.scores.signatures import Digests, signature_of
from fastndcg.scores.slices import COUNTS, columns_of_means, groups_of
from fastndcg.scores.summary import Summary, interval_of
from fastndcg.sources.columns import check_column
from fastndcg.sources.groups import parts_of
from fastndcg.statistics import Moments, SumsOfGroups, quartiles
from fastndcg.statistics.intervals import SMALL, check_confidence

if TYPE_CHECKING:
    from fastndcg.adapters.parts import Task
    from fastndcg.common.arrays import Float64, Int64

QUARTILES = ("q25", "median", "q75")


def merged(one: Any, other: Any) -> Any:
    """The sums of two parts: by key and field, of numbers, arrays and lists; None has nothing to add."""
    if one is None or other is None:
        return other if one is None else one
    if hasattr(one, "merge"):
        return one.merge(other)
    if type(one) is dict:
        return one | {key: merged(one.get(key), each) for key, each in other.items()}
    if isinstance(one, tuple):
        return getattr(one, "_make", tuple)(map(merged, one, other))
    return one + other


class Sums(NamedTuple):
    """Sums over the queries of a part. The sums of all parts add up to exactly those of the whole."""

    queries: int
    empty: tuple[int, ...]  # for each measure, the number of queries without a value
    moments: tuple[Moments, ...]
    values: tuple[list[Float64], ...] | None  # for each measure; None if quartiles are not computed
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
            tuple([each[0]] for each in counted) if values else None,
            tuple(map(scores._mean_sums, rows)) if isinstance(scores, ConventionScores) else None,
            scores._digests_in(),
        )

    def merge(self, other: Sums) -> Sums:
        return Sums._make([*map(merged, self[:-1], other[:-1]), self.digests + other.digests])


def summary_of(
    task: Task, found: Sequence[Any], *, values: bool = False, confidence: float | None = None
) -> Summary:
    """`Scores.summary`, or `Anchors.summary`, from sums, and for `values` quartiles by row of measures."""
    of_measures = {row: ends for each in found if isinstance(each, dict) for row, ends in each.items()}
    tool, weighted, n = task.convention, task.columns.weight is not None, len(task.measures)
    of_each = n * len(ORDERS) if task.anchors else n
    no_digests = Digests("returned", task.columns.is_judged is not None, 0, 0)
    nothing = Sums(0, (0,) * of_each, (Moments.of(np.empty(0)),) * of_each, None, None, no_digests)
    sums: Sums = reduce(merged, (each for each in found if not isinstance(each, dict)), nothing)
    if task.anchors:
        means = [moments.mean(weighted=weighted) for moments in sums.moments]
        by_order = {name: means[row::n] for row, name in enumerate(task.notations)}
        return summary_of_orders(by_order, sums.empty[2 * n :], sums.queries)
    rules = [None if tool is None else tool.on(each) for each in task.measures]
    heeds = [weighted and (rule is None or rule.weights != "ignored") for rule in rules]
    rows = []
    for row, (column, rule) in enumerate(zip(task.notations, rules, strict=True)):
        moments = sums.moments[row]
        numbers: dict[str, Any] = {"measure": column, "mean": moments.mean(weighted=weighted)}
        if rule is not None and sums.means is not None:
            numbers["mean"] = sums.means[row].mean(rule)
        if confidence is not None:
            numbers |= interval_of(numbers["mean"], moments, confidence, weighted=heeds[row])
        numbers["std"] = moments.std()
        numbers["min"], numbers["max"] = moments.range()
        if values:
            numbers |= zip(QUARTILES, of_measures.get(row, quartiles(np.empty(0))), strict=True)
        rows.append({**numbers, "queries": sums.queries, "empty": sums.empty[row]})
    resolved, name = (task.measures, None) if tool is None else (resolve_all(task.measures, tool), tool.name)
    signatures = {
        str(measure): signature_of(each, sums.digests, name, weighted=any(heeds))
        for measure, each in zip(task.measures, resolved, strict=True)
    }
    return Summary(rows, signatures)


# ---- between workers and the driver ----


@contextmanager
def telling_the_driver() -> Iterator[None]:
    """Score in a worker whose results `pickle_row` packs: the driver says that kernels cannot be kept."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "compiled kernels cannot be kept")
        yield


FOUND = pa.schema([("found", pa.binary())])  # of rows of `pickle_row`
_told: list[str] = []  # once in a driver


def pickle_row(found: Any, unkept: Sequence[str] = ()) -> pa.Table:
    """A row with the result of a part, and where workers could not keep kernels."""
    told = [*kernel_cache._warned, *unkept][:1]
    return pa.table([pa.array([pickle.dumps((found, told))], pa.binary())], schema=FOUND)


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
    quartiles: bool = False

    @property
    def names(self) -> list[str]:
        """Columns to read."""
        return [*dict.fromkeys([*self.by, *([] if self.weight is None else [self.weight])]), *self.notations]


def check_means(
    names: Sequence[str],
    measures: Measures,
    *,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    confidence: float | None = None,
    quartiles: bool = False,
) -> Means:
    """Return the means to compute, checked against the columns of the results."""
    known = as_measures(measures)
    groups = () if by is None else (by,) if isinstance(by, str) else tuple(by)
    if confidence is not None:
        check_confidence(confidence)
    if weight is not None:
        weight = weight if weight in names else COUNTS.get(weight, weight)
    means = Means(known, tuple(measure.label for measure in known), groups, weight, confidence, quartiles)
    asked = {"by": groups, "weight": () if weight is None else (weight,), "measures": means.notations}
    for argument, columns in asked.items():
        for name in columns:
            check_column(names, argument, name)
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
    counts: dict[tuple[int, str], Int64]  # by measure and field of `Moments`
    sums: dict[tuple[int, str], SumsOfGroups]  # those that means need

    @classmethod
    def merged(cls, parts: Sequence[Groups], kinds: Sequence[pa.DataType]) -> Groups:
        """The sums over all parts; there is at least one. `kinds` are the types of the groups."""
        columns = [
            pa.chunked_array([part.by[place].cast(kind) for part in parts])
            for place, kind in enumerate(kinds)
        ]
        by, codes, n = numbered_groups(columns, sum(len(part.queries) for part in parts))

        def added(counts: Sequence[Int64]) -> Int64:
            found = np.zeros(n, np.int64)
            np.add.at(found, codes, np.concatenate(counts))
            return found

        counts = {key: added([part.counts[key] for part in parts]) for key in parts[0].counts}
        sums = {
            key: SumsOfGroups.merged(codes, n, [part.sums[key] for part in parts]) for key in parts[0].sums
        }
        return cls(by, added([part.queries for part in parts]), counts, sums)

    def of(self, rows: Int64) -> Groups:
        """Some of the groups."""
        counts = {key: counts[rows] for key, counts in self.counts.items()}
        sums = {key: SumsOfGroups(each.lowest, each.digits[rows]) for key, each in self.sums.items()}
        return Groups([column.take(pa.array(rows)) for column in self.by], self.queries[rows], counts, sums)

    def moments(self, row: int) -> list[Moments]:
        """Those of each group, without the extremes."""
        n = len(self.queries)
        columns: dict[str, Sequence[Any]] = {name: [0] * n for name in Moments._fields}
        columns |= {name: [Fraction(0)] * n for name in _FACTORS}
        columns |= {name: counts.tolist() for (of, name), counts in self.counts.items() if of == row}
        columns |= {name: sums.fractions() for (of, name), sums in self.sums.items() if of == row}
        return list(map(Moments._make, zip(*columns.values(), strict=True)))


def sums_by(means: Means, table: pa.Table) -> Groups:
    """Return the sums of each group in a part of the results; one group without columns to group by."""
    by, codes, n = numbered_groups([table[name] for name in means.by], len(table))
    needed = ["total"] if means.weight is None else ["weights", "weighted"]
    if means.confidence is not None:
        needed = list(_FACTORS)[:2] if means.weight is None else list(_FACTORS)[2:]
    counts, sums = {}, {}
    for row, (groups, value, w) in enumerate(_that_count(means, table, codes)):
        finite = np.isfinite(value) if w is None else np.isfinite(value) & np.isfinite(w)
        found = {"n_values": groups, "undefined": groups[~finite]}
        kept, factors = groups[finite], {"value": value[finite]}
        if w is not None:
            found["weighing"] = kept[w[finite] != 0]
            factors |= {"weight": w[finite], "product": w[finite] * value[finite]}
        for name, of_count in found.items():
            counts[row, name] = np.bincount(of_count, minlength=n)
        for name in needed:
            sums[row, name] = SumsOfGroups.of(kept, n, *(factors[each] for each in _FACTORS[name]))
    return Groups(by, np.bincount(codes, minlength=n), counts, sums)


def _that_count(means: Means, table: pa.Table, codes: Int64) -> Iterator[tuple[Int64, Float64, Any]]:
    """Of each measure, what enters its means: groups, values and weights."""
    weight = None if means.weight is None else table[means.weight].to_numpy()
    values = np.stack([table[column].to_numpy() for column in means.notations])
    scores = Scores(means.measures, values, np.zeros(values.shape, np.bool_), table, weight)
    for row in range(len(means.measures)):
        of_row = scores._counts(row)
        yield codes if of_row is None else codes[of_row], *scores._values_that_count(row)


def numbered_groups(columns: Sequence[pa.ChunkedArray], n: int) -> tuple[list[pa.Array], Int64, int]:
    """The values of each group, the number of the group of each row, (n,), and how many groups there are."""
    by, rows = groups_of(columns) if columns else ([], [np.arange(n)])
    codes = np.zeros(n, np.int64)
    if rows:
        codes[np.concatenate(rows)] = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    return by, codes, len(rows)


def blocks_of(columns: Sequence[pa.Array | pa.ChunkedArray], rows: int, n: int) -> npt.NDArray[Any]:
    """The block of each group or row, the same in all parts: by a hash of the texts of values."""
    texts = [pa.array([b""] * rows)]
    for column in columns:
        given = decode(column)
        if pa.types.is_floating(given.type):
            given = pc.add(given, 0.0)  # -0.0 is 0.0
        try:
            text = given if is_binary(given.type) else given.cast(pa.string())
        except pa.ArrowNotImplementedError:
            text = pa.array([None if value is None else str(value) for value in given.to_pylist()])
        texts.append(pc.fill_null(combine(text).cast(pa.binary()), b"\0null"))
    return parts_of(pc.binary_join_element_wise(*texts, b"\0"), n)


def means_of(
    means: Means, kinds: Sequence[pa.DataType], parts: Iterable[Groups], rows: pa.Table | None = None
) -> pa.Table:
    """Return the result of `Scores.by`, ascending with null last. `kinds` are the types of the groups, and
    `rows` the results that quartiles are of.

    Empty queries are not counted, since an empty query has the same value as a query of value 0.
    """
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    nothing = dict.fromkeys(means.names, pa.array([], pa.float64()))
    nothing |= {name: pa.array([], kind) for name, kind in zip(means.by, kinds, strict=True)}
    rows = pa.table(nothing) if rows is None else rows
    found = Groups.merged([sums_by(means, rows), *parts], kinds)
    columns: dict[str, Any] = dict(zip(means.by, found.by, strict=True))
    columns["queries"] = pa.array(found.queries)
    if means.confidence is not None:
        columns["small"] = pa.array(found.queries < SMALL)
    weighted, n = means.weight is not None, len(found.queries)
    codes = numbered_groups([rows[name] for name in means.by], len(rows))[1]
    counted = list(_that_count(means, rows, codes))
    for row, column in enumerate(means.notations):
        moments = found.moments(row)
        averages = [each.mean(weighted=weighted) for each in moments]
        columns |= columns_of_means(column, averages, moments, means.confidence, weighted=weighted)
        if means.quartiles:
            groups, values, _ = counted[row]
            order = np.argsort(groups, kind="stable")
            parted = np.split(values[order], np.searchsorted(groups[order], np.arange(1, n)))
            three = np.array([quartiles(part) for part in parted[:n]]).reshape(n, 3).T
            columns |= {
                f"{column}_{name}": pa.array(ends) for name, ends in zip(QUARTILES, three, strict=True)
            }
    table = pa.table(columns)
    return table.sort_by([(name, "ascending") for name in means.by]) if means.by else table
