"""Open a file, a URI or standard input, plain or packed by gzip, bzip2 or Zstandard, and report progress.

The first bytes tell how a file is packed, not its name.
"""

from __future__ import annotations

import io
import os
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastndcg.common.progress import Progress, Task
from fastndcg.errors import InputTypeError, SourceError
from fastndcg.sources.messages import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastndcg.typing import Path as PathLike

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


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
    return open_both(path)[0]


def open_both(path: str) -> tuple[io.FileIO | pa.NativeFile, pa.NativeFile | None]:
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


def bytes_of(path: PathLike) -> int:
    """The size of a file, as it lies there; 0 where there is none."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


# ---- how far reading is ----


class Meter:
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


meter_of_call: ContextVar[Meter | None] = ContextVar("meter_of_call", default=None)


@contextmanager
def report_progress(progress: Progress, *paths: Any) -> Iterator[None]:
    """Show how many bytes of these files are read; a function is called from the threads that read them."""
    with Task("Reading", "bytes", progress) as task:
        if not task.is_observed:
            yield
            return
        meter = Meter(task, paths)
        token = meter_of_call.set(meter)
        try:
            yield
            meter.add(meter.total)
        finally:
            meter_of_call.reset(token)
