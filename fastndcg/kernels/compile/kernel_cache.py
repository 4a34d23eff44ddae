"""The folder of compiled drivers: one for each version of the package, in the user's cache folder or in
NUMBA_CACHE_DIR.

    fastndcg/0.1.0/cpython-311-numba0.68.1-9f2c.../     for example in ~/.cache

The last part is a digest of the source of all kernels. Numba checks only the file of a driver: without the
digest it would run a driver with old blocks after an upgrade. Numba itself keeps different processors and
argument types apart.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import IO, TYPE_CHECKING

from fastndcg._version import __version__
from fastndcg.common import progress
from fastndcg.errors import warn

if TYPE_CHECKING:
    from pathlib import Path

# modules that small calls do not need are imported inside functions: small calls look up no folder

_PAUSE, _PATIENCE = 0.0625, 1.0  # seconds between two looks at a lock, and after which a wait is reported
_WEEK = 7 * 24 * 3600  # seconds after which a folder to which nothing was written is removed
# raised where another process has locked the file
_LOCKED = PermissionError if sys.platform == "win32" else BlockingIOError


def folder() -> Path | None:
    """The folder for drivers of this version, which may not exist yet; None if there is no user's folder, or
    if others could put drivers there: loading one runs its code.
    """
    numba = sys.modules.get("numba")
    config = getattr(numba, "config", None)  # Numba may be half imported, by another thread
    path = folder_in(str(getattr(config, "CACHE_DIR", "") or os.environ.get("NUMBA_CACHE_DIR", "")))
    return None if path is None or any(map(_is_of_others, _own(path))) else path


def _own(path: Path) -> tuple[Path, ...]:
    """The folders that the package makes: its own, a version's, and that of drivers."""
    return path.parent.parent, path.parent, path


def _is_of_others(path: Path) -> bool:
    """Whether another user owns a folder or may write to it, of which a warning tells."""
    try:
        found = path.stat()
    except OSError:
        return False  # it is missing, or cannot be read
    if not hasattr(os, "geteuid") or (found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022):
        return False
    tell_unkept(
        f"{path}: other users can write there, and could put code into this process",
        "remove that folder, run chown -R and chmod -R go-w on it, or set NUMBA_CACHE_DIR to another",
    )
    return True


@cache
def folder_in(parent: str) -> Path | None:
    """The folder for drivers of this version in a cache folder; by default in the user's."""
    from importlib.metadata import version
    from pathlib import Path

    home = Path(parent) / "fastndcg" if parent else users_folder()
    if home is None:
        return None
    compiler = f"{sys.implementation.cache_tag}-numba{version('numba')}"
    return home.absolute() / __version__ / f"{compiler}-{_digest_of_kernels()[:16]}"


def users_folder() -> Path | None:
    """The package's folder in the user's cache folder, by the platform's convention; None without a home."""
    from pathlib import Path

    try:
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA")
            return (Path(local) if local else Path.home() / "AppData" / "Local") / "fastndcg" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "fastndcg"
        found = Path(os.environ.get("XDG_CACHE_HOME", ""))  # ignored unless it is an absolute path
        return (found if found.is_absolute() else Path.home() / ".cache") / "fastndcg"
    except RuntimeError:
        return None


def make(path: Path) -> None:
    """Make the folder if it is missing, and remove others that are old. Raises OSError if it cannot."""
    import shutil
    import time

    if path.is_dir():
        return
    path.parents[2].mkdir(parents=True, exist_ok=True)
    for each in _own(path):
        each.mkdir(mode=0o700, exist_ok=True)
    for other in path.parents[1].glob("*/*"):  # of other kernels, or of another version, Numba or Python
        with suppress(OSError):
            if other != path and time.time() - other.stat().st_mtime > _WEEK:
                shutil.rmtree(other, ignore_errors=True)


# ---- kernels that are kept ----
#
# Each kernel has a file KEY.lock: locked while it is compiled, empty until it is kept. This tells
# small jobs what is kept without importing Numba, which takes half a second.


def is_kept(key: str) -> bool:
    """Whether the folder has a kernel. Only Numba can read for which processor."""
    path = folder()
    try:
        return path is not None and (path / f"{key}.lock").stat().st_size > 0
    except OSError:
        return False


def note_kept(lock: IO[str] | None) -> None:
    """Record that the kernel of this lock is kept, unless writing it failed."""
    if lock is not None and not _warned:
        with suppress(OSError):
            lock.write("kept\n")
            lock.flush()


@contextmanager
def alone(key: str) -> Iterator[IO[str] | None]:
    """Lock a kernel, or the index of kernels, while this process compiles or writes it. Yields the lock file.

    Other processes wait as long as this one lives, then find the kernel in the folder. The system releases
    the lock when the process ends, however it ends. If the folder cannot be written or locked, each process
    compiles for itself.
    """
    with ExitStack() as stack:
        lock = None
        with suppress(OSError):
            if (path := folder()) is not None:
                make(path)
                lock = stack.enter_context((path / f"{key}.lock").open("a", encoding="ascii"))
                _lock(lock)
        yield lock


def _lock(file: IO[str]) -> None:
    """Lock a file until it is closed. Raises OSError where it cannot be locked."""
    from time import sleep

    waited = 0.0
    while True:
        try:
            if sys.platform == "win32":
                import msvcrt

                return msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            import fcntl

            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except _LOCKED:
            sleep(_PAUSE)
            if waited < _PATIENCE <= waited + _PAUSE:
                progress.tell("waiting for another process, which compiles kernels")
            waited += _PAUSE


def tell_unkept(where: str, step: str = "set NUMBA_CACHE_DIR to a folder that can be written") -> None:
    """Warn once in a process that compiled kernels cannot be kept."""
    if not _warned:
        _warned.append(where)
        warn(
            f"compiled kernels cannot be kept in {where}. Every process compiles them again, "
            f"which takes it many seconds; {step}."
        )


_warned: list[str] = []


@cache
def _digest_of_kernels() -> str:
    import hashlib
    from pathlib import Path

    here, digest = Path(__file__).parent.parent, hashlib.sha256()
    sources = sorted(here.rglob("*.py")) or sorted(here.rglob("*.pyc"))
    # without such files, the archive that holds the package
    for source in sources or [path for path in here.parents if path.is_file()]:
        digest.update((source.relative_to(here).as_posix() if sources else "").encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()
