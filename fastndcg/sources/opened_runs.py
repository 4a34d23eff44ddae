"""Runs of any size, opened to be joined with judgments a part at a time: of TREC, of MS MARCO, and tables."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from fastndcg.common.arrow_types import array_of, in_runs, plain, without_points
from fastndcg.errors import Call, ColumnError, SourceError, Step
from fastndcg.rankings.blame import Blame
from fastndcg.sources import lines
from fastndcg.sources.columns import Columns, Roles
from fastndcg.sources.csv import CSV, CsvFiles
from fastndcg.sources.formats import NESTED, TABLE, TREC, format_of_side
from fastndcg.sources.given import open_tables
from fastndcg.sources.lines import RANKED, Block, Form
from fastndcg.sources.opened import OfText, Opened, OpenedFiles
from fastndcg.sources.opening import Held, path_of, read_once, reading
from fastndcg.sources.sides import Side, by_rank, find_columns, in_order, refuse_columns, side_of, table_side
from fastndcg.sources.streams import ReadAgainError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from fastndcg.common.arrays import Int64
    from fastndcg.sources.ahead import Reader
    from fastndcg.sources.opening import Format
    from fastndcg.sources.sides import Taken
    from fastndcg.typing import Path as PathLike

_BLOCK = 1 << 20  # bytes that are parsed together
_BLOCKS = 8  # of a table: to join and to score fewer rows at a time took longer for each
_LINE = 32  # bytes of a usual one
_JOINING = 3  # times the bytes of its columns that a run takes while it is joined
_UNPACKED = 10  # times as many bytes as a file has may come out of it


class Run(NamedTuple):
    """A run whose columns are chosen, and what makes a `Side` of rows of it and of their numbers from 0."""

    opened: Opened
    side_of: Callable[[pa.Table, int | Int64], Side]
    taken: Taken | None  # its columns, where they have names


def open_run(path: PathLike, roles: Roles, threads: int) -> Run:
    """Open a TREC run, a run of MS MARCO, or a table. Raises as `read_qrels_run` does."""
    name = read_once(path_of(path, "run"))
    kind = format_of_side(name, has_rank=True)
    if kind is NESTED:
        said = f"{name} is JSON by query, which is read whole"
        raise SourceError(said, Step("; pass it to ", Call("read_qrels_run")), ".")
    return _open(name, kind, roles, threads)


def open_if_large(path: PathLike, roles: Roles, threads: int, limit: int) -> Run | None:
    """Open a run if to join it at once takes more than `limit` bytes, so that it is better read in parts.

    A file of less text is not opened to find out, and what is read into memory is not large. Raises as
    `open_run` does.
    """
    name = read_once(path_of(path, "run"))
    if isinstance(name, Held) or (Path(name).is_file() and Path(name).stat().st_size * _UNPACKED < limit):
        return None
    kind = format_of_side(name, has_rank=True)
    if kind is NESTED:
        return None
    run = _open(name, kind, roles, threads)
    rows, per_row = run.opened.size()
    return run if rows * per_row * _JOINING > limit else None


def _open(name: str, kind: Format, roles: Roles, threads: int) -> Run:
    if kind is TREC:
        refuse_columns(name, "score", roles, "a run whose fields have no names")
        run = _open_lines(name, threads)
        return Run(run, partial(run.side_of, roles), None)
    opened = open_tables([name], threads, None if kind is TABLE else kind)
    try:
        found = find_columns(opened.first, opened.names, "score", roles, intents=False)
    except ColumnError as error:
        raise opened.explain(error) from None
    score = found.value or ""  # which a run always has
    if isinstance(opened, CsvFiles):  # whose ids are texts, as those of TREC files
        opened = replace(opened, of_text=OfText([score]))
    chosen = opened.with_columns(
        Columns(query=found.query, doc_id=found.doc_id, relevance=score, score=score)
    )
    pointed = _pointed(chosen) if opened.format is CSV else []

    def side(table: pa.Table, numbers: int | Int64) -> Side:
        for column in pointed:
            ids = without_points(plain(table[column]))
            table = table.set_column(table.column_names.index(column), column, ids)
        return table_side(name, table, found, "score", numbers + opened.first_row)

    return Run(chosen, side, found.taken("score"))


def _pointed(opened: Opened) -> list[str]:
    """The columns whose ids are all written with ".0", as pandas writes whole numbers beside missing ones."""
    names = [name for name in (opened.columns.query, opened.columns.doc_id) if name is not None]
    for reader in opened.readers(names, 1 << 16):
        with closing(reader):
            for table in filter(len, reader):
                ids = {name: plain(table[name]) for name in names}
                names = [name for name in names if without_points(ids[name]) is not ids[name]]
                if not names:  # after the first rows, for nearly all files
                    return []
    return names


def _open_lines(name: str, threads: int) -> RunFile:
    from fastndcg.sources.paths import find_files  # brings ssl

    file = find_files([name], TREC)[0]
    stamp = file.stamp()
    types = {"query": pa.large_string(), "document": pa.large_string(), "score": pa.float64()}
    return RunFile(
        format=TREC,
        paths=[name],
        threads=threads,
        decoders=threads,
        schema=pa.schema(types),
        columns=Columns(query="query", doc_id="document", relevance="score", score="score"),
        types=types,
        files=[file],
        stamps=[stamp],
        schemas=[],
        form=lines.form_of_run(file.start(_BLOCK)[0]),
    )


@dataclass(frozen=True, kw_only=True)
class RunFile(OpenedFiles):
    """The lines of a run, as a table of ids and scores, or ranks."""

    form: Form

    def size(self) -> tuple[int, float]:
        """Estimated from the first block."""
        rows, size, per_row = 0, 1, 0.0
        with closing(self._blocks()) as blocks:
            for block in islice(blocks, 1):
                size = len(block)
                parsed = self._parse(block, 0)
                rows, per_row = len(parsed.values), parsed.docs.nbytes / max(len(parsed.values), 1) + 24
        unpacked = self.n_bytes * self.files[0].unpacks_to()
        return int(max(unpacked / size, 1) * rows), per_row

    def readers_of_file(self, number: int, names: Sequence[str], most: int) -> Iterator[Reader]:  # noqa: ARG002
        n_blocks, before = max(1, min(_BLOCKS, most * _LINE // _BLOCK)), 0
        with closing(self._blocks()) as blocks:
            while some := list(islice(blocks, n_blocks)):
                yield self._reader(some, before, names)
                before += len(some)

    def _blocks(self) -> Generator[bytes, None, None]:
        file = self.files[0]
        with reading(file.path, TREC.name), file.unchanged(self.stamps[0]), file.open_unpacking() as stream:
            try:
                yield from lines.blocks_of(stream, _BLOCK)
            except OverflowError as error:
                raise lines.refusal(file.path, self.form, error, 0) from None

    def _reader(self, blocks: list[bytes], before: int, names: Sequence[str]) -> Reader:
        tables = list[pa.Table]()
        for place, block in enumerate(blocks, before):
            parsed = self._parse(block, place)
            if not len(parsed.values):
                continue
            queries, docs = self._texts(parsed.queries, "query"), self._texts(parsed.docs, "document")
            columns = {
                "query": in_runs(pa.array(parsed.ends), queries),
                "document": docs,
                "score": pa.array(parsed.values),
            }
            tables.append(pa.table({name: columns[name] for name in names}))
        if tables:
            yield pa.concat_tables(tables)

    def _parse(self, block: bytes, place: int) -> Block:
        try:
            return lines.parse(block, self.form)
        except lines.MalformedError as error:
            with closing(self._blocks()) as blocks:
                before = sum(each.count(b"\n") for each in islice(blocks, place))
            raise lines.refusal(self.first, self.form, error, before) from None

    def _texts(self, ids: pa.Array, name: str) -> pa.Array:
        """Ids as text; where one is no UTF-8, all are read again as bytes."""
        if self.types[name] == pa.large_binary():
            return ids
        texts = lines.as_text(ids)
        if texts.type == pa.large_binary():
            raise ReadAgainError(partial(self.types.__setitem__, name, pa.large_binary()))
        return texts

    def side_of(self, roles: Roles, table: pa.Table, numbers: int | Int64) -> Side:
        blame = Blame(numbers=numbers)
        side = side_of(self.first, table["query"], table["document"], array_of(table["score"]))
        side = side._replace(place=lambda row: f"{self.first}, line {self._line_of(blame.number(row) or 0)}")
        return in_order(by_rank(side) if self.form is RANKED else side, "score", roles)

    def _line_of(self, row: int) -> int:
        """The line of a row, for a message. The file is read again up to there."""
        lines_before = rows_before = 0
        with closing(self._blocks()) as blocks:
            for block in blocks:
                parsed = lines.parse(block, self.form)
                if row < rows_before + len(parsed.values):
                    return lines_before + lines.line_of(parsed.skipped, row - rows_before)
                rows_before += len(parsed.values)
                lines_before += len(parsed.values) + len(parsed.skipped)
        return lines_before
