"""Open a file, a URI or standard input, plain or packed; put what fails into words, and report progress.

The first bytes tell how a file is packed, not its name.
"""

from __future__ import annotations

import io
import os
import re
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fastndcg.common.progress import Progress, Task
from fastndcg.errors import FastndcgError, InputTypeError, SourceError
from fastndcg.tables.values import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fastndcg.typing import Path as PathLike

_ENDINGS = re.compile(r"\.(gz|bz2|zst)$", re.IGNORECASE)
_NONE = b"(?!)"  # matches nothing
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


def instead(reason: str = "") -> Callable[[list[PathLike], list[Any], int], Any]:
    """Refuse to open files that are no tables; `reason` says what they are and what reads them."""

    def refuse(paths: list[PathLike], files: list[Any], threads: int) -> None:  # noqa: ARG001
        raise SourceError(f"{files[0].path}{reason}")

    return refuse


class Format(NamedTuple):
    """A file format: how its files are recognised and opened."""

    name: str  # in messages
    endings: tuple[str, ...] = ()  # of names of files
    begins: bytes = _NONE  # a regular expression: what only files of this format begin with
    unnamed: bytes = _NONE  # the same, of files in folders whose names have no ending
    # how files, given as paths, are opened by so many threads: as an `Opened`, or it raises `SourceError`
    open: Callable[[list[PathLike], list[Any], int], Any] = instead()
    in_text: bool = False  # numbers, ids and missing values are told apart by what is written
    has_lists: bool = True
    unpacks: bool = False  # its reader unpacks files as it reads

    @property
    def wanted(self) -> str:
        """The endings as a list in words."""
        *first, last = self.endings
        return f"{', '.join(first)} or {last}"

    def has_ending(self, path: Any) -> bool:
        """Whether a name has one of the endings, packed or not."""
        return _ENDINGS.sub("", os.fspath(path)).lower().endswith(self.endings)


def path_of(path: Any, name: str) -> str:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"{name} is a {type(path).__name__}; wanted the path of a file")
    text = os.fspath(path)
    return file_system(text)[1] if text.startswith("file:") else text


def read_once(path: str) -> str:
    """The path; of a pipe, which can be read only once, its name, and what it holds when that is read."""
    is_pipe = not isinstance(path, Held) and "://" not in path and Path(path).is_fifo()
    return Held(path, Path(path).read_bytes) if is_pipe else path


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


def open_unpacking(path: str) -> tuple[io.FileIO | pa.NativeFile, pa.NativeFile | None]:
    """A stream of the file's unpacked bytes; and the packed file, if it is one."""
    try:
        if isinstance(path, Held):
            return unpack(path.open_input_file(path))
        if "://" in path:
            system, inside = file_system(path)
            return unpack(system.open_input_file(inside))
        stream = io.FileIO(path)
        start = stream.read(4) if stream.seekable() else b""
        if _codec_of(start) is None:
            if start:
                stream.seek(0)
            return stream, None
        stream.close()
        return unpack(pa.OSFile(path))
    except OSError as error:
        raise cannot_read(path, error) from None


@contextmanager
def unpacked(path: str) -> Iterator[io.FileIO | pa.NativeFile]:
    """A stream of the file's unpacked bytes. Raises `SourceError` where it cannot be opened or read."""
    stream, _ = open_unpacking(path)
    with stream:
        try:
            yield stream
        except OSError as error:
            raise cannot_read(path, error) from None


def unpack(file: pa.NativeFile) -> tuple[pa.NativeFile, pa.NativeFile | None]:
    """The unpacked content of a file; and the file itself, if it is packed."""
    codec = _codec_of(file.read(4))
    file.seek(0)
    return (file, None) if codec is None else (pa.CompressedInputStream(file, codec), file)


def _codec_of(start: bytes) -> str | None:
    return next((codec for magic, codec in _PACKED.items() if start.startswith(magic)), None)


# ---- what fails ----


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


# what libraries raise for damaged bytes: faulty texts, codes beyond the end of a dictionary, absurd sizes,
# deep nesting
DAMAGE = (pa.ArrowException, ValueError, IndexError, OverflowError, MemoryError, RecursionError)


@contextmanager
def reading(path: str, kind: str = "Parquet") -> Iterator[None]:
    """Raise errors of Arrow and of the operating system as `SourceError`, in one line with the path."""
    try:
        yield
    except FastndcgError:
        raise
    except OSError as error:
        if error.errno is None:
            raise unreadable(path, error, kind) from None
        raise SourceError(
            f"{path} cannot be read: {os.strerror(error.errno)}. Check the path and its permissions."
        ) from None
    except DAMAGE as error:
        raise unreadable(path, error, kind) from None


def unreadable(path: str, error: BaseException, kind: str = "Parquet") -> SourceError:
    if isinstance(error, MemoryError):
        return SourceError(
            f"{path} cannot be read: there is not enough memory for it ({first_line(error)}). "
            "Read it in parts, or on a machine with more; where it is small, check that it was written "
            "to its end."
        )
    return SourceError(
        f"{path} cannot be read: {first_line(error)}. Check that it is a {kind} file and was written to its "
        "end."
    )


def names_of(paths: Sequence[PathLike]) -> str:
    """The first of several paths, and how many more there are, as messages have them."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{os.fspath(paths[0])}{more}"


@contextmanager
def naming(paths: Sequence[PathLike]) -> Iterator[None]:
    """Put the path before messages about its content; a table in memory has none."""
    if not paths:
        yield
        return
    try:
        yield
    except SourceError:
        raise
    except (FastndcgError, *DAMAGE) as error:
        name = names_of(paths)
        if not isinstance(error, FastndcgError):
            raise unreadable(name, error) from None
        raise type(error)(f"{name}: {error}") from None


# ---- how far reading is ----


# what to call with the bytes that were read of a file, as they lie on disk
tell_of_bytes: ContextVar[Callable[[int], None]] = ContextVar("tell_of_bytes", default=lambda _: None)


@contextmanager
def report_progress(progress: Progress, *paths: Any) -> Iterator[None]:
    """Show how many bytes of these files are read, or call a function with them."""
    done = total = 0

    def tell(size: int) -> None:
        nonlocal done
        done = min(done + size, total)
        task.advance(done, total)

    with Task("Reading", "bytes", progress) as task:
        if not task.is_observed:
            yield
            return
        for path in paths:
            with suppress(OSError, TypeError, ValueError):  # reading it will say what is wrong
                total += Path(path).stat().st_size
        token = tell_of_bytes.set(tell)
        try:
            yield
            tell(total)
        finally:
            tell_of_bytes.reset(token)
