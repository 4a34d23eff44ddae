"""What an engine does: few verbs, with which all functions of `Engine` are written.

Call a function for each part of a table or for each of some items; bring the parcels of a block together;
call a function for each part again; make a table of that, or collect it. What the functions do is the same
for all engines:

    parts of a table, or shares of files -> parcels -> by block -> results -> a table of the engine
                                                                -> sums    -> a summary
    results -> parcels of groups -> by block -> a row for each group -> a table of the engine, or of Arrow
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

import pyarrow as pa

from fastndcg import errors
from fastndcg.adapters import aggregates, shuffle
from fastndcg.adapters.splits import Plan, open_files, plan_of
from fastndcg.adapters.worker import Options, Task, make_task, schema_of_results
from fastndcg.errors import ColumnError, InputTypeError

if TYPE_CHECKING:
    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary
    from fastndcg.tables.roles import Columns
    from fastndcg.typing import Path

Frame = TypeVar("Frame")
Parts = Any  # what an engine calls lazy tables of Arrow, in parts
Tables = Iterable[pa.Table]
Make = Callable[[Any], Tables]  # what a task calls with its part


class Flow(ABC, Generic[Frame]):
    """An engine, whose lazy tables are of the type `Frame`."""

    table: ClassVar[str]  # what its tables are called
    attributes: ClassVar[tuple[str, ...]]  # which its tables have, and others lack

    # ---- what an engine does ----

    def _of_table(self, df: Frame) -> Self:  # noqa: ARG002
        """The engine, in the session of a table."""
        return self

    def _is_own(self, error: Exception) -> bool:  # noqa: ARG002
        """Whether an error is the engine's, around that of a worker."""
        return False

    def _hint(self, df: Frame) -> str:  # noqa: ARG002
        """The end of the message about a missing column."""
        return ""

    def _types(self, schema: pa.Schema) -> pa.Schema:
        """The types of columns in tables of the engine."""
        return schema

    @abstractmethod
    def _schema(self, df: Frame) -> pa.Schema:
        """The types of the columns as workers see them."""

    @abstractmethod
    def _workers(self) -> int:
        """How many tasks run at once."""

    @abstractmethod
    def _blocks(self, df: Frame) -> int:
        """How many parts a shuffle has, where nothing is asked for."""

    @abstractmethod
    def _of_rows(self, df: Frame | None, names: list[str], function: Make, schema: pa.Schema) -> Parts:
        """What a function yields of the tables of each part of a table, tables of these types."""

    @abstractmethod
    def _of_items(self, items: Sequence[Any], function: Make, schema: pa.Schema) -> Parts:
        """What a function yields for each item, in a task of its own."""

    @abstractmethod
    def _then(self, parts: Parts, function: Make, schema: pa.Schema) -> Parts:
        """What a function yields of the tables of each part."""

    @abstractmethod
    def _exchanged(self, parts: Parts, blocks: int) -> Parts:
        """Parts of parcels that have all those of a block."""

    def _frame(self, parts: Parts, schema: pa.Schema, like: Frame | None = None) -> Frame:  # noqa: ARG002
        """A lazy table; its columns have the types of those of the same name in `like`, if there are."""
        return parts

    @abstractmethod
    def _rows(self, parts: Parts) -> Iterable[Mapping[str, bytes]]:
        """All rows of `aggregates.FOUND`, in this process."""

    # ---- what is computed ----

    def _plan(
        self,
        df: Frame,
        measures: Measures,
        asked: Options,
        *,
        sums: bool = False,
        values: bool = False,
        **of_task: Any,
    ) -> Plan:
        """What is done with a table: results of queries are computed, or their sums."""
        self._check("df", df)
        schema = self._schema(df)
        try:
            task = make_task(schema, measures, asked, **of_task)
        except ColumnError as error:
            raise ColumnError(f"{error}{self._hint(df)}") from None
        job = self._job(task, schema, sums=sums, values=values)
        job = job._replace(blocks=asked.partitions or self._blocks(df), scattered=not task.lists)
        return Plan(job, partial(shuffle.of_tables, job), is_local=task.lists)

    def _plan_of_files(
        self,
        paths: Path | Iterable[Path],
        measures: Measures,
        asked: Options,
        *,
        sums: bool = False,
        values: bool = False,
    ) -> Plan:
        def make(schema: pa.Schema, columns: Columns) -> shuffle.Job:
            task = make_task(schema, measures, asked, columns)
            return self._job(task, schema, sums=sums, values=values)

        return plan_of(open_files(paths, asked), asked, make, self._workers())

    def _job(self, task: Task, schema: pa.Schema, *, sums: bool, values: bool) -> shuffle.Job:
        results = None if sums else self._types(schema_of_results(task, schema))
        return shuffle.Job(task, 0, results, values)

    def _run(self, plan: Plan, df: Frame | None = None) -> Parts:
        """Results of all queries, or rows with their sums."""
        job = plan.job
        last = shuffle.SCHEMA if job.values else job.results or aggregates.FOUND
        read: Make = plan.read
        if plan.is_local:
            read = partial(_alone, job, plan.read)
        schema = last if plan.is_local else shuffle.SCHEMA
        if plan.shares is None:
            parts = self._of_rows(df, job.task.names, read, schema)
        else:
            parts = self._of_items(plan.shares, read, schema)
        if not plan.is_local:
            parts = self._then(self._exchanged(parts, job.blocks), partial(shuffle.joined, job), last)
        if job.values:
            n = min(job.blocks, len(job.task.measures))
            parts = self._then(self._exchanged(parts, n), shuffle.quartiled, aggregates.FOUND)
        return parts

    def _results(self, plan: Plan, df: Frame | None = None) -> Frame:
        return self._frame(self._run(plan, df), plan.job.results or pa.schema([]), df)

    def _summary(self, plan: Plan, df: Frame | None, confidence: float | None = None) -> Summary:
        found = self._collected(self._run(plan, df))
        return aggregates.summary_of(plan.job.task, found, values=plan.job.values, confidence=confidence)

    def _collected(self, parts: Parts) -> list[Any]:
        return aggregates.unpickle_rows(self._rows(parts))

    def _check(self, name: str, frame: object) -> None:
        """Raise `InputTypeError` for data without the attributes of the engine's tables."""
        if not all(hasattr(frame, attribute) for attribute in self.attributes):
            kind = type(frame)
            raise InputTypeError(
                f"{name} is a {kind.__module__.partition('.')[0]} {kind.__name__}; wanted a {self.table}. "
                "For data in this process there is fastndcg.evaluate."
            )

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


def _alone(job: shuffle.Job, read: Make, part: Any) -> Tables:
    return shuffle.joined(job, read(part))


def _of_worker(report: str) -> errors.FastndcgError | None:
    """The error of this package that a worker raised. Engines pass on nothing of it but its report."""
    for line in report.splitlines():
        name, _, message = line.partition(": ")
        module, _, kind = name.rpartition(".")
        found = getattr(errors, kind, None) if module.endswith(errors.__name__) else None
        if isinstance(found, type) and issubclass(found, errors.FastndcgError):
            return found(message.strip())
    return None
