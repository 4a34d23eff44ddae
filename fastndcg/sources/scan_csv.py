"""Read CSV as a stream of `Rankings`: a block at a time, with the types that fit all rows so far."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from fastndcg.sources import csv
from fastndcg.sources.arrow import integers_if_written_so
from fastndcg.sources.columns import Roles, with_roles
from fastndcg.sources.messages import reading
from fastndcg.sources.opening import unpack
from fastndcg.sources.scan import FileStream, StreamOptions, threads_ahead
from fastndcg.sources.streams import ReadAgainError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from fastndcg.common.progress import Progress
    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.paths import File
    from fastndcg.typing import Path as PathLike
    from fastndcg.typing import RoleKeywords

_SAMPLE = 8 << 20  # unpacked bytes that tell how much the rest of a file unpacks to
_BLOCK = 1 << 18  # bytes that are parsed together: of four times as many parsing took a quarter longer
_ROWS = 1 << 18  # of a table: to score fewer at a time takes longer for each
# the types that pyarrow tries, in its order, of columns that are neither ids nor text
_NUMBERS = (pa.null(), pa.int64(), pa.bool_(), pa.float64())


@with_roles
def scan_csv(
    path: PathLike | Iterable[PathLike],
    *,
    grouped: bool | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: Progress = None,
    **roles: Unpack[RoleKeywords],
) -> CsvStream:
    r"""Open CSV or tab-separated files of any size, also packed, as a stream of `Rankings`, to evaluate it in
    bounded memory.

    `evaluate` returns the same bits in the same order as for `read_csv`.

    Parameters
    ----------
    path, query, relevance, score, keep, weight, doc_id, is_judged, intents, propensity
    nan, rank, ascending, unjudged, grades
        As in `read_csv`.
    grouped, memory, progress
        As in `scan_parquet`. pyarrow parses ahead, which needs some tens of megabytes in addition to
        `memory`.
    threads : int, optional
        1 parses on one thread beside the iterating one; otherwise pyarrow's threads parse. The result does
        not depend on it.

    Returns
    -------
    CsvStream
        Like the stream of `scan_parquet`. The first rows decide whether ids are integers, and the types of
        numbers. If a later row does not fit, `evaluate` starts again. Iterating the stream reads all rows
        once in advance to find the types.

    Raises
    ------
    SourceError
        As in `read_csv`; in part only while the stream is iterated.
    ColumnError, InputError, InputTypeError
        As in `read_csv`; with `grouped=True` also `InputError` for a query whose rows are not contiguous.

    See Also
    --------
    read_csv : read all rows at once.
    scan_parquet : open Parquet as a stream.
    evaluate : compute measures of the stream.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from fastndcg import evaluate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.csv").write_text("qid,label,score\na,1,0.5\nb,0,0.1\na,2,0.9\n")
    ...     scores = evaluate(scan_csv(f"{folder}/a.csv"), "nDCG@10")
    >>> scores.queries["qid"].to_pylist(), scores["nDCG@10"]
    (['a', 'b'], array([1., 0.]))
    """
    workers = threads_ahead(threads)
    opened = csv.open_csv(path).choose(Roles.of(roles, "scan_csv"))
    return CsvStream(opened, grouped=grouped, memory=memory, threads=workers, progress=progress)


class CsvStream(FileStream):
    """The result of `scan_csv`.

    Attributes
    ----------
    columns : Columns
        Which column plays which role.
    n_rows : int
        Number of rows of all files: estimated from the length of the first rows, exact once all were read.
    nbytes : int
        Approximate memory of all columns, in bytes.
    grouped : bool or None
    """

    _decoders = 1  # each with as many threads of pyarrow as there are

    def __init__(self, opened: csv.Opened, **options: Unpack[StreamOptions]) -> None:
        super().__init__(opened.paths, opened.columns, **options)
        self._opened, self._settled, self._first_row = opened, False, opened.first_row
        self._block: int | None = (
            _BLOCK  # None after a row that is longer: as large as where all is read at once
        )
        names = dict.fromkeys(self.columns.names)
        # of ids, whether they are integers is found out from their text
        self._types = dict.fromkeys(names, pa.null()) | dict.fromkeys(opened.ids, pa.int64())
        if self.columns.grades is not None:
            self._types[self.columns.relevance] = pa.string()
        self.n_rows, self._per_row = self._look()

    def __repr__(self) -> str:
        files = len(self._opened.files)
        return f"CsvStream({files} file{'s' if files > 1 else ''}, about {self.n_rows:,} rows)"

    def _look(self) -> tuple[int, float]:
        """Estimate the number of rows and their size from the first block, and set the types of columns."""
        file, header = self._opened.files[0], self._opened.headers[0]
        inferred = {name: kind for name, kind in self._read_types().items() if kind != pa.null()}
        with closing(csv.parse(file, header, list(self._types), inferred, use_threads=False)) as batches:
            try:
                batch = next(batches, None)
            except csv.MalformedError as error:
                raise self._misfit(file, header, list(self._types), error) from None
            try:
                is_all = next(batches, None) is None
            except csv.MalformedError:  # of other types than the first block, or what iterating will say
                is_all = False
        if batch is None:
            return 0, 4.0
        for name, kind in self._types.items():
            if kind == pa.int64():
                self._types[name] = integers_if_written_so(batch[name]).type
            elif kind == pa.null():
                found = batch[name].type
                self._types[name] = found if found in _NUMBERS else self._last(name)
        with reading(file.path, "CSV"):
            stream, packed = unpack(file.filesystem.open_input_file(file.path))
            with stream:
                read = len(stream.read(_SAMPLE))
                times = 1.0 if packed is None or not read else read / packed.tell()
        parsed = times * (header.stamp.size or 1) if is_all else csv.block_of(header)
        return int(len(batch) * times * self._opened.size / parsed), batch.nbytes / len(batch) + 4

    def _last(self, name: str) -> pa.DataType:
        """The type that is tried last."""
        return pa.string() if name == self.columns.is_judged else pa.float64()

    def _read_types(self) -> dict[str, pa.DataType]:
        """Types as which pyarrow reads the columns."""
        return self._types | dict.fromkeys(self._opened.ids, pa.string())

    def _stands_grouped(self) -> bool:
        while not self._settled:
            try:
                for _ in self._tables(list(self._types)):
                    pass
            except ReadAgainError:
                continue
        return super()._stands_grouped()

    # ---- reading ----

    def _tables(self, names: list[str]) -> Generator[tuple[int, pa.Table], None, None]:
        try:
            yield from super()._tables(names)
        except _MisfitError as misfit:
            if misfit.name is None:
                self._block = None
            else:
                self._types[misfit.name] = misfit.wider
            raise ReadAgainError from None
        self._settled = self._settled or set(names) == set(self._types)

    def _readers(self, names: list[str], most: int) -> Iterator[Reader]:
        opened = self._opened
        return (
            self._read(file, header, names, min(most, _ROWS))
            for file, header in zip(opened.files, opened.headers, strict=True)
        )

    def _read(self, file: File, header: csv.Header, names: list[str], most: int) -> Reader:
        types, rows = self._read_types(), 0
        batches: list[pa.RecordBatch] = []
        try:
            use_threads, block = self._threads > 1, self._block
            for batch in csv.parse(file, header, names, types, use_threads=use_threads, block=block):
                batches.append(batch)
                rows += len(batch)
                if rows >= most:
                    yield self._table(batches)
                    batches, rows = [], 0
        except csv.MalformedError as error:
            raise self._misfit(file, header, names, error) from None
        if batches:
            yield self._table(batches)

    def _table(self, batches: list[pa.RecordBatch]) -> pa.Table:
        table = pa.Table.from_batches(batches)
        for name in self._opened.ids & set(table.column_names):
            if self._types[name] == pa.int64():
                ids = csv.as_integers(table[name])
                if ids.type == pa.string():
                    raise _MisfitError(name, pa.string())
                table = table.set_column(table.column_names.index(name), name, ids)
        return table

    def _misfit(
        self, file: File, header: csv.Header, names: list[str], error: csv.MalformedError
    ) -> Exception:
        """The error for a row that does not parse, or the type with which its column is read next."""
        if error.is_of_length and self._block is not None:
            return _MisfitError(None)
        name = error.column(header)
        kind = self._read_types().get(name) if name is not None else None
        if name is not None and kind in _NUMBERS and kind != self._last(name):
            place = _NUMBERS.index(kind) + 1
            return _MisfitError(name, _NUMBERS[place] if place < len(_NUMBERS) else pa.string())
        try:  # pyarrow numbers rows only on one thread
            for _ in csv.parse(file, header, names, self._read_types(), use_threads=False):
                pass
        except csv.MalformedError as numbered:
            error = numbered
        return csv.fault_of(file.path, header, str(error), self.columns.relevance)


class _MisfitError(Exception):
    """A value does not fit its column's type; `wider` is the next. Without a name, a row exceeds a block."""

    def __init__(self, name: str | None, wider: pa.DataType | None = None) -> None:
        super().__init__(name)
        self.name, self.wider = name, wider
