"""Show the progress of long calls in terminals and notebooks (`Task`), and messages of one line (`tell`).

A task that takes more than a second is shown on a line of stderr until it ends: the amount done, the total,
the speed and the time left. Nothing is shown if stderr is neither a terminal nor a notebook, outside the main
thread, in forked processes, and if FASTNDCG_PROGRESS is 0.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

# the type of `progress=`: a function that is called as progress(done, total), or False to show nothing
Progress = Callable[[int, int], object] | bool | None

_PATIENCE, _PERIOD = 1.0, 0.2  # seconds before a task is shown, and between updates
_BAR = 20  # characters


class Task:
    """A step of a call. Of nested tasks, the outermost one with a total is shown, otherwise the innermost.

    `unit` is what `advance` counts; "bytes" are shown in MB. A function as `progress` is called instead of
    showing the task; False shows nothing.

    >>> calls = []
    >>> with Task("Reading", "rows", lambda done, total: calls.append((done, total))) as task:
    ...     task.advance(5, 10)
    >>> calls
    [(5, 10)]
    """

    def __init__(self, name: str, unit: str = "rows", progress: Progress = None) -> None:
        self.name, self._unit, self._progress = name, unit, progress
        self.done, self.total, self._started = 0, 0, 0.0

    def __enter__(self) -> Self:
        self._started = monotonic()
        is_hidden = callable(self._progress) or self._progress is False
        if (is_hidden or _line.tasks or is_watched()) and _in_main_thread():
            if not (is_hidden or _line.tasks):
                _line.start()
            _line.tasks.append(self)  # one that is hidden hides the steps within it, too
        return self

    def __exit__(self, *_: object) -> None:
        if self in _line.tasks:
            del _line.tasks[_line.tasks.index(self) :]
            if not _line.tasks:
                _line.stop()

    @property
    def is_observed(self) -> bool:
        """Whether the progress is shown or passed to a function."""
        return callable(self._progress) or self in _line.tasks

    def advance(self, done: int, total: int) -> None:
        """Set the amount done and the total, from any thread."""
        self.done, self.total = done, total
        if callable(self._progress):
            self._progress(done, total)

    def shown(self, width: int) -> str:
        """The name, a bar if there is room for it, and the line."""
        line = self.line()
        bar = f"[{'#' * round(_BAR * min(self.done / self.total, 1)):<{_BAR}}] " if self.total else ""
        room = width - len(f"{self.name} {line}")
        return f"{self.name} {bar if len(bar) <= room else ''}{line}"[:width]

    def line(self) -> str:
        """Return the amount done, the total, the speed and the time left, as text."""
        seconds = max(monotonic() - self._started, 1e-9)
        if not self.total:
            return _time(seconds)
        rate = self.done / seconds
        left = f", {_time((self.total - self.done) / rate)} left" if self.done else ""
        if self._unit == "bytes":
            return f"{self.done / 1e6:,.1f} of {self.total / 1e6:,.1f} MB, {rate / 1e6:,.1f} MB/s{left}"
        units = ((1e9, " G"), (1e6, " M"), (1e3, " k"))
        speed = next((f"{rate / size:.1f}{unit}" for size, unit in units if rate >= size), f"{rate:.0f}")
        return f"{self.done:,} of {self.total:,} {self._unit}, {speed} {self._unit}/s{left}"


def advance(done: int, total: int) -> None:
    """Set the amount done and the total of the innermost task, if there is one."""
    if _line.tasks and _in_main_thread():
        _line.tasks[-1].advance(done, total)


def tell(message: str) -> None:
    """Write a line to stderr if it is a terminal or a notebook, otherwise to the logger `fastndcg`."""
    if is_watched():
        _line.tell(message)
        return
    import logging  # here, because the import takes long

    logging.getLogger("fastndcg").info(message)


def is_watched() -> bool:
    """Whether this is the main thread and stderr is a terminal or a notebook."""
    if not _in_main_thread() or os.environ.get("FASTNDCG_PROGRESS") == "0":
        return False
    try:
        shell = "IPython" in sys.modules and sys.modules["IPython"].get_ipython()
        return sys.stderr.isatty() or getattr(shell, "kernel", None) is not None
    except (AttributeError, ValueError):  # stderr is closed, or there is none
        return False


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread() and os.getpid() == _process


_process = os.getpid()  # a forked process has another id


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Line:
    """The nested tasks of the main thread, outermost first, and the thread that shows one of them."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._length = 0  # characters that are shown
        self._lock = threading.Lock()  # of stderr

    def start(self) -> None:
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, name="fastndcg-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            self._thread = None

    def tell(self, message: str) -> None:
        self._write("")
        self._write(f"{message}\n")
        self._length = 0

    def _show(self) -> None:
        ended, period = self._ended, _PATIENCE
        while not ended.wait(period):
            period = _PERIOD
            try:
                width = os.get_terminal_size(sys.stderr.fileno()).columns - 1  # of which one stays free
            except (AttributeError, OSError, ValueError):
                width = 80  # in a notebook
            if tasks := tuple(self.tasks):
                self._write(next((task for task in tasks if task.total), tasks[-1]).shown(width))
        self._write("")

    def _write(self, text: str) -> None:
        """Write a text in place of what is shown; a failure must not fail the call."""
        with self._lock, suppress(OSError, ValueError):
            erased = f"\r{' ' * self._length}\r" if self._length else ""
            sys.stderr.write(erased + text)
            sys.stderr.flush()
            self._length = len(text)


_line = _Line()
