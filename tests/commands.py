"""The command line and programs as tests run them: in this process, or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from typer.testing import CliRunner, Result

import fastndcg
from fastndcg.cli import app

ROOT = Path(fastndcg.__file__).parent.parent


def run(*words: object, **options: object) -> Result:
    """The command line in this process; what it does not foresee is raised here."""
    return CliRunner().invoke(
        app, [str(word) for word in words], prog_name="fastndcg", catch_exceptions=False, **options
    )  # type: ignore[arg-type]


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "fastndcg", *map(str, words)]


def in_process_of_its_own(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), capture_output=True, text=True, timeout=300, check=False, **options
    )  # type: ignore[call-overload,no-any-return]


def only_line(text: str) -> str:
    """The one line that a failing command leaves on stderr."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


def program(code: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A Python program in a process of its own, which finds this package."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *words],
        capture_output=True, text=True, check=False, timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip


def printed(code: str, *words: str, **environment: str) -> str:
    """What such a program prints, which has to end well."""
    done = program(code, *words, **environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout
