"""How functions are compiled, and how what was compiled is kept.

driver       what Python calls: kept on disk
block        a piece of drivers, which Python should not call
inlined      a block that becomes part of its only caller
apart        a block that stays a function of its own
allocating   a block that allocates memory

With a version of Numba that is not known, or that lacks one of its private parts, all is compiled by its public parts. That takes
longer: each block is compiled by itself and again in each of its callers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numba
import numpy as np

from fastndcg.kernels import caching

F = TypeVar("F", bound=Callable[..., Any])

# versions of Numba whose private parts were looked at
KNOWN = numba.version_info.short < (0, 69)

private: Any = None  # the module of them; None where they are not known
if KNOWN:
    with suppress(ImportError, AttributeError):  # this version lacks one
        from . import private_numba as private

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_DRIVER = _OPTIONS if private is None else {**_OPTIONS, **private.DRIVER}
BLOCK = _OPTIONS if private is None else {**_OPTIONS, **private.BLOCK}
_ALLOCATING = _OPTIONS if private is None else {**_OPTIONS, **private.ALLOCATING}


def block(function: F) -> F:
    """Compile a piece of drivers, which Python should not call; it is kept as a part of them only, and does not allocate."""
    return numba.njit(**BLOCK)(function)


def inlined(function: F) -> F:
    """A block that becomes part of its only caller, because it takes all tables and all scratch memory.

    To pass some forty arrays costs 0.1 microseconds a call. Inlined by Numba and not by LLVM, which would optimise the block
    once for itself and again in each caller: cold compilation took 34 s so, and takes a third of it.
    """
    return numba.njit(inline="always", **BLOCK)(function)


def apart(function: F) -> F:
    """A block that stays a function of its own, and gets no more of its contiguous arrays than data and lengths.

    For blocks with loops: within their caller they would slow each other down (see `own_function`). To call a plain block takes
    seven words for each array, and two more for each dimension after the first. It must not allocate: nobody would learn that
    there was no memory.
    """
    return block(function) if private is None else private.apart(function, BLOCK)


def allocating(function: F) -> F:
    """A block that allocates memory."""
    return numba.njit(**_ALLOCATING)(function)


# Numba compiles np.empty as a function of its own for each dtype and number of dimensions, 0.05 s each
empty = np.empty if private is None else private.empty


def driver(*, plain: Any = None, **options: Any) -> Callable[[F], F]:
    """Compile what Python calls; it is kept on disk (see `caching`) where a folder can be written, and found where it can be read."""

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
    """Numba keeps in our folder what it is told to keep meanwhile; whether it can be written, without which Numba reads none."""
    kept, before = caching.folder(), numba.config.CACHE_DIR
    try:
        if kept is None:
            raise FileNotFoundError("a user without a home")
        caching.make(kept)
        tempfile.TemporaryFile(dir=kept).close()
    except OSError as error:
        caching.tell_unkept(str(kept or error))
        yield False
        return
    numba.config.CACHE_DIR = str(kept)
    try:
        yield True
    finally:
        numba.config.CACHE_DIR = before


def is_kept(driver: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a driver was compiled for such arguments, by this process or into the folder; without private parts, for any."""
    kinds = tuple(driver.typeof_pyval(argument) for argument in arguments)
    if kinds in driver.overloads:
        return True
    return caching.holds(driver.__name__) if private is None else private.is_kept(driver, kinds)


def compile_for(driver: Any, arguments: tuple[Any, ...]) -> None:
    """Have a driver ready for such arguments: loaded where it is kept, and compiled otherwise."""
    kinds = tuple(driver.typeof_pyval(argument) for argument in arguments)
    driver.compile(kinds) if private is None else private.compile_for(driver, kinds)
