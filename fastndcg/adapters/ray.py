"""Ray Data: scores of Datasets of any size, with the values of `fastndcg.evaluate` bit for bit.

    from fastndcg.adapters import ray as fnr

    scores = fnr.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    with fnr.plain_errors():
        scores.write_parquet("scores")
    print(fnr.means(scores, ["nDCG@10"], by="country"))

fastndcg must be installed where Ray runs its workers.

    rows -> packed by hash of the query -> repartition of few packed rows -> the serial kernel

Each block must fit into memory, as everywhere in Ray Data, and so must each query. Ray turns NaN in pandas
DataFrames into null, which is refused like NaN; in Arrow and Parquet NaN stays NaN. If Ray does not know the
columns yet, the first row is computed. A result without rows has no columns.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray
from ray.data import from_arrow
from ray.exceptions import RayError

from fastndcg.adapters.engines import Engine

if TYPE_CHECKING:
    from ray.data import Dataset

    from fastndcg.adapters.engines import Make, Tables


class Ray(Engine["Dataset"]):
    """The Ray engine: lazy Arrow tables are Datasets."""

    table = "Dataset of Ray"
    attributes = ("map_batches", "repartition", "materialize")

    def _is_own(self, error: Exception) -> bool:
        return isinstance(error, RayError)

    def _schema(self, df: Dataset) -> pa.Schema:
        """The types of the columns in workers. For pandas objects, the first row is computed."""
        known = df.schema()
        if known is None:
            return pa.schema([])
        if isinstance(known.base_schema, pa.Schema):
            return known.base_schema
        first = self._map(df.limit(1), iter, pa.schema([])).schema()
        if first is not None and isinstance(first.base_schema, pa.Schema):
            return first.base_schema
        return pa.schema([(name, pa.null()) for name in known.names])

    def _workers(self) -> int:
        if not ray.is_initialized():  # it logs an error where it is
            ray.init()
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def _default_blocks(self, df: Dataset) -> int:
        return int(df.context.default_hash_shuffle_parallelism)

    def _map_rows(self, df: Dataset | None, names: list[str], function: Make, schema: pa.Schema) -> Dataset:
        rows: Any = df
        return self._map(
            rows if list(rows.columns() or ()) == names else rows.select_columns(names), function, schema
        )

    def _map_items(self, items: Sequence[Any], function: Make, schema: pa.Schema) -> Dataset:
        def of_items(tables: Tables) -> Tables:
            for table in tables:
                for data in table["item"].to_pylist():
                    yield from function(pickle.loads(data))  # noqa: S301 - our own

        return self._map(
            from_arrow([pa.table({"item": [pickle.dumps(item)]}) for item in items]), of_items, schema
        )

    def _map(self, partitions: Dataset, function: Make, schema: pa.Schema) -> Dataset:  # noqa: ARG002
        def of_block(table: pa.Table) -> pa.Table:
            results = list(function([table] if len(table) else []))
            return pa.concat_tables(results) if results else pa.table({})

        return partitions.map_batches(of_block, batch_size=None, batch_format="pyarrow")

    def _shuffle(self, partitions: Dataset, blocks: int) -> Dataset:
        return partitions.repartition(blocks, keys=["block"])

    def _collect(self, partitions: Dataset) -> Iterable[Any]:
        return partitions.take_all()


_ray = Ray()
evaluate, summary, means = _ray.evaluate, _ray.summary, _ray.means
evaluate_files, summary_files = _ray.evaluate_files, _ray.summary_files
plain_errors = _ray.plain_errors
