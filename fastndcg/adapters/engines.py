"""Functions that Spark, Dask and Ray have alike: `evaluate`, `summary` and `means`.

An engine is a subclass of `Engine`. It says what its tables are, and how their parts are computed; its
module's functions are the methods of one `Engine`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, Unpack

from fastndcg import errors
from fastndcg.adapters import totals
from fastndcg.adapters.parts import Keywords, Options, Task, make_task
from fastndcg.errors import InputTypeError
from fastndcg.sources.columns import Function, with_roles
from fastndcg.statistics.intervals import check_confidence

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary

Frame = TypeVar("Frame")


def _with_options(function: Function) -> Function:
    return with_roles(function, Options)


class Engine(ABC, Generic[Frame]):
    """An engine, whose lazy tables are of the type `Frame`."""

    table: ClassVar[str]  # what its tables are called
    attributes: ClassVar[tuple[str, ...]]  # which its tables have, and others lack

    @_with_options
    def evaluate(self, df: Frame, measures: Measures, **options: Unpack[Keywords]) -> Frame:
        """Compute the value of each measure for each query, as a lazy table with a row for each query.

        The engine computes it when the result is used, and raises errors of the data then.

        Parameters
        ----------
        df : table of the engine
            A row for each document, in any order, or a row for each query with lists.
        measures : one or several of Measure, notation ("nDCG@10"), or ir_measures object
        query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
            As in `fastndcg.read_parquet`.
        nan, rank, ascending, unjudged, grades
            As in `fastndcg.read_parquet`.
        order : str, optional
            Column that numbers the documents of a query. Measures with ties="input" need it, because a
            shuffle keeps no order. Lists have the order of their elements.
        convention : name or Convention, optional
            Compute as this tool does, as in `fastndcg.evaluate`. Tools that take ties in input order
            need `order`. Tools that order ties by document id need `doc_id`.
        partitions : int, optional
            Number of partitions that queries are distributed to. The default is
            `spark.sql.shuffle.partitions` on Spark, the number of partitions of the data on Dask, and
            `default_hash_shuffle_parallelism` of the `DataContext` on Ray.
        grouped : bool
            True if the rows of a query are contiguous, as in files sorted by query. Rows are then not
            shuffled; only the rows of queries at the edges of partitions and of parts of files are moved. All
            query ids are compared, and an error names a query whose rows are not contiguous. Data with a row
            for each query, with lists, is never shuffled.

        Returns
        -------
        table of the engine
            The query id and kept columns under their own names and in their own types, the weight if there is
            one, and a column of doubles for each measure under its notation. The order of rows is not
            defined.

        Raises
        ------
        ColumnError
            A column is missing, or several columns fit a role.
        MeasureError
            A measure or convention does not exist; or ties="input" without `order`.
        InputTypeError
            The data are not of this engine; a column has a type that its role does not allow.
        InputError
            When the result is computed: NaN scores and all else that `fastndcg.evaluate` refuses.
        """
        asked = Options.of(options, "evaluate")
        return self._results(df, self._task(df, measures, asked), asked)

    @_with_options
    def summary(
        self,
        df: Frame,
        measures: Measures,
        *,
        quartiles: bool = False,
        confidence: float | None = None,
        **options: Unpack[Keywords],
    ) -> Summary:
        """Mean, standard deviation, extremes, and numbers of queries and of empty queries of measures.

        It computes immediately. Each partition sends only exact sums, no values of queries. The numbers are
        those of `Scores.summary`, bit for bit. Errors of the data are raised without the traces of the
        engine.

        Parameters
        ----------
        The data, measures, order, convention, partitions, grouped, and the roles of columns
            As in `evaluate`; `keep` has no effect.
        quartiles : bool
            True adds quartiles. The values themselves are then collected, 8 bytes for each query and measure.
        confidence : float, optional
            For example 0.95: adds confidence intervals of the means, `low` to `high`, as `Scores.summary`
            does.

        Raises
        ------
        ColumnError, MeasureError, InputTypeError, InputError
            As in `evaluate`, including errors of the data.
        """
        if confidence is not None:
            check_confidence(confidence)
        asked = Options.of({**options, "keep": ()}, "summary")
        task = self._task(df, measures, asked)
        with self.plain_errors():
            found = self._sums(df, task, asked, values=quartiles)
        return totals.summary_of(task, found, values=quartiles, confidence=confidence)

    def means(
        self,
        scores: Frame,
        measures: Measures,
        *,
        by: str | Sequence[str] | None = None,
        weight: str | None = None,
        confidence: float | None = None,
    ) -> pa.Table:
        """Exact means of values that `evaluate` computed, over all queries or each group of queries.

        It computes immediately. Each partition sends only exact sums, no values of queries. To compute values
        once for several uses, persist the result of `evaluate`, or write it and read it back.

        Parameters
        ----------
        scores : the result of `evaluate`
            It has a column for each measure, under its notation. Values by a convention are refused, since
            their mean needs more than the values: `summary` computes it.
        measures : one or several of Measure, notation, or ir_measures object
        by : str or sequence of str, optional
            Kept columns to group by.
        weight : str, optional
            Column with the weight of each query: "weight" in the result of `evaluate`.
        confidence : float, optional
            For example 0.95: adds `small`, true for groups of fewer than 30 queries, and after each mean its
            interval, `_low` to `_high`.

        Returns
        -------
        pyarrow.Table
            The columns of `by`, ascending with null last; `queries`, the number of queries; and the mean of
            each measure, correctly rounded. With `by=None`, one row without columns to group by.

        Raises
        ------
        ColumnError, MeasureError, InputTypeError, InputError
            A column is missing; also the errors of `evaluate`, if its values are computed only now.
        """
        self._check("scores", scores)
        with self.plain_errors():
            names = self._names(scores)
            asked = totals.check_means(names, measures, by=by, weight=weight, confidence=confidence)
            kinds, found = self._groups(scores, asked)
        return totals.means_of(asked, kinds, found)

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Re-raise errors of fastndcg from an engine's tasks as they are, in one line, without its traces.

            with plain_errors():
                scores.write_parquet("scores")

        Other errors pass unchanged. The engine's own error is the `__context__` of the one that is raised.
        """
        try:
            yield
        except Exception as error:
            found = _of_worker(str(error)) if self._is_own(error) else None
            if found is None:
                raise
            raise found from None

    def _is_own(self, error: Exception) -> bool:  # noqa: ARG002
        """Whether an error is the engine's, around that of a worker."""
        return False

    def _check(self, name: str, frame: object) -> None:
        """Raise `InputTypeError` for data without the attributes of the engine's tables."""
        if not all(hasattr(frame, attribute) for attribute in self.attributes):
            kind = type(frame)
            raise InputTypeError(
                f"{name} is a {kind.__module__.partition('.')[0]} {kind.__name__}; wanted a {self.table}. "
                "For data in this process there is fastndcg.evaluate."
            )

    def _task(self, df: Frame, measures: Measures, options: Options) -> Task:
        self._check("df", df)
        return make_task(self._schema(df), measures, options)

    @abstractmethod
    def _schema(self, df: Frame) -> pa.Schema:
        """The types of the columns as workers see them."""

    @abstractmethod
    def _names(self, scores: Frame) -> Sequence[str]:
        """The names of the columns."""

    @abstractmethod
    def _results(self, df: Frame, task: Task, options: Options) -> Frame:
        """A lazy table of the results of all parts."""

    @abstractmethod
    def _sums(self, df: Frame, task: Task, options: Options, *, values: bool) -> list[totals.Sums]:
        """The sums of all parts, with their values if quartiles need them."""

    @abstractmethod
    def _groups(self, scores: Frame, asked: totals.Means) -> tuple[list[pa.DataType], list[totals.Groups]]:
        """The types of the columns to group by, and the groups of all parts."""


def _of_worker(report: str) -> errors.FastndcgError | None:
    """The error of this package that a worker raised. Engines pass on nothing of it but its report."""
    for line in report.splitlines():
        name, _, message = line.partition(": ")
        module, _, kind = name.rpartition(".")
        found = getattr(errors, kind, None) if module.endswith(errors.__name__) else None
        if isinstance(found, type) and issubclass(found, errors.FastndcgError):
            return found(message.strip())
    return None
