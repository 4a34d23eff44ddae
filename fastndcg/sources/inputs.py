"""What a caller passes in place of rankings, opened: paths, tables, and batches of another program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from fastndcg.common.arrow_types import decode, is_list, plain
from fastndcg.errors import ColumnError, InputError, InputTypeError
from fastndcg.sources.dataset import ANEW, ROWS_PER_TABLE, Dataset, TextTypes, in_tables
from fastndcg.sources.formats import find_tables
from fastndcg.sources.open_file import Format
from fastndcg.tables.frames import Frame, frame_of, is_table, type_name
from fastndcg.tables.roles import check_column, normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.prefetch import Reader
    from fastndcg.sources.streams import TableStream
    from fastndcg.tables.roles import Columns, Dialect, Roles
    from fastndcg.typing import Path as PathLike

_TEXT, _LIST = 20, 200  # assumed bytes of a value, before any is read


@dataclass(frozen=True, kw_only=True)
class GivenTable(Dataset):
    """A table in memory or of another program, whose columns are not converted yet."""

    format: Format = Format("a table", options=("columns",))  # noqa: RUF009 - a tuple
    frame: Frame
    can_be_read_again: bool = True

    @property
    def is_stream(self) -> bool:  # type: ignore[override]
        return self.frame.is_lazy

    @property
    def is_small(self) -> bool:  # type: ignore[override]
        return not self.is_stream

    @property
    def names(self) -> list[str]:
        return list(self.frame.names)

    def type_of(self, name: str) -> pa.DataType:
        return self.frame.type_of(name)

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        if self.is_stream:  # tables in memory are converted first, which decides their types
            types = {name: plain(pa.chunked_array([], self.type_of(name))).type for name in columns.names}
        return replace(self, columns=columns, types=dict(types or {}))

    def explain(self, error: ColumnError, role: str | None = None) -> ColumnError:  # noqa: ARG002
        return ColumnError(f"{error}{self.frame.hint}")

    def look_at_ranks(self, *_: object) -> None:
        """Do nothing: `table` compares ranks, because rows may be readable only once."""

    def table(self, names: Sequence[str], *_: object, **__: object) -> pa.Table:
        columns = self.columns
        return self.frame.table(names, columns.id_columns, columns.score, columns.compared_ranks)

    def size(self) -> tuple[int, float]:
        return 0, float(sum(map(_width, self.types.values())))

    def readers(self, names: Sequence[str], most: int) -> Iterator[Reader]:
        tables = (
            pa.table([self._plain(table, name) for name in names], names=list(names))
            for table in self.frame.open(list(names))
            if len(table)  # empty tables may have columns without a type
        )
        yield in_tables(tables, ROWS_PER_TABLE, most * sum(_width(self.types[name]) for name in names))

    def _plain(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """Return a column of a part of the table, in the type of all parts."""
        column, expected = plain(table[name]), self.types[name]
        if pa.types.is_dictionary(expected) and column.type == expected.value_type:  # a value was null
            column = column.dictionary_encode().cast(expected)
        if column.type != expected:
            raise InputTypeError(
                f'column "{name}" is {expected} in the first rows and {column.type} in later ones; '
                "expected one type. Cast it"
            )
        return column


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.byte_width)
    except ValueError:
        return _LIST if is_list(kind) else _TEXT


def stream_of(data: Any) -> GivenTable:
    """Wrap a table to read it batch by batch: a table of any library, a reader, an iterator of tables, or a
    function that opens one of these anew.

    Raises `InputTypeError` for anything else, and `InputError` for an iterator without tables.
    """
    is_function = callable(data) and not is_table(data)
    opened: list[Any] = []  # the last one

    def make() -> Frame:
        source = data() if is_function else data
        if isinstance(source, Iterator) and any(source is each for each in opened):
            raise InputError(
                f"data is a {type_name(source)}, which can be read only once, and was already read; {ANEW}"
            )
        opened[:] = [source]
        return _of_parts(iter(source)) if _is_parts(source) else frame_of(source)

    first = make()
    waiting = [first]

    def tables(names: list[str]) -> Iterable[pa.Table]:
        return _open(waiting.pop() if waiting else make(), names)

    is_once = not is_function and isinstance(data, Iterator)
    # the iterating thread decodes: objects of Python may belong to it, such as a connection of SQLite
    decoders = 0 if _is_parts(opened[0]) else 1
    return GivenTable(
        frame=replace(first, open=tables, is_lazy=True), can_be_read_again=not is_once, decoders=decoders
    )


def _is_parts(data: Any) -> bool:
    return isinstance(data, Iterator | list | tuple) and not is_table(data)


def _of_parts(parts: Iterator[Any]) -> Frame:
    """Wrap consecutive tables of any library, with the columns of the first one."""
    start = next(parts, None)
    if start is None:
        raise InputError(
            "data has no table, so it has no columns: it is empty, or an iterator that was read before; "
            "give a new one, with a table without rows at least"
        )
    first = frame_of(start)

    def tables(names: list[str]) -> Iterator[pa.Table]:
        yield from first.open(names)
        for part in parts:
            yield from _open(frame_of(part), names)

    return replace(first, open=tables)


def _open(later: Frame, names: list[str]) -> Iterable[pa.Table]:
    if missing := [name for name in names if name not in later.names]:
        raise InputError(f'a later table of data has no column "{missing[0]}", which the first has')
    return later.open(names)


IN_MEMORY = 1 << 30  # bytes; larger files are streamed


def open_tables(
    paths: list[PathLike], threads: int | None, *, named: bool = False, dialect: Dialect | None = None
) -> Dataset:
    """Open files of one format: list them, and read the footer, header or schema of each once.

    Raises as `find_tables` and `Found.open` do.
    """
    return find_tables(paths, dialect=dialect).open(threads, named=named)


def open_any(
    data: Any, threads: int | None = None, *, named: bool = False, dialect: Dialect | None = None
) -> Dataset:
    """Open one or several paths, or a table. Raises as `open_tables` and `frame_of` do."""
    if not is_path(data):
        columns = None if dialect is None else dialect.columns
        return GivenTable(frame=frame_of(data, columns).named("data", columns))
    paths = list(data) if isinstance(data, list | tuple) else [data]
    return open_tables(paths, threads, named=named, dialect=dialect)


def rankings_or_stream(
    data: Any, roles: Roles, *, threads: int | None = None, with_doc_id: bool = False
) -> Rankings | TableStream:
    """Read a table or files; returns a stream of files with more than `IN_MEMORY` bytes, and of lazy tables,
    whose size is unknown. A stream is returned as it is.
    """
    from fastndcg.sources.streams import TableStream

    if isinstance(data, TableStream):
        return data
    if isinstance(data, Mapping):
        _refuse_several(data)
    chosen = open_any(data, threads, dialect=roles.dialect()).choose(roles, with_doc_id=with_doc_id)
    return scan_if_large(chosen, threads, IN_MEMORY) or chosen.read()


def _refuse_several(data: Mapping[Any, Any]) -> None:
    """Raise `InputTypeError` for a dict of systems, and for judgments without a run."""
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores

    kinds = {type(each).__name__ for each in data.values() if isinstance(each, Rankings | Scores)}
    if kinds:
        raise InputTypeError(
            f"rankings is a dict of {' and '.join(sorted(kinds))}; evaluate takes one system. Compare them, "
            "as in fastndcg.compare(systems, measures), or evaluate each, as in "
            "{name: fastndcg.evaluate(each, measures) for name, each in systems.items()}"
        )
    if data and all(isinstance(each, Mapping) for each in data.values()):
        raise InputTypeError(
            "rankings is a dict of dicts, as judgments or a run are; give both, as in "
            "evaluate(qrels, run, measures)"
        )


def scan_if_large(
    chosen: Dataset, threads: int | None, in_memory: int, memory: int | None = None
) -> TableStream | None:
    """Return a stream of files of more than `in_memory` bytes, in parts of `memory`; None for smaller ones.

    Rows of a lazy table that are not grouped are spilled to disk only if they take more than that.
    """
    if chosen.is_small and memory is None:
        return None
    from fastndcg.sources.streams import TableStream, threads_ahead

    stream = TableStream(chosen, threads=threads_ahead(threads), memory=memory, in_memory=in_memory)
    return stream if stream.nbytes > in_memory or chosen.is_stream else None


def read_columns(
    data: Any, find: Callable[[list[str]], dict[str, str]], numbers: Collection[str]
) -> dict[str, Any]:
    """Read columns of a table or of files as plain values, by role. `find` maps roles to column names.

    In text files, the roles in `numbers` are read as numbers, ids as they are written, and the types of
    others are inferred.
    """
    dataset = open_any(data, named=True)
    roles = find(dataset.names)
    texts = [name for role, name in roles.items() if role in ("query", "doc_id")]
    text = TextTypes([name for role, name in roles.items() if role in numbers], texts)
    table = replace(dataset, text=text).table([*dict.fromkeys(roles.values())])
    return {role: decode(plain(table[name])) for role, name in roles.items()}


def usual_columns(
    names: list[str], usual: Mapping[str, Collection[str]], named: Mapping[str, str | None], *needed: str
) -> dict[str, str]:
    """Return the column of each role: the one that the caller names, or else the first with a usual name.

    Roles without a column are left out unless they are `needed`. Raises as `find_columns` does.
    """
    columns = {}
    for role, explicit in named.items():
        known = next((name for name in names if normalised(str(name)) in usual[role]), None)
        if explicit is not None or known is not None or role in needed:
            columns[role] = check_column(names, role, explicit if explicit is not None else known or role)
    return columns


def is_path(data: Any) -> bool:
    """Return whether `data` is a path or a list of paths."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)
