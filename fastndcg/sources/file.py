"""A file of a file system, read plain or unpacked, and whether it is still the same."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from pyarrow import fs

from fastndcg.errors import SourceError
from fastndcg.sources.messages import reading
from fastndcg.sources.opening import Held, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_PARTITION = re.compile(r"([^=/]+)=([^/]*)")


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

    @property
    def identity(self) -> object:
        return identity_of(self.path) if self.is_local else self.path

    def open_unpacking(self) -> pa.NativeFile:
        """The unpacked content."""
        return unpack(self.filesystem.open_input_file(self.path))[0]

    def start(self, size: int) -> tuple[bytes, bool]:
        """The first unpacked bytes, and whether the file is packed. Raises `SourceError`."""
        with reading(self.path, "whole"):
            stream, packed = unpack(self.filesystem.open_input_file(self.path))
            with stream:
                return stream.read(size), packed is not None

    def unpacked(self) -> File:
        """The same file, unpacked into memory, for formats that are read from their end."""

        def read() -> bytes:
            with self.open_unpacking() as stream:
                content: bytes = stream.read()
            return content

        return self._replace(filesystem=Held(self.path, read))

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


def identity_of(path: str) -> object:
    """What all names of a file or folder on this machine have in common, through links too."""
    with suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 - filesystems have texts as paths
        if status.st_ino:
            return status.st_dev, status.st_ino
    return path
