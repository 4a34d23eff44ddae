"""Files that appear whole or not at all, and tables written to them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from fastndcg.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft of `path` that replaces it, or the target of a link, or is deleted after an error.

    Raises `SourceError` if no file can be written there, before anything is computed for it.
    """
    target = Path(os.path.realpath(path))
    draft = _draft(path, target)
    try:
        yield draft
        if target.exists():
            draft.chmod(target.stat().st_mode & 0o777)
        draft.replace(target)
    except OSError as error:
        _refuse(path, error, draft)
    finally:
        draft.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `SourceError`, as `whole_file` would, if a file cannot be written; for long computations."""
    _draft(path, Path(os.path.realpath(path))).unlink()


def _draft(path: str | os.PathLike[str], target: Path) -> Path:
    """Create an empty file beside the target."""
    draft = target.with_name(f".{target.name}.{os.urandom(4).hex()}.draft")
    try:
        is_new, absolute = not target.exists(), str(Path(path).absolute())
        # /dev/stdout may lead to a file, which a draft would replace while it is written to
        is_of_system = absolute.startswith(("/dev/", "/proc/")) and not absolute.startswith("/dev/shm/")  # noqa: S108
        if is_of_system or not (is_new or target.is_file()):
            example = Path(path, "scores.parquet") if target.is_dir() else "scores.parquet"
            raise SourceError(f"{path} is not a file and cannot be written. Name a file, as in {example}.")
        # only users who may read the file may read the draft
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if is_new else 0o600))
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

_KINDS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".feather": "feather", ".arrow": "feather"}
_EMPTY = "\ufdd0"  # placeholder for an empty text, which Python's writer would not quote
_AT_ONCE = 1 << 14  # rows converted to Python objects at a time: 20 MB


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the format to write by the file suffix; Parquet for unknown suffixes.

    >>> kind_of("a.CSV"), kind_of("a.pq")
    ('csv', 'parquet')
    """
    return _KINDS.get(Path(path).suffix.lower(), "parquet")


def table_writer(path: str | os.PathLike[str], schema: pa.Schema, kind: str) -> Any:
    """Return a writer of tables to a file, with `write_table` and `close`."""
    import pyarrow as pa

    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)
    if kind == "feather":
        return pa.ipc.new_file(os.fspath(path), schema)
    return _TextWriter(path, schema.names, is_csv=kind == "csv")


def csv_rows(rows: Iterable[Iterable[Any]]) -> Iterator[list[Any]]:
    """Return cells for CSV: NaN is empty, list values are joined, text is unchanged.

    >>> list(csv_rows([["-5", ["de", "fr"], float("nan")]]))
    [['-5', 'de, fr', None]]
    """
    for row in rows:
        joined = (", ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row)
        yield [None if cell != cell else cell for cell in joined]  # noqa: PLR0124 - NaN alone differs from itself


class _TextWriter:
    """Writes tables as CSV or JSON Lines. NaN becomes null, since neither has NaN."""

    def __init__(self, path: str | os.PathLike[str], names: list[str], *, is_csv: bool) -> None:
        self._file = Path(path).open("w", encoding="utf-8", newline="")  # noqa: SIM115 - `close` closes it
        self._names, self._write = names, self._csv if is_csv else self._json
        if is_csv:
            self._csv([names])

    def write_table(self, table: pa.Table) -> None:
        for part in table.to_batches(max_chunksize=_AT_ONCE):
            self._write(zip(*(column.to_pylist() for column in part.columns), strict=True))

    def _csv(self, rows: Iterable[Iterable[Any]]) -> None:
        import csv
        import io

        lines = io.StringIO(newline="")
        csv.writer(lines).writerows(
            [_EMPTY if cell == "" else cell for cell in row] for row in csv_rows(rows)
        )
        self._file.write(lines.getvalue().replace(_EMPTY, '""'))  # unlike null, which is left empty

    def _json(self, rows: Iterable[Iterable[Any]]) -> None:
        import json

        for row in rows:
            values = (None if value != value else value for value in row)  # noqa: PLR0124
            record = dict(zip(self._names, values, strict=True))
            self._file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")

    def close(self) -> None:
        self._file.close()
