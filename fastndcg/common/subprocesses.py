"""Processes of this Python that run no modules of the current folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess


def run_child(
    arguments: list[str], *folders: Path, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run this Python with modules of these folders and of the absolute paths in PYTHONPATH."""
    import subprocess

    # -P and a PYTHONPATH without empty and relative entries leave out the current folder
    known = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if Path(each).is_absolute()]
    path = {"PYTHONPATH": os.pathsep.join([*map(str, folders), *known])}
    command = [sys.executable or "", "-P", *arguments]
    return subprocess.run(  # noqa: S603 - this Python, and arguments of ours
        command, env={**os.environ, **(environment or {}), **path}, check=False, **options
    )
