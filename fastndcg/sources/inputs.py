"""Open the tables and files that a caller passes in place of rankings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastndcg.common.arrow_types import decode, plain
from fastndcg.errors import InputTypeError
from fastndcg.sources.dataset import Dataset, TextTypes
from fastndcg.sources.formats import find_tables
from fastndcg.sources.in_memory import GivenTable
from fastndcg.tables.frames import frame_of
from fastndcg.tables.roles import check_column, normalised

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from fastndcg.rankings.rankings import Rankings
    from fastndcg.sources.streams import TableStream
    from fastndcg.tables.roles import Dialect, Roles
    from fastndcg.typing import Path as PathLike

IN_MEMORY = 1 << 30  # bytes; larger files are read a part at a time


def open_tables(
    paths: list[PathLike], threads: int | None, *, named: bool = False, dialect: Dialect | None = None
) -> Dataset:
    """Open files of one format: list them, and read the footer, header or schema of each once. Raises as
    `find_tables` and `Found.open` do.
    """
    return find_tables(paths, dialect=dialect).open(threads, named=named)


def open_any(
    data: Any, threads: int | None = None, *, named: bool = False, dialect: Dialect | None = None
) -> Dataset:
    """Open a path, several of them, or a table. Raises as `open_tables` and `frame_of` do."""
    if not is_path(data):
        columns = None if dialect is None else dialect.columns
        return GivenTable(frame=frame_of(data, columns).named("data", columns))
    paths = list(data) if isinstance(data, list | tuple) else [data]
    return open_tables(paths, threads, named=named, dialect=dialect)


def rankings_or_stream(
    data: Any, roles: Roles, *, threads: int | None = None, with_doc_id: bool = False
) -> Rankings | TableStream:
    """Return the rankings of a table or of files, or a stream if the files have more than `IN_MEMORY` bytes,
    or if it is not known how many a lazy table has.
    """
    from fastndcg.sources.streams import TableStream

    if isinstance(data, TableStream):
        return data
    if isinstance(data, Mapping):
        _refuse_several(data)
    chosen = open_any(data, threads, dialect=roles.dialect()).choose(roles, with_doc_id=with_doc_id)
    return scan_if_large(chosen, threads, IN_MEMORY) or chosen.read()


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


def scan_if_large(
    chosen: Dataset, threads: int | None, in_memory: int, memory: int | None = None
) -> TableStream | None:
    """A stream of files that take more than `in_memory` bytes, by `memory` at a time; None of others. Rows
    of a lazy table that stand in any order are set aside on disk only if they take so much.
    """
    if chosen.is_small and memory is None:
        return None
    from fastndcg.sources.streams import TableStream, threads_ahead

    stream = TableStream(chosen, threads=threads_ahead(threads), memory=memory, in_memory=in_memory)
    return stream if stream.nbytes > in_memory or chosen.is_stream else None


def read_columns(
    data: Any, find: Callable[[list[str]], dict[str, str]], numbers: Collection[str]
) -> dict[str, Any]:
    """The columns of a table, or of files, by the roles that `find` gives to some of the names: plain, and
    read from text as numbers if its role is among those, or else as it looks, ids as they are written.
    """
    dataset = open_any(data, named=True)
    roles = find(dataset.names)
    texts = [name for role, name in roles.items() if role in ("query", "doc_id")]
    text = TextTypes([name for role, name in roles.items() if role in numbers], texts)
    table = replace(dataset, text=text).table([*dict.fromkeys(roles.values())])
    return {role: decode(plain(table[name])) for role, name in roles.items()}


def usual_columns(
    names: list[str], usual: Mapping[str, Collection[str]], given: Mapping[str, str | None], *needed: str
) -> dict[str, str]:
    """The columns of roles that are given, or else the first with a usual name, which is `normalised`; roles
    without one are left out unless they are needed. Raises as `find_columns` does.
    """
    found = {}
    for role, own in given.items():
        known = next((name for name in names if normalised(str(name)) in usual[role]), None)
        if own is not None or known is not None or role in needed:
            found[role] = check_column(names, role, own if own is not None else known or role)
    return found


def is_path(data: Any) -> bool:
    """Whether `data` is a path or a list of paths."""
    if isinstance(data, list | tuple) and data:
        return all(isinstance(each, str | os.PathLike) for each in data)
    return isinstance(data, str | os.PathLike)
