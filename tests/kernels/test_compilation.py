"""Kernels compiled ahead: found by other processes, in a folder that was copied and cannot be written, without a home."""

import os
import shutil

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import program

import fastndcg as fn
from fastndcg.errors import InputError, MeasureError

# one worker compiles for all of them
pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("compilation")]

COMPILES = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

USE = """
import numpy as np
import fastndcg as fn
from fastndcg.common import progress
told = []
progress.tell = told.append
scores = np.arange(200_000, dtype=np.float32)[::-1].copy()
for grades in (np.arange(200_000) % 3, np.arange(200_000) % 3 + 0.5):
    fn.evaluate(fn.Rankings.from_groups([100] * 2000, grades, scores), "nDCG@10")
"""

# files with ids of all kinds, in both orders, whole and as streams that set rows aside
READ = """
import os
import tempfile
import pyarrow as pa
import pyarrow.parquet as pq
numbers = np.arange(200_000) // 100
ids = {"near": pa.array(numbers), "far": pa.array(numbers << 40)}
ids["texts"] = pa.array([f"query {number}" for number in numbers])
order = pa.array(np.random.default_rng(0).permutation(200_000))
with tempfile.TemporaryDirectory() as folder:
    for each in ids.values():
        table = pa.table({"qid": each, "label": (np.arange(200_000) % 3).astype(np.int8), "score": scores})
        for rows in (table, table.take(order)):
            for plain in (True, False):
                path = os.path.join(folder, "a.parquet")
                pq.write_table(rows, path, use_dictionary=not plain)
                for data in (path, fn.scan_parquet(path), fn.scan_parquet(path, memory="2 MB")):
                    fn.evaluate(data, "nDCG@10")
"""


BITS = """
import hashlib
import numpy as np
import fastndcg as fn
random = np.random.default_rng(3)
lengths = np.append(random.integers(0, 300, 400), [700, 20000])
grades = random.integers(0, 4, lengths.sum()).astype(np.uint8)
scores = random.integers(0, 400, lengths.sum()).astype(np.float32)
scores[: len(scores) // 2] += random.random(len(scores) // 2, np.float32)
rankings = fn.Rankings.from_groups(lengths, grades, scores)
found = fn.evaluate(rankings, ["nDCG@10", "nDCG", "nDCG(gain='exp2', ties='worst')@40"], threads=1).values
print(hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Kernels for a processor without vectors of more than 16 bytes."""
    folder = tmp_path_factory.mktemp("made")
    return fn.compile_kernels("nDCG@10", scores="float32", folder=folder, cpu="generic")


def run(code, **environment):
    return program(code, flags=["-W", "error"], FASTNDCG_KERNELS="compiled", **environment)


@COMPILES
def test_processors_give_the_same_bits(made):
    here, there = run(BITS), run(BITS, **made.environment)
    assert here.stdout == there.stdout != "", there.stderr


@COMPILES
def test_a_folder_is_shipped(made, tmp_path):
    assert made.n_kernels > 3 and made.n_bytes > 100_000 and made.seconds > 0
    assert made.environment["NUMBA_CPU_NAME"] == "generic"
    folder = made.environment["NUMBA_CACHE_DIR"]
    assert f"NUMBA_CACHE_DIR={folder}" in str(made)
    shipped = tmp_path / "shipped"
    shutil.copytree(folder, shipped)
    for path in [shipped, *shipped.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted(shipped.rglob("*"))
    code = f"{USE}{READ}print(told)"
    finished = run(code, **made.environment | {"NUMBA_CACHE_DIR": str(shipped), "HOME": "/nonexistent"})
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == "[]"
    assert sorted(shipped.rglob("*")) == before
    for path in [shipped, *shipped.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.pure
def test_what_is_not_known_is_refused():
    with pytest.raises(InputError, match="scores='float16' is not known; wanted float32, float64, int64"):
        fn.compile_kernels(scores="float16")
    with pytest.raises(MeasureError):
        fn.compile_kernels("nCDG@10")


@COMPILES
def test_only_what_a_job_needs(tmp_path):
    """Of readers and scoring by one thread, for files as they are."""
    ids = np.arange(3000) // 10
    columns = {"topic": ids, "points": (ids % 4).astype(np.int8), "model": ids.astype(np.float32)}
    pq.write_table(pa.table(columns), tmp_path / "job.parquet")
    roles = {"query": "topic", "relevance": "points", "score": "model"}
    made = fn.compile_kernels("nDCG@10", folder=tmp_path / "made", data=tmp_path / "job.parquet", **roles)
    names = {path.name.partition("-")[0] for path in made.folder.glob("*.nbi")}
    assert "drivers.score_levels_serial" in names
    assert not names & {"drivers.score_parallel", "drivers.score_values_serial", "joining.join_documents"}


@pytest.mark.pure
def test_columns_without_data_are_refused():
    with pytest.raises(InputError, match="query names a column of data=, which is not given"):
        fn.compile_kernels("nDCG@10", query="qid")


def test_a_processor_that_is_not_known(tmp_path):
    with pytest.raises(fn.InputError, match="cpu='nonsense' is no processor that LLVM knows"):
        fn.compile_kernels("nDCG@10", scores="float32", folder=tmp_path, cpu="nonsense")


@COMPILES
def test_modules_of_the_current_folder_are_not_run(monkeypatch, tmp_path):
    """Neither where Python looks there by itself, nor by an empty or relative entry of PYTHONPATH."""
    (tmp_path / "below").mkdir()
    for folder in (tmp_path, tmp_path / "below"):
        for name in ("numba", "tempfile", "fastndcg"):
            (folder / f"{name}.py").write_text("raise SystemExit('run from the current folder')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "below", ".", str(tmp_path / "missing"), ""]))
    assert fn.compile_kernels(scores=[], folder=tmp_path / "made").n_kernels  # only those of readers
