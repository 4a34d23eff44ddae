"""Find the files of a path, and notice if one of them is rewritten."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import basename
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from pyarrow import fs

from fastndcg.errors import InputTypeError, SourceError, suggest
from fastndcg.sources.open_file import Held, file_system, read_once, reading, unpack

if TYPE_CHECKING:
    import pyarrow as pa

    from fastndcg.sources.open_file import Format
    from fastndcg.typing import Path as PathLike

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_WILDCARDS = re.compile(r"[*?\[]")


_SAMPLE = 8 << 20  # unpacked bytes that tell how much the rest of a file unpacks to


class Stamp(NamedTuple):
    """Facts about a file that change when it is rewritten."""

    size: int | None
    modified: int | None
    inode: int | None


class File(NamedTuple):
    filesystem: fs.FileSystem
    path: str

    @property
    def partition(self) -> dict[str, str | None]:
        """Keys and values of the folders named `key=value` above the file."""
        folders = self.path.split("/")[:-1]
        found = (_PARTITION.fullmatch(folder) for folder in folders)
        pairs = [(unquote(match[1]), unquote(match[2])) for match in found if match]
        return {key: None if value == _HIVE_NULL else value for key, value in pairs}

    @property
    def is_local(self) -> bool:
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def open_unpacking(self) -> pa.NativeFile:
        """The unpacked content."""
        return unpack(self.filesystem.open_input_file(self.path))[0]

    def start(self, size: int) -> tuple[bytes, bool]:
        """The first unpacked bytes, and whether the file is packed. Raises `SourceError`."""
        with reading(self.path, "whole"):
            stream, packed = unpack(self.filesystem.open_input_file(self.path))
            with stream:
                return stream.read(size), packed is not None

    def unpacks_to(self) -> float:
        """How many times its size the file unpacks to, estimated from its beginning."""
        with reading(self.path, "whole"):
            stream, packed = unpack(self.filesystem.open_input_file(self.path))
            with stream:
                if packed is not None and (read := len(stream.read(_SAMPLE))):
                    return float(read / packed.tell())
        return 1.0

    def unpacked(self) -> File:
        """The same file, unpacked into memory, for formats that are read from their end."""

        def read() -> bytes:
            with self.open_unpacking() as stream:
                content: bytes = stream.read()
            return content

        return self._replace(filesystem=Held(self.path, read))

    def stamp(self) -> Stamp:
        if isinstance(self.filesystem, fs.LocalFileSystem):
            status = os.stat(self.path)  # noqa: PTH116 - filesystems have texts as paths
            return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
        info = self.filesystem.get_file_info(self.path)
        return Stamp(info.size, info.mtime_ns, None)

    @contextmanager
    def unchanged(self, since: Stamp) -> Iterator[None]:
        """Read the file within this block. Raises `SourceError` if its stamp is another before or after."""
        self.check(since)
        try:
            yield
        except Exception:
            self.check(since)  # why it cannot be read, then
            raise
        self.check(since)

    def check(self, since: Stamp) -> None:
        """Raise `SourceError` if the stamp of the file is another."""
        if self.stamp() != since:
            raise SourceError(
                f"{self.path} was replaced or written to while it was read; "
                "read it again once it is complete, and write a new version under another name."
            )


def as_list(path: PathLike | Iterable[PathLike]) -> list[PathLike]:
    if isinstance(path, str | os.PathLike):
        return [path]
    if isinstance(path, bytes | bytearray) or not isinstance(path, Iterable) or hasattr(path, "read"):
        raise InputTypeError(
            f"path is a {type(path).__name__}; wanted a path or a list of them. "
            "For an open file or bytes, give pyarrow.parquet.read_table(...) to Rankings.from_arrow."
        )
    return list(path)


def find_files(paths: list[PathLike], kind: Format) -> list[File]:
    """All files of the paths, each once. Of folders and patterns, only files of this format.

    A file that links in a folder lead to again counts once. Raises `SourceError` if two paths name one file.
    """
    if not paths:
        raise SourceError("path is an empty list; name at least one file")
    found = [(place, file) for place, path in enumerate(paths) for file in _expand(path, kind)]
    if len(found) == 1:
        return [found[0][1]]
    files: list[File] = []
    seen: dict[object, tuple[int, str]] = {}
    for place, file in found:
        identity = identity_of(file.path) if file.is_local else file.path
        first, name = seen.setdefault(identity, (place, file.path))
        if first != place:
            both = "is named twice" if name == file.path else f"and {name} are one file"
            raise SourceError(f"{file.path} {both}, so its documents would count twice; name each file once")
        if name == file.path:
            files.append(file)
    return files


def local_files(paths: Iterable[str]) -> Iterator[str]:
    """All files on this machine, of any format, that paths, folders and patterns name."""
    for path in paths:
        if isinstance(path, Held):
            yield str(path)
        elif path:
            with suppress(OSError, ValueError):  # the error of reading says more
                filesystem, _, _, files = _named(path)
                if isinstance(filesystem, fs.LocalFileSystem):
                    yield from files


def _named(text: str) -> tuple[fs.FileSystem, str, fs.FileType, list[str]]:
    """The file system of a path, the path in it, its type, and its files: itself, all in a folder, or all
    that match if it is not found.
    """
    if "://" in text or text.startswith("file:"):
        filesystem, inside = file_system(text)
    else:
        path = Path(text)
        filesystem = fs.LocalFileSystem()
        inside = (path.expanduser() if text.startswith("~/") else path).as_posix()
    info = filesystem.get_file_info(inside)
    if info.type == fs.FileType.NotFound:
        matches = _glob(filesystem, inside) if _WILDCARDS.search(inside) else []
        files = sorted({file for match in matches for file in _files_of(filesystem, match)})
        return filesystem, inside, info.type, files
    files = _files_of(filesystem, info) if info.type == fs.FileType.Directory else [inside]
    return filesystem, inside, info.type, files


def _expand(path: PathLike, kind: Format) -> list[File]:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path holds a {type(path).__name__}, {path!r}; wanted paths of files")
    text = read_once(os.fspath(path))
    if isinstance(text, Held):
        return [File(text, str(text))]
    if not text:
        raise SourceError('path is an empty string; wanted a file, folder or pattern, "." for this folder')
    with reading(text, kind.name):
        filesystem, inside, is_a, found = _named(text)
        if is_a not in (fs.FileType.NotFound, fs.FileType.Directory):
            return [File(filesystem, inside)]
        files = [file for file in found if kind.has_ending(file)]
        if not files:
            # those without an ending that begin as the format does, as Hive and Trino write Parquet
            for file in found:
                if "." not in basename(file):
                    with filesystem.open_input_file(file) as source:
                        files += [file] if re.match(kind.unnamed, source.read(8)) else []
    if files:
        return [File(filesystem, file) for file in files]
    if is_a == fs.FileType.Directory:
        missing = f"{text} is a folder without {kind.name} files" + (
            f" (it has {basename(found[0])})" if found else ""
        )
    elif found:
        missing = f"none of the files that match {text} is {kind.name}"
    elif _WILDCARDS.search(inside):
        missing = f'no file matches "{text}"'
    else:
        parent, _, name = inside.rstrip("/").rpartition("/")
        folder = fs.FileSelector(parent or ("/" if inside.startswith("/") else "."), allow_not_found=True)
        hint = suggest(name, [info.base_name for info in filesystem.get_file_info(folder)])
        raise SourceError(f"{text} does not exist.{hint} Check the path.")
    raise SourceError(f"{missing}; wanted names that end in {kind.wanted}. Check the path.")


def _files_of(filesystem: fs.FileSystem, info: fs.FileInfo) -> list[str]:
    """A file itself, or all files in a folder, in the order of their names."""
    if info.type == fs.FileType.File:
        return [info.path]
    inside = _inside(filesystem, info, recursive=True)
    files = [entry.path for entry in inside if entry.type == fs.FileType.File]
    return sorted(file for file in files if not _hidden(file[len(info.path) :]))


def _hidden(inside: str) -> bool:
    return any(part[:1] in (".", "_") and "=" not in part for part in inside.split("/") if part)


def _glob(filesystem: fs.FileSystem, pattern: str) -> list[fs.FileInfo]:
    """The files that match a pattern, which is expanded part by part; `**` is any number of folders."""
    parts = pattern.split("/")
    fixed = next(place for place, part in enumerate(parts) if _WILDCARDS.search(part))
    start = "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ".")
    found = [filesystem.get_file_info(start)]
    for part in parts[fixed:]:
        folders = [info for info in found if info.type == fs.FileType.Directory]
        if part == "**":
            deeper = [info for folder in folders for info in _inside(filesystem, folder, recursive=True)]
            found = [*folders, *(info for info in deeper if not _hidden(info.path[len(start) :]))]
            if part != parts[-1]:
                found = [info for info in found if info.type == fs.FileType.Directory]
        else:
            inside = [info for folder in folders for info in _inside(filesystem, folder)]
            found = [info for info in inside if fnmatchcase(info.base_name, part)]
            if not _hidden(part):
                found = [info for info in found if not _hidden(info.base_name)]
    return found


def _inside(
    filesystem: fs.FileSystem, folder: fs.FileInfo, *, recursive: bool = False
) -> Iterable[fs.FileInfo]:
    """What is in a folder, or also in the folders in it, each of which is entered once: links may lead up."""
    is_local = isinstance(filesystem, fs.LocalFileSystem)
    selector = fs.FileSelector(folder.path, recursive=recursive and not is_local)
    found: list[fs.FileInfo] = filesystem.get_file_info(selector)
    if not recursive or not is_local:
        return found
    seen, waiting = {identity_of(folder.path)}, [info for info in found if info.type == fs.FileType.Directory]
    for inner in waiting:  # grows
        if (identity := identity_of(inner.path)) not in seen:
            seen.add(identity)
            inside = filesystem.get_file_info(fs.FileSelector(inner.path))
            found += inside
            waiting += [info for info in inside if info.type == fs.FileType.Directory]
    return found


def identity_of(path: str) -> object:
    """What all names of a file or folder on this machine have in common, through links too."""
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 - filesystems have texts as paths
        if status.st_ino:
            return status.st_dev, status.st_ino
    return path
