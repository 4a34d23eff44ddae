"""Makes Numba a version that the package does not know and that lacks its private parts; a plugin: `pytest -p
public_numba`.

Numba itself still has them. What is refused is that a module of the package imports one, and a setting of
njit that is not documented.
"""

import builtins
import sys

import numba

PRIVATE = ("numba.core", "numba.np", "numba.misc", "numba.typed", "numba._")
DOCUMENTED = {
    "nopython", "nogil", "cache", "parallel", "error_model", "fastmath", "locals", "boundscheck", "inline", "forceobj", "looplift",
}  # fmt: skip
_imported, _njit = builtins.__import__, numba.njit


def _caller(depth):
    """Who called the function that asks, if it is a module of the package."""
    frame = sys._getframe(depth + 1)
    return frame if str(frame.f_globals.get("__name__", "")).startswith("fastndcg") else None


def _import(name, *args, **kwargs):
    # Numba's own code in C imports as if the module that calls it did, whose code has no such name
    if name.startswith(PRIVATE) and (caller := _caller(1)) is not None and name in caller.f_code.co_names:
        raise ImportError(f"this version has no {name}")
    return _imported(name, *args, **kwargs)


def _documented_njit(*args, **options):
    if _caller(1) is not None and (unknown := set(options) - DOCUMENTED):
        raise TypeError(f"this version takes no options {sorted(unknown)}")
    return _njit(*args, **options)


builtins.__import__ = _import
numba.njit = _documented_njit
numba.version_info = numba.version_info._replace(short=(999, 0))
