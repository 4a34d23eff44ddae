"""`fastndcg` and `python -m fastndcg`: the command line, or how to get it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; without its extra, say in one line how to install it."""
    try:
        from fastndcg.cli import load

        run = load(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)  # before the command line can say so itself
    except ModuleNotFoundError as error:
        if error.name != "typer":
            raise
        sys.stderr.write(
            "The command line needs typer, which is not installed: pip install 'fastndcg[cli]'\n"
        )
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
