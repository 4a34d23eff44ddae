"""Chooses how a driver runs: as plain Python, or as compiled code once that pays.

Plain functions answer small calls at once. Importing Numba takes half a second, loading a compiled driver a
tenth of a second, and compiling one some seconds. So a driver runs plain while the plain time spent on it so
far, plus the estimate for this call, is below the cost of loading it, or of compiling it if it is not kept.
This rule never costs more than twice the best choice plus, once in a process, the import of Numba: only Numba
can tell for which argument types a driver is kept. Estimates may be wrong: a plain call that takes longer
stops at its deadline, and is run again compiled.

FASTNDCG_KERNELS is `auto` (this rule), `plain` or `compiled`. NUMBA_DISABLE_JIT=1 means plain.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

from fastndcg import progress
from fastndcg.errors import InputError
from fastndcg.kernels import caching, marks
from fastndcg.kernels.interrupts import uninterrupted
from fastndcg.kernels.tables import Plan

WORLDS = ("auto", "plain", "compiled")
IMPORTING = 0.5  # seconds to import the parts of Numba that kernels need


class Costs(NamedTuple):
    """Seconds of processor time on the machine of the records, as `bench.bench_costs` measures them."""

    plain: float  # for each unit of a call's size
    compiling: float
    loading: float = 0.05


# for any driver that is not among these
_COSTS = Costs(2e-7, 1.0)
COSTS = {
    # a unit is a document, or a fortieth of a query, for each measure
    "drivers.score_levels_serial": Costs(1e-6, 13.0, 0.15),
    "drivers.score_values_serial": Costs(2e-6, 12.0, 0.15),
    "intents.score_intents": Costs(2e-5, 8.0, 0.1),
    "returned.expect_over_returned": Costs(5e-6, 6.0, 0.2),
    # a unit is a row; the plain way is pyarrow's reader
    "pages.values_of_pages": Costs(1e-8, 8.0, 0.1),
    "pages.texts_of_pages": Costs(1e-7, 4.0, 0.1),
    # a unit is a byte
    "lines.scan_trec": Costs(1e-7, 5.0, 0.1),
    "lines.scan_ltr": Costs(1.5e-7, 2.5, 0.1),
    # a unit is a row
    "joining.digest_ids": Costs(8e-8, 0.5),
    "joining.join_documents": Costs(6e-7, 1.0),
    "joining.order_documents": Costs(2.5e-7, 2.0),
    # the plain way of these is Arrow's, or NumPy's
    "rows.codes_by_first_appearance": Costs(1.5e-8, 0.6),
    "rows.codes_of_numbers": Costs(3e-8, 0.7),
    "rows.codes_of_texts": Costs(2e-7, 1.5),
    "rows.rows_by_code": Costs(8e-8, 0.5),
    "rows.place_by_code": Costs(5e-8, 0.7),
    # a unit is an addition
    "resampling.flip_signs": Costs(3e-7, 1.0),
    "resampling.permute_systems": Costs(2.5e-7, 3.0),
    "resampling.draw_sums": Costs(9e-7, 1.0),
}

_building = threading.RLock()
_spent: dict[str, float] = {}  # seconds in plain drivers
_ready: dict[Any, Any] = {}  # compiled drivers, by name and kinds of arguments
_unkept: set[Any] = set()  # names and kinds that the folder was searched for in vain


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


def run(name: str, size: float, *arguments: Any) -> Any:
    """Run a driver by name, such as "rows.rows_by_code"; `size` is its work in the units of `COSTS`."""
    driver = compiled_driver(name, size, arguments)
    return run_plain(name, size, arguments) if driver is None else driver(*arguments)


def compiled_driver(name: str, size: float, arguments: tuple[Any, ...]) -> Any:
    """The compiled driver if it should run; None if the plain one should."""
    mode = world()
    if mode == "plain":
        return None
    key = (name, tuple(map(kind_of, arguments))) if _ready or mode == "compiled" else None
    if key in _ready:
        return _ready[key]
    if mode == "auto" and not pays(name, size):
        return None
    return _build((name, tuple(map(kind_of, arguments))), size, arguments)


def pays(name: str, size: float) -> bool:
    """Whether work of this size is worth loading a driver, or compiling it if it is not kept."""
    if world() != "auto":
        return world() == "compiled"
    costs = COSTS.get(name, _COSTS)
    ahead = _spent.get(name, 0.0) + size * costs.plain
    price = _price_of_numba(name)
    if ahead < price + costs.loading:
        return False
    return ahead >= price + costs.compiling or caching.holds(name.rpartition(".")[2])


def _price_of_numba(name: str) -> float:
    if "fastndcg.compiled.compiling" in sys.modules:
        return 0.0
    return max(0.0, IMPORTING - sum(seconds for other, seconds in list(_spent.items()) if other != name))


def run_plain(name: str, size: float, arguments: tuple[Any, ...]) -> Any:
    """Run the plain driver. If it takes longer than loading or compiling, stop it and run compiled."""
    started, before = thread_time(), (marks.deadline.at, marks.deadline.last)
    key, costs = (name, tuple(map(kind_of, arguments))), COSTS.get(name, _COSTS)

    def last() -> float:
        price = costs.loading if _is_kept(key, arguments) else costs.compiling
        return started + _left(name, price)

    if world() == "auto":
        marks.deadline.at, marks.deadline.last = started + _left(name, costs.loading), last
    try:
        with np.errstate(all="ignore"):
            return _driver(name, "kernels")(*arguments)
    except marks.TooSlowError:
        marks.deadline.at, marks.deadline.last = before
        return _build(key, float("inf"), arguments)(*arguments)
    finally:
        marks.deadline.at, marks.deadline.last = before
        _spent[name] = _spent.get(name, 0.0) + thread_time() - started


def _left(name: str, price: float) -> float:
    """Seconds that the plain driver may still take before compiled code of this price pays."""
    return max(0.1, _price_of_numba(name) + price - _spent.get(name, 0.0))


def _is_kept(key: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a driver is kept for such arguments. Imports Numba if it is kept for any arguments."""
    if key in _unkept or not caching.holds(key[0].rpartition(".")[2]):
        return False
    # no fork during the import of Numba, and no interrupt, after which a later import would fail
    with _building, uninterrupted():
        if import_module("fastndcg.compiled.compiling").is_kept(_driver(key[0]), arguments):
            return True
    _unkept.add(key)
    return False


def _driver(name: str, package: str = "compiled") -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"fastndcg.{package}.{module}"), function)


def _build(key: Any, size: float, arguments: tuple[Any, ...]) -> Any:
    """Load or compile the driver for such arguments, in one thread and one process at a time.

    Returns None where it has to be compiled and `size` is not worth that.
    """
    name, _ = key
    costs = COSTS.get(name, _COSTS)
    with _building:
        if key in _ready:
            return _ready[key]
        with uninterrupted():
            driver, compiling = _driver(name), import_module("fastndcg.compiled.compiling")
        with ExitStack() as stack:
            if not _is_kept(key, arguments):
                if world() == "auto" and _spent.get(name, 0.0) + size * costs.plain < costs.compiling:
                    return None
                stack.enter_context(caching.alone())  # another process may be compiling the same driver
                if not compiling.is_kept(driver, arguments):
                    progress.tell(f"compiling kernels, once on this machine, about {costs.compiling:.0f} s")
            compiling.compile_for(driver, arguments)
        _ready[key] = driver
        return driver


def kind_of(argument: Any) -> Any:
    """A key that differs where Numba's types of arguments differ. Asking Numba itself took 0.2 ms a call."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
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
    if setting.isdecimal() and int(setting):
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


# a process that forks waits until no driver is being built: its child would inherit a locked lock that it
# cannot release
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_building.acquire, after_in_parent=_building.release, after_in_child=_building.release
    )
