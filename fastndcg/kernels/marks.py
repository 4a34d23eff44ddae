"""What each function of the kernels is: a driver, a block, and so on. In the plain world a mark does nothing.

The modules beside this one are executed twice. As `fastndcg.kernels` they are plain Python and NumPy, which is what Python imports
and what scores small inputs; Numba is not imported for them. As `fastndcg.compiled`, the same files, they are compiled. In both they
import each other by relative names, so that each world is whole; `worlds` says which one runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from time import thread_time
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import llvm
from .numba_parts import IS_COMPILED, binding, ir, numba, types

__all__ = ["IS_COMPILED", "binding", "ir", "numba", "types"]

F = TypeVar("F", bound=Callable[..., Any])


class TooSlowError(Exception):
    """A plain driver ran until its deadline; what it has done so far can be done again."""


class _Deadline(threading.local):
    at = float("inf")  # of `thread_time`, which a busy machine does not hasten
    last = staticmethod(
        lambda: float("inf")
    )  # says at the deadline whether there is a later one, which is costly to know


deadline = _Deadline()


def _as_it_is(function: F) -> F:
    return function


def _by_options(*given: Any, **options: Any) -> Callable[[F], F]:
    return _as_it_is


def _stoppable(function: F) -> F:
    @wraps(function)
    def watch(*arguments: Any) -> Any:
        if thread_time() > deadline.at:
            deadline.at = deadline.last()
            if thread_time() > deadline.at:
                raise TooSlowError
        return function(*arguments)

    return watch  # type: ignore[return-value]


def _as_plain(*, plain: Any = None, **options: Any) -> Callable[[F], F]:
    return lambda function: plain or function


private: Any = None
BLOCK: dict[str, Any] = {}
intrinsic: Any = _as_it_is
overload: Any = _by_options
block: Any = _as_it_is
inlined: Any = _as_it_is
apart: Any = _as_it_is
allocating: Any = _as_it_is
driver: Any = _as_plain  # `plain` takes its place in the plain world, where loops would be slow
stoppable: Any = _stoppable  # a block where a plain driver stops after its deadline; drivers that run it write nothing they read
empty: Any = np.empty
steps: Any = range  # of a loop whose steps threads share

if IS_COMPILED and not TYPE_CHECKING:
    from numba.extending import intrinsic, overload

    from .compiling import BLOCK, allocating, apart, block, driver, empty, inlined, private

    stoppable, steps = _as_it_is, numba.prange


def in_place_of(plain: F) -> Callable[[Callable[..., Any]], F]:
    """A block that takes the place of a plain function where kernels are compiled."""
    return lambda function: block(function) if IS_COMPILED else plain


def vectors(plain: F, *, within: bool = False, unrolled: bool = True) -> Callable[[Callable[..., Any]], F]:
    """A block of vectors: the plain function, and where kernels are compiled the code that `emit` writes in its place.

    `emit(builder, ...)` gets arrays as `Data`. The code is a function of its own, or a part `within` its caller; to have its
    loops `unrolled` is not worth while where they are short.
    """

    def decorate(emit: Callable[..., Any]) -> F:
        if not IS_COMPILED:
            return plain
        code = (
            llvm.within_caller(emit) if within else llvm.own_function(emit.__name__, emit, unrolled=unrolled)
        )
        return intrinsic(llvm.like(plain, code))

    return decorate
