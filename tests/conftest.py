"""Settings of the test run: markers, hypothesis profiles, where the real data lies."""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fastndcg.kernels.compile import dispatch

pytest.register_assert_rewrite("engines", "engine_laws")

# type checkers read the first, and nothing runs it; to import the second hides the private parts of Numba
# from all tests
collect_ignore = ["typed", "public_numba.py"]

DATA = Path(__file__).resolve().parent.parent / ".." / "shared" / "data"

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("fastndcg", max_examples=60, **_COMMON)
settings.register_profile(
    "fastndcg-ci", max_examples=60, derandomize=True, print_blob=True, database=None, **_COMMON
)
settings.register_profile("fastndcg-long", max_examples=2000, **_COMMON)
# without a compiler each example costs 10 to 100 times as much
settings.register_profile("fastndcg-pure", max_examples=15, derandomize=True, database=None, **_COMMON)


def _profile():
    if dispatch.mode() == "plain":
        return "fastndcg-pure"
    return os.environ.get("FASTNDCG_PROFILE", "fastndcg-ci" if os.environ.get("CI") else "fastndcg")


settings.load_profile(_profile())

# What the variable says at the start of the run holds for all tests; else their markers say it (pyproject.toml).
ASKED = os.environ.get("FASTNDCG_KERNELS")


# what `pytest` alone leaves out, and `scripts/check --rest` runs
LEFT_OUT = ("host", "rivals", "slow")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Without a path `pytest` leaves out what needs more than the extra `test`, and runs on all processors."""
    if config.args_source is config.ArgsSource.TESTPATHS:
        option = config.option
        # in each worker of pytest-xdist, too, which parses the command line and is given no options
        option.markexpr = option.markexpr or " and ".join(f"not {marker}" for marker in LEFT_OUT)
        is_worker = hasattr(config, "workerinput")
        if getattr(option, "numprocesses", 0) is None and not (
            is_worker or option.usepdb or option.collectonly
        ):
            option.numprocesses = min(4, os.cpu_count())


def pytest_ignore_collect(collection_path, config):
    """With `-m pure` or `-m host` only files that have such tests are imported."""
    asked = config.option.markexpr
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    if asked in ("pure", "host") and is_test:
        return not _has_tests_of(asked, collection_path) or None
    return None


@cache
def _has_tests_of(marker, path):
    return f"mark.{marker}" in path.read_text(encoding="utf-8")


@cache
def _scope_of(path):
    """A file of hosts is its own, files of a group are the group's; else None."""
    group = re.search(r'mark\.xdist_group\("(\w+)"\)', path.read_text(encoding="utf-8"))
    return group[1] if group else (str(path) if _has_tests_of("host", path) else None)


def pytest_collection_modifyitems(config, items):
    """With `-m pure` a test of a `pure` file that is `compiled` itself does not run without a compiler."""
    if "pure" in config.option.markexpr and dispatch.mode() == "plain":
        nearest = (
            [mark.name for mark in item.iter_markers() if mark.name in ("compiled", "pure")][:1]
            for item in items
        )
        items[:] = [item for item, names in zip(items, nearest, strict=True) if names != ["compiled"]]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """What is costly to start is started by one worker; other tests are balanced one by one.

    Groups of pytest-xdist 3.8 do not reach the names of tests in pytest 9.2: each worker started every engine.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByStart(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _scope_of(config.rootpath / nodeid.partition("::")[0]) or nodeid

    return ByStart(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    is_compiled = any(item.get_closest_marker(name) for name in ("compiled", "pure"))
    os.environ["FASTNDCG_KERNELS"] = ASKED or ("compiled" if is_compiled else "auto")
    dispatch.forget()  # what other tests took makes no test compile


@pytest.fixture(scope="session")
def data():
    """Folder of the real data sets, which are not part of this repository."""
    if not DATA.is_dir():
        pytest.skip("the real data sets are not there: ../shared/data beside the repository")
    return DATA.resolve()


@pytest.fixture
def write(tmp_path):
    """A function that writes a file of this name, and says its path."""

    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def undrawn(monkeypatch):
    """Pages with empty pictures, of tests that are not about pictures: to draw those of a page takes a second."""
    from fastndcg.analysis import html

    class Converter:
        def vegalite_to_svg(self, _spec, allowed_base_urls):
            assert allowed_base_urls == []
            return '<svg xmlns="http://www.w3.org/2000/svg"/>'

    monkeypatch.setattr(html, "library", lambda *_: Converter())
