"""Types help users: what is right passes the strictest checkers, and most mistakes do not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from fastndcg import measures, typing

ROOT = Path(__file__).parent.parent
TYPED = ROOT / "tests" / "typed"
CAUGHT = 0.9  # share of the mistakes that each checker must find


def errors_of_mypy(path: Path) -> dict[int, str]:
    """The first error of each line."""
    finished = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--disable-error-code=import-untyped", "--no-error-summary", path],
        capture_output=True, text=True, check=False, cwd=TYPED,
        env=os.environ | {"MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert finished.returncode in (0, 1), finished.stderr
    found = re.findall(
        rf"^{path.name}:(\d+): error: (.*)$",
        finished.stdout.replace(f"{path.parent}{os.sep}", ""),
        re.MULTILINE,
    )
    return {int(line): text for line, text in reversed(found)}


def errors_of_pyright(path: Path) -> dict[int, str]:
    finished = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, path],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    found = json.loads(finished.stdout)["generalDiagnostics"]
    return {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in reversed(found)
        if each["severity"] == "error"
    }


CHECKERS = {"mypy": errors_of_mypy, "pyright": errors_of_pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_what_is_right_is_accepted(checker: str) -> None:
    assert CHECKERS[checker](TYPED / "uses.py") == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_most_mistakes_are_refused(checker: str) -> None:
    path = TYPED / "mistakes.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if "# wrong" in line}
    refused = set(CHECKERS[checker](path))
    assert refused <= wrong
    assert len(refused) >= CAUGHT * len(wrong), [lines[number - 1] for number in sorted(wrong - refused)]


def words_of(parameter: measures.Parameter) -> set[str]:
    return {word.strip("'") for word, _ in parameter.values if word.startswith("'")}


@pytest.mark.pure
@pytest.mark.parametrize(
    ("parameter", "literal"),
    [
        (measures.TIES, typing.Ties),
        (measures.IDEAL, typing.Ideal),
        (measures.EMPTY, get_args(typing.Empty)[1]),
        (measures.GAIN, get_args(typing.Gain)[0]),
        (measures.DISCOUNT, get_args(typing.Discount)[0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_literals_are_the_declared_words(parameter: measures.Parameter, literal: object) -> None:
    assert set(get_args(literal)) == words_of(parameter)


@pytest.mark.pure
def test_parameters_of_all_measures_have_a_type() -> None:
    declared = {
        parameter.name for definition in measures.DEFINITIONS.values() for parameter in definition.parameters
    }
    assert set(typing.Parameters.__annotations__) == declared | {"like", "dcg", "gains", "cutoff"}
