"""Steps that no interrupt may end halfway."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any


@contextmanager
def uninterrupted(within: Collection[CodeType] | None = None) -> Iterator[None]:
    """Delay interrupts until the block has ended: Ctrl-C, or Ray cancelling a task.

    within      delay only the interrupts of these functions and of what they call; None delays all
    """
    import signal

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    delayed: list[tuple[int, FrameType | None]] = []

    def handle(number: int, frame: FrameType | None) -> Any:
        if within is not None and not _is_within(frame, within):
            return before(number, frame)
        return delayed.append((number, frame))

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if delayed:
        before(*delayed[0])


def _is_within(frame: FrameType | None, functions: Collection[CodeType]) -> bool:
    """Whether one of the functions is being called."""
    while frame is not None and frame.f_code not in functions:
        frame = frame.f_back
    return frame is not None
