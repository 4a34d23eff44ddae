"""Show the progress of long calls in terminals and notebooks (`Task`), and messages of one line (`tell`).

A task that takes more than a second is shown on stderr until it ends, by rich or tqdm, whichever is
installed: the amount done, the total, the speed and the time left. Nothing is shown if stderr is neither a
terminal nor a notebook, outside the main thread, in forked processes, and if FASTNDCG_PROGRESS is 0.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing import Self

# the type of `progress=`: a function that is called as progress(done, total), or False to show nothing
Progress = Callable[[int, int], object] | bool | None

_PATIENCE, _PERIOD = 1.0, 0.2  # seconds before a task is shown, and between updates


class Task:
    """A step of a call. Of nested tasks, the outermost one with a total is shown, otherwise the innermost.

    Parameters
    ----------
    name : str
        The name that is shown, as in "Reading".
    unit : str
        What `advance` counts; "bytes" are shown in MB.
    progress : callable or bool, optional
        A function to call instead of showing the task; False shows nothing.

    Examples
    --------
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
        _shown.begin(self, visible=not callable(self._progress) and self._progress is not False)
        return self

    def __exit__(self, *_: object) -> None:
        _shown.end(self)

    @property
    def is_observed(self) -> bool:
        """Whether the progress is shown or passed to a function."""
        return callable(self._progress) or self in _shown.tasks

    def advance(self, done: int, total: int) -> None:
        """Set the amount done and the total, from any thread."""
        self.done, self.total = done, total
        if callable(self._progress):
            self._progress(done, total)

    def line(self) -> str:
        """Return the amount done, the total, the speed and the time left, as text."""
        seconds = max(monotonic() - self._started, 1e-9)
        if not self.total:
            return f"{_time(seconds)}"
        rate = self.done / seconds
        left = f", {_time((self.total - self.done) / rate)} left" if self.done else ""
        if self._unit == "bytes":
            return f"{self.done / 1e6:,.1f} of {self.total / 1e6:,.1f} MB, {rate / 1e6:,.1f} MB/s{left}"
        return f"{self.done:,} of {self.total:,} {self._unit}, {_short(rate)} {self._unit}/s{left}"


def advance(done: int, total: int) -> None:
    """Set the amount done and the total of the innermost task, if there is one."""
    if _shown.tasks and _in_main_thread():
        _shown.tasks[-1].advance(done, total)


def tell(message: str) -> None:
    """Write a line to stderr if it is a terminal or a notebook, otherwise to the logger `fastndcg`."""
    if is_watched():
        _shown.tell(message)
        return
    import logging  # here, because the import takes long

    logging.getLogger("fastndcg").info(message)


def is_watched() -> bool:
    """Whether this is the main thread and stderr is a terminal or a notebook."""
    if not _in_main_thread() or os.environ.get("FASTNDCG_PROGRESS") == "0":
        return False
    try:
        return sys.stderr.isatty() or _in_notebook()
    except (AttributeError, ValueError):  # stderr is closed, or there is none
        return False


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread() and os.getpid() == _process


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


_process = os.getpid()  # a forked process has another id


def _short(number: float) -> str:
    """Shorten a large number.

    >>> [_short(number) for number in (3, 34_567_890, 2_500)]
    ['3', '34.6 M', '2.5 k']
    """
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f} {name}"
    return f"{number:.0f}"


def _time(seconds: float) -> str:
    """Write seconds as text.

    >>> [_time(seconds) for seconds in (0.4, 75, 7_300)]
    ['0 s', '1 min 15 s', '2 h 1 min']
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class _Bar(Protocol):
    """A progress bar in a terminal or a notebook."""

    def show(self, task: Task) -> None: ...
    def tell(self, message: str) -> None: ...
    def close(self) -> None: ...


class _Shown:
    """The nested tasks of the main thread, outermost first, and the thread that shows one of them."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._bar: _Bar | None = None
        self._lock = threading.Lock()  # of the bar

    def begin(self, task: Task, *, visible: bool) -> None:
        if not self.tasks:
            if not (is_watched() if visible else _in_main_thread()):
                return
            if visible:
                self._ended = threading.Event()
                self._thread = threading.Thread(target=self._show, name="fastndcg-progress", daemon=True)
                self._thread.start()
        elif not _in_main_thread():
            return
        self.tasks.append(task)

    def end(self, task: Task) -> None:
        if task not in self.tasks:
            return
        del self.tasks[self.tasks.index(task) :]
        if not self.tasks and self._thread is not None:
            thread, self._thread = self._thread, None
            self._ended.set()
            thread.join()

    def tell(self, message: str) -> None:
        with self._lock, suppress(OSError):
            if self._bar is None:
                sys.stderr.write(f"{message}\n")
                sys.stderr.flush()
            else:
                self._bar.tell(message)

    def _show(self) -> None:
        ended, period = self._ended, _PATIENCE
        while not ended.wait(period):
            period = _PERIOD
            with self._lock, suppress(Exception):  # a failure of the bar must not fail the call
                self._bar = self._bar or _new_bar()
                tasks = tuple(self.tasks)
                task = next((task for task in tasks if task.total), tasks[-1] if tasks else None)
                if self._bar is None or task is None:
                    continue
                self._bar.show(task)
        with self._lock, suppress(Exception):
            bar, self._bar = self._bar, None
            if bar is not None:
                bar.close()


_shown = _Shown()


def _new_bar() -> _Bar | None:
    """Return a bar of rich or tqdm. In notebooks tqdm comes first, since rich needs ipywidgets there."""
    for make in (_Tqdm, _Rich) if _in_notebook() else (_Rich, _Tqdm):
        with suppress(ImportError):
            return make()
    return None


class _Rich:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        if _in_notebook():
            import ipywidgets  # noqa: F401 - without it rich warns for each bar
        console = Console(stderr=True)
        columns: list[Any] = [TextColumn("{task.description}", markup=False)]
        columns += [BarColumn(20)] if console.width >= _WIDE else []
        columns += [TextColumn("{task.fields[line]}", markup=False)]
        self._bars = Progress(*columns, console=console, transient=True, auto_refresh=False)
        self._task = self._bars.add_task("", total=None, line="")
        self._bars.start()

    def show(self, task: Task) -> None:
        self._bars.update(
            self._task,
            description=task.name,
            total=task.total or None,
            completed=task.done,
            line=task.line(),
            refresh=True,
        )

    def tell(self, message: str) -> None:
        self._bars.console.print(message, markup=False, highlight=False)

    def close(self) -> None:
        self._bars.stop()


_WIDE = 80  # columns; narrower terminals have no room for a bar


class _Tqdm:
    def __init__(self) -> None:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets it warns, and writes a line of text
            if _in_notebook():
                from tqdm.auto import tqdm
            else:
                from tqdm import tqdm
        self._bar = tqdm(
            total=1.0,
            leave=False,
            file=sys.stderr,
            dynamic_ncols=True,
            delay=1e-6,
            bar_format="{desc} |{bar:20}|",
        )

    def show(self, task: Task) -> None:
        self._bar.n = task.done / task.total if task.total else 0.0
        self._bar.set_description_str(f"{task.name}: {task.line()}", refresh=False)
        self._bar.refresh()

    def tell(self, message: str) -> None:
        self._bar.write(message, file=sys.stderr)

    def close(self) -> None:
        self._bar.close()
