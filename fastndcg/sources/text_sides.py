"""Sides from TREC files and from runs of MS MARCO."""

from __future__ import annotations

import io
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastndcg.common.arrays import negate
from fastndcg.errors import SourceError
from fastndcg.sources.formats import LOOK, TABLE, TREC, format_of, is_ranked
from fastndcg.sources.line_blocks import INTENTS, QRELS, RANKED, RUN, fields_of
from fastndcg.sources.lines import Lines, read_lines, whole
from fastndcg.sources.opening import cannot_read, file_system, open_unpacking, path_of
from fastndcg.sources.sides import Role, Side, by_document, in_order, refuse_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastndcg.sources.columns import Roles
    from fastndcg.sources.opened import Format
    from fastndcg.typing import Path as PathLike

_LONGEST_FIRST = 1 << 20  # bytes of the first line that are looked at


def run_side(path: PathLike, roles: Roles, threads: int | None) -> Side:
    """A TREC run, or one of MS MARCO, whose first line has three fields; a lower rank is a higher score."""
    name = path_of(path, "run")
    refuse_columns(name, "score", roles, "a run whose fields have no names")
    if not is_ranked(_first_fields(name)):
        return text_side(name, "score", threads, roles)
    lines = read_lines(name, RANKED, threads=threads)
    place = _line_namer(lines)
    with np.errstate(invalid="ignore"):
        is_rank = (lines.values >= 0) & (lines.values == np.floor(lines.values)) & (lines.values < 1 << 53)
    if not is_rank.all():
        row = int(np.argmin(is_rank))
        raise SourceError(
            f"{place(row)}: the rank is {lines.values[row]:g}; wanted a whole number, 1 for the best: "
            f"{RANKED.wanted}"
        )
    ranked = negate(lines.values)
    return Side(name, lines.queries, lines.query_codes, lines.docs, ranked, place, is_ordered=True)


def _first_fields(name: str) -> list[bytes]:
    """Fields of the first line that is neither empty nor a comment; none of a pipe."""
    with _beginning(name) as stream:
        if stream is None:
            return []
        with io.BufferedReader(stream) as lines:
            while line := lines.readline(_LONGEST_FIRST):
                fields = fields_of(line.removeprefix(b"\xef\xbb\xbf"))
                if fields and not fields[0].startswith(b"#"):
                    return fields
    return []


@contextmanager
def _beginning(name: str) -> Iterator[Any]:
    """A stream to look at the beginning of a file; None for a pipe, from which what is read is gone."""
    with open_unpacking(name) as stream:
        is_pipe = isinstance(stream, io.FileIO) and not stream.seekable()
        try:
            yield None if is_pipe else stream
        except OSError as error:
            raise cannot_read(name, error) from None


def text_side(
    path: PathLike, role: Role, threads: int | None, roles: Roles | None = None, *, intents: bool = False
) -> Side:
    """Judgments or a run of a TREC file."""
    form = RUN if role == "score" else INTENTS if intents else QRELS
    name = path_of(path, "run" if role == "score" else "qrels")
    lines = read_lines(name, form, threads=threads)
    if not len(lines.values):
        what = "documents" if role == "score" else "judgments"
        raise SourceError(f"{name} has no {what}; wanted at least one: {form.wanted}")
    values, tag = (lines.values, lines.last[5]) if role == "score" else (whole(lines.values), "")
    side = Side(name, lines.queries, lines.query_codes, lines.docs, values, _line_namer(lines), tag)
    side = side if roles is None else in_order(side, role, roles)
    return by_document(side, lines.intents) if intents else side


def _line_namer(lines: Lines) -> Callable[[int], str]:
    return lambda row: f"{lines.path}, line {lines.line_of(row)}"


def format_of_side(name: str, *, has_rank: bool) -> Format:
    """The format of judgments or a run. Raises `SourceError` for a file that cannot be read."""
    if _is_many(name):
        return TABLE
    with _beginning(name) as stream:
        return TREC if stream is None else format_of(name, bytes(stream.read(LOOK)), has_rank=has_rank)


def _is_many(name: str) -> bool:
    """Whether a path may stand for several files: a folder, or a pattern."""
    is_pattern = any(sign in name for sign in "*?[")
    if "://" in name:
        from pyarrow import fs

        system, inside = file_system(name)
        kind = system.get_file_info(inside).type
        return bool(kind == fs.FileType.Directory or (is_pattern and kind == fs.FileType.NotFound))
    path = Path(name)
    return path.is_dir() or (is_pattern and not path.exists())
