"""What a command line is to a command: its words as values, and messages in the words of its options."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperCommand

from fastndcg.cli.output import FAILED, end, note, refuse
from fastndcg.errors import (
    Argument,
    Call,
    FastndcgError,
    FastndcgWarning,
    Given,
    Message,
    suggest,
    visible,
)

# typer has errors of click, or its own copies of them, and names only this one
UsageError: type[Any] = typer.BadParameter.__base__  # type: ignore[assignment]


class Command(TyperCommand):
    """A command whose arguments are converted here: typer needs pydantic for it, whose import takes 0.1 s.

    An option of one value that is given twice is refused; all values but the last would be ignored.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {name for param in self.params for name in param.opts}
        args = _with_todays_names(args, options)
        _refuse_parameters(args, options)
        try:
            given, left, order = self.make_parser(ctx).parse_args(args=list(args))
        except UsageError as error:
            refuse(f"{visible(error.format_message())} `{ctx.command_path} -h` shows all options.")
        if ctx.resilient_parsing or any(param.is_eager for param in order):
            return super().parse_args(ctx, args)  # completes words, or shows something and ends
        for param, times in Counter(order).items():
            if times > 1 and param.param_type_name == "option" and not (param.multiple or param.is_flag):  # type: ignore[attr-defined]
                name = max(param.opts, key=len)
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
            value, declared = given.get(param.name), parameters[param.name]
            if not isinstance(value, str | bool | list | tuple) or value == ():  # click has its own for none
                if declared.default is inspect.Parameter.empty:
                    wanted = [str(each.metavar) for each in self.params if each.param_type_name == "argument"]
                    refuse(f"{param.metavar} is missing; wanted {ctx.command_path} {' '.join(wanted)}")
                many = param.multiple or param.nargs == -1
                ctx.params[param.name] = () if many else declared.default
            else:
                option = param.param_type_name == "option"
                name = max(param.opts, key=len) if option else str(param.metavar)
                ctx.params[param.name] = _converted(name, value, declared.annotation)
        ctx.args = []
        return ctx.args  # type: ignore[no-any-return]

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Each expected error becomes one line and an exit code."""
        options = [param for param in self.params if param.param_type_name == "option"]
        names = {str(param.name): max(param.opts, key=len) for param in options}

        def as_option(message: Message) -> str:
            return in_options(message, names, ctx.params)

        try:
            with _short_warnings(as_option):
                return super().invoke(ctx)
        except FastndcgError as error:
            end(FAILED, as_option(error))
        except KeyboardInterrupt:
            end(130, "Interrupted.")


def _converted(name: str, value: Any, annotation: Any) -> Any:
    """The value that the words of a parameter mean. Ends the command if they mean none."""
    declared, info = get_args(annotation)
    kind = next((each for each in get_args(declared) if each is not NoneType), declared)
    if get_origin(declared) is list or get_origin(kind) is list:
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
    least, most = (-math.inf if info.min is None else info.min), (math.inf if info.max is None else info.max)
    if number is None or not least <= number <= most:
        bounds = f" from {least} to {most}" if math.isfinite(most) else f", {least} or more"
        what = "whole number" if kind is int else "number"
        refuse(f'{name} is "{visible(value)}"; wanted a {what}{bounds if math.isfinite(least) else ""}')
    return number


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
_OF_MEASURES: Mapping[str, str] = {
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


# ---- messages ----


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
