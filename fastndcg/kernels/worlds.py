"""Which world runs a driver: plain Python, as it is imported, or compiled code, once that pays.

Plain functions answer small calls at once. Importing Numba takes half a second, loading a driver that was compiled before a tenth, and
compiling one some seconds. So a driver runs plain as long as the plain time spent on it, and what this call is estimated to take,
stays below what loading it costs, or compiling it where it is not kept. Whoever goes by that rule never pays more than twice the
best choice and, once in a process, the import of Numba: it alone can tell for which types of arguments a driver is kept. Estimates may
be wrong: a plain call that takes longer stops at its deadline, and is done again, compiled.

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
IMPORTING = 0.5  # seconds to import Numba, and what kernels need of it


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
    "drivers.replace_undefined": Costs(4e-7, 0.4),
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
    "rows.find_changes": Costs(2e-7, 0.5),
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
    """The world that was asked for. Raises InputError where there is none of that name."""
    return _world(os.environ.get("FASTNDCG_KERNELS", ""), os.environ.get("NUMBA_DISABLE_JIT", "0"))


@cache
def _world(asked: str, disabled: str) -> str:
    if disabled not in ("", "0"):
        return "plain"
    if (asked or "auto") not in WORLDS:
        raise InputError(f"FASTNDCG_KERNELS={asked!r}; wanted one of {', '.join(WORLDS)}")
    return asked or "auto"


def run(name: str, size: float, *arguments: Any) -> Any:
    """Run a driver, as in "rows.find_changes"; `size` is what it has to do, in the units of `COSTS`."""
    driver = compiled_driver(name, size, arguments)
    return run_plain(name, size, arguments) if driver is None else driver(*arguments)


def compiled_driver(name: str, size: float, arguments: tuple[Any, ...]) -> Any:
    """The compiled driver, where that is the one to run; None where it is the plain one."""
    asked = world()
    if asked == "plain":
        return None
    key = (name, tuple(map(kind_of, arguments))) if _ready or asked == "compiled" else None
    if key in _ready:
        return _ready[key]
    if asked == "auto" and not pays(name, size):
        return None
    return _build((name, tuple(map(kind_of, arguments))), size, arguments)


def pays(name: str, size: float) -> bool:
    """Whether work of that size is worth loading a driver, or compiling it where it is not kept; never in the plain world."""
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
    """Run the plain driver; one that takes longer than compiling it would is stopped, and run compiled."""
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
    """Plain seconds that are left before compiled code at such a price would have paid."""
    return max(0.1, _price_of_numba(name) + price - _spent.get(name, 0.0))


def _is_kept(key: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a driver is kept for such arguments. Numba is imported where it is kept for any."""
    if key in _unkept or not caching.holds(key[0].rpartition(".")[2]):
        return False
    with (
        _building,
        uninterrupted(),
    ):  # nobody forks while Numba is imported, and an import that was interrupted fails later
        if import_module("fastndcg.compiled.compiling").is_kept(_driver(key[0]), arguments):
            return True
    _unkept.add(key)
    return False


def _driver(name: str, package: str = "compiled") -> Any:
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"fastndcg.{package}.{module}"), function)


def _build(key: Any, size: float, arguments: tuple[Any, ...]) -> Any:
    """The compiled driver for such arguments: loaded, or compiled, by one thread and one process at a time.

    None where it has to be compiled and `size` is not worth that.
    """
    name, _ = key
    costs = COSTS.get(name, _COSTS)
    with _building:
        if key in _ready:
            return _ready[key]
        with uninterrupted():
            driver, compiling = _driver(name), import_module("fastndcg.compiled.compiling")
        with ExitStack() as held:
            if not _is_kept(key, arguments):
                if world() == "auto" and _spent.get(name, 0.0) + size * costs.plain < costs.compiling:
                    return None
                held.enter_context(caching.alone())  # another process may compile the same now
                if not compiling.is_kept(driver, arguments):
                    progress.tell(f"compiling kernels, once on this machine, about {costs.compiling:.0f} s")
            compiling.compile_for(driver, arguments)
        _ready[key] = driver
        return driver


def kind_of(argument: Any) -> Any:
    """What Numba's type of an argument depends on; to ask Numba for it took 0.2 ms a call."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    if isinstance(argument, Plan):
        return Plan, argument.folds is None  # its arrays are of the same types in all plans
    if isinstance(argument, tuple):
        return type(argument), *map(kind_of, argument)
    return type(argument)


def cores() -> int:
    """Threads that Numba would run: what NUMBA_NUM_THREADS says, or the processors that this process may use."""
    config = getattr(sys.modules.get("numba"), "config", None)
    if found := getattr(config, "NUMBA_NUM_THREADS", None):
        return int(found)
    told = os.environ.get("NUMBA_NUM_THREADS", "")
    if told.isdecimal() and int(told):
        return int(told)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


# a process that forks waits until nothing is being built, since its child would wait forever for a lock that nobody holds there
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_building.acquire, after_in_parent=_building.release, after_in_child=_building.release
    )
