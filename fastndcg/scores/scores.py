"""`Scores`: the values of each measure for each query, their means, summaries and tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from fastndcg import statistics
from fastndcg.common.arrays import Float64, Int64, read_only
from fastndcg.common.arrow_types import column_of
from fastndcg.common.exports import AsFrame
from fastndcg.common.files import kind_of, table_writer, whole_file
from fastndcg.common.lazy import pa
from fastndcg.common.table import Table
from fastndcg.errors import ColumnError, check_choice, count_of, known_arguments
from fastndcg.measures import Measure, find_measure
from fastndcg.measures.parameters import Function
from fastndcg.scores.signatures import Digests, digests_of, digests_of_ids, metadata_of, signature_of
from fastndcg.scores.slices import (
    OWN,
    check_free,
    check_kept,
    column_names,
    columns_of_means,
    numbered_groups,
    weights_by,
)
from fastndcg.scores.summary import Means, Summary, interval_of
from fastndcg.statistics.exact_sums import Moments
from fastndcg.statistics.resampling import METHODS, bootstrap_interval, check_resamples
from fastndcg.statistics.significance import SMALL, check_confidence

if TYPE_CHECKING:
    from fastndcg.charts.plots import ScoresPlots

NOTATION = b"fastndcg.measure"  # key of metadata: the notation of a measure whose column has another name


class Scores(AsFrame):
    """Values of measures, a float64 for each query; immutable.

    Attributes
    ----------
    measures : tuple of Measure, (n_measures,)
    values : float64, (n_measures, n_queries)
        NaN where the value of a query is undefined and its measure's `empty` is "nan" or "skip".
    queries : pyarrow.Table, n_queries rows
        The query id under its own name, kept columns, `weight` if any.
    weight : float64, (n_queries,), or None

    Examples
    --------
    >>> from fastndcg import Rankings, evaluate
    >>> scores = evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), ["nDCG@2", "CG@1"])
    >>> scores["CG@1"]
    array([3., 0.])
    >>> scores.mean()
    {'nDCG@2': 0.8154648767857287, 'CG@1': 1.5}
    """

    measures: tuple[Measure, ...]
    values: Float64
    weight: Float64 | None
    _empty: npt.NDArray[np.bool_]
    _source: Any

    def __init__(
        self,
        measures: Iterable[Measure],
        values: Float64,
        empty: npt.NDArray[np.bool_],
        queries: Any,
        weight: Float64 | None,
    ) -> None:
        self.__dict__.update(
            measures=tuple(measures),
            values=read_only(values),
            weight=None if weight is None else read_only(weight),
            _empty=empty,  # (n_measures, n_queries): True where a measure is undefined
            _source=queries,  # a table, or an object that has one as `queries`
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable; evaluate again to change {name}")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_stream"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # a pickle does not store that arrays are read-only
        arrays = {name: state[name] for name in ("values", "weight") if state[name] is not None}
        self.__dict__.update(state, **{name: read_only(array) for name, array in arrays.items()})

    # ---- parts ----

    def _of(self, queries: pa.Table, order: npt.NDArray[np.int64] | slice = slice(None)) -> Scores:
        """Return the same scores with another table of queries, in its order."""
        weight = None if self.weight is None else self.weight[order]
        return Scores(self.measures, self.values[:, order], self._empty[:, order], queries, weight)

    @staticmethod
    def _join(parts: Sequence[Scores], queries: pa.Table, weight: Float64 | None) -> Scores:
        """Return the scores of all parts, one part after the other."""
        values = np.concatenate([part.values for part in parts], axis=1)
        empty = np.concatenate([part._empty for part in parts], axis=1)
        return Scores(parts[0].measures, values, empty, queries, weight)

    def _weighted_by(self, weights: str | None) -> Scores:
        return Scores(self.measures, self.values, self._empty, self._source, weights_by(self, weights))

    @cached_property
    def queries(self) -> pa.Table:
        return self._source if isinstance(self._source, pa.Table) else self._source.queries

    @property
    def _rankings(self) -> Any:
        """The evaluated rankings if still available, or None."""
        source = getattr(self._source, "rankings", self._source)
        return None if isinstance(source, pa.Table) else source

    @property
    def n_queries(self) -> int:
        return int(self.values.shape[1])

    def __len__(self) -> int:
        return self.n_queries

    def __iter__(self) -> Iterator[Measure]:
        return iter(self.measures)

    def __getitem__(self, measure: object) -> Float64:
        """Values of one measure, (n_queries,). Raises `MeasureError` for a measure that was not evaluated."""
        row: Float64 = self.values[self.measures.index(self._find(measure))]
        return row

    def _find(self, measure: object) -> Measure:
        return find_measure(measure, self.measures, "was not evaluated")

    @known_arguments
    def mean(self, weights: str | None = OWN) -> dict[str, float]:
        """The mean of each measure by its notation: correctly rounded, and weighted.

        Any other spelling of a measure finds its mean too, as in `mean()["Recall@10"]`. Queries where the
        measure is undefined are left out if its `empty` is "skip"; if it is "nan", one such query makes the
        mean NaN. `weights` are those of the queries, if any; a column; None; or "n_relevant" or "n_docs", the
        number of relevant or of returned documents, as in GAUC (Zhu et al., Optimized cost per click in
        Taobao, KDD 2017). For these a stream is read once more, unless NumRel or NumRet was evaluated too.
        """
        if weights != OWN:
            return self._weighted_by(weights).mean()
        return Means({str(measure): self._mean(row) for row, measure in enumerate(self.measures)})

    @known_arguments
    def summary(
        self,
        confidence: float | None = None,
        method: str = "t",
        *,
        resamples: int = 10_000,
        seed: int = 0,
        weights: str | None = OWN,
    ) -> Summary:
        """Mean, standard deviation (by n - 1) and quartiles of each measure, the number of queries, and how
        many of them are empty.

        Parameters
        ----------
        confidence : float, optional
            For example 0.95: adds a confidence interval for the mean, from `low` to `high`. It is mean ± t(n
            - 1) * std / sqrt(n). Weighted means take the linearised error of a ratio, with (sum of w)^2 /
            (sum of w^2) - 1 degrees of freedom.
        method : "t", "percentile" or "bca"
            How intervals are computed: by Student's t, or by a bootstrap, which draws queries with
            replacement. With few queries, bootstrap intervals miss the true mean more often than `confidence`
            says, and those of Student's t may reach beyond the range of the measure.
        resamples, seed : int
            The number of bootstrap resamples, and the seed of the draws, which depend on nothing else.
        weights : str or None
            As in `mean`.

        Raises
        ------
        InputError
            A confidence that is not between 0 and 1; an unknown method; fewer than 100 resamples.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> evaluate(Rankings.from_lists([[3, 2, 0], [0, 1], [1, 0]]), "nDCG@2").summary(0.95)
        measure      mean       low      high       std       min ...       max  queries  empty
        nDCG@2   0.876977  0.347650  1.406304  0.213083  0.630930 ...  1.000000        3      0
        """
        if weights != OWN:
            return self._weighted_by(weights).summary(confidence, method, resamples=resamples, seed=seed)
        check_choice("method", method, ("t", *METHODS))
        resamples, seed = check_resamples(resamples, seed)
        if confidence is not None:
            check_confidence(confidence)
        rows = []
        for row, measure in enumerate(self.measures):
            values, weight = self._values_that_count(row)
            moments = Moments.of(values, weight)
            numbers: dict[str, Any] = {"measure": str(measure), "mean": self._mean_of(moments, row)}
            least, greatest = moments.range()
            if confidence is None:
                pass
            elif method == "t":
                numbers |= interval_of(numbers["mean"], moments, confidence, weighted=weight is not None)
            else:
                drawn = method, resamples, seed
                ends = bootstrap_interval(values, weight, confidence, *drawn, middle=numbers["mean"])
                numbers |= ends._asdict()
            is_known = len(values) and np.isfinite(values).all()
            quartiles = np.quantile(values, [0.25, 0.5, 0.75]).tolist() if is_known else [math.nan] * 3
            described = (moments.std(), least, *quartiles, greatest)
            numbers |= zip(("std", "min", "q25", "median", "q75", "max"), described, strict=True)
            rows.append({**numbers, "queries": self.n_queries, "empty": int(self._empty[row].sum())})
        return Summary(rows)

    @known_arguments
    def by(
        self, columns: str | Sequence[str], confidence: float | None = None, *, weights: str | None = OWN
    ) -> Table:
        """Means over groups of queries: a row for each value of a kept column.

        Parameters
        ----------
        columns : str or sequence of str
            Kept columns. Several columns give a row for each combination of values that occurs.
        confidence, weights
            As in `summary`.

        Returns
        -------
        Table
            Rows ascend by the columns: numbers, dates and times by value, texts by name; NaN and null come
            last. It has the columns, `queries` (how many), and the mean of each measure, weighted if there
            are weights. With `confidence` also `small`, true for groups of fewer than 30 queries, whose
            intervals are unreliable; and after each mean its interval, `_low` to `_high`, and `_empty`, the
            number of queries where the measure is undefined.

        Raises
        ------
        ColumnError, InputError
            A column that was not kept; a confidence that is not between 0 and 1.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> kept = {"country": ["de", "fr", "de", "fr"], "device": ["tv", "tv", "tv", "pc"]}
        >>> scores = evaluate(Rankings.from_lists([[1, 0], [0, 1], [0, 1], [1]], queries=kept), "RR")
        >>> scores.by(["country", "device"]).select(["country", "device", "RR"]).to_pydict()
        {'country': ['de', 'fr', 'fr'], 'device': ['tv', 'pc', 'tv'], 'RR': [0.75, 1.0, 0.5]}
        >>> scores.by("country", confidence=0.95).column_names
        ['country', 'queries', 'small', 'RR', 'RR_low', 'RR_high', 'RR_empty']
        """
        if weights != OWN:
            return self._weighted_by(weights).by(columns, confidence)
        names, kept = column_names(columns), self.queries.column_names
        check_kept(names, kept)
        check_free(names, ["queries"] if confidence is None else ["queries", "small"])
        if not names:
            raise ColumnError(f"no column to group by; available columns: {', '.join(kept)}")
        distinct, codes, n = numbered_groups([self.queries[name] for name in names], self.n_queries)
        sizes = np.bincount(codes, minlength=n)
        table: dict[str, Any] = dict(zip(names, distinct, strict=True))
        table["queries"] = pa.array(sizes)
        if confidence is not None:
            table["small"] = pa.array(sizes < SMALL)
        weighted = self._weight is not None
        for row, measure in enumerate(self.measures):
            moments = self._sums_by(row, codes, n, spread=confidence is not None).each()
            means = self._means_by(row, codes, n, moments)
            of_measure = columns_of_means(measure.label, means, moments, confidence, weighted=weighted)
            if confidence is not None:
                empty = np.bincount(codes[self._empty[row]], minlength=n)
                of_measure[f"{measure.label}_empty"] = pa.array(empty)
            for name in names:
                if name in of_measure:
                    raise ColumnError(
                        f'the column "{name}" has the name of a result of {measure}; '
                        "rename it, or spell the measure otherwise"
                    )
            table |= of_measure
        return Table(pa.table(table), len(names) + 1 + (confidence is not None))

    @known_arguments
    def worst(self, measure: object, n: int = 20) -> Table:
        """The queries with the lowest values of a measure, lowest first; queries of equal value keep their
        order. Queries where the measure is undefined are left out.

        Parameters
        ----------
        measure : Measure, notation, or ir_measures object
            One that was evaluated; `MeasureError` for others.
        n : int
            Number of rows, at most.

        Returns
        -------
        Table
            The columns of `queries`, and the measure.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> rankings = Rankings.from_lists([[1, 0], [0, 1], [2, 1]], query_ids=["a", "b", "c"])
        >>> evaluate(rankings, "RR").worst("RR", 1).to_pylist()
        [{'query_id': 'b', 'RR': 0.5}]
        """
        return self._extreme(measure, n, 1)

    @known_arguments
    def best(self, measure: object, n: int = 20) -> Table:
        """The queries with the highest values of a measure, highest first. Otherwise like `worst`."""
        return self._extreme(measure, n, -1)

    def _extreme(self, measure: object, n: int, sign: int) -> Table:
        row = self.measures.index(self._find(measure))
        values = self.values[row]
        defined = np.flatnonzero(~(np.isnan(values) | self._empty[row]))
        chosen = defined[np.argsort(sign * values[defined], kind="stable")[: max(n, 0)]]
        queries = self.queries.take(column_of(chosen))
        return Table(queries.append_column(self.measures[row].label, column_of(values[chosen])))

    def _mean(self, row: int, part: npt.NDArray[np.int64] | slice = slice(None)) -> float:
        return statistics.mean(*self._values_that_count(row, part))

    def _mean_of(self, moments: Moments, row: int) -> float:  # noqa: ARG002 - conventions need the row alone
        """Return the mean of a measure from its sums."""
        return moments.mean(weighted=self._weight is not None)

    def _sums_by(self, row: int, codes: Int64, n: int, *, spread: bool) -> Moments:
        """Return sums over the queries that count in the mean of each of n groups."""
        counts = self._counts(row)
        of_values = codes if counts is None else codes[counts]
        return Moments.of(*self._values_that_count(row), of_values, n, spread=spread)

    def _means_by(
        self,
        row: int,  # noqa: ARG002
        codes: Int64,  # noqa: ARG002
        n: int,  # noqa: ARG002
        moments: list[Moments],
    ) -> list[float]:
        """Return the mean of a measure in each group from moments; conventions need the groups themselves."""
        return [each.mean(weighted=self._weight is not None) for each in moments]

    def _values_that_count(
        self, row: int, part: npt.NDArray[np.int64] | slice = slice(None)
    ) -> tuple[Float64, Float64 | None]:
        """Return the values that count in the mean, and their weights."""
        values, weight = self.values[row][part], None if self._weight is None else self._weight[part]
        counts = self._counts(row)
        if counts is not None:
            counts = counts[part]
            values, weight = values[counts], None if weight is None else weight[counts]
        return values, weight

    def _counts(self, row: int) -> npt.NDArray[np.bool_] | None:
        """Return which queries count in the mean; None for all."""
        skips = self.measures[row].params.get("empty") == "skip"
        return ~np.isnan(self.values[row]) if skips else None

    @property
    def _weight(self) -> Float64 | None:
        """Return the weights for means."""
        return self.weight

    @property
    def plot(self) -> ScoresPlots:
        """Pictures: `scores.plot.distribution("nDCG@10")`. It needs the extra `report`."""
        from fastndcg.charts.plots import ScoresPlots

        return ScoresPlots(self)

    # ---- signatures ----

    def signature(self, measure: object) -> str:
        """One line that says exactly how the number of a measure was made, to be quoted beside it.

        It has the measure with all parameters; the convention; how unjudged documents were treated; whether
        means are weighted; the number and a digest of the queries, and of their judgments; and the version. A
        gain that is a function has a digest of the gains of the grades that occur.
        `judgments` says whether the ideal was that of a "pool" of all judged documents or of the "returned"
        ones. Its digest is of the number of documents of each grade of each query, not of their ids. Digests
        depend neither on the order of rows, nor on threads, nor on whether a stream was read. A stream is
        read again for them, unless its results were written to a file meanwhile. Raises `MeasureError` for a
        measure that was not evaluated.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> print(evaluate(Rankings.from_lists([[3, 2, 0], [0, 1]]), "RR@10").signature("RR@10"))
        RR@10|rel:1|...|convention:none|...|queries:2:27c000b0123e32ae|judgments:returned:5:...|version:...
        """
        return self._signature_at(self.measures.index(self._find(measure)))

    def _signature_at(self, row: int) -> str:
        stored = (self._signatures or {}).get(str(self.measures[row]))
        if stored is not None:
            return stored
        convention = getattr(self, "convention", None)
        measure = getattr(self, "resolved", self.measures)[row]
        name = None if convention is None else convention.name
        return signature_of(measure, self._digests, name, weighted=self._weight is not None)

    def _known(self) -> Scores:
        """Return scores with unknown judgments, whose signatures need no second pass over a stream."""
        is_unread = self._stream is not None and "_digests" not in self.__dict__
        return self._of(self.queries) if is_unread else self

    def _all_signatures(self) -> dict[str, str]:
        """Return the signatures to store with results."""
        known = self._known()
        return {str(measure): known._signature_at(row) for row, measure in enumerate(self.measures)}

    _signatures: dict[str, str] | None = None  # signatures that were stored with the results
    _stream: Any = None  # the evaluated stream, if its digests are unknown

    @cached_property
    def _digests(self) -> Digests:
        if self._stream is not None:
            parts = (digests_of(part, None, self._functions) for part in self._stream)
            return sum(parts, digests_of(self._stream._nothing()))
        return self._digests_in()

    @property
    def _functions(self) -> set[Function]:
        """Return the gains that are functions."""
        gains = {each.params.get("gain") for each in getattr(self, "resolved", self.measures)}
        return {gain for gain in gains if isinstance(gain, Function)}

    def _digests_in(self) -> Digests:
        if self._rankings is None:
            return digests_of_ids(self.queries[0])
        return digests_of(self._rankings, getattr(self._source, "rows", None), self._functions)

    # ---- tables ----

    def _frame(self) -> pa.Table:
        """Return the table of `to_arrow` without signatures, which take time."""
        queries, fields = self.queries, []
        for measure in self.measures:  # columns are named as the user wrote them
            metadata = None if measure.label == str(measure) else {NOTATION: str(measure)}
            fields.append(pa.field(measure.label, pa.float64(), metadata=metadata))
        schema = pa.schema([*queries.schema, *fields], queries.schema.metadata)
        return pa.Table.from_arrays([*queries.columns, *map(column_of, self.values)], schema=schema)

    def to_arrow(self) -> pa.Table:
        """A row for each query: its columns, then a float64 column for each measure. The metadata of the
        schema have the signatures, as JSON under `fastndcg.signatures`; those of a stream know its judgments
        only if `signature` was called before.
        """
        table = self._frame()
        metadata = (table.schema.metadata or {}) | metadata_of(self._all_signatures())
        return table.replace_schema_metadata(metadata)

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write `to_arrow()` to Parquet, whole or not at all. Raises `SourceError` if writing fails."""
        import pyarrow.parquet as pq

        with whole_file(path) as draft:
            pq.write_table(self.to_arrow(), draft)

    def __repr__(self) -> str:
        return self.summary().under(f"Scores of {count_of(self.n_queries, 'query')}")

    def _repr_html_(self) -> str:
        heading = f"<p>Scores of {count_of(self.n_queries, 'query')}; low to high: intervals of 95 %</p>"
        return heading + self.summary(0.95)._repr_html_()


def write_results(
    path: str | os.PathLike[str], tables: Iterable[pa.Table], signatures: Mapping[str, Any] | None = None
) -> None:
    """Write results of queries, one table or more, in the format of the suffix. The file appears complete or
    not at all. Raises `SourceError` where it cannot be written.
    """
    with whole_file(path) as draft, ExitStack() as opened:
        writer: Any = None
        for table in tables:
            if writer is None:
                metadata = (table.schema.metadata or {}) | (metadata_of(signatures) if signatures else {})
                schema = table.schema.with_metadata(metadata or None)
                writer = opened.enter_context(closing(table_writer(draft, schema, kind_of(path))))
            writer.write_table(table)
