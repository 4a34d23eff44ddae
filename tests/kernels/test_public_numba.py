"""With a version of Numba that is not known, or that lacks a private part, everything works: `public_numba` makes this one such."""

import sys
from pathlib import Path

import numba
import pytest
from commands import printed
from fastndcg.compiled.compile import jit

HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled"),
]

# short lists and long ones, with ties and without, one thread and two; rows in any order
VALUES = """
import hashlib
import numpy as np
import fastndcg as fn
from fastndcg.compiled.compile import jit
random = np.random.default_rng(3)
lengths = np.append(random.integers(0, 300, 2000), [700, 20000])
grades = random.integers(0, 4, lengths.sum()).astype(np.uint8)
scores = random.integers(0, 400, lengths.sum()).astype(np.float32)
scores[: len(scores) // 2] += random.random(len(scores) // 2, np.float32)
rankings = fn.Rankings.from_groups(lengths, grades, scores)
measures = ["nDCG@10", "nDCG", "nDCG(gain='exp2', ties='worst')@40"]
one, two = (fn.evaluate(rankings, measures, threads=threads).values for threads in (1, 2))
assert one.tobytes() == two.tobytes()
shuffled = random.permutation(3000)
ids = np.repeat(np.arange(30), 100)[shuffled]
again = fn.evaluate(fn.Rankings.from_query_ids(ids, grades[:3000], scores[:3000]), "nDCG@10", threads=1).values
print(jit.private is None, hashlib.sha256(one.tobytes() + again.tobytes()).hexdigest())
"""


def run(code, **environment):
    return printed(code, timeout=900, NUMBA_NUM_THREADS="2", **environment)


@pytest.mark.slow
def test_the_same_bits_without_private_parts(tmp_path):
    """What was compiled so is kept, and found by the next process."""
    found = run("import public_numba" + VALUES, NUMBA_CACHE_DIR=str(tmp_path)).split()
    assert [found[0], *run(VALUES).split()[1:]] == ["True", found[1]]
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}
    assert kept
    assert run("import public_numba" + VALUES, NUMBA_CACHE_DIR=str(tmp_path)).split() == found
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")} == kept


@pytest.mark.slow
def test_blocks_of_vectors_without_private_parts(tmp_path):
    """Tests of the kernels themselves, run so."""
    chosen = ["-k", "bound_of_top or rank_tied", str(HERE / "test_kernels.py")]
    words = ["-q", "-n", "0", "-p", "public_numba", "-p", "no:cacheprovider", *chosen]
    run(f"import pytest, sys\nsys.exit(pytest.main({words}))", NUMBA_CACHE_DIR=str(tmp_path))


@pytest.mark.skipif(not jit.KNOWN, reason="this version is not known")
def test_a_known_version_that_lacks_a_name():
    code = "from fastndcg.compiled.compile import jit\nprint(jit.private is None)"
    assert run(code) == "False\n"
    assert run("import public_numba\n" + code) == "True\n"
    lacking = "import numba.core.codegen\ndel numba.core.codegen.JITCodeLibrary\n"
    assert run(lacking + code) == "True\n"


def test_the_tests_run_with_private_parts():
    """To import that module here, as collecting it did, hides them from all tests after it."""
    assert "public_numba" not in sys.modules
    assert (jit.private is not None) == jit.KNOWN
