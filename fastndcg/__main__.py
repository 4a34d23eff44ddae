"""`fastndcg` and `python -m fastndcg`: how the command line begins and ends, whatever happens to it.

It ends with 0 if all is well, 1 if a gate does not hold, 2 for wrong usage, and 3 for all else that fails.
Ctrl-C ends it with 130, a reader that closes the pipe with 141, and SIGTERM with 143. Nothing else ends with
1.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

FAILED, INTERRUPTED, CLOSED_PIPE = 3, 130, 141
_WORTH_COMPILING = 0.5  # estimated seconds in plain kernels
_REPORT = (
    "This is a fault of fastndcg. Please report it with this line and the command; "
    "FASTNDCG_TRACEBACK=1 shows where it happened."
)


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    # nothing is begun that would have to be undone, and where extension modules are imported an exception may
    # be lost
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    _open_streams()
    try:
        _check_threads()
        from fastndcg.cli import load

        run = load(sys.argv[1:])
        signal.signal(signal.SIGINT, interrupt)
        code = run()
        sys.stdout.flush()  # what the help wrote, for one
        _propose_compiling()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it ends the process with its code
        code = _failed(error)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    sys.stdout = getattr(sys.stdout, "_stream", sys.stdout)  # the interpreter flushes it once more as it ends
    sys.exit(code)


def _failed(error: BaseException) -> int:
    """Say in one line what happened, unless it has been said; returns the exit code."""
    if isinstance(error, SystemExit):
        if error.code == 1 and error.__context__ is not None:
            error = error.__context__  # for which typer ended the process
        elif error.code != 1 and not isinstance(error.code, str):
            return int(error.code or 0)
    if os.environ.get("FASTNDCG_TRACEBACK", "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return CLOSED_PIPE  # the reader closed the pipe; shells show this code for other tools too
    from fastndcg.errors import FastndcgError, visible

    if isinstance(error, MemoryError):
        message = "There is not enough memory for this input. Score it in parts, or on a machine with more."
    elif isinstance(error, ModuleNotFoundError) and error.name == "typer":
        message = "The command line needs typer, which is not installed: pip install 'fastndcg[cli]'"
    elif isinstance(error, OSError) and error is getattr(sys.stdout, "failed", None):
        message = f"stdout cannot be written: {error.strerror}."
    elif isinstance(error, FastndcgError | OSError | SystemExit):
        message = str(error)
    else:
        message = f"{type(error).__name__}: {error}. {_REPORT}"
    sys.stderr.write(visible(message.replace("\n", " ")) + "\n")
    return FAILED


def _propose_compiling() -> None:
    """Write one line to stderr after a run with more than half a second of kernels that could be compiled."""
    dispatch = sys.modules.get("fastndcg.kernels.compile.dispatch")
    if dispatch is not None and (seconds := dispatch.seconds_without_kept_kernels()) > _WORTH_COMPILING:
        sys.stderr.write(
            f"About {seconds:.1f} s of this run went to kernels that are not compiled: "
            "run `fastndcg compile` once.\n"
        )


# ---- standard streams ----


class _Stream:
    """A standard stream. `failed` is why it cannot be written, and then nothing more is.

    What standard error cannot write is lost without an error: a message decides nothing.
    """

    def __init__(self, stream: Any, *, is_stderr: bool = False) -> None:
        self._stream, self._is_stderr = stream, is_stderr
        self.failed: Exception | None = None

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        if self._is_stderr:
            self.flush()
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, action: Callable[[], object]) -> None:
        if self.failed is None:
            try:
                action()
            except (OSError, ValueError) as error:
                self.failed = error
                with suppress(OSError, ValueError):
                    nowhere = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(nowhere, self._stream.fileno())
                    os.close(nowhere)
        if self.failed is not None and not self._is_stderr:
            raise self.failed  # each time: typer tries streams, and hides their errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _open_streams() -> None:
    """Open standard streams that are closed, and let each write any character.

    A file that is opened would otherwise take the number of a closed stream, and get what is written to it.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number; to write to stdout fails
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout = _Stream(sys.stdout)
    sys.stderr = _Stream(sys.stderr, is_stderr=True)


# ---- environment ----


def _check_threads() -> None:
    """Raise `SystemExit` for a number of threads with which Numba fails, or crashes when it starts them."""
    given = os.environ.get("NUMBA_NUM_THREADS")
    most = max(1024, 8 * (os.cpu_count() or 1))
    if given and not (given.isascii() and given.isdecimal() and 1 <= int(given[:9]) <= most):
        sys.exit(
            f"NUMBA_NUM_THREADS is {given!r}; wanted a whole number from 1 to {most:,}. Set or unset it."
        )


if __name__ == "__main__":
    main()
