"""Decorators that say what a function of the kernels is. In plain Python they do nothing.

The modules of this package are loaded twice: as `fastndcg.kernels`, plain Python and NumPy without Numba, and
as `fastndcg.compiled`, compiled. They import each other by relative names, so the two copies never mix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .intrinsics import typing_of
from .llvm import IS_COMPILED, binding, ir, numba

__all__ = ["IS_COMPILED", "binding", "ir", "numba"]

F = TypeVar("F", bound=Callable[..., Any])


def _as_it_is(function: F) -> F:
    return function


def _as_plain(*, plain: Any = None, **options: Any) -> Callable[[F], F]:
    return lambda function: plain or function


private: Any = None
intrinsic: Any = _as_it_is
block: Any = _as_it_is
allocating: Any = _as_it_is
driver: Any = _as_plain  # its `plain` function replaces it in plain Python, where loops would be slow
empty: Any = np.empty
prange: Any = range  # its iterations are shared among threads

if IS_COMPILED and not TYPE_CHECKING:
    from numba.extending import intrinsic

    from .jit import allocating, block, driver, empty, private

    prange = numba.prange


def vectors(plain: F, *, within: bool = False, unrolled: bool = True) -> Callable[[Callable[..., Any]], F]:
    """Mark a vector block: the plain function, or where kernels are compiled the code that `emit` writes in
    its place.

    `emit(code, ...)` has the same parameters (see `llvm`). The code is a separate function, or a part of its
    caller where `within`: there its loops compete for registers with some forty arrays. A loop over few
    vectors should not be `unrolled`.
    """
    attributes = ("alwaysinline",) if within else ("noinline",) if unrolled else ("noinline", "optsize")

    def decorate(emit: Callable[..., Any]) -> F:
        return intrinsic(typing_of(plain, emit, *attributes)) if IS_COMPILED else plain

    return decorate
