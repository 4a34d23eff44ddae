"""Functions shared by Spark, Dask and Ray: each module exports the methods of one `Engine`.

An engine calls a function for each partition of a table or for each of some items, brings the packed chunks
of a block together, calls a function for each partition again, and makes a table of that or collects it:

    partitions of a table, or splits of files -> chunks -> by block -> results -> a table of the engine
                                                                    -> sums    -> a summary
    partitions of results -> sums of groups -> a table of Arrow
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, Unpack

import pyarrow as pa

from fastndcg import errors
from fastndcg._version import __version__
from fastndcg.adapters import scoring, shuffle
from fastndcg.adapters.scoring import Keywords, Options, Task, make_task, schema_of_results
from fastndcg.adapters.splits import Plan, open_files, plan_of
from fastndcg.errors import InputTypeError
from fastndcg.statistics.significance import check_confidence
from fastndcg.tables.roles import OF_TEXT, check_column, with_roles

if TYPE_CHECKING:
    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary
    from fastndcg.typing import Path

Frame = TypeVar("Frame")
Partitions = Any  # what an engine calls lazy tables of Arrow
Tables = Iterable[pa.Table]
Make = Callable[[Any], Tables]  # what a task calls with its partition

_OF_TEXT = (*OF_TEXT, "columns")  # options that Parquet and tables with names have no use for
_OF_TABLES = ("order", *_OF_TEXT)  # and that functions of files lack
_of_tables = partial(with_roles, roles_type=Options, without=_OF_TEXT)
_of_files = partial(with_roles, roles_type=Options, without=_OF_TABLES)


class Engine(ABC, Generic[Frame]):
    """What users call, tables of an engine in, its tables or numbers out; and the few verbs with which it is
    written, which each engine has its own way for. Lazy tables of the engine are of the type `Frame`.
    """

    table: ClassVar[str]  # what its tables are called
    attributes: ClassVar[tuple[str, ...]]  # which its tables have, and others lack

    # ---- the verbs of an engine ----

    def _bind(self, df: Frame) -> Self:  # noqa: ARG002
        """The engine, in the session of a table."""
        return self

    def _is_own(self, error: Exception) -> bool:  # noqa: ARG002
        """Whether an error is the engine's wrapper of a worker's error."""
        return False

    def _types(self, schema: pa.Schema) -> pa.Schema:
        """The types of columns in tables of the engine."""
        return schema

    @abstractmethod
    def _schema(self, df: Frame) -> pa.Schema:
        """The types of the columns as workers see them."""

    @abstractmethod
    def _workers(self) -> int:
        """Number of tasks that run at once."""

    @abstractmethod
    def _default_blocks(self, df: Frame) -> int:
        """Default number of partitions of a shuffle."""

    @abstractmethod
    def _map_rows(self, df: Frame | None, names: list[str], function: Make, schema: pa.Schema) -> Partitions:
        """Apply a function to the tables of each partition; it yields tables of these types."""

    @abstractmethod
    def _map_items(self, items: Sequence[Any], function: Make, schema: pa.Schema) -> Partitions:
        """Apply a function to each item in a separate task."""

    @abstractmethod
    def _map(self, partitions: Partitions, function: Make, schema: pa.Schema) -> Partitions:
        """Apply a function to the tables of each partition."""

    @abstractmethod
    def _shuffle(self, partitions: Partitions, blocks: int) -> Partitions:
        """Partitions of packed chunks; all chunks of a block are in one partition."""

    def _to_frame(self, partitions: Partitions, job: shuffle.Job, df: Frame | None) -> Frame:  # noqa: ARG002
        """A lazy table of results; ids and kept columns have the types that they have in `df`."""
        return partitions

    @abstractmethod
    def _collect(self, partitions: Partitions) -> Iterable[Mapping[str, bytes]]:
        """All rows of `scoring.ROW`, in this process."""

    # ---- what users call ----

    @_of_tables
    def evaluate(self, df: Frame, measures: Measures, **options: Unpack[Keywords]) -> Frame:
        """Compute the value of each measure for each query, as a lazy table with a row for each query.

        The engine computes it when the result is used, and raises errors of the data then.

        Parameters
        ----------
        df : table of the engine
            A row for each document, in any order, or a row for each query with lists, which are not shuffled.
            Of Parquet files, `evaluate_files` takes a fraction of the time.
        measures : one or several of Measure, notation ("nDCG@10"), or ir_measures object
        query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
            As in `fastndcg.read_parquet`, as are `nan`, `rank`, `ascending`, `unjudged` and `grades`. Several
            columns of scores, as in score=["bm25", "rerank"], are several systems.
        order : str, optional
            Column that numbers the documents of a query. Measures with ties="input" need it, because a
            shuffle keeps no order. Lists have the order of their elements.
        convention : name or Convention, optional
            Compute as this tool does, as in `fastndcg.evaluate`. Tools that take ties in input order need
            `order`, and those that order ties by document id need `doc_id`.
        partitions : int, optional
            Number of partitions that queries are distributed to. Default: `spark.sql.shuffle.partitions` on
            Spark, the number of partitions of the data on Dask, and `default_hash_shuffle_parallelism` of the
            `DataContext` on Ray.

        Returns
        -------
        table of the engine
            The query id and kept columns under their own names and in their own types, the weight if there is
            one, and a column of doubles for each measure under its notation, in no defined order of rows. Of
            several systems a row for each query and system, with the column of its scores as `system`.

        Raises
        ------
        ColumnError, MeasureError, InputTypeError
            A column is missing, or several fit a role; ties="input" without `order`; data of another engine.
        InputError
            When the result is computed: NaN scores and all else that `fastndcg.evaluate` refuses.
        """
        engine = self._bind(df)
        plan = engine._plan(df, measures, Options.of(options, "evaluate", without=_OF_TEXT))
        return engine._results(plan, df)

    @_of_files
    def evaluate_files(
        self, paths: Path | Iterable[Path], measures: Measures, **options: Unpack[Keywords]
    ) -> Frame:
        """As `evaluate`, of files that workers read themselves: the engine passes no rows of sorted files,
        and packed rows of others once.

        Parameters
        ----------
        paths : str, path, or several of them
            Parquet, also in hive partitions, as `fastndcg.read_parquet` takes it: files, folders, patterns or
            URIs that this process and all workers see. They are read fastest where row groups hold ascending
            or descending ids, which footers tell.
        measures, options
            As in `evaluate`, without `order`: ties in input order take the order of rows in the files.

        Raises as `fastndcg.read_parquet` and `evaluate` do, at once; and `InputError` or `SourceError` when
        the result is computed: for all that `fastndcg.evaluate` refuses, and a file that changed meanwhile.
        """
        with self.plain_errors():
            settings = Options.of(options, "evaluate_files", without=_OF_TABLES)
            plan = self._plan_of_files(paths, measures, settings)
        return self._results(plan)

    @_of_files
    def summary_files(
        self,
        paths: Path | Iterable[Path],
        measures: Measures,
        *,
        confidence: float | None = None,
        **options: Unpack[Keywords],
    ) -> Summary:
        """As `summary`, of files as in `evaluate_files`, with the errors of both."""
        if confidence is not None:
            check_confidence(confidence)
        settings = Options.of(options, "summary_files", without=_OF_TABLES)
        with self.plain_errors():
            plan = self._plan_of_files(paths, measures, settings, sums=True)
            return self._summary(plan, None, confidence)

    @_of_tables
    def summary(
        self,
        df: Frame,
        measures: Measures,
        *,
        confidence: float | None = None,
        **options: Unpack[Keywords],
    ) -> Summary:
        """Mean, standard deviation, extremes, and numbers of queries and of empty queries of measures.

        It computes immediately, from exact sums: the numbers are those of `Scores.summary` without quartiles,
        bit for bit, and `signatures` of the result are those of `Scores.signature`.

        Parameters
        ----------
        df, measures, options
            As in `evaluate`; `keep` has no effect, but its columns must be there. Of several systems, a row
            for each, with its `system`.
        confidence : float, optional
            For example 0.95: adds confidence intervals of the means, `low` to `high`, as `Scores.summary`
            does.

        Raises as `evaluate` does, at once, and without the traces of the engine.
        """
        if confidence is not None:
            check_confidence(confidence)
        settings = Options.of(options, "summary", without=_OF_TEXT)
        engine = self._bind(df)
        with self.plain_errors():
            plan = engine._plan(df, measures, settings, sums=True)
            return engine._summary(plan, df, confidence)

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

        It computes immediately. Each partition sends the exact sums of its groups to this process. To compute
        values once for several uses, persist the result of `evaluate`, or write it and read it back.

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

        Raises `ColumnError` for a missing column, and as `evaluate` if its values are computed only now.
        """
        self._check("scores", scores)
        engine = self._bind(scores)
        with self.plain_errors():
            schema = engine._schema(scores)
            means = scoring.check_means(schema.names, measures, by=by, weight=weight, confidence=confidence)
            sums = partial(scoring.sum_groups, means)
            summed = engine._collect(engine._map_rows(scores, means.names, sums, scoring.ROW))
        kinds = [schema.field(name).type for name in means.by]
        return scoring.means_of(means, kinds, scoring.unpickle_rows(summed))

    # ---- how they are computed ----

    def _plan(self, df: Frame, measures: Measures, settings: Options, *, sums: bool = False) -> Plan:
        """What to compute from a table: values by query, or their sums."""
        self._check("df", df)
        schema = self._schema(df)
        task = make_task(schema, measures, replace(settings, keep=()) if sums else settings)
        _check_kept(schema.names, settings)
        job = self._job(task, schema, sums=sums)
        job = job._replace(blocks=settings.partitions or self._default_blocks(df), scattered=not task.lists)
        return Plan(job, partial(shuffle.pack_partition, job), is_local=task.lists)

    def _plan_of_files(
        self, paths: Path | Iterable[Path], measures: Measures, settings: Options, *, sums: bool = False
    ) -> Plan:
        given, settings = settings, replace(settings, keep=()) if sums else settings
        opened = open_files(paths, settings)
        _check_kept(opened.names, given)
        schema = pa.schema(opened.types)
        job = self._job(make_task(schema, measures, settings, opened.columns), schema, sums=sums)
        return plan_of(opened, settings, job, self._workers())

    def _job(self, task: Task, schema: pa.Schema, *, sums: bool) -> shuffle.Job:
        return shuffle.Job(task, 0, None if sums else self._types(schema_of_results(task, schema)))

    def _run(self, plan: Plan, df: Frame | None = None) -> Partitions:
        """Results of all queries, or rows with their sums."""
        job = plan.job
        last = job.results or scoring.ROW
        read: Make = partial(_read_and_score, job, plan.read) if plan.is_local else plan.read
        schema = last if plan.is_local else shuffle.SCHEMA
        if plan.splits is None:
            partitions = self._map_rows(df, job.task.names, read, schema)
        else:
            partitions = self._map_items(plan.splits, read, schema)
        if plan.is_local:
            return partitions
        return self._map(self._shuffle(partitions, job.blocks), partial(shuffle.score_blocks, job), last)

    def _results(self, plan: Plan, df: Frame | None = None) -> Frame:
        return self._to_frame(self._run(plan, df), plan.job, df)

    def _summary(self, plan: Plan, df: Frame | None, confidence: float | None) -> Summary:
        sums = scoring.unpickle_rows(self._collect(self._run(plan, df)))
        return scoring.summary_of(plan.job.task, sums, confidence)

    def _check(self, name: str, frame: object) -> None:
        """Raise `InputTypeError` for data without the attributes of the engine's tables."""
        if not all(hasattr(frame, attribute) for attribute in self.attributes):
            kind = type(frame)
            raise InputTypeError(
                f"{name} is a {kind.__module__.partition('.')[0]} {kind.__name__}; expected a {self.table}. "
                "For data in this process there is fastndcg.evaluate."
            )

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        """Re-raise fastndcg errors of an engine's tasks in one line, without the engine's traceback.

            with plain_errors():
                scores.write_parquet("scores")

        Other errors pass unchanged. The engine's own error is the `__context__` of the one that is raised.
        """
        try:
            yield
        except Exception as error:
            known = _of_worker(str(error)) if self._is_own(error) else None
            if known is None:
                raise
            raise known from None


def _read_and_score(job: shuffle.Job, read: Make, partition: Any) -> Tables:
    return shuffle.score_blocks(job, read(partition))


def _of_worker(report: str) -> errors.FastndcgError | None:
    """The error that a worker raised, from the traceback text, which is all that engines pass on."""
    if "No module named 'fastndcg" in report:
        return errors.ExtraError(
            f"workers cannot import fastndcg; install fastndcg=={__version__} where the engine runs Python"
        )
    for line in report.splitlines():
        name, _, message = line.partition(": ")
        module, _, kind = name.rpartition(".")
        known = getattr(errors, kind, None) if module.endswith(errors.__name__) else None
        if isinstance(known, type) and issubclass(known, errors.FastndcgError):
            return known(message.strip())
    return None


def _check_kept(names: Sequence[str], options: Options) -> None:
    """Raise for unknown names in `keep`, even where sums do not need the columns."""
    for name in [options.keep] if isinstance(options.keep, str) else options.keep:
        check_column(names, "keep", name)
