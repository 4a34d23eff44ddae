"""No kernel reads or writes past an array: all that they do, in child processes where that is a fault, and to
the same bits.

Each function of WORK yields bytes that it came to. As a program this prints a digest of them, with the guards
that are named.
"""

import hashlib
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import guarded
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import program

import fastndcg as fn

pytestmark = pytest.mark.compiled

Array = npt.NDArray[Any]

# lists whose lengths are where kernels begin to do something else
FEW = (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65)
MANY = (*FEW, 100, 127, 128, 129, 160, 161, 200, 255, 256, 257, 300, 1023, 1024, 1025, 2000, 8191, 8192, 8193)
LINEAR = (
    "nDCG@10", "nDCG", "nDCG@17, 33", "nDCG(ties='worst')@32", "nDCG(ties='input')@5", "nDCG(gain='exp2', ideal='full')@40",
    "nDCG(ideal='returned', ties='best')@8", "nDCG(rel=2, ideal='scored')@3", "DCG(judged_only=True)@16", "DCG(unjudged=1)@7",
    "IDCG", "CG@1", "P@5", "R@1000", "Rprec", "F@9", "RBP", "NumRet@7", "NumRel", "Judged@10", "SetAP",
)  # fmt: skip
NOT_LINEAR = (
    "AP", "AUC", "AUC@16", "AUC(pairs='graded')", "AUC(max_fp=0.3)@33", "AP@16", "RR", "Success@3", "ERR@20", "Bpref", "infAP", "IPrec@0.5", "AP(ties='input', rel=2)@33",
    "ERR(judged_only=True)", "RBPresidual@10", "SDCG(max_rel=4)@10",
)  # fmt: skip


# ---- work ----


def rankings_of(lengths, kind, *, fractions, pool, seed=0):
    random = np.random.default_rng(seed)
    size = int(lengths.sum())
    grades = random.choice([0, 0, 0, 1, 2, 4], size).astype(np.uint8)
    relevance = grades / 4 if fractions else grades
    spread = np.repeat(np.where(np.arange(len(lengths)) % 3, 5 * lengths, lengths // 4 + 1), lengths)
    scores = (random.random(size) * spread).astype(np.int64).astype(kind)
    columns = {}
    if pool:
        columns["is_judged"] = random.random(size) < 0.8
        more = random.integers(0, 6, len(lengths))
        judged = [random.choice(relevance, n) if size else np.zeros(n) for n in more]
        rows = np.split(np.arange(size), np.cumsum(lengths)[:-1])
        pools = [
            np.append(relevance[own][columns["is_judged"][own]], extra)
            for own, extra in zip(rows, judged, strict=True)
        ]
        ends = np.cumsum([len(one) for one in pools])
        columns["judged"] = (np.append(0, ends), np.concatenate(pools).astype(relevance.dtype))
    return fn.Rankings.from_groups(lengths, relevance, scores, **columns)


def evaluations(lengths=MANY, kinds=("f4", "f8", "i8")):
    """Every measure in company, on one thread and on two, and some without the others. Other tests compile the same kernels."""
    for kind in kinds:
        together = (*LINEAR, *NOT_LINEAR) if kind == "f4" else LINEAR
        for fractions in (False, True):
            for pool in (False, True):
                some = np.random.default_rng(len(lengths)).permutation(lengths)
                rankings = rankings_of(some, kind, fractions=fractions, pool=pool)
                for asked, threads in (
                    (together, 2),
                    (together, 1),
                    (LINEAR, 1),
                    (LINEAR[:1], 1),
                    (together[-6:], 1),
                ):
                    yield fn.evaluate(rankings, asked, threads=threads).values.tobytes()


def few_evaluations():
    yield from evaluations(FEW, ("f4",))


def fewest_evaluations():
    """Of which one driver is compiled."""
    rankings = rankings_of(np.array(FEW), "f4", fractions=False, pool=True)
    yield fn.evaluate(rankings, (*LINEAR, *NOT_LINEAR), threads=1).values.tobytes()


def returned_and_intents(queries=40):
    """Expectations over what was returned, and measures of several intents."""
    random = np.random.default_rng(2)
    lengths = random.integers(0, 12, queries)
    size = int(lengths.sum())
    rankings = fn.Rankings.from_groups(lengths, random.integers(0, 3, size), random.integers(0, 4, size))
    yield fn.evaluate(
        rankings, ["nDCG(ideal='returned', ties='input')@3", "IDCG(ideal='returned', ties='worst')@5"]
    ).values.tobytes()
    grades = random.choice([0, 0, 1, 2], (size, 3))
    rankings = fn.Rankings.from_groups(
        lengths, grades.max(axis=1), random.integers(0, 9, size), intents=grades
    )
    measures = ["alpha_nDCG@5", "alpha_DCG@3", "ERR_IA@4", "nERR_IA", "nDCG_IA@5", "StRecall@2"]
    for ties in ("average", "input"):
        asked = [fn.parse(measure)(ties=ties) for measure in measures]
        yield fn.evaluate(rankings, asked).values.tobytes()


def orders(turns=24):
    """Rows of queries in any order, by numbers near and far and by texts of every length, whole and as a stream."""
    random = np.random.default_rng(3)
    names = pa.array(["", "é", *(letter * n for n in (1, 7, 8, 9, 16, 63, 64, 65, 300) for letter in "ab")])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "a.parquet"))
        for turn in range(turns):
            n = int(random.integers(1, 900))
            codes = random.integers(0, len(names), n)
            ids = (names.take(pa.array(codes)), codes, codes.astype(np.int64) << 40, codes - 7)[turn % 4]
            table = pa.table({"qid": ids, "label": random.integers(0, 5, n), "score": random.random(n)})
            pq.write_table(table, path, use_dictionary=bool(turn & 4), row_group_size=300)
            read = fn.read_parquet(path)
            yield read.offsets.tobytes() + read.relevance.tobytes() + read.scores.tobytes()
            yield fn.evaluate(fn.scan_parquet(path, memory="1 MB"), "nDCG@5").values.tobytes()


WORK = {
    work.__name__: work
    for work in (fewest_evaluations, few_evaluations, evaluations, returned_and_intents, orders)
}


@cache
def digest_of(work):
    digest = hashlib.sha256()
    for part in WORK[work]():
        digest.update(part)
    return digest.hexdigest()


# ---- tests ----


def in_a_child(how, *work, **environment):
    """Digests of the work, done by a process with guards."""
    done = program(Path(__file__), how, *work, timeout=600, **environment)
    assert done.returncode == 0, (
        f"{how}: exit {done.returncode} in the work after {done.stdout}\n{done.stderr[-6000:]}"
    )
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.parametrize("side", guarded.SIDES)
@pytest.mark.slow
def test_nothing_is_read_or_written_past_an_array(side):
    work = ("evaluations", "returned_and_intents", "orders")
    assert in_a_child(side, *work) == {name: digest_of(name) for name in work}


@pytest.mark.slow
def test_no_index_is_below_0():
    """Without compiling, where NumPy itself refuses those that are too large."""
    work = ("few_evaluations", "returned_and_intents")
    assert in_a_child("index", *work, NUMBA_DISABLE_JIT="1") == {name: digest_of(name) for name in work}


@pytest.mark.slow
def test_indices_are_within_bounds_as_compiled(tmp_path):
    compiled = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    work = "fewest_evaluations"
    assert in_a_child("bounds", work, **compiled) == {work: digest_of(work)}


@pytest.mark.parametrize("side", guarded.SIDES)
@pytest.mark.parametrize("memory", ["given", "its own"])
def test_a_read_past_an_array_is_a_fault(side, memory):
    """The guards themselves."""
    code = f"""
        import guarded, numpy as np
        guarded.install({side!r})
        from fastndcg.compiled.compile.jit import allocating, driver, empty
        from fastndcg.compiled.compile.llvm import Code, Data, Value
        from fastndcg.compiled.compile.decorators import vectors
        def plain_element(array: "Any", at: "Any") -> "Any":
            return array[at]
        @vectors(plain_element, within=True)
        def element(code: Code, array: Data, at: Value) -> Value:
            return array[at]
        @allocating
        def made(n):
            return empty(n, np.int64)
        @driver()
        def look(given, n, at):
            return element(given, at) if n == 0 else element(made(n), at)
        n = {5 * (memory == "its own")}
        for at in (0, 4, {5 if side == "after" else -1}):
            print(look(np.arange(5), n, at), flush=True)
    """
    done = program(code)
    assert done.returncode == -11 and len(done.stdout.split()) == 2, done.stderr
    assert "Segmentation fault" in done.stderr


if __name__ == "__main__":
    guarded.install(sys.argv[1])
    for name in sys.argv[2:]:
        sys.stdout.write(f"{name} {digest_of(name)}\n")
        sys.stdout.flush()
