"""Dask: scores of DataFrames of any size, under any scheduler, bit for bit those of `evaluate`.

    from fastndcg.adapters import dask as fnd

    scores = fnd.evaluate(rows, ["nDCG@10"], query="qid", relevance="label", score="score", keep="country")
    scores.to_parquet("scores")
    print(fnd.means(scores, ["nDCG@10"], by="country"))

    rows -> shuffle by query -> partitions of whole queries -> the serial kernel

Each partition must fit into memory, as everywhere in Dask, and so must each query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
from dask.dataframe import from_delayed

from fastndcg.adapters import grouped as together
from fastndcg.adapters import parts
from fastndcg.common.arrow_types import decode, is_list
from fastndcg.errors import ColumnError
from fastndcg.sources.arrow import table_of

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

    from fastndcg.measures import Measures
    from fastndcg.scores.summary import Summary


@parts.of_engine
def evaluate(df: DataFrame, measures: Measures, **options: Unpack[parts.Keywords]) -> DataFrame:
    """Compute the value of each measure for each query, as a lazy DataFrame with a row for each query.

    Parameters
    ----------
    df : dask.dataframe.DataFrame
        A row for each document, in any order, or a row for each query with lists. To find the type of a
        column of objects, the first partition with rows is computed.
    {parameters}

    Returns
    -------
    dask.dataframe.DataFrame
        The query id and kept columns under their own names and in their own types, the weight if there is
        one, and a float64 column for each measure under its notation. The order of rows is not defined.

    {raises}

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"qid": [7, 8, 7], "label": [1, 2, 0], "score": [0.1, 0.5, 0.9]})
    >>> result = evaluate(dd.from_pandas(rows, npartitions=2), "nDCG@10").compute()
    >>> result.sort_values("qid")["nDCG@10"].tolist()
    [0.6309297535714574, 1.0]
    """
    task, rows, is_apart = _rows(df, measures, parts.Options.of(options, "evaluate"))
    meta = _results(df._meta, task)
    if is_apart:
        pieces = _pieces(rows, task, None)
        found = [piece[0] for piece in pieces] + [
            _delay(_at_edges)([piece[1] for piece in pieces], task, None)
        ]
        with dask.config.set(
            {"dataframe.convert-string": False}
        ):  # otherwise objects, such as bytes, become text
            return from_delayed(found, meta=meta, verify_meta=False)
    return rows.map_partitions(_results, task, meta=meta, enforce_metadata=False, clear_divisions=True)


@parts.of_engine
def summary(
    df: DataFrame,
    measures: Measures,
    *,
    quartiles: bool = False,
    confidence: float | None = None,
    **options: Unpack[parts.Keywords],
) -> Summary:
    """{summary}

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"qid": [7, 8, 7], "label": [1, 2, 0], "score": [0.1, 0.5, 0.9]})
    >>> summary(dd.from_pandas(rows, npartitions=2), "nDCG@10")
    measure      mean       std       min       max  queries  empty
    nDCG@10  0.815465  0.260972  0.630930  1.000000        2      0
    """
    task, rows, is_apart = _rows(df, measures, parts.options_of_summary(options, confidence))
    if is_apart:
        pieces = _pieces(rows, task, quartiles)
        edges = _delay(_at_edges)([piece[1] for piece in pieces], task, quartiles)
        found = [*dask.compute(*(piece[0] for piece in pieces), edges)]
    else:
        found = _of_each_partition(_sums, rows, task, quartiles)
    return parts.summary_of(task, found, values=quartiles, confidence=confidence)


@parts.of_engine
def means(
    scores: DataFrame,
    measures: Measures,
    *,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    confidence: float | None = None,
) -> pa.Table:
    """{means}"""
    _check_frame("scores", scores)
    asked = parts.check_means(list(scores.columns), measures, by=by, weight=weight, confidence=confidence)
    found = _of_each_partition(_groups, scores[asked.names], asked)
    # the type of a column is unknown in a partition in which all values are null
    kinds = [
        next((kind for kind in of_parts if not pa.types.is_null(kind)), pa.null())
        for of_parts in zip(*(kinds for kinds, _ in found), strict=True)
    ]
    return parts.means_of(asked, kinds, [groups for _, groups in found])


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


def _sums(frame: pd.DataFrame, task: parts.Task, values: bool) -> parts.Sums:
    return parts.add_up(task, [table_of(frame, task.names)] if len(frame) else [], values=values)


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


def _groups(frame: pd.DataFrame, asked: parts.Means) -> tuple[list[pa.DataType], parts.Groups]:
    table = table_of(frame, asked.names)
    return [decode(table[name]).type for name in asked.by], parts.sums_by(asked, table)


# ---- in the client ----


def _check_frame(name: str, frame: Any) -> None:
    parts.check_frame(name, frame, ("_meta", "map_partitions", "shuffle", "dtypes"), "DataFrame of Dask")


def _rows(df: DataFrame, measures: Measures, options: parts.Options) -> tuple[parts.Task, DataFrame, bool]:
    """Return the task, its columns with queries in one partition each, and whether edges may cut queries."""
    _check_frame("df", df)
    partitions = options.partitions
    schema = _schema(df)
    try:
        task = parts.make_task(schema, measures, options)
    except ColumnError as error:
        index = df._meta.index.name
        hint = "" if index is None else f' The index is "{index}": call reset_index() first.'
        raise error.within("", hint) from None
    rows = df[task.names]
    if is_list(schema.field(task.columns.relevance).type):
        return task, rows if partitions is None else rows.repartition(npartitions=partitions), False
    if rows.npartitions == 1 and partitions is None:
        return task, rows, False
    if options.grouped:
        return task, rows if partitions is None else rows.repartition(npartitions=partitions), True
    return task, rows.shuffle(on=task.query, npartitions=partitions, ignore_index=True), False


def _schema(df: DataFrame) -> pa.Schema:
    """Return the types of the columns. For columns of objects, the first partition with rows is computed."""
    meta = df._meta
    fields = []
    objects = [name for name in meta.columns if meta[name].dtype == object]
    sample = df[objects].head(1, npartitions=-1, compute=True) if objects else meta
    for name in meta.columns:
        looked_up = sample if name in objects else meta
        fields.append(pa.field(str(name), table_of(looked_up, [name]).schema.field(0).type))
    return pa.schema(fields)


def _delay(function: Any, **options: Any) -> Any:
    return dask.delayed(function, pure=False, **options)


def _pieces(rows: DataFrame, task: parts.Task, quartiles: bool | None) -> list[Any]:
    piece = _delay(_piece, nout=2)
    return [piece(part, task, quartiles) for part in rows.to_delayed()]


def _of_each_partition(function: Any, rows: DataFrame, *arguments: Any) -> list[Any]:
    delayed = _delay(function)
    return list(dask.compute(*(delayed(part, *arguments) for part in rows.to_delayed())))
