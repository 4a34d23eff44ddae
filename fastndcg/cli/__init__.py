"""The command line, built on the public interface. Results go to stdout, everything else to stderr.

A failing command prints the reason in one line and exits with 3. A gate that fails exits with 1, wrong usage
with 2, Ctrl-C with 130. A file that a command writes appears complete or not at all.

application  declares commands and options, and turns errors into messages and exit codes
options      options shared by several commands, and their parsers
inputs       files, columns and systems that a command reads: `Inputs` yields the rankings of each system
scores       predictions and stored results as scores
output       tables, JSON and CSV on stdout, messages on stderr
gates        gates on means and differences, as text, JUnit and GitHub annotations
score, compare, explain, report, conventions, check, pool, history, demo, trec_eval, measures, compile
             the commands
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

# in the order that the help has them
COMMANDS = (
    "score", "compare", "explain", "report", "conventions", "check", "pool", "history", "demo", "trec_eval",
    "measures", "compile",
)  # fmt: skip
# exit codes; 0 is success, and 143 that of SIGTERM
GATE = 1  # a gate that does not hold
USAGE = 2  # wrong usage
FAILED = 3  # anything else that fails
INTERRUPTED = 130  # Ctrl-C
CLOSED_PIPE = 141  # a reader that closed the pipe


def load(arguments: Sequence[str] = ()) -> Callable[[], int]:
    """Return the function that runs the command line. Only the module of the named command is
    imported.
    """
    for name in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        import_module(f"fastndcg.cli.{name}")
    return import_module("fastndcg.cli.application").main  # type: ignore[no-any-return]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'fastndcg.cli' has no attribute {name!r}")
    load()
    return import_module("fastndcg.cli.application").app
