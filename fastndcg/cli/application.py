"""The application: declares commands and options, and turns errors into messages and exit codes.

Messages name arguments as Python does; here they name options.
"""

from __future__ import annotations

import functools
import inspect
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from fastndcg._version import __version__
from fastndcg.cli import COMMANDS, FAILED, INTERRUPTED, USAGE
from fastndcg.cli.output import end, note, write
from fastndcg.common.removed import advice
from fastndcg.errors import SYNONYMS, FastndcgError, FastndcgWarning

# typer has errors of click, or its own copies of them, and names only this one
UsageError: type[Any] = typer.BadParameter.__base__  # type: ignore[assignment]

_HELP = {"help_option_names": ["-h", "--help"]}
# plain help and errors without boxes, which would wrap a message over several lines
app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=_HELP
)


def main() -> int:
    """Run the command line; returns its exit code."""
    # an exception, unlike the signal itself, removes drafts on its way
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run = typer.main.get_command(app).main  # without arguments it takes those of the process, and expands
        return int(run(prog_name="fastndcg", standalone_mode=False) or 0)  # patterns on Windows
    except UsageError as error:
        with suppress(OSError, ValueError):  # where stderr cannot be written, the exit code is the same
            error.show()
        return USAGE


# ---- commands and options ----


def option(help: str, default: Any = None, *names: str, **settings: Any) -> Any:
    """An option, as the default of a parameter of a command, or of a field of a block of options.

    One that is False by default and has no names is a flag that nothing negates.
    """
    return typer.Option(default, *names, help=help, **settings)


def argument(metavar: str | None, help: str, default: Any = ...) -> Any:
    """An argument, which is required unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=help)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command. A parameter that is a dataclass is a block of options: each field is an option."""
    hints = get_type_hints(function)
    blocks = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        block = blocks.get(name)
        declared = {name: parameter} if block is None else inspect.signature(block).parameters
        of_type = hints if block is None else get_type_hints(block)
        for own_name, each in declared.items():
            if each.default.default is False and not each.default.param_decls:
                each.default.param_decls = ("--" + own_name.replace("_", "-"),)
            parameters.append(each.replace(annotation=of_type[own_name], kind=each.KEYWORD_ONLY))

    @functools.wraps(function)
    def with_blocks(**options: Any) -> None:
        for name, block in blocks.items():
            options[name] = block(**{field.name: options.pop(field.name) for field in fields(block)})
        function(**options)

    with_blocks.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_blocks.__annotations__ = {each.name: each.annotation for each in parameters}
    return app.command(function.__name__, cls=Command, context_settings=_HELP)(with_blocks)


class Command(TyperCommand):
    """A command that refuses a repeated option, of which click would silently use the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for param, times in Counter(self.make_parser(ctx).parse_args([*args])[2]).items():
            if times > 1 and not (param.param_type_name == "argument" or param.multiple or param.is_flag):  # type: ignore[attr-defined]
                name = max(param.opts, key=len)
                raise UsageError(f"{name} takes one value but was passed {times} times", ctx)
        return super().parse_args(ctx, args)


# parameters of measures that people give as options, and how they are written
_OF_MEASURES = {
    "--cutoff": "nDCG@10",
    "--gain": "nDCG(gain='exp2')@10",
    "--discount": "nDCG(discount='zipf')@10",
    "--ties": "nDCG(ties='input')@10",
    "--ideal": "nDCG(ideal='scored')@10",
}


def _instead(error: Any, params: list[Any]) -> str:
    """Suggest what to write instead of an unknown option, as text or as the error's `possibilities`: one
    that means the same comes before the nearest spelling.
    """
    if not hasattr(error, "possibilities"):
        return ""
    known = [name for each in params for name in each.opts]
    words = SYNONYMS.get(error.option_name.lstrip("-").replace("-", "_"), ())
    asked = [error.option_name, *("--" + word.replace("_", "-") for word in words)]
    measure = next((_OF_MEASURES[name] for name in asked if name in _OF_MEASURES), None)
    if measures := [name for name in asked if name in known]:
        error.possibilities, measure = measures, None
    elif words or measure:
        error.possibilities = None
    return f'; it belongs to the measure: write -m "{measure}"' if measure and "--measure" in known else ""


class Commands(TyperGroup):
    """All commands. Each error becomes one line and an exit code, each warning a line."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The commands in the order of `COMMANDS`, whatever module was imported first."""
        return [name for name in COMMANDS if name in self.commands]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if removed := advice(args[0]):
            raise UsageError(f"No such command '{args[0]}'{removed}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        written: set[str] = set()

        def in_words(message: object) -> str:
            params = self.commands[ctx.invoked_subcommand].params
            options = {
                str(each.name): "/".join([max(each.opts, key=len), *each.secondary_opts])
                for each in params
                if each.param_type_name == "option"
            }
            return in_options(str(message), options)

        def show(message: Any, *where: Any) -> None:
            if not isinstance(message, FastndcgWarning):
                shown(message, *where)
            elif str(message) not in written:
                written.add(str(message))
                note(f"Warning: {in_words(message)}")

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", FastndcgWarning)
                shown, warnings.showwarning = warnings.showwarning, show  # type: ignore[assignment]
                return super().invoke(ctx)
        except FastndcgError as error:
            end(USAGE if isinstance(error, RefusedError) else FAILED, in_words(error))
        except UsageError as error:
            context = error.ctx or ctx
            hint = _instead(error, context.command.params)
            said = " ".join(error.format_message().replace("Value error, ", "").split())
            end(USAGE, f"{said}{hint} (see `{context.command_path} -h`)")
        except KeyboardInterrupt:
            end(INTERRUPTED, "Interrupted.")


class RefusedError(FastndcgError):
    """Wrong usage of a command."""


@contextmanager
def refusing(before: str = "") -> Iterator[None]:
    """Turn errors into usage errors; `before` precedes their messages."""
    try:
        yield
    except FastndcgError as error:
        raise RefusedError(f"{before}{error}") from None


def _version(wanted: bool) -> None:
    if wanted:
        write(f"fastndcg {__version__}\n")
        raise typer.Exit


@app.callback(cls=Commands)
def _fastndcg(
    _: bool = option("Show the version and exit.", False, "--version", callback=_version, is_eager=True),
) -> None:
    """Compute exact ranking measures, such as nDCG, from Parquet, CSV, JSON Lines, Feather and TREC files."""


_VALUE = r""""[^"]*"|'[^']*'|\{[^}]*\}|\[[^\]]*\]|\.\.\.|[\w+-]+(?:\.\w+)*"""


def in_options(message: str, options: Mapping[str, str]) -> str:
    """Replace Python arguments in a message by options, except in quotes.

    `options` has the option of each argument, and what negates a flag after a slash.

    >>> in_options('2 NaN. Drop them or pass nan="last".', {"nan": "--nan"})
    '2 NaN. Drop them or pass --nan last.'
    >>> in_options("as in read_trec(qrels=..., run=...)", {"qrels": "--qrels", "run": "--run"})
    'as in --qrels ..., --run ...'
    """

    def option(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        (name, _, negated), value = options[match["name"]].partition("/"), match["value"] or ""
        if value in ("", "True", "False"):  # True and False are those of a flag
            return negated if value == "False" else name
        if value[0] in "{[":  # words and their grades, or names
            value = re.sub("[][{}\"']", "", value).replace(": ", "=").replace(", ", ",")
        value = value.strip("\"'")
        return f"{name} {value}" if re.fullmatch(r"[\w.+-]+", value) else f'{name} "{value}"'

    if not options:
        return message
    names = "|".join(map(re.escape, options))
    text = re.sub(rf'(?<![=\w])"[^"]*"|\b(?P<name>{names})=(?P<value>{_VALUE})?', option, message)
    return re.sub(r"\b[\w.]+\((--[^()]*)\)", r"\1", text)  # the call of a reader is its options
