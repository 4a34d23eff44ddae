"""The application: how commands and their options are declared, and how errors become lines and exit codes.

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
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from fastndcg._version import __version__
from fastndcg.cli import COMMANDS
from fastndcg.cli.output import FAILED, USAGE, end, note, write
from fastndcg.common.removed import advice
from fastndcg.errors import FastndcgError, FastndcgWarning

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
        run = typer.main.get_command(app).main
        return int(run(sys.argv[1:], prog_name="fastndcg", standalone_mode=False) or 0)
    except UsageError as error:
        error.show()
        return USAGE


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


# parameters of measures that people give as options, and how they are written
_OF_MEASURES = dict.fromkeys(("-k", "--k", "--topk", "--top-k", "--cutoff", "--at"), "nDCG@10") | {
    "--gain": "nDCG(gain='exp2')@10",
    "--discount": "nDCG(discount='zipf')@10",
    "--ties": "nDCG(ties='input')@10",
    "--ideal": "nDCG(ideal='scored')@10",
}


class _AsTyped:
    """Spares typer's conversion, which imports pydantic: 0.10 s of the 0.67 s that a small command takes.

    Texts and defaults are what they are. typer converts the rest, and versions that need no pydantic all.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        is_typed = type(value) in (str, list, tuple)
        if not is_typed or param.type_descriptor.annotation in (str, list[str]):
            return value
        param._runtime_param = None  # get_runtime_param makes typer's own
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _as_typed(params: list[Any]) -> None:
    for param in params:
        param._runtime_param = _AsTyped()


class Command(TyperCommand):
    """A command that refuses an option of one value given twice, of which click would take the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for param, times in Counter(order).items():
            if times > 1 and not (param.param_type_name == "argument" or param.multiple or param.is_flag):  # type: ignore[attr-defined]
                name = max(param.opts, key=len)
                several = "; `fastndcg compare` takes several" if name == "--score" else ""
                raise UsageError(f"{name} takes one value and is given {times} times{several}", ctx)
        _as_typed(self.get_params(ctx))
        return super().parse_args(ctx, args)


class Commands(TyperGroup):
    """All commands. Each error becomes one line and an exit code, each warning a line."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of `COMMANDS`, whatever module was imported first."""
        return sorted(super().list_commands(ctx), key=COMMANDS.index)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _as_typed(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if removed := advice(args[0]):
            raise UsageError(f"No such command '{args[0]}'{removed}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        written: set[str] = set()

        def show(message: Any, *where: Any) -> None:
            if not isinstance(message, FastndcgWarning):
                shown(message, *where)
            elif str(message) not in written:
                written.add(str(message))
                note(f"Warning: {in_options(str(message), self._options(ctx))}")

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", FastndcgWarning)
                shown = warnings.showwarning
                warnings.showwarning = show  # type: ignore[assignment]
                return super().invoke(ctx)
        except FastndcgError as error:
            code = USAGE if isinstance(error, RefusedError) else FAILED
            end(code, in_options(str(error), self._options(ctx)))
        except UsageError as error:
            measure = _OF_MEASURES.get(getattr(error, "option_name", None) or "")
            hint = f'; it belongs to the measure: write -m "{measure}"' if measure else ""
            said, path = " ".join(error.format_message().split()), (error.ctx or ctx).command_path
            end(USAGE, f"{said}{hint} (see `{path} -h`)")
        except KeyboardInterrupt:
            end(130, "Interrupted.")

    def _options(self, ctx: Any) -> dict[str, str]:
        """The option of each argument of the command that runs."""
        return {
            str(each.name): "/".join([max(each.opts, key=len), *each.secondary_opts])
            for each in self.commands[ctx.invoked_subcommand].params
            if each.param_type_name == "option"
        }


class RefusedError(FastndcgError):
    """An error of usage."""


@contextmanager
def refusing(before: str = "") -> Iterator[None]:
    """Make errors errors of usage; their messages begin with `before`."""
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


# ---- words ----


_VALUE = r""""[^"]*"|'[^']*'|\{[^}]*\}|\.\.\.|[\w+-]+(?:\.\w+)*"""


def in_options(message: str, options: Mapping[str, str]) -> str:
    """A message that names options where it names arguments of Python.

    `options` has the option of each argument, and what negates a flag after a slash. A call of a reader
    becomes its options. Quotes, measures and other arguments stay as they are.

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
            value = re.sub("[{}\"']", "", value).replace(": ", "=").replace(", ", ",")
        value = value.strip("\"'")
        return f"{name} {value}" if re.fullmatch(r"[\w.+-]+", value) else f'{name} "{value}"'

    def reworded(found: re.Match[str]) -> str:
        if found["call"] is None:
            return found[0] if found["quote"] else argument.sub(option, found[0])
        is_reader = found["function"].startswith(("read_", "Rankings."))
        named = [option(each) for each in argument.finditer(found["call"])] if is_reader else []
        return " and ".join(named) or found[0]

    if not options:
        return message
    parts = rf"""(?<![=\w])(?P<quote>"[^"]*")|(?P<function>[\w.]+)\((?P<call>[^()]*)\)|{argument.pattern}"""
    return re.sub(parts, reworded, message)
