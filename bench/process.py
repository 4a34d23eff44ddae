"""Measurements that need a process of their own, or a fresh one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.errors import BenchError

ROOT = Path(__file__).resolve().parent.parent


def python(*arguments: str, environment: Mapping[str, str] | None = None, timeout: float = 300) -> list[Any]:
    """Run this Python on `arguments`, from the root of the repository; what it prints, read as a JSON value a line."""
    # bytecode is kept, as in any installation: without it `import numba` alone takes four times as long
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
