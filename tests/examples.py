"""The code blocks of README.md and docs/, and how they are run: see "Documentation" in docs/architecture.md."""

import doctest
import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from fastndcg.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]*)")?\n(.*?)^```$', flags=re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A block of code: ```language title="title"."""

    language: str
    title: str
    text: str
    line: int  # of the page, from 0, where the text begins

    @property
    def is_doctest(self):
        return self.language == "python" and self.text.startswith(">>> ")


class Command(NamedTuple):
    """A line of a console block that begins with $, and the lines below it."""

    words: list[str]
    printed: str


def blocks(page):
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(found[1], found[2] or "", found[3], text.count("\n", 0, found.start(3)))


def commands(block):
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, printed = part.replace("\\\n", " ").partition("\n")
        yield Command(shlex.split(line), printed)


def run_page(page):
    """Run the blocks of a page in the current folder, in order; those of Python share their names."""
    names = {}
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text, encoding="utf-8")
        elif block.is_doctest:
            _run_doctest(block, names, page)
        elif block.language == "console":
            _run_console(block, page)


def _run_doctest(block, names, page):
    test = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line)
    test.globs = names
    report = []
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert not failed, "".join(report)


def _run_console(block, page):
    code = 0
    for command in commands(block):
        if command.words == ["echo", "$?"]:
            shown, code = f"{code}\n", 0
        else:
            assert not code, (
                f"{page.name}: exit code {code} before {shlex.join(command.words)}; show it with echo $?"
            )
            shown, code = _run(command.words)
        assert doctest.OutputChecker().check_output(command.printed, shown, FLAGS), (
            f"{page.name}, line {block.line}: {shlex.join(command.words)} "
            f"printed\n{shown}\nwanted\n{command.printed}"
        )
    assert not code, f"{page.name}, line {block.line}: exit code {code} at the end; show it with echo $?"


def _run(words):
    """What a command prints, on stdout and stderr in the order of a terminal, and its exit code."""
    program, *arguments = words
    assert program == "fastndcg", f"only fastndcg is run in console blocks, not {program}"
    printed, code = io.StringIO(), 0
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            app(arguments, prog_name="fastndcg")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    return printed.getvalue(), code
