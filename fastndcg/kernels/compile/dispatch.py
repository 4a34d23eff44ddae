"""Chooses how a driver runs: as plain Python, or as compiled code where that pays.

A call runs plain if that takes less than 0.15 s. A longer call loads its kernel if it is kept on disk. If
not, the kernel is compiled when this call and the earlier plain calls of this process to the same kernel
take more than a second together. The seconds are estimated from the size of a call and constants, so the same
call takes the same way on every machine, every time. A call that is part of a larger job counts as the whole
job (`part_of`). A kernel that is loaded already is used for calls of any size.

FASTNDCG_KERNELS is `auto` (this rule), `plain` or `compiled`. NUMBA_DISABLE_JIT=1 means plain.
"""

from __future__ import annotations

import os
import sys
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from fastndcg.common import progress
from fastndcg.common.threads import processors
from fastndcg.errors import InputError
from fastndcg.kernels.compile import kernel_cache
from fastndcg.kernels.schema import Plan

MODES = ("auto", "plain", "compiled")
LOADED, COMPILED = 0.15, 1.0  # seconds of plain calls from which on a kernel is loaded, and compiled
# seconds that the plain way takes for a unit of a call's size, by module of the driver: a document (see
# `launch`), a row, a value, a byte of text (Intel Xeon with two cores, 2026-11-28)
SECONDS = {
    "drivers": 4e-7,
    "intents": 1e-5,
    "rows": 1.2e-7,
    "resampling": 3e-7,
}
_SECONDS = 5e-8  # in any other module

Kernel = tuple[str, tuple[Any, ...]]  # the name of a driver and the kinds of its arguments

_loading = threading.RLock()
_loaded: dict[Kernel, Any] = {}
_plain: dict[Kernel, float] = defaultdict(float)  # seconds of this process in plain calls
_unkept: dict[Kernel, float] = defaultdict(float)  # those of them that a kept kernel would have saved
_whole: ContextVar[float] = ContextVar("whole", default=1.0)


def choose(job: float, together: float, is_kept: Callable[[], bool]) -> str:
    """The rule: "plain", "load" or "compile", for the seconds of a job, and those with earlier plain calls.

    >>> choose(0.1, 0.3, lambda: True), choose(0.2, 0.2, lambda: True), choose(0.1, 1.1, lambda: True)
    ('plain', 'load', 'load')
    >>> choose(0.6, 0.6, lambda: False), choose(0.6, 1.2, lambda: False)
    ('plain', 'compile')
    """
    if job < LOADED and together <= COMPILED:
        return "plain"
    if is_kept():
        return "load"
    return "compile" if together > COMPILED else "plain"


@contextmanager
def part_of(rows: float, part: float) -> Iterator[None]:
    """Declare that calls in the block handle `part` of the rows of a job; 0 where either is unknown."""
    before = _whole.set(max(1.0, rows / part) if rows and part else 1.0)
    try:
        yield
    finally:
        _whole.reset(before)


def mode() -> str:
    """The setting FASTNDCG_KERNELS: "auto", "plain" or "compiled". Raises InputError for any other."""
    return _mode(os.environ.get("FASTNDCG_KERNELS", ""), os.environ.get("NUMBA_DISABLE_JIT", "0"))


@cache
def _mode(setting: str, disabled: str) -> str:
    if disabled not in ("", "0"):
        return "plain"
    if (setting or "auto") not in MODES:
        raise InputError(f"FASTNDCG_KERNELS={setting!r}; expected one of {', '.join(MODES)}")
    return setting or "auto"


def run(name: str, size: float, *arguments: Any, job: float = 0.0) -> Any:
    """Run a driver by name, such as "rows.rows_by_code".

    `size` is the work of this call in units of `SECONDS`; `job` that of all calls if work is divided.
    """
    driver = compiled_driver(name, size, arguments, job)
    return run_plain(name, *arguments) if driver is None else driver(*arguments)


def run_plain(name: str, *arguments: Any) -> Any:
    """Run the plain driver of this name."""
    with np.errstate(all="ignore"):
        return _driver(name, "kernels")(*arguments)


def compiled_driver(name: str, size: float, arguments: tuple[Any, ...], job: float = 0.0) -> Any:
    """The compiled driver for such arguments, or None if the caller should take the plain way, which counts
    as an earlier plain call from then on. `size` and `job` are as in `run`.
    """
    setting = mode()
    if setting == "plain":
        return None
    kernel = (name, tuple(map(kind_of, arguments)))
    if kernel in _loaded:
        return _loaded[kernel]
    if setting == "compiled":
        return _load(kernel, arguments, may_compile=True)
    rate = SECONDS.get(name.split(".")[-2], _SECONDS)
    seconds, whole = size * rate, max(size, job) * rate * _whole.get()
    together = max(whole, _plain[kernel] + seconds)
    driver = None
    if choose(whole, together, lambda: kernel_cache.is_kept(_key(*kernel))) != "plain":
        driver = _load(kernel, arguments, may_compile=together > COMPILED)
    if driver is None:
        _plain[kernel] += seconds
        if whole >= LOADED:
            _unkept[kernel] += seconds
    return driver


def seconds_without_kept_kernels() -> float:
    """The estimated seconds of plain calls in this process that `fastndcg compile` would have saved."""
    return sum(_unkept.values())


def forget() -> None:
    """Forget the plain calls of this process, for tests: each begins as if it were a process of its own."""
    _plain.clear()
    _unkept.clear()


def _driver(name: str, package: str = "compiled") -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"fastndcg.{package}.{module}"), function)


def _load(kernel: Kernel, arguments: tuple[Any, ...], *, may_compile: bool) -> Any:
    """Load or compile a kernel, in one thread and one process at a time; None if it may not compile."""
    with _loading:
        if kernel in _loaded:
            return _loaded[kernel]
        # no fork during the import of Numba, and no interrupt, after which a later import would fail
        with uninterrupted():
            driver, jit = _driver(kernel[0]), import_module("fastndcg.compiled.compile.jit")
        key = _key(*kernel)
        if not jit.is_kept(driver, arguments, key):
            if not may_compile:  # the kept one is for another processor
                return None
            with kernel_cache.alone(key) as lock:  # another process may be compiling it
                if not jit.is_kept(driver, arguments, key):
                    progress.tell("compiling kernels, once on this machine, which takes a minute or less")
                    _compile(jit, driver, arguments)
                kernel_cache.note_kept(lock)
        _compile(jit, driver, arguments)
        _loaded[kernel] = driver
        return driver


def _compile(jit: Any, driver: Any, arguments: tuple[Any, ...]) -> None:
    # an interrupt would be ignored in LLVM, or free a module twice, which ends the process
    with uninterrupted():
        jit.compile_for(driver, arguments)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay interrupts until the block has ended: Ctrl-C, or Ray cancelling a task."""
    import signal

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    delayed: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *arrived: delayed.append(arrived))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if delayed:
        before(*delayed[0])


@cache
def _key(name: str, kinds: tuple[Any, ...]) -> str:
    """The name of a kernel's files: its driver, and a digest of the kinds of arguments."""
    return f"{name}-{zlib.crc32(repr(kinds).encode()):08x}"


def kind_of(argument: Any) -> Any:
    """A key that differs where Numba's types of arguments differ. Asking Numba itself took 0.2 ms a call."""
    if isinstance(argument, np.ndarray):
        # in C's order or Fortran's, aligned, writeable; not whose memory it is
        flags = argument.flags.num
        return argument.dtype, argument.ndim, flags & (0x501 if flags & 1 else 0x502)
    if isinstance(argument, Plan):
        return Plan, argument.term_parameters is None  # its arrays are of the same types in all plans
    if isinstance(argument, tuple):
        return type(argument), *map(kind_of, argument)
    return type(argument)


def cores() -> int:
    """The number of threads that Numba would run: NUMBA_NUM_THREADS, or the available processors."""
    config = getattr(sys.modules.get("numba"), "config", None)
    if found := getattr(config, "NUMBA_NUM_THREADS", None):
        return int(found)
    setting = os.environ.get("NUMBA_NUM_THREADS", "")
    return int(setting) if setting.isdecimal() and int(setting) else processors()


# a process that forks waits until no driver is being built: its child would inherit a locked lock that it
# cannot release
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release
    )
