"""`fastndcg compile`: kernels compiled ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fastndcg.cli.application import command
from fastndcg.cli.meanings import read_measures
from fastndcg.cli.options import QueryOption, RelevanceOption
from fastndcg.cli.output import write


def compile_ahead(
    measure: Annotated[
        list[str] | None,
        typer.Option(
            "--measure", "-m", help="Compile for this measure; repeatable.", show_default="nDCG@10, AP, ERR"
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(help="Type of scores: float32, float64 or int64; repeatable.", show_default="all"),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder to write kernels to.", show_default="the cache of this user")
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(help="LLVM's name of the processor; x86-64-v3 suits many.", show_default="this one"),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Files like those of a job: compile only what its workers need; repeatable."),
    ] = None,
    query: QueryOption = None,
    relevance: RelevanceOption = None,
    score: Annotated[str | None, typer.Option(help="Column of scores.")] = None,
) -> None:
    """Compile kernels now, so that later processes do not wait.

    They are kept for this user, or in a folder of an image. The output says which kernels were compiled and
    how processes find them.

    \b
    Examples:
      fastndcg compile
      fastndcg compile -m nDCG@10 --scores float32
      fastndcg compile --folder /opt/kernels --cpu x86-64-v3
      fastndcg compile -m nDCG@10 --data predictions.parquet --folder kernels
    """
    from fastndcg.api.compilation import SCORES, compile_kernels

    asked = read_measures(measure or ["nDCG@10", "AP", "ERR"], [])
    named = {"query": query, "relevance": relevance, "score": score}
    roles: Any = {role: name for role, name in named.items() if name is not None}
    made = compile_kernels(asked, scores=scores or SCORES, folder=folder, cpu=cpu, data=data, **roles)
    write(f"{made}\n")


command(compile_ahead, name="compile")
