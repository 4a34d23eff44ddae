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
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fastndcg.adapters import shuffle, worker
from fastndcg.adapters.shuffle import Share
from fastndcg.common.arrow_types import is_text
from fastndcg.errors import SourceError
from fastndcg.measures.conventions import as_convention
from fastndcg.sources.inputs import open_tables
from fastndcg.sources.parquet import PARQUET, ParquetFiles
from fastndcg.sources.paths import as_list
from fastndcg.sources.scanning import FileStream
from fastndcg.sources.streams import NotGroupedError

if TYPE_CHECKING:
    from fastndcg.adapters.worker import Options
    from fastndcg.tables.roles import Columns
    from fastndcg.typing import Path as PathLike

# of a share, decoded: a task of Spark takes 70 ms of processor time, in which most of this is read and scored
_BYTES = 128 << 20
_SUMS = 16  # shares whose sums and edges one task joins


class Files(NamedTuple):
    """What all workers are told of files."""

    columns: Columns  # to read
    types: dict[str, pa.DataType]  # as which they are read


class Plan(NamedTuple):
    """What an engine does: where parcels come from, and what is made of them."""

    job: shuffle.Job
    read: Callable[[Any], Iterator[pa.Table]]  # the parcels of a part of a table, or of a share of files
    shares: list[Share] | None = None  # None: the engine reads its table
    is_local: bool = False  # whether no worker has rows for another


# ---- in the driver ----


def open_files(paths: PathLike | Iterable[PathLike], asked: Options) -> ParquetFiles:
    """Open Parquet, and find the columns. Raises as `read_parquet` does."""
    opened = open_tables(as_list(paths), None)
    if not isinstance(opened, ParquetFiles) or any(
        isinstance(part.file.filesystem, str) for part in opened.parts
    ):
        kind = "packed" if isinstance(opened, ParquetFiles) else opened.format.name
        raise SourceError(
            f"{opened.first} is {kind}; expected Parquet, of which each worker reads row groups of its own. "
            "Convert it, or read it with the engine and pass the table to evaluate or summary"
        )
    rule = None if asked.convention is None else as_convention(asked.convention)
    return opened.choose(asked, with_doc_id=rule is not None and rule.needs_ids)


def plan_of(
    opened: ParquetFiles,
    asked: Options,
    make: Callable[[pa.Schema, Columns], shuffle.Job],
    workers: int,
) -> Plan:
    """Divide files among workers. `make` makes the job but for its blocks."""
    rows, bytes_of_row = opened.size()
    n_bytes = rows * bytes_of_row
    shares = _divide(opened, min(n_bytes / workers, _BYTES) / max(n_bytes, 1), workers)
    names = opened.columns.names
    files = Files(opened.columns, opened.types_of(names))
    job = make(pa.schema(list(files.types.items())), opened.columns)
    task = job.task
    edges = None if task.lists else _edges(opened, task.columns, shares)
    if edges is None and len(shares) == 1:
        edges = [pa.array([])]
    scattered = edges is None and not (asked.grouped or task.lists)
    blocks = max(workers, math.ceil(n_bytes / _BYTES))
    if not scattered:
        blocks = min(workers, len(shares)) if job.results else math.ceil(len(shares) / _SUMS)
    compares = edges is None and not scattered and not task.lists
    job = job._replace(blocks=asked.partitions or blocks, scattered=scattered, compares=compares, rows=rows)
    is_local = task.lists or (edges is not None and not any(map(len, edges)))
    if edges is not None:
        shares = [share._replace(edges=ids) for share, ids in zip(shares, edges, strict=True)]
    # the longest first, so that none is waited for at the end
    shares.sort(key=lambda share: -share.size)
    return Plan(job, partial(parcels_of, files, job), shares, is_local)


def _divide(opened: ParquetFiles, part: float, workers: int) -> list[Share]:
    """Divide row groups, in order, into shares, as many for each worker."""
    files = [(each.file, each.stamp) for each in opened.parts]
    units = [
        (file, group, rows)
        for file, of_file in enumerate(opened.parts)
        for group, rows in enumerate(of_file.rows)
        if rows
    ]
    total, done = sum(size for *_, size in units), 0.0
    n = workers * math.ceil(math.ceil(1 / max(part, 1e-9)) / workers)
    divided = defaultdict[int, dict[int, list[int]]](lambda: defaultdict(list))
    sizes = defaultdict[int, float](float)
    for file, group, size in units:
        number = int(n * (done + size / 2) / total)
        divided[number][file].append(group)
        sizes[number] += size
        done += size
    shares = list[Share]()
    for number, groups in divided.items():
        read = [(*files[file], range(min(of), max(of) + 1)) for file, of in groups.items()]
        shares.append(Share(len(shares), parts=read, size=sizes[number]))
    # without rows, the first file without its row groups
    return shares or [Share(0, parts=[(*files[0], range(0))])]


def _edges(opened: ParquetFiles, columns: Columns, shares: list[Share]) -> list[pa.Array] | None:
    """The ids of each share that others may have, too; None where footers do not say it."""
    if len(columns.id_columns) > 1:
        return None
    (query,) = columns.id_columns
    kind = opened.types_of([query])[query]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    wanted = int if pa.types.is_integer(kind) else str
    if not (pa.types.is_integer(kind) or is_text(kind)):
        return None
    known: list[tuple[Any, Any, int]] = []
    of_files = {part.file.path: part for part in opened.parts}
    for share in shares:
        for file, _, groups in share.parts:
            part = of_files[file.path]
            for group in (group for group in groups if part.rows[group]):
                if query not in part.schema.names:  # a partition
                    value = file.partition[query]
                    ends = None if value is None else (wanted(value), wanted(value))
                else:
                    found = part.chunks(query, [group])[0].statistics
                    ends = (found.min, found.max) if found is not None and found.has_min_max else None
                if ends is None or not isinstance(ends[0], wanted):
                    return None
                known.append((*ends, share.number))
    ids: list[set[Any]] = [set() for _ in shares]
    for (_, high, one), (low, _, other) in pairwise(sorted(known)):
        if high > low:
            return None
        if high == low and one != other:
            ids[one].add(low)
            ids[other].add(low)
    return [pa.array(sorted(each), kind) for each in ids]


# ---- in a worker ----


def _stream(files: Files, share: Share) -> FileStream:
    for file, stamp, _ in share.parts:
        file.check(stamp)
    # without paths, since messages do not name rows
    opened = PARQUET.open([], [file for file, _, _ in share.parts], 1)
    opened = opened.only([groups for _, _, groups in share.parts])
    return FileStream(opened.with_columns(files.columns, files.types), threads=1)


def parcels_of(files: Files, job: shuffle.Job, share: Share) -> Iterator[pa.Table]:
    """Read and score a share. Yield parcels."""
    if job.compares and len(share.parts) > 1:  # files may have any order
        for number, part in enumerate(share.parts):
            yield from parcels_of(files, job, share._replace(begins=number << 20, parts=[part]))
        return
    stream, names = _stream(files, share), list(files.types)
    found: list[pa.Table] | None = None
    with worker.without_rows():
        with closing(stream._tables(names)) as numbered:
            if job.scattered:
                yield from shuffle.scattered(job, (table for _, table in numbered), share.number)
                return
            if job.task.lists:
                rows: Iterator[shuffle.Rows] = ((table, None) for _, table in numbered)
            else:
                rows = ((table, grouped) for table, _, grouped in stream._whole_tables(numbered))
            # nothing is yielded until it is known that the rows of each query stand together
            with suppress(NotGroupedError):
                found = list(shuffle.together(job, rows, share))
        if found is None:
            with closing(stream._tables(names)) as numbered:
                whole = pa.concat_tables([table for _, table in numbered])
            found = list(shuffle.together(job, [(whole, None)], share))
        yield from found
