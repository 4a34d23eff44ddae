"""Convert the named columns of tables of any library to Arrow, at once or batch by batch."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import column_of, is_list, is_number
from fastndcg.errors import ColumnError, InputError, InputTypeError, count_of, warn
from fastndcg.tables.checks import warn_if_ranks_differ
from fastndcg.tables.roles import Columns, Roles, find_columns, in_words
from fastndcg.tables.values import first_line

# advice for arrays and lists, which have neither query nor document ids
OF_ARRAYS = (
    "For grades and scores give ndcg(relevance, scores), Rankings.from_dense, from_lists or from_query_ids; "
    "for ids of documents evaluate({query: relevant ids}, {query: retrieved ids}, measures)"
)
PLAIN = {tuple, list, np.ndarray}  # types of rows without field names
_ROWS = 1 << 18  # per batch of DuckDB
COUNTING = re.compile(r"(column_?|f)?\d+")  # names that pandas, Polars, DuckDB and pyarrow generate
_READ = WeakSet[Any]()  # readers that were consumed; they look empty


@dataclass(frozen=True)
class Frame:
    """A table of any library, whose columns are converted when they are needed."""

    names: Sequence[str]
    type_of: Callable[[str], pa.DataType]
    open: Callable[[list[str]], Iterable[pa.Table]]  # the named columns, in one or more tables
    hint: str = ""  # advice for a missing column
    is_lazy: bool = False  # its rows are computed each time they are read

    def table(
        self, names: Sequence[str], ids: Sequence[str] = (), score: str = "", ranks: str | None = None
    ) -> pa.Table:
        """Return the named columns. Warns if the column `ranks` contradicts the scores."""
        are_numbers = False
        if ranks is not None and not self.is_lazy:
            with suppress(InputTypeError):  # an unused column may hold anything
                are_numbers = is_number(self.type_of(ranks))
        if not are_numbers:
            return pa.concat_tables(self.open(list(names)))
        table = pa.concat_tables(self.open([*names, str(ranks)]))
        warn_if_ranks_differ(table, ids, score, str(ranks))
        return table

    def named(self, label: str, columns: Sequence[str] | None) -> Frame:
        """Rename the columns of a table whose own names only number them. Raises `ColumnError`."""
        if columns is None or list(columns) == list(self.names):
            return self
        if len(columns) != len(self.names) or not all(map(COUNTING.fullmatch, self.names)):
            raise ColumnError(
                f"{label} has {count_of(len(self.names), 'column')}, {in_words(self.names)}, and columns= "
                f"names {len(columns)}; expected a name for each column of a table without names. In one "
                "with names, choose columns by query=, relevance= and so on"
            )
        own_names = dict(zip(columns, self.names, strict=True))

        def opened(names: list[str]) -> Iterable[pa.Table]:
            return (table.rename_columns(names) for table in self.open([own_names[name] for name in names]))

        return replace(
            self, names=list(columns), type_of=lambda name: self.type_of(own_names[name]), open=opened
        )

    def choose(self, roles: Roles) -> Columns:
        """Find the columns for these roles. Raises as `find_columns` does."""
        try:
            return find_columns(self.names, roles, is_list=lambda name: is_list(self.type_of(name)))
        except ColumnError as error:
            raise ColumnError(f"{error}{self.hint}") from None


def columns_of_rows(rows: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Transpose rows to columns with these names."""
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, columns, strict=True))


def is_table(data: Any) -> bool:
    """Return whether an iterable is a table rather than a list of rows."""
    pandas = sys.modules.get("pandas")
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (pandas is not None and isinstance(data, pandas.DataFrame))
        or (isinstance(data, np.ndarray) and data.dtype.names is not None)
    )


def frame_of(data: Any, columns: Sequence[str] | None = None) -> Frame:
    """Wrap a table of any library, records, or rows with the field names `columns`. NaN of pandas stays NaN,
    which pyarrow would convert to null.

    Raises `InputTypeError` for anything else.

    >>> frame_of({"label": [[1, 0], [2]], "score": [[0.5, 0.1], [0.9]]}).names
    ['label', 'score']
    """
    if isinstance(data, list | tuple) and data:
        if all(isinstance(row, Mapping) for row in data):
            data = {
                name: [row.get(name) for row in data] for name in dict.fromkeys(chain.from_iterable(data))
            }
        elif columns is not None and all(type(row) in PLAIN and len(row) == len(columns) for row in data):
            data = columns_of_rows(data, columns)
    elif columns is not None and isinstance(data, np.ndarray) and data.shape[1:] == (len(columns),):
        data = dict(zip(columns, data.T, strict=True))
    pandas, dataset, polars, duckdb = map(sys.modules.get, ("pandas", "pyarrow.dataset", "polars", "duckdb"))
    if isinstance(data, pa.Table):
        return _of_schema(data.schema, lambda names: [data.select(names)])
    if pandas is not None and isinstance(data, pandas.DataFrame):
        # Arrow's stream of a frame would include the index as a column, and turn NaN into null
        index = [name for name in data.index.names if name is not None]
        hint = f" The index has {', '.join(map(repr, index))}: call reset_index() first." if index else ""
        named = {str(name): name for name in data.columns}  # numbers, where a file had no header
        return _of_columns(list(map(str, data.columns)), lambda name: _of_pandas(data[named[name]]), hint)
    if isinstance(data, Mapping) or (isinstance(data, np.ndarray) and data.dtype.names):
        return _of_columns(list(data if isinstance(data, Mapping) else data.dtype.names), data.__getitem__)
    if dataset is not None and isinstance(data, dataset.Dataset):
        return _of_query(data.schema, lambda names: data.scanner(names).to_reader())
    if polars is not None and isinstance(data, polars.DataFrame | polars.LazyFrame):
        is_lazy = isinstance(data, polars.LazyFrame)
        # older versions of Polars have no batches
        collect = "collect_batches" if hasattr(data, "collect_batches") else "collect"
        types = _readable(data.collect_schema)

        def collected(names: list[str]) -> Iterable[pa.Table]:
            chosen = data.select(names)
            return _tables(_reader(_readable(getattr(chosen, collect)) if is_lazy else chosen), names)

        def type_of(name: str) -> pa.DataType:  # per column, since Arrow lacks some types
            return _reader(polars.DataFrame(schema={name: types[name]})).schema.field(0).type

        return Frame(list(types), type_of, collected, is_lazy=is_lazy)
    if duckdb is not None and isinstance(data, duckdb.DuckDBPyRelation):

        def query(names: list[str]) -> Any:
            columns = data.project(", ".join('"{}"'.format(name.replace('"', '""')) for name in names))
            return (getattr(columns, "to_arrow_reader", None) or columns.fetch_record_batch)(_ROWS)

        return _of_query(_readable(lambda: _reader(data.limit(0))).schema, query)
    reader = _reader(data)
    if reader in _READ:
        raise InputError(
            f"data is a {type_name(data)}, which can be read only once, and was already read; make a new "
            "one, or give a table"
        )
    return _of_schema(reader.schema, partial(_tables, reader, is_given=reader is data))


def _of_schema(schema: pa.Schema, tables: Callable[[list[str]], Iterable[pa.Table]]) -> Frame:
    return Frame(schema.names, lambda name: schema.field(name).type, tables)


def _of_query(schema: pa.Schema, ask: Callable[[list[str]], Any]) -> Frame:
    """Wrap a query that another program computes each time columns are read."""
    return replace(
        _of_schema(schema, lambda names: _tables(_reader(_readable(lambda: ask(names))), names)),
        is_lazy=True,
    )


def _tables(reader: pa.RecordBatchReader, names: list[str], *, is_given: bool = False) -> Iterator[pa.Table]:
    """Yield the named columns of each batch, freeing others early; an empty table if there are no batches."""
    _READ.add(reader)
    with reader:
        batch = _readable(lambda: next(reader, None))
        if batch is None:
            if is_given:
                warn("data is a RecordBatchReader without rows: it is empty, or was read before")
            yield reader.schema.empty_table().select(names)
        while batch is not None:
            yield pa.Table.from_batches([batch]).select(names)
            batch = None  # free it before waiting for the next one
            batch = _readable(lambda: next(reader, None))


def _reader(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except (TypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        step = f". {OF_ARRAYS}" if hasattr(data, "__array__") else ""
        raise InputTypeError(
            f"data is a {type_name(data)} that is not a table: {first_line(error)}{step}"
        ) from None
    step = "Name its path to read_parquet" if isinstance(data, str) else "Convert it to one of them"
    if isinstance(data, list | tuple) or hasattr(data, "shape"):
        step = OF_ARRAYS
        if isinstance(data, list | tuple) and data and isinstance(data[0], tuple):
            step = 'Name the values of each tuple, as in columns=["query_id", "relevance", "score"]'
    if callable(data) or isinstance(data, Iterator):
        step = "Open it with scan_arrow if it gives tables"
    if callable(getattr(data, "collect", None)):
        step = "Call .collect() first"
    elif callable(getattr(data, "compute", None)):
        step = "Call .compute() first"
    raise InputTypeError(
        f"data is a {type_name(data)}; expected a table: anything with __arrow_c_stream__ (pyarrow, Polars, "
        f"DuckDB), a pandas DataFrame, or a mapping of column names to arrays. {step}."
    )


def _of_columns(names: list[Any], get: Callable[[str], Any], hint: str = "") -> Frame:
    def table(wanted: list[str]) -> pa.Table:
        arrays = [_column(name, get(name)) for name in wanted]
        for name, array in zip(wanted, arrays, strict=True):
            if len(array) != len(arrays[0]):
                raise InputError(
                    f'column "{name}" has {count_of(len(array), "value")} and column "{wanted[0]}" '
                    f"{len(arrays[0]):,}; expected one length"
                )
        return pa.table(arrays, names=wanted)

    return Frame(names, lambda name: _column(name, get(name)).type, lambda wanted: [table(wanted)], hint)


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
        array = _array(values)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InputTypeError(
            f'column "{name}" is not an array that Arrow can hold: {first_line(error)}. '
            "Give all its values one type"
        ) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _array(values: Any) -> pa.Array | pa.ChunkedArray:
    """Convert values to an array; lists of pairs of mixed types, which Arrow lacks, to lists of structs."""
    try:
        if not isinstance(values, pa.Array) and hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        return pa.array(values)
    except (TypeError, pa.ArrowException):
        are_pairs = all(
            row is None
            or (isinstance(row, list | tuple) and all(isinstance(each, tuple | list) for each in row))
            for row in values
        )
        if not are_pairs or any(len(each) != 2 for row in values for each in row or ()):
            raise
        rows = (None if row is None else [{"_1": one, "_2": two} for one, two in row] for row in values)
        return pa.array(rows)


def _readable(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, *_errors_of_libraries()) as error:
        raise InputError(f"data could not be read: {first_line(error)}. Check its source") from None


def _errors_of_libraries() -> list[type[Exception]]:
    """Return the base classes of errors that DuckDB and the planner of Polars raise."""
    modules = sys.modules.get("duckdb"), sys.modules.get("polars.exceptions")
    errors = (
        getattr(module, name, None) for module, name in zip(modules, ("Error", "PolarsError"), strict=True)
    )
    return [each for each in errors if each is not None]


def type_name(data: object) -> str:
    kind = type(data)
    return (
        kind.__name__
        if kind.__module__ == "builtins"
        else f"{kind.__module__.partition('.')[0]} {kind.__name__}"
    )
