"""Files that workers read themselves: how they are split, read and scored.

    paths -> columns, and splits of about equal size -> a worker reads its split as `scan_parquet` does
          -> queries that only it has are scored there; the rows of others go to the block of their query

By the footer of a Parquet file, a row group has no ids but from its least to its greatest. Where these ranges
overlap at most at their ends, a split lacks rows of no query but of those. Otherwise rows are in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastndcg.adapters import scoring, shuffle
from fastndcg.adapters.shuffle import Split
from fastndcg.common.arrow_types import is_text
from fastndcg.errors import SourceError
from fastndcg.measures.conventions import as_convention
from fastndcg.sources.inputs import open_tables
from fastndcg.sources.parquet import PARQUET, ParquetFiles
from fastndcg.sources.paths import as_list
from fastndcg.sources.regrouping import NotGroupedError
from fastndcg.sources.streams import TableStream
from fastndcg.tables.roles import check_column

if TYPE_CHECKING:
    from fastndcg.adapters.scoring import Options
    from fastndcg.tables.roles import Columns
    from fastndcg.typing import Path as PathLike

# of a split, decoded: a task of Spark takes 70 ms of processor time, in which most of this is read and scored
_BYTES = 128 << 20
_SUMS = 16  # splits whose sums and edges one task joins


class Plan(NamedTuple):
    """How an engine collects packed chunks and computes results from them."""

    job: shuffle.Job
    read: Callable[[Any], Iterator[pa.Table]]  # the chunks of a partition, or of a split of files
    splits: list[Split] | None = None  # None: the engine reads its table
    is_local: bool = False  # whether no worker has rows for another


# ---- in the driver ----


def open_files(paths: PathLike | Iterable[PathLike], options: Options) -> ParquetFiles:
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
    rule = None if options.convention is None else as_convention(options.convention)
    opened = opened.choose(options.of_one_system, with_doc_id=rule is not None and rule.needs_ids)
    for name in options.systems:
        check_column(opened.names, "score", name)
    names = [*opened.columns.names, *options.systems]
    return replace(opened, types=opened.types_of(list(dict.fromkeys(names))))


def plan_of(opened: ParquetFiles, options: Options, job: shuffle.Job, workers: int) -> Plan:
    """Divide files among workers."""
    rows, bytes_of_row = opened.size()
    n_bytes = rows * bytes_of_row
    splits = _divide(opened, min(n_bytes / workers, _BYTES) / max(n_bytes, 1), workers)
    task = job.task
    edges = None if task.lists else _edges(opened, task.columns, splits)
    if edges is None and len(splits) == 1:
        edges = [pa.array([])]
    scattered = edges is None and not task.lists
    blocks = max(workers, math.ceil(n_bytes / _BYTES))
    if not scattered:
        blocks = min(workers, len(splits)) if job.results else math.ceil(len(splits) / _SUMS)
    job = job._replace(blocks=options.partitions or blocks, scattered=scattered, rows=rows)
    is_local = not scattered and not any(map(len, edges or ()))
    if edges is not None:
        splits = [split._replace(edges=ids) for split, ids in zip(splits, edges, strict=True)]
    # the longest first, so that none is waited for at the end
    splits.sort(key=lambda split: -split.size)
    return Plan(job, partial(read_split, job, opened.types), splits, is_local)


def _divide(opened: ParquetFiles, part: float, workers: int) -> list[Split]:
    """Divide row groups, in order, into splits, as many for each worker."""
    units = [
        (each.file, each.stamp, group, rows)
        for each in opened.parts
        for group, rows in enumerate(each.rows)
        if rows
    ]
    if not units:  # without rows, the first file without its row groups
        return [Split(parts=[(opened.parts[0].file, opened.parts[0].stamp, range(0))])]
    sizes = np.array([rows for *_, rows in units])
    n = workers * math.ceil(math.ceil(1 / max(part, 1e-9)) / workers)
    numbers = (n * (np.cumsum(sizes) - sizes / 2) / sizes.sum()).astype(np.int64)
    splits = list[Split]()
    for _, chosen in groupby(zip(numbers.tolist(), units, strict=True), itemgetter(0)):
        of_split = [unit for _, unit in chosen]
        of_files = [[*each] for _, each in groupby(of_split, lambda unit: unit[0].path)]
        parts = [(one[0][0], one[0][1], range(one[0][2], one[-1][2] + 1)) for one in of_files]
        splits.append(Split(len(splits), parts=parts, size=sum(rows for *_, rows in of_split)))
    return splits


def _edges(opened: ParquetFiles, columns: Columns, splits: list[Split]) -> list[pa.Array] | None:
    """Ids at the edges of each split, which other splits may share; None if footers lack statistics."""
    if len(columns.id_columns) > 1:
        return None
    (query,) = columns.id_columns
    kind = opened.types_of([query])[query]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    python_type = int if pa.types.is_integer(kind) else str
    if not (pa.types.is_integer(kind) or is_text(kind)):
        return None
    ranges: list[tuple[Any, Any, int]] = []
    of_files = {part.file.path: part for part in opened.parts}
    for split in splits:
        for file, _, groups in split.parts:
            part = of_files[file.path]
            for group in (group for group in groups if part.rows[group]):
                if query not in part.schema.names:  # a partition
                    value = file.partition[query]
                    ends = None if value is None else (python_type(value), python_type(value))
                else:
                    bounds = part.chunks(query, [group])[0].statistics
                    ends = (bounds.min, bounds.max) if bounds is not None and bounds.has_min_max else None
                if ends is None or not isinstance(ends[0], python_type):
                    return None
                ranges.append((*ends, split.number))
    ids: list[set[Any]] = [set() for _ in splits]
    for (_, high, one), (low, _, other) in pairwise(sorted(ranges)):
        if high > low:
            return None
        if high == low and one != other:
            ids[one].add(low)
            ids[other].add(low)
    return [pa.array(sorted(each), kind) for each in ids]


# ---- in a worker ----


def _stream(columns: Columns, types: dict[str, pa.DataType], split: Split) -> TableStream:
    for file, stamp, _ in split.parts:
        file.check(stamp)
    # without paths, since messages do not name rows
    opened = PARQUET.open([], [file for file, _, _ in split.parts], 1)
    opened = opened.only([groups for _, _, groups in split.parts])
    return TableStream(opened.with_columns(columns, types), threads=1)


def read_split(job: shuffle.Job, types: dict[str, pa.DataType], split: Split) -> Iterator[pa.Table]:
    """Read and score a split. Yield packed chunks."""
    stream, names = _stream(job.task.columns, types, split), list(types)
    with scoring.without_rows():
        with closing(stream._tables(names)) as numbered:
            if job.scattered:
                yield from shuffle.pack_rows(job, (table for _, table in numbered), split.number)
                return
            rows: Iterator[shuffle.Rows] = ((table, None) for _, table in numbered)
            if not job.task.lists:
                rows = ((table, grouped) for table, _, grouped in stream._whole_tables(numbered))
            with suppress(NotGroupedError):
                # nothing is yielded until it is known that the rows of each query stand together
                yield from list(shuffle.score_or_pack(job, rows, split))
                return
        with closing(stream._tables(names)) as numbered:
            table_of_split = pa.concat_tables([table for _, table in numbered])
        yield from shuffle.score_or_pack(job, [(table_of_split, None)], split)
