"""Ray Data: scores of Datasets of any size, with the values of `fastndcg.evaluate` bit for bit.

    from fastndcg.adapters import ray as fnr

    scores = fnr.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    with fnr.plain_errors():
        scores.write_parquet("scores")
    print(fnr.means(scores, ["nDCG@10"], by="country"))

fastndcg must be installed where Ray runs its workers.

    rows -> repartition by query -> blocks of whole queries -> the serial kernel

Each block must fit into memory, as everywhere in Ray Data, and so must each query. Ray turns NaN in pandas
DataFrames into null, which is refused like NaN; in Arrow and Parquet NaN stays NaN. If Ray does not know the
columns yet, the first row is computed. A result without rows has no columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from ray.exceptions import RayError

from fastndcg.adapters import grouped as together
from fastndcg.adapters import parts, totals
from fastndcg.adapters.engines import Engine

if TYPE_CHECKING:
    from ray.data import Dataset


class Ray(Engine["Dataset"]):
    """How Ray computes the blocks of its Datasets."""

    table = "Dataset of Ray"
    attributes = ("map_batches", "repartition", "materialize")

    def _schema(self, df: Dataset) -> pa.Schema:
        """The types of the columns in workers. For pandas objects, the first row is computed."""
        known = df.schema()
        if known is None:
            return pa.schema([])
        if isinstance(known.base_schema, pa.Schema):
            return known.base_schema
        first = _of_each_block(df.limit(1), lambda table: table).schema()
        if first is not None and isinstance(first.base_schema, pa.Schema):
            return first.base_schema
        return pa.schema([(name, pa.null()) for name in known.names])

    def _names(self, scores: Dataset) -> list[str]:
        return list(self._schema(scores).names)

    def _results(self, df: Dataset, task: parts.Task, options: parts.Options) -> Dataset:
        rows, blocks = _rows(df, task, options)
        if blocks is not None:
            pieces = _pieces(task, rows, blocks, None)
            return _of_each_block(pieces, lambda table: together.whole(task, table))
        return _of_each_block(rows, lambda table: parts.results(task, table))

    def _sums(
        self, df: Dataset, task: parts.Task, options: parts.Options, *, values: bool
    ) -> list[totals.Sums]:
        rows, blocks = _rows(df, task, options)
        if blocks is not None:
            pieces = _pieces(task, rows, blocks, values)
            return _collect(pieces, lambda table: together.whole_sums(task, table, values=values))
        return _collect(rows, lambda table: totals.add_up(task, [table], values=values))

    def _groups(self, scores: Dataset, asked: totals.Means) -> tuple[list[pa.DataType], list[totals.Groups]]:
        schema = self._schema(scores)
        found = _collect(scores.select_columns(asked.names), lambda table: totals.sums_by(asked, table))
        return [schema.field(name).type for name in asked.by], found

    def _is_own(self, error: Exception) -> bool:
        return isinstance(error, RayError)


_ray = Ray()
evaluate, summary, means, plain_errors = _ray.evaluate, _ray.summary, _ray.means, _ray.plain_errors


# ---- between the driver and its workers ----


def _rows(dataset: Dataset, task: parts.Task, options: parts.Options) -> tuple[Dataset, int | None]:
    """The columns of a task with all rows of a query in one block, and None.

    With `grouped=True` rows are not shuffled, and the last value is the number of blocks for the queries at
    edges.
    """
    partitions = options.partitions
    rows = dataset if list(dataset.columns() or ()) == task.names else dataset.select_columns(task.names)
    if task.lists:
        return rows if partitions is None else rows.repartition(partitions), None
    # repartition by keys puts all rows of a key into one block, and Ray does not split such a block
    blocks = dataset.context.default_hash_shuffle_parallelism if partitions is None else partitions
    if options.grouped:
        return rows, blocks
    return rows.repartition(blocks, keys=[task.query]), None


def _pieces(task: parts.Task, rows: Dataset, blocks: int, values: bool | None) -> Dataset:
    """Return the pieces of each block, shuffled by query id."""

    def of_block(table: pa.Table) -> pa.Table:
        found = [*together.pieces(task, table.to_batches(), values=values)]
        return pa.concat_tables(found, promote_options="default")

    ids = task.results[0] if values is None else together.ID
    return _of_each_block(rows, of_block).repartition(blocks, keys=[ids])


def _of_each_block(rows: Dataset, function: Callable[[pa.Table], pa.Table]) -> Dataset:
    return rows.map_batches(function, batch_size=None, batch_format="pyarrow")


def _collect(rows: Dataset, function: Callable[[pa.Table], Any]) -> list[Any]:
    found = _of_each_block(rows, lambda table: totals.pickle_row(function(table)))
    return totals.unpickle_rows(found.take_all())
