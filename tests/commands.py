"""The command line and programs as tests run them: in this process, or in one of their own."""

import csv
import io
import json
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fastndcg
from fastndcg.cli import app

ROOT = Path(fastndcg.__file__).parent.parent


def run(line, *words, **options):
    """A command line in this process, of which the first text is split as a shell does, backslashes apart; what it does not foresee is raised here."""
    split = shlex.shlex(line, posix=True, punctuation_chars=False)
    split.whitespace_split, split.commenters, split.escape = True, "", ""
    given = [*split, *map(str, words)]
    return CliRunner().invoke(app, given, prog_name="fastndcg", catch_exceptions=False, **options)


def facts(line, *words, code=0):
    """What a command prints as JSON."""
    result = run(line, *words, "--format", "json")
    assert result.exit_code == code, result.stderr
    return json.loads(result.stdout, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))


def rows(line, *words):
    """What a command prints as CSV."""
    result = run(line, *words, "--format", "csv")
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout, newline="")))


def command(*words):
    return [sys.executable, "-m", "fastndcg", *map(str, words)]


def in_process_of_its_own(*words, **options):
    return subprocess.run(
        command(*words), capture_output=True, text=True, timeout=300, check=False, **options
    )


def only_line(text):
    """The one line that a failing command leaves on stderr."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]


def started(code, *words, flags=(), without=(), **environment):
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


def program(code, *words, stdin="", timeout=300, **options):
    """The same, once it has ended."""
    with started(code, *words, **options) as process:
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def printed(code, *words, **options):
    """What such a program prints, which has to end well."""
    done = program(code, *words, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[:6000] + done.stderr[-2000:]
    return done.stdout
