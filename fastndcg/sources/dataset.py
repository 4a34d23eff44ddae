"""`Dataset`: the same methods for files of any format and tables in memory.

`names` and `type_of` describe the columns before any row is read, `choose` selects those of each role,
`size` estimates the amount of data, `readers` yields tables of the columns in order, and `read` joins them
to `Rankings`; `streams.TableStream` reads them a part at a time. To add a format, write a module with a
`Format` and a subclass of `Dataset`, and add the `Format` to `formats.TABLES`.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, is_list, is_number, is_text, without_views
from fastndcg.common.progress import Progress, Task
from fastndcg.errors import ColumnError, FastndcgError, InputTypeError, SourceError
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import names_of_table, run_sanity_checks
from fastndcg.sources.open_file import naming, reading
from fastndcg.sources.prefetch import Reader, decoded_ahead
from fastndcg.tables.arrow import fields_of_table
from fastndcg.tables.checks import warn_if_ranks_differ
from fastndcg.tables.roles import OF_TEXT, Columns, Roles, check_column, find_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fastndcg.sources.open_file import File, Format, Stamp
    from fastndcg.typing import Path as PathLike


class TextTypes(NamedTuple):
    """How to read the columns of text files, which do not store types."""

    numbers: Sequence[str] = ()
    texts: Sequence[str] | None = None  # None: all others; otherwise the types of others are inferred
    ids: Sequence[str] = ()  # integers if all values are written like integers
    grades: str | None = None  # column that may hold words, for messages
    types: Mapping[str, pa.DataType] = MappingProxyType({})  # from the caller

    def is_text(self, name: str) -> bool:
        """Return whether a column is read as text first."""
        return name in self.ids or (name not in self.numbers if self.texts is None else name in self.texts)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Files of one format, or a table in memory. Only the chosen columns are read."""

    format: Format
    paths: list[PathLike] = field(default_factory=list)  # as the caller wrote them, for messages
    threads: int = 1
    decoders: int = 1  # threads that decode several readers at once; 0: the calling thread decodes
    first_row: int = 0  # the number of the first row in messages
    # names and types of columns; null if the type depends on the rows
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    keys: Sequence[str] = ()  # columns that are taken only if no other fits
    columns: Columns = field(default_factory=Columns)
    types: dict[str, pa.DataType] = field(default_factory=dict)  # types to read the chosen columns as
    encoded: frozenset[str] = frozenset()  # columns read as dictionaries that are not stored as such
    text: TextTypes = TextTypes()  # noqa: RUF009 - a tuple

    is_exact = False  # `size` is exact
    is_small = False  # the data certainly fits into memory
    # computed while it is read: the number of rows is unknown, and reading again is expensive
    is_stream = False
    can_be_read_again = True
    can_be_streamed = True

    # ---- what a format implements ----

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return the types to read columns as. Raises `SourceError` if files do not fit together."""
        return {name: self.type_of(name) for name in names}

    def size(self) -> tuple[int, float]:
        """Return the number of rows, and the bytes per row of the chosen columns."""
        raise InputTypeError(f"{self.format.name} is read whole; it cannot be streamed")

    def readers(self, names: Sequence[str], most: int) -> Iterator[Reader]:  # noqa: ARG002
        """Yield readers of the named columns of all files, in order; their tables have about `most` rows."""
        raise InputTypeError(f"{self.format.name} is read whole; it cannot be streamed")

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        """Return a dataset that reads these columns, as `types` if they are known."""
        chosen = replace(self, columns=columns)
        return replace(chosen, types=dict(types or chosen.types_of(columns.names)))

    def explain(self, error: ColumnError, role: str | None = None) -> ColumnError | SourceError:  # noqa: ARG002
        """Return the error for a missing column, with advice for the format."""
        return error

    # ---- what all formats share ----

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def type_of(self, name: str) -> pa.DataType:
        return self.schema.types[self.schema.names.index(name)]  # a name may appear twice

    @property
    def first(self) -> str:
        """Path of the first file."""
        return os.fspath(self.paths[0])

    def choose(self, roles: Roles, *, with_doc_id: bool = False) -> Self:
        """Return a dataset with the columns of these roles. Raises as `find_columns`, and `SourceError`."""
        with naming(self.paths):
            for name in (*OF_TEXT, "columns"):
                if getattr(roles, name) != getattr(Roles, name) and name not in self.format.options:
                    formats = "CSV and JSON Lines" if name == "types" else "CSV and other text"
                    raise InputTypeError(
                        f"{name}= is for {formats}; {self.format.name} says names and types of its columns"
                    )
            for name in roles.types or ():
                check_column(self.names, "types", name)
            if roles.intents is not None and not self.format.has_lists:
                raise ColumnError(
                    f"{self.format.name} has no lists; give a column of intents in Parquet, "
                    "or judgments and a run"
                )
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

    def table(self, names: Sequence[str], progress: Progress = None) -> pa.Table:
        """Read the named columns of all files into one table."""
        dataset = self if set(names) <= set(self.types) else replace(self, types=self.types_of(names))
        readers = dataset.readers(names, _ALL_ROWS)
        threads = self.decoders if self.decoders > 1 else 0
        with Task("Reading", progress=progress), closing(decoded_ahead(readers, threads)) as decoded:
            tables = list(decoded)
        schema = pa.schema([(name, dataset.types[name]) for name in names])
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def look_at_ranks(self, ids: Sequence[str], score: str, ranks: str | None) -> None:
        """Warn if an unused column of ranks contradicts the scores of the first rows."""
        if ranks is None or self.is_stream or not self.can_be_read_again:
            return
        names = [*ids, score, ranks]
        with suppress(FastndcgError):  # reading the used columns will raise it again
            files = replace(self, text=TextTypes([score, ranks]))
            tables = chain.from_iterable(
                replace(files, types=files.types_of(names)).readers(names, ROWS_PER_TABLE)
            )
            for table in islice(tables, 1):
                warn_if_ranks_differ(table, ids, score, ranks)

    def read(self, progress: Progress = None) -> Rankings:
        """Read all rows. Raises as `read_parquet` does."""
        columns, names, ranks = self.columns, self.columns.names, self.columns.compared_ranks
        self.look_at_ranks(columns.id_columns, columns.score, ranks)
        table = self.table(names, progress=progress)
        with naming(self.paths), Task("Finding the rows of each query", progress=progress is None):
            fields = fields_of_table(table, columns, to_decode=self.encoded, numbers=self.first_row)
        return run_sanity_checks(Rankings._of(**fields), names_of_table(columns))


# advice where rows can be read only once
ANEW = "give a function that opens them anew, as in scan_arrow(lambda: pq.ParquetFile(path).iter_batches())"
_ALL_ROWS = 1 << 62
_SMALL = 1 << 24  # bytes; files up to this size fit into memory even if they are compressed
LOOK = 1 << 20  # bytes of text from which types are inferred
ROWS_PER_TABLE = 1 << 18  # rows per table of a stream; scoring fewer at a time takes longer per row


@dataclass(frozen=True, kw_only=True)
class FileDataset(Dataset, ABC):
    """Files whose types are inferred from their first rows. They are read one after the other."""

    files: list[File]
    stamps: list[Stamp]  # of the files, taken before `begin`
    begun: list[Any]  # what `begin` returned for each file

    in_blocks: ClassVar[bool] = False  # several threads parse a file
    looks: ClassVar[float] = math.inf  # bytes of rows from which types are inferred

    @classmethod
    def open(cls, kind: Format, paths: list[PathLike], files: list[File], threads: int) -> Self:
        """Read the beginning of each file, once."""
        stamps, begun = [], []
        for file in files:
            with reading(file.path, kind.name):
                stamps.append(file.stamp())
                begun.append(cls.begin(file))
        return cls(
            format=kind, paths=paths, threads=threads, decoders=threads if cls.in_blocks else 1,
            first_row=getattr(begun[0], "first_row", 0) if len(files) == 1 else 0,
            schema=cls.schema_of(begun[0]), files=files, stamps=stamps, begun=begun,
        )  # fmt: skip

    @staticmethod
    @abstractmethod
    def begin(file: File) -> Any:
        """Read what is needed of a file before its rows, such as a header."""

    @staticmethod
    def schema_of(begun: Any) -> pa.Schema:
        """Return the columns of a file, from the result of `begin`."""
        return begun

    def schema_of_rows(self, number: int, names: Sequence[str]) -> pa.Schema:  # noqa: ARG002
        """Infer the types of columns from the first rows of a file."""
        return self.schema_of(self.begun[number])

    @abstractmethod
    def first_rows(self) -> tuple[pa.Table, float]:
        """Return the first rows of the first file, and an upper bound of their size in unpacked bytes."""

    @abstractmethod
    def parsers(self, number: int, names: Sequence[str], most: int) -> Iterator[Iterator[pa.Table]]:
        """Yield parsers of a file, which yield tables in order and which threads may run concurrently."""

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        words = [] if columns.grades is None else [columns.relevance]
        words += [columns.relevance, columns.score] if columns.are_ids else []
        others = (columns.relevance, columns.score, columns.weight, columns.propensity)
        numbers = [name for name in others if name is not None and name not in words]
        ids = [name for name in (*columns.id_columns, columns.doc_id, *columns.keep) if name is not None]
        text = TextTypes(numbers, words, ids, columns.relevance, columns.given_types)
        return super(FileDataset, replace(self, text=text)).with_columns(columns, types)

    def joined_type(self, name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType | None:  # noqa: ARG002
        """Return a type for a column that has these types in two files, or None."""
        return permissive_type(one, other)

    @property
    def n_bytes(self) -> int:
        return sum(stamp.size or 0 for stamp in self.stamps)

    @property
    def is_small(self) -> bool:  # type: ignore[override]
        return self.n_bytes < _SMALL

    @property
    def first(self) -> str:
        return self.files[0].path

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        kinds: dict[str, list[tuple[str, pa.DataType]]] = {name: [] for name in names}
        looked = 0
        for number, file in enumerate(self.files):
            if looked >= self.looks:
                break
            with reading(file.path, self.format.name):
                schema = self.schema_of_rows(number, names)
            looked += min(self.stamps[number].size or LOOK, LOOK)
            for name, known in kinds.items():
                if name not in schema.names:
                    raise ColumnError(f'{file.path} has no column "{name}", which other files have')
                known.append((file.path, schema.field(name).type))
        types = {
            name: common_type(name, known, partial(self.joined_type, name)) for name, known in kinds.items()
        }
        return types | {name: kind for name, kind in self.text.types.items() if name in names}

    def size(self) -> tuple[int, float]:
        with reading(self.first, self.format.name):
            table, size = self.first_rows()
        if not len(table):
            return 0, 4.0
        unpacked = self.files[0].unpacks_to() * (self.stamps[0].size or 1)
        share = min(size / unpacked, 1.0) * (self.stamps[0].size or 1) / (self.n_bytes or 1)
        return int(len(table) / share), table.nbytes / len(table) + 4

    def readers(self, names: Sequence[str], most: int) -> Iterator[Reader]:
        for number, (file, stamp) in enumerate(zip(self.files, self.stamps, strict=True)):
            with reading(file.path, self.format.name):
                for tables in self.parsers(number, names, min(most, ROWS_PER_TABLE)):
                    yield self._checked(file, stamp, in_tables(tables, min(most, ROWS_PER_TABLE)))

    def _checked(self, file: File, stamp: Stamp, tables: Reader) -> Reader:
        with reading(file.path, self.format.name), file.unchanged(stamp):
            yield from tables


def in_tables(tables: Iterable[pa.Table], rows: int, size: float = math.inf) -> Reader:
    """Regroup rows into tables of `rows` rows; fewer if those take more than about `size` bytes."""
    held, n_rows, n_bytes = list[pa.Table](), 0, 0
    for table in chain(tables, [None]):
        is_end = table is None
        if not is_end:
            held.append(table)
            n_rows, n_bytes = n_rows + len(table), n_bytes + table.nbytes
        del table  # free it before the next one is read
        if held and (is_end or n_rows >= rows or n_bytes >= size):
            joined = pa.concat_tables(held)
            most = max(1, min(rows, int(size * n_rows / n_bytes) if n_bytes > size else rows))
            end = n_rows if is_end else n_rows - n_rows % most
            held = [joined.slice(end)] if end < n_rows else []
            for start in range(0, end, most):
                yield joined.slice(start, most)
            del joined
            n_rows, n_bytes = sum(map(len, held)), sum(each.nbytes for each in held)


# ---- the types of several files as one ----


def common_type(
    name: str,
    kinds: Sequence[tuple[str, pa.DataType]],
    join: Callable[[pa.DataType, pa.DataType], pa.DataType | None] | None = None,
) -> pa.DataType:
    """Return a type that holds the values of a column in all files. `kinds` are pairs of path and type."""
    first, common = kinds[0]
    for path, kind in kinds[1:]:
        joined = (join or joined_type)(common, kind)
        if joined is None:
            raise SourceError(
                f'column "{name}" is {common} in {first} and {kind} in {path}; '
                "expected types that fit together without loss. Write the files with one type."
            )
        if joined != common:
            first, common = path, joined
    return common


def joined_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return a type that holds the values of both without loss, or None.

    >>> joined_type(pa.int8(), pa.int32()), joined_type(pa.int64(), pa.float64())
    (DataType(int32), None)
    """
    types = pa.types
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if types.is_dictionary(one) or types.is_dictionary(other):
        return joined_type(*(kind.value_type if types.is_dictionary(kind) else kind for kind in (one, other)))
    if is_text(one) and is_text(other):
        return pa.large_string()
    if all(types.is_binary(kind) or types.is_large_binary(kind) for kind in map(without_views, (one, other))):
        return pa.large_binary()
    if is_list(one) and is_list(other):
        values = joined_type(one.value_type, other.value_type)
        return None if values is None else pa.large_list(values)
    kinds = [array_of(pa.array([], kind)).dtype for kind in (one, other) if is_number(kind)]
    if len(kinds) < 2:
        return None
    joined = np.promote_types(*kinds)
    exact = all(
        kind.kind == joined.kind or kind.itemsize < 8 for kind in kinds
    )  # no float holds all 64-bit integers
    return pa.from_numpy_dtype(joined) if exact else None


def permissive_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type to which pyarrow promotes both, or None.

    >>> permissive_type(pa.int64(), pa.float64()), permissive_type(pa.int64(), pa.string())
    (DataType(double), None)
    """
    schemas = [pa.schema([("", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None
