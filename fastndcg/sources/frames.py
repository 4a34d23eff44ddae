"""Tables in memory, of any library, to Arrow tables of the named columns, and to `Rankings`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from fastndcg.errors import ColumnError, InputError, InputTypeError, count_of
from fastndcg.sources.opened import Format, Opened
from fastndcg.sources.values import first_line

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.columns import Columns, Roles

MEMORY = Format("a table in memory")


@dataclass(frozen=True, kw_only=True)
class TableInMemory(Opened):
    """A table of which no column is converted yet."""

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

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        return {name: self.type_of(name) for name in names}

    def with_columns(self, columns: Columns, types: object = None) -> Self:  # noqa: ARG002
        return replace(self, columns=columns)  # types are those of the converted columns

    def explain(self, error: ColumnError) -> ColumnError:
        return error.within("", self.hint)

    def size(self) -> tuple[int, float]:
        table = self.table(self.columns.names)
        return len(table), table.nbytes / max(len(table), 1)

    def readers_of_files(self, names: Sequence[str], most: int) -> Iterator[Iterator[Reader]]:  # noqa: ARG002
        yield iter([(self.table(names) for _ in range(1))])

    def table(self, names: Sequence[str], *_: object, **__: object) -> pa.Table:
        return self.convert(list(names))


def rankings_from_arrow(data: Any, roles: Roles, *, with_doc_id: bool = False) -> Rankings:
    """Rankings from a table of any kind; only the columns that are needed are touched.

    Parameters
    ----------
    data : pyarrow Table, RecordBatch, RecordBatchReader or Dataset; whatever has `__arrow_c_stream__` or
        `__arrow_c_array__` (Polars, DuckDB, Spark 4); pandas DataFrame; mapping of names to arrays; NumPy
        structured array Long form: a row for each document, the rows of a query in any place. List-column
        form: a row for each query, in whose relevance and score (and doc_id, is_judged) columns stand lists
        of equal lengths.
    roles : Roles
        As the keywords of `read_parquet`.
    with_doc_id : bool
        True reads document ids by a usual name where they are not named.

    Returns
    -------
    Rankings
        Views of the Arrow buffers where a column is one chunk without nulls and its rows stand together by
        query; offsets too, where they are int64 (`large_list`) and begin at 0. Decimals become int64, or
        float64 if they have a fraction.

    Raises
    ------
    ColumnError
        A column that is missing, or a role that several could play.
    InputError
        Nulls in a needed column, lists of a query whose lengths differ, a kept value that differs within a
        query, decimals that float64 cannot tell apart, and all that `Rankings.from_offsets` refuses.
    InputTypeError
        Data that is not a table, a column of a type that has no meaning in its role.

    Examples
    --------
    >>> from fastndcg.sources.columns import Roles
    >>> table = pa.table({"qid": ["a", "b", "a"], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> table = table.append_column("lang", [["en", "de", "en"]])
    >>> rankings = rankings_from_arrow(table, Roles(keep="lang"))
    >>> rankings.offsets, rankings.relevance, rankings.queries["lang"].to_pylist()
    (array([0, 2, 3]), array([1, 2, 0]), ['en', 'de'])
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
    pandas = sys.modules.get("pandas")
    dataset = sys.modules.get("pyarrow.dataset")
    if isinstance(data, pa.Table):
        return _source(data.column_names, lambda name: data.schema.field(name).type, data.select)
    if pandas is not None and isinstance(data, pandas.DataFrame):
        # not through Arrow's stream: it would carry the index as a column, and turn NaN into null
        index = [name for name in data.index.names if name is not None]
        hint = f" The index has {', '.join(map(repr, index))}: call reset_index() first." if index else ""
        return _of_columns(list(data.columns), lambda name: _from_pandas(name, data[name]), hint)
    if dataset is not None and isinstance(data, dataset.Dataset):
        return _source(
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
        return _source(
            schema.names,
            lambda name: schema.field(name).type,
            lambda names: _readable(lambda: data.select(names).collect().to_arrow()),
        )
    return _of_reader(_reader(data))


def _source(
    names: Sequence[str],
    find_type: Callable[[str], pa.DataType],
    convert: Callable[[list[str]], pa.Table],
    hint: str = "",
) -> TableInMemory:
    return TableInMemory(
        format=MEMORY,
        paths=[],
        threads=1,
        schema=pa.schema([]),  # types are found column by column
        given_names=names,
        find_type=find_type,
        convert=convert,
        hint=hint,
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


def _of_reader(reader: pa.RecordBatchReader) -> TableInMemory:
    schema = reader.schema

    def table(names: list[str]) -> pa.Table:
        # batch by batch, so that the other columns of a stream are freed early
        batches = _readable(lambda: [batch.select(names) for batch in reader])
        return pa.Table.from_batches(batches, pa.schema([schema.field(name) for name in names]))

    return _source(schema.names, lambda name: schema.field(name).type, table)


def _of_columns(names: list[Any], column: Callable[[str], pa.ChunkedArray], hint: str = "") -> TableInMemory:
    def table(wanted: list[str]) -> pa.Table:
        arrays = [column(name) for name in wanted]
        for name, array in zip(wanted, arrays, strict=True):
            if len(array) != len(arrays[0]):
                raise InputError(
                    f'column "{name}" has {count_of(len(array), "value")} and column "{wanted[0]}" '
                    f"{len(arrays[0]):,}; wanted one length"
                )
        return pa.table(arrays, names=wanted)

    return _source(names, lambda name: column(name).type, table, hint)


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
