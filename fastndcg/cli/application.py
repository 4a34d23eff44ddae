"""The application: what all commands share, how they end, and how they show errors."""

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
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, NoReturn, ParamSpec, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from fastndcg._version import __version__
from fastndcg.cli import COMMANDS
from fastndcg.cli.output import note, write
from fastndcg.errors import Argument, Call, FastndcgError, FastndcgWarning, Given, Message, visible

P = ParamSpec("P")
GATE, FAILED = 1, 3  # exit codes: a gate that failed, and a command that failed; `__main__` has the others


# plain help and errors without boxes, which would wrap a message over several lines
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# the base of all errors of usage, which this version of typer takes from click or has itself
_USAGE: type[Any] = typer.BadParameter.__mro__[2]


def main() -> int:
    """Run the command line; returns its exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(app(prog_name="fastndcg", standalone_mode=False) or 0)
    except _USAGE as error:
        error.message = visible(error.message)
        error.show()
        return 2
    except typer.Abort:
        return 130


def _terminate(*_: object) -> NoReturn:
    sys.exit(143)  # an exception, unlike the signal itself, removes drafts on its way


def end(code: int, *messages: str) -> NoReturn:
    """End the command with an exit code and messages, each of which is one line."""
    for message in messages:
        note(message)
    raise typer.Exit(code)


def refuse(message: str) -> NoReturn:
    """End the command with an error of usage."""
    end(2, message)


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
    return app.command(cls=_Once, **settings)(run_guarded)


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


class _Plain:
    """Convert values that are always valid without pydantic, whose import takes 0.1 s."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        is_many = param.multiple or param.nargs == -1
        if value is None:
            return () if is_many else None
        kind = param.type_descriptor.annotation
        if is_many and get_args(kind) == (str,):
            return list(value)
        if not is_many and isinstance(kind, type):
            if isinstance(value, kind):
                return value
            if issubclass(kind, StrEnum) and value in [member.value for member in kind]:
                return kind(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param, ctx)


class _WithPlain:
    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if (
                getattr(param, "_runtime_param", param) is None
            ):  # other versions of typer have no such attribute
                param._runtime_param = _Plain()
        return params


class _Commands(_WithPlain, TyperGroup):
    """All commands, in the order of `COMMANDS` whatever module was imported first."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=COMMANDS.index)


class _Once(_WithPlain, TyperCommand):
    """A command that refuses a repeated option of one value; all values but the last would be ignored."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = _with_todays_names(args, {name for param in self.params for name in param.opts})
        _refuse_parameters(args, {name for param in self.params for name in param.opts})
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for param, times in Counter(order).items():
            if times > 1 and param.param_type_name == "option" and not (param.multiple or param.is_flag):  # type: ignore[attr-defined]
                name = max(param.opts, key=len)
                several = " `fastndcg compare` takes several." if name == "--score" else ""
                refuse(
                    f"{name} is given {times} times; it takes one value. Keep the one that is meant.{several}"
                )
        return super().parse_args(ctx, args)


# options that had another name before; the help does not show them
_OLD_NAMES = {"--like": "--convention", "--query-column": "--query"}


def _with_todays_names(args: list[str], options: set[str]) -> list[str]:
    """Arguments with the present names of options; what follows `--` is not an option."""
    end = args.index("--") if "--" in args else len(args)
    renamed = []
    for argument in args[:end]:
        name, equals, value = argument.partition("=")
        new = _OLD_NAMES.get(name, name)
        renamed.append(new + equals + value if new in options and name not in options else argument)
    return renamed + args[end:]


# parameters of measures that people give as options, and how they are written
_OF_MEASURES = {
    **dict.fromkeys(("-k", "--k", "--topk", "--top-k", "--cutoff", "--at"), "nDCG@{}"),
    **{f"--{name}": f"nDCG({name}='{{}}')@10" for name in ("gain", "discount", "ties", "ideal")},
}


def _refuse_parameters(args: list[str], options: set[str]) -> None:
    """End the command if an option is a parameter of measures; say how it is written."""
    for place, argument in enumerate(args[: args.index("--")] if "--" in args else args):
        name, _, value = argument.partition("=")
        if re.fullmatch("-k[0-9]+", name):
            name, value = name[:2], name[2:]
        if name in _OF_MEASURES and name not in options and "--measure" in options:
            value = value or next(iter(args[place + 1 : place + 2]), "") or "10"
            written = _OF_MEASURES[name].format(value)
            refuse(f'{name} is no option: it belongs to the measure; write -m "{written}"')


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
