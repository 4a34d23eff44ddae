"""Chooses how a driver runs: as plain Python, or as compiled code once that pays.

Importing Numba takes half a second, loading a kept driver a tenth of a second or less, and compiling one some
seconds. One rule holds for all drivers and hosts. It asks for the seconds that this process has spent in the
plain way of a driver, together with those that this call would take:

    kept        loaded when they reach the time of loading
    not kept    compiled when they reach the time of compiling it; or when the seconds that all processes of
                this user have spent without the drivers that are not kept reach the time of compiling them
                all: then all are due, each at its next call that is worth loading it

Numba's import is shared by all drivers that a process has work for. A plain way is Python's, NumPy's or
pyarrow's. Times are measured, and remembered in a file beside the kept drivers (`caching.remember`).

FASTNDCG_KERNELS is `auto` (this rule), `plain` or `compiled`. NUMBA_DISABLE_JIT=1 means plain.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from time import thread_time
from typing import Any

import numpy as np

from fastndcg.common import progress
from fastndcg.common.threads import processors
from fastndcg.errors import InputError
from fastndcg.kernels.compile import caching
from fastndcg.kernels.flow.tables import Plan

WORLDS = ("auto", "plain", "compiled")
# seconds until this machine has measured them: of the plain way for a unit of a call's size, and of compiling
# (AMD EPYC, 2026-11-24). Units are documents for each measure, rows, values, and bytes of text
GUESSES = {
    "drivers": (5e-7, 7.0),
    "intent_folds": (1e-5, 5.0),
    "joining": (3e-7, 0.6),
    "draws": (3e-7, 1.0),
}
_GUESS = (5e-8, 0.4)  # of any other module
_IMPORTING, _LOADING = 0.5, 0.1
_LEAST = 0.01  # seconds below which a call says nothing about a rate, and is not written down by itself
_SCORING = "flow.drivers.score_levels_serial"

_building = threading.RLock()
_here: dict[str, float] = defaultdict(float)  # seconds of this process in plain ways, by key
_told: dict[str, float] = defaultdict(float)  # those of them that are written down
_ready: dict[Any, Any] = {}  # compiled drivers, by name and kinds of arguments


class _Measured:
    """What was measured on this machine: lines of `caching.remember`, each a word, a key and three numbers.

    A key is the name of a driver and, where they are known, a digest of the kinds of its arguments.
    """

    def __init__(self) -> None:
        self.end = 0  # bytes of the file that were read
        self.spent: dict[str, float] = defaultdict(float)  # by key, without drivers that are kept or due
        self.due: set[str] = set()
        self.kept: set[str] = set()  # keys, and their names alone
        # by name
        self.rates: dict[str, tuple[float, float]] = {}  # seconds, and units of size
        self.compiling: dict[str, float] = {}
        self.loading: dict[str, float] = {}

    def learn(self, line: str) -> None:
        """Take in a line. Raises ValueError for one that is damaged."""
        word, key, *numbers = line.split()
        seconds, timed, size = map(float, numbers)
        if not all(0 <= number < 1e15 for number in (seconds, timed, size)):
            raise ValueError(line)
        name = key.partition("/")[0]
        if word == "plain":
            self.spent[key] += seconds
            before = self.rates.get(name, (0.0, 0.0))
            self.rates[name] = before[0] + timed, before[1] + size
        elif word == "due":
            self.due |= set(self.spent)
            self.spent.clear()
        elif word == "lost":
            self.kept.discard(key)
        elif word in ("compiled", "loaded"):
            times = self.compiling if word == "compiled" else self.loading
            times[name] = seconds
            if name != "numba":
                times["any"] = seconds  # until it is measured, other drivers load as fast
            self.kept |= {key, name}
            for each in (key, name):
                self.spent.pop(each, None)

    def seconds(self, name: str, size: float) -> float:
        """How long the plain way takes for work of this size."""
        timed, of = self.rates.get(name, (0.0, 0.0))
        return size * (timed / of if timed and of else _guess(name)[0])

    def price(self, key: str) -> float:
        """How long compiling a driver takes."""
        name = key.partition("/")[0]
        return self.compiling.get(name, _guess(name)[1])


_memories: dict[Any, _Measured] = defaultdict(_Measured)


def _measured() -> _Measured:
    """What was measured so far, by other processes too."""
    path = caching.folder()
    known = _memories[path]
    text, end = caching.remembered(path, known.end)
    if end < known.end:  # the file was deleted
        known = _memories[path] = _Measured()
        text, end = caching.remembered(path, 0)
    known.end = end
    for line in text.splitlines():
        with suppress(ValueError):
            known.learn(line)
    return known


def _guess(name: str) -> tuple[float, float]:
    return GUESSES.get(_module(name), _GUESS)


def _module(name: str) -> str:
    return name.rpartition(".")[0].rpartition(".")[2]


def _is_imported() -> bool:
    return "fastndcg.compiled.compile.compiling" in sys.modules


def _floor() -> float:
    """Seconds below which no work is worth loading: small calls open no file."""
    return _LEAST if _is_imported() else _LOADING


def _precedes_scoring(name: str) -> bool:
    """Whether a unit of the driver's work is a row, which is read or grouped to be scored next."""
    return _module(name) in ("rows", "joining")


def world() -> str:
    """The mode of FASTNDCG_KERNELS: "auto", "plain" or "compiled". Raises InputError for any other."""
    return _world(os.environ.get("FASTNDCG_KERNELS", ""), os.environ.get("NUMBA_DISABLE_JIT", "0"))


@cache
def _world(mode: str, disabled: str) -> str:
    if disabled not in ("", "0"):
        return "plain"
    if (mode or "auto") not in WORLDS:
        raise InputError(f"FASTNDCG_KERNELS={mode!r}; wanted one of {', '.join(WORLDS)}")
    return mode or "auto"


def run(name: str, size: float, *arguments: Any, ahead: float = 0.0) -> Any:
    """Run a driver by name, such as "reading.rows.rows_by_code"; `size` is its work in units of `GUESSES`.

    `ahead` is the work of all calls for the same task, if it is known.
    """
    driver = compiled_driver(name, max(size, ahead), arguments)
    return run_plain(name, size, arguments) if driver is None else driver(*arguments)


def compiled_driver(name: str, size: float, arguments: tuple[Any, ...]) -> Any:
    """The compiled driver for arguments of such kinds if it should run; None if the plain way should."""
    mode = world()
    if mode == "plain":
        return None
    kinds = (name, tuple(map(kind_of, arguments)))
    if kinds in _ready:
        return _ready[kinds]
    if mode == "auto" and not _pays(_key(*kinds), size):
        return None
    return _build(kinds, size, arguments)


def _pays(key: str, size: float, taken: float = 0.0) -> bool:
    """The rule. `taken` is the time that the plain way of this call has taken already."""
    name, before = key.partition("/")[0], _here.get(key, 0.0)
    scored = size * _guess(_SCORING)[0] if _precedes_scoring(name) else 0.0
    if before + max(taken, scored, size * _guess(name)[0]) < _floor():
        return False
    known = _measured()
    ahead = max(taken, known.seconds(name, size))
    if before + ahead < _price_of_loading(key, size, known):
        return False
    if key in known.kept or key in known.due or before + ahead >= known.price(key):
        return True
    spent = sum(known.spent.values()) + before - _told.get(key, 0.0) + ahead
    if spent < sum(map(known.price, {key, *known.spent})):
        return False
    caching.remember("due", "all")
    return True


def _price_of_loading(key: str, size: float, known: _Measured) -> float:
    """Seconds to load a driver that is kept, and to import Numba if no other work is worth that."""
    name = key.partition("/")[0]
    price = known.loading.get(name, known.loading.get("any", _LOADING))
    if _is_imported() or (_precedes_scoring(name) and _pays(_SCORING, size)):
        return price
    others = sum(list(_here.values())) - _here.get(key, 0.0)
    return price + max(0.0, known.loading.get("numba", _IMPORTING) - others)


def run_plain(name: str, size: float, arguments: tuple[Any, ...]) -> Any:
    """Run the plain driver."""
    with counted(name, size, arguments), np.errstate(all="ignore"):
        return _driver(name, "kernels")(*arguments)


@contextmanager
def counted(name: str, size: float, arguments: tuple[Any, ...] = ()) -> Iterator[None]:
    """Count the seconds of a block as those of the plain way of a driver. Blocks within it do not count."""
    if _counting.is_on or world() != "auto":
        yield
        return
    started, _counting.is_on = thread_time(), True
    try:
        yield
    except BaseException:
        size = 0.0  # of which not all was done
        raise
    finally:
        _counting.is_on = False
        _count(_key(name, tuple(map(kind_of, arguments))), size, thread_time() - started)


class _Counting(threading.local):
    is_on = False


_counting = _Counting()


def _count(key: str, size: float, seconds: float) -> None:
    _here[key] += seconds
    untold = _here[key] - _told[key]
    if untold < _LEAST or _here[key] < _floor() or key in (known := _measured()).kept:
        return
    if _here[key] < _price_of_loading(key, size, known):
        return
    rate = (seconds, size) if seconds >= _LEAST and size else (0.0, 0.0)
    if caching.remember("plain", key, untold, *rate):
        _told[key] = _here[key]


def _driver(name: str, package: str = "compiled") -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"fastndcg.{package}.{module}"), function)


def _build(kinds: Any, size: float, arguments: tuple[Any, ...]) -> Any:
    """Load or compile the driver for such arguments, in one thread and one process at a time.

    Returns None where it has to be compiled, against what was written down, and `size` is not worth that.
    """
    name, key = kinds[0], _key(*kinds)
    with _building:
        if kinds in _ready:
            return _ready[kinds]
        was_imported, started = _is_imported(), thread_time()
        # no fork during the import of Numba, and no interrupt, after which a later import would fail
        with uninterrupted():
            driver, compiling = _driver(name), import_module("fastndcg.compiled.compile.compiling")
        if not was_imported:
            _loaded("numba", thread_time() - started)
        with ExitStack() as stack:
            is_kept = compiling.is_kept(driver, arguments)
            if not is_kept:
                if key in _measured().kept:  # it was deleted, or is for another processor
                    caching.remember("lost", key)
                if world() == "auto" and not _pays(key, size):
                    return None
                # another process may be compiling the same driver
                stack.enter_context(caching.alone(key if compiling.private else name))
                is_kept = compiling.is_kept(driver, arguments)
            if not is_kept:
                price = max(1.0, _measured().price(key))
                progress.tell(f"compiling kernels, once on this machine, about {price:.0f} s")
            started = thread_time()
            # an interrupt would be ignored in LLVM, or free a module twice, which ends the process
            with uninterrupted():
                compiling.compile_for(driver, arguments)
            if is_kept:
                _loaded(key, thread_time() - started)
            else:
                caching.remember("compiled", key, thread_time() - started)
        _ready[kinds] = driver
        return driver


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


def _loaded(key: str, seconds: float) -> None:
    """Write down how long loading took, if that was not known or was longer: the first is often slow."""
    known = _measured()
    if key not in known.kept or seconds < 0.8 * known.loading.get(key.partition("/")[0], math.inf):
        caching.remember("loaded", key, seconds)


def _key(name: str, kinds: tuple[Any, ...]) -> str:
    """The name of a driver, and a digest of the kinds of its arguments, if any are given."""
    if not kinds:
        return name
    if (name, kinds) not in _keys:
        _keys[name, kinds] = f"{name}/{zlib.crc32(repr(kinds).encode()):08x}"
    return _keys[name, kinds]


_keys: dict[Any, str] = {}


def kind_of(argument: Any) -> Any:
    """A key that differs where Numba's types of arguments differ. Asking Numba itself took 0.2 ms a call."""
    if isinstance(argument, np.ndarray):
        # in C's order or Fortran's, aligned, writeable; not whose memory it is
        flags = argument.flags.num
        return argument.dtype, argument.ndim, flags & (0x501 if flags & 1 else 0x502)
    if isinstance(argument, Plan):
        return Plan, argument.folds is None  # its arrays are of the same types in all plans
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


def _after_fork_in_child() -> None:
    _building.release()
    _told.update(_here)  # what the parent has not written down yet is its own to write


# a process that forks waits until no driver is being built: its child would inherit a locked lock that it
# cannot release
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_building.acquire, after_in_parent=_building.release, after_in_child=_after_fork_in_child
    )
