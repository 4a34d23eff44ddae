"""Kernels compiled ahead: found by other processes, in a folder that was copied and cannot be written, without a home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import fastndcg as fn
from fastndcg.errors import InputError, MeasureError

USE = """
import numpy as np
import fastndcg as fn
from fastndcg import progress
told = []
progress.tell = told.append
scores = np.arange(200_000, dtype=np.float32)[::-1].copy()
for grades in (np.arange(200_000) % 3, np.arange(200_000) % 3 + 0.5):
    fn.evaluate(fn.Rankings.from_groups([100] * 2000, grades, scores), "nDCG@10")
print(told)
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_folder_is_shipped(tmp_path: Path) -> None:
    made = fn.compile_kernels("nDCG@10", scores="float32", folder=tmp_path / "made", cpu="generic")
    assert made.n_kernels > 3 and made.n_bytes > 100_000 and made.seconds > 0
    assert made.environment["NUMBA_CPU_NAME"] == "generic"
    assert f"NUMBA_CACHE_DIR={tmp_path / 'made'}" in str(made)
    shipped = tmp_path / "shipped"
    shutil.copytree(tmp_path / "made", shipped)
    for path in [shipped, *shipped.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted(shipped.rglob("*"))
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", USE], capture_output=True, text=True, check=False,
        env=os.environ | made.environment | {
            "NUMBA_CACHE_DIR": str(shipped), "HOME": "/nonexistent", "FASTNDCG_KERNELS": "compiled",
            "PYTHONPATH": str(Path(fn.__file__).parent.parent),
        },
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == "[]"
    assert sorted(shipped.rglob("*")) == before
    for path in [shipped, *shipped.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.pure
def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="scores='float16' is not known; wanted float32, float64, int64"):
        fn.compile_kernels(scores="float16")
    with pytest.raises(MeasureError):
        fn.compile_kernels("nCDG@10")


def test_a_processor_that_is_not_known(tmp_path: Path) -> None:
    with pytest.raises(fn.InputError, match="cpu='nonsense' is no processor that LLVM knows"):
        fn.compile_kernels("nDCG@10", scores="float32", folder=tmp_path, cpu="nonsense")
