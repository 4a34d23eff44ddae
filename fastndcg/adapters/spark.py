"""Spark: scores of DataFrames of any size, on the executors, bit for bit those of `evaluate`.

    from fastndcg.adapters import spark as fns

    scores = fns.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    with fns.plain_errors():
        scores.write.parquet("scores.parquet")
    print(fns.means(scores, ["nDCG@10"], by="country"))

PySpark 3.5 and 4, classic and Spark Connect. fastndcg must be installed where executors run Python.

    rows -> lists of each query, collected before and after the shuffle, or after it alone where `partitions=`
        is given -> the serial kernel
    before 4.3: rows -> repartition by the query -------------------------> the serial kernel

Columns of results with a point or brackets in their names are selected with backticks, as in "`nDCG@10`".
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from fastndcg.adapters import scoring, shuffle
from fastndcg.adapters.engines import Engine
from fastndcg.adapters.splits import Plan
from fastndcg.common.arrow_types import is_list
from fastndcg.errors import MeasureError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fastndcg.adapters.engines import Make, Tables
    from fastndcg.scores.summary import Summary
    from fastndcg.typing import NaN, Path


# from this version on, Spark computes for each row that it hands to Python how large its batch is by now,
# which takes longer than all else that it does for a row
_WEIGHS_ROWS = (4, 3)

# types of Arrow that Spark has none for, and those that hold their values
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


class Spark(Engine["DataFrame"]):
    """The Spark engine: lazy Arrow tables are DataFrames."""

    table = "DataFrame of Spark"
    attributes = ("mapInArrow", "sortWithinPartitions")

    def __init__(self, session: Any = None) -> None:
        self.session = session

    def _bind(self, df: DataFrame) -> Spark:
        return Spark(getattr(df, "sparkSession", None))

    def _is_own(self, error: Exception) -> bool:
        return isinstance(error, PySparkException) or type(error).__module__.startswith("py4j.")

    def _schema(self, df: DataFrame) -> pa.Schema:
        return pa.schema([_arrow_field(field) for field in df.schema.fields])

    def _types(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([_arrow_field(field) for field in schema_of(schema).fields])

    def _workers(self) -> int:
        try:
            return int(self.session.sparkContext.defaultParallelism)
        except PySparkException:  # Spark Connect does not say it
            return self._default_blocks()

    def _default_blocks(self, df: DataFrame | None = None) -> int:  # noqa: ARG002
        return int(self.session.conf.get("spark.sql.shuffle.partitions", "200") or 200)

    def _map_rows(
        self, df: DataFrame | None, names: list[str], function: Make, schema: pa.Schema
    ) -> DataFrame:
        def renamed(tables: Tables) -> Tables:
            return function(table.rename_columns(names) for table in tables)

        # by numbers, since `mapInArrow` treats a name with a dot as a path
        columns = (F.col(_quoted(name)).alias(str(place)) for place, name in enumerate(names))
        return self._map(df.select(*columns), renamed, schema)  # type: ignore[union-attr]

    def _run(self, plan: Plan, df: DataFrame | None = None) -> DataFrame:
        """As other engines do, but Spark brings the rows of a query together: in a partition, or in a list
        where it weighs each row that it hands to Python.
        """
        if df is None or plan.is_local:
            return super()._run(plan, df)
        names, ids = plan.job.task.names, plan.job.task.columns.id_columns
        keys = [F.col(_quoted(name)) for name in ids]
        moved, read = df.select(*map(F.col, map(_quoted, names))), _of_rows
        number = [] if plan.job.blocks == self._default_blocks() else [plan.job.blocks]
        as_lists = self._can_list(df, ids)
        # before rows become lists: the order in a list is that in which rows arrive, and Spark fails a job
        # if it has to repeat an exchange of other bytes, as after the loss of an executor
        if number or not as_lists:
            moved = moved.repartition(*number, *keys)
        if as_lists:
            read = _of_lists
            others = (name for name in names if name not in ids)
            collect = "collect_list({}) respect nulls"
            collected = (F.expr(collect.format(_quoted(name))).alias(name) for name in others)
            moved = moved.groupBy(*keys).agg(*collected)
        return super()._run(Plan(plan.job, partial(read, plan.job), is_local=True), moved)

    def _can_list(self, df: DataFrame, ids: Sequence[str]) -> bool:
        """Whether to collect rows into lists by query, which fails where Spark equates different ids."""
        return (
            tuple(map(int, self.session.version.split(".")[:2])) >= _WEIGHS_ROWS
            and not df.isStreaming
            and not any("collate" in df.schema[name].dataType.simpleString() for name in ids)
        )

    def _map_items(self, items: Sequence[Any], function: Make, schema: pa.Schema) -> DataFrame:
        pickled = [pickle.dumps(item) for item in items]  # a task unpickles only its own

        def of_numbers(tables: Tables) -> Tables:
            for table in tables:
                for number in table[0].to_pylist():
                    yield from function(pickle.loads(pickled[number]))  # noqa: S301 - our own

        return self._map(self.session.range(0, len(items), 1, len(items)), of_numbers, schema)

    def _map(self, partitions: DataFrame, function: Make, schema: pa.Schema) -> DataFrame:
        def of_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for table in function(pa.table(batch) for batch in batches if batch.num_rows):
                yield from table.to_batches()

        return partitions.mapInArrow(of_partition, schema_of(schema))

    def _shuffle(self, partitions: DataFrame, blocks: int) -> DataFrame:
        if blocks == self._default_blocks():  # Spark may join small ones of its own number
            return partitions.repartition("block")
        if hasattr(partitions, "repartitionById"):  # from 4.1 on: each block goes to a partition of its own
            return partitions.repartitionById(blocks, F.col("block"))
        return partitions.repartition(blocks, "block")

    def _collect(self, partitions: DataFrame) -> Iterable[Any]:
        return partitions.collect()


_spark = Spark()
evaluate, summary, means = _spark.evaluate, _spark.summary, _spark.means
plain_errors = _spark.plain_errors


def evaluate_files(
    spark: SparkSession, paths: Path | Iterable[Path], *arguments: Any, **options: Any
) -> DataFrame:
    return Spark(spark).evaluate_files(paths, *arguments, **options)


def summary_files(
    spark: SparkSession, paths: Path | Iterable[Path], *arguments: Any, **options: Any
) -> Summary:
    return Spark(spark).summary_files(paths, *arguments, **options)


for _own in (evaluate_files, summary_files):
    _own.__doc__ = getattr(Spark, _own.__name__).__doc__


# ---- functions for one's own expressions ----


def group_function(measure: Any, *, nan: NaN = "refuse") -> Callable[..., Any]:
    """Make a function of relevance and score for your own `groupBy(...).agg(...)`: a value for each group.

        ndcg = group_function("nDCG@10")
        rows.groupBy("qid").agg(ndcg("label", "score", "qid").alias("ndcg"))

    Spark calls Python once for each group, which is slower than `evaluate` for short groups, and allows none
    of its own functions, such as count, in the same `agg`.

    Parameters
    ----------
    measure : Measure, notation, or ir_measures object
        Not with ties="input", since Spark does not define the order of rows.
    nan : "refuse" or "last"

    Returns
    -------
    function
        Of the columns of grades and scores, and optionally of query ids for messages; it returns a double,
        null where the measure has no value.

    Raises `MeasureError` for a measure that does not exist, and `InputError` before Spark 4.1; in tasks, as
    `evaluate` does.
    """
    known = scoring.one_measure(measure)
    if known.params.get("ties") == "input":
        raise MeasureError(
            f"{known} keeps tied documents in row order, and rows of a Spark group have no order; "
            "use evaluate with order=, or another rule for ties"
        )

    def value(relevance: pa.Array, score: pa.Array, query: pa.Array = None) -> float | None:
        ends = pa.array([0, len(score)], pa.int64())
        labels, scores = (pa.LargeListArray.from_arrays(ends, each) for each in (relevance, score))
        ids = query[:1] if query is not None and len(query) else pa.array(["of this group"])
        result = float(scoring.values_of_lists(known, labels, scores, ids, nan)[0])
        return None if np.isnan(result) else result

    return _user_defined_function(value, float)


def list_function(measure: Any, *, nan: NaN = "refuse") -> Callable[..., Any]:
    """Make a function of array columns of relevance and scores for your own `select`.

        ndcg = list_function("nDCG@10")
        rows.select("qid", ndcg("labels", "scores", "qid").alias("ndcg"))

    Parameters, result and errors are those of `group_function`; ties="input" keeps the order of the elements.
    """
    known = scoring.one_measure(measure)

    def column(relevance: pa.Array, score: pa.Array, query: pa.Array = None) -> pa.Array:
        return pa.array(scoring.values_of_lists(known, relevance, score, query, nan), from_pandas=True)

    return _user_defined_function(column, None)


def _user_defined_function(function: Callable[..., Any], returns: type | None) -> Callable[..., Any]:
    """Make a function of Arrow arrays, from Spark 4.1 on, or else of pandas Series, which are slower.

    Spark derives its kind from the annotations; without `returns` it returns a column.
    """
    if hasattr(F, "arrow_udf"):
        column, make, made = pa.Array, F.arrow_udf, function
    else:
        import pandas as pd

        def made(relevance: Any, score: Any, query: Any = None) -> Any:
            # not from_pandas, which would turn NaN into null
            columns = [
                pa.array(each.to_numpy() if each.dtype != "O" else list(each)) for each in (relevance, score)
            ]
            values = function(*columns, None if query is None else pa.Array.from_pandas(query))
            return values.to_pandas() if isinstance(values, pa.Array) else values

        column, make = pd.Series, F.pandas_udf
    made.__annotations__ = dict.fromkeys(("relevance", "score", "query"), column)
    made.__annotations__["return"] = returns or column
    return make(made, "double")


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _of_rows(job: shuffle.Job, tables: Tables) -> Iterator[pa.Table]:
    """Packed chunks of a partition that has all rows of its queries."""
    if rows := list(tables):
        yield from shuffle.score_or_pack(job, [(pa.concat_tables(rows), None)], shuffle.Split())


def _of_lists(job: shuffle.Job, tables: Tables) -> Iterator[pa.Table]:
    """Packed chunks of tables with a row for each query."""
    ids = job.task.columns.id_columns
    larger_tables = scoring.larger(_documents(ids, table) for table in tables)
    return shuffle.score_or_pack(job, ((table, None) for table in larger_tables), shuffle.Split())


def _documents(ids: list[str], table: pa.Table) -> pa.Table:
    """A row for each document, of lists of each query: all columns but ids."""
    lists = {name: table[name] for name in table.column_names if name not in ids}
    rows = pc.list_parent_indices(next(iter(lists.values())))
    columns = {name: table[name].take(rows) for name in ids} | {
        n: pc.list_flatten(c) for n, c in lists.items()
    }
    return pa.table({name: columns[name] for name in table.column_names})


def _arrow_field(field: StructField) -> pa.Field:
    # from PySpark 4.3 on, a timestamp has an Arrow type only if a time zone is passed
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    try:
        return to_arrow_schema(StructType([field]), **zone).field(0)
    except PySparkException:
        # a type that Arrow lacks, here replaced by one that no role accepts; most columns have no role
        return pa.field(field.name, pa.month_day_nano_interval())


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type that Spark reads a type of files as."""
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.binary() if types.is_fixed_size_binary(kind) else _WIDER.get(kind, kind)


def schema_of(results: pa.Schema) -> StructType:
    return StructType(
        [StructField(field.name, from_arrow_type(_plain(field.type), True)) for field in results]
    )
