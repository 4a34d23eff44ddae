"""Atomic file writes: a file appears complete or not at all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NoReturn

from fastndcg.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft of `path` that replaces it at the end, or is deleted after an error.

    A link stays, and its target is replaced. A stream (`target_of`) gets the draft's content.

    Raises `SourceError` if no file can be written there, before anything is computed for it.
    """
    target, is_stream = target_of(path)
    draft = _draft(path, target, is_stream=is_stream)
    try:
        yield draft
        if is_stream:  # from the position of an open file
            import shutil

            number = handle_of(target)
            sink = os.open(target, os.O_WRONLY) if number is None else os.dup(number)
            with draft.open("rb") as source, os.fdopen(sink, "wb") as stream:
                shutil.copyfileobj(source, stream, 1 << 16)
            return
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    except BrokenPipeError:
        raise  # the reader of a stream has stopped
    except OSError as error:
        _refuse(path, error, draft)
    finally:
        draft.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `SourceError`, as `whole_file` would, if a file cannot be written; for long computations."""
    target, is_stream = target_of(path)
    _draft(path, target, is_stream=is_stream).unlink()


# ---- where a path leads ----

_HANDLE = re.compile(r"(?:(/proc/\d+)(?:/task/\d+)?|/dev)/fd/(\d+)")
_LINKS = 40  # most links that Linux follows


def target_of(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """Return the file to write for a path, with links resolved, and whether it is a stream.

    Streams are pipes, terminals, /dev/null, and open files of this process, such as /dev/stdout. Raises
    `SourceError` for a folder, for a device, and for anything else in /dev and /proc.
    """
    place = Path(path)
    for _ in range(_LINKS):
        place = Path(os.path.realpath(place.parent), place.name)
        if _HANDLE.fullmatch(str(place)) or not place.is_symlink():
            break
        place = place.parent / place.readlink()
    else:
        raise SourceError(f"{path} cannot be written: its links lead in a circle. Name a file.")
    try:
        number = handle_of(place)
        if number is not None:
            os.write(number, b"")  # fails for files that are open for reading only
        of_text = str(place) in ("/dev/null", "/dev/full", "/dev/tty") or str(place.parent) == "/dev/pts"
        if number is not None or place.is_fifo() or (of_text and place.is_char_device()):
            return place, True
        if _is_of_system(place):
            raise SourceError(
                f"{path} leads to {place}, which belongs to the system. Name a file, as in scores.parquet."
            )
        if place.exists() and not place.is_file():
            example = Path(path, "scores.parquet") if place.is_dir() else "scores.parquet"
            raise SourceError(f"{path} is not a file and cannot be written. Name a file, as in {example}.")
    except OSError as error:
        _refuse(path, error)
    return place, False


def _is_of_system(place: PurePath) -> bool:
    """Return whether a path leads into /dev or /proc, which are ordinary folders on Windows."""
    return place.anchor == "/" and place.parts[1:2] in (("dev",), ("proc",)) and place.parts[2:3] != ("shm",)


def handle_of(place: Path) -> int | None:
    """Return the file descriptor that a resolved path names, such as /dev/stdout."""
    found = _HANDLE.fullmatch(str(place))
    if found is None or found[1] not in (None, os.path.realpath("/proc/self")):
        return None
    return int(found[2])


def _draft(path: str | os.PathLike[str], target: Path, *, is_stream: bool) -> Path:
    """Create an empty file beside the target, or, for a stream, in the folder of temporary files."""
    folder, mode = target.parent, 0o666
    if is_stream:
        import tempfile  # imported here: its random and hashlib take a fifth of the package's import time

        folder, mode = Path(tempfile.gettempdir()), 0o600
    elif target.exists():
        mode = 0o600  # only users who may read the file may read the draft
    draft = folder / f".{target.name}.{os.urandom(4).hex()}.draft"
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except OSError as error:
        _refuse(path, error)
    return draft


def _refuse(path: str | os.PathLike[str], error: OSError, draft: Path | None = None) -> NoReturn:
    reason = str(error).replace(str(draft), str(path)) if error.errno is None else os.strerror(error.errno)
    step = "Name a file in a folder that exists and is writable."
    if error.errno == errno.ENOSPC:
        step = "Free some space, or name a file on another disk."
    raise SourceError(f"{path} cannot be written: {reason}. {step}") from None


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
    """Return the format to write by the file suffix; Parquet for unknown suffixes.

    >>> kind_of("a.CSV"), kind_of("a.pq")
    ('csv', 'parquet')
    """
    return KINDS.get(Path(path).suffix.lower(), "parquet")


def table_writer(path: str | os.PathLike[str], schema: pa.Schema, kind: str) -> Any:
    """Return a writer of tables to a file, with `write_table` and `close`."""
    import pyarrow as pa

    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    return pa.ipc.new_file(os.fspath(path), schema) if kind == "feather" else _TextWriter(path, kind)


def csv_rows(rows: Iterable[Iterable[Any]]) -> Iterator[list[Any]]:
    """Return cells for CSV: NaN is empty, list values are joined, text is unchanged.

    If FASTNDCG_SPREADSHEET is 1, an apostrophe stands before each text that a spreadsheet would compute.

    >>> os.environ["FASTNDCG_SPREADSHEET"] = "1"
    >>> list(csv_rows([["=1+1", "-5", -0.5], ["+a", ["de", "fr"], float("nan")]]))
    [["'=1+1", '-5', -0.5], ["'+a", 'de, fr', None]]
    >>> del os.environ["FASTNDCG_SPREADSHEET"]
    """
    is_safe = os.environ.get("FASTNDCG_SPREADSHEET", "0") not in ("", "0")

    def cell_of(value: Any) -> Any:
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        is_formula = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
        if is_safe and is_formula:
            return f"'{value}"
        return None if value != value else value  # noqa: PLR0124 - NaN alone differs from itself

    return ([cell_of(value) for value in row] for row in rows)


_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")  # the full-width ones too, as in Excel
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_EMPTY = "\ufdd0"  # placeholder for an empty text, which Python's writer would not quote
_AT_ONCE = 1 << 14  # rows converted to Python objects at a time: 20 MB


class _TextWriter:
    """Writes tables as CSV or JSON Lines. NaN becomes null, since neither has NaN."""

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        self._file = Path(path).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - `close` closes it
        self._is_csv, self._header = kind == "csv", True

    def write_table(self, table: pa.Table) -> None:
        import csv
        import io
        import json

        if self._is_csv and self._header:
            csv.writer(self._file).writerows(csv_rows([table.column_names]))
        self._header = False
        for part in table.to_batches(max_chunksize=_AT_ONCE):
            rows = zip(*(column.to_pylist() for column in part.columns), strict=True)
            if self._is_csv:
                lines = io.StringIO(newline="")
                marked = ([_EMPTY if value == "" else value for value in row] for row in csv_rows(rows))
                csv.writer(lines).writerows(marked)
                self._file.write(lines.getvalue().replace(_EMPTY, '""'))  # unlike null, which is left empty
                continue
            for row in rows:
                values = [None if value != value else value for value in row]  # noqa: PLR0124
                whole = dict(zip(table.column_names, values, strict=True))
                self._file.write(json.dumps(whole, ensure_ascii=False, default=str) + "\n")

    def close(self) -> None:
        self._file.close()
