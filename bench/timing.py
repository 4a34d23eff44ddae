"""Take the least wall time and processor time of several runs in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Time(NamedTuple):
    """Seconds of the fastest run. `cpu` is the processor time of this process, summed over its threads."""

    wall: float
    cpu: float


def time_once(call: Callable[[], object]) -> Time:
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Time(wall, cpu)


def fastest(times: list[Time]) -> Time:
    return Time(min(each.wall for each in times), min(each.cpu for each in times))


def take_turns(
    calls: Mapping[str, Callable[[], object]], *, seconds: float = 2.0, least: int = 5, most: int = 50, twice: bool = False
) -> dict[str, Time]:  # fmt: skip
    """Return the fastest run of each call. Calls run in turns, so that slow moments affect all of them.

    One run of each comes first and does not count: it compiles kernels and faults memory in.
    `twice` does so before each run: after millions of small objects were freed, the system first clears pages.
    """
    for call in calls.values():
        call()
    runs: dict[str, list[Time]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    for turn in range(most):
        if turn >= least and time.perf_counter() > end:
            break
        for name, call in calls.items():
            if twice:
                call()
            runs[name].append(time_once(call))
    return {name: fastest(times) for name, times in runs.items()}
