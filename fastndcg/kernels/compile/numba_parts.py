"""Names of Numba and llvmlite that vector blocks use; None in plain Python.

They are not in `marks`, so that `private_numba`, which `compiling` imports, depends on this module only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

__all__ = ["IS_COMPILED", "binding", "ir", "numba", "types"]

# with NUMBA_DISABLE_JIT both copies of the kernels are plain
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
