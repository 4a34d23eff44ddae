"""Steps that no interrupt may end halfway."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay interrupts until the block has ended: Ctrl-C, or Ray cancelling a task."""
    import signal

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signals: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *signal_and_frame: signals.append(signal_and_frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if signals:
        before(*signals[0])
