"""Kernels compiled ahead: found by other processes, in a folder that was copied and cannot be written."""

import os
import shutil

import numba
import pytest
from commands import printed

import fastndcg as fn

# one worker compiles for all of them
pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("compilation")]

COMPILES = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

# of every kind of work: scores, ids in any order, streams, joins, draws, exact sums, ranx's order
USE = """
import hashlib
import os
import tempfile
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import fastndcg as fn
from fastndcg.common import progress
told, found = [], hashlib.sha256()
progress.tell = told.append
rows, random = np.arange(20_000), np.random.default_rng(3)
scores = random.integers(0, 400, len(rows)).astype(np.float32) / 7
for grades in (rows % 3, rows % 3 + 0.5):
    rankings = fn.Rankings.from_groups([100] * 200, grades, scores)
    a, b = fn.evaluate(rankings, "nDCG@10", threads=2), fn.evaluate(rankings.with_scores(scores[::-1]), "nDCG@10", threads=1)
    found.update(a.values.tobytes() + b.values.tobytes())
fn.compare({"a": a, "b": b}, test="randomisation", resamples=1000)
a.summary(confidence=0.95, method="percentile", resamples=1000)
a.signature("nDCG@10")
fn.evaluate(fn.Rankings.from_dense(np.tile([1, 0], (70_000, 1)), np.tile([0.5, 1], (70_000, 1))), "nDCG@10").mean()
fn.evaluate(rankings, "nDCG@10", convention="ranx")
numbers, order = rows // 100, pa.array(random.permutation(len(rows)))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.parquet")
    for ids in (pa.array(numbers), pa.array(numbers << 40), pa.array(numbers).cast(pa.string())):
        for kind in (np.int8, np.int32, np.int64):
            table = pa.table({"qid": ids, "label": (rows % 3).astype(kind), "score": scores})
            pq.write_table(table.take(order), path, use_dictionary=kind is np.int8)
            for data in (path, fn.scan_parquet(path, memory="1 MB")):
                found.update(fn.evaluate(data, "nDCG@10").values.tobytes())
text = pa.array(numbers).cast(pa.string())
pair = pa.table({"query_id": text, "doc_id": pa.array(rows).cast(pa.string()), "relevance": rows % 3})
run = pair.take(order).select(["query_id", "doc_id"]).append_column("score", pa.array(scores))
found.update(fn.evaluate(fn.Rankings.from_qrels_run(pair, run), "nDCG@10").values.tobytes())
print(told, found.hexdigest())
"""


@COMPILES
def test_a_folder_is_shipped_and_has_all_kernels(tmp_path):
    """For a processor without vectors of more than 16 bytes, which gives the same bits as plain kernels."""
    made = fn.compile_kernels("nDCG@10", scores="float32", folder=tmp_path / "made", cpu="generic")
    assert made.n_kernels > 3 and made.n_bytes > 100_000 and made.seconds > 0
    assert made.environment["NUMBA_CPU_NAME"] == "generic"
    folder = made.environment["NUMBA_CACHE_DIR"]
    assert f"NUMBA_CACHE_DIR={folder}" in str(made)
    shipped = shutil.copytree(folder, tmp_path / "shipped")
    for path in [shipped, *shipped.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted(shipped.rglob("*"))
    found = made.environment | {"NUMBA_CACHE_DIR": str(shipped), "HOME": "/nonexistent"}
    told, digest = printed(USE, FASTNDCG_KERNELS="compiled", flags=["-W", "error"], **found).split()
    assert told == "[]"
    assert sorted(shipped.rglob("*")) == before
    assert printed(USE, FASTNDCG_KERNELS="plain").split() == ["[]", digest]
    for path in [shipped, *shipped.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": "float16"}, "scores='float16' is not known; expected float32, float64 or int64"),
        ({"measures": "nCDG@10"}, "nCDG"),
        ({"scores": "float32", "cpu": "nonsense"}, "cpu='nonsense' is not a processor that LLVM knows"),
    ],
)
def test_what_is_not_known_is_refused(tmp_path, arguments, message):
    with pytest.raises((fn.InputError, fn.MeasureError), match=message):
        fn.compile_kernels(folder=tmp_path, **arguments)


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
