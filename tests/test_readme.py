"""The README keeps its word: its Python runs, and its commands are those that are run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fastndcg.cli import app
from fastndcg.measures import DEFINITIONS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = "\n".join(re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL))


def test_python_examples() -> None:
    test = doctest.DocTestParser().get_doctest(EXAMPLES, {}, "README.md", "README.md", 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert results.attempted >= 6
    assert not results.failed, "".join(report)


def test_test_command_is_the_one_that_continuous_integration_runs() -> None:
    last = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    assert last == "pip install -e '.[test,dev,rivals,engines]' && scripts/check"
    assert last in README
    assert last in (ROOT / "CONTRIBUTING.md").read_text()


def test_options_exist() -> None:
    shown = CliRunner().invoke(app, ["score", "--help"]).stdout
    for option in set(re.findall(r"--[a-z][a-z-]+", README.partition("## From Python")[0])):
        assert option in shown


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_measure_and_parameter_is_listed(name: str) -> None:
    assert f"`{name}`" in README
    for parameter in DEFINITIONS[name].parameters:
        assert f"| `{parameter.name}` |" in README
