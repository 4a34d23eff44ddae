"""Settings of the test run: markers, hypothesis profiles, where the real data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("engines")

# type checkers read the first, and nothing runs it; to import the second hides the private parts of Numba from all tests
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
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "fastndcg-pure"
    return os.environ.get("FASTNDCG_PROFILE", "fastndcg-ci" if os.environ.get("CI") else "fastndcg")


settings.load_profile(_profile())

# most tests are of what is compiled, whatever its size; tests of `auto` say so
os.environ.setdefault("FASTNDCG_KERNELS", "compiled")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "pure: small enough to run without compiling too (NUMBA_DISABLE_JIT=1)"
    )
    config.addinivalue_line("markers", "slow: takes more than about ten seconds")


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real data sets, which are not part of this repository."""
    if not DATA.is_dir():
        pytest.skip("the real data sets are not there: ../shared/data beside the repository")
    return DATA.resolve()
