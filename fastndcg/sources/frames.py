"""Turn the named columns of a table of any library into an Arrow table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.errors import InputError, InputTypeError, count_of
from fastndcg.sources.values import first_line


class Source(NamedTuple):
    """A table that is not read yet."""

    names: Sequence[str]
    type_of: Callable[[str], pa.DataType]
    table: Callable[[list[str]], pa.Table]
    hint: str = ""  # the end of the message about a missing column


def is_table(data: Any) -> bool:
    """Whether an iterable is a table, not a list of rows."""
    pandas = sys.modules.get("pandas")
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (pandas is not None and isinstance(data, pandas.DataFrame))
        or (isinstance(data, np.ndarray) and data.dtype.names is not None)
    )


def source_of(data: Any) -> Source:
    pandas = sys.modules.get("pandas")
    dataset = sys.modules.get("pyarrow.dataset")
    if isinstance(data, pa.Table):
        return Source(data.column_names, lambda name: data.schema.field(name).type, data.select)
    if pandas is not None and isinstance(data, pandas.DataFrame):
        # not through Arrow's stream: it would carry the index as a column, and turn NaN into null
        index = [name for name in data.index.names if name is not None]
        hint = f" The index has {', '.join(map(repr, index))}: call reset_index() first." if index else ""
        return _of_columns(list(data.columns), lambda name: _from_pandas(name, data[name]), hint)
    if dataset is not None and isinstance(data, dataset.Dataset):
        return Source(
            data.schema.names,
            lambda name: data.schema.field(name).type,
            lambda names: _readable(lambda: data.to_table(columns=names)),
        )
    if isinstance(data, Mapping):
        return _of_columns(list(data), lambda name: _from_array(name, data[name]))
    if isinstance(data, np.ndarray) and data.dtype.names:
        return _of_columns(list(data.dtype.names), lambda name: _from_array(name, data[name]))
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.LazyFrame):
        schema = polars.DataFrame(schema=data.collect_schema()).to_arrow().schema
        return Source(
            schema.names,
            lambda name: schema.field(name).type,
            lambda names: _readable(lambda: data.select(names).collect().to_arrow()),
        )
    return _of_reader(_reader(data))


def _reader(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    try:
        if isinstance(data, pa.RecordBatch):
            return pa.RecordBatchReader.from_batches(data.schema, [data])
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputTypeError(
            f"data is a {_type_name(data)} that is not a table: {first_line(error)}"
        ) from None
    step = "Name its path to read_parquet" if isinstance(data, str) else "Convert it to one of them"
    if callable(getattr(data, "collect", None)):
        step = "Call .collect() first"
    elif callable(getattr(data, "compute", None)):
        step = "Call .compute() first"
    raise InputTypeError(
        f"data is a {_type_name(data)}; wanted a table: anything with __arrow_c_stream__ (pyarrow, Polars, "
        f"DuckDB), a pandas DataFrame, or a mapping of column names to arrays. {step}."
    )


def _of_reader(reader: pa.RecordBatchReader) -> Source:
    schema = reader.schema

    def table(names: list[str]) -> pa.Table:
        # batch by batch, so that the other columns of a stream are freed early
        batches = _readable(lambda: [batch.select(names) for batch in reader])
        return pa.Table.from_batches(batches, pa.schema([schema.field(name) for name in names]))

    return Source(schema.names, lambda name: schema.field(name).type, table)


def _of_columns(names: list[Any], column: Callable[[str], pa.ChunkedArray], hint: str = "") -> Source:
    def table(wanted: list[str]) -> pa.Table:
        arrays = [column(name) for name in wanted]
        for name, array in zip(wanted, arrays, strict=True):
            if len(array) != len(arrays[0]):
                raise InputError(
                    f'column "{name}" has {count_of(len(array), "value")} and column "{wanted[0]}" '
                    f"{len(arrays[0]):,}; wanted one length"
                )
        return pa.table(arrays, names=wanted)

    return Source(names, lambda name: column(name).type, table, hint)


def _from_pandas(name: str, series: Any) -> pa.ChunkedArray:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "buif":
        return _from_array(name, series.to_numpy())
    return _from_array(name, series)


def _from_array(name: str, values: Any) -> pa.ChunkedArray:
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, np.ndarray) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if isinstance(values, np.ndarray) and values.ndim == 2:
        offsets = np.arange(len(values) + 1, dtype=np.int64) * values.shape[1]
        values = pa.LargeListArray.from_arrays(offsets, pa.array(values.ravel()))
    try:
        if not isinstance(values, pa.Array) and hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        array = pa.array(values)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InputTypeError(
            f'column "{name}" is not an array that Arrow can hold: {first_line(error)}'
        ) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _readable(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(f"data could not be read: {first_line(error)}. Check its source") from None


def _type_name(data: object) -> str:
    kind = type(data)
    return (
        kind.__name__
        if kind.__module__ == "builtins"
        else f"{kind.__module__.partition('.')[0]} {kind.__name__}"
    )
