"""Show the progress of long calls in terminals and notebooks (`Task`), and messages of one line (`tell`).

A task that takes more than a second is shown on a line of stderr until it ends: the amount done, the total
and the time left. Nothing is shown if stderr is neither a terminal nor a notebook, outside the main
thread, in forked processes, and if FASTNDCG_PROGRESS is 0.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

# type of `progress=`: a function that is called as progress(done, total), or False to show nothing
Progress = Callable[[int, int], object] | bool | None

_PATIENCE, _PERIOD = 1.0, 0.2  # seconds before a task is shown, and between updates
_process = os.getpid()  # forked processes have another id
_tasks: list[Task] = []  # nested tasks of the main thread, outermost first
_lock = threading.Lock()  # of stderr
_length = 0  # characters of the line that is shown


class Task:
    """A step of a call. Of nested tasks, the outermost one with a total is shown, otherwise the innermost.

    `unit` is what `advance` counts. A function as `progress` is called instead of showing the task; False
    shows nothing.

    >>> calls = []
    >>> with Task("Reading", "rows", lambda done, total: calls.append((done, total))) as task:
    ...     task.advance(5, 10)
    >>> calls
    [(5, 10)]
    """

    def __init__(self, name: str, unit: str = "rows", progress: Progress = None) -> None:
        self.name, self._unit, self._progress = name, unit, progress
        self.done, self.total, self._started = 0, 0, 0.0
        self._ended = threading.Event()
        self._display: threading.Thread | None = None  # shows the outermost task and those within it

    def __enter__(self) -> Self:
        self._started = monotonic()
        is_hidden = callable(self._progress) or self._progress is False
        if _in_main_thread() and (is_hidden or _tasks or is_watched()):
            if not (is_hidden or _tasks):
                self._display = threading.Thread(target=self._show, name="fastndcg-progress", daemon=True)
                self._display.start()
            _tasks.append(self)  # a hidden task also hides the steps within it
        return self

    def __exit__(self, *_: object) -> None:
        if self in _tasks:
            del _tasks[_tasks.index(self) :]
        if self._display is not None:
            self._ended.set()
            self._display.join()

    def advance(self, done: int, total: int) -> None:
        """Set the amount done and the total, from any thread."""
        self.done, self.total = done, total
        if callable(self._progress):
            self._progress(done, total)

    def line(self) -> str:
        """Return the amount done, the total and the time left, as text."""
        seconds = monotonic() - self._started
        if not self.total:
            return f"{self.name} {_time(seconds)}"
        left = f", {_time(seconds * (self.total / self.done - 1))} left" if self.done else ""
        percent = f"{min(self.done / self.total, 1):.0%}"
        return f"{self.name} {percent} {self.done:,} of {self.total:,} {self._unit}{left}"

    def _show(self) -> None:
        """Show tasks until this one ends. A notebook has one output, which stays with the time taken."""
        output: Any = None
        while not self._ended.wait(_PERIOD if output or _length else _PATIENCE):
            if not (tasks := tuple(_tasks)):
                continue
            text = next((task for task in tasks if task.total), tasks[-1]).line()
            if _is_notebook():
                output = _in_notebook(text, output)
                continue
            with suppress(AttributeError, OSError, ValueError):  # the last column stays free
                _write(text[: os.get_terminal_size(sys.stderr.fileno()).columns - 1])
        _write("")
        if output:
            _in_notebook(f"{self.name}: {_time(monotonic() - self._started)}", output)


def advance(done: int, total: int) -> None:
    """Set the amount done and the total of the innermost task, if there is one."""
    if _tasks and _in_main_thread():
        _tasks[-1].advance(done, total)


def tell(message: str) -> None:
    """Write a line to stderr if it is a terminal or a notebook."""
    if is_watched():
        _write(f"{message}\n")


def is_watched() -> bool:
    """Return whether this is the main thread and stderr is a terminal or a notebook."""
    if not _in_main_thread() or os.environ.get("FASTNDCG_PROGRESS") == "0":
        return False
    try:
        return _is_notebook() or sys.stderr.isatty()
    except (AttributeError, ValueError):  # stderr is closed, or there is none
        return False


def _is_notebook() -> bool:
    shell = "IPython" in sys.modules and sys.modules["IPython"].get_ipython()
    return getattr(shell, "kernel", None) is not None


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread() and os.getpid() == _process


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _write(text: str) -> None:
    """Replace the line. Errors of the terminal are ignored."""
    global _length
    with _lock, suppress(OSError, ValueError):
        sys.stderr.write((f"\r{' ' * _length}\r" if _length else "") + text)
        sys.stderr.flush()
        _length = 0 if text.endswith("\n") else len(text)


def _in_notebook(text: str, output: Any) -> Any:
    """Show a text in an output of a notebook, or in a new one."""
    from importlib import import_module

    data = {"text/plain": text}
    with suppress(Exception):  # raised if the front end is gone
        if output is None:
            return import_module("IPython.display").display(data, raw=True, display_id=True)
        output.update(data, raw=True)
    return output
