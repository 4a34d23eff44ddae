"""The application: what all commands share, how they end, and how they show errors."""

from __future__ import annotations

import functools
import inspect
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Annotated, Any, NoReturn, ParamSpec, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import OptionInfo

from fastndcg._version import __version__
from fastndcg.cli import COMMANDS
from fastndcg.cli.arguments import Command, UsageError
from fastndcg.cli.output import FAILED, end, note, write
from fastndcg.errors import Argument, Call, FastndcgError, FastndcgWarning, Given, Message

P = ParamSpec("P")

_HELP = {"help_option_names": ["-h", "--help"]}
# plain help and errors without boxes, which would wrap a message over several lines
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)


def main() -> int:
    """Run the command line; returns its exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    arguments = sys.argv[1:]
    run, name = typer.main.get_command(app), "fastndcg"
    if arguments and arguments[0] in COMMANDS:  # by itself: the group would import pydantic
        name = f"{name} {arguments[0]}"
        run, *arguments = run.commands[arguments[0]], *arguments[1:]  # type: ignore[attr-defined]
    try:
        return int(run.main(arguments, prog_name=name, standalone_mode=False) or 0)
    except UsageError as error:
        if not arguments:
            error.show()
        else:
            note(f"{error.format_message()} `fastndcg -h` shows all commands.")
        return 2
    except typer.Abort:
        return 130


def _terminate(*_: object) -> NoReturn:
    sys.exit(143)  # an exception, unlike the signal itself, removes drafts on its way


def _parameters(function: Callable[..., object]) -> tuple[list[inspect.Parameter], dict[str, type]]:
    """The parameters of a command, with fields of dataclasses of options; these dataclasses by name."""
    hints = get_type_hints(function, include_extras=True)
    blocks = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters = []
    for each in inspect.signature(function).parameters.values():
        if each.name in blocks:
            parameters += _parameters(blocks[each.name])[0]
        else:
            parameters.append(each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY))
    return parameters, blocks


def _options_of(function: Callable[..., None]) -> dict[str, str]:
    """The options of a command, by the names of its function's parameters."""
    options = {}
    for parameter in _parameters(function)[0]:
        name = parameter.name
        for declared in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(declared, OptionInfo):
                # of what is annotated typer takes the first name for a default
                names = [declared.default, *(declared.param_decls or ())]
                long = [each for each in names if isinstance(each, str) and each.startswith("--")]
                options[name] = long[0] if long else f"--{name.replace('_', '-')}"
    return options


def in_options(
    message: Message, options: dict[str, str], typed: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """A message with `--score "s1"` for `score="s1"`, without advice that no option can follow.

    `typed` are the values of all options, by the names of the function's parameters.
    """

    def option(proposed: Argument | Given | Call) -> str | None:
        if isinstance(proposed, Call):
            joins = "from_qrels_run" in proposed.text and {"qrels", "run"} <= options.keys()
            return "--qrels and --run" if joins else None
        if isinstance(proposed, Given):
            names = [proposed.argument, *typed]
            found = (name for name in names if name in options and _holds(typed.get(name), proposed.value))
            return options.get(next(found, proposed.argument))
        if proposed == Argument("paired", False):
            return options.get("unpaired")
        name, value = options.get(proposed.name), proposed.value
        if name is None or value is ... or value is True:  # True is that of a flag
            return name
        if isinstance(value, dict):
            value = ",".join(f"{word}={grade}" for word, grade in value.items())
        is_word = not isinstance(value, str) or re.fullmatch(r"[\w.+-]+", value)
        return f"{name} {value}" if is_word else f'{name} "{value}"'

    return message.in_words(option)


def _holds(typed: object, value: str) -> bool:
    """Whether an option named a column: as its value, as one of several, or as the cutoff of a measure."""
    each = typed if isinstance(typed, list | tuple) else [typed]
    return value in each or any(isinstance(one, str) and one.endswith(f"@{value}") for one in each)


def command(function: Callable[P, None], **settings: Any) -> Callable[P, None]:
    """Register a command. Each expected error becomes one line and an exit code.

    A parameter that is a dataclass is a block of options: the command line has each of its fields.
    """
    parameters, blocks = _parameters(function)

    @functools.wraps(function)
    def run_guarded(*arguments: P.args, **options: P.kwargs) -> None:
        typed = dict(options)

        def as_option(message: Message) -> str:
            return in_options(message, _options_of(function), typed)

        for name, block in blocks.items():
            options[name] = block(**{field.name: options.pop(field.name) for field in fields(block)})
        try:
            with _short_warnings(as_option):
                function(*arguments, **options)
        except FastndcgError as error:
            end(FAILED, as_option(error))
        except KeyboardInterrupt:
            end(130, "Interrupted.")

    run_guarded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run_guarded.__annotations__ = {each.name: each.annotation for each in parameters}
    return app.command(cls=Command, context_settings=_HELP, **settings)(run_guarded)


@contextmanager
def _short_warnings(as_option: Callable[[Message], str]) -> Iterator[None]:
    """Show each warning of the package once, as one line on stderr, without its source line."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", FastndcgWarning)
        shown, written = warnings.showwarning, set()

        def show(message: Any, category: type[Warning], *where: Any) -> None:
            if isinstance(message, FastndcgWarning):
                if str(message) not in written:
                    note(f"Warning: {as_option(message)}")
                written.add(str(message))
            else:
                shown(message, category, *where)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


class _Commands(TyperGroup):
    """All commands, in the order of `COMMANDS` whatever module was imported first."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=COMMANDS.index)


def _version(wanted: bool) -> None:
    if wanted:
        write(f"fastndcg {__version__}\n")
        raise typer.Exit


@app.callback(cls=_Commands)
def _fastndcg(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Compute exact ranking measures, such as nDCG, from Parquet, CSV, JSON Lines, Feather and TREC files."""
