"""What can be opened: files of one format or a table in memory, with the same verbs for all of them.

`names` and `type_of` say what columns there are before a row is read, `choose` finds those that play the
roles, `size` says how much there is to read, `readers` gives tables of the columns, in order, and `read`
joins them to `Rankings`; `scan.FileStream` reads them a part at a time. A format is one file with a `Format`
and a class, whose `Format` is added to `formats.TABLES`.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Self

import pyarrow as pa

from fastndcg.common.arrow_types import is_list, without_views
from fastndcg.common.progress import Progress, Task
from fastndcg.errors import ColumnError, SourceError
from fastndcg.rankings.oddities import Names, warn_of_oddities
from fastndcg.sources.ahead import Reader, decoded_ahead
from fastndcg.sources.arrow import rankings_from_table
from fastndcg.sources.columns import Columns, Roles, find_columns
from fastndcg.sources.joined import common_type, permissive_type
from fastndcg.sources.opening import naming, reading
from fastndcg.sources.streams import ReadAgainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.opening import Format
    from fastndcg.sources.paths import File, Stamp
    from fastndcg.typing import Path as PathLike


class OfText(NamedTuple):
    """What has to be said of columns to read them from text."""

    numbers: Sequence[str] = ()
    texts: Sequence[str] | None = None  # None: all others; where there are some, others are as they look
    grades: str | None = None  # the column that may hold words, for messages

    def is_text(self, name: str) -> bool:
        return name not in self.numbers if self.texts is None else name in self.texts


@dataclass(frozen=True, kw_only=True)
class Opened:
    """Files of one format, or a table in memory. Once columns are chosen, only these are read."""

    format: Format
    paths: list[PathLike] = field(default_factory=list)  # as they were given, for messages
    threads: int = 1
    decoders: int = 1  # threads that decode several readers at once; with 0 the caller's does
    first_row: int = 0  # the number of the first row in messages
    # names and types of columns; null where rows decide the type
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    keys: Sequence[str] = ()  # columns that play a role only if no other fits
    columns: Columns = field(default_factory=Columns)
    types: dict[str, pa.DataType] = field(default_factory=dict)  # as which the chosen columns are read
    encoded: frozenset[str] = frozenset()  # chosen columns read as dictionaries though they are none
    # the number of rows up to the end of each file, once it is known
    ends: list[int] = field(default_factory=list)

    is_exact = False  # `size` is known before a row is read
    is_small = False  # what is read surely fits into memory
    # made as it is read, by another program: nobody knows how many rows come, and to read again is dear
    is_stream = False
    can_be_read_again = True
    can_be_streamed = True
    n_files = 1

    # ---- what a format says: `table`, or how large it is and its readers ----

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types as which columns are read. Raises `SourceError` where files do not fit together."""
        return {name: self.type_of(name) for name in names}

    def size(self) -> tuple[int, float]:
        """The number of rows, and the bytes that the chosen columns of a row take."""
        table = self.table(self.columns.names)
        return len(table), table.nbytes / max(len(table), 1)

    def readers_of_files(self, names: Sequence[str], most: int) -> Iterator[Iterator[Reader]]:  # noqa: ARG002
        """For each file, readers of the named columns, in order, in tables of about `most` rows.

        A reader raises `ReadAgainError` where a row does not fit the types so far.
        """
        yield iter([(self.table(names) for _ in range(1))])

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        """The same files, where it is decided how these columns are read: as `types`, if they are known."""
        chosen = replace(self, columns=columns)
        return replace(chosen, types=dict(types or chosen.types_of(columns.names)))

    def explain(self, error: ColumnError) -> ColumnError | SourceError:
        """The error for a missing column, with what the format knows of it."""
        return error

    # ---- what follows ----

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def type_of(self, name: str) -> pa.DataType:
        return self.schema.field(name).type

    @property
    def first(self) -> str:
        """The path of the first file."""
        return os.fspath(self.paths[0])

    def choose(self, roles: Roles, *, with_doc_id: bool = False) -> Self:
        """The same files, with the columns for these roles. Raises as `find_columns`, and `SourceError`."""
        with naming(self.paths):
            try:
                columns = find_columns(
                    self.names,
                    roles,
                    is_list=lambda name: name not in self.keys and is_list(self.type_of(name)),
                    second_choice=self.keys,
                    with_doc_id=with_doc_id,
                )
            except ColumnError as error:
                raise self.explain(error) from None
            return self.with_columns(columns)

    def readers(self, names: Sequence[str], most: int) -> Iterator[Reader]:
        """Readers of the named columns of all files, in order."""
        return chain.from_iterable(self.readers_of_files(names, most))

    def table(
        self,
        names: Sequence[str],
        of_text: OfText | None = None,  # noqa: ARG002 - other formats say it themselves
        progress: Progress = None,
    ) -> pa.Table:
        """The named columns of all files: the join of their readers. `of_text` if they are not the chosen."""
        opened = self if set(names) <= set(self.types) else replace(self, types=self.types_of(names))
        while True:
            try:
                return opened._join(names, progress)
            except ReadAgainError as again:
                again.settle()

    def _join(self, names: Sequence[str], progress: Progress) -> pa.Table:
        readers = chain.from_iterable(self.readers_of_files(names, _ALL_ROWS))
        threads = self.decoders if self.decoders > 1 else 0
        with Task("Reading", progress=progress), closing(decoded_ahead(readers, threads)) as decoded:
            tables = list(decoded)
        schema = pa.schema([(name, self.types[name]) for name in names])
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def read(self, progress: Progress = None) -> Rankings:
        """Rankings of all rows. Raises as `read_parquet` does."""
        table = self.table(self.columns.names, progress=progress)
        with naming(self.paths), Task("Finding the rows of each query", progress=progress is None):
            rankings = rankings_from_table(
                table,
                self.columns,
                to_decode=self.encoded,
                numbers=self.first_row,
            )
        return warn_of_oddities(rankings, names_for(self.columns))


# what to do about rows that are gone once they are read
ANEW = "give a function that opens them anew, as in scan_arrow(lambda: pq.ParquetFile(path).iter_batches())"
_ALL_ROWS = 1 << 62
_SMALL = 1 << 24  # bytes; files up to this size fit into memory even if they are packed


@dataclass(frozen=True, kw_only=True)
class OpenedFiles(Opened, ABC):
    """Files of which each has its own schema, read one after the other."""

    files: list[File]
    stamps: list[Stamp]  # of the files, taken before their schemas were read
    schemas: list[pa.Schema]  # none where rows decide the types

    @abstractmethod
    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:
        """Readers of the named columns of a file, in order, in tables of at most `most` rows."""

    @property
    def n_bytes(self) -> int:
        return sum(stamp.size or 0 for stamp in self.stamps)

    @property
    def is_small(self) -> bool:  # type: ignore[override]
        return self.n_bytes < _SMALL

    @property
    def n_files(self) -> int:  # type: ignore[override]
        return len(self.files)

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        types = {}
        for name in names:
            kinds = []
            for file, schema in zip(self.files, self.schemas, strict=True):
                if name not in schema.names:
                    raise ColumnError(f'{file.path} has no column "{name}", which other files have')
                kinds.append((file.path, schema.field(name).type))
            types[name] = without_views(common_type(name, kinds, permissive_type))
        return types

    def readers_of_files(self, names: Sequence[str], most: int) -> Iterator[Iterator[Reader]]:
        target = pa.schema([(name, self.types[name]) for name in names])

        def cast(file: File, reader: Reader) -> Reader:
            for table in reader:
                with reading(file.path, self.format.name):
                    columns = table.cast(target)
                yield columns

        for number, file in enumerate(self.files):
            readers, schemas = self.readers_of_file(number, names, most), self.schemas[number : number + 1]
            is_cast = any(schema.field(name).type != self.types[name] for schema in schemas for name in names)
            yield map(partial(cast, file), readers) if is_cast else readers


def in_tables(tables: Iterable[pa.Table], rows: int, size: float = math.inf) -> Reader:
    """The same rows in tables of `rows` rows, and of fewer where these take more than about `size` bytes, and
    at the end.
    """
    held, n_rows, n_bytes = list[pa.Table](), 0, 0
    for table in chain(tables, [None]):
        is_end = table is None
        if not is_end:
            held.append(table)
            n_rows, n_bytes = n_rows + len(table), n_bytes + table.nbytes
        del table  # which would keep it while the next one is read
        if held and (is_end or n_rows >= rows or n_bytes >= size):
            joined = pa.concat_tables(held)
            most = max(1, min(rows, int(size * n_rows / n_bytes) if n_bytes > size else rows))
            end = n_rows if is_end else n_rows - n_rows % most
            held = [joined.slice(end)] if end < n_rows else []
            for start in range(0, end, most):
                yield joined.slice(start, most)
            del joined
            n_rows, n_bytes = sum(map(len, held)), sum(each.nbytes for each in held)


def names_for(columns: Columns) -> Names:
    """How warnings of oddities call these columns."""
    is_ordered = columns.ascending or columns.rank is not None
    named = f'column "{columns.relevance}"', f'column "{columns.score}"'
    return Names(*named, columns.score, is_ordered, are_columns=True)
