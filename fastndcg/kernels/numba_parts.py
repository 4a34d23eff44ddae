"""The parts of Numba and llvmlite that vector blocks are written with; None in the plain world.

They stand below `marks`, so that `private_numba`, which `compiling` imports, needs no more than these.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

__all__ = ["IS_COMPILED", "binding", "ir", "numba", "types"]

# where Numba is told to compile nothing, both worlds are plain
IS_COMPILED = __name__.startswith("fastndcg.compiled.") and os.environ.get("NUMBA_DISABLE_JIT", "0") in (
    "",
    "0",
)

numba: Any = None
types: Any = None
ir: Any = None
binding: Any = None

if IS_COMPILED and not TYPE_CHECKING:
    import numba
    from llvmlite import binding, ir
    from numba import types
