"""`fastndcg` and `python -m fastndcg`: the command line, or how to get it."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line; without its extra, say in one line how to install it."""
    # nothing is begun that would have to be undone, and where extension modules are imported an exception may
    # be lost
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        from fastndcg.cli import load

        run = load(sys.argv[1:])
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write(
            "The command line needs typer, which is not installed: pip install 'fastndcg[cli]'\n"
        )
        sys.exit(2)
    signal.signal(signal.SIGINT, interrupt)
    run()


if __name__ == "__main__":
    main()
