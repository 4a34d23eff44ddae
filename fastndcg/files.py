"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fastndcg.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft of `path` to write to; it takes the place of `path` at the end, or vanishes after any error.

    Where the system knows files without a name the draft is one, and vanishes even if the process is killed.

    Raises `SourceError` where a file cannot be written there, before anything is computed for it.
    """
    target = Path(path)
    handle, draft = _draft(target)
    try:
        yield draft
        draft.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        if handle is not None:
            draft = _give_name(draft, target)
        draft.replace(target)
    except OSError as error:
        _refuse(target, error, draft)
    finally:
        if handle is not None:
            os.close(handle)
        if draft.parent != _HANDLES:
            draft.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `SourceError`, as `whole_file` would, if a file cannot be written; for long computations."""
    handle, draft = _draft(Path(path))
    if handle is None:
        draft.unlink()
    else:
        os.close(handle)


_HANDLES = Path("/proc/self/fd")  # where Linux shows a process its open files, those without a name too


def _draft(target: Path) -> tuple[int | None, Path]:
    """A new file beside the target: its handle and where it is seen if it has no name, otherwise its name."""
    if target.exists() and not target.is_file():
        raise SourceError(
            f"{target} is not a file and cannot be written. Name a file, as in {_example(target)}."
        )
    handle = _nameless(target.parent)
    if handle is not None:
        return handle, _HANDLES / str(handle)
    import tempfile  # here, because it imports random and hashlib: a fifth of the package's import time

    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".draft", dir=target.parent)
    except OSError as error:
        _refuse(target, error)
    os.close(handle)
    return None, Path(name)


def _nameless(folder: Path) -> int | None:
    """A file without a name; None where the file system has no such files, or nothing can be written."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return None
    if (_HANDLES / str(handle)).exists():
        return handle
    os.close(handle)
    return None


def _give_name(draft: Path, target: Path) -> Path:
    """The draft under a name of its own beside the target, which it can then replace."""
    # without a folder's handle Python calls link(), which on Linux does not follow the link of a handle
    folder = os.open(_HANDLES, os.O_RDONLY)
    try:
        while True:
            name = target.parent / f".{target.name}.{os.urandom(4).hex()}.draft"
            with suppress(FileExistsError):
                os.link(draft.name, name, src_dir_fd=folder, follow_symlinks=True)
                return name
    finally:
        os.close(folder)


def _refuse(target: Path, error: OSError, draft: Path | None = None) -> NoReturn:
    reason = str(error).replace(str(draft), str(target)) if error.errno is None else os.strerror(error.errno)
    raise SourceError(
        f"{target} cannot be written: {reason}. Name a file in a folder that exists and is writable."
    ) from None


def _example(target: Path) -> Path:
    return target / "scores.parquet" if target.is_dir() else Path("scores.parquet")


def _umask() -> int:
    # a process can only learn its mask by setting it
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# ---- tables in files ----

KINDS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".feather": "feather",
    ".arrow": "feather",
}


def kind_of(path: str | os.PathLike[str]) -> str:
    """What a table is written as, by the ending of its file; Parquet where the ending says nothing.

    >>> kind_of("a.CSV"), kind_of("a.pq")
    ('csv', 'parquet')
    """
    return KINDS.get(Path(path).suffix.lower(), "parquet")


def table_writer(path: str | os.PathLike[str], schema: pa.Schema, kind: str) -> Any:
    """What writes tables of a schema to a file, with `write_table` and `close`."""
    import pyarrow as pa

    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    return pa.ipc.new_file(os.fspath(path), schema) if kind == "feather" else _TextWriter(path, kind)


class _TextWriter:
    """Tables as CSV or JSON Lines, NaN as null, which neither of them has otherwise."""

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self._file = Path(path).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - `close` closes it
        self._is_csv, self._header = kind == "csv", True

    def write_table(self, table: pa.Table) -> None:
        import csv
        import json

        rows = [
            {name: None if value != value else value for name, value in row.items()}  # noqa: PLR0124
            for row in table.to_pylist()
        ]
        if not self._is_csv:
            self._file.writelines(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            return
        writer = csv.DictWriter(self._file, table.column_names)
        if self._header:
            writer.writeheader()
        self._header = False
        writer.writerows(rows)

    def close(self) -> None:
        self._file.close()
