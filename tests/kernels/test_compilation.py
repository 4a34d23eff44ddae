"""Kernels compiled ahead: found by other processes, in a folder that was copied and cannot be written."""

import shutil

import numba
import pytest
from commands import printed

import fastndcg as fn

# one worker compiles for all of them
pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("compilation")]

# each kernel for each type: scores, ids in any order, streams, joins, resamples, ranx's order
USE = """
import hashlib, os, tempfile
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import fastndcg as fn
from fastndcg.common import progress
told, found, rows = [], hashlib.sha256(), np.arange(20_000)
progress.tell = told.append
scores, order = (rows * 7919 % 401).astype(np.float32), rows * 7919 % len(rows)
def add(data, **options):
    results = fn.evaluate(data, "nDCG@10", **options)
    found.update(results.values.tobytes())
    return results
for grades in (rows % 3, rows % 3 + 0.5):
    rankings = fn.Rankings.from_groups([100] * 200, grades, scores)
    a, b = add(rankings, threads=2), add(rankings.with_scores(scores[::-1]), threads=1)
    add(rankings, convention="ranx")
found.update(str(fn.compare({"a": a, "b": b, "c": a}, test="randomisation", resamples=1000)).encode())
found.update(str(a.summary(confidence=0.95, method="percentile", resamples=1000)).encode())
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "a.parquet")
    for ids in (pa.array(rows // 100), pa.array(rows // 100 << 40), pa.array(rows // 100).cast(pa.string())):
        for kind in (np.int8, np.int16, np.int32, np.int64):
            table = pa.table({"qid": ids, "label": (rows % 3).astype(kind), "score": scores})
            pq.write_table(table.take(order), path, use_dictionary=kind is np.int8)
            add(path), add(fn.scan_parquet(path, memory="1 MB"))
pair = pa.table({"query_id": ids, "doc_id": rows.astype(str), "relevance": rows % 3, "score": scores})
add(fn.Rankings.from_qrels_run(pair.drop("score"), pair.take(order).drop("relevance")))
print(told, found.hexdigest())
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
@pytest.mark.slow
def test_a_folder_is_shipped_and_has_all_kernels(tmp_path, monkeypatch):
    """Nothing compiles where it is used. For a processor without vectors of more than 16 bytes it gives the same bits."""
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
    made = fn.compile_kernels("nDCG@10", scores="float32", folder=tmp_path / "made")
    assert made.n_kernels > 9 and made.n_bytes > 100_000 and made.seconds > 0
    shipped = shutil.copytree(made.environment["NUMBA_CACHE_DIR"], tmp_path / "shipped")
    before = sorted(shipped.rglob("*"))
    for path in [shipped, *before]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    found = made.environment | {"NUMBA_CACHE_DIR": str(shipped), "HOME": "/nonexistent"}
    told, digest = printed(USE, FASTNDCG_KERNELS="compiled", flags=["-W", "error"], **found).split()
    assert told == "[]"
    assert sorted(shipped.rglob("*")) == before
    assert printed(USE, FASTNDCG_KERNELS="plain").split() == ["[]", digest]
    for path in [shipped, *before]:
        path.chmod(0o755)
