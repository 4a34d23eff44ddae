"""The command line and programs as tests run them: in this process, or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def started(
    code: str | Path,
    *words: object,
    flags: Sequence[str] = (),
    without: Sequence[str] = (),
    **environment: str,
) -> subprocess.Popen[str]:
    """A Python program in a process of its own, which finds this package and these tests, and not yet its end."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith((*without, "PYTHONPATH"))
    }
    code = ["-c", textwrap.dedent(code)] if isinstance(code, str) else [str(code)]
    return subprocess.Popen(
        [sys.executable, *flags, *code, *map(str, words)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=kept | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])} | environment,
    )  # fmt: skip


def program(
    code: str | Path, *words: object, stdin: str = "", timeout: float = 300, **options: Any
) -> subprocess.CompletedProcess[str]:
    """The same, once it has ended."""
    with started(code, *words, **options) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def printed(code: str | Path, *words: object, **options: Any) -> str:
    """What such a program prints, which has to end well."""
    done = program(code, *words, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout
