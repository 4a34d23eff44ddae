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

import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray
from ray.data import from_arrow
from ray.exceptions import RayError

from fastndcg.adapters import parcels, parts, totals
from fastndcg.adapters.engines import Engine, Types
from fastndcg.adapters.shares import Plan, Share, parcels_of, results_of

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
            schema = self._schema(df)
            kinds = [_plain(schema.field(name).type) for name in (task.query, *task.columns.keep)]
            kinds += [pa.float64()] * (len(task.results) - len(kinds))
            job = parcels.Job(task, blocks, pa.schema(zip(task.results, kinds, strict=True)), compares=True)
            return _joined(_pieces(job, rows), job)
        return _of_each_block(rows, lambda table: parts.results(task, table))

    def _sums(
        self, df: Dataset, task: parts.Task, options: parts.Options, *, values: bool
    ) -> list[totals.Sums]:
        rows, blocks = _rows(df, task, options)
        if blocks is not None:
            job = parcels.Job(task, blocks, None, values, compares=True)
            return totals.unpickle_rows(_joined(_pieces(job, rows), job).take_all())
        return _collect(rows, lambda table: totals.add_up(task, [table], values=values))

    # ---- files ----

    def _workers(self) -> int:
        ray.init(ignore_reinit_error=True)
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def _map(self, function: Callable[[Share], Iterable[pa.Table]], shares: list[Share]) -> Dataset:
        """What a function yields for each share, in a block of its own."""

        def of_block(table: pa.Table) -> pa.Table:
            found = [
                each
                for data in table["share"].to_pylist()
                for each in function(pickle.loads(data))  # noqa: S301
            ]
            return pa.concat_tables(found) if found else pa.table({})

        tables = [pa.table({"share": [pickle.dumps(share)]}) for share in shares]
        return _of_each_block(from_arrow(tables), of_block)

    def _of_shares(self, function: Callable[[Share], Any], shares: list[Share]) -> list[Any]:
        found = self._map(lambda share: [totals.pickle_row(function(share))], shares)
        return totals.unpickle_rows(found.take_all())

    def _of_plan(self, plan: Plan) -> Dataset:
        files = plan.files
        if plan.is_local:
            return self._map(lambda share: results_of(files, share), plan.shares)
        packed = self._map(lambda share: parcels_of(files, share), plan.shares)
        return _joined(packed.repartition(files.job.blocks, keys=["block"]), files.job)

    def _results_of_files(self, plan: Plan, df: Dataset | None = None) -> Dataset:  # noqa: ARG002
        return self._of_plan(plan)

    def _sums_of_files(self, plan: Plan) -> list[totals.Sums]:
        return totals.unpickle_rows(self._of_plan(plan).take_all())

    def _files_of(self, df: Dataset, names: list[str]) -> tuple[list[str], Callable[[Types], bool]] | None:
        read = df._logical_plan.dag
        while type(read).__name__ == "Project" and all(
            type(each).__name__ == "ColumnExpr" for each in read.exprs
        ):
            (read,) = read.input_dependencies
        schema = self._schema(df)
        paths = _paths_of(read) if type(read).__name__ == "ReadFiles" else None
        if paths is None or not set(names) <= set(schema.names):
            return None
        return paths, lambda types: all(schema.field(name).type == kind for name, kind in types.items())

    def _groups(self, scores: Dataset, asked: totals.Means) -> tuple[list[pa.DataType], list[totals.Groups]]:
        schema = self._schema(scores)
        found = _collect(scores.select_columns(asked.names), lambda table: totals.sums_by(asked, table))
        return [schema.field(name).type for name in asked.by], found

    def _is_own(self, error: Exception) -> bool:
        return isinstance(error, RayError)


_ray = Ray()
evaluate, summary, means, plain_errors = _ray.evaluate, _ray.summary, _ray.means, _ray.plain_errors
evaluate_files, summary_files = _ray.evaluate_files, _ray.summary_files


# ---- between the driver and its workers ----


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


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
    # of files, a block has rows of several at once, in no order
    if options.grouped and not _reads(dataset._logical_plan.dag):
        return rows, blocks
    return rows.repartition(blocks, keys=[task.query]), None


def _reads(operator: Any) -> bool:
    return type(operator).__name__.startswith("Read") or any(map(_reads, operator.input_dependencies))


def _pieces(job: parcels.Job, rows: Dataset) -> Dataset:
    """Return the parcels of each block, shuffled."""

    def of_block(table: pa.Table) -> pa.Table:
        found = [*parcels.together(job, [(table, None)], parcels.Share())]
        return pa.concat_tables(found) if found else pa.table({})

    return _of_each_block(rows, of_block).repartition(job.blocks, keys=["block"])


def _joined(packed: Dataset, job: parcels.Job) -> Dataset:
    def of_block(table: pa.Table) -> pa.Table:
        found = [*parcels.joined(job, table.to_batches())] if len(table) else []
        return pa.concat_tables(found) if found else pa.table({})

    return _of_each_block(packed, of_block)


def _paths_of(read: Any) -> list[str] | None:
    """The Parquet files that Ray reads whole; None where that is not certain."""
    (listed,) = read.input_dependencies
    scanner = read.scanner
    limits = [
        getattr(each, name, None)
        for each in (read, scanner, listed)
        for name in ("predicate", "limit", "partition_filter", "partition_pruner", "shuffle", "block_udf")
    ]
    is_plain = read.datasource_name == "ParquetV2" and type(listed).__name__ == "ListFiles"
    if not is_plain or any(limit is not None for limit in limits):
        return None
    paths: list[str] = []
    for path in map(Path, listed.paths):
        inside = sorted(each for each in path.rglob("*") if not each.is_dir()) if path.is_dir() else [path]
        # of other files, of other file systems too, it is not certain that Ray reads them
        if any(not each.is_file() or each.suffix != ".parquet" or each.name[0] in "._" for each in inside):
            return None
        paths += map(str, inside)
    return paths


def _of_each_block(rows: Dataset, function: Callable[[pa.Table], pa.Table]) -> Dataset:
    return rows.map_batches(function, batch_size=None, batch_format="pyarrow")


def _collect(rows: Dataset, function: Callable[[pa.Table], Any]) -> list[Any]:
    def of_block(table: pa.Table) -> pa.Table:
        with totals.telling_the_driver():
            return totals.pickle_row(function(table))

    found = _of_each_block(rows, of_block)
    return totals.unpickle_rows(found.take_all())
