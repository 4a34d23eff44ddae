"""`Scores`: the values of each measure for each query, their means, summaries and tables."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from fastndcg import statistics
from fastndcg.common.arrays import read_only
from fastndcg.common.arrow_types import array_of, decode, places_of
from fastndcg.common.files import kind_of, table_writer, whole_file
from fastndcg.common.later import pa
from fastndcg.common.table import AsFrame, Table, fit, terminal_width
from fastndcg.errors import Argument, ColumnError, FastndcgError, InputError, check_choice, count_of, suggest
from fastndcg.measures import Measure, as_measure, find_measure
from fastndcg.statistics.exact_sums import Moments
from fastndcg.statistics.intervals import SMALL, check_confidence, logit_interval, t_interval
from fastndcg.statistics.resampling import METHODS, bootstrap_interval, check_resamples

if TYPE_CHECKING:
    from fastndcg.look.methods import ScoresPlots

Float64 = npt.NDArray[np.float64]
NOTATION = b"fastndcg.measure"  # metadata: the notation of a column that is named otherwise


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
            _empty=empty,  # (n_measures, n_queries): where a measure is undefined
            _source=queries,  # a table, or an object that has one as `queries`
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable; evaluate again to change {name}")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # a pickle forgets that arrays are read-only
        values, weight = state["values"], state["weight"]
        self.__dict__.update(
            state, values=read_only(values), weight=None if weight is None else read_only(weight)
        )

    # ---- parts ----

    def _of(self, queries: pa.Table) -> Scores:
        """The same scores with another table of their queries."""
        return Scores(self.measures, self.values, self._empty, queries, self.weight)

    @staticmethod
    def _join(parts: Sequence[Scores], queries: pa.Table, weight: Float64 | None) -> Scores:
        """Scores of the queries of all parts, one part after the other."""
        values = np.concatenate([part.values for part in parts], axis=1)
        empty = np.concatenate([part._empty for part in parts], axis=1)
        return Scores(parts[0].measures, values, empty, queries, weight)

    def _reorder(self, order: npt.NDArray[np.int64], queries: pa.Table, weight: Float64 | None) -> Scores:
        """The same queries in another order."""
        return Scores(self.measures, self.values[:, order], self._empty[:, order], queries, weight)

    @cached_property
    def queries(self) -> pa.Table:
        return self._source if isinstance(self._source, pa.Table) else self._source.queries

    @property
    def _rankings(self) -> Any:
        """The rankings that were evaluated, if they are at hand, or None."""
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

    def mean(self) -> dict[str, float]:
        """The mean of each measure by its notation: correctly rounded, and weighted if there are weights.

        Any other spelling of a measure finds its mean too, as in `mean()["Recall@10"]`. Queries where the
        measure is undefined are left out if its `empty` is "skip"; if it is "nan", one such query makes the
        mean NaN.
        """
        return Means({str(measure): self._mean(row) for row, measure in enumerate(self.measures)})

    def summary(
        self, confidence: float | None = None, method: str = "t", *, resamples: int = 10_000, seed: int = 0
    ) -> Summary:
        """Mean, standard deviation and quartiles of each measure, the number of queries, and how many of them
        are empty.

        Parameters
        ----------
        confidence : float, optional
            For example 0.95: adds a confidence interval for the mean, from `low` to `high`. It is mean ± t(n
            - 1) * std / sqrt(n). Weighted means take the linearised error of a ratio, with (sum of w)^2 /
            (sum of w^2) - 1 degrees of freedom.
        method : "t", "logit", "percentile", "bca" or "studentised"
            How intervals are computed: by Student's t, or by one of three bootstraps, which draw queries with
            replacement. With few queries, bootstrap intervals miss the true mean more often than `confidence`
            says, and those of Student's t may reach beyond the range of the measure, which the summary then
            says. "logit" is Student's t of the logit (Korn and Graubard, Survey Methodology 1998), whose ends
            lie within the range; for measures from 0 to 1.
        resamples, seed : int
            The number of bootstrap resamples, and the seed of the draws. The draws depend on nothing else.

        Raises
        ------
        InputError
            A confidence that is not between 0 and 1; an unknown method, or "logit" for a measure that is not
            from 0 to 1; fewer than 100 resamples.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> evaluate(Rankings.from_lists([[3, 2, 0], [0, 1], [1, 0]]), "nDCG@2").summary(0.95)
        measure      mean       low      high       std       min ...       max  queries  empty
        nDCG@2   0.876977  0.347650  1.406304  0.213083  0.630930 ...  1.000000        3      0
        The interval of nDCG@2 reaches beyond 0 to 1; Scores.summary(method="logit") keeps it within.
        """
        check_choice("method", method, ("t", "logit", *METHODS))
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
            elif method == "logit":
                check_unit(measure, least, greatest)
                error = moments.error(weighted=weight is not None)
                numbers |= logit_interval(numbers["mean"], *error, confidence, 0.0, 1.0)._asdict()
            else:
                drawn = method, resamples, seed
                ends = bootstrap_interval(values, weight, confidence, *drawn, middle=numbers["mean"])
                numbers |= ends._asdict()
            described = (moments.std(), least, *statistics.quartiles(values), greatest)
            numbers |= zip(("std", "min", "q25", "median", "q75", "max"), described, strict=True)
            rows.append({**numbers, "queries": self.n_queries, "empty": int(self._empty[row].sum())})
        return Summary(rows)

    def by(self, columns: str | Sequence[str], confidence: float | None = None) -> Table:
        """Means over groups of queries: a row for each value of a kept column.

        Parameters
        ----------
        columns : str or sequence of str
            Kept columns. Several columns give a row for each combination of values that occurs.
        confidence : float, optional
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
        names = [columns] if isinstance(columns, str) else list(dict.fromkeys(columns))
        kept = self.queries.column_names
        check_kept(names, kept)
        for name in {"queries", *(() if confidence is None else ("small",))} & set(names):
            raise ColumnError(f'the column "{name}" has the name of a column of the result; rename it')
        if not names:
            raise ColumnError(f"no column is named to group by; kept were: {', '.join(kept)}")
        distinct, parts = groups_of([self.queries[name] for name in names])
        pages = []
        table: dict[str, Any] = dict(zip(names, distinct, strict=True))
        table["queries"] = pa.array(map(len, parts), pa.int64())
        if confidence is not None:
            table["small"] = pa.array([len(part) < SMALL for part in parts], pa.bool_())
        weighted = self._weight is not None
        for row, measure in enumerate(self.measures):
            means = [self._mean(row, part) for part in parts]
            moments = (Moments.of(*self._values_that_count(row, part)) for part in parts)
            of_measure = columns_of_means(measure.label, means, moments, confidence, weighted=weighted)
            if confidence is not None:
                empty = [int(self._empty[row, part].sum()) for part in parts]
                of_measure[f"{measure.label}_empty"] = pa.array(empty, pa.int64())
            for name in names:
                if name in of_measure:
                    raise ColumnError(
                        f'the column "{name}" has the name of a result of {measure}; '
                        "rename it, or spell the measure otherwise"
                    )
            table |= of_measure
            pages.append(list(of_measure))
        keys = len(table) - sum(map(len, pages))
        return Table(pa.table(table), keys, pages)

    def worst(self, measure: object, n: int = 20) -> Table:
        """The queries with the lowest values of a measure, lowest first; queries of equal value keep their
        order. Queries where the measure is undefined are left out.

        Parameters
        ----------
        measure : Measure, notation, or ir_measures object
            One that was evaluated.
        n : int
            Number of rows, at most.

        Returns
        -------
        Table
            The columns of `queries`, and the measure.

        Raises
        ------
        MeasureError
            A measure that was not evaluated.

        Examples
        --------
        >>> from fastndcg import Rankings, evaluate
        >>> rankings = Rankings.from_lists([[1, 0], [0, 1], [2, 1]], query_ids=["a", "b", "c"])
        >>> evaluate(rankings, "RR").worst("RR", 1).to_pylist()
        [{'query_id': 'b', 'RR': 0.5}]
        """
        return self._extreme(measure, n, 1)

    def best(self, measure: object, n: int = 20) -> Table:
        """The queries with the highest values of a measure, highest first. Otherwise like `worst`."""
        return self._extreme(measure, n, -1)

    def _extreme(self, measure: object, n: int, sign: int) -> Table:
        row = self.measures.index(self._find(measure))
        values = self.values[row]
        defined = np.flatnonzero(~(np.isnan(values) | self._empty[row]))
        chosen = defined[np.argsort(sign * values[defined], kind="stable")[: max(n, 0)]]
        table = self.queries.take(pa.array(chosen))
        return Table(table.append_column(self.measures[row].label, pa.array(values[chosen])))

    def _mean(self, row: int, part: npt.NDArray[np.int64] | slice = slice(None)) -> float:
        return statistics.mean(*self._values_that_count(row, part))

    def _mean_of(self, moments: Moments, row: int) -> float:  # noqa: ARG002 - conventions need the row alone
        """The mean of a measure, from its sums."""
        return moments.mean(weighted=self._weight is not None)

    def _values_that_count(
        self, row: int, part: npt.NDArray[np.int64] | slice = slice(None)
    ) -> tuple[Float64, Float64 | None]:
        """The values that enter the mean, and their weights."""
        values, weight = self.values[row][part], None if self._weight is None else self._weight[part]
        counts = self._counts(row)
        if counts is not None:
            counts = counts[part]
            values, weight = values[counts], None if weight is None else weight[counts]
        return values, weight

    def _counts(self, row: int) -> npt.NDArray[np.bool_] | None:
        """Which queries enter the mean; None for all."""
        skips = self.measures[row].params.get("empty") == "skip"
        return ~np.isnan(self.values[row]) if skips else None

    @property
    def _weight(self) -> Float64 | None:
        """The weights for means."""
        return self.weight

    @property
    def plot(self) -> ScoresPlots:
        """Pictures: `scores.plot.distribution("nDCG@10")`. It needs the extra `plot`."""
        from fastndcg.look.methods import ScoresPlots

        return ScoresPlots(self)

    # ---- tables ----

    def to_arrow(self) -> pa.Table:
        """A row for each query: its columns, then a float64 column for each measure."""
        queries = self.queries
        fields = [*queries.schema, *map(_field_of, self.measures)]
        columns = [*queries.columns, *map(pa.array, self.values)]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields, queries.schema.metadata))

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write `to_arrow()` to Parquet, whole or not at all. Raises `SourceError` if writing fails."""
        import pyarrow.parquet as pq

        with whole_file(path) as draft:
            pq.write_table(self.to_arrow(), draft)

    def __repr__(self) -> str:
        return self.summary().under(f"Scores of {count_of(self.n_queries, 'query')}")

    def _repr_html_(self) -> str:
        heading = f"Scores of {count_of(self.n_queries, 'query')}; low to high: intervals of 95 %"
        return f"<p>{heading}</p>{self.summary(0.95)._repr_html_()}"


class SomeQueries(NamedTuple):
    """The source of scores of some of the queries of rankings."""

    queries: pa.Table
    rankings: Any


class Means(dict[str, float]):
    """Means by the notation of their measure. Any other spelling of the measure finds the mean too.

    >>> from fastndcg import Rankings, evaluate
    >>> means = evaluate(Rankings.from_lists([[1, 0], [0, 1]]), "recall@1").mean()
    >>> means, means["Recall@1"]
    ({'R@1': 0.5}, 0.5)
    """

    def __missing__(self, name: object) -> float:
        try:
            found = str(as_measure(name))
        except FastndcgError:
            raise KeyError(name) from None
        if dict.__contains__(self, found):
            return dict.__getitem__(self, found)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        try:
            self[name]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def get(self, name: Any, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


def _field_of(measure: Measure) -> pa.Field:
    """The column of a measure, named as the user wrote it; the metadata hold the notation if it differs."""
    notation = str(measure)
    metadata = None if measure.label == notation else {NOTATION: notation}
    return pa.field(measure.label, pa.float64(), metadata=metadata)


def is_unit(measure: Measure) -> bool:
    """Whether the values of a measure are declared to lie from 0 to 1."""
    return measure.definition.range.partition(" for ")[0] == "0 to 1"


def check_unit(measure: Measure, least: float, greatest: float) -> None:
    """Raise `InputError` unless the values of a measure lie from 0 to 1, by declaration and in fact."""
    if not is_unit(measure) or least < 0 or greatest > 1:
        raise InputError(f'"logit" is an interval of measures from 0 to 1, and {measure} is none; use "t"')


def interval_of(mean: float, moments: Moments, confidence: float, *, weighted: bool) -> dict[str, float]:
    """`low` and `high` of a mean, by Student's t."""
    return t_interval(mean, *moments.error(weighted=weighted), check_confidence(confidence))._asdict()


def columns_of_means(
    name: str, means: Sequence[float], moments: Iterable[Moments], confidence: float | None, *, weighted: bool
) -> dict[str, pa.Array]:
    """The mean of each group, and with a confidence its ends, as columns of a measure."""
    columns = {name: pa.array(means, pa.float64())}
    if confidence is not None:
        pairs = zip(means, moments, strict=True)
        ends = [interval_of(*pair, confidence, weighted=weighted) for pair in pairs]
        columns |= {
            f"{name}_{end}": pa.array([each[end] for each in ends], pa.float64()) for end in ("low", "high")
        }
    return columns


def check_kept(names: Sequence[str], kept: Sequence[str], purpose: str = "") -> None:
    """Raise `ColumnError` for a column that was not kept."""
    for name in names:
        if name not in kept:
            raise ColumnError(
                f'there is no column "{name}"{purpose}; kept were: {", ".join(kept)}. Name it in ',
                Argument("keep"),
                f".{suggest(str(name), kept)}",
            )


def groups_of(columns: Sequence[pa.ChunkedArray]) -> tuple[list[pa.Array], list[npt.NDArray[np.int64]]]:
    """Distinct combinations of values: their columns, and the rows of each.

    They ascend column by column: numbers, dates and times by value, texts by their code points; NaN and then
    null come last.

    >>> groups_of([pa.chunked_array([["b", None], ["a", "b"]])])[1]
    [array([2]), array([0, 3]), array([1])]
    """
    codes, plain = np.zeros(len(columns[0]), np.int64), []
    for given in columns:
        plain.append(pa.chunked_array(decode(given)).combine_chunks())
        try:
            found = plain[-1].dictionary_encode(null_encoding="encode")
        except pa.ArrowNotImplementedError:
            kind = plain[-1].type
            raise ColumnError(
                f"queries cannot be grouped by values of type {kind}; name a column of others"
            ) from None
        places = places_of(found.dictionary)
        codes = codes * len(places) + places[array_of(found.indices)]
        codes = np.unique(codes, return_inverse=True)[1]  # keeps codes small for any number of columns
    order = np.argsort(codes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(codes) else []
    first = pa.array([int(rows[0]) for rows in groups], pa.int64())
    return [column.take(first) for column in plain], groups


_ROW_GROUP = 1 << 17  # queries that are written together


class ResultsFile:
    """A file to which results of queries are written as they are computed."""

    def __init__(self, path: os.PathLike[str], kind: str = "parquet", at_once: int = _ROW_GROUP) -> None:
        self._path, self._kind, self._at_once = path, kind, at_once
        self._waiting: list[pa.Table] = []
        self._writer: Any = None

    def write(self, results: pa.Table) -> None:
        """Write the results of the next queries."""
        self._waiting.append(results)
        if sum(map(len, self._waiting)) >= self._at_once:
            self._flush()

    def restart(self) -> None:
        """Discard everything that was written."""
        self._waiting.clear()
        self.close()

    def close(self) -> None:
        """Write the rest, and the footer."""
        if self._waiting:
            self._flush()
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _flush(self) -> None:
        table = pa.concat_tables(self._waiting)
        self._waiting.clear()
        if self._writer is None:
            self._writer = table_writer(self._path, table.schema, self._kind)
        self._writer.write_table(table)


@contextmanager
def results_file(path: str | os.PathLike[str], at_once: int = _ROW_GROUP) -> Iterator[ResultsFile]:
    """Open a file for results in the format of its ending. It appears complete when closed, or not at all.

    Raises `SourceError` where it cannot be written.
    """
    with whole_file(path) as draft:
        results = ResultsFile(draft, kind_of(path), at_once)
        try:
            yield results
            results.close()
        finally:
            with suppress(OSError, pa.ArrowException):  # the error that is being raised says more
                results.restart()


class Summary(Table):
    """A row of numbers for each measure. Quartiles, intervals and anchors appear only if they were computed.

    If there are several runs, each row begins with the name of its run.

    Attributes
    ----------
    rows : list of dict
        The numbers of each measure.
    """

    _NAMES = ("run", "measure")
    _ANCHORS = ("worst", "random", "best", "position", "ceiling", "quality")
    _NUMBERS = ("mean", "low", "high", "std", "min", "q25", "median", "q75", "max", *_ANCHORS)
    _COUNTS = ("queries", "empty")
    _DROPS = (
        ("std",),
        ("q25", "median", "q75"),
        ("min", "max"),
        _ANCHORS[3:],
        ("queries",),
    )

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self._labels = [name for name in self._NAMES if all(name in row for row in rows)]
        self._numbers = [name for name in self._NUMBERS if all(name in row for row in rows)]
        self._keys, self._pages = len(self._labels), None

    @cached_property
    def _arrow(self) -> pa.Table:
        """The table, made when it is first needed, since pyarrow imports pandas for it."""
        types = (
            dict.fromkeys(self._labels, pa.string())
            | dict.fromkeys(self._numbers, pa.float64())
            | {name: pa.int64() for name in self._COUNTS}
        )
        return pa.Table.from_pylist(self.rows, pa.schema(types))

    def __reduce__(self) -> tuple[Any, ...]:
        return Summary, (self.rows,)

    def _texts(self) -> list[list[str]]:
        """The table as strings; the first row is the header."""
        header = [*self._labels, *self._numbers, *self._COUNTS]
        rows = [
            [
                *(row[name] for name in self._labels),
                *(
                    f"{row[name]:.6f}" if row["queries"] else "no queries" if name == "mean" else "-"
                    for name in self._numbers
                ),
                *("" if row[name] is None else f"{row[name]:,}" for name in self._COUNTS),
            ]
            for row in self.rows
        ]
        return [header, *rows]

    def text(self, width: int = 0, see: str = "to_arrow()") -> str:
        """As `Table.text`, with all means."""
        table = fit(self._texts(), len(self._labels), self._DROPS, width, see)
        return f"{table}\n{self.note}" if self.note else table

    def under(self, heading: str) -> str:
        """The table below a heading, as the scores print that it is of."""
        return f"{heading}\n{self.text(terminal_width(), 'summary().to_arrow()')}"

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (f"<p>{html.escape(self.note)}</p>" if self.note else "")

    @property
    def note(self) -> str:
        """Which intervals reach beyond the range of their measure; empty if none does."""
        beyond: dict[str, None] = {}
        for row in self.rows:
            name = row["measure"]
            if (row.get("low", 0.0) < 0 or row.get("high", 1.0) > 1) and is_unit(as_measure(name)):
                beyond[name] = None
        if not beyond:
            return ""
        names = ", ".join(beyond)
        return (
            f'The interval of {names} reaches beyond 0 to 1; Scores.summary(method="logit") keeps it within.'
        )
