"""Open the tables and files that a caller passes in place of rankings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastndcg.errors import Argument, Call, InputTypeError, Part, SourceError, Step
from fastndcg.sources import csv, parquet, whole
from fastndcg.sources.arrow import rankings_from_arrow
from fastndcg.sources.formats import (
    ARROW,
    CSV,
    JSON,
    LETOR,
    NESTED,
    PARQUET,
    TABLE,
    TREC,
    Format,
    format_of,
    format_of_name,
    start_of,
    unpacked_file,
)

if TYPE_CHECKING:
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources import ltr
    from fastndcg.sources.columns import Roles
    from fastndcg.sources.scan import FileStream
    from fastndcg.sources.streams import RankingsStream
    from fastndcg.typing import Path as PathLike

    Chosen = parquet.Dataset | csv.Opened | whole.Opened | ltr.Opened

IN_MEMORY = 1 << 30  # bytes; larger files are read a part at a time
_SMALL = 1 << 24  # bytes; CSV files up to this size fit into IN_MEMORY even if they are packed
Opened = parquet.Opened | csv.Opened | whole.Opened
_BOTH: tuple[Part, ...] = (
    "both are needed, as ",
    Argument("qrels"),
    " and ",
    Argument("run"),
    Step(" of ", Call("read_qrels_run")),
)
_OTHERS: dict[Format | None, tuple[Part, ...]] = {
    LETOR: (
        " is a LETOR file, which has grades but no scores",
        Step("; give ", Argument("scores")),
        Step(" of ", Call("read_ltr")),
    ),
    TREC: (" is a TREC file of judgments or of a run; ", *_BOTH),
    NESTED: (" has judgments or a run, as query -> documents; ", *_BOTH),
}


def open_tables(paths: list[PathLike], threads: int | None, kind: Format | None = None) -> Opened:
    """Open files of one format: list them, and read the footer, header or schema of each once.

    `kind` is the format of the first file, if it is known. Raises `SourceError` if a file cannot be opened.
    """
    from fastndcg.sources.paths import find_files

    files = find_files(paths, TABLE)
    first, is_packed = files[0], False
    # trust the name of a remote Parquet file: to look at its bytes would be another request
    if first.is_local or format_of_name(first.path) is not PARQUET:
        start, is_packed = start_of(first)
        kind = kind or format_of(first.path, start)
    if kind in _OTHERS:
        raise SourceError(first.path, *_OTHERS[kind])
    if kind is CSV:
        return csv.open_files(paths, files)
    if is_packed and kind is not JSON:
        files = [unpacked_file(file) for file in files]
    if kind is JSON or kind is ARROW:
        return whole.open_files(paths, files, kind)
    return parquet.open_files(paths, files, threads)


def rankings_or_stream(
    data: Any,
    roles: Roles,
    *,
    threads: int | None = None,
    with_doc_id: bool = False,
    in_memory: int = IN_MEMORY,
) -> Rankings | RankingsStream:
    """Return the rankings of a table or of files, or a stream if the files have more than `in_memory` bytes.

    Raises as `read_parquet`, `read_csv` and `Rankings.from_arrow` do.
    """
    if isinstance(data, Mapping):
        _refuse_several(data)
    if not is_path(data):
        return rankings_from_arrow(data, roles, with_doc_id=with_doc_id)
    chosen = open_tables(parquet.as_list(data), threads).choose(roles, with_doc_id=with_doc_id)
    stream = scan_chosen(chosen, threads)
    return chosen.read(threads) if stream is None or stream.nbytes <= in_memory else stream


def _refuse_several(data: Mapping[Any, Any]) -> None:
    """Raise `InputTypeError` for a dict of systems, or for judgments without a run."""
    from fastndcg.rankings.rankings import Rankings
    from fastndcg.scores.scores import Scores

    kinds = {type(each).__name__ for each in data.values() if isinstance(each, Rankings | Scores)}
    if kinds:
        raise InputTypeError(
            f"rankings is a dict of {' and '.join(sorted(kinds))}; evaluate takes one system. Compare them, "
            "as in fastndcg.compare(systems, measures), or evaluate each, as in "
            "{name: fastndcg.evaluate(each, measures) for name, each in systems.items()}"
        )
    if data and all(isinstance(each, Mapping) for each in data.values()):
        raise InputTypeError(
            "rankings is a dict of dicts, as judgments or a run are; give both, as in "
            "evaluate(qrels, run, measures)"
        )


def scan_chosen(chosen: Chosen, threads: int | None, memory: int | None = None) -> FileStream | None:
    """Return a stream, or None if it can only be read whole. Raises as `scan_parquet` and `scan_csv` do."""
    from fastndcg.sources.scan import ParquetStream, threads_ahead

    workers = threads_ahead(threads)
    if isinstance(chosen, parquet.Dataset):
        return ParquetStream(chosen, threads=workers, memory=memory)
    if not isinstance(chosen, csv.Opened) or (memory is None and chosen.size < _SMALL):
        return None
    from fastndcg.sources.scan_csv import CsvStream

    return CsvStream(chosen, threads=workers, memory=memory)


def is_path(data: Any) -> bool:
    """Whether `data` is a path or a list of paths."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)
