"""pytest-benchmark: fresh processes, including the start of Python."""

from __future__ import annotations

from typing import Any

import pytest

from bench.cold import SCORE
from bench.process import python

STATEMENTS = {
    "nothing": "",
    "import numpy, pyarrow": "import numpy, pyarrow",
    "import fastndcg": "import fastndcg",
    "import numba": "import numba",
    "first score": SCORE,
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_process(benchmark: Any, name: str) -> None:
    benchmark.pedantic(
        python,
        args=("-c", STATEMENTS[name]),
        kwargs={"environment": {"FASTNDCG_KERNELS": "auto"}},
        rounds=5,
        warmup_rounds=1,
    )
