"""The application: how commands and their options are declared, and how a command line runs one.

Its words become values here, its errors lines and exit codes, and messages name options, not arguments.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from fastndcg._removed import advice
from fastndcg._version import __version__
from fastndcg.cli import COMMANDS
from fastndcg.cli.output import FAILED, end, note, refuse, write
from fastndcg.errors import FastndcgError, FastndcgWarning, suggest, visible

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
            said = error.format_message().rstrip(".") + (advice(arguments[0]) or ".")
            note(f"{said} `fastndcg -h` shows all commands.")
        return 2
    except typer.Abort:
        return 130


# ---- commands and options ----


def option(help: str, default: Any = None, *names: str, **settings: Any) -> Any:
    """An option, as the default of a parameter of a command, or of a field of a block of options."""
    return typer.Option(default, *names, help=help, **settings)


def argument(metavar: str | None, help: str, default: Any = ...) -> Any:
    """An argument, which is required unless it has a default."""
    return typer.Argument(default, metavar=metavar, help=help)


def _parameters(function: Callable[..., object]) -> tuple[list[inspect.Parameter], dict[str, type]]:
    """The parameters of a command, with fields of dataclasses of options; these dataclasses by name."""
    hints = get_type_hints(function)
    blocks = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters = []
    for each in inspect.signature(function).parameters.values():
        if each.name in blocks:
            parameters += _parameters(blocks[each.name])[0]
        else:
            parameters.append(each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY))
    return parameters, blocks


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command.

    A parameter that is a dataclass is a block of options: the command line has each of its fields.
    """
    parameters, blocks = _parameters(function)

    @functools.wraps(function)
    def with_blocks(**options: Any) -> None:
        for name, block in blocks.items():
            options[name] = block(**{field.name: options.pop(field.name) for field in fields(block)})
        function(**options)

    with_blocks.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_blocks.__annotations__ = {each.name: each.annotation for each in parameters}
    name = next(each for each in COMMANDS if each.replace("-", "_") == function.__name__)
    return app.command(name, cls=Command, context_settings=_HELP)(with_blocks)


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
    _: bool = option("Show the version and exit.", False, "--version", callback=_version, is_eager=True),
) -> None:
    """Compute exact ranking measures, such as nDCG, from Parquet, CSV, JSON Lines, Feather and TREC files."""


class Command(TyperCommand):
    """A command whose arguments are converted here: typer needs pydantic for it, whose import takes 0.1 s.

    An option of one value that is given twice is refused; all values but the last would be ignored.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = _known_words(args, {name for param in self.params for name in param.opts})
        try:
            given, left, order = self.make_parser(ctx).parse_args(args=list(args))
        except UsageError as error:
            refuse(f"{visible(error.format_message())} `{ctx.command_path} -h` shows all options.")
        if ctx.resilient_parsing or any(param.is_eager for param in order):
            return super().parse_args(ctx, args)  # completes words, or shows something and ends
        for param, times in Counter(order).items():
            if times > 1 and param.param_type_name == "option" and not (param.multiple or param.is_flag):  # type: ignore[attr-defined]
                name = _shown(param)
                several = " `fastndcg compare` takes several." if name == "--score" else ""
                refuse(
                    f"{name} is given {times} times; it takes one value. Keep the one that is meant.{several}"
                )
        if left:
            refuse(f'"{visible(" ".join(left))}" is more than `{ctx.command_path}` takes; see its -h')
        parameters = inspect.signature(self.callback).parameters  # type: ignore[arg-type]
        for param in self.params:
            if param.name not in parameters:
                continue
            value, parameter = given.get(param.name), parameters[param.name]
            declared = parameter.default
            if not isinstance(value, str | bool | list | tuple) or value == ():  # click has its own for none
                if declared.default is ...:
                    wanted = [_shown(each) for each in self.params if each.param_type_name == "argument"]
                    wanted += [f"{each} ..." for each in [_shown(param)] if each not in wanted]
                    refuse(f"{_shown(param)} is missing; wanted {ctx.command_path} {' '.join(wanted)}")
                many = param.multiple or param.nargs == -1
                ctx.params[param.name] = () if many else declared.default
            else:
                ctx.params[param.name] = _converted(_shown(param), value, parameter.annotation, declared)
        ctx.args = []
        return ctx.args  # type: ignore[no-any-return]

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Each expected error becomes one line and an exit code, each warning a line."""
        options = [param for param in self.params if param.param_type_name == "option"]
        names = {str(param.name): "/".join([_shown(param), *param.secondary_opts]) for param in options}
        written: set[str] = set()

        def show(message: Any, *where: Any) -> None:
            if not isinstance(message, FastndcgWarning):
                shown(message, *where)
            elif str(message) not in written:
                written.add(str(message))
                note(f"Warning: {in_options(str(message), names)}")

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", FastndcgWarning)
                shown = warnings.showwarning
                warnings.showwarning = show  # type: ignore[assignment]
                return super().invoke(ctx)
        except FastndcgError as error:
            end(FAILED, in_options(str(error), names))
        except KeyboardInterrupt:
            end(130, "Interrupted.")


# ---- words ----


def _shown(param: Any) -> str:
    """The name of an option or argument in messages."""
    name: str = max(param.opts, key=len)
    return name if param.param_type_name == "option" else param.metavar or name.upper()


# options that had another name before; the help does not show them
_OLD_NAMES = {"--like": "--convention", "--query-column": "--query"}
# parameters of measures that people give as options, and how they are written
_OF_MEASURES: Mapping[str, str] = {
    **dict.fromkeys(("-k", "--k", "--topk", "--top-k", "--cutoff", "--at"), "nDCG@{}"),
    **{f"--{name}": f"nDCG({name}='{{}}')@10" for name in ("gain", "discount", "ties", "ideal")},
}


def _known_words(args: list[str], options: set[str]) -> list[str]:
    """Arguments with the present names of options; what follows `--` is not an option.

    Ends the command if one is a parameter of measures, and says how it is written.
    """
    last = args.index("--") if "--" in args else len(args)
    known = []
    for place, word in enumerate(args[:last]):
        name, equals, value = word.partition("=")
        new = _OLD_NAMES.get(name, name)
        known.append(new + equals + value if new in options and name not in options else word)
        if re.fullmatch("-k[0-9]+", name):
            name, value = name[:2], name[2:]
        if name in _OF_MEASURES and name not in options and "--measure" in options:
            value = value or next(iter(args[place + 1 : place + 2]), "") or "10"
            written = _OF_MEASURES[name].format(value)
            refuse(f'{name} is no option: it belongs to the measure; write -m "{written}"')
    return known + args[last:]


def _converted(name: str, value: Any, annotation: Any, declared: Any) -> Any:
    """The value that the words of a parameter mean. Ends the command if they mean none."""
    kind = next((each for each in get_args(annotation) if each is not NoneType), annotation)
    if get_origin(annotation) is list or get_origin(kind) is list:
        return list(value)
    if kind is Path:
        return Path(value)
    if not isinstance(kind, type) or kind in (str, bool):
        return value
    if issubclass(kind, StrEnum):
        if value not in (words := [member.value for member in kind]):
            wanted = f"{', '.join(words[:-1])} or {words[-1]}"
            refuse(f'{name}: "{visible(value)}" is not known; wanted {wanted}.{suggest(value, words)}')
        return kind(value)
    number: float | None = None
    with suppress(ValueError):
        number = int(value) if kind is int else float(value)
    least = -math.inf if declared.min is None else declared.min
    most = math.inf if declared.max is None else declared.max
    if number is None or not least <= number <= most:
        bounds = f" from {least} to {most}" if math.isfinite(most) else f", {least} or more"
        what = "whole number" if kind is int else "number"
        refuse(f'{name} is "{visible(value)}"; wanted a {what}{bounds if math.isfinite(least) else ""}')
    return number


@contextmanager
def refusing(before: str = "", **options: str) -> Iterator[None]:
    """End the command with an error of usage where one is raised; `options` has options of its arguments."""
    try:
        yield
    except FastndcgError as error:
        refuse(before + in_options(str(error), options))


_VALUE = r""""[^"]*"|'[^']*'|\{[^}]*\}|\.\.\.|[\w+-]+(?:\.\w+)*"""


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A message that names options where it names arguments of Python.

    `options` has the option of each argument, and what negates a flag after a slash. Quotes, other arguments,
    and calls without any of these arguments, such as measures, stay as they are.

    >>> in_options('2 NaN. Drop them or pass nan="last".', {"nan": "--nan"})
    '2 NaN. Drop them or pass --nan last.'
    >>> in_options("read_trec(qrels=..., run=...), nDCG(ties='best')", {"qrels": "--qrels", "run": "--run"})
    "--qrels and --run, nDCG(ties='best')"
    """
    argument = re.compile(rf"\b({'|'.join(map(re.escape, options))})=({_VALUE})?")

    def option(found: re.Match[str]) -> str:
        (name, _, negated), value = options[found[1]].partition("/"), found[2] or ""
        if value in ("", "...", "True", "False"):  # True and False are those of a flag
            return negated if value == "False" else name
        if value.startswith("{"):  # words and their grades
            value = ",".join(f"{word}={grade}" for word, grade in ast.literal_eval(value).items())
        value = value.strip("\"'")
        return f"{name} {value}" if re.fullmatch(r"[\w.+-]+", value) else f'{name} "{value}"'

    def reworded(found: re.Match[str]) -> str:
        if found["call"] is None:
            return found[0] if found["quote"] else argument.sub(option, found[0])
        named = [option(each) for each in argument.finditer(found["call"])]
        return " and ".join(named) or found[0]

    if not options:
        return message
    parts = rf"""(?<![=\w])(?P<quote>"[^"]*")|[\w.]+\((?P<call>[^()]*)\)|{argument.pattern}"""
    return re.sub(parts, reworded, message)
