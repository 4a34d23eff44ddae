"""Tables in memory, and batches that another program makes, as what can be opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from fastndcg.common.arrow_types import is_list, plain
from fastndcg.errors import ColumnError, InputError, InputTypeError
from fastndcg.sources.dataset import ANEW, ROWS, Dataset, in_tables
from fastndcg.sources.open_file import Format
from fastndcg.tables.frames import Frame, frame_of, is_table, type_name

if TYPE_CHECKING:
    from fastndcg.sources.prefetch import Reader
    from fastndcg.tables.roles import Columns

_TEXT, _LIST = 20, 200  # bytes that a value is thought to take until some are seen


@dataclass(frozen=True, kw_only=True)
class GivenTable(Dataset):
    """A table that a caller gives, of which no column is converted yet."""

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
        if self.is_stream:  # as they are read; types of what is in memory are those of converted columns
            types = {name: plain(pa.chunked_array([], self.type_of(name))).type for name in columns.names}
        return replace(self, columns=columns, types=dict(types or {}))

    def explain(self, error: ColumnError, role: str | None = None) -> ColumnError:  # noqa: ARG002
        return ColumnError(f"{error}{self.frame.hint}")

    def look_at_ranks(self, *_: object) -> None:
        """Nothing: `table` does it, as rows may be there to read once."""

    def table(self, names: Sequence[str], *_: object, **__: object) -> pa.Table:
        columns = self.columns
        return self.frame.table(names, columns.id_columns, columns.score, columns.compared_ranks)

    def size(self) -> tuple[int, float]:
        return 0, float(sum(map(_width, self.types.values())))

    def readers(self, names: Sequence[str], most: int) -> Iterator[Reader]:
        tables = (
            pa.table([self._plain(table, name) for name in names], names=list(names))
            for table in self.frame.open(list(names))
            if len(table)  # others may have columns of no type
        )
        yield in_tables(tables, ROWS, most * sum(_width(self.types[name]) for name in names))

    def _plain(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """A column of a part of the table, in the type that all parts have."""
        column, wanted = plain(table[name]), self.types[name]
        if pa.types.is_dictionary(wanted) and column.type == wanted.value_type:  # of which a value was null
            column = column.dictionary_encode().cast(wanted)
        if column.type != wanted:
            raise InputTypeError(
                f'column "{name}" is {wanted} in the first rows and {column.type} in later ones; '
                "expected one type. Cast it"
            )
        return column


def _width(kind: pa.DataType) -> int:
    try:
        return int(kind.byte_width)
    except ValueError:
        return _LIST if is_list(kind) else _TEXT


def stream_of(data: Any) -> GivenTable:
    """A table that is read batch by batch: one of any library, a reader, an iterator of tables, or a function
    that opens any of these anew.

    Raises `InputTypeError` for what is none, and `InputError` for an iterator that has none.
    """
    is_function = callable(data) and not is_table(data)
    opened: list[Any] = []  # the last one

    def make() -> Frame:
        given = data() if is_function else data
        if isinstance(given, Iterator) and any(given is each for each in opened):
            raise InputError(
                f"data is a {type_name(given)}, which can be read only once, and was already read; {ANEW}"
            )
        opened[:] = [given]
        return _of_parts(iter(given)) if _is_parts(given) else frame_of(given)

    first = make()
    waiting = [first]

    def tables(names: list[str]) -> Iterable[pa.Table]:
        return _open(waiting.pop() if waiting else make(), names)

    is_once = not is_function and isinstance(data, Iterator)
    # by the thread that iterates: what Python makes may belong to it, as a connection of SQLite does
    decoders = 0 if _is_parts(opened[0]) else 1
    return GivenTable(
        frame=replace(first, open=tables, is_lazy=True), can_be_read_again=not is_once, decoders=decoders
    )


def _is_parts(data: Any) -> bool:
    return isinstance(data, Iterator | list | tuple) and not is_table(data)


def _of_parts(parts: Iterator[Any]) -> Frame:
    """Tables one after the other, of any library, with the columns of the first."""
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
