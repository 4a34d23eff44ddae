"""Streams: read and evaluate rankings of any size a part at a time, in bounded memory.

Tables are decoded ahead, cut between queries, and regrouped if necessary. Only the values of queries are
kept. They have the same bits as in memory, since no value depends on other queries.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from itertools import chain, islice, starmap
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import column_of, decode, is_list
from fastndcg.common.progress import Progress, Task, advance
from fastndcg.common.threads import check_threads
from fastndcg.errors import InputError, InputTypeError
from fastndcg.kernels.compile import dispatch
from fastndcg.rankings.rankings import Rankings
from fastndcg.rankings.sanity_checks import SanityChecks, names_of_table
from fastndcg.sources.open_file import naming
from fastndcg.sources.prefetch import decoded_ahead
from fastndcg.sources.regrouping import Groups, NotGroupedError, Spill
from fastndcg.tables.arrow import checked_ids, copied, fields_of_table, grouped_rows
from fastndcg.tables.grouping import Grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from fastndcg.common.arrays import Int64
    from fastndcg.scores.scores import Scores
    from fastndcg.sources.dataset import Dataset

    # rows; their row numbers, or that of the first; their grouping, or None if it is not known yet
    Part = tuple[pa.Table, int | Int64, Grouped | None]

_LOOK = 1 << 16  # rows that usually show whether all are grouped by query
# bytes per row on top of its columns: while scoring, for runs of ids and what Arrow's allocator keeps; while
# sorting by query, for codes, orders and copies
_SCORING, _ORDERING = 24, 64
_TURNS = 2  # how often a part that is too large is divided again
_MORE = 4  # expected length of a stream of unknown length, in multiples of the rows so far


def threads_ahead(threads: int | None) -> int:
    """Return the number of threads that decode ahead."""
    return check_threads(threads) or min(int(pa.cpu_count()), 4)


class TableStream:
    """The result of `scan_parquet`, `scan_csv` and `scan_arrow`, which can be iterated again and again.

    Attributes
    ----------
    columns : Columns
        Which column plays which role.
    n_rows : int
        Number of rows: of Parquet from the footers, of text estimated from the first rows, and of batches 0,
        until all were read.
    nbytes : int
        Approximate memory of all columns, in bytes.
    grouped : bool or None

    Examples
    --------
    >>> from fastndcg import scan_arrow
    >>> table = pa.table({"qid": [7, 7, 8], "label": [1, 0, 2], "score": [0.5, 0.1, 0.9]})
    >>> stream = scan_arrow(table)
    >>> [sum(rankings.n_docs for rankings in stream) for _ in range(2)]
    [3, 3]
    """

    keeps_digests = False  # compute signatures in the pass that scores, which takes time
    _documents = 0  # of the last evaluation

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
        self._in_memory = in_memory  # bytes up to which rows are regrouped in memory
        self._dataset, self.columns = dataset, dataset.columns
        self._progress = progress
        self._decoders = min(dataset.decoders, threads)
        # scoring with several threads on cores that also decode was a third slower than with one
        self._scoring_threads = max(1, pa.cpu_count() - threads)
        with naming(self._dataset.paths):
            self.n_rows, self._per_row = dataset.size()
        are_lists = dataset.columns.are_ids or is_list(dataset.types[dataset.columns.relevance])
        self._is_lists = self._known_grouped = are_lists

    def __repr__(self) -> str:
        about = "" if self._dataset.is_exact else "about "
        rows = f", {about}{self.n_rows:,} rows" if self.n_rows else ""
        return f"{type(self).__name__}{repr(self.columns).removeprefix('Columns')[:-1]}{rows})"

    @property
    def nbytes(self) -> int:
        return int(self._per_row * self.n_rows)

    @property
    def _fits(self) -> bool:
        """Whether all rows fit into memory at once, in any order."""
        is_known = self._dataset.is_exact and not self.grouped
        return is_known and 0 < (self._per_row + _ORDERING) * self.n_rows <= self._memory

    def __iter__(self) -> Iterator[Rankings]:
        with closing(self._parts(regroup=not self._stands_grouped())) as parts:
            yield from map(itemgetter(0), parts)

    def _stands_grouped(self) -> bool:
        """Return whether rows may be grouped. Reads only query ids, unless an earlier pass found out."""
        if not (self.grouped or self._known_grouped or self._fits) and self._dataset.can_be_read_again:
            groups = self._groups()
            try:
                with closing(self._tables(self.columns.id_columns)) as tables:
                    for first_row, table in tables:
                        if len(table):
                            groups.of(table, first_row)
            except NotGroupedError:
                return False
        return True

    def _parts(self, *, regroup: bool = False) -> Generator[tuple[Rankings, Int64 | None], None, None]:
        if self._fits:
            yield self._dataset.read(self._progress), None
            return
        columns, checks, done = self.columns, SanityChecks(names_of_table(self.columns)), 0
        self._dataset.look_at_ranks(columns.id_columns, columns.score, columns.compared_ranks)
        self._tell(0)

        def part_of(table: pa.Table, numbers: int | Int64, grouped: Grouped) -> Any:
            nonlocal done
            rankings = checks.add(self._rankings(table, numbers, grouped))
            if isinstance(numbers, int):
                return rankings, None
            done += len(table)
            self._tell((self.n_rows + done) // 2)
            return rankings, numbers[grouped.first_rows]

        with closing(self._tables(list(self._dataset.types))) as tables:
            first = list(islice((each for each in tables if len(each[1])), 1))
            if not (regroup or self.grouped or self._known_grouped) and columns.id_columns:
                # before scoring the first rows in vain
                regroup = not all(self._seems_grouped(table) for _, table in first)
            every = chain(map(first.pop, range(-len(first), 0)), tables)  # `pop` frees the first table
            make = self._regrouped if regroup else self._whole_lists if self._is_lists else self._whole_tables
            yield from starmap(part_of, make(every))
        checks.warn()
        self._known_grouped = not regroup

    def _nothing(self) -> Rankings:
        return self._rankings(pa.Table.from_batches([], pa.schema(self._dataset.types)), 0, None)

    # ---- rows grouped by query ----

    def _seems_grouped(self, table: pa.Table) -> bool:
        try:
            self._groups().of(table.slice(0, _LOOK), 0)
        except NotGroupedError:
            return False
        return True

    def _whole_lists(self, tables: Iterable[tuple[int, pa.Table]]) -> Iterator[Part]:
        groups = None if self.columns.query is None else self._groups(is_begun=True)
        for first_row, table in tables:
            if len(table):
                if groups is not None:
                    ids, _, continues = groups.of(table, first_row)
                    if continues:
                        raise groups.refuse(ids, first_row)
                yield table, first_row, None
            self._tell(first_row + len(table))

    def _whole_tables(self, tables: Iterable[tuple[int, pa.Table]]) -> Iterator[Part]:
        """Yield the rows of the queries that each table completes. The last query of a table waits, since the
        next table may continue it.
        """
        groups = self._groups(is_begun=True)
        begun: list[pa.Table] = []
        begun_id, done = pa.nulls(0), 0
        for first_row, table in tables:
            if not len(table):
                continue
            ids, offsets, continues = groups.of(table, first_row)
            if begun:
                # scored together with this table: scoring it alone took as long as copying two columns
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
                # a slice would keep the whole table in memory
                begun = [pa.table(list(map(copied, begun[0].columns)), names=begun[0].column_names)]
            del table, rows  # free them before waiting for the next table
            self._tell(done)
        if begun_id:
            queries = Grouped(begun_id, np.array([0, len(begun[0])]))
            yield begun[0], done - len(begun[0]), queries

    # ---- rows in any order ----

    def _regrouped(
        self, tables: Iterable[tuple[int | Int64, pa.Table]], expected: int = 0, turn: int = 0
    ) -> Iterator[Part]:
        """Yield all rows together if they fit into memory, or else in parts by hash of the query."""
        dataset, spill = self._dataset, None
        held: list[tuple[Any, pa.Table]] = []
        size = rows = 0
        with ExitStack() as opened:
            for numbers, table in tables:
                held += [(numbers, table)] if len(table) else []
                size, rows = size + table.nbytes, rows + len(table)
                del table
                if not (dataset.is_exact or turn):
                    self._per_row = size / max(rows, 1)
                    if size <= max(self._in_memory, self._memory - rows * _ORDERING):
                        continue
                if spill is None:
                    expected = expected or max(self.n_rows, _MORE * rows)
                    n_bytes = int(self._per_row + 8) * expected
                    spill = opened.enter_context(Spill(self._parts_of(expected), n_bytes, turn))
                while held:
                    of_rows, rest = held.pop(0)
                    with naming(dataset.paths):
                        ids = checked_ids(rest, self.columns, of_rows + dataset.first_row)
                    spill.add(rest, ids, of_rows)
                    del rest, ids
                if not turn:
                    self._tell(rows // 2)
            if spill is None:
                nothing = pa.Table.from_batches([], pa.schema(dataset.types))
                every = [table for _, table in held] or [nothing]
                yield pa.concat_tables(every, promote_options="default"), 0, None
                return
            for part, count in enumerate(spill.rows):
                # larger than expected; not divided again and again, since one query may have all rows
                if turn < _TURNS and self._parts_of(count) > 2 and not dataset.is_exact:
                    yield from self._regrouped(spill.tables(part, len(spill.rows)), count, turn + 1)
                    continue
                for of_part, whole in spill.tables(part):
                    columns = dict(zip(whole.column_names, whole.columns, strict=True))
                    for name in self.columns.keep:  # codes may have been narrowed
                        columns[name] = columns[name].cast(dataset.types[name])
                    with naming(dataset.paths):
                        grouped = grouped_rows(whole, self.columns, of_part + dataset.first_row)
                    yield pa.table(columns), of_part, grouped
                    del of_part, whole, columns, grouped

    def _parts_of(self, n_rows: int) -> int:
        return 1 + int((self._per_row + _ORDERING) * n_rows // (self._memory // 2))

    # ---- reading ----

    def _tables(self, names: list[str]) -> Generator[tuple[int, pa.Table], None, None]:
        """Yield the number of the first row, and the named columns, of each table in order."""
        in_flight = self._decoders + 4
        most = max(1, int(self._memory / (self._per_row * in_flight + _SCORING)))
        readers, done = self._dataset.readers(names, most), 0

        def number(table: pa.Table) -> tuple[int, pa.Table]:
            nonlocal done
            done += len(table)
            return done - len(table), table

        with closing(decoded_ahead(readers, self._decoders)) as tables:
            yield from map(number, tables)  # a loop would keep a table while waiting for the next
        self.n_rows = done

    def _rankings(self, table: pa.Table, numbers: int | Int64, grouped: Grouped | None) -> Rankings:
        """Return rankings of these rows. Errors in spilled rows are reported for the first faulty row."""
        try:
            with naming(self._dataset.paths), dispatch.part_of(self.n_rows, len(table)):
                fields = fields_of_table(
                    table,
                    self.columns,
                    to_decode=self._dataset.encoded,
                    numbers=numbers + self._dataset.first_row,
                    grouped=grouped,
                )
        except InputError:
            if isinstance(numbers, int) or not self._dataset.can_be_read_again:
                raise
            with closing(self._tables(list(self._dataset.types))) as tables:
                for first_row, beginning in tables:
                    if len(beginning):
                        self._rankings(beginning, first_row, None)
            raise  # concerns rows that are far apart
        return Rankings._of(**fields)

    def _tell(self, done: int) -> None:
        if callable(self._progress):
            self._progress(done, self.n_rows)
        else:
            advance(done, self.n_rows)

    def _groups(self, *, is_begun: bool = False) -> Groups:
        return Groups(self._dataset, is_gone=is_begun and not self._dataset.can_be_read_again)

    # ---- for `Scores` ----

    def _count(self, count: Callable[[Rankings], npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
        """Return a number for each query, in the order of `evaluate`."""
        from fastndcg.measures import NumRet
        from fastndcg.scores.scores import Scores

        def counted(part: Rankings) -> Scores:
            return Scores([NumRet], count(part)[None], np.zeros((1, len(part)), np.bool_), part, None)

        row: npt.NDArray[np.float64] = evaluate_stream(self, counted).values[0]
        return row


def evaluate_stream(stream: TableStream, score: Callable[[Rankings], Scores]) -> Scores:
    """Return the scores of all queries of a stream, in order of first appearance; `score` scores a part."""
    with Task("Reading and scoring", "rows", stream._progress):
        try:
            return _evaluate(stream, score, regroup=False)
        except NotGroupedError:
            if stream.grouped:
                raise
        return _evaluate(stream, score, regroup=True)


def _evaluate(stream: TableStream, score: Callable[[Rankings], Scores], *, regroup: bool) -> Scores:
    from fastndcg.scores.signatures import digests_of  # here, since those who score arrays need no results

    parts: list[Scores] = []
    first_rows: list[Int64] = []
    digests = digests_of(stream._nothing())
    stream._documents = 0
    with closing(stream._parts(regroup=regroup)) as stream_parts:
        for rankings, rows in stream_parts:
            rows_of_part = rankings.n_queries if stream._is_lists else rankings.n_docs
            with dispatch.part_of(stream.n_rows, rows_of_part):
                attached = score(rankings)
            digests = digests + attached._digests_in() if stream.keeps_digests else digests
            scored = _detach(attached)
            del attached
            stream._documents += rankings.n_docs
            del rankings  # free them before waiting for the next part
            if rows is not None:
                first_rows.append(rows)
            parts.append(scored)
            # without joining, ids of 4.6 million queries kept twice their size from being reclaimed
            while len(parts) > 1 and len(parts[-2].queries) <= 2 * len(parts[-1].queries):
                joined = _join(parts[-2:])
                parts[-2:] = [joined._of(joined.queries.combine_chunks())]
    scores = _join(parts) if parts else score(stream._nothing())
    if first_rows:
        order = np.argsort(np.concatenate(first_rows))
        scores = scores._of(scores.queries.take(column_of(order)), order)
    # scores keep the digests of their data, or the stream from which these can be computed
    scores.__dict__.update({"_digests": digests} if stream.keeps_digests else {"_stream": stream})
    return scores


def _detach(scores: Scores) -> Scores:
    """Return the scores without references to arrays of documents, and without unused dictionary values."""
    queries = scores.queries
    for place, field in enumerate(queries.schema):
        column = queries[field.name]
        if pa.types.is_dictionary(field.type) and sum(len(chunk.dictionary) for chunk in column.chunks) > len(
            column
        ):
            column = decode(column).dictionary_encode().cast(column.type)
            queries = queries.set_column(place, field, column)
    return scores._of(queries)


def _join(parts: list[Scores]) -> Scores:
    first = parts[0]
    if len(parts) == 1:
        return first
    weight = None
    if first.weight is not None:
        weight = np.concatenate([part.weight for part in parts if part.weight is not None])
    queries = pa.concat_tables([part.queries for part in parts]).unify_dictionaries()
    return first._join(parts, queries, weight)


# ---- memory ----

_MEMORY = 128 << 20
_LEAST_MEMORY = 1 << 20
_AMOUNT = r"\s*(\d+(?:\.\d*)?(?:e\+?\d+)?)\s*([kmgt]?)i?b?\s*"
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def bytes_of(memory: int | str | None) -> int:
    """Parse an amount of memory, a number or a string such as "2GB", into bytes.

    >>> bytes_of("512 MB"), bytes_of("1.5g")
    (536870912, 1610612736)
    """
    if memory is None:
        return _MEMORY
    match = re.fullmatch(_AMOUNT, str(memory), re.IGNORECASE)
    number = float(match[1]) * (1 << _UNITS[match[2].lower()]) if match else 0.0
    if not _LEAST_MEMORY <= number < 1 << 60:
        shown = f'"{memory}"' if isinstance(memory, str) else repr(memory)
        raise InputError(
            f'memory={shown} is not an amount of memory; expected at least "1 MB", for example "512 MB"'
        )
    return int(number)
