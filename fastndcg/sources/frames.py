"""Tables of any library, in memory or made batch by batch, to Arrow tables of the named columns, and to
`Rankings`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import column_of, is_list, plain
from fastndcg.errors import ColumnError, InputError, InputTypeError, count_of
from fastndcg.sources.dataset import ANEW, Opened, in_tables
from fastndcg.sources.open_file import Format
from fastndcg.tables.values import first_line

if TYPE_CHECKING:
    from fastndcg.sources.prefetch import Reader
    from fastndcg.tables.roles import Columns


_ROWS = 1 << 18  # of a table of a stream: small batches are put together
_TEXT, _LIST = 20, 200  # bytes that a value is thought to take until some are seen


@dataclass(frozen=True, kw_only=True)
class GivenTable(Opened):
    """A table that a caller gives, of which no column is converted yet."""

    format: Format = Format("a table")  # noqa: RUF009 - a tuple
    given_names: Sequence[str]
    find_type: Callable[[str], pa.DataType]
    open: Callable[[list[str]], Iterable[pa.Table]]  # the named columns, in one table or more
    hint: str = ""  # the end of the message about a missing column
    is_stream: bool = False
    can_be_read_again: bool = True

    @property
    def is_small(self) -> bool:  # type: ignore[override]
        return not self.is_stream

    @property
    def names(self) -> list[str]:
        return list(self.given_names)

    def type_of(self, name: str) -> pa.DataType:
        return self.find_type(name)

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        if self.is_stream:  # as they are read; types of what is in memory are those of converted columns
            types = {name: plain(pa.chunked_array([], self.type_of(name))).type for name in columns.names}
        return replace(self, columns=columns, types=dict(types or {}))

    def explain(self, error: ColumnError) -> ColumnError:
        return ColumnError(f"{error}{self.hint}")

    def table(self, names: Sequence[str], *_: object, **__: object) -> pa.Table:
        return pa.concat_tables(self.open(list(names)))

    def size(self) -> tuple[int, float]:
        return 0, float(sum(map(_width, self.types.values())))

    def readers_of_files(self, names: Sequence[str], most: int) -> Iterator[Iterator[Reader]]:
        tables = (
            pa.table([self._plain(table, name) for name in names], names=list(names))
            for table in self.open(list(names))
            if len(table)  # others may have columns of no type
        )
        yield iter([in_tables(tables, _ROWS, most * sum(_width(self.types[name]) for name in names))])

    def _plain(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """A column of a part of the table, in the type that all parts have."""
        column, wanted = plain(table[name]), self.types[name]
        if pa.types.is_dictionary(wanted) and column.type == wanted.value_type:  # of which a value was null
            column = column.dictionary_encode().cast(wanted)
        if column.type != wanted:
            raise InputTypeError(
                f'column "{name}" is {wanted} in the first rows and {column.type} in later ones; '
                "wanted one type. Cast it"
            )
        return column


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.byte_width)
    except ValueError:
        return _LIST if is_list(kind) else _TEXT


def is_table(data: Any) -> bool:
    """Whether an iterable is a table, not a list of rows."""
    pandas = sys.modules.get("pandas")
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (pandas is not None and isinstance(data, pandas.DataFrame))
        or (isinstance(data, np.ndarray) and data.dtype.names is not None)
    )


def source_of(data: Any) -> GivenTable:
    """A table of any library; in one of pandas NaN stays NaN, where pyarrow would take it for null.

    Raises `InputTypeError` for what is none.

    >>> from fastndcg.tables.roles import Roles
    >>> source_of({"label": [[1, 0], [2]], "score": [[0.5, 0.1], [0.9]]}).choose(Roles()).read().offsets
    array([0, 2, 3])
    """
    pandas, dataset, polars, duckdb = map(sys.modules.get, ("pandas", "pyarrow.dataset", "polars", "duckdb"))
    if isinstance(data, pa.Table):
        return _of_schema(data.schema, lambda names: [data.select(names)])
    if pandas is not None and isinstance(data, pandas.DataFrame):
        # not through Arrow's stream: it would carry the index as a column, and turn NaN into null
        index = [name for name in data.index.names if name is not None]
        hint = f" The index has {', '.join(map(repr, index))}: call reset_index() first." if index else ""
        return _of_columns(list(data.columns), lambda name: _of_pandas(data[name]), hint)
    if isinstance(data, Mapping) or (isinstance(data, np.ndarray) and data.dtype.names):
        return _of_columns(list(data if isinstance(data, Mapping) else data.dtype.names), data.__getitem__)
    if dataset is not None and isinstance(data, dataset.Dataset):
        return _of_query(data.schema, lambda names: data.scanner(names).to_reader())
    if polars is not None and isinstance(data, polars.LazyFrame):
        schema = polars.DataFrame(schema=data.collect_schema()).to_arrow().schema
        # batches are new in Polars
        collect = "collect_batches" if hasattr(data, "collect_batches") else "collect"
        return _of_query(schema, lambda names: getattr(data.select(names), collect)())
    if duckdb is not None and isinstance(data, duckdb.DuckDBPyRelation):

        def query(names: list[str]) -> Any:
            columns = data.project(", ".join('"{}"'.format(name.replace('"', '""')) for name in names))
            return (getattr(columns, "to_arrow_reader", None) or columns.fetch_record_batch)(_ROWS)

        return _of_query(_reader(data.limit(0)).schema, query)
    reader = _reader(data)
    return _of_schema(reader.schema, partial(_tables, reader))


def stream_of(data: Any) -> GivenTable:
    """A table that is read batch by batch: one of any library, a reader, an iterator of tables, or a function
    that opens any of these anew.

    Raises `InputTypeError` for what is none, and `InputError` for an iterator that has none.
    """
    is_function = callable(data) and not is_table(data)
    opened: list[Any] = []  # the last one

    def make() -> GivenTable:
        given = data() if is_function else data
        if isinstance(given, Iterator) and any(given is each for each in opened):
            raise InputError(
                f"data is a {_type_name(given)}, which can be read once, and its rows have been read; {ANEW}"
            )
        opened[:] = [given]
        is_parts = isinstance(given, Iterator | list | tuple) and not is_table(given)
        return _of_parts(iter(given)) if is_parts else source_of(given)

    first = make()
    waiting = [first]

    def tables(names: list[str]) -> Iterable[pa.Table]:
        source = waiting.pop() if waiting else make()
        if missing := [name for name in names if name not in source.names]:
            raise InputError(
                f'data has no column "{missing[0]}" any more, which it had when it was opened first'
            )
        return source.open(names)

    is_once = not is_function and isinstance(data, Iterator)
    return replace(first, open=tables, is_stream=True, can_be_read_again=not is_once)


def _of_parts(parts: Iterator[Any]) -> GivenTable:
    """Tables one after the other, of any library, with the columns of the first."""
    start = next(parts, None)
    if start is None:
        raise InputError("data has no table, so it has no columns; give one without rows at least")
    first = source_of(start)

    def tables(names: list[str]) -> Iterator[pa.Table]:
        yield from first.open(names)
        for part in parts:
            source = source_of(part)
            if missing := [name for name in names if name not in source.names]:
                raise InputError(f'a later table of data has no column "{missing[0]}", which the first has')
            yield from source.open(names)

    # by the thread that iterates: what Python makes may belong to it, as a connection of SQLite does
    return replace(first, open=tables, decoders=0)


def _of_schema(schema: pa.Schema, tables: Callable[[list[str]], Iterable[pa.Table]]) -> GivenTable:
    return GivenTable(given_names=schema.names, find_type=lambda name: schema.field(name).type, open=tables)


def _of_query(schema: pa.Schema, ask: Callable[[list[str]], Any]) -> GivenTable:
    """What another program computes, each time it is asked for columns."""
    return replace(
        _of_schema(schema, lambda names: _tables(_reader(_readable(lambda: ask(names))), names)),
        is_stream=True,
    )


def _tables(reader: pa.RecordBatchReader, names: list[str]) -> Iterator[pa.Table]:
    """The named columns batch by batch, so that others are freed early; without batches one without rows."""
    with reader:
        batch = _readable(lambda: next(reader, None))
        if batch is None:
            yield reader.schema.empty_table().select(names)
        while batch is not None:
            yield pa.Table.from_batches([batch]).select(names)
            batch = None  # frees it before the next is awaited
            batch = _readable(lambda: next(reader, None))


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
    if callable(data) or isinstance(data, Iterator):
        step = "Open it with scan_arrow if it gives tables"
    if callable(getattr(data, "collect", None)):
        step = "Call .collect() first"
    elif callable(getattr(data, "compute", None)):
        step = "Call .compute() first"
    raise InputTypeError(
        f"data is a {_type_name(data)}; wanted a table: anything with __arrow_c_stream__ (pyarrow, Polars, "
        f"DuckDB), a pandas DataFrame, or a mapping of column names to arrays. {step}."
    )


def _of_columns(names: list[Any], get: Callable[[str], Any], hint: str = "") -> GivenTable:
    def table(wanted: list[str]) -> pa.Table:
        arrays = [_column(name, get(name)) for name in wanted]
        for name, array in zip(wanted, arrays, strict=True):
            if len(array) != len(arrays[0]):
                raise InputError(
                    f'column "{name}" has {count_of(len(array), "value")} and column "{wanted[0]}" '
                    f"{len(arrays[0]):,}; wanted one length"
                )
        return pa.table(arrays, names=wanted)

    return GivenTable(
        given_names=names,
        find_type=lambda name: _column(name, get(name)).type,
        open=lambda wanted: [table(wanted)],
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
        if type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "iuf":
            return pa.chunked_array([column_of(values)])
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
