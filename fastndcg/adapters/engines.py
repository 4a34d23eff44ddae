"""Functions that Spark, Dask and Ray have alike: `evaluate`, `summary` and `means`.

An engine is a subclass of `Engine`. It says what its tables are, and how their parts are computed; its
module's functions are the methods of one `Engine`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, Unpack

from fastndcg import errors
from fastndcg.adapters import totals
from fastndcg.adapters.parts import Keywords, Options, Task, make_task
from fastndcg.adapters.shares import Plan, open_files, plan_of
from fastndcg.common.progress import tell
from fastndcg.errors import FastndcgError, InputTypeError
from fastndcg.sources.columns import Function, with_roles
from fastndcg.sources.parquet import PARQUET
from fastndcg.sources.read import open_path
from fastndcg.statistics.intervals import check_confidence

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.adapters.shares import Share
    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary
    from fastndcg.sources.opened import Opened
    from fastndcg.typing import Path

Frame = TypeVar("Frame")

Types = dict[str, "pa.DataType"]
_told: list[str] = []  # once a process, that workers read files


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
            shuffled where that is faster (files, Dask and Ray); only the rows of queries at the edges of
            parts are moved. All query ids are compared then, and an error names a query whose rows are not
            contiguous. Data with a row for each query, with lists, is never shuffled.
        files : bool
            True: if a table is nothing but columns of Parquet files on a file system that this process and
            all workers see, of all rows of some partitions, workers read the files themselves, as
            `evaluate_files` does, which takes a fraction of the time. False: the engine reads them always.

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
        task = self._task(df, measures, asked)
        engine, plan = self._reading_files(df, task, asked)
        return engine._results_of_files(plan, df) if plan else self._results(df, task, asked)

    @_with_options
    def evaluate_files(
        self, paths: Path | Iterable[Path], measures: Measures, **options: Unpack[Keywords]
    ) -> Frame:
        """Compute the value of each measure for each query of files that workers read themselves.

        The engine passes no rows of sorted files. Of others it passes packed rows once, by a hash of the
        query.

        Parameters
        ----------
        paths : str, path, or several of them
            Parquet, also in hive partitions, or CSV, as `fastndcg.read_parquet` and `fastndcg.read_csv` take
            them: files, folders, patterns or URIs that this process and all workers see. Their rows may have
            any order; they are read fastest where row groups hold ascending or descending ids, which footers
            tell. CSV is read twice, first for the types of its columns.
        measures, the roles of columns, nan, rank, ascending, unjudged, grades, convention, partitions
            As in `evaluate`. Ties in input order take the order of rows in the files.
        grouped : bool
            True if the rows of a query are contiguous, though footers do not say it, as in CSV that is
            sorted by query, or where ids do not ascend.

        Returns
        -------
        table of the engine
            As that of `evaluate`. The values have the bits of `fastndcg.evaluate` of what
            `fastndcg.read_parquet` reads.

        Raises
        ------
        SourceError, ColumnError, MeasureError, InputTypeError
            At once, as `fastndcg.read_parquet` and `evaluate` do.
        InputError, SourceError
            When the result is computed: all that `fastndcg.evaluate` refuses; a file that changed meanwhile.
        """
        asked = Options.of(options, "evaluate_files")
        with self.plain_errors():
            plan = self._plan(open_files(paths, asked), measures, asked)
        return self._results_of_files(plan)

    @_with_options
    def summary_files(
        self,
        paths: Path | Iterable[Path],
        measures: Measures,
        *,
        quartiles: bool = False,
        confidence: float | None = None,
        **options: Unpack[Keywords],
    ) -> Summary:
        """Summarise measures of files that workers read themselves, as `summary` does of tables.

        Parameters
        ----------
        paths, and all others
            As in `evaluate_files` and `summary`.

        Raises
        ------
        SourceError, ColumnError, MeasureError, InputTypeError, InputError
            As in `evaluate_files`, including errors of the data.
        """
        if confidence is not None:
            check_confidence(confidence)
        asked = Options.of({**options, "keep": ()}, "summary_files")
        with self.plain_errors():
            plan = self._plan(open_files(paths, asked), measures, asked, values=quartiles)
            found = self._sums_of_files(plan)
        return totals.summary_of(plan.files.job.task, found, values=quartiles, confidence=confidence)

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
        those of `Scores.summary`, bit for bit, and `signatures` of the result are those of
        `Scores.signature`. Errors of the data are raised without the traces of the engine.

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
            engine, plan = self._reading_files(df, task, asked, values=quartiles)
            found = engine._sums_of_files(plan) if plan else self._sums(df, task, asked, values=quartiles)
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

    def _plan(
        self,
        opened: Opened,
        measures: Measures,
        asked: Options,
        task: Task | None = None,
        *,
        values: bool | None = None,
    ) -> Plan:
        return plan_of(
            opened, measures, asked, workers=self._workers(), run=self._of_shares, task=task, values=values
        )

    def _reading_files(
        self, df: Frame, task: Task, asked: Options, *, values: bool | None = None
    ) -> tuple[Self, Plan | None]:
        """The engine of a table, and how its workers read the files of the table; None if that is not certain
        to give the rows of the table.
        """
        engine = self._of_table(df)
        found = engine._files_of(df, task.names) if asked.files else None
        if found is None:
            return self, None
        paths, has_columns = found
        try:
            opened = open_path(PARQUET, paths, None)
            if not has_columns(opened.types_of(task.names)):
                return self, None
            plan = engine._plan(opened, task.measures, asked, task, values=values)
        except (FastndcgError, OSError):  # the engine's own way of reading may do, or has its own words
            return self, None
        if not _told:
            _told.append(self.table)
            tell(
                f"workers read the Parquet files of a {self.table} themselves, faster than the engine passes "
                "rows; files=False turns that off"
            )
        return engine, plan

    def _of_table(self, df: Frame) -> Self:  # noqa: ARG002
        """The engine, in the session of a table."""
        return self

    @abstractmethod
    def _workers(self) -> int:
        """How many tasks run at once."""

    @abstractmethod
    def _of_shares(self, function: Callable[[Share], Any], shares: list[Share]) -> list[Any]:
        """What a function returns for each share, in workers."""

    @abstractmethod
    def _files_of(self, df: Frame, names: list[str]) -> tuple[list[str], Callable[[Types], bool]] | None:
        """The Parquet files whose rows a table certainly has, all of them and no others, and whether the
        engine reads columns of these types as they are; None where that is not certain.
        """

    @abstractmethod
    def _results_of_files(self, plan: Plan, df: Frame | None = None) -> Frame:
        """A lazy table of the results of all shares, with the types of `df` where there is one."""

    @abstractmethod
    def _sums_of_files(self, plan: Plan) -> list[totals.Sums]:
        """The sums of all shares."""

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
