"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from fastndcg.errors import SourceError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside `path` to write to; it takes the place of `path` at the end, or vanishes after any error.

    Raises `SourceError` where a file cannot be written there, before anything is computed for it.
    """
    target = Path(path)
    draft = _draft(target)
    try:
        yield draft
        draft.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        draft.replace(target)
    except OSError as error:
        _refuse(target, error)
    finally:
        draft.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `SourceError`, as `whole_file` would, where a file cannot be written; for what takes long before it writes."""
    _draft(Path(path)).unlink()


def _draft(target: Path) -> Path:
    if target.exists() and not target.is_file():
        raise SourceError(
            f"{target} is not a file and cannot be written. Name a file, as in {_example(target)}."
        )
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".draft", dir=target.parent)
    except OSError as error:
        _refuse(target, error)
    os.close(handle)
    return Path(name)


def _refuse(target: Path, error: OSError) -> NoReturn:
    reason = str(error) if error.errno is None else os.strerror(error.errno)
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
