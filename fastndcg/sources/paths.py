"""Find the files of a path: a file, all files in a folder, or those that match a pattern."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import basename
from typing import TYPE_CHECKING

from pyarrow import fs

from fastndcg.errors import InputTypeError, SourceError, suggest
from fastndcg.measures.notation import is_notation
from fastndcg.sources.open_file import File, MemoryFile, read_once, reading

if TYPE_CHECKING:
    from fastndcg.sources.open_file import Format
    from fastndcg.typing import Path as PathLike

_WILDCARDS = re.compile(r"[*?\[]")


def as_list(path: PathLike | Iterable[PathLike]) -> list[PathLike]:
    if isinstance(path, str | os.PathLike):
        return [path]
    if isinstance(path, bytes | bytearray) or not isinstance(path, Iterable) or hasattr(path, "read"):
        raise InputTypeError(
            f"path is a {type(path).__name__}; expected a path or a list of them. "
            "For an open file or bytes, give pyarrow.parquet.read_table(...) to Rankings.from_arrow."
        )
    return list(path)


def find_files(paths: list[PathLike], kind: Format) -> list[File]:
    """List all files of the paths, each once. Folders and patterns yield only files of this format.

    Several links to one file in a folder count once. Raises `SourceError` if two paths name one file.
    """
    if not paths:
        raise SourceError("path is an empty list; name at least one file")
    expanded = [(place, file) for place, path in enumerate(paths) for file in _expand(path, kind)]
    if len(expanded) == 1:
        return [expanded[0][1]]
    files: list[File] = []
    seen: dict[object, tuple[int, str]] = {}
    for place, file in expanded:
        identity = identity_of(file.path) if file.is_local else file.path
        first, name = seen.setdefault(identity, (place, file.path))
        if first != place:
            both = "is named twice" if name == file.path else f"and {name} are one file"
            raise SourceError(f"{file.path} {both}, so its documents would count twice; name each file once")
        if name == file.path:
            files.append(file)
    return files


def local_files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the local files of any format that paths, folders and patterns name."""
    for path in filter(None, paths):
        with suppress(OSError, ValueError, SourceError):  # reading will raise a better error
            file = File.of(path)
            if file.is_local:
                yield from _listed(file)[1]


def _listed(file: File) -> tuple[fs.FileType, list[str]]:
    """Return the type of a path and its files: itself, all files in a folder, or all matches of a pattern."""
    filesystem = file.filesystem or fs.LocalFileSystem()
    info = filesystem.get_file_info(file.path)
    if info.type == fs.FileType.NotFound:
        matches = _glob(filesystem, file.path) if _WILDCARDS.search(file.path) else []
    elif info.type == fs.FileType.Directory:
        matches = [info]
    else:
        return info.type, [file.path]
    return info.type, sorted({path for match in matches for path in _files_of(filesystem, match)})


def _expand(path: PathLike, kind: Format) -> list[File]:
    if not isinstance(path, str | os.PathLike):
        raise InputTypeError(f"path holds a {type(path).__name__}, {path!r}; expected paths of files")
    text = read_once(os.fspath(path))
    if not text:
        raise SourceError('path is an empty string; expected a file, folder or pattern, "." for this folder')
    file = File.of(text)
    if isinstance(text, MemoryFile) or (file.is_local and Path(file.path).is_file()):
        return [file]
    with reading(text, kind.name):
        is_a, listed = _listed(file)
        if is_a not in (fs.FileType.NotFound, fs.FileType.Directory):
            return [file]
        each = [file._replace(path=inside) for inside in listed]
        # Hive and Trino write Parquet files without an ending
        files = [one for one in each if kind.has_ending(one.path)] or [
            one for one in each if "." not in basename(one.path) and re.match(kind.begins, one.start(8)[0])
        ]
        if files:
            return files
        if is_a == fs.FileType.Directory:
            some = f" (it has {basename(listed[0])})" if listed else ""
            missing = f"{text} is a folder without {kind.name} files{some}"
        elif listed:
            missing = f"none of the files that match {text} is {kind.name}"
        elif _WILDCARDS.search(file.path):
            missing = f'no file matches "{text}"'
        else:
            parent, _, name = file.path.rpartition("/")
            selector = fs.FileSelector(parent or ("/" if file.path[:1] == "/" else "."), allow_not_found=True)
            siblings = (file.filesystem or fs.LocalFileSystem()).get_file_info(selector)
            if is_notation(text):
                raise SourceError(
                    f'{text} is a measure, not a file; name the data first, then measure="{text}"'
                )
            hint = suggest(name, [info.base_name for info in siblings if info.base_name[0] != "."])
            raise SourceError(f"{text} does not exist.{hint} Check the path.")
        step = f", or name each file, as in {text}/*" if is_a == fs.FileType.Directory else ""
        raise SourceError(f"{missing}; expected names that end in {kind.expected}. Check the path{step}.")


def _files_of(filesystem: fs.FileSystem, info: fs.FileInfo) -> list[str]:
    """Return a file itself, or all files in a folder."""
    if info.type == fs.FileType.File:
        return [info.path]
    inside = _inside(filesystem, info, recursive=True)
    files = [entry.path for entry in inside if entry.type == fs.FileType.File]
    return [file for file in files if not _hidden(file[len(info.path) :])]


def _hidden(inside: str) -> bool:
    return any(part[:1] in (".", "_") and "=" not in part for part in inside.split("/") if part)


def _glob(filesystem: fs.FileSystem, pattern: str) -> list[fs.FileInfo]:
    """Expand a pattern part by part; `**` matches any number of folders."""
    parts = pattern.split("/")
    fixed = next(place for place, part in enumerate(parts) if _WILDCARDS.search(part))
    start = "/".join(parts[:fixed]) or ("/" if pattern.startswith("/") else ".")
    matches = [filesystem.get_file_info(start)]
    for part in parts[fixed:]:
        folders = [info for info in matches if info.type == fs.FileType.Directory]
        if part == "**":
            deeper = [info for folder in folders for info in _inside(filesystem, folder, recursive=True)]
            matches = [*folders, *(info for info in deeper if not _hidden(info.path[len(start) :]))]
        else:
            inside = [info for folder in folders for info in _inside(filesystem, folder)]
            matches = [info for info in inside if fnmatchcase(info.base_name, part)]
            if not _hidden(part):
                matches = [info for info in matches if not _hidden(info.base_name)]
    return matches


def _inside(
    filesystem: fs.FileSystem, folder: fs.FileInfo, *, recursive: bool = False
) -> Iterable[fs.FileInfo]:
    """List a folder, and with `recursive` its subfolders, entering each once: links may lead up."""
    entries, seen, waiting = list[fs.FileInfo](), set[object](), [folder]
    if not recursive or not isinstance(filesystem, fs.LocalFileSystem):
        entries += filesystem.get_file_info(fs.FileSelector(folder.path, recursive=recursive))
        return entries
    for inner in waiting:  # grows in the loop
        if (identity := identity_of(inner.path)) not in seen:
            seen.add(identity)
            inside = filesystem.get_file_info(fs.FileSelector(inner.path))
            entries += inside
            waiting += [info for info in inside if info.type == fs.FileType.Directory]
    return entries


def identity_of(path: str) -> object:
    """Return a key that all names of a local file or folder share, including links."""
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 - paths are strings here
        if status.st_ino:
            return status.st_dev, status.st_ino
    return path
