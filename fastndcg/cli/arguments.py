"""Words of a command line as values of a command's parameters, and what is wrong with them in one line."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import typer
from typer.core import TyperCommand

from fastndcg.cli.output import refuse
from fastndcg.errors import suggest, visible

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
            if value is None or value == ():
                if declared.default is inspect.Parameter.empty:
                    wanted = [str(each.metavar) for each in self.params if each.param_type_name == "argument"]
                    refuse(f"{param.metavar} is missing; wanted {ctx.command_path} {' '.join(wanted)}")
                ctx.params[param.name] = declared.default
            else:
                option = param.param_type_name == "option"
                name = max(param.opts, key=len) if option else str(param.metavar)
                ctx.params[param.name] = _converted(name, value, declared.annotation)
        ctx.args = []
        return ctx.args  # type: ignore[no-any-return]


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
