"""pytest-benchmark: other tools beside this package, each asked for what it can. Use `--benchmark-group-by=param:rival`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from bench import rivals

SCALE = 0.1
RIVALS = [way for name in rivals.NAMES for way in rivals.ways(name)]


@pytest.mark.parametrize("whose", ["theirs", "ours"])
@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: f"{rival.name}, {rival.measure}")
def test_rival(benchmark: Any, rival: rivals.Rival, whose: str) -> None:
    """The answers are compared before either is timed."""
    if not rival.installed:
        pytest.skip(rival.absent)
    rivals.keep_to_one_thread()
    if rival.module == "ranx" and os.environ.get("NUMBA_NUM_THREADS") != "1":
        pytest.skip(
            "ranx takes all of Numba's threads: NUMBA_NUM_THREADS=1 python -m pytest bench/test_rivals.py"
        )
    rankings, calls = rivals.question(rival, SCALE)
    benchmark.extra_info["documents"] = rankings.n_docs
    benchmark(calls[whose])
