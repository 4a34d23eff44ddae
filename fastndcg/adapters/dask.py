"""Dask: scores of DataFrames of any size, under any scheduler, bit for bit those of `evaluate`.

    from fastndcg.adapters import dask as fnd

    scores = fnd.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    scores.to_parquet("scores")
    print(fnd.means(scores, ["nDCG@10"], by="country"))

    rows -> shuffle by query -> partitions of whole queries -> the serial kernel

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

import os
from typing import TYPE_CHECKING, Any

import dask
import dask.base
import dask.system
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from dask.dataframe import from_delayed

from fastndcg.adapters import parcels, parts, totals
from fastndcg.adapters.engines import Engine, Types
from fastndcg.adapters.shares import Files, Plan, Share, parcels_of, results_of
from fastndcg.common.arrow_types import decode, is_number, is_text
from fastndcg.errors import ColumnError
from fastndcg.sources.frames import table_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dask.dataframe import DataFrame

    from fastndcg.measures import Measures


# ---- in a worker ----


def _results(frame: pd.DataFrame, task: parts.Task) -> pd.DataFrame:
    first: Any = slice(0)
    values = [np.empty(0)] * (len(task.results) - 1 - len(task.columns.keep))
    if len(frame):  # without rows, the types of columns of objects, such as lists, are unknown
        scores, first = parts.score(task, table_of(frame, task.names))
        values = ([] if scores.weight is None else [scores.weight]) + list(scores.values)
    # column by column: several columns at once would be copied before rows are selected
    kept = [frame[name].iloc[first].reset_index(drop=True) for name in (task.query, *task.columns.keep)]
    return pd.concat([*kept, *map(pd.Series, values)], axis=1, keys=task.results)


def _sums(frame: pd.DataFrame, task: parts.Task, values: bool) -> totals.Sums:
    return totals.add_up(task, [table_of(frame, task.names)] if len(frame) else [], values=values)


def _piece(
    frame: pd.DataFrame, task: parts.Task, quartiles: bool | None
) -> tuple[Any, tuple[pa.ChunkedArray, list[pd.DataFrame]]]:
    """Return results, or sums, of queries inside a partition; their ids; and the rows at its edges."""
    ids = table_of(frame, [task.query])[task.query]
    cut = parcels.runs_at_edges(ids, np.array([0, len(frame)]))
    first, last = (cut[0][1], cut[-1][0]) if len(cut) > 1 else (len(frame), len(frame))
    within = frame.iloc[first:last]
    found = _results(within, task) if quartiles is None else _sums(within, task, quartiles)
    scored = ids.slice(first, last - first).unique()
    runs = [frame[task.names].iloc[start:stop] for start, stop in cut.tolist()]
    return found, (pa.chunked_array([scored]), runs)


def _at_edges(
    pieces: list[tuple[pa.ChunkedArray, list[pd.DataFrame]]], task: parts.Task, quartiles: bool | None
) -> Any:
    """Return results, or sums, of queries at edges. Refuse a query that is also inside a partition."""
    runs = [run for _, of_partition in pieces for run in of_partition]
    rows = pd.concat(runs, ignore_index=True) if runs else pd.DataFrame(columns=task.names)
    scored = [decode(ids) for ids, _ in pieces if len(ids)]
    cut = decode(table_of(rows, [task.query])[task.query])
    if scored:
        parcels.check_ids(task, pa.chunked_array([chunk for ids in scored for chunk in ids.chunks]), cut)
    return _results(rows, task) if quartiles is None else _sums(rows, task, quartiles)


def _by_block(files: Files, share: Share) -> list[pa.Table]:
    """The parcels of a share, a table for each block."""
    found = pa.concat_tables([parcels.SCHEMA.empty_table(), *parcels_of(files, share)])
    return [found.filter(pc.field("block") == block) for block in range(files.job.blocks)]


def _joined(job: parcels.Job, of_shares: list[pa.Table]) -> list[pa.Table]:
    return list(parcels.joined(job, (batch for table in of_shares for batch in table.to_batches())))


def _unpickled(tables: list[pa.Table]) -> list[totals.Sums]:
    return [sums for table in tables for sums in totals.unpickle_rows(table.to_pylist())]


def _as_frame(tables: list[pa.Table], schema: pa.Schema, meta: pd.DataFrame | None = None) -> pd.DataFrame:
    """Results as Dask reads Parquet: texts are Arrow's, and integers of which some are null are floats."""
    table, texts = pa.concat_tables([schema.empty_table(), *tables]), pd.StringDtype("pyarrow")
    frame = table.to_pandas(types_mapper=lambda kind: texts if is_text(kind) else None)
    if meta is None:
        return frame
    return frame.astype({name: kind for name, kind in meta.dtypes.items() if not table[name].null_count})


def _groups(frame: pd.DataFrame, asked: totals.Means) -> tuple[list[pa.DataType], totals.Groups]:
    table = table_of(frame, asked.names)
    return [decode(table[name]).type for name in asked.by], totals.sums_by(asked, table)


# ---- in the client ----


class Dask(Engine["DataFrame"]):
    """How Dask computes the parts of its DataFrames."""

    table = "DataFrame of Dask"
    attributes = ("_meta", "map_partitions", "shuffle", "dtypes")

    def _task(self, df: DataFrame, measures: Measures, options: parts.Options) -> parts.Task:
        try:
            return super()._task(df, measures, options)
        except ColumnError as error:
            index = df._meta.index.name
            hint = "" if index is None else f' The index is "{index}": call reset_index() first.'
            raise error.within("", hint) from None

    def _schema(self, df: DataFrame) -> pa.Schema:
        """The types of the columns. For columns of objects, the first partition with rows is computed."""
        meta = df._meta
        fields = []
        objects = [name for name in meta.columns if meta[name].dtype == object]
        sample = df[objects].head(1, npartitions=-1, compute=True) if objects else meta
        for name in meta.columns:
            looked_up = sample if name in objects else meta
            fields.append(pa.field(str(name), table_of(looked_up, [name]).schema.field(0).type))
        return pa.schema(fields)

    def _names(self, scores: DataFrame) -> list[str]:
        return list(scores.columns)

    def _results(self, df: DataFrame, task: parts.Task, options: parts.Options) -> DataFrame:
        rows, is_apart = _rows(df, task, options)
        meta = _results(df._meta, task)
        if is_apart:
            found, edges = _pieces(rows, task, None)
            # otherwise objects, such as bytes, become text
            with dask.config.set({"dataframe.convert-string": False}):
                return from_delayed([*found, edges], meta=meta, verify_meta=False)
        return rows.map_partitions(_results, task, meta=meta, enforce_metadata=False, clear_divisions=True)

    def _sums(
        self, df: DataFrame, task: parts.Task, options: parts.Options, *, values: bool
    ) -> list[totals.Sums]:
        rows, is_apart = _rows(df, task, options)
        if is_apart:
            found, edges = _pieces(rows, task, values)
            return [*dask.compute(*found, edges)]
        return _of_each_partition(_sums, rows, task, values)

    # ---- files ----

    def _workers(self) -> int:
        client: Any = getattr(dask.base.get_scheduler(), "__self__", None)
        if hasattr(client, "nthreads"):
            return max(1, sum(client.nthreads().values()))
        return int(dask.config.get("num_workers", None) or dask.system.CPU_COUNT)

    def _of_shares(self, function: Callable[[Share], Any], shares: list[Share]) -> list[Any]:
        return list(dask.compute(*map(_delay(function), shares)))

    def _of_plan(self, plan: Plan) -> list[Any]:
        """The tables that are yielded for each share, or for each block."""
        files = plan.files
        if plan.is_local:
            return [_delay(_alone)(files, share) for share in plan.shares]
        of_shares = [_delay(_by_block, nout=files.job.blocks)(files, share) for share in plan.shares]
        blocks = range(files.job.blocks)
        return [_delay(_joined)(files.job, [of_share[block] for of_share in of_shares]) for block in blocks]

    def _results_of_files(self, plan: Plan, df: DataFrame | None = None) -> DataFrame:
        job = plan.files.job
        meta = None if df is None else _results(df._meta, job.task)
        frames = [_delay(_as_frame)(tables, job.results, meta) for tables in self._of_plan(plan)]
        with dask.config.set({"dataframe.convert-string": False}):  # otherwise bytes become text
            empty = _as_frame([], job.results) if meta is None else meta
            return from_delayed(frames, meta=empty, verify_meta=False)

    def _sums_of_files(self, plan: Plan) -> list[totals.Sums]:
        return [sums for tables in dask.compute(*self._of_plan(plan)) for sums in _unpickled(tables)]

    def _files_of(self, df: DataFrame, names: list[str]) -> tuple[list[str], Callable[[Types], bool]] | None:
        read = df.expr
        while type(read).__name__ == "Projection":
            read = read.frame
        if type(read).__name__ not in ("ReadParquetFSSpec", "ReadParquetPyarrowFS"):
            return None
        if not set(names) <= set(read.columns):
            return None
        if any(read.operand(name) is not None for name in ("filters", "_partitions", "categories")):
            return None
        if type(read).__name__ == "ReadParquetPyarrowFS":
            paths = [fragment.path for fragment in read.fragments]
        else:
            pieces = [part["piece"][0] for part in read._plan["parts"]]
            paths = list(dict.fromkeys(each for piece in pieces for each in np.atleast_1d(piece).tolist()))
        if not all(map(os.path.isfile, paths)):  # of other file systems
            return None
        kinds = df.dtypes

        def has_columns(types: Types) -> bool:
            return all(
                isinstance(kinds[name], pd.StringDtype) if is_text(kind)
                else (is_number(kind) and kinds[name] == kind.to_pandas_dtype())
                for name, kind in types.items()
            )  # fmt: skip

        return paths, has_columns

    def _groups(
        self, scores: DataFrame, asked: totals.Means
    ) -> tuple[list[pa.DataType], list[totals.Groups]]:
        found = _of_each_partition(_groups, scores[asked.names], asked)
        # the type of a column is unknown in a partition in which all values are null
        kinds = [
            next((kind for kind in of_parts if not pa.types.is_null(kind)), pa.null())
            for of_parts in zip(*(kinds for kinds, _ in found), strict=True)
        ]
        return kinds, [groups for _, groups in found]


_dask = Dask()
evaluate, summary, means = _dask.evaluate, _dask.summary, _dask.means
evaluate_files, summary_files = _dask.evaluate_files, _dask.summary_files


def _rows(df: DataFrame, task: parts.Task, options: parts.Options) -> tuple[DataFrame, bool]:
    """The columns of a task with queries in one partition each, and whether edges may cut queries."""
    partitions = options.partitions
    rows = df[task.names]
    if rows.npartitions == 1 and partitions is None:
        return rows, False
    if task.lists or options.grouped:
        return rows if partitions is None else rows.repartition(npartitions=partitions), not task.lists
    return rows.shuffle(on=task.query, npartitions=partitions, ignore_index=True), False


def _delay(function: Any, **options: Any) -> Any:
    return dask.delayed(function, pure=False, **options)


def _pieces(rows: DataFrame, task: parts.Task, quartiles: bool | None) -> tuple[list[Any], Any]:
    """Results, or sums, of the queries inside each partition; and those of the queries at edges."""
    piece = _delay(_piece, nout=2)
    found = [piece(part, task, quartiles) for part in rows.to_delayed()]
    edges = _delay(_at_edges)([of_part[1] for of_part in found], task, quartiles)
    return [of_part[0] for of_part in found], edges


def _alone(files: Files, share: Share) -> list[pa.Table]:
    return list(results_of(files, share))


def _of_each_partition(function: Any, rows: DataFrame, *arguments: Any) -> list[Any]:
    delayed = _delay(function)
    return list(dask.compute(*(delayed(part, *arguments) for part in rows.to_delayed())))
