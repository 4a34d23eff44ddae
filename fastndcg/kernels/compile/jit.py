"""Compiles functions with Numba, and keeps compiled drivers on disk.

driver       a function that Python calls: kept on disk
block        a function that only drivers and blocks call
allocating   a block that allocates memory

With an untested version of Numba, or one that lacks a private name that we use, only Numba's public interface
is used. That takes longer: each block is compiled by itself and again in each of its callers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numba
import numpy as np

from fastndcg.kernels.compile import kernel_cache

F = TypeVar("F", bound=Callable[..., Any])

# versions of Numba whose private interface was tested
KNOWN = numba.version_info.short < (0, 69)

private: Any = None  # the module `private_numba`; None where it cannot be used
if KNOWN:
    with suppress(ImportError, AttributeError):  # this version lacks a private name
        from . import private_numba as private

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_DRIVER = _OPTIONS if private is None else {**_OPTIONS, **private.DRIVER}
_BLOCK = _OPTIONS if private is None else {**_OPTIONS, **private.BLOCK}
_ALLOCATING = _OPTIONS if private is None else {**_OPTIONS, **private.ALLOCATING}


def block(function: F) -> F:
    """Compile a function that drivers and blocks call. It is stored with drivers, and must not allocate."""
    return numba.njit(**_BLOCK)(function)


def allocating(function: F) -> F:
    """Compile a block that allocates memory."""
    return numba.njit(**_ALLOCATING)(function)


empty = np.empty


def driver(*, plain: Any = None, **options: Any) -> Callable[[F], F]:
    """Compile a function that Python calls. It is kept on disk where that is possible."""

    def decorate(function: F) -> F:
        if private is None:
            with _folder_of_numba() as is_kept:
                return numba.njit(cache=is_kept, **_DRIVER, **options)(function)
        dispatcher = numba.njit(**_DRIVER, **options)(function)
        private.keep(dispatcher, function)
        return dispatcher

    return decorate


@contextmanager
def _folder_of_numba() -> Iterator[bool]:
    """Make Numba use our folder as its cache inside the block; yields whether the folder is writable."""
    path, before = kernel_cache.folder(), numba.config.CACHE_DIR
    try:
        if path is None:
            raise FileNotFoundError("a user without a home")
        kernel_cache.make(path)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        kernel_cache.tell_unkept(str(path or error))
        yield False
        return
    numba.config.CACHE_DIR = str(path)
    try:
        yield True
    finally:
        numba.config.CACHE_DIR = before


def is_kept(driver: Any, arguments: tuple[Any, ...], key: str) -> bool:
    """Whether this process or the folder has a driver for such arguments; `key` names its files."""
    kinds = tuple(driver.typeof_pyval(argument) for argument in arguments)
    if kinds in driver.overloads:
        return True
    return kernel_cache.is_kept(key) if private is None else private.is_kept(driver, kinds)


def compile_for(driver: Any, arguments: tuple[Any, ...]) -> None:
    """Prepare a driver for such arguments: load it from the folder, or compile it."""
    kinds = tuple(driver.typeof_pyval(argument) for argument in arguments)
    driver.compile(kinds)
