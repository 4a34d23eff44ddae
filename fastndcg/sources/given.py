"""What a function is given in place of rankings: a table of any kind, or the path of files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fastndcg.sources.arrow import rankings_from_arrow

if TYPE_CHECKING:
    from fastndcg.rankings import Rankings
    from fastndcg.sources.columns import Roles
    from fastndcg.streams import RankingsStream

IN_MEMORY = 1 << 30  # bytes: larger files are read a part at a time


def rankings_or_stream(
    data: Any, roles: Roles, *, threads: int | None = None, with_doc_id: bool = False
) -> Rankings | RankingsStream:
    """Rankings of a table or of files; a stream of those files that are too large to be read at once.

    Raises as `read_parquet`, `read_csv` and `Rankings.from_arrow` do.
    """
    if not is_path(data):
        return rankings_from_arrow(data, roles, with_doc_id=with_doc_id)
    from fastndcg.sources import csv, parquet
    from fastndcg.sources.scan import ParquetStream, threads_ahead

    if csv.are_csv(parquet.as_list(data)):
        return csv.read_opened(csv.open_csv(data).choose(roles, with_doc_id=with_doc_id), threads)
    dataset = parquet.open_parquet(data, threads).choose(roles, with_doc_id=with_doc_id)
    stream = ParquetStream(dataset, threads=threads_ahead(threads))
    return stream if stream.nbytes > IN_MEMORY else parquet.read_dataset(dataset)


def is_path(data: Any) -> bool:
    """Whether this is a path, or a list of paths."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)
