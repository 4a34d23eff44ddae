"""Read text files of lines: judgments, runs and LETOR, in blocks of whole lines, and in parts by threads."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.common.threads import in_threads, processors
from fastndcg.errors import SourceError
from fastndcg.rankings.grouping import encode
from fastndcg.sources.line_blocks import (
    LETOR_LINE,
    MARK,
    Block,
    Form,
    MalformedError,
    as_text,
    block_of_letor,
    block_of_lines,
    last_fields,
)
from fastndcg.sources.opening import (
    Meter,
    cannot_read,
    meter_of_call,
    open_both,
    open_unpacking,
    path_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastndcg.typing import Path as PathLike


Array = npt.NDArray[Any]
_UNBOUNDED = 1 << 62  # where the last part ends: a file may be a pipe, or packed


class Sizes(NamedTuple):
    """How a file is cut, in bytes."""

    block: int = 1 << 20  # with what is made of it it stays in the second-level cache
    longest: int = 1 << 29  # of a line
    part: int = 8 << 20  # of a plain file for which another thread is worth while


_SIZES = Sizes()


class Lines(NamedTuple):
    """Columns of a file, a row for each line that is neither empty nor a comment."""

    path: str
    query_codes: Array  # for each row, which of `queries`
    queries: pa.Array  # distinct query ids in order of first appearance
    # large_string, or large_binary where some id is not UTF-8; empty where the lines have no ids
    docs: pa.Array
    values: npt.NDArray[np.float64]
    intents: pa.Array  # large_binary; empty where they are not read
    skipped: Array  # rows before which a line was skipped
    last: list[str]  # fields of the last line with a row on it

    def line_of(self, row: int) -> int:
        """Line of a row in the file, from 1."""
        return row + 1 + int(np.searchsorted(self.skipped, row, side="right"))


def read_lines(
    path: PathLike,
    form: Form | None,
    *,
    threads: int | None = None,
    sizes: Sizes = _SIZES,
) -> Lines:
    """Columns of all lines of a file.

    Parameters
    ----------
    path : path of a plain, gzip, bzip2 or Zstandard file
    form : Form, optional
        What a line looks like. None: LETOR.
    threads : int, optional
        Default: as many as this process may use.
    sizes : Sizes
        Of blocks, of lines, and of what is worth a thread.

    Raises
    ------
    SourceError
        A file that cannot be read, or a malformed line, with its number and text.
    """
    path = path_of(path, "path")
    meter, cuts = meter_of_call.get(), _cuts(path, threads or processors(), sizes)
    parts = [_Part(path, form, start, stop, meter, sizes) for start, stop in pairwise(cuts)]
    in_threads(_Part.read, parts)  # raises the first error in the file
    blocks = [block for part in parts for block in part.blocks]
    return _join(path, blocks, next((part.last for part in reversed(parts) if part.last), []))


def _cuts(path: str, threads: int, sizes: Sizes) -> list[int]:
    """Where each part begins, at the beginning of a line, and where the last one ends."""
    stream = open_unpacking(path)
    try:
        if isinstance(stream, pa.NativeFile) or not stream.seekable():
            return [0, _UNBOUNDED]
        size = os.fstat(stream.fileno()).st_size
        n_parts = max(1, min(threads, size // sizes.part))
        cuts = [0]
        for part in range(1, n_parts):
            at = size * part // n_parts
            stream.seek(at)
            while (block := stream.read(sizes.block // 16)) and (newline := block.find(b"\n")) < 0:
                at += len(block)
            if block and cuts[-1] < at + newline + 1 < size:
                cuts.append(at + newline + 1)
        return [*cuts, _UNBOUNDED]
    except OSError as error:
        raise cannot_read(path, error) from None
    finally:
        stream.close()


class _Part:
    """Part of a file, from the beginning of a line, and what is read from it."""

    def __init__(
        self, path: str, form: Form | None, start: int, stop: int, meter: Meter | None, sizes: Sizes
    ) -> None:
        self.path, self.start, self.stop = path, start, stop
        self._form, self._meter, self._sizes = form, meter, sizes
        self._packed: pa.NativeFile | None = None
        self._wanted = LETOR_LINE if form is None else form.wanted
        self.blocks: list[Block] = []
        self.last: list[bytes] = []  # fields of the last line with a row on it

    def read(self) -> None:
        done, told_of, lines = 0, 0, 0
        for block in self._blocks_of_bytes():
            done += len(block)
            try:
                found = block_of_letor(block) if self._form is None else block_of_lines(self._form, block)
            except MalformedError as error:
                line = _newlines_before(self.path, self.start) + lines + error.line + 1
                raise error.of_file(self.path, line, self._wanted) from None
            self.blocks.append(found)
            lines += len(found.values) + len(found.skipped)
            if len(found.values):
                self.last = last_fields(block)
            if self._meter is not None:
                now = done if self._packed is None else self._packed.tell()
                self._meter.add(now - told_of)
                told_of = now

    def _blocks_of_bytes(self) -> Iterator[Array]:
        """Blocks of whole lines; each is overwritten by the next one."""
        stream, self._packed = open_both(self.path)
        try:
            if self.start:
                stream.seek(self.start)
            left = self.stop - self.start
            buffer = bytearray(self._sizes.block)
            kept, first = 0, self.start == 0  # bytes of a line that has no end yet
            while True:
                if kept + 1 >= len(buffer):
                    if kept >= self._sizes.longest:
                        raise SourceError(
                            f"{self.path} has a line of more than {kept:,} bytes; "
                            f"is it a text file? Wanted {self._wanted}"
                        )
                    buffer = buffer + bytes(len(buffer))
                with memoryview(buffer) as view, view[kept : min(len(buffer) - 1, kept + left)] as room:
                    got = stream.readinto(room) if len(room) else 0
                if first and buffer.startswith(MARK):  # read as blanks
                    buffer[:3] = b"   "
                first = False
                left -= got or 0
                end = kept + (got or 0)
                if not got:
                    if kept:  # the last line of the file, without a newline
                        buffer[kept] = ord("\n")
                        yield np.frombuffer(buffer, np.uint8, kept + 1)
                    return
                stop = buffer.rfind(b"\n", kept, end) + 1
                if stop:
                    yield np.frombuffer(buffer, np.uint8, stop)
                    buffer[: end - stop] = buffer[stop:end]
                    kept = end - stop
                else:
                    kept = end
        except OSError as error:
            raise cannot_read(self.path, error) from None
        finally:
            stream.close()


def _newlines_before(path: str, stop: int) -> int:
    total = 0
    if stop:
        with Path(path).open("rb") as stream:
            while stop > 0 and (block := stream.read(min(_SIZES.block, stop))):
                total += block.count(b"\n")
                stop -= len(block)
    return total


def _join(path: str, blocks: list[Block], last: list[bytes]) -> Lines:
    def column(name: str) -> pa.Array:
        pieces = [getattr(block, name) for block in blocks]
        return pa.concat_arrays(pieces) if pieces else pa.array([], pa.large_binary())

    none = [np.empty(0, np.int64)]
    sizes = [len(block.values) for block in blocks]
    before = np.append(0, np.cumsum(sizes, dtype=np.int64)).tolist()
    skipped = [block.skipped + start for block, start in zip(blocks, before[:-1], strict=True)]
    lengths = [np.diff(block.ends, prepend=0) for block in blocks]
    runs = encode(as_text(column("queries")))
    queries = runs.dictionary
    if pa.types.is_large_string(queries.type):
        queries = queries.cast(pa.string())
    return Lines(
        path,
        np.repeat(array_of(runs.indices), np.concatenate(lengths or none)),
        queries,
        as_text(column("docs")),
        np.concatenate([block.values for block in blocks] or [np.empty(0)]),
        column("intents"),
        np.concatenate(skipped or none),
        [field.decode("utf-8", "backslashreplace") for field in last],
    )


def whole(values: npt.NDArray[np.float64]) -> Array:
    """Grades as integers where all of them are."""
    with np.errstate(invalid="ignore"):
        integers = values.astype(np.int64)
    return integers if np.array_equal(integers, values) and (abs(integers) < 1 << 53).all() else values
