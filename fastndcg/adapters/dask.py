"""Dask: scores of DataFrames of any size, under any scheduler, bit for bit those of `evaluate`.

    from fastndcg.adapters import dask as fnd

    scores = fnd.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    scores.to_parquet("scores")
    print(fnd.means(scores, ["nDCG@10"], by="country"))

    rows -> packed by hash of the query -> one list of packed rows for each block -> `scoring.score`

Each partition must fit into memory, as everywhere in Dask, and so must each query. To find the type of a
column of objects, `evaluate` computes the first partition with rows.

Examples
--------
>>> import dask.dataframe as dd
>>> import pandas as pd
>>> rows = pd.DataFrame({"qid": [7, 8, 7], "label": [1, 2, 0], "score": [0.1, 0.5, 0.9]})
>>> df = dd.from_pandas(rows, npartitions=2)
>>> evaluate(df, "nDCG@10").compute().sort_values("qid")["nDCG@10"].tolist()
[0.6309297535714574, 1.0]
>>> summary(df, "nDCG@10")
measure      mean       std       min       max  queries  empty
nDCG@10  0.815465  0.260972  0.630930  1.000000        2      0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import dask
import dask.base
import dask.system
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from dask.dataframe import from_delayed

from fastndcg.adapters import shuffle
from fastndcg.adapters.engines import Engine
from fastndcg.common.arrow_types import is_text
from fastndcg.tables.frames import frame_of

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

    from fastndcg.adapters.engines import Make


class Dask(Engine["DataFrame"]):
    """The Dask engine: lazy Arrow tables are delayed lists of tables."""

    table = "DataFrame of Dask"
    attributes = ("_meta", "map_partitions", "shuffle", "dtypes")

    def _schema(self, df: DataFrame) -> pa.Schema:
        """The types of the columns. For objects and unknown categories, the first rows are computed."""
        meta = df._meta
        objects = [
            name for name in meta.columns if meta[name].dtype == object or _has_unknown(meta[name].dtype)
        ]
        sample = df[objects].head(1, npartitions=-1, compute=True) if objects else meta
        kinds = [
            frame_of(sample if name in objects else meta).table([name]).schema.field(0).type
            for name in meta.columns
        ]
        return pa.schema(list(zip(map(str, meta.columns), kinds, strict=True)))

    def _workers(self) -> int:
        client: Any = getattr(dask.base.get_scheduler(), "__self__", None)
        if hasattr(client, "nthreads"):
            return max(1, sum(client.nthreads().values()))
        return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)

    def _default_blocks(self, df: DataFrame) -> int:
        return int(df.npartitions)

    def _map_rows(
        self,
        df: DataFrame | None,
        names: list[str],
        function: Make,
        schema: pa.Schema,  # noqa: ARG002
    ) -> list[Any]:
        return [_delay(_of_partition)(part, names, function) for part in df[names].to_delayed()]  # type: ignore[index]

    def _map_items(self, items: Sequence[Any], function: Make, schema: pa.Schema) -> list[Any]:  # noqa: ARG002
        return [_delay(_listed)(function, item) for item in items]

    def _map(self, partitions: list[Any], function: Make, schema: pa.Schema) -> list[Any]:  # noqa: ARG002
        return [_delay(_listed)(function, part) for part in partitions]

    def _shuffle(self, partitions: list[Any], blocks: int) -> list[Any]:
        by_block = [_delay(_by_block, nout=blocks)(part, blocks) for part in partitions]
        return [_delay(list)([part[block] for part in by_block]) for block in range(blocks)]

    def _to_frame(self, partitions: list[Any], job: shuffle.Job, df: DataFrame | None) -> DataFrame:
        schema, task = job.results or pa.schema([]), job.task
        known = {} if df is None else df._meta.dtypes.to_dict()
        dtypes = {name: known[name] for name in (task.query, *task.columns.keep) if name in known}
        for name, kind in list(dtypes.items()):  # ids that are whole numbers are integers
            if pa.types.is_integer(schema.field(name).type) and kind.kind == "f":
                del dtypes[name]
        frames = [_delay(_as_frame)(part, schema, dtypes) for part in partitions]
        with dask.config.set({"dataframe.convert-string": False}):  # otherwise bytes become text
            return from_delayed(frames, meta=_as_frame([], schema, dtypes), verify_meta=False)

    def _collect(self, partitions: list[Any]) -> Iterable[Any]:
        return [row for part in dask.compute(*partitions) for table in part for row in table.to_pylist()]


_dask = Dask()
evaluate, summary, means = _dask.evaluate, _dask.summary, _dask.means
evaluate_files, summary_files = _dask.evaluate_files, _dask.summary_files


def _delay(function: Any, **options: Any) -> Any:
    return dask.delayed(function, pure=False, **options)


def _has_unknown(dtype: Any) -> bool:
    """Whether Dask does not know the categories of a column."""
    known = getattr(dtype, "categories", None)
    return known is not None and (not len(known) or "__UNKNOWN_CATEGORIES__" in known)


# ---- in a worker ----


def _of_partition(frame: pd.DataFrame, names: list[str], function: Make) -> list[pa.Table]:
    # without rows, the types of columns of objects, such as lists, are unknown
    return list(function([frame_of(frame).table(names)] if len(frame) else []))


def _listed(function: Make, part: Any) -> list[pa.Table]:
    return list(function(part))


def _by_block(tables: list[pa.Table], blocks: int) -> list[pa.Table]:
    rows = pa.concat_tables([shuffle.SCHEMA.empty_table(), *tables])
    return [rows.filter(pc.field("block") == block) for block in range(blocks)]


def _as_frame(tables: list[pa.Table], schema: pa.Schema, dtypes: dict[str, Any]) -> pd.DataFrame:
    """Results of these dtypes, or as Dask reads Parquet: texts are Arrow's, integers with nulls floats."""
    table, texts = pa.concat_tables([schema.empty_table(), *tables]), pd.StringDtype("pyarrow")
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        dtype: Any = dtypes.get(name, texts if is_text(column.type) else None)
        dtype = "category" if _has_unknown(dtype) else dtype
        if hasattr(dtype, "__from_arrow__"):
            columns[name] = pd.Series(dtype.__from_arrow__(column))
            continue
        columns[name] = column.to_pandas()
        if dtype is not None and not (column.null_count and getattr(dtype, "kind", "O") in "iub"):
            columns[name] = columns[name].astype(dtype)
    return pd.DataFrame(columns)
