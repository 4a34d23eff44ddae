"""Find the files of a path, and notice if one of them is rewritten."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from pyarrow import fs

from fastndcg.errors import InputTypeError, SourceError, suggest
from fastndcg.sources.formats import PARQUET, TABLE, Format, format_of_name
from fastndcg.sources.lines import Held
from fastndcg.sources.messages import reading

if TYPE_CHECKING:
    from fastndcg.typing import Path as PathLike

_MAGIC = (b"PAR1", b"PARE")  # the first four bytes of a Parquet file, plain and encrypted
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_WILDCARDS = re.compile(r"[*?\[]")


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

    def stamp(self) -> Stamp:
        if self.is_local:
            status = os.stat(self.path)  # noqa: PTH116 - filesystems have texts as paths
            return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
        info = self.filesystem.get_file_info(self.path)
        return Stamp(info.size, info.mtime_ns, None)

    @contextmanager
    def unchanged(self, since: Stamp) -> Iterator[None]:
        """Read the file within this block. Raises `SourceError` if its stamp is another before or after."""
        self._check(since)
        try:
            yield
        except Exception:
            self._check(since)  # why it cannot be read, then
            raise
        self._check(since)

    def _check(self, since: Stamp) -> None:
        if self.stamp() != since:
            raise SourceError(
                f"{self.path} was replaced or written to while it was read; "
                "read it again once it is complete, and write a new version under another name."
            )


def find_files(paths: list[PathLike], kind: Format = PARQUET) -> list[File]:
    """All files of the paths, each once. Of folders and patterns, only files of this format."""
    if not paths:
        raise SourceError("path is an empty list; name at least one file")
    files = [file for path in paths for file in _expand(path, kind)]
    seen: set[str] = set()
    for file in files:
        if file.path in seen:
            raise SourceError(
                f"{file.path} is named twice, so its documents would count twice; name each file once"
            )
        seen.add(file.path)
    return files


def _expand(path: PathLike, kind: Format) -> list[File]:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path holds a {type(path).__name__}, {path!r}; wanted paths of files")
    text = os.fspath(path)
    if isinstance(text, Held):
        return [File(text, str(text))]
    if not text:
        raise SourceError('path is an empty string; wanted a file, folder or pattern, "." for this folder')
    with reading(text, kind.name):
        filesystem, inside = _filesystem(text)
        info = filesystem.get_file_info(inside)
        if info.type == fs.FileType.NotFound and _WILDCARDS.search(inside):
            matches = _glob(filesystem, inside)
            found = [file for match in matches for file in _files_of(filesystem, match)]
            files = _only(filesystem, sorted(set(found)), kind)
            missing = (
                f'no file matches "{text}"'
                if not found
                else f"none of the files that match {text} is {kind.name}"
            )
        elif info.type == fs.FileType.NotFound:
            raise SourceError(f"{text} does not exist.{_nearest(filesystem, inside)} Check the path.")
        elif info.type == fs.FileType.Directory:
            found = _files_of(filesystem, info)
            files = _only(filesystem, found, kind)
            missing = f"{text} is a folder without {kind.name} files" + (
                f" (it has {_base(found[0])})" if found else ""
            )
        else:
            return [File(filesystem, inside)]
    if not files:
        raise SourceError(f"{missing}; wanted names that end in {kind.wanted}. Check the path.")
    return [File(filesystem, file) for file in files]


def _filesystem(text: str) -> tuple[fs.FileSystem, str]:
    if "://" in text or text.startswith("file:"):
        return fs.FileSystem.from_uri(text)  # type: ignore[no-any-return]
    path = Path(text)
    return fs.LocalFileSystem(), (path.expanduser() if text.startswith("~/") else path).as_posix()


def _files_of(filesystem: fs.FileSystem, info: fs.FileInfo) -> list[str]:
    """A file itself, or all files in a folder, in the order of their names."""
    if info.type == fs.FileType.File:
        return [info.path]
    inside = _inside(filesystem, info, recursive=True)
    files = [entry.path for entry in inside if entry.type == fs.FileType.File]
    return sorted(file for file in files if not _hidden(file[len(info.path) :]))


def _hidden(inside: str) -> bool:
    return any(part[:1] in (".", "_") and "=" not in part for part in inside.split("/") if part)


def _only(filesystem: fs.FileSystem, files: list[str], kind: Format) -> list[str]:
    """The files of a format, by their names. Where none is named Parquet, it begins as Parquet does, as Hive
    and Trino write it.

    Of any table, those of the one format that they have, or else Parquet. Raises `SourceError` where that
    says nothing.
    """
    named: dict[Format, list[str]] = {}
    for file in files:
        if (found := format_of_name(file)) is not None:
            named.setdefault(found, []).append(file)
    if kind in (PARQUET, TABLE) and PARQUET not in named and not (kind is TABLE and named):
        named[PARQUET] = [
            file for file in files if "." not in _base(file) and _begins_as_parquet(filesystem, file)
        ]
    if kind is TABLE and PARQUET not in named and len(named) > 1:
        one, other = (each[0] for each in list(named.values())[:2])
        raise SourceError(f"{one} and {other} are of two formats; name the files that are meant")
    return named.get(
        PARQUET if kind is TABLE and PARQUET in named else kind,
        next(iter(named.values()), []) if kind is TABLE else [],
    )


def _begins_as_parquet(filesystem: fs.FileSystem, file: str) -> bool:
    with filesystem.open_input_file(file) as source:
        return source.size() >= len(_MAGIC[0]) and source.read(len(_MAGIC[0])) in _MAGIC


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
            found = [info for info in inside if fnmatchcase(_base(info.path), part)]
            if not _hidden(part):
                found = [info for info in found if not _hidden(_base(info.path))]
    return found


def _inside(
    filesystem: fs.FileSystem, folder: fs.FileInfo, *, recursive: bool = False
) -> Iterable[fs.FileInfo]:
    return filesystem.get_file_info(fs.FileSelector(folder.path, recursive=recursive))  # type: ignore[no-any-return]


def _nearest(filesystem: fs.FileSystem, path: str) -> str:
    parent, _, name = path.rstrip("/").rpartition("/")
    selector = fs.FileSelector(parent or ("/" if path.startswith("/") else "."), allow_not_found=True)
    return suggest(name, [_base(info.path) for info in filesystem.get_file_info(selector)])


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
