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

from typing import TYPE_CHECKING, Any

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
from dask.dataframe import from_delayed

from fastndcg.adapters import grouped as together
from fastndcg.adapters import parts, totals
from fastndcg.adapters.engines import Engine
from fastndcg.common.arrow_types import decode
from fastndcg.errors import ColumnError
from fastndcg.sources.frames import table_of

if TYPE_CHECKING:
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
    cut = together.runs_at_edges(ids, np.array([0, len(frame)]))
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
        together.check_ids(task, pa.chunked_array([chunk for ids in scored for chunk in ids.chunks]), cut)
    return _results(rows, task) if quartiles is None else _sums(rows, task, quartiles)


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


def _of_each_partition(function: Any, rows: DataFrame, *arguments: Any) -> list[Any]:
    delayed = _delay(function)
    return list(dask.compute(*(delayed(part, *arguments) for part in rows.to_delayed())))
