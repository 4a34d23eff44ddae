"""`fastndcg` and `python -m fastndcg`: how the command line starts and ends, whatever happens.

The exit codes are those of `fastndcg.cli`.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from fastndcg.cli import CLOSED_PIPE, FAILED, INTERRUPTED

_WORTH_COMPILING = 0.5  # estimated seconds in plain kernels
_REPORT = (
    "This is a fault of fastndcg. Please report it with this line and the command; "
    "FASTNDCG_TRACEBACK=1 shows where it happened."
)


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    # while extension modules are imported, exceptions may be lost; there is nothing to clean up yet
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    _open_streams()
    try:
        from fastndcg.cli import load

        run = load(sys.argv[1:])
        signal.signal(signal.SIGINT, interrupt)
        code = run()
        sys.stdout.flush()  # the help, for example
        _propose_compiling()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it ends the process with its code
        code = _failed(error)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # the interpreter flushes once more as it ends
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def _failed(error: BaseException) -> int:
    """Print the error in one line, unless it was printed already, and return the exit code."""
    if isinstance(error, SystemExit):
        if error.code == 1 and error.__context__ is not None:
            error = error.__context__  # the error for which typer ended the process
        elif error.code != 1 and not isinstance(error.code, str):
            return int(error.code or 0)
    if os.environ.get("FASTNDCG_TRACEBACK", "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return CLOSED_PIPE  # the code that shells show for other tools
    from fastndcg.errors import FastndcgError, visible

    if isinstance(error, MemoryError):
        message = "Not enough memory for this input. Score it in parts, or on a machine with more memory."
    elif isinstance(error, ModuleNotFoundError) and error.name == "typer":
        message = "The command line needs typer, which is not installed: pip install 'fastndcg[cli]'"
    elif isinstance(error, OSError) and error.filename is None:  # only errors of files have a name
        message = f"stdout cannot be written: {error.strerror}."
    elif isinstance(error, FastndcgError | OSError | SystemExit):
        message = str(error)
    else:
        message = f"{type(error).__name__}: {error}. {_REPORT}"
    _tell(visible(message.replace("\n", " ")))
    return FAILED


def _propose_compiling() -> None:
    """Write one line to stderr after a run with more than half a second of kernels that could be compiled."""
    dispatch = sys.modules.get("fastndcg.kernels.compile.dispatch")
    if dispatch is not None and (seconds := dispatch.seconds_without_kept_kernels()) > _WORTH_COMPILING:
        _tell(
            f"About {seconds:.1f} s of this run went to kernels that are not compiled: "
            "run `fastndcg compile` once."
        )


def _tell(line: str) -> None:
    with suppress(OSError, ValueError):  # if stderr cannot be written, the exit code stays
        sys.stderr.write(line + "\n")


def _open_streams() -> None:
    """Open closed standard streams, and make every character writable.

    Otherwise the next file that is opened gets the number of a closed stream, and what is written to it.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number; writing to stdout fails
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
