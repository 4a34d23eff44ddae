"""`fastndcg compile`: kernels compiled ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastndcg.cli import options
from fastndcg.cli.application import command, option
from fastndcg.cli.output import write


@command
def compile(
    measure: list[str] | None = option(
        "Measure to compile for; repeatable.", None, "--measure", "-m", show_default="nDCG@10, AP, ERR"
    ),
    scores: list[str] | None = option(
        "Type of scores: float32, float64 or int64; repeatable.", show_default="float32, float64"
    ),
    folder: Path | None = option("Folder to write kernels to.", show_default="the cache of this user"),
) -> None:
    """Compile kernels now, so that later processes do not wait.

    Kernels are stored in the user's cache, or in a folder for an image. The output names the folder, and how
    processes find it.

    \b
    Examples:
      fastndcg compile
      fastndcg compile -m nDCG@10 --scores float32
      fastndcg compile --folder /opt/kernels
    """
    from fastndcg.api.compilation import compile_kernels

    asked = options.read_measures(measure or ["nDCG@10", "AP", "ERR"])
    types: Any = {} if scores is None else {"scores": scores}
    made = compile_kernels(asked, folder=folder, **types)
    write(f"{made}\n")
