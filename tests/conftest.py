"""Settings of the test run: markers, hypothesis profiles, where the real data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fastndcg.kernels.compile import worlds

pytest.register_assert_rewrite("engines")

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


def _profile() -> str:
    if worlds.world() == "plain":
        return "fastndcg-pure"
    return os.environ.get("FASTNDCG_PROFILE", "fastndcg-ci" if os.environ.get("CI") else "fastndcg")


settings.load_profile(_profile())

# The world of a test (kernels/compile/worlds.py), by its marker: none means compiled kernels, whatever the size of a call; `auto` means the
# world that users have, where ten rows load no kernels, in child processes too; `pure` means compiled, and plain in a run of its own
# with NUMBA_DISABLE_JIT=1, whatever the module of the test says. What the variable says at the start of the run holds for all.
ASKED = os.environ.get("FASTNDCG_KERNELS")


# files of more than 15 s of processor time, the longest first: where each file is a worker's, none is left
# alone with one at the end
LONG = [
    "spark",
    "hosts",
    "bench",
    "compilation",
    "dask",
    "ray",
    "kernels",
    "guarded",
    "explain",
    "crossed",
    "judgments",
    "folds",
    "conventions_rivals",  # after bench, which compiles ranx
    "streams",
    "scan_csv",
    "typing",
    "cli",
    "docs",
    "cli_compare",
    "storm",
    "diversity",
    "evaluate",
    "formats",
    "conventions",
    "paths",
    "exits",
]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "pure: of numbers, which plain and compiled kernels both have to find")
    config.addinivalue_line(
        "markers", "auto: of what is around the numbers: kernels run as they do for users"
    )
    config.addinivalue_line("markers", "slow: takes more than about ten seconds")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker("auto")
    places = {f"test_{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    is_auto = item.get_closest_marker("auto") and not item.get_closest_marker("pure")
    os.environ["FASTNDCG_KERNELS"] = ASKED or ("auto" if is_auto else "compiled")
    worlds._here.clear()  # what other tests took makes no test compile
    worlds._told.clear()


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real data sets, which are not part of this repository."""
    if not DATA.is_dir():
        pytest.skip("the real data sets are not there: ../shared/data beside the repository")
    return DATA.resolve()
