"""Files that workers read themselves: what each of them reads, and what it makes of it.

    paths -> columns, and shares of about equal size -> a worker reads its share as `scan_parquet` does
          -> queries that only it has are scored there; the rows of others go to the block of their query

By the footer of a Parquet file, a row group has no ids but from its least to its greatest. Where these ranges
share at most their ends, a share lacks rows of no query but of those. Otherwise rows are in any order, unless
the caller says that they stand together.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fastndcg.adapters import parcels, parts
from fastndcg.adapters.parts import Options, Task, make_task
from fastndcg.common.arrow_types import decode, is_text
from fastndcg.errors import ColumnError, SourceError
from fastndcg.measures.by_tool import as_convention
from fastndcg.sources.csv import CSV, CsvFiles
from fastndcg.sources.given import open_tables
from fastndcg.sources.parquet import PARQUET, ParquetFiles
from fastndcg.sources.paths import as_list
from fastndcg.sources.scan import FileStream
from fastndcg.sources.streams import NotGroupedError, ReadAgainError

if TYPE_CHECKING:
    from fastndcg.measures import Measures
    from fastndcg.sources.columns import Columns
    from fastndcg.sources.opened import Format, Opened
    from fastndcg.sources.paths import File, Stamp
    from fastndcg.typing import Path as PathLike

# of a share, decoded: a task of Spark takes 70 ms of processor time, in which most of this is read and scored
_BYTES = 128 << 20
_SUMS = 16  # shares whose sums and edges one task joins
_WIDER = (pa.null(), pa.int64(), pa.bool_(), pa.float64(), pa.string())  # types of CSV, in pyarrow's order


class Files(NamedTuple):
    """What all workers are told of files."""

    job: parcels.Job
    kind: Format
    columns: Columns  # to read
    types: dict[str, pa.DataType]  # as which they are read
    scattered: bool = False  # whether the rows of a query may be anywhere


class Share(NamedTuple):
    """What one worker reads: some row groups of Parquet files, or whole files of CSV."""

    share: parcels.Share
    parts: list[tuple[File, Stamp, range]]
    size: float


class Plan(NamedTuple):
    """What an engine does with files."""

    files: Files
    shares: list[Share]

    @property
    def is_local(self) -> bool:
        """Whether no worker has rows for another."""
        is_apart = all(share.share.edges is not None and not len(share.share.edges) for share in self.shares)
        return self.files.job.task.lists or (is_apart and not self.files.scattered)


class _Unit(NamedTuple):
    """The least that can be read: a row group, or a file of CSV."""

    file: int
    group: int
    size: float


# ---- in the driver ----


def open_files(paths: PathLike | Iterable[PathLike], asked: Options) -> Opened:
    """Open Parquet or CSV, and find the columns. Raises as `read_parquet` and `read_csv` do."""
    opened = open_tables(as_list(paths), None)
    if opened.format not in (PARQUET, CSV) or any(
        isinstance(file.filesystem, str) for file, _ in _all(opened)
    ):
        raise SourceError(
            f"{opened.first} is {opened.format.name}, packed or of a format that workers do not read; "
            "wanted Parquet, or CSV, which may be packed"
        )
    if asked.order is not None:
        raise ColumnError(
            f'order="{asked.order}" is for tables of engines; files have the order of their rows'
        )
    rule = None if asked.convention is None else as_convention(asked.convention)
    return opened.choose(asked, with_doc_id=rule is not None and rule.orders_by_id)


def _all(opened: Opened) -> list[tuple[File, Stamp]]:
    if isinstance(opened, ParquetFiles):
        return [(part.file, part.stamp) for part in opened.parts]
    if isinstance(opened, CsvFiles):
        return [(file, header.stamp) for file, header in zip(opened.files, opened.headers, strict=True)]
    return []


def plan_of(
    opened: Opened,
    measures: Measures,
    asked: Options,
    *,
    workers: int,
    run: Callable[[Callable[[Share], Any], list[Share]], list[Any]],
    task: Task | None = None,
    values: bool | None = None,
) -> Plan:
    """Divide files among workers. `values` is None for results, or says whether sums keep the values.

    `run` calls a function for each share, in workers. `task` is known where the files are those of a table.
    """
    columns = opened.columns if task is None else task.columns
    order = () if asked.order is None or asked.order in columns.names else (asked.order,)
    opened = opened.with_columns(replace(columns, keep=(*columns.keep, *order)))
    rows, bytes_of_row = opened.size()
    units = _units(opened)
    shares = _divide(units, min(rows * bytes_of_row / workers, _BYTES) / max(rows * bytes_of_row, 1), workers)
    types = dict(opened.types)
    if isinstance(opened, ParquetFiles):
        types = opened.types_of(opened.columns.names)
    else:
        types = _settled(Files(_NO_JOB, opened.format, opened.columns, types), _shares(opened, shares), run)
        opened.types.update(types)
    schema = pa.schema(list(opened.types.items()))
    task = task or make_task(schema, measures, asked, columns)
    edges = None if task.lists else _edges(opened, task.query, shares)
    if edges is None and len(shares) == 1:
        edges = [pa.array([])]
    scattered = edges is None and not (asked.grouped or task.lists)
    blocks = max(workers, math.ceil(rows * bytes_of_row / _BYTES))
    if not scattered:
        blocks = min(workers, len(shares)) if values is None else math.ceil(len(shares) / _SUMS)
    job = parcels.Job(
        task,
        asked.partitions or blocks,
        _schema_of_results(task, schema) if values is None else None,
        bool(values),
        compares=edges is None and not scattered and not task.lists,
    )
    files = Files(job, opened.format, opened.columns, types, scattered)
    # the longest first, so that none is waited for at the end
    return Plan(files, sorted(_shares(opened, shares, edges), key=lambda share: -share.size))


_NO_JOB: Any = None


def _units(opened: Opened) -> list[_Unit]:
    if isinstance(opened, ParquetFiles):
        return [
            _Unit(file, group, rows)
            for file, part in enumerate(opened.parts)
            for group, rows in enumerate(part.footer.rows)
            if rows
        ]
    return [_Unit(number, 0, stamp.size or 1) for number, (_, stamp) in enumerate(_all(opened))]


def _divide(units: list[_Unit], part: float, workers: int) -> list[list[_Unit]]:
    """Divide units, in order, into shares of about this part of all, as many for each worker."""
    total, done = sum(unit.size for unit in units), 0.0
    n = workers * math.ceil(math.ceil(1 / max(part, 1e-9)) / workers)
    shares = defaultdict[int, list[_Unit]](list)
    for unit in units:
        shares[int(n * (done + unit.size / 2) / total)].append(unit)
        done += unit.size
    return list(shares.values()) or [[]]


def _shares(opened: Opened, shares: list[list[_Unit]], edges: list[pa.Array] | None = None) -> list[Share]:
    files, found = _all(opened), []
    for number, units in enumerate(shares):
        groups = defaultdict[int, list[int]](list)
        for unit in units:
            groups[unit.file].append(unit.group)
        # without rows, the first file without its row groups
        read = [(*files[file], range(min(of), max(of) + 1)) for file, of in groups.items()]
        share = parcels.Share(number, None if edges is None else edges[number])
        found.append(Share(share, read or [(*files[0], range(0))], sum(unit.size for unit in units)))
    return found


def _edges(opened: Opened, query: str, shares: list[list[_Unit]]) -> list[pa.Array] | None:
    """The ids of each share that others may have, too; None where footers do not say it."""
    if not isinstance(opened, ParquetFiles):
        return None
    kind = opened.types_of([query])[query]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    known: list[tuple[Any, Any, int]] = []
    for number, units in enumerate(shares):
        for unit in units:
            found = _range_of(opened, query, kind, unit)
            if found is None:
                return None
            known.append((*found, number))
    ids: list[set[Any]] = [set() for _ in shares]
    for (_, high, one), (low, _, other) in pairwise(sorted(known)):
        if high > low:
            return None
        if high == low and one != other:
            ids[one].add(low)
            ids[other].add(low)
    return [pa.array(sorted(each), kind) for each in ids]


def _range_of(opened: ParquetFiles, query: str, kind: pa.DataType, unit: _Unit) -> tuple[Any, Any] | None:
    part = opened.parts[unit.file]
    wanted = int if pa.types.is_integer(kind) else str
    if not (pa.types.is_integer(kind) or is_text(kind)):
        return None
    if part.type_of(query) is None:
        value = part.file.partition[query]
        return None if value is None else (wanted(value), wanted(value))
    (place,) = part.footer.places_of([query])
    known = part.footer.metadata.row_group(unit.group).column(place).statistics
    if known is None or not known.has_min_max or not isinstance(known.min, wanted):
        return None
    return known.min, known.max


def _settled(
    files: Files, shares: list[Share], run: Callable[[Callable[[Share], Any], list[Share]], list[Any]]
) -> dict[str, pa.DataType]:
    """The types that fit all rows of CSV, which workers read once for that."""
    while True:
        found = [files.types, *run(partial(types_of_share, files), shares)]
        types = {name: max((each[name] for each in found), key=_WIDER.index) for name in files.types}
        if types == files.types:
            return types
        files = files._replace(types=types)


def _schema_of_results(task: Task, schema: pa.Schema) -> pa.Schema:
    scores, _ = parts.score(task, schema.empty_table().select(task.names))
    table = scores._frame().rename_columns(task.results)
    return pa.schema([(name, decode(table[name]).type) for name in task.results])


# ---- in a worker ----


def _stream(files: Files, share: Share) -> FileStream:
    for file, stamp, _ in share.parts:
        with file.unchanged(stamp):
            pass
    # without paths, since messages do not name rows
    opened = files.kind.open([], [file for file, _, _ in share.parts], 1)
    if isinstance(opened, ParquetFiles):
        opened = opened.only([groups for _, _, groups in share.parts])
    chosen = opened.with_columns(files.columns, files.types)
    if isinstance(chosen, CsvFiles):
        chosen.block.clear()  # or a long row would have everything read again
    return FileStream(chosen, threads=1)


def types_of_share(files: Files, share: Share) -> dict[str, pa.DataType]:
    """The types that fit all rows of a share of CSV."""
    stream = _stream(files, share)
    while True:
        try:
            with closing(stream._tables(list(files.types))) as tables:
                for _ in tables:
                    pass
            return dict(stream._opened.types)
        except ReadAgainError:
            continue


def parcels_of(files: Files, share: Share) -> Iterator[pa.Table]:
    """Read and score a share. Yield parcels."""
    if files.job.compares and len(share.parts) > 1:  # files may have any order
        for number, part in enumerate(share.parts):
            begins = share.share._replace(begins=number << 20)
            yield from parcels_of(files, share._replace(share=begins, parts=[part]))
        return
    stream, names, job = _stream(files, share), list(files.types), files.job
    found: list[pa.Table] | None = None
    with parts.without_rows():
        with closing(stream._tables(names)) as numbered:
            if files.scattered:
                tables = (table for _, table in numbered if len(table))
                yield from parcels.scattered(job, tables, share.share.number)
                return
            if job.task.lists:
                rows: Iterator[parcels.Rows] = ((table, None) for _, table in numbered)
            else:
                rows = ((table, grouped) for table, _, grouped in stream._whole_tables(numbered))
            # nothing is yielded until it is known that the rows of each query stand together
            with suppress(NotGroupedError):
                found = list(parcels.together(job, rows, share.share))
        if found is None:
            with closing(stream._tables(names)) as numbered:
                whole = pa.concat_tables([table for _, table in numbered])
            found = list(parcels.together(job, [(whole, None)], share.share))
        yield from found


def results_of(files: Files, share: Share) -> Iterator[pa.Table]:
    """Read and score a share that has no rows for others. Yield its results, or its sums."""
    return parcels.joined(
        files.job, (each for table in parcels_of(files, share) for each in table.to_batches())
    )
