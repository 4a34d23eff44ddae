"""Read files as a stream of `Rankings`: decoded ahead, cut between queries, regrouped if necessary."""

from __future__ import annotations

from contextlib import closing
from itertools import chain, islice, starmap
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastndcg.common.arrow_types import is_list
from fastndcg.common.progress import Progress, advance
from fastndcg.common.threads import check_threads
from fastndcg.errors import InputError, InputTypeError
from fastndcg.kernels.compile import dispatch
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import Oddities, names_of_table
from fastndcg.sources.open_file import naming
from fastndcg.sources.prefetch import decoded_ahead
from fastndcg.sources.regrouping import Groups, Spill
from fastndcg.sources.streams import NotGroupedError, RankingsStream, bytes_of
from fastndcg.tables.arrow import checked_ids, copied, fields_of_table, grouped_rows
from fastndcg.tables.grouping import Grouped

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from fastndcg.common.arrays import Int64
    from fastndcg.sources.dataset import Dataset

_LOOK = 1 << 16  # rows that usually show whether rows are grouped by query
# bytes for each row that is held, beside those of its columns: while it is scored, for runs of ids and what
# Arrow's allocator keeps; where rows are brought into the order of queries, for codes, orders and copies
_SCORING, _ORDERING = 24, 64
_TURNS = 2  # in which a part that is too large is parted again
_MORE = 4  # times as many rows as are held are expected of a stream of unknown length


def threads_ahead(threads: int | None) -> int:
    """The number of threads that decode ahead."""
    return check_threads(threads) or min(int(pa.cpu_count()), 4)


class FileStream(RankingsStream):
    """A stream of rankings from files of any format; `ParquetStream` says what its attributes are."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        threads: int,
        grouped: bool | None = None,
        memory: int | str | None = None,
        progress: Progress = None,
        in_memory: int = 0,
    ) -> None:
        if grouped is not None and not isinstance(grouped, bool):
            raise InputTypeError(f"grouped={grouped!r} is not known; expected True, or None to find out")
        self.grouped = grouped or None
        self._memory = bytes_of(memory)
        self._in_memory = in_memory  # bytes of rows in any order that are ordered in memory at least
        self._dataset, self.columns = dataset, dataset.columns
        self._progress = progress
        self._decoders = min(dataset.decoders, threads)
        # scoring with several threads on cores that also decode was a third slower than with one thread
        self._scoring_threads = max(1, pa.cpu_count() - threads)
        with naming(self._dataset.paths):
            self.n_rows, self._per_row = dataset.size()
        self._known_grouped = self._is_lists
        self._begun: Generator[tuple[int, pa.Table], None, None] | None = None  # by a look at the first rows

    def __repr__(self) -> str:
        files, about = self._dataset.n_files, "" if self._dataset.is_exact else "about "
        return f"{type(self).__name__}({files} file{'s' if files > 1 else ''}, {about}{self.n_rows:,} rows)"

    @property
    def nbytes(self) -> int:
        return int(self._per_row * self.n_rows)

    def __iter__(self) -> Iterator[Rankings]:
        if not self._fits:
            columns = self.columns
            self._dataset.look_at_ranks(columns.id_columns, columns.score, columns.compared_ranks)
        if self._stands_grouped():
            yield from self._in_order()
        else:
            for rankings, _ in self._regroup():
                yield rankings

    def _read(self) -> Rankings:
        """All rankings at once."""
        return self._dataset.read(self._progress)

    def _nothing(self) -> Rankings:
        """Rankings without queries, with the columns of this stream."""
        return self._rankings(pa.Table.from_batches([], pa.schema(self._dataset.types)))

    # ---- rows grouped by query ----

    def _in_order(self) -> Generator[Rankings, None, None]:
        """Yield all rankings, in order. Raises `NotGroupedError` at the first query with scattered rows."""
        if self._fits:
            yield self._read()
            return
        self._look()
        self._tell(0)
        oddities = Oddities(names_of_table(self.columns))
        with closing(self._rows()) as tables:
            whole = self._whole_lists(tables) if self._is_lists else self._whole_tables(tables)
            yield from map(oddities.add, starmap(self._rankings, whole))
        oddities.warn()
        self._known_grouped = True

    def _look(self) -> None:
        """Raise `NotGroupedError` if the first rows show that rows are not grouped, as they usually do,
        before others are scored in vain. Whoever reads all rows next begins with these.
        """
        if not self.columns.id_columns or self.grouped or self._known_grouped:
            return
        tables = self._rows()
        first = list(islice((each for each in tables if len(each[1])), 1))
        self._begun = _after(first, tables)
        for _, table in first[:1]:
            self._groups().of(table.slice(0, _LOOK), 0)

    @property
    def _fits(self) -> bool:
        """Whether all rows, in any order, fit into memory at once."""
        is_known = self._dataset.is_exact and not self.grouped
        return is_known and 0 < (self._per_row + _ORDERING) * self.n_rows <= self._memory

    @property
    def _is_lists(self) -> bool:
        return self.columns.are_ids or is_list(self._dataset.types[self.columns.relevance])

    def _whole_lists(self, tables: Iterator[tuple[int, pa.Table]]) -> Iterator[tuple[pa.Table, int]]:
        groups = None if self.columns.query is None else self._groups(is_begun=True)
        for first_row, table in tables:
            if len(table):
                if groups is not None:
                    ids, _, continues = groups.of(table, first_row)
                    if continues:
                        raise groups.refuse(ids, first_row)
                yield table, first_row
            self._tell(first_row + len(table))

    def _whole_tables(
        self, tables: Iterator[tuple[int, pa.Table]]
    ) -> Iterator[tuple[pa.Table, int, Grouped]]:
        """Yield the rows of the queries that each table completes, and the number of the first; the last
        query waits, as the next table may continue it.
        """
        groups = self._groups(is_begun=True)
        begun: list[pa.Table] = []
        begun_id, done = pa.nulls(0), 0
        for first_row, table in tables:
            if not len(table):
                continue
            ids, offsets, continues = groups.of(table, first_row)
            if begun:
                # scored together with the queries of this table: scoring it alone took as long as copying two
                # columns
                offsets = np.append(0, offsets[continues:] + len(begun[0]))
                ids = ids if continues else pa.concat_arrays([begun_id, ids])
            done = first_row + len(table)
            rows = pa.concat_tables([*begun, table], promote_options="default")
            is_end = self._dataset.is_exact and done == self.n_rows
            end = len(ids) if is_end else len(ids) - 1
            if end:
                queries = Grouped(ids[:end], offsets[: end + 1])
                yield rows.slice(0, int(offsets[end])), done - len(rows), queries
            begun, begun_id = [rows.slice(int(offsets[end]))], ids[end:]
            if end:
                # or its slice would keep the whole table in memory
                begun = [pa.table(list(map(copied, begun[0].columns)), names=begun[0].column_names)]
            del table, rows  # frees them before the next table is awaited
            self._tell(done)
        if begun_id:
            queries = Grouped(begun_id, np.array([0, len(begun[0])]))
            yield begun[0], done - len(begun[0]), queries

    def _stands_grouped(self) -> bool:
        """Whether rows are grouped. Reads only the query ids, unless an earlier pass has found out."""
        if not (self.grouped or self._known_grouped or self._fits):
            groups = self._groups()
            try:
                if not self._dataset.can_be_read_again:
                    self._look()
                    return True
                with closing(self._tables(self.columns.id_columns)) as tables:
                    for first_row, table in tables:
                        if len(table):
                            groups.of(table, first_row)
            except NotGroupedError:
                return False
            self._known_grouped = True
        return True

    # ---- rows in any order ----

    def _regroup(self) -> Generator[tuple[Rankings, Int64], None, None]:
        """All rankings and the first row of each query, in the order of the queries' hashes."""
        self._tell(0)
        oddities = Oddities(names_of_table(self.columns))
        with closing(self._rows()) as tables:
            held, are_all = self._hold(tables)
            if are_all:
                whole = pa.concat_tables(held, promote_options="default") if held else None
                rankings = self._nothing() if whole is None else oddities.add(self._rankings(whole))
                yield rankings, np.arange(rankings.n_queries)
                oddities.warn()
                return
            first_rows = np.cumsum([0, *map(len, held)]).tolist()
            every = chain(((row, held.pop(0)) for row in first_rows[:-1]), tables)
            done = 0
            with closing(self._parts(every, self.n_rows)) as parts:
                for table, rows in parts:
                    with naming(self._dataset.paths):
                        grouped = grouped_rows(table, self.columns, rows + self._dataset.first_row)
                    yield oddities.add(self._part(table, rows, grouped)), rows[grouped.first_rows]
                    done += len(table)
                    self._tell((self.n_rows + done) // 2)
        oddities.warn()

    def _parts(
        self, tables: Iterator[tuple[Any, pa.Table]], n_rows: int, turn: int = 0
    ) -> Generator[tuple[pa.Table, Int64], None, None]:
        """Rows, in parts by hash of the query that fit into memory, and their numbers, by way of the disk.
        Tables come after the numbers of their rows, or that of the first; `n_rows` is expected of them.
        """
        done = 0
        with Spill(self._parts_of(n_rows), int(self._per_row + 8) * n_rows, turn) as spill:
            for numbers, table in tables:
                if len(table):
                    with naming(self._dataset.paths):
                        ids = checked_ids(table, self.columns, numbers + self._dataset.first_row)
                    spill.add(table, ids, numbers)
                    done += len(table)
                if not turn:
                    self._tell(done // 2)
            self.n_rows = self.n_rows if turn else done
            for part, rows in enumerate(spill.rows):
                # more than were expected, but no more often: one query may have them all
                if turn < _TURNS and self._parts_of(rows) > 2 and not self._dataset.is_exact:
                    yield from self._parts(spill.tables(part), rows, turn + 1)
                elif rows:
                    table, numbers = spill.part(part)
                    for name in self.columns.keep:  # whose codes may have been narrower
                        place, kind = table.column_names.index(name), self._dataset.types[name]
                        table = table.set_column(place, name, table[name].cast(kind))
                    yield table, numbers

    def _part(self, table: pa.Table, rows: Int64, grouped: Grouped) -> Rankings:
        """Rankings of rows that were set aside. A fault is that of the first faulty rows of the data."""
        try:
            return self._rankings(table, rows, grouped)
        except InputError:
            if not self._dataset.can_be_read_again:
                raise
            with closing(self._tables(list(self._dataset.types))) as tables:
                for first_row, beginning in tables:
                    if len(beginning):
                        self._rankings(beginning, first_row)
            raise  # what concerns rows that are far apart

    def _hold(self, tables: Iterator[tuple[int, pa.Table]]) -> tuple[list[pa.Table], bool]:
        """The first tables, as many as are brought into order in memory, and whether these are all; none if
        it is known that they are not.
        """
        held: list[pa.Table] = []
        size = done = 0
        for first_row, table in () if self._dataset.is_exact and self.n_rows else tables:
            if len(table):
                held.append(table)
                done, size = first_row + len(table), size + table.nbytes
                self._per_row = size / done
            if size > self._in_memory and size + done * _ORDERING > self._memory:
                self.n_rows = max(self.n_rows, _MORE * done)
                return held, False
        return held, not self._dataset.is_exact or not self.n_rows

    def _parts_of(self, n_rows: int) -> int:
        return 1 + int((self._per_row + _ORDERING) * n_rows // (self._memory // 2))

    # ---- reading ----

    def _rows(self) -> Generator[tuple[int, pa.Table], None, None]:
        """Tables of all columns, as `_tables`: those that a look has begun, or anew."""
        begun, self._begun = self._begun, None
        return begun or self._tables(list(self._dataset.types))

    def _tables(self, names: list[str]) -> Generator[tuple[int, pa.Table], None, None]:
        """Tables of the named columns, in order, and the number of the first row of each."""
        in_flight = self._decoders + 4
        most = max(1, int(self._memory / (self._per_row * in_flight + _SCORING)))
        readers, done = self._dataset.readers(names, most), 0

        def number(table: pa.Table) -> tuple[int, pa.Table]:
            nonlocal done
            done += len(table)
            return done - len(table), table

        with closing(decoded_ahead(readers, self._decoders)) as tables:
            yield from map(number, tables)  # a loop would keep each table while the next is awaited
        self.n_rows = done

    def _rankings(
        self, table: pa.Table, numbers: int | Int64 = 0, grouped: Grouped | None = None
    ) -> Rankings:
        numbers = numbers + self._dataset.first_row
        with naming(self._dataset.paths), dispatch.part_of(self.n_rows, len(table)):
            fields = fields_of_table(
                table, self.columns, to_decode=self._dataset.encoded, numbers=numbers, grouped=grouped
            )
        return Rankings._of(**fields)

    def _tell(self, done: int) -> None:
        if callable(self._progress):
            self._progress(done, self.n_rows)
        else:
            advance(done, self.n_rows)

    def _groups(self, *, is_begun: bool = False) -> Groups:
        return Groups(self._dataset, is_gone=is_begun and not self._dataset.can_be_read_again)


def _after(
    first: list[tuple[int, pa.Table]], tables: Generator[tuple[int, pa.Table], None, None]
) -> Generator[tuple[int, pa.Table], None, None]:
    with closing(tables):
        while first:
            yield first.pop()
        yield from tables
