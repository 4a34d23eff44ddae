"""The one rule for `threads=`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import TypeVar

from fastndcg.errors import InputError

Part = TypeVar("Part")
Result = TypeVar("Result")


def check_threads(threads: int | None) -> int | None:
    """The number of threads that was asked for; None where the caller of this function decides.

    >>> check_threads(4), check_threads(None)
    (4, None)
    """
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        raise InputError(f"threads must be a positive integer or None; got {threads!r}")
    return int(threads)


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(task: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """The results of a task for each part: each in a thread of its own, a single one in this thread."""
    from concurrent.futures import ThreadPoolExecutor

    if len(parts) == 1:
        return [task(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(task, parts))
