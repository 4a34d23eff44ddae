"""The application: how commands are registered, and how one is run."""

from __future__ import annotations

import functools
import inspect
import signal
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, NoReturn, ParamSpec, get_type_hints

import typer
from typer.core import TyperGroup

from fastndcg._version import __version__
from fastndcg.cli import COMMANDS
from fastndcg.cli.arguments import Command, UsageError
from fastndcg.cli.output import note, write

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


def command(function: Callable[P, None], **settings: Any) -> Callable[P, None]:
    """Register a command.

    A parameter that is a dataclass is a block of options: the command line has each of its fields.
    """
    parameters, blocks = _parameters(function)

    @functools.wraps(function)
    def with_blocks(*arguments: P.args, **options: P.kwargs) -> None:
        for name, block in blocks.items():
            options[name] = block(**{field.name: options.pop(field.name) for field in fields(block)})
        function(*arguments, **options)

    with_blocks.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_blocks.__annotations__ = {each.name: each.annotation for each in parameters}
    return app.command(cls=Command, context_settings=_HELP, **settings)(with_blocks)


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
