"""Types help users: what is right passes the strictest checkers, and most mistakes do not."""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from fastndcg import measures, typing
from fastndcg.measures import parameters

ROOT = Path(__file__).parent.parent.parent
TYPED = ROOT / "tests" / "typed"
SCRIPTS = [TYPED / "uses.py", TYPED / "mistakes.py"]
CAUGHT = 0.9  # share of the mistakes that each checker must find


@functools.cache
def found_by_mypy():
    """What it says of both scripts; the package is checked by its own step, so here as one that is installed."""
    finished = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", f"--config-file={TYPED / 'mypy.ini'}", "--disable-error-code=import-untyped", "--follow-imports=silent",
            "--no-error-summary", *SCRIPTS,
        ],
        capture_output=True, text=True, check=False, cwd=TYPED,
        env=os.environ | {"MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert finished.returncode in (0, 1), finished.stderr
    return finished.stdout.replace(f"{TYPED}{os.sep}", "")


def errors_of_mypy(path):
    """The first error of each line."""
    found = re.findall(rf"^{path.name}:(\d+): error: (.*)$", found_by_mypy(), re.MULTILINE)
    return {int(line): text for line, text in reversed(found)}


@functools.cache
def found_by_pyright():
    finished = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *SCRIPTS],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    return json.loads(finished.stdout)["generalDiagnostics"]


def errors_of_pyright(path):
    return {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in reversed(found_by_pyright())
        if each["severity"] == "error" and Path(each["file"]).name == path.name
    }


CHECKERS = {"mypy": errors_of_mypy, "pyright": errors_of_pyright}


@pytest.fixture
def checker(request):
    return (
        request.param if pytest.importorskip(request.param, reason=f"there is no {request.param}") else None
    )


@pytest.mark.compiled
@pytest.mark.parametrize("checker", CHECKERS, indirect=True)
@pytest.mark.slow
def test_what_is_right_is_accepted(checker):
    assert CHECKERS[checker](TYPED / "uses.py") == {}


@pytest.mark.compiled
@pytest.mark.parametrize("checker", CHECKERS, indirect=True)
@pytest.mark.slow
def test_most_mistakes_are_refused(checker):
    path = TYPED / "mistakes.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# wrong" in line}
    refused = set(CHECKERS[checker](path))
    assert refused <= wrong
    assert len(refused) >= CAUGHT * len(wrong), [lines[number - 1] for number in sorted(wrong - refused)]


def words_of(parameter):
    return {word.strip("'") for word, _ in parameter.values if word.startswith("'")}


@pytest.mark.parametrize(
    ("parameter", "literal"),
    [
        (parameters.TIES, typing.Ties),
        (parameters.IDEAL, typing.Ideal),
        (parameters.EMPTY, get_args(typing.Empty)[1]),
        (parameters.GAIN, get_args(typing.Gain)[0]),
        (parameters.DISCOUNT, get_args(typing.Discount)[0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_literals_are_the_declared_words(parameter, literal):
    declared = [
        each
        for definition in measures.DEFINITIONS.values()
        for each in definition.parameters
        if each.name == parameter.name
    ]
    assert set(get_args(literal)) == words_of(parameter).union(*map(words_of, declared))


def test_parameters_of_all_measures_have_a_type():
    declared = {
        parameter.name for definition in measures.DEFINITIONS.values() for parameter in definition.parameters
    }
    assert set(typing.Parameters.__annotations__) == declared | {"like", "dcg", "gains", "cutoff"}
