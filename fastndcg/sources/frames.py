"""Tables in memory, of any library, to Arrow tables of the named columns, and to `Rankings`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from fastndcg.errors import ColumnError, InputError, InputTypeError, count_of
from fastndcg.sources.opened import Opened
from fastndcg.sources.opening import Format
from fastndcg.sources.values import first_line

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.columns import Columns, Roles
    from fastndcg.typing import Path as PathLike


@dataclass(frozen=True, kw_only=True)
class TableInMemory(Opened):
    """A table of which no column is converted yet."""

    format: Format = Format("a table in memory")  # noqa: RUF009 - a tuple
    paths: list[PathLike] = field(default_factory=list)
    threads: int = 1
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))  # types are found column by column
    given_names: Sequence[str]
    find_type: Callable[[str], pa.DataType]
    convert: Callable[[list[str]], pa.Table]
    hint: str = ""  # the end of the message about a missing column

    is_small = True

    @property
    def names(self) -> list[str]:
        return list(self.given_names)

    def type_of(self, name: str) -> pa.DataType:
        return self.find_type(name)

    def with_columns(self, columns: Columns, types: object = None) -> Self:  # noqa: ARG002
        return replace(self, columns=columns)  # types are those of the converted columns

    def explain(self, error: ColumnError) -> ColumnError:
        return error.within("", self.hint)

    def table(self, names: Sequence[str], *_: object, **__: object) -> pa.Table:
        return self.convert(list(names))


def rankings_from_arrow(data: Any, roles: Roles, *, with_doc_id: bool = False) -> Rankings:
    """What `Rankings.from_arrow` does; `with_doc_id` reads document ids by a usual name where they are not
    named.

    >>> from fastndcg.sources.columns import Roles
    >>> rankings_from_arrow({"label": [[1, 0], [2]], "score": [[0.5, 0.1], [0.9]]}, Roles()).offsets
    array([0, 2, 3])
    """
    return source_of(data).choose(roles, with_doc_id=with_doc_id).read()


def table_of(data: Any, names: Sequence[str]) -> pa.Table:
    """The named columns of a table of any kind; in one of pandas NaN stays NaN, where pyarrow would take it
    for null.

    Raises as `rankings_from_arrow` does.
    """
    return source_of(data).table(list(names))


def is_table(data: Any) -> bool:
    """Whether an iterable is a table, not a list of rows."""
    pandas = sys.modules.get("pandas")
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (pandas is not None and isinstance(data, pandas.DataFrame))
        or (isinstance(data, np.ndarray) and data.dtype.names is not None)
    )


def source_of(data: Any) -> TableInMemory:
    """A table of any library. Raises `InputTypeError` for what is none."""
    pandas, dataset, polars = map(sys.modules.get, ("pandas", "pyarrow.dataset", "polars"))
    if isinstance(data, pa.Table):
        return _of_schema(data.schema, data.select)
    if pandas is not None and isinstance(data, pandas.DataFrame):
        # not through Arrow's stream: it would carry the index as a column, and turn NaN into null
        index = [name for name in data.index.names if name is not None]
        hint = f" The index has {', '.join(map(repr, index))}: call reset_index() first." if index else ""
        return _of_columns(list(data.columns), lambda name: _of_pandas(data[name]), hint)
    if dataset is not None and isinstance(data, dataset.Dataset):
        return _of_schema(data.schema, lambda names: _readable(lambda: data.to_table(columns=names)))
    if isinstance(data, Mapping) or (isinstance(data, np.ndarray) and data.dtype.names):
        return _of_columns(list(data if isinstance(data, Mapping) else data.dtype.names), data.__getitem__)
    if polars is not None and isinstance(data, polars.LazyFrame):
        schema = polars.DataFrame(schema=data.collect_schema()).to_arrow().schema
        return _of_schema(schema, lambda names: _readable(lambda: data.select(names).collect().to_arrow()))
    reader = _reader(data)

    def table(names: list[str]) -> pa.Table:
        # batch by batch, so that the other columns of a stream are freed early
        batches = _readable(lambda: [batch.select(names) for batch in reader])
        return pa.Table.from_batches(batches, pa.schema([reader.schema.field(name) for name in names]))

    return _of_schema(reader.schema, table)


def _of_schema(schema: pa.Schema, convert: Callable[[list[str]], pa.Table]) -> TableInMemory:
    return TableInMemory(
        given_names=schema.names, find_type=lambda name: schema.field(name).type, convert=convert
    )


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


def _of_columns(names: list[Any], get: Callable[[str], Any], hint: str = "") -> TableInMemory:
    def table(wanted: list[str]) -> pa.Table:
        arrays = [_column(name, get(name)) for name in wanted]
        for name, array in zip(wanted, arrays, strict=True):
            if len(array) != len(arrays[0]):
                raise InputError(
                    f'column "{name}" has {count_of(len(array), "value")} and column "{wanted[0]}" '
                    f"{len(arrays[0]):,}; wanted one length"
                )
        return pa.table(arrays, names=wanted)

    return TableInMemory(
        given_names=names,
        find_type=lambda name: _column(name, get(name)).type,
        convert=table,
        hint=hint,
    )


def _of_pandas(series: Any) -> Any:
    is_number = isinstance(series.dtype, np.dtype) and series.dtype.kind in "buif"
    return series.to_numpy() if is_number else series


def _column(name: str, values: Any) -> pa.ChunkedArray:
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
