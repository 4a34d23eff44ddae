"""Spark: scores of DataFrames of any size, on the executors, bit for bit those of `evaluate`.

    from fastndcg.adapters import spark as fns

    scores = fns.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    with fns.plain_errors():
        scores.write.parquet("scores.parquet")
    print(fns.means(scores, ["nDCG@10"], by="country"))

PySpark 3.5 and 4, classic and Spark Connect. fastndcg must be installed where executors run Python.

    rows -> lists of each query, collected before and after the shuffle -> Arrow batches -> the serial kernel

A worker holds about a million rows, or one query if it is longer. Spark before 4.3 can limit the number of
queries of a batch but not its bytes, so there single rows are shuffled and sorted.

Columns of results with a point or brackets in their names are selected with backticks, as in "`nDCG@10`".
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, StructField, StructType

from fastndcg.adapters import parcels, parts, totals
from fastndcg.adapters.engines import Engine, Types
from fastndcg.adapters.shares import Plan, Share, parcels_of, results_of
from fastndcg.adapters.spark_files import block_keys, files_of, schema_of
from fastndcg.errors import InputError, MeasureError, check_choice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary
    from fastndcg.typing import NaN, Path

Batches = Iterator[pa.RecordBatch]

_FOUND = "found binary"
# from this version on, the size of Arrow batches has a limit in bytes (arrow.maxBytesPerBatch)
_BOUNDS_BATCHES = (4, 3)


class Spark(Engine["DataFrame"]):
    """How Spark computes the partitions of its DataFrames."""

    table = "DataFrame of Spark"
    attributes = ("mapInArrow", "sortWithinPartitions")

    def __init__(self, session: Any = None) -> None:
        self.session = session

    def _schema(self, df: DataFrame) -> pa.Schema:
        return pa.schema([_arrow_field(field) for field in df.schema.fields])

    def _names(self, scores: DataFrame) -> list[str]:
        return list(scores.columns)

    def _results(self, df: DataFrame, task: parts.Task, options: parts.Options) -> DataFrame:
        rows, is_packed = _rows(df, task, options)

        def of_partition(batches: Batches) -> Batches:
            for table in parts.whole_queries(task, _read(task, batches, is_packed)):
                yield from parts.results(task, table).to_batches()

        return rows.mapInArrow(of_partition, _schema_of_results(df, task))

    def _sums(
        self, df: DataFrame, task: parts.Task, options: parts.Options, *, values: bool
    ) -> list[totals.Sums]:
        rows, is_packed = _rows(df, task, options)

        def of_partition(batches: Batches) -> Iterator[totals.Sums]:
            tables = parts.whole_queries(task, _read(task, batches, is_packed))
            yield totals.add_up(task, tables, values=values)

        return _collect(rows, of_partition)

    # ---- files ----

    def _of_table(self, df: DataFrame) -> Spark:
        return Spark(df.sparkSession)

    def _workers(self) -> int:
        try:
            return int(self.session.sparkContext.defaultParallelism)
        except PySparkException:  # Spark Connect does not say it
            return int(self.session.conf.get("spark.sql.shuffle.partitions", "200") or 200)

    def _of_shares(self, function: Callable[[Share], Any], shares: list[Share]) -> list[Any]:
        def of_share(share: Share) -> Batches:
            yield from totals.pickle_row(function(share)).to_batches()

        return totals.unpickle_rows(self._map(of_share, shares, _FOUND).collect())

    def _map(self, function: Callable[[Share], Batches], shares: list[Share], schema: Any) -> DataFrame:
        """What a function yields for each share, in a partition of its own."""
        pickled = [pickle.dumps(share) for share in shares]  # a task unpickles only its own

        def of_partition(batches: Batches) -> Batches:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from function(pickle.loads(pickled[number]))  # noqa: S301 - our own

        return self.session.range(0, len(shares), 1, len(shares)).mapInArrow(of_partition, schema)

    def _of_plan(self, plan: Plan, schema: StructType | str) -> DataFrame:
        files = plan.files
        if plan.is_local:
            return self._map(lambda share: _batches(results_of(files, share)), plan.shares, schema)
        keys = pa.array(block_keys(files.job.blocks))

        def read(share: Share) -> Batches:
            for table in parcels_of(files, share):
                yield from table.set_column(0, "block", keys.take(table["block"])).to_batches()

        packed = self._map(read, plan.shares, "block int, place long, kind byte, data binary")
        blocks = packed.repartition(files.job.blocks, "block")
        return blocks.mapInArrow(lambda batches: _batches(parcels.joined(files.job, batches)), schema)

    def _results_of_files(self, plan: Plan, df: DataFrame | None = None) -> DataFrame:
        job = plan.files.job
        schema = schema_of(job.results) if df is None else _schema_of_results(df, job.task)
        arrow = pa.schema([_arrow_field(field) for field in schema.fields])
        files = plan.files._replace(job=job._replace(results=arrow))
        return self._of_plan(plan._replace(files=files), schema)

    def _sums_of_files(self, plan: Plan) -> list[totals.Sums]:
        return totals.unpickle_rows(self._of_plan(plan, _FOUND).collect())

    def _files_of(self, df: DataFrame, names: list[str]) -> tuple[list[str], Callable[[Types], bool]] | None:
        return files_of(df, names)

    def _groups(
        self, scores: DataFrame, asked: totals.Means
    ) -> tuple[list[pa.DataType], list[totals.Groups]]:
        def of_partition(batches: Batches) -> Iterator[totals.Groups]:
            for table in parts.join_batches(_rename(batches, asked.names)):
                yield totals.sums_by(asked, table)

        kinds = [_arrow_field(scores.schema[name]).type for name in asked.by]
        return kinds, _collect(_select(scores, asked.names), of_partition)

    def _is_own(self, error: Exception) -> bool:
        return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")


_spark = Spark()
evaluate, summary, means, plain_errors = _spark.evaluate, _spark.summary, _spark.means, _spark.plain_errors


def evaluate_files(
    spark: SparkSession, paths: Path | Iterable[Path], measures: Measures, **options: Unpack[parts.Keywords]
) -> DataFrame:
    return Spark(spark).evaluate_files(paths, measures, **options)


def summary_files(
    spark: SparkSession,
    paths: Path | Iterable[Path],
    measures: Measures,
    *,
    quartiles: bool = False,
    confidence: float | None = None,
    **options: Unpack[parts.Keywords],
) -> Summary:
    return Spark(spark).summary_files(paths, measures, quartiles=quartiles, confidence=confidence, **options)


evaluate_files.__doc__, summary_files.__doc__ = Spark.evaluate_files.__doc__, Spark.summary_files.__doc__


# ---- functions for one's own expressions ----


def group_function(measure: Any, *, form: str | None = None, nan: NaN = "refuse") -> Callable[..., Any]:
    """Make a function of relevance and score for your own `groupBy(...).agg(...)`: a value for each group.

        ndcg = group_function("nDCG@10")
        rows.groupBy("qid").agg(ndcg("label", "score", "qid").alias("ndcg"))

    Spark calls Python once for each group, which is slower than `evaluate` for short groups, and allows none
    of its own functions, such as count, in the same `agg`. Spark does not define the order of rows, so
    ties="input" is refused.

    Parameters
    ----------
    measure : Measure, notation, or ir_measures object
    form : "arrow" or "pandas", optional
        Kind of user-defined function. Default: the faster "arrow" if PySpark has it (4.1 and newer),
        otherwise "pandas".
    nan : "refuse" or "last"

    Returns
    -------
    function
        It takes the columns of grades and scores, and optionally that of query ids for messages. It returns a
        double, null where the measure has no value.

    Raises
    ------
    MeasureError
        A measure that does not exist, or one with ties="input".
    InputError
        A form that does not exist, or that this PySpark lacks; in tasks, all that `evaluate` refuses.
    """
    asked = parts.one_measure(measure)
    if asked.params.get("ties") == "input":
        raise MeasureError(
            f"{asked} takes tied documents in the order of their rows, and rows of a group have none; "
            "use evaluate with order=, or another rule for ties"
        )

    def value(relevance: Any, score: Any, query: Any = None) -> float | None:
        return parts.value_of_group(asked, relevance, score, query, nan)

    return _user_defined_function(value, form, "value")


def list_function(measure: Any, *, form: str | None = None, nan: NaN = "refuse") -> Callable[..., Any]:
    """Make a function of array columns of relevance and scores for your own `select`.

        ndcg = list_function("nDCG@10")
        rows.select("qid", ndcg("labels", "scores", "qid").alias("ndcg"))

    Parameters, result and errors are those of `group_function`; ties="input" keeps the order of the elements.
    """
    asked = parts.one_measure(measure)

    def arrow(relevance: pa.Array, score: pa.Array, query: pa.Array | None = None) -> pa.Array:
        return pa.array(parts.values_of_lists(asked, relevance, score, query, nan), from_pandas=True)

    def pandas(relevance: Any, score: Any, query: Any = None) -> Any:
        import pandas as pd

        ids = None if query is None else pa.Array.from_pandas(query)
        lists = (
            pa.array(list(relevance)),
            pa.array(list(score)),
        )  # not from a Series, whose NaN would become null
        return pd.Series(parts.values_of_lists(asked, *lists, ids, nan))

    return _user_defined_function(pandas if _form(form) == "pandas" else arrow, form, "column")


def _form(form: str | None) -> str:
    has_arrow = hasattr(F, "arrow_udf")
    if form is None:
        return "arrow" if has_arrow else "pandas"
    check_choice("form", form, ("arrow", "pandas"))
    if form == "arrow" and not has_arrow:
        raise InputError('this PySpark has no Arrow functions, which came with 4.1; pass form="pandas"')
    return form


def _user_defined_function(
    function: Callable[..., Any], form: str | None, returns: str
) -> Callable[..., Any]:
    """Make a user-defined function. Spark derives its kind from the annotations."""
    if _form(form) == "arrow":
        column, make = pa.Array, F.arrow_udf
    else:
        import pandas as pd

        column, make = pd.Series, F.pandas_udf
    function.__annotations__ = dict.fromkeys(("relevance", "score", "query"), column)
    function.__annotations__["return"] = float if returns == "value" else column
    return make(function, "double")


# ---- between the driver and its workers ----


def _arrow_field(field: StructField) -> pa.Field:
    # from PySpark 4.3 on, a timestamp has an Arrow type only if a time zone is passed
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    try:
        return to_arrow_schema(StructType([field]), **zone).field(0)
    except PySparkException:
        # a type that Arrow lacks, here replaced by one that no role accepts; most columns have no role
        return pa.field(field.name, pa.month_day_nano_interval())


def _column(name: str) -> Any:
    return F.col("`" + name.replace("`", "``") + "`")


def _select(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rename columns to numbers, since `mapInArrow` treats a name with a dot as a path."""
    return df.select(*(_column(name).alias(str(number)) for number, name in enumerate(names)))


def _rename(batches: Batches, names: list[str]) -> Batches:
    return (batch.rename_columns(names) for batch in batches)


def _read(task: parts.Task, batches: Batches, is_packed: bool) -> Batches:
    """Yield batches with a row for each document, from such batches or from lists (`is_packed`)."""
    if not is_packed:
        yield from _rename(batches, task.names)
        return
    for batch in _rename(batches, parts.packed_names(task)):
        yield from parts.unpack(task, batch).to_batches()


def _rows(df: DataFrame, task: parts.Task, options: parts.Options) -> tuple[DataFrame, bool]:
    """Return rows with contiguous queries, and whether they are packed.

    To pass rows that stand together to Python one by one takes longer than to pack and shuffle them.
    """
    partitions = options.partitions
    rows = _select(df, task.names)
    if task.lists:
        return rows if partitions is None else rows.repartition(partitions), False
    if tuple(map(int, df.sparkSession.version.split(".")[:2])) >= _BOUNDS_BATCHES:
        return _pack(task, rows, partitions), True
    query, *by = (str(task.names.index(name)) for name in (task.query, task.order) if name is not None)
    rows = rows.repartition(query) if partitions is None else rows.repartition(partitions, query)
    return rows.sortWithinPartitions(query, *by), False


def _pack(task: parts.Task, rows: DataFrame, partitions: int | None) -> DataFrame:
    """Collect a row for each query, with its number of rows and a list for each other column, or the ends of
    one that has one value within each query.

    Spark 4.3 spends 700 ns on each row that it passes to Python, most of it to compute the size of the batch
    so far. Spark leaves nulls out of a list, but not out of a list of structures.
    """
    query = str(task.names.index(task.query))
    lists, alike = [], parts.of_queries(task)
    for name in parts.packed_names(task)[2:]:
        number = str(task.names.index(name))
        if name in alike:
            packed = F.struct(F.min(number), F.max(number), F.count(number))
        else:
            packed = F.collect_list(F.struct(number) if name in parts.with_nulls(task) else number)
        lists.append(packed.alias(number))
    if partitions is not None:
        rows = rows.repartition(partitions, query)
    return rows.groupBy(query).agg(F.count(F.lit(1)).alias(str(len(task.names))), *lists)


def _schema_of_results(df: DataFrame, task: parts.Task) -> StructType:
    fields = [df.schema[task.query], *(df.schema[name] for name in task.columns.keep)]
    types = [field.dataType for field in fields] + [DoubleType()] * (len(task.results) - len(fields))
    return StructType([StructField(name, kind) for name, kind in zip(task.results, types, strict=True)])


def _batches(tables: Iterable[pa.Table]) -> Batches:
    return (batch for table in tables for batch in table.to_batches())


def _collect(rows: DataFrame, of_partition: Callable[[Batches], Iterator[Any]]) -> list[Any]:
    def pickled(batches: Batches) -> Batches:
        with totals.telling_the_driver():
            for found in of_partition(batches):
                yield from totals.pickle_row(found).to_batches()

    return totals.unpickle_rows(rows.mapInArrow(pickled, _FOUND).collect())
