"""The meaning of `threads=`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import TypeVar

from fastndcg.errors import InputError

Part = TypeVar("Part")
Result = TypeVar("Result")


def check_threads(threads: int | None) -> int | None:
    """Validate `threads=`; None leaves the choice to the caller.

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


def in_threads(
    task: Callable[[Part], Result], parts: Sequence[Part], threads: int | None = None
) -> Iterator[Result]:
    """Yield the results of a task for each part, in order, while threads compute the next ones.

    The threads, one per part by default, belong to this call, unlike pyarrow's pool. The caller's thread is
    one of them, and runs all parts if no other can be started.
    """
    n = min(threads or len(parts), len(parts))
    if n <= 1:
        yield from map(task, parts)
        return
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(n, "fastndcg")
    try:
        results = pool.map(task, parts)
    except RuntimeError:  # no thread can be started: the interpreter is exiting, or the host has a limit
        pool.shutdown(cancel_futures=True)
        results = map(task, parts)
    try:
        yield from results
    finally:
        pool.shutdown(cancel_futures=True)
