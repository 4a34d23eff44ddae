"""Parquet: a file, a folder, a glob, hive partitions, a list of them, or a URI."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import is_list, is_text, without_views
from fastndcg.errors import SourceError
from fastndcg.kernels.compile import worlds
from fastndcg.sources import row_groups
from fastndcg.sources.footers import BYTES, PLACES, VALUES
from fastndcg.sources.joined import common_type
from fastndcg.sources.messages import naming, reading
from fastndcg.sources.opened import Format, OfText, Opened
from fastndcg.sources.row_groups import Part, Wanted, in_order, part_of, read_span, read_type, spans_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fastndcg.common.progress import Progress
    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.columns import Columns
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike

# mean rows of a row group from which pages are read here: Python takes 0.1 ms for a column of a group
LEAST_ROWS_OF_A_GROUP = 1 << 18
# a row of ids takes less than half a byte only where most repeat the one before: ids in any order take 10 to
# 20 bits
_BYTES_IN_RUNS, _MOST_ROWS_IN_RUNS = 0.5, np.iinfo(np.int32).max


def open_files(paths: list[PathLike], files: list[File], threads: int) -> ParquetFiles:
    """Read the footer of each file, once. Raises as `read_parquet` does."""
    parts = list(in_order(part_of, files, threads))
    schema = parts[0].footer.schema
    keys = [key for key in files[0].partition if key not in schema.names]  # only in the names of folders
    ends = np.cumsum([part.footer.n_rows for part in parts]).tolist()
    return ParquetFiles(
        format=PARQUET, paths=paths, threads=threads, schema=schema, keys=keys, parts=parts, ends=ends
    )


_BEGINS = b"PAR[1E]"  # plain and encrypted
PARQUET = Format("Parquet", (".parquet", ".parq", ".pq"), _BEGINS, _BEGINS, open_files)


@dataclass(frozen=True, kw_only=True)
class ParquetFiles(Opened):
    """Parquet files and their footers; once columns are chosen, how to read these."""

    parts: list[Part]
    wanted: Wanted = field(default_factory=lambda: Wanted([], {}, frozenset(), 1))

    is_exact = True

    @property
    def decoders(self) -> int:  # type: ignore[override]
        return self.threads

    @property
    def first(self) -> str:
        return self.parts[0].file.path

    @property
    def names(self) -> list[str]:
        return [*self.schema.names, *self.keys]

    @property
    def names_in_all(self) -> list[str]:
        return [name for name in self.names if all(part.has(name) for part in self.parts)]

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of columns in all files. Raises `SourceError` where a column has none."""
        types = {}
        for name in names:
            kinds = [(part.file.path, part.type_of(name)) for part in self.parts]
            for part, (_, kind) in zip(self.parts, kinds, strict=True):
                if kind is None and name not in part.file.partition:
                    raise SourceError(
                        f'column "{name}" is in {self.first} but not in {part.file.path}; '
                        "wanted it in all files. Name only files of one schema."
                    )
            own = [(path, kind) for path, kind in kinds if kind is not None]
            if own and len(own) < len(kinds):
                raise SourceError(
                    f'column "{name}" stands in some files and in the folder names of others; '
                    "write it in one way"
                )
            if own:
                types[name] = without_views(own[0][1] if len(own) == 1 else common_type(name, own))
            else:
                types[name] = _partition_type(part.file.partition[name] for part in self.parts)
        return types

    def only(self, groups: Sequence[range]) -> Self:
        """The same files, of each only these row groups."""
        parts = [part._replace(groups=each) for part, each in zip(self.parts, groups, strict=True)]
        rows = [sum(part.footer.rows[group] for group in part.groups) for part in parts]
        return replace(self, parts=parts, ends=np.cumsum(rows).tolist())

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        for part in self.parts:
            with reading(part.file.path):
                part.footer.check(columns.names)
        types = self.types_of(columns.names) if types is None else dict(types)
        # a query id stands on each of its documents: a dictionary decodes five times as fast as the strings
        # themselves
        words = () if columns.grades is None else (columns.relevance,)
        repeated = () if is_list(types[columns.relevance]) else (*columns.id_columns, *columns.keep, *words)
        encoded = {name for name in repeated if name is not None and is_text(types[name])}
        partitions = {name for name in types if any(part.type_of(name) is None for part in self.parts)}
        wanted = Wanted(self.parts, types, frozenset(encoded | partitions), self.threads)
        if not is_list(types[columns.relevance]):
            wanted = _with_leaves(wanted, None if columns.keys else columns.query)
        kinds = {name: read_type(wanted, name) for name in types}
        return replace(self, columns=columns, types=kinds, encoded=wanted.encoded, wanted=wanted)

    def size(self) -> tuple[int, float]:
        with naming(self.paths):
            return self.ends[-1], _bytes_of_a_row(self.wanted)

    def readers_of_files(self, names: Sequence[str], most: int) -> Iterator[Iterator[Reader]]:
        spans = spans_of(self.wanted, most)
        yield (row_groups.read_steps(self.wanted, span, list(names), most) for span in spans)

    def table(
        self,
        names: Sequence[str],
        of_text: OfText | None = None,  # noqa: ARG002 - Parquet says it itself
        progress: Progress = None,
    ) -> pa.Table:
        """The named columns of all files, whole columns at once."""
        wanted = self.wanted
        if list(wanted.types) != list(names):
            for part in self.parts:
                with reading(part.file.path):
                    part.footer.check(names)
            types = self.types_of(names)
            texts = frozenset(name for name in names[:1] if is_text(types[name]))
            wanted = Wanted(self.parts, types, texts, self.threads)
        return row_groups.read_table(wanted, progress)

    def rows_of(self, name: str, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
        """Ascending rows of a column; only row groups that have some of them are read."""
        wanted = Wanted(self.parts, self.types_of([name]), frozenset(), self.threads)
        tasks, taken, end = [], [], 0
        for span in spans_of(wanted, 1):
            start, end = end, end + span.rows
            first, stop = np.searchsorted(rows, (start, end))
            if first < stop:
                tasks.append((wanted, span, [name]))
                taken.append(pa.array(rows[first:stop] - start))
        columns = in_order(read_span, tasks, wanted.threads)
        found = [column.take(places) for (column,), places in zip(columns, taken, strict=True)]
        return pa.chunked_array([chunk for each in found for chunk in each.chunks], wanted.types[name])


def _with_leaves(wanted: Wanted, query: str | None) -> Wanted:
    """The same files, where it is known which columns are read from their pages, now or once that pays."""
    n_groups = sum(len(part.groups) for part in wanted.parts)
    n_rows = sum(part.footer.rows[group] for part in wanted.parts for group in part.groups)
    is_short = n_rows < LEAST_ROWS_OF_A_GROUP * max(n_groups, 1)
    # from afar pyarrow asks for all columns at once
    is_local = any(part.file.is_local for part in wanted.parts)
    if is_short or not is_local:
        return wanted
    from fastndcg.sources.pages import leaves_of, way_of

    names = [name for name in wanted.types if name not in wanted.encoded]
    texts = [] if query is None or query in names else [query]
    parts = [
        part._replace(leaves=leaves_of(part.footer, names, texts)) if part.file.is_local else part
        for part in wanted.parts
    ]
    runs = frozenset({query} if query is not None and _stands_in_runs(parts, query) else ())
    ways = {name: way_of(leaf) for part in parts for name, leaf in part.leaves.items()}
    by_pyarrow = set(runs) if texts else set()  # of texts in runs it makes dictionaries sooner
    plain: dict[str, str] = {}
    for way in dict.fromkeys(way for name, way in ways.items() if name not in by_pyarrow):
        values = [name for name in ways if ways[name] == way and name not in runs - {*names}]
        if not worlds.pays(way, n_rows * len(values)):
            plain |= dict.fromkeys(values, way)
    by_pyarrow |= plain.keys()
    parts = [
        part._replace(leaves={name: leaf for name, leaf in part.leaves.items() if name not in by_pyarrow})
        for part in parts
    ]
    return wanted._replace(parts=parts, runs=runs - by_pyarrow, plain=plain)


def _stands_in_runs(parts: list[Part], name: str) -> bool:
    """Whether a column of integers takes so few bytes that most rows must repeat the one before."""
    from fastndcg.sources.footers import STORED

    size, rows = 0, 0
    for part in parts:
        if name not in part.leaves or part.footer.n_rows > _MOST_ROWS_IN_RUNS:
            return False
        size += int(part.footer.chunks[:, part.leaves[name].place, STORED].sum())
        rows += part.footer.n_rows
    return size <= _BYTES_IN_RUNS * rows


def _partition_type(values: Iterable[str | None]) -> pa.DataType:
    def is_integer(text: str) -> bool:
        return text.removeprefix("-").isdecimal() and str(int(text)) == text and -(2**63) <= int(text) < 2**63

    return pa.int64() if all(value is None or is_integer(value) for value in values) else pa.string()


def _bytes_of_a_row(wanted: Wanted) -> float:
    """Approximate size of a decoded row in bytes, estimated from the first row groups."""
    total, rows = 0.0, 0
    for part in wanted.parts[:8]:
        rows += sum(part.footer.rows[:8])
        for name, kind in wanted.types.items():
            for chunk in part.footer.chunks[:8, part.footer.places_of([name])].reshape(-1, PLACES):
                total += _bytes_of_a_chunk(kind, chunk)
    return total / rows + 4 if rows else 4.0


def _bytes_of_a_chunk(kind: pa.DataType, chunk: npt.NDArray[np.int64]) -> float:
    if is_list(kind):
        kind = kind.value_type
    values = float(chunk[VALUES])
    try:
        return max(values * float(kind.bit_width) / 8, 1.0)
    except ValueError:  # strings: their own bytes and an offset, or the code of a dictionary
        return values * 8 + float(chunk[BYTES])
