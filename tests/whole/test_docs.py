"""README.md and docs/ keep their word: their examples run, their options exist, and they name everything that is public."""

import ast
import doctest
import functools
import importlib.util
import inspect
import re
import runpy
import shlex
import sys
import tomllib
import types
from pathlib import Path

import commands
import conftest
import engines
import examples
import pytest
from typer.main import get_command

import fastndcg as fn
from fastndcg.cli import app
from fastndcg.common import removed
from fastndcg.measures import DEFINITIONS
from scripts import pages, reference

ROOT = examples.ROOT
README = (ROOT / "README.md").read_text(encoding="utf-8")
OF_TRAINING = "docs/training.md"
OF_ENGINES = "docs/engines.md"
EVERY_PAGE = pytest.mark.parametrize("page", examples.PAGES, ids=lambda page: page.stem)


@functools.cache
def help_text(*command):
    return commands.run(*command, "--help").output


# ---- examples ----


@EVERY_PAGE
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples.run_page(page)


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "fastndcg/adapters").glob("[a-z]*.py")))
@pytest.mark.rivals
def test_examples_of_adapters(name):
    try:
        module = importlib.import_module(f"fastndcg.adapters.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("fastndcg"):
            raise
        pytest.skip(f"there is no {error.name}")
    assert doctest.testmod(module, optionflags=examples.FLAGS).failed == 0


def test_programs_are_those_that_tests_of_hosts_run():
    programs = [
        str(page.relative_to(ROOT))
        for page in examples.PAGES
        for block in examples.blocks(page)
        if block.language == "python" and not block.is_doctest
    ]
    assert programs == [OF_ENGINES] * 6 + ["docs/recipes.md"] * 5 + [OF_TRAINING] * 4


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("```python\n>>> 1 + 1\n2\n```\n", False),
        ("```python\n>>> 1 + 1\n3\n```\n", True),
        (('```text title="a.csv"\nqid,label,score\n1,1,1\n```\n```console\n$ fastndcg score '
            "a.csv\n...\n```\n"), False),
        ("```console\n$ fastndcg score a.csv\n...\n```\n", True),
        ("```console\n$ fastndcg score a.csv\na.csv does not exist...\n$ echo $?\n3\n```\n", False),
        ("```console\n$ fastndcg measures RR\nnothing of the kind\n```\n", True),
    ],
)  # fmt: skip
def test_an_example_that_is_wrong_fails(text, fails, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text(text)
    if not fails:
        examples.run_page(tmp_path / "page.md")
        return
    with pytest.raises(AssertionError, match=r"page\.md"):
        examples.run_page(tmp_path / "page.md")


@pytest.mark.parametrize("page", examples.PAGES, ids=lambda page: page.stem)
def test_options_exist(page):
    """Those of a command in the help of that command; those in the text in that of any command."""
    everywhere = "".join(help_text(name) for name in get_command(app).commands)
    for option in re.findall(r"`(--[a-z][a-z_-]+)", page.read_text(encoding="utf-8")):
        assert option in everywhere
    for block in examples.blocks(page):
        for command in examples.commands(block) if block.language == "console" else ():
            if command.words[0] == "fastndcg":
                shown = help_text(command.words[1])
                for word in command.words[2:]:
                    assert not word.startswith("--") or word in shown, shlex.join(command.words)


def test_test_command_is_the_one_that_continuous_integration_runs():
    run, check = ((ROOT / name).read_text(encoding="utf-8") for name in (".ci/run", "scripts/check"))
    command = "pip install -e '.[test]' && pytest"
    for text in (README, run, (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")):
        assert command in text
    rest = "pip install -e '.[test,dev,rivals,engines]'"
    assert run.index(command) < run.index(rest) < run.index("scripts/check --rest")
    # the one leaves out what the other runs
    assert f"-m '{' or '.join(conftest.LEFT_OUT)}'" in check
    assert f"{rest} && scripts/check" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


# ---- what is made from the package ----


def test_every_name_is_in_the_reference():
    named = {name for names in reference.SECTIONS.values() for name in names.split()}
    public = {name for name in fn.__all__ if not isinstance(getattr(fn, name), fn.Measure)}
    assert public == {name for name in named if "." not in name}, "add these to scripts/reference.py"
    assert all(reference.describe(name).summary for name in named)
    site = pages.built((ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), "docs/reference.md")
    assert re.findall(r"^\.\. auto\w+:: (?:fastndcg\.)?(\S+?)(?:\(\))?$", site, flags=re.MULTILINE) == [
        name for names in reference.SECTIONS.values() for name in names.split()
    ]


def public_objects():
    for name in dir(fn):
        value = getattr(fn, name)
        if not (name.startswith("_") or inspect.ismodule(value)):
            yield name, value
            for part, of_class in vars(value).items() if inspect.isclass(value) else ():
                if not part.startswith("_"):
                    yield f"{name}.{part}", of_class


def test_text_after_a_list_of_a_docstring_has_a_heading():
    """Without one it would be read as one more parameter, attribute or error."""
    for name, value in public_objects():
        sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(value) or "", flags=re.MULTILINE)
        for heading, text in zip(sections[1::2], sections[2::2], strict=True):
            if heading in ("Parameters", "Attributes", "Returns", "Raises"):
                assert not re.search(r"\n\n\S", text), f"{name}: what follows {heading}"


# functions that compute what has a formula; the others read, build or show
OF_FORMULAS = {
    "evaluate", "ndcg", "dcg_score", "ndcg_score", "snips", "tie_range", "propensities", "compare_clicks",
}  # fmt: skip
FUNCTIONS = [name for name in fn.__all__ if inspect.isfunction(getattr(fn, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_all_sections(name):
    function = getattr(fn, name)
    sections = re.split(r"^(\w[\w ]+)\n-{3,}\n", inspect.getdoc(function) or "", flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    wanted = {"Parameters", "Returns", "Raises", "See Also", "Examples"}
    wanted |= {"References"} if name in OF_FORMULAS else set()
    assert not wanted - found.keys()
    described = re.findall(r"^[\w*, ]+", found["Parameters"], flags=re.MULTILINE)
    named = {each.strip(" *") for line in described for each in line.split(",")}
    assert not {*inspect.signature(function).parameters} - named
    assert ">>> " in found["Examples"]
    for line in re.findall(r"^\S.*", found["See Also"], flags=re.MULTILINE):
        assert all(hasattr(fn, other) for other in line.partition(" : ")[0].split(", ")), line


def test_every_measure_has_a_formula_and_its_source():
    for name, definition in DEFINITIONS.items():
        assert definition.formula and definition.source and definition.summary and definition.range, name


def test_every_measure_and_parameter_is_listed():
    every, parameters = pages.every_measure(), pages.parameters()
    for name, definition in DEFINITIONS.items():
        assert f"### {name}\n" in every
        for parameter in definition.parameters:
            assert re.search(rf"^\| `{parameter.name}`", parameters, flags=re.MULTILINE)


def test_every_convention_is_listed():
    table, caveats = pages.conventions(), pages.caveats()
    matrix, every = pages.matrix().splitlines(), pages.every_measure()
    columns = re.findall(r"\[(\w+)\]", matrix[0])
    for name, rule in fn.conventions.items():
        assert f"`{name}`" in caveats
        assert f"| `{name}` |" in table or rule.find("nDCG") is None
        (row,) = (line for line in matrix if f"`{name}`" in line.split(" | ")[0])
        cells = dict(zip(columns, row.split(" | ")[1:], strict=False)) | dict(
            re.findall(r"\[(\w+)\]\(\S*\) (\d+)", row)
        )
        assert {measure for measure in cells if re.match(r"\d", cells[measure])} == {*rule.names_of_measures}
        for measure, numbers in cells.items():  # each number is that of a definition which names the tool
            of_measure = every.partition(f"### {measure}\n")[2].partition("\n### ")[0]
            for number in re.findall(r"\d+", numbers):
                assert re.search(rf"^  {number}\. .*`{name}`", of_measure, flags=re.MULTILINE), (
                    name,
                    measure,
                )


def test_every_command_is_listed():
    text, table = pages.commands(), pages.options()
    for name, command in get_command(app).commands.items():
        shown = text.partition(f"## fastndcg {name}\n")[2].partition("\n## ")[0]
        assert f"| `{name}` |" in table
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert parameter.opts[0] in shown
                row = rf"^\| .*`{parameter.opts[-1]}`.* \|.*\b{name}\b"
                assert name == "trec_eval" or re.search(row, table, flags=re.MULTILINE)


def test_what_is_made_takes_its_places():
    text = "a\n<!-- commands: written when the site is built -->\nb\n<!-- end of commands -->\nc\n"
    assert pages.built(text, "docs/a.md") == f"a\n{pages.commands()}\nc\n"
    used = [
        name
        for page in (*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "bench" / "README.md")
        for name in re.findall(
            r"<!-- (.*): written (?:when the site is built|by scripts/pages.py) -->$",
            page.read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
    ]
    assert sorted(used) == sorted([*pages.WRITTEN, *pages.GENERATED])


@pytest.mark.parametrize("name", pages.GENERATED)
def test_lists_in_the_repository_are_those_of_the_package(name):
    path, text = pages.renewed(name)
    assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run python -m scripts.pages"


def test_the_first_command_brings_all_that_the_first_pages_use():
    (extras,) = re.findall(r"pip install '\.\[([^]]*)\]' && fastndcg demo", README)
    assert extras.split(",") == ["cli", "report"]


@pytest.mark.parametrize(
    ("text", "source", "there"),
    [
        ("[a](docs/kernels.md#lanes)", "README.md", "[a](kernels.md#lanes)"),
        ("[a](../README.md)", "docs/kernels.md", "[a](index.md)"),
        ("[a](files.md#csv)", "docs/kernels.md", "[a](files.md#csv)"),
        ("[a](../bench/README.md#bias)", "docs/kernels.md", "[a](benchmarks.md#bias)"),
        ("[a](LICENSE), [b](https://example.org)", "README.md", "a, [b](https://example.org)"),
    ],
)
def test_links_are_those_of_the_site(text, source, there):
    assert pages.linked(text, source) == there


def test_a_link_to_nothing_is_refused():
    with pytest.raises(FileNotFoundError, match=r"README\.md links to docs/none\.md"):
        pages.linked("[a](docs/none.md)", "README.md")


@pytest.mark.parametrize(
    "line",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        "<style>a { background: url(https://example.org/a.png) }</style>",
    ],
)
def test_a_site_that_loads_from_the_network_is_refused(line, tmp_path):
    (tmp_path / "a.html").write_text('<a href="https://example.org">a link</a><script src="a.js"></script>')
    pages.check_offline(tmp_path)
    (tmp_path / "b.html").write_text(line)
    with pytest.raises(ValueError, match=r"b\.html loads something from the network"):
        pages.check_offline(tmp_path)


def test_values_of_parameters_are_those_that_are_read():
    for definition in DEFINITIONS.values():
        for parameter in definition.parameters:
            for value, _ in parameter.values:
                if not value.startswith("a "):
                    assert parameter.read(ast.literal_eval(value)) is not None


@pytest.mark.parametrize(
    ("name", "lines", "columns"),
    [("README.md", 120, 170), ("CONTRIBUTING.md", 120, 140), ("CHANGELOG.md", 100, 170)],
)
def test_first_pages_are_short(name, lines, columns):
    text = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert len(text) <= lines
    assert max(map(len, text)) <= columns


# ---- what pages say of the repository ----

OURS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "bench" / "README.md"]
FILES = {
    path.relative_to(ROOT).as_posix()
    for top in ("fastndcg", "tests", "docs", "scripts", "bench", ".ci", ".github")
    for path in (ROOT / top).rglob("*")
    if "__pycache__" not in path.parts
} | {path.name for path in ROOT.iterdir()}
OF_OTHERS = {
    "numba.py",
    "service.py",
    "tests/FOLDER",
    "fastndcg/sources/NAME.py",
}  # files of users, and words that stand for others


FOLDERS = {part for path in FILES for part in path.split("/")[:-1]}


def paths_named(text):
    """Paths that begin with a folder of the repository, and names of Python files."""
    for path in re.findall(r"(?<![\w/.{-])(?:[\w.-]+/)+[\w.-]*\w", text):
        if path.partition("/")[0] in FOLDERS:
            yield path
    yield from re.findall(r"`([\w-]+\.py)`", text)


@pytest.mark.parametrize("files", [*OURS, "fastndcg/**/*.py", "pyproject.toml"], ids=lambda of: str(of)[-20:])
def test_files_that_are_named_are_there(files):
    found = [files] if isinstance(files, Path) else [*ROOT.glob(files)]
    endings = {"/".join(path.split("/")[-n:]) for path in FILES for n in range(1, path.count("/") + 2)}
    named = {path for file in found for path in paths_named(file.read_text(encoding="utf-8"))}
    missing = {path for path in named if not {path, f"{path}.py"} & endings and fn.__version__ not in path}
    assert not missing - OF_OTHERS


def test_paths_are_found():
    text = "`fastndcg/api/gone.py`, kernels/gone.py, sklearn/metrics/_ranking.py, `gone.py`, ns/doc"
    assert [*paths_named(text)] == ["fastndcg/api/gone.py", "kernels/gone.py", "gone.py"]


@pytest.mark.parametrize("page", OURS, ids=lambda page: page.stem)
def test_names_of_files_that_pages_explain_are_in_them(page):
    """`name` of `file.py`, and the names in a row of a table that begins with `file.py`."""
    text = page.read_text(encoding="utf-8")
    named = [(name, path) for name, path in re.findall(r"`(\w+)`\s+(?:of|in)\s+`([\w/.-]+\.py)`", text)]
    for path, row in re.findall(r"^\| `([\w/.-]+\.py)` \|(.*)\|$", text, flags=re.MULTILINE):
        named += [(name, path) for name in re.findall(r"`(\w+)`", row) if page.stem == "CONTRIBUTING"]
    for name, path in named:
        if path in OF_OTHERS:
            continue
        (file,) = {each for each in FILES if f"/{each}".endswith(f"/{path}")}
        assert re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8")), f"{path} has no {name}"


def test_pages_stand_in_four_groups():
    """Those of the site, and the list of the first page."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    site = {caption: pages.split() for caption, pages in re.findall(r":caption: (.*)\n\n([^`]*)```", index)}
    listed = {
        group: [
            pages.ELSEWHERE.get(path, path.removeprefix("docs/")).removesuffix(".md")
            for path in re.findall(r"\]\(([^)]*\.md)\)", text)
        ]
        for group, text in re.findall(r"^- \*\*(.*)\*\*:(.*(?:\n  .*)*)", README, flags=re.MULTILINE)
    }
    assert list(site) == ["Learn", "Do", "Look up", "Understand"]
    assert listed == site
    every = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(name for names in site.values() for name in names) == sorted(every)


def test_the_version_stands_once():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## ([\d.]+)", changes, flags=re.MULTILINE)[0] == fn.__version__
    for name in ("pyproject.toml", "docs/conf.py", "README.md", "SECURITY.md", "CONTRIBUTING.md"):
        assert fn.__version__ not in (ROOT / name).read_text(encoding="utf-8"), name


def test_public_integration_runs_what_is_promised():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    promised = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', settings)
    (tested,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"[\d.]+", tested) == promised
    (lowest,) = re.findall(r"- run: (pip install 'numpy.*)", workflow)
    assert lowest in (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    for library, bound in re.findall(r'^    "(numba|numpy|pyarrow)>=([\d.]+)"', settings, flags=re.MULTILINE):
        assert f"{library}=={bound}." in lowest


def test_extras_that_are_named_exist():
    """In messages, pages, workflows and tests; each extra is named in one of them."""
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    folders = ("fastndcg", "docs", "bench", "scripts", "tests", ".github", ".ci")
    files = [path for name in folders for path in (ROOT / name).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.suffix in (".md", ".toml", ".yml")]
    named = set()
    for path in files:
        if path.suffix in (".py", ".md", ".yml", ".toml", "") and path.name != "CHANGELOG.md":
            text = path.read_text(encoding="utf-8")
            groups = re.findall(r"""(?:'\.|fastndcg|PACKAGE|whl\)")\[([a-z_,]+)\]""", text)
            groups += re.findall(r"""(?:the extra `|needs the extra |\bextra=")([a-z_]+)""", text)
            groups += re.findall(r"""\blibrary\((?:[^,()]+, ){2}"([a-z_]+)\"""", text)
            for name in ",".join(groups).split(",") if groups else ():
                assert name in extras, f"{path.relative_to(ROOT)} names the extra {name!r}"
                named.add(name)
    assert named == extras


def test_the_picture_is_what_its_script_draws(tmp_path, monkeypatch):
    for library in ("altair", "vl_convert"):
        pytest.importorskip(library)
    monkeypatch.setattr(sys, "argv", ["picture.py", "--out", str(tmp_path / "new.svg")])
    runpy.run_path(str(ROOT / "scripts" / "picture.py"), run_name="__main__")
    new, old = (
        re.findall(r'aria-label="([^"]*)"|>([^<]+)</text>', path.read_text(encoding="utf-8"))
        for path in (tmp_path / "new.svg", ROOT / "docs" / "_static" / "comparison.svg")
    )
    assert new == old, "run python scripts/picture.py"
    assert len(old) > 20


def test_removed_names_say_which_recipe_replaces_them():
    headings = re.findall(
        r"^#+ (.*)$", (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert {*removed.RECIPES.values()} <= {*headings}
    for name, recipe in removed.RECIPES.items():
        with pytest.raises(
            AttributeError,
            match=f"no attribute '{name}'. It was removed; use the recipe \"{recipe}\" in docs",
        ):
            getattr(fn, name)
    done = commands.in_process_of_its_own("judge-next", "a.run", "b.run")
    assert done.returncode == 2
    assert done.stderr == (
        "No such command 'judge-next'. It was removed; use the recipe \"What to judge next\" in docs/recipes.md. "
        "(see `fastndcg -h`)\n"
    )


@pytest.mark.slow
def test_the_service(monkeypatch):
    engines.need("fastapi")
    if not (importlib.util.find_spec("httpx") or importlib.util.find_spec("httpx2")):
        pytest.skip("the test client of FastAPI needs httpx")
    from fastapi.testclient import TestClient

    module = types.ModuleType("service")
    monkeypatch.setitem(sys.modules, "service", module)  # where annotations are looked up
    exec(engines.page_example("A service", "recipes"), module.__dict__)  # noqa: S102 - the page's own lines
    client = TestClient(module.app)
    lists = {"relevance": [[2, 0, 1], [0, 1]], "scores": [[0.9, 0.8, 0.1], [0.3, 0.7]]}
    rankings = fn.Rankings.from_lists(*lists.values())
    assert client.post("/evaluate", json=lists).json() == fn.evaluate(rankings, "nDCG@10").mean()
    wrong = client.post("/evaluate", json=lists | {"measures": ["nDCK"]})
    assert wrong.status_code == 422 and "nDCG" in wrong.json()["detail"]
    assert client.post("/evaluate", json={}).status_code == 422
