"""Open a file, a URI or standard input, plain or compressed; word its errors, and report progress.

Compression is detected from the first bytes, not from the name.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from fastndcg.common.progress import Progress, Task
from fastndcg.errors import FastndcgError, InputTypeError, SourceError
from fastndcg.tables.roles import Dialect
from fastndcg.tables.values import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fastndcg.typing import Path as PathLike

_ENDINGS = re.compile(r"\.(gz|bz2|zst)$", re.IGNORECASE)
_NONE = b"(?!)"  # never matches
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
# byte order marks of other encodings than UTF-8; the first match counts
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_START = 64  # bytes from which compression and encoding are detected
_SAMPLE = 8 << 20  # unpacked bytes from which the compression ratio is estimated
_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def instead(reason: str = "") -> Callable[[list[PathLike], list[File], int], Any]:
    """Return a function that refuses files that are not tables; `reason` says what reads them."""

    def refuse(paths: list[PathLike], files: list[File], threads: int) -> None:  # noqa: ARG001
        raise SourceError(f"{files[0].path}{reason}")

    return refuse


class Format(NamedTuple):
    """A file format: how its files are recognised and opened."""

    name: str  # in messages
    endings: tuple[str, ...] = ()  # of file names
    begins: bytes = _NONE  # regular expression of the first bytes, unique to this format
    # opens the files of paths with some threads as a `Dataset`, or raises `SourceError`
    open: Callable[[list[PathLike], list[File], int], Any] = instead()
    options: tuple[str, ...] = ()  # arguments for this and few other formats
    has_lists: bool = True
    unpacks: bool = False  # its reader decompresses while it reads

    @property
    def in_text(self) -> bool:
        """Whether the format stores text, from which numbers, ids and nulls are inferred."""
        return "types" in self.options

    @property
    def expected(self) -> str:
        """The endings, for messages."""
        *first, last = self.endings
        return f"{', '.join(first)} or {last}"

    def has_ending(self, path: Any) -> bool:
        """Return whether a name has one of the endings, compressed or not."""
        return _ENDINGS.sub("", os.fspath(path)).lower().endswith(self.endings)


class Stamp(NamedTuple):
    """Properties of a file that change when it is rewritten."""

    size: int | None
    modified: int | None = None
    inode: int | None = None


class File(NamedTuple):
    """A local or remote file, or one in memory."""

    path: str
    filesystem: Any = None  # None: local
    dialect: Dialect = Dialect()

    @classmethod
    def of(cls, path: str) -> File:
        """Return the file of a path or URI. Raises `SourceError` for an unknown kind of URI."""
        if isinstance(path, MemoryFile):
            return cls(path, path)
        if "://" not in path and not path.startswith("file:"):
            return cls((Path(path).expanduser() if path.startswith("~/") else Path(path)).as_posix())
        with reading(path, "whole"):
            filesystem, inside = file_system(path)
        return cls(inside, None if filesystem.type_name == "local" else filesystem)

    @property
    def is_local(self) -> bool:
        return self.filesystem is None

    @property
    def partition(self) -> dict[str, str | None]:
        """Keys and values of the parent folders named `key=value`."""
        matches = map(_PARTITION.fullmatch, self.path.split("/")[:-1])
        pairs = [(unquote(match[1]), unquote(match[2])) for match in matches if match]
        return {key: None if value == _HIVE_NULL else value for key, value in pairs}

    def open(self) -> pa.NativeFile:
        return pa.OSFile(self.path) if self.is_local else self.filesystem.open_input_file(self.path)

    def unpack(self) -> tuple[pa.NativeFile, pa.NativeFile | None]:
        """Return a stream of the unpacked bytes, text as UTF-8; also the file itself if it is compressed."""
        file = stream = self.open()
        start = file.read(_START)
        file.seek(0)
        if (codec := _first_of(_PACKED, start)) is not None:
            with pa.CompressedInputStream(self.open(), codec) as begun:
                start = begun.read(_START)
            stream = pa.CompressedInputStream(file, codec)
        if (encoding := _first_of(_MARKS, start)) is not None:
            stream = pa.transcoding_input_stream(stream, encoding, "utf-8")
        elif (
            encoding := next(filter(partial(_is_text, start), ("utf-16-le", "utf-16-be")), None)
        ) is not None:
            raise SourceError(
                f"{self.path} is in UTF-16 without a byte order mark; expected UTF-8, or a mark. Convert it, "
                f"as in iconv -f {encoding} -t utf-8 FILE"
            )
        return stream, None if stream is file else file

    def open_unpacking(self) -> pa.NativeFile:
        return self.unpack()[0]

    def start(self, size: int) -> tuple[bytes, int | None]:
        """Return the first unpacked bytes, and how many compressed ones they take. Raises `SourceError`."""
        with reading(self.path, "whole"):
            stream, packed = self.unpack()
            with stream:
                content = stream.read(size)
                return content, None if packed is None else packed.tell()

    def unpacks_to(self) -> float:
        """Estimate the compression ratio from the beginning of the file."""
        content, packed = self.start(_SAMPLE)
        return len(content) / packed if content and packed else 1.0

    def unpacked(self) -> File:
        """Return the file unpacked into memory, for formats that are read from their end."""

        def read() -> bytes:
            with self.open_unpacking() as stream:
                content: bytes = stream.read()
            return content

        return self._replace(filesystem=MemoryFile(self.path, read))

    def stamp(self) -> Stamp:
        if self.is_local:
            status = os.stat(self.path)  # noqa: PTH116 - paths are texts here
            return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
        if isinstance(self.filesystem, MemoryFile):
            return Stamp(self.filesystem.content.size)
        info = self.filesystem.get_file_info(self.path)
        return Stamp(info.size, info.mtime_ns)

    @contextmanager
    def unchanged(self, since: Stamp) -> Iterator[None]:
        """Raise `SourceError` if the file changed before the end of the block."""
        self.check(since)
        try:
            yield
        except Exception:
            self.check(since)  # may be the reason
            raise
        self.check(since)

    def check(self, since: Stamp) -> None:
        """Raise `SourceError` if the file changed."""
        if self.stamp() != since:
            raise SourceError(
                f"{self.path} was replaced or written to while it was read; "
                "read it again once it is complete, and write a new version under another name."
            )


def _is_text(start: bytes, encoding: str) -> bool:
    """Return whether bytes are text, mostly ASCII, in this encoding of two bytes per character."""
    if b"\0" not in start or start.startswith((b"PAR1", b"ARROW1")):
        return False
    try:
        text = start[: len(start) & ~1].decode(encoding)
    except UnicodeDecodeError:  # also for a surrogate pair that is cut at the end
        return False
    # fields between zero bytes may decode to characters as well, but not to ASCII
    is_ascii = 2 * sum(sign < "\u0080" for sign in text) > len(text)
    return is_ascii and all(sign.isprintable() or sign in "\t\r\n" for sign in text)


def _first_of(known: Mapping[bytes, str], start: bytes) -> str | None:
    return next((name for magic, name in known.items() if start.startswith(magic)), None)


class MemoryFile(str):  # noqa: SLOT000 - keeps the content
    """The path of a file that can be read only once, and a file system with its content in memory."""

    _read: Callable[[], bytes]

    def __new__(cls, name: str, read: Callable[[], bytes]) -> MemoryFile:
        file = super().__new__(cls, name)
        file._read = read
        return file

    @cached_property
    def content(self) -> pa.Buffer:
        with Task("Reading"), reading(self, "whole"):
            content = self._read()
        if not content:
            raise SourceError(f"{self} is empty; expected a table, judgments or a run")
        return pa.py_buffer(content)

    def open_input_file(self, _: str) -> pa.NativeFile:
        return pa.BufferReader(self.content)


def file_system(uri: str) -> tuple[Any, str]:
    """Return the file system of a URI, and the path in it."""
    from pyarrow import fs  # imports ssl, a third of the import time

    if uri.startswith(("gs://", "gcs://")) and "retry_limit_seconds=" not in uri:  # default: 15 minutes
        uri += ("&" if "?" in uri else "?") + "retry_limit_seconds=20"
    return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]


def path_of(path: Any, name: str) -> str:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"{name} is a {type(path).__name__}; expected the path of a file")
    if not os.fspath(path):
        raise SourceError(f"{name} is an empty string; expected the path of a file")
    return os.fspath(path)


def read_once(path: str) -> str:
    """Return the path; for a pipe, which can be read only once, a `MemoryFile` that reads it when needed."""
    is_pipe = not isinstance(path, MemoryFile) and "://" not in path and Path(path).is_fifo()
    return MemoryFile(path, Path(path).read_bytes) if is_pipe else path


def read_each_once(*inputs: Any) -> list[Any]:
    """Apply `read_once` to paths, so that a pipe passed twice is read once; leaves other data as it is."""
    paths = {os.fspath(each) for each in inputs if isinstance(each, str | os.PathLike)}
    once = {path: read_once(path) for path in paths if path}
    return [
        once.get(os.fspath(each), each) if isinstance(each, str | os.PathLike) else each for each in inputs
    ]


def open_unpacking(path: str) -> tuple[pa.NativeFile, pa.NativeFile | None]:
    """Return a stream of the unpacked bytes; also the file itself if it is compressed."""
    with reading(path, "text"):
        return File.of(read_once(path)).unpack()


@contextmanager
def unpacked(path: str) -> Iterator[pa.NativeFile]:
    """Open a stream of the unpacked bytes. Raises `SourceError` if the file cannot be opened or read."""
    stream, _ = open_unpacking(path)
    with stream:
        try:
            yield stream
        except pa.ArrowInvalid:  # raised by a parser of the stream
            raise
        except (OSError, UnicodeError, pa.ArrowException) as error:
            raise unreadable(path, error, "text") from None


# ---- errors ----


# what libraries raise for damaged bytes: invalid text, codes beyond the end of a dictionary, absurd sizes,
# deep nesting
DAMAGE = (OSError, pa.ArrowException, ValueError, IndexError, OverflowError, MemoryError, RecursionError)


@contextmanager
def reading(path: str, kind: str = "Parquet") -> Iterator[None]:
    """Raise errors of Arrow and of the operating system as a `SourceError` of one line with the path."""
    try:
        yield
    except FastndcgError:
        raise
    except DAMAGE as error:
        raise unreadable(path, error, kind) from None


def unreadable(path: str, error: BaseException, kind: str = "Parquet") -> SourceError:
    """Return the error for a file that cannot be opened, or read to its end."""
    if isinstance(error, FileNotFoundError):
        folder = Path(path).parent
        is_missing = "://" not in path and not folder.is_dir()
        where = f"; its folder {folder} does not exist either" if is_missing else ""
        return SourceError(f"{path} does not exist{where}. Check the path.")
    if isinstance(error, OSError) and "://" not in path and Path(path).is_dir():
        return SourceError(f"{path} is a folder; expected a file")
    of_kind = "the file is complete" if kind == "whole" else f"it is a complete {kind} file"
    reason, step = first_line(error), f"Check that {of_kind}."
    if "Unrecognized filesystem type" in reason:
        reason = f"{path.partition('://')[0]} is not a file system that pyarrow knows"
        step = "Download the file and give its path, or use a URI such as s3://, gs://, abfs:// or hdfs://."
    elif "://" in path:
        step = "Check the address, the network and your credentials."
    elif isinstance(error, OSError) and error.errno is not None:
        reason, step = os.strerror(error.errno), "Check the path and its permissions."
    elif isinstance(error, MemoryError):
        reason = f"there is not enough memory for it ({reason})"
        step = f"Read it in parts, or on a machine with more memory. If it is small: {step}"
    elif "wrong sequence of calls to bz2" in reason:  # a limit of pyarrow; `bzip2 -d` reads the rest
        reason = "one of several concatenated bzip2 streams is empty"
        step = "Decompress it with bzip2 -d, and compress it again."
    return SourceError(f"{path} cannot be read: {reason}. {step}")


def names_of(paths: Sequence[PathLike]) -> str:
    """Return the first path and the number of others, for messages."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{os.fspath(paths[0])}{more}"


@contextmanager
def naming(paths: Sequence[PathLike]) -> Iterator[None]:
    """Prefix messages with the path of the data; tables in memory have none."""
    if not paths:
        yield
        return
    try:
        yield
    except SourceError:
        raise
    except FastndcgError as error:
        raise type(error)(f"{names_of(paths)}: {error}") from None
    except DAMAGE as error:
        raise unreadable(names_of(paths), error) from None


# ---- progress ----


# called with the number of bytes read from disk
tell_of_bytes: ContextVar[Callable[[int], None]] = ContextVar("tell_of_bytes", default=lambda _: None)


@contextmanager
def report_progress(progress: Progress, *paths: Any) -> Iterator[None]:
    """Report how many bytes of these files were read."""
    done = total = 0

    def tell(size: int) -> None:
        nonlocal done
        done = min(done + size, total)
        task.advance(done, total)

    with Task("Reading", "bytes", progress) as task:
        for path in paths:
            with suppress(OSError, TypeError, ValueError):  # reading the file will report the error
                total += Path(path).stat().st_size
        token = tell_of_bytes.set(tell)
        try:
            yield
            tell(total)
        finally:
            tell_of_bytes.reset(token)
