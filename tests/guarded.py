"""Kernels whose arrays lie beside pages that nobody may read, so that a read or write past an array ends the
process.

    export PYTHONPATH=tests
    FASTNDCG_GUARD=after python -m pytest -p guarded tests/kernels/test_plan.py      # the end of each array is the end of a page
    FASTNDCG_GUARD=before python -m pytest -p guarded tests/kernels/test_plan.py     # and here its start is the start of one
    NUMBA_DISABLE_JIT=1 FASTNDCG_GUARD=index python -m pytest -p guarded -m pure tests/kernels/test_plan.py

What a driver is called with is copied to such places and back, and memory that kernels ask for themselves is
given to them there. A fault prints where Python was. Without compiling, "index" refuses indices below 0,
which NumPy and Numba count from the end: no kernel means that.

`install` has to come before the first kernel is imported. It is a plugin of pytest, so that any tests can be
run so.
"""

import ctypes
import faulthandler
import mmap
import os
import sys
import threading
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PAGE = mmap.PAGESIZE
SIDES = ("after", "before")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def fenced(size, side):
    """Address of `size` bytes that end or begin beside an unreadable page; where their mapping begins, and its length."""
    length = -(-size // PAGE) * PAGE + 2 * PAGE
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = _libc.mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if start in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(f"no mapping of {length} bytes: {os.strerror(ctypes.get_errno())}")
    last = start + length - PAGE
    if _libc.mprotect(start, PAGE, 0) or _libc.mprotect(last, PAGE, 0):
        raise MemoryError(f"no page can be protected: {os.strerror(ctypes.get_errno())}")
    return (last - size if side == "after" else start + PAGE), start, length


def beside_a_fence(array, side):
    """A copy that ends, or begins, beside an unreadable page."""
    address, start, length = fenced(array.nbytes, side)
    memory = (ctypes.c_char * array.nbytes).from_address(address)
    weakref.finalize(memory, _libc.munmap, start, length)
    copy = np.frombuffer(memory, array.dtype).reshape(array.shape)
    copy[...] = array
    copy.flags.writeable = array.flags.writeable
    return copy


# ---- what drivers are called with ----


class Guarded:
    """A driver that gets copies of its arrays. `place` puts an array elsewhere.

    One call at a time, since threads may fill parts of one array.
    """

    _one_at_a_time = threading.RLock()

    def __init__(self, driver, place):
        self._driver, self._place = driver, place

    def __getattr__(self, name):
        return getattr(self._driver, name)

    def __call__(self, *arguments):
        moved = []
        with self._one_at_a_time:
            try:
                return self._driver(*(self._moved(argument, moved) for argument in arguments))
            finally:
                for array, copy in moved:
                    if array.flags.writeable:
                        array[...] = copy

    def _moved(self, argument, moved):
        if isinstance(argument, tuple):
            parts = [self._moved(part, moved) for part in argument]
            return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)
        if not isinstance(argument, np.ndarray):
            return argument
        if not argument.flags.c_contiguous:
            raise TypeError(f"{self._driver} got an array that is not contiguous, which cannot be guarded")
        for array, copy in moved:  # an array that is given twice stays one
            if array is argument:
                return copy
        moved.append((argument, self._place(argument)))
        return moved[-1][1]


# ---- memory that compiled kernels ask for ----


class _Api(ctypes.Structure):
    """Numba's functions for memory, as nrt_external.h declares them."""

    _fields_ = [
        (name, ctypes.c_void_p) for name in ("allocate", "external", "manage", "acquire", "release", "data")
    ]


def guard_allocations(side):
    """Give compiled kernels memory beside unreadable pages. They have to be loaded after this."""
    from numba.core.runtime import _nrt_python

    helpers = _nrt_python.c_helpers
    api = ctypes.CFUNCTYPE(ctypes.POINTER(_Api))(helpers["get_api"])().contents
    mappings = {}

    def unmap(address):
        _libc.munmap(*mappings.pop(address))

    give_back = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(unmap)
    manage = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, type(give_back))(api.manage)

    def allocate(size, _=0):
        address, start, length = fenced(size, side)
        ctypes.memset(address, 0xA5, size)  # no zeros that hide what was never written
        mappings[address] = start, length
        return manage(address, give_back)

    plain = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(allocate)
    aligned = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32)(allocate)
    for name in ("MemInfo_alloc", "MemInfo_alloc_safe"):
        helpers[name] = ctypes.cast(plain, ctypes.c_void_p).value
    for name in ("MemInfo_alloc_aligned", "MemInfo_alloc_safe_aligned"):
        helpers[name] = ctypes.cast(aligned, ctypes.c_void_p).value
    _kept.extend([plain, aligned, give_back, manage])


_kept = []  # functions that Numba calls for the rest of the process


# ---- indices, where nothing is compiled ----


class Indexed(np.ndarray):
    """An array that takes no index below 0, and no slice whose ends are."""

    def __getitem__(self, key):
        _check_index(self, key)
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        _check_index(self, key)
        super().__setitem__(key, value)


def _check_index(array, key):
    for part in key if isinstance(key, tuple) else (key,):
        for number in (part.start, part.stop) if isinstance(part, slice) else (part,):
            if isinstance(number, int | np.integer) and number < 0:
                raise IndexError(f"index {key} of an array of shape {array.shape} is below 0")


def _indexed(array):
    return array.view(Indexed)


# ---- all of it ----


def install(how):
    """Guard what drivers are called with, "after" or "before" their arrays; check every "index" where nothing
    is compiled; or let errors out of every block, so that NUMBA_BOUNDSCHECK=1 finds all indices out of
    "bounds".
    """
    if any(name.startswith("fastndcg.") and name.endswith("drivers") for name in sys.modules):
        raise RuntimeError("kernels are imported already, and would be called without guards")
    faulthandler.enable()
    if how == "index":
        from fastndcg.kernels.compile import decorators as jit
    else:
        from fastndcg.compiled.compile import jit

    if how == "bounds":
        return
    if how == "index":
        jit.empty = lambda shape, kind: _indexed(np.empty(shape, kind))
    else:
        guard_allocations(how)
    place = _indexed if how == "index" else lambda array: beside_a_fence(array, how)
    declare = jit.driver

    def guarded_driver(**options):
        decorate = declare(**options)
        return lambda function: Guarded(decorate(function), place)

    jit.driver = guarded_driver


if os.environ.get("FASTNDCG_GUARD"):
    install(os.environ["FASTNDCG_GUARD"])
