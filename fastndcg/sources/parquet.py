"""Parquet: a file, a folder, a glob, hive partitions, a list of them, or a URI."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of, is_list, is_number, is_text, without_views
from fastndcg.common.progress import Task
from fastndcg.common.threads import in_threads
from fastndcg.errors import SourceError
from fastndcg.sources.footers import BYTES, PLACES, VALUES, read_footer
from fastndcg.sources.joined import common_type
from fastndcg.sources.opened import OfText, Opened
from fastndcg.sources.opening import Format, naming, reading
from fastndcg.sources.row_groups import Part, Span, read_steps
from fastndcg.sources.values import integers_if_written_so

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fastndcg.common.progress import Progress
    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.columns import Columns
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike

# row groups read by one task: enough of them for all threads, but long, since what is read at once needs no
# joining (a column of one file read whole costs 20 to 25 % less than in pieces)
_FEWEST_ROWS, _MOST_ROWS = 1 << 20, 1 << 26


def open_files(paths: list[PathLike], files: list[File], threads: int) -> ParquetFiles:
    """Read the footer of each file, once. Raises as `read_parquet` does."""
    parts = list(in_threads(_part_of, files, threads))
    schema = parts[0].footer.schema
    keys = [key for key in files[0].partition if key not in schema.names]  # only in the names of folders
    ends = np.cumsum([part.footer.n_rows for part in parts]).tolist()
    return ParquetFiles(
        format=PARQUET, paths=paths, threads=threads, decoders=threads, schema=schema, keys=keys, parts=parts,
        ends=ends,
    )  # fmt: skip


def _part_of(file: File) -> Part:
    """A file and its footer, whose numbers agree with one another."""
    with reading(file.path):
        stamp = file.stamp()  # before the footer: a file that changes in between is found out later
        with file.filesystem.open_input_file(file.path) as source:
            footer = read_footer(source)
    return Part(file, footer, stamp, range(len(footer.rows)))


_BEGINS = b"PAR[1E]"  # plain and encrypted
PARQUET = Format("Parquet", (".parquet", ".parq", ".pq"), _BEGINS, _BEGINS, open_files)


@dataclass(frozen=True, kw_only=True)
class ParquetFiles(Opened):
    """Parquet files and their footers."""

    parts: list[Part]

    is_exact = True

    @property
    def n_files(self) -> int:  # type: ignore[override]
        return len(self.parts)

    @property
    def first(self) -> str:
        return self.parts[0].file.path

    @property
    def names(self) -> list[str]:
        return [*self.schema.names, *self.keys]

    def types_of(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """The types of columns in all files. Raises `SourceError` where a column has none, and where a footer
        contradicts itself about one.
        """
        for part in self.parts:
            with reading(part.file.path):
                part.footer.check(names)
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
                values = pa.array([part.file.partition[name] for part in self.parts], pa.string())
                types[name] = integers_if_written_so(values).type
        return types

    def only(self, groups: Sequence[range]) -> Self:
        """The same files, of each only these row groups."""
        parts = [part._replace(groups=each) for part, each in zip(self.parts, groups, strict=True)]
        rows = [sum(part.footer.rows[group] for group in part.groups) for part in parts]
        return replace(self, parts=parts, ends=np.cumsum(rows).tolist())

    def with_columns(self, columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> Self:
        types = self.types_of(columns.names) if types is None else dict(types)
        in_lists = is_list(types[columns.relevance])
        # a query id stands on each of its documents: a dictionary decodes five times as fast as the strings
        # themselves
        words = () if columns.grades is None else (columns.relevance,)
        repeated = () if in_lists else (*columns.id_columns, *columns.keep, *words)
        encoded = {name for name in repeated if name is not None and is_text(types[name])}
        encoded |= {name for name in types if name in self.keys}
        types |= {name: pa.dictionary(pa.int32(), types[name]) for name in encoded}
        return replace(self, columns=columns, types=types, encoded=frozenset(encoded))

    def size(self) -> tuple[int, float]:
        """The size of a row is estimated from the first row groups."""
        with naming(self.paths):
            total, rows = 0.0, 0
            for part in self.parts[:8]:
                rows += sum(part.footer.rows[:8])
                for name, kind in self.types.items():
                    kind = getattr(kind, "value_type", kind)  # noqa: PLW2901 - of lists and dictionaries
                    chunks = part.footer.chunks[:8, part.footer.places_of([name])].reshape(-1, PLACES)
                    values, sizes = chunks[:, [VALUES, BYTES]].astype(np.float64).T
                    try:
                        total += float(np.maximum(values * kind.bit_width / 8, 1.0).sum())
                    except ValueError:  # texts: their own bytes and an offset, or the code of a dictionary
                        total += float((values * 8 + sizes).sum())
            return self.ends[-1], total / rows + 4 if rows else 4.0

    def _spans(self, most: int) -> Iterator[Span]:
        """Consecutive row groups of a file with at most `most` rows in all; a single one may have more."""
        for part in self.parts:
            start, rows = part.groups.start, 0
            for group in part.groups:
                size = part.footer.rows[group]
                if rows and rows + size > most:
                    yield Span(part, range(start, group), rows)
                    start, rows = group, 0
                rows += size
            if rows:
                yield Span(part, range(start, part.groups.stop), rows)

    def readers_of_files(self, names: Sequence[str], most: int) -> Iterator[Iterator[Reader]]:
        yield (read_steps(self.types, span, list(names), most) for span in self._spans(most))

    def table(
        self,
        names: Sequence[str],
        of_text: OfText | None = None,  # noqa: ARG002 - Parquet says it itself
        progress: Progress = None,
    ) -> pa.Table:
        """The named columns of all files: spans, or columns of spans, are tasks of several threads."""
        types = self.types
        if list(types) != list(names):
            types = self.types_of(names)
            types |= {
                name: pa.dictionary(pa.int32(), types[name]) for name in names[:1] if is_text(types[name])
            }
        coded = {name for name, kind in types.items() if pa.types.is_dictionary(kind)}
        total = self.ends[-1]
        share = total // self.threads
        most, shorter = (min(max(n, _FEWEST_ROWS), _MOST_ROWS) for n in (share * len(names), share))
        spans = list(self._spans(most))
        if len(spans) >= 2 * self.threads:
            tasks = [(types, span, list(names)) for span in spans]
        else:
            # columns are separate tasks if spans would leave threads idle; texts take as long as the others
            short = list(self._spans(shorter)) if coded else []
            tasks = [(types, span, [name]) for name in names for span in (short if name in coded else spans)]
        chunks: dict[str, list[pa.Array]] = {name: [] for name in names}
        done = 0
        with Task("Reading", "rows", progress) as task:
            task.advance(0, total)
            for (_, span, columns), arrays in zip(tasks, in_threads(_read, tasks, self.threads), strict=True):
                for name, column in zip(columns, arrays, strict=True):
                    chunks[name].extend(column.chunks)
                done += span.rows * len(columns)
                task.advance(done // len(names), total)
        for name in {*self.columns.id_columns, self.columns.relevance, self.columns.score} & {*names}:
            chunks[name] = self._joined(chunks[name])
        return pa.table({name: pa.chunked_array(chunks[name], types[name]) for name in names})

    def _joined(self, chunks: list[pa.Array]) -> list[pa.Array]:
        """Numbers in one chunk, as scoring takes them, copied by all threads: one thread, for which it is new
        memory, took a third of the time of 16.
        """
        kind = chunks[0].type if chunks else pa.null()
        if self.threads == 1 or len(chunks) < 2 or not is_number(kind) or any(c.null_count for c in chunks):
            return chunks
        ends = np.cumsum([len(chunk) for chunk in chunks])
        memory = pa.allocate_buffer(int(ends[-1]) * kind.bit_width // 8)
        values = np.frombuffer(memory, kind.to_pandas_dtype())

        def copy(place: int) -> None:
            values[ends[place] - len(chunks[place]) : ends[place]] = array_of(chunks[place])

        list(in_threads(copy, range(len(chunks)), self.threads))
        return [pa.Array.from_buffers(kind, int(ends[-1]), [None, memory])]

    def rows_of(self, name: str, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
        """Ascending rows of a column; only row groups that have some of them are read."""
        types = self.types_of([name])
        tasks, taken, end = [], [], 0
        for span in self._spans(1):
            start, end = end, end + span.rows
            first, stop = np.searchsorted(rows, (start, end))
            if first < stop:
                tasks.append((types, span, [name]))
                taken.append(pa.array(rows[first:stop] - start))
        columns = in_threads(_read, tasks, self.threads)
        found = [column.take(places) for (column,), places in zip(columns, taken, strict=True)]
        return pa.chunked_array([chunk for each in found for chunk in each.chunks], types[name])


def _read(task: tuple[Mapping[str, pa.DataType], Span, list[str]]) -> list[pa.ChunkedArray]:
    """The named columns of a span."""
    (table,) = read_steps(*task, task[1].rows)  # to its end, where the file is looked at again
    return list(table.columns)
