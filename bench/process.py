"""Run measurements in separate processes."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.errors import BenchError
from bench.record import Row
from bench.timing import Time

ROOT = Path(__file__).resolve().parent.parent


def whole(*arguments: str, environment: Mapping[str, str] | None = None, out: Path | None = None) -> Time:
    """Time a whole process of this Python, including its start and end. Its output goes to a file, or nowhere."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    with Path(out or os.devnull).open("wb") as file:
        before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        code = subprocess.run(
            [sys.executable, *arguments],
            env={**inherited, "PYTHONPATH": path, **(environment or {})},
            stdout=file,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
    wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        raise BenchError(f"{' '.join(arguments[:3])}: it exited with {code}")
    return Time(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def python(*arguments: str, environment: Mapping[str, str] | None = None, timeout: float = 300) -> list[Any]:
    """Run this Python in the root of the repository. Return the JSON values that it prints, by line."""
    # cache bytecode, as in any installation: without it `import numba` takes four times as long
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    try:
        finished = subprocess.run(
            [sys.executable, *arguments],
            env={**inherited, "PYTHONPATH": path, **(environment or {})},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{' '.join(arguments[:3])} took longer than {timeout:g} s") from error
    if finished.returncode:
        lines = finished.stderr.strip().splitlines() or [f"it exited with {finished.returncode}"]
        raise BenchError(f"{' '.join(arguments[:3])}: {lines[-1]}")
    return [json.loads(line) for line in finished.stdout.splitlines() if line.startswith(("[", "{"))]


def apart(function: str, *arguments: Any, **options: Any) -> list[Row]:
    """Rows that a function of this folder, as in "reading.measure", yields in a process of its own."""
    return [Row(*row) for row in python("-m", "bench.process", function, json.dumps(arguments), **options)]


if __name__ == "__main__":
    module, _, name = sys.argv[1].rpartition(".")
    for row in getattr(import_module(f"bench.{module}"), name)(*json.loads(sys.argv[2])):
        print(json.dumps(row), flush=True)
