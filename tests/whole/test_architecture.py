"""What the package promises about itself: imports do nothing, arrows point one way, compiled code lives in one folder."""

import ast
import functools
import inspect
import json
import re
from pathlib import Path

import pytest
from commands import printed

import fastndcg
from fastndcg.measures import DEFINITIONS, aliases, named

PACKAGE = Path(fastndcg.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


@functools.cache
def tree_of(path):
    """Parsed once it is asked for, since every worker imports this file."""
    return ast.parse(path.read_text(encoding="utf-8"))


# what a module may import of the package; the last ones are outside, looking in
OUTSIDE = ("fastndcg.cli", "fastndcg.adapters", "fastndcg.__main__")
EXTRAS = (
    "pandas", "polars", "sklearn", "scipy", "typer", "click", "rich", "tqdm", "pyspark", "dask", "distributed", "ray",
    "altair", "vl_convert", "lightgbm", "xgboost", "catboost", "ir_measures", "duckdb",
)  # fmt: skip
COMPILER = ("numba", "llvmlite")
SLOW = ("asyncio", "difflib", "email", "hashlib", "logging", "random", "ssl", "tempfile", "unittest")


def name_of(path):
    parts = ("fastndcg", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def imported(path):
    """Packages that are imported when the file itself is."""
    found = set()

    def visit(node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                found.update(alias.name.split(".")[0] for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                found.add((child.module or "").split(".")[0])
            visit(child)

    visit(tree_of(path))
    return found


# ---- importing ----


ALL = "import fastndcg; [getattr(fastndcg, name) for name in (*fastndcg.__all__, 'plot')]"
LITTLE = (  # what the first call of a process needs no more than an import: what sources, results and conventions use
    "pyarrow", "fractions", "importlib.metadata", "numpy.ma", "pathlib", "shutil", *COMPILER, *SLOW,
    *(f"fastndcg.{part}" for part in ("scores", "convention", "statistics", "tables.arrow", "files")),
)  # fmt: skip
CODE = {  # what is imported before, the code, and what it may not import
    "the package": ("", "import fastndcg", ("numpy", "pyarrow", *EXTRAS, *COMPILER, *SLOW)),
    "scoring of arrays": ("", "import fastndcg as fn; fn.ndcg([[3, 0, 2]], [[0.9, 0.8, 0.7]])", LITTLE),
    "public names": ("", ALL, (*EXTRAS, *COMPILER)),
    # parts of the standard library that take milliseconds, and that neither NumPy nor pyarrow import
    "public names beside NumPy and pyarrow": ("numpy, pyarrow, ", ALL, SLOW),
}  # fmt: skip


@pytest.mark.parametrize("name", CODE)
def test_what_is_not_imported(name):
    before, code, unwanted = CODE[name]
    code = f"import {before}sys, json; before = set(sys.modules); {code}; print(json.dumps(sorted(set(sys.modules) - before)))"
    loaded = set(json.loads(printed(code, FASTNDCG_KERNELS="auto")))
    assert not loaded & {*unwanted} and not {each for each in loaded if each.startswith(OUTSIDE)}
    own = {each for each in loaded if each.startswith("fastndcg.")}
    assert own == {"fastndcg._version"} or name != "the package"


def test_public_names_are_those_that_type_checkers_see():
    """Each is imported from its module on its first use, and stays what it is whatever is imported after it."""
    for_checkers = next(node for node in tree_of(PACKAGE / "__init__.py").body if isinstance(node, ast.If))
    seen = {
        (f"{node.module}.{alias.name}", alias.asname)
        for node in for_checkers.body
        if node.module.startswith("fastndcg.")
        for alias in node.names
    }
    assert ("fastndcg.measures.named.*", None) in seen  # type checkers see a name of `named` as its users do
    seen.remove(("fastndcg.measures.named.*", None))
    assert seen == {(f"fastndcg.{module}.{name}", name) for name, module in fastndcg._HOME_OF.items()}
    measures = {name for name in vars(named) if name[0] != "_"}
    assert {*fastndcg.__all__} == {*fastndcg._HOME_OF, *measures}
    assert {getattr(fastndcg, name).name for name in measures} == {*DEFINITIONS}
    for name in seen:
        assert name[1] not in {path.stem for path in PACKAGE.iterdir()}, f"{name[1]} is a module too"
    with pytest.raises(AttributeError, match="module 'fastndcg' has no attribute 'evalute'$"):
        fastndcg.evalute  # noqa: B018


def test_import_compiles_nothing_and_sets_nothing():
    """The modules of kernels compile nothing either, and leave Numba's and the process's settings alone."""
    code = """
import importlib, json, logging, os, pkgutil, signal, sys, threading, warnings
import numpy, pyarrow
before = (len(warnings.filters), len(logging.getLogger().handlers), signal.getsignal(signal.SIGINT), dict(os.environ), threading.active_count())
import fastndcg
after = (len(warnings.filters), len(logging.getLogger().handlers), signal.getsignal(signal.SIGINT), dict(os.environ), threading.active_count())
import numba, numba.core.event as event
layer, threads = numba.config.THREADING_LAYER, numba.get_num_threads()
class Compiled(event.Listener):
    count = 0
    def on_start(self, event): Compiled.count += 1
    def on_end(self, event): pass
event.register('numba:compile', Compiled())
import fastndcg.kernels as kernels
compiled = []
for found in pkgutil.walk_packages(kernels.__path__, "fastndcg.kernels."):
    module = importlib.import_module(found.name)
    compiled += [name for name, value in vars(module).items() if getattr(value, 'signatures', None)]
print(json.dumps([before == after, Compiled.count, compiled, layer == numba.config.THREADING_LAYER, threads == numba.get_num_threads()]))
"""
    same, count, compiled, layer, threads = json.loads(printed(code))
    assert same and layer and threads
    assert count == 0 and compiled == []


def mapped(name):
    """The names in the map of a package's docstring: what stands before two spaces, or alone on its line."""
    text = ast.get_docstring(tree_of(MODULES[name])) or ""
    starts = re.findall(r"^(?: {4})?([a-z]\w*(?:, [a-z]\w*)*)(?= {2,}\S|$)", text, flags=re.MULTILINE)
    return [each for names in starts for each in names.split(", ")]


@pytest.mark.parametrize(
    "package",
    [name for name, path in MODULES.items() if path.name == "__init__.py" and name != "fastndcg.compiled"],
)
def test_the_map_of_a_package_is_its_modules(package):
    depth = package.count(".") + 1
    inside = {name.split(".")[depth] for name in MODULES if name.startswith(f"{package}.")}
    names = mapped(package)
    assert len(names) == len(set(names))
    assert set(names) == {name for name in inside if not name.startswith("_")}


# ---- layers, which import-linter checks: see pyproject.toml ----


KERNELS = [name for name in MODULES if name.split(".")[1:2] == ["kernels"]]


def test_extras_are_imported_only_where_they_are_used():
    for name in (name for name in MODULES if not name.startswith(OUTSIDE)):
        assert not imported(MODULES[name]) & set(EXTRAS), name


def run_alone(cases, libraries=("numpy", "pyarrow")):
    """Run each text of code in a process of its own, which has imported these libraries, and nothing of the package."""
    code = """
import json, os, sys, traceback
for name in sys.argv[1:]:
    __import__(name)
failed = 0
for case in json.load(sys.stdin):
    if not os.fork():
        try:
            exec(case, {})
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    failed += os.wait()[1] != 0
sys.exit(failed > 0)
"""
    printed(code, *libraries, stdin=json.dumps(cases))


@pytest.mark.slow
def test_each_module_and_public_name_is_imported_alone_in_a_fresh_process():
    modules = [f"import {name}" for name in MODULES if not name.startswith(OUTSIDE)]
    run_alone(modules, ("numpy", "pyarrow", "numba"))
    run_alone([f"import fastndcg; fastndcg.{name}" for name in fastndcg.__all__])


@pytest.mark.slow
def test_each_measure_and_notation_works_alone_in_a_fresh_process():
    """So do the names that people type, and each convention as `like=`, whatever is imported first."""
    cases = []
    for name in (*aliases.ALIASES, *(each for each in fastndcg.__all__ if is_measure(each))):
        of = fastndcg.parse(name).definition
        spelt = f"{name}@3" if of.cut == "rank" else name
        cases.append(f"import fastndcg as fn; m = fn.parse({spelt!r}); assert fn.parse(str(m)) == m")
        for get in ("import fastndcg as fn; m = fn.{}", "from fastndcg.measures import {0} as m"):
            if is_measure(name):
                asked = f"{get.format(name)}; m = m{'@ 3' if of.cut == 'rank' else ''}"
                lacks = fastndcg.conventions["lightgbm"].find(of.name) is None
                cases.append(f"{asked}\nimport fastndcg as fn\n{REFUSED}" if lacks else asked)
    for place, (name, convention) in enumerate(fastndcg.conventions.items()):
        forms = "", "", ""  # each in a process, where another of the measures is the first
        turn = place % len(convention.measures)
        for measure in (*convention.measures[turn:], *convention.measures[:turn]):
            at = "3" if measure.definition.cut == "rank" and convention.find(measure.name, cut=True) else ""
            cut, written = f" @ {at}" if at else "", f"{measure.name}(like={name!r}){at and '@' + at}"
            theirs = f"fn.conventions[{name!r}].on(fn.{measure.name}{cut}).measure({at})"
            lines = (
                f"import fastndcg as fn; assert fn.{measure.name}(like={name!r}){cut} == {theirs}",
                f"import fastndcg as fn; assert fn.parse({written!r}) == {theirs}",
                f"from fastndcg.measures import {measure.name} as m; import fastndcg as fn; assert m(like={name!r}){cut} == {theirs}",
            )
            forms = [f"{form}{line}\n" for form, line in zip(forms, lines, strict=True)]
        cases += forms
    run_alone(cases)


REFUSED = """
try:
    raise SystemExit(f"{m(like='lightgbm')} is taken")
except fn.MeasureError as error:
    assert f"lightgbm has no {m.name}; it has" in str(error) or "Give" in str(error), error
"""


def is_measure(name):
    return isinstance(getattr(fastndcg, name, None), fastndcg.Measure)


# ---- code ----


def test_compiled_functions_live_in_kernels():
    """What is cached is keyed on the files of that folder: a helper elsewhere would be served stale after an upgrade."""
    for name, path in MODULES.items():
        if name not in KERNELS or name == "fastndcg.kernels.schema":
            assert not imported(path) & set(COMPILER), name
            functions = (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef))
            marks = [ast.unparse(mark) for node in functions for mark in node.decorator_list]
            assert not [mark for mark in marks if "jit" in mark or "vectorize" in mark], name


def test_private_parts_of_numba_are_touched_in_one_module():
    """Public are numba, its types and what is for extensions, and of llvmlite what it writes code with and what knows the processor."""
    public = {"numba", "numba.extending", "llvmlite"}
    for name, path in MODULES.items():
        if name == "fastndcg.kernels.compile.private_numba":
            continue
        for node in ast.walk(tree_of(path)):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
                if node.module == "llvmlite":
                    assert {alias.name for alias in node.names} <= {"ir", "binding"}, path.name
            assert {module for module in modules if module.split(".")[0] in COMPILER} <= public, path.name


def test_no_fastmath():
    """But for the lesser of two scores, of which none is NaN: vector blocks set flags of single instructions."""
    assert "fastmath" not in {
        keyword.arg
        for name in {*KERNELS} - {"fastndcg.kernels.compile.llvm"}
        for node in ast.walk(tree_of(MODULES[name]))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    }


def test_public_names_are_listed():
    public = {
        name for name in dir(fastndcg) if name[0] != "_" and not inspect.ismodule(getattr(fastndcg, name))
    }
    assert sorted(public) == sorted(fastndcg.__all__) and len(public) <= 80


def test_the_oracle_imports_nothing_of_the_package():
    oracle = imported(Path(__file__).parent.parent / "oracle.py")
    assert not oracle & {"fastndcg", "numpy", "numba", "scipy"}
