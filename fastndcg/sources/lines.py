"""Read text files: open, unpack, read blocks of whole lines, and scan them into columns by the kernels.

A file may be plain or packed by gzip, bzip2 or Zstandard, which its first bytes tell, not its name. A plain
file of more than a few megabytes is scanned in as many parts as there are threads.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastndcg.common.arrow_types import array_of
from fastndcg.common.progress import Progress, Task
from fastndcg.common.threads import in_threads, processors
from fastndcg.errors import InputTypeError, SourceError
from fastndcg.kernels.compile import worlds
from fastndcg.rankings.grouping import encode
from fastndcg.sources.messages import reading

if TYPE_CHECKING:
    from fastndcg.kernels.reading.scanners import TextColumns
    from fastndcg.typing import Path as PathLike

Array = npt.NDArray[Any]
# a compiled scanner: block, columns, how far they are filled -> -1 or where a malformed line begins
Scanner = Callable[[Array, "TextColumns", Array], int]

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
_UNBOUNDED = 1 << 62  # where the last part ends: a file may be a pipe, or packed
_FEWEST_BYTES = 2  # of a line with a row on it


class Sizes(NamedTuple):
    """How a file is cut, in bytes."""

    block: int = 1 << 20  # with what is made of it it stays in the second-level cache
    longest: int = 1 << 29  # of a line: places in a block are 32 bits wide
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
    skipped: Array  # rows before which a line was skipped
    last: list[str]  # fields of the last line with a row on it

    def line_of(self, row: int) -> int:
        """Line of a row in the file, from 1."""
        return row + 1 + int(np.searchsorted(self.skipped, row, side="right"))


def path_of(path: Any, name: str) -> str:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"{name} is a {type(path).__name__}; wanted the path of a file")
    text = os.fspath(path)
    return file_system(text)[1] if text.startswith("file:") else text


def file_system(uri: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it."""
    from pyarrow import fs  # brings ssl

    try:
        return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]
    except (OSError, pa.ArrowException) as error:
        raise cannot_read(uri, error) from None


# ---- how far reading is ----


class _Meter:
    """Bytes of files that have been read, as they lie on disk."""

    def __init__(self, task: Task, paths: tuple[Any, ...]) -> None:
        self._task, self._lock = task, threading.Lock()
        self.done, self.total = 0, 0
        for path in paths:
            try:
                self.total += Path(path).stat().st_size
            except (OSError, TypeError):  # reading it will say what is wrong
                continue

    def add(self, size: int) -> None:
        with self._lock:
            self.done = min(self.done + size, self.total)
            self._task.advance(self.done, self.total)


_meter: ContextVar[_Meter | None] = ContextVar("_meter", default=None)


@contextmanager
def report_progress(progress: Progress, *paths: Any) -> Iterator[None]:
    """Show how many bytes of these files are read; a function is called from the threads that read them."""
    with Task("Reading", "bytes", progress) as task:
        if not task.is_observed:
            yield
            return
        meter = _Meter(task, paths)
        token = _meter.set(meter)
        try:
            yield
            meter.add(meter.total)
        finally:
            _meter.reset(token)


class Held(str):  # noqa: SLOT000 - what is read is kept
    """The name of a file that can be read only once, and a file system with only it, kept in memory."""

    _read: Callable[[], bytes]

    def __new__(cls, name: str, read: Callable[[], bytes]) -> Held:
        held = super().__new__(cls, name)
        held._read = read
        return held

    @cached_property
    def content(self) -> pa.Buffer:
        with Task("Reading"), reading(self, "whole"):
            content = self._read()
        if not content:
            raise SourceError(f"{self} is empty; wanted a table, judgments or a run")
        return pa.py_buffer(content)

    def open_input_file(self, _: str) -> pa.NativeFile:
        return pa.BufferReader(self.content)

    def get_file_info(self, path: str) -> Any:
        from pyarrow import fs

        return fs.FileInfo(path, fs.FileType.File, mtime_ns=0, size=self.content.size)


def open_unpacking(path: str) -> io.FileIO | pa.NativeFile:
    """A stream of the file's unpacked bytes.

    Raises `SourceError` where the file cannot be opened.
    """
    return _open(path)[0]


def _open(path: str) -> tuple[io.FileIO | pa.NativeFile, pa.NativeFile | None]:
    """As `open_unpacked`; and the packed file, if it is one."""
    try:
        if isinstance(path, Held):
            return unpack(path.open_input_file(path))
        if "://" in path:
            system, inside = file_system(path)
            return unpack(system.open_input_file(inside))
        stream = io.FileIO(path)
        start = stream.read(4) if stream.seekable() else b""
        codec = codec_of(start)
        if codec is None:
            if start:
                stream.seek(0)
            return stream, None
        stream.close()
        return unpack(pa.OSFile(path))
    except OSError as error:
        raise cannot_read(path, error) from None


def unpack(file: pa.NativeFile) -> tuple[pa.NativeFile, pa.NativeFile | None]:
    """The unpacked content of a file; and the file itself, if it is packed."""
    codec = codec_of(file.read(4))
    file.seek(0)
    return (file, None) if codec is None else (pa.CompressedInputStream(file, codec), file)


def codec_of(start: bytes) -> str | None:
    """The compression of a file with these first bytes."""
    return next((codec for magic, codec in _PACKED.items() if start.startswith(magic)), None)


def cannot_read(path: str, error: BaseException) -> SourceError:
    if isinstance(error, FileNotFoundError) and "://" in path:
        return SourceError(f"{path} does not exist. Check the URI.")
    if isinstance(error, FileNotFoundError):
        folder = Path(path).parent
        where = f"; its folder {folder} does not exist either" if not folder.is_dir() else ""
        return SourceError(f"{path} does not exist{where}. Check the path.")
    if isinstance(error, IsADirectoryError):
        return SourceError(f"{path} is a folder; wanted a file")
    reason = getattr(error, "strerror", None) or str(error)
    return SourceError(f"{path} cannot be read: {reason}. Is it complete, and may you read it?")


def read_lines(
    path: PathLike, scan: Scanner, wanted: str, *, threads: int | None = None, sizes: Sizes = _SIZES
) -> Lines:
    """Columns of all lines of a file.

    Parameters
    ----------
    path : path of a plain, gzip, bzip2 or Zstandard file
    scan : kernel that reads the lines of a block
    wanted : str
        What a line should look like, for messages.
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
    cuts, meter = _cuts(path, threads or processors(), sizes), _meter.get()
    parts = [_Part(path, scan, wanted, start, stop, meter, sizes) for start, stop in pairwise(cuts)]
    in_threads(_Part.read, parts)  # raises the first error in the file
    return _join(path, parts)


def bytes_of(path: PathLike) -> int:
    """The size of a file, as it lies there; 0 where there is none."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


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
        self, path: str, scan: Scanner, wanted: str, start: int, stop: int, meter: _Meter | None, sizes: Sizes
    ) -> None:
        from fastndcg.kernels.reading import scanners as kernels

        self._meter, self._sizes = meter, sizes
        self._packed: pa.NativeFile | None = None

        self.path, self.scan, self.wanted, self.start, self.stop = path, scan, wanted, start, stop
        self.filled = np.zeros(kernels.ODD + 1, np.int64)
        self.last: list[bytes] = []
        kinds = (np.uint8, np.int64, np.uint8, np.int64, np.int64, np.float64, np.int64)
        columns = [*(np.empty(0, kind) for kind in kinds), np.empty((0, 3), np.int64)]
        self.columns = kernels.TextColumns(*columns)

    def read(self) -> None:
        from fastndcg.kernels.reading.scanners import ODD, ROWS, SKIPPED

        done, room, told_of = 0, self._room(), 0
        for block in self._blocks():
            self._reserve(len(block), 1.02 * room / done if done else 1.0)
            done += len(block)
            rows = self.filled[ROWS]
            malformed = self.scan(block, self.columns, self.filled)
            if malformed >= 0:
                line = int(self.filled[ROWS] + self.filled[SKIPPED]) + 1
                raise self._malformed_error(block, malformed, line)
            if self.filled[ODD]:
                self._read_odd(block)
            if self.filled[ROWS] > rows:
                self.last = _last_fields(block)
            if self._meter is not None:
                now = done if self._packed is None else self._packed.tell()
                self._meter.add(now - told_of)
                told_of = now

    def _room(self) -> int:
        """Bytes to make room for: the first part takes in the others."""
        bounded = self.start and self.stop < _UNBOUNDED
        return self.stop - self.start if bounded else max(0, bytes_of(self.path) - self.start)

    def _blocks(self) -> Iterator[Array]:
        """Blocks of whole lines; each is overwritten by the next one."""
        stream, self._packed = _open(self.path)
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
                            f"is it a text file? Wanted {self.wanted}"
                        )
                    buffer = buffer + bytes(len(buffer))
                with memoryview(buffer) as view, view[kept : min(len(buffer) - 1, kept + left)] as room:
                    got = stream.readinto(room) if len(room) else 0
                if first and buffer.startswith(b"\xef\xbb\xbf"):  # a byte-order mark, read as blanks
                    buffer[:3] = b"   "
                first = False
                left -= got or 0
                end = kept + (got or 0)
                if not got:
                    if kept:  # the last line of the file, without a newline
                        buffer[kept] = 10
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

    def _reserve(self, size: int, ahead: float) -> None:
        """Room for what `size` more bytes can hold; if it is made, then for `ahead` times what there is."""
        from fastndcg.kernels.reading import scanners as kernels

        rows = size // _FEWEST_BYTES + 1
        more = (size, rows + 1, size, rows, rows, rows, size, rows)
        of_documents, of_queries = (kernels.DOC_BYTES, kernels.ROWS), (kernels.QUERY_BYTES, kernels.QUERIES)
        counts = [*of_documents, *of_queries, kernels.QUERIES, kernels.ROWS, kernels.SKIPPED]
        at = [*self.filled[counts].tolist(), 0]
        self.columns = kernels.TextColumns(
            *(
                column
                if len(column) >= used + room
                else _enlarge(column, used, int(used * max(ahead, 2.0)) + room)
                for column, used, room in zip(self.columns, at, more, strict=True)
            )
        )

    def _read_odd(self, block: Array) -> None:
        """Numbers that need more care than the scanner takes: many digits, large exponents, infinities."""
        from fastndcg.kernels.reading import scanners as kernels

        odd = self.columns.odd[: self.filled[kernels.ODD]]
        self.filled[kernels.ODD] = 0
        text = np.empty(int((odd[:, 2] - odd[:, 1]).sum()), np.uint8)
        ends = np.empty(len(odd), np.int64)
        worlds.run("reading.scanners.cut_out", len(odd), block, odd, text, ends)
        numbers = large_text(text, np.append(0, ends))
        try:
            self.columns.values[odd[:, 0]] = array_of(numbers.cast(pa.float64()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # the latter of what is no UTF-8
            for row, number in zip(odd.tolist(), numbers.cast(pa.large_binary()).to_pylist(), strict=True):
                try:
                    if b"_" in number:  # which Python takes for a number
                        raise ValueError
                    self.columns.values[row[0]] = float(number)
                except ValueError:
                    start = block[: row[1]].tobytes().rfind(b"\n") + 1
                    skipped = self.columns.skipped[: self.filled[kernels.SKIPPED]]
                    line = row[0] + 1 + int((skipped <= row[0]).sum())
                    reason = f'"{shown(number)}" is not a number'
                    raise self._malformed_error(block, start, line, reason) from None

    def _malformed_error(self, block: Array, start: int, line: int, reason: str = "") -> SourceError:
        """The error that names the line beginning at `start` of the block, line `number` of this part."""
        data = block.tobytes()
        row = data[start : data.index(b"\n", start)].rstrip(b"\r")
        line += _newlines_before(self.path, self.start)
        text, fields = shown(row), len(fields_of(row))
        reason = reason or f"{fields} field" + ("" if fields == 1 else "s")
        return SourceError(
            f'{self.path}, line {line}: {reason} in "{text if len(text) <= 120 else text[:117] + "..."}"; '
            f"wanted {self.wanted}"
        )


def fields_of(line: bytes) -> list[bytes]:
    r"""Fields of a line as the kernels see them: whatever is not blank, and no byte above a blank is one.

    Python's own `split` takes control bytes for a part of a field, and in text a no-break space for a blank.

    >>> fields_of(b"301\x01Q0 caf\xc2\xa0e\r")
    [b'301', b'Q0', b'caf\xc2\xa0e']
    """
    return re.findall(rb"[^\x00-\x20]+", line)


def shown(text: bytes) -> str:
    """Bytes of a file as a message has them: in one line, without what a terminal would obey or not show."""
    signs = text.decode("utf-8", "backslashreplace")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in signs)


def _last_fields(block: Array) -> list[bytes]:
    """Fields of the last line of a block that is neither empty nor a comment."""
    size = 1 << 12
    while True:
        tail = block[-size:].tobytes()
        cut = 0 if size >= len(block) else tail.find(b"\n") + 1  # a line whose beginning is not in the tail
        for line in reversed(tail[cut:].split(b"\n")):
            if (fields := fields_of(line)) and not fields[0].startswith(b"#"):
                return fields
        if size >= len(block):
            return []
        size *= 16


def _enlarge(column: Array, used: int, size: int) -> Array:
    larger = np.empty((size, *column.shape[1:]), column.dtype)
    larger[:used] = column[:used]
    return larger


def _newlines_before(path: str, stop: int) -> int:
    total = 0
    if stop:
        with Path(path).open("rb") as stream:
            while stop > 0 and (block := stream.read(min(_SIZES.block, stop))):
                total += block.count(b"\n")
                stop -= len(block)
    return total


def _join(path: str, parts: list[_Part]) -> Lines:
    from fastndcg.kernels.reading import scanners as kernels

    copies: list[tuple[Array, int, Array]] = []

    def starts(entry: int) -> list[int]:
        return [0, *accumulate(int(part.filled[entry]) for part in parts)]

    def column(name: str, entry: int, shifted_by: int | None = None, more: int = 0) -> Array:
        """A column of all parts, and `more`; within that of the first part if there is room."""
        pieces: list[Array] = [getattr(part.columns, name) for part in parts]
        ends = starts(entry)
        shifts = [0] * len(parts) if shifted_by is None else starts(shifted_by)
        has_room = len(pieces[0]) >= ends[-1] + more
        whole = pieces[0][: ends[-1] + more] if has_room else np.empty(ends[-1] + more, pieces[0].dtype)
        for place in range(int(has_room), len(parts)):
            start, end = ends[place : place + 2]
            copies.append((pieces[place][: end - start], shifts[place], whole[start:end]))
        return whole

    doc_bytes = column("doc_bytes", kernels.DOC_BYTES)
    query_bytes = column("query_bytes", kernels.QUERY_BYTES)
    has_docs = len(doc_bytes) > 0
    offsets = (
        column("doc_offsets", kernels.ROWS, kernels.DOC_BYTES, more=1) if has_docs else np.zeros(1, np.int64)
    )
    offsets[-1] = len(doc_bytes)
    query_ends = column("query_ends", kernels.QUERIES, kernels.QUERY_BYTES)
    first_rows = column("query_rows", kernels.QUERIES, kernels.ROWS)
    values = column("values", kernels.ROWS)
    skipped = column("skipped", kernels.SKIPPED, kernels.ROWS)
    if copies:
        with ThreadPoolExecutor(len(parts)) as pool:
            list(pool.map(_copy, copies))
    docs = large_text(doc_bytes, offsets)
    runs = encode(large_text(query_bytes, np.append(0, query_ends)))
    codes = np.repeat(array_of(runs.indices), np.diff(np.append(first_rows, len(values))))
    queries = runs.dictionary
    if pa.types.is_large_string(queries.type):
        queries = queries.cast(pa.string())
    last = [
        field.decode("utf-8", "backslashreplace")
        for field in next((part.last for part in reversed(parts) if part.last), [])
    ]
    return Lines(path, codes, queries, docs, values, skipped, last)


def _copy(task: tuple[Array, int, Array]) -> None:
    piece, shift, out = task
    if shift:
        np.add(piece, shift, out=out)
    else:
        out[:] = piece


def large_text(data: Array, offsets: Array) -> pa.Array:
    """Strings that lie one after the other in `data`; binary where they are not UTF-8."""
    n, buffers = len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    text = pa.Array.from_buffers(pa.large_string(), n, buffers)
    # most ids are ASCII, and to see that takes a tenth of the time of a full check
    if len(data) and data.max() > 127:
        try:
            text.validate(full=True)
        except pa.ArrowInvalid:
            return pa.Array.from_buffers(pa.large_binary(), n, buffers)
    return text
