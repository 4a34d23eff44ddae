"""The command line, which uses only the package's own interface. Results go to stdout, all else to stderr.

A failing command prints the reason in one line and exits with 3. A gate that fails exits with 1, wrong usage
with 2, Ctrl-C with 130. A file that a command writes appears complete or not at all.

application  how commands are registered, and how one is run
arguments    words of the command line as values, and messages in the words of options
options      options that several commands take
meanings     what the words of options mean: measures, gates, grades, numbers
reading      the input of a command: files of every kind, and the columns that were used
scored       predictions and stored results of one input as scores
output       tables, JSON and CSV on stdout, and how a command ends
inference    how systems are compared: tests, intervals, matching
gates        what fails unless a system is no worse than another
ci           gates in the words of continuous integration
baseline     a baseline that is kept in a file, and replaced
sample       the generated predictions of `demo`
score, compare, explain, report, conventions, judges, check, judge_next, history, catalogue, demo
trec_eval, measures, compile
             the commands
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

# in the order that the help has them
COMMANDS = (
    "score",
    "compare",
    "explain",
    "report",
    "conventions",
    "judges",
    "check",
    "judge-next",
    "history",
    "catalogue",
    "demo",
    "trec_eval",
    "measures",
    "compile",
)


def load(arguments: Sequence[str] = ()) -> Callable[[], int]:
    """The function that runs the command line; it returns the exit code. Only a command that is named is
    imported.
    """
    for name in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        import_module(f"fastndcg.cli.{name.replace('-', '_')}")
    return import_module("fastndcg.cli.application").main  # type: ignore[no-any-return]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'fastndcg.cli' has no attribute {name!r}")
    load()
    return import_module("fastndcg.cli.application").app
