"""`fastndcg compile`: kernels compiled ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fastndcg.cli.application import command
from fastndcg.cli.output import write
from fastndcg.cli.reading import read_measures


def compile_ahead(
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure", "-m", help="Compile what it needs; repeatable.", show_default="nDCG@10, AP, ERR"
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(help="float32, float64 or int64: types of scores; repeatable.", show_default="all"),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Where to keep them, to ship.", show_default="the cache of this user")
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(help="As LLVM names it: x86-64-v3 to share between machines.", show_default="this one"),
    ] = None,
) -> None:
    """Compile kernels ahead, so that no process waits for it: once for this user, or into a folder of an image.

    It says what it made and how processes find it.

    \b
    Examples:
      fastndcg compile
      fastndcg compile -m nDCG@10 --scores float32
      fastndcg compile --folder /opt/kernels --cpu x86-64-v3
    """
    from fastndcg.compilation import SCORES, compile_kernels

    asked = read_measures(measure or ["nDCG@10", "AP", "ERR"], [])
    write(f"{compile_kernels(asked, scores=scores or SCORES, folder=folder, cpu=cpu)}\n")


command(compile_ahead, name="compile")
