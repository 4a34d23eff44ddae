"""Measure cold starts: imports, the first score of a process, compiling, small calls, memory."""

from __future__ import annotations

import math
import tempfile
import timeit
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastndcg as fn
from bench.errors import BenchError, WrongAnswerError
from bench.process import python, whole
from bench.record import Row
from bench.timing import Time, fastest

_AUTO, _COMPILED = {"FASTNDCG_KERNELS": "auto"}, {"FASTNDCG_KERNELS": "compiled"}
# timed inside the process, so that the start of Python, which is the same for all, is not included
_TIMED = """
import json, time
cpu, wall = time.process_time(), time.perf_counter()
{statements}
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""
SCORE = """
import fastndcg as fn
scores = fn.evaluate(fn.Rankings.from_groups([3, 2], [3, 0, 2, 1, 0], [0.9, 0.8, 0.7, 0.2, 0.6]), ["nDCG@2"])
"""
_ONE_LINE = """
import sys
sys.path.insert(0, {folder!r})
import numpy, one_line
assert one_line.twice(numpy.ones(1))[0] == 2
"""
_ANSWER = (3 / (3 + 2 / math.log2(3)), 1 / math.log2(3))  # the values of the two queries of SCORE
_LOOP = """
import fastndcg as fn
for _ in range(1000):
    fn.ndcg([3, 0, 2, 1, 0, 0, 1, 0, 4, 0], [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], k=10)
"""
_LARGE = """
import numpy as np
import fastndcg as fn
n = 2_000_000
rankings = fn.Rankings.from_groups(
    np.full(n // 100, 100), (np.arange(n) % 5).astype(np.uint8), np.arange(n, dtype=np.float32)[::-1].copy()
)
scores = fn.evaluate(rankings, ["nDCG@10"])
"""
_MEMORY = """
import json, re
from bench import samples
import fastndcg as fn

def kilobytes(name):
    return int(re.search(name + r":\\s*(\\d+)", open("/proc/self/status").read())[1])

rankings = {rankings}
for threads in (1, {threads}):
    fn.evaluate(samples.even(50, 100, 0.5), ["nDCG@10"], threads=threads)
fn.evaluate(rankings, ["nDCG@10"], threads={threads})
open("/proc/self/clear_refs", "w").write("5")
before = kilobytes("VmRSS")
scores = fn.evaluate(rankings, ["nDCG@10"], threads={threads})
print(json.dumps([(kilobytes("VmHWM") - before) * 1024 - scores.values.nbytes]))
"""


# make glibc return freed arrays to the system, so that they do not hide what the next call allocates
_RETURNED = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def _time(statements: str, **environment: str) -> Time:
    """Time statements in a fresh process."""
    wall, cpu = python("-c", _TIMED.format(statements=statements), environment=environment)[0]
    return Time(wall, cpu)


def _against(
    name: str,
    subject: str,
    baseline_name: str,
    baseline: str,
    bar: float | None,
    note: str,
    runs: int,
    kernels: Mapping[str, str] = _AUTO,
) -> Row:
    """Time subject and baseline in fresh processes, in turns. `kernels` is the baseline's environment."""
    for statements in (subject, baseline):  # fills the caches of bytecode and kernels
        _time(statements, **_COMPILED)
    turns = [(_time(subject, **_AUTO), _time(baseline, **kernels)) for _ in range(runs)]
    mine, base = (fastest(list(times)) for times in zip(*turns, strict=True))
    return Row("start", name, baseline_name, "s", *mine, *base, ratio=mine.cpu / base.cpu, bar=bar, note=note)


def _whole(runs: int) -> Iterator[Row]:
    """Time whole processes in turns: the first answer on a machine that never compiled a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        _write_small(Path(folder))
        auto = {**_AUTO, "NUMBA_CACHE_DIR": folder}
        small = "import fastndcg as fn; fn.ndcg([3, 0, 2], [0.9, 0.8, 0.7])"
        asked = {
            "import numpy, pyarrow": (["-c", "import numpy, pyarrow"], None),
            "process: import fastndcg": (["-c", "import fastndcg"], 1.0),
            "process: first ndcg of one small query": (["-c", small], 1.25),
            "process: fastndcg score of 10,000 rows": (
                ["-m", "fastndcg", "score", f"{folder}/a.parquet"],
                2.5,
            ),
            "process: fastndcg trec_eval of 100 queries x 100 documents": (
                ["-m", "fastndcg", "trec_eval", f"{folder}/qrels", f"{folder}/run"],
                2.5,
            ),
        }
        times: dict[str, list[Time]] = {name: [] for name in asked}
        for _ in range(runs + 1):
            for name, (arguments, _) in asked.items():
                times[name].append(whole(*arguments, environment=auto))
        base_name, *others = asked
        base = fastest(times[base_name][1:])
        for name in others:
            mine = fastest(times[name][1:])
            yield Row(
                "start", name, base_name, "s", *mine, *base, ratio=mine.cpu / base.cpu, bar=asked[name][1]
            )


def _write_small(folder: Path) -> None:
    random, queries = np.random.default_rng(0), np.repeat(np.arange(100), 100)
    grades, scores = random.integers(0, 3, len(queries)), random.random(len(queries))
    pq.write_table(
        pa.table({"query_id": queries, "relevance": grades, "score": scores}), folder / "a.parquet"
    )
    rows = list(zip(queries, grades, scores, strict=True))
    (folder / "qrels").write_text(
        "".join(f"{query} 0 d{row} {grade}\n" for row, (query, grade, _) in enumerate(rows))
    )
    (folder / "run").write_text(
        "".join(f"{query} Q0 d{row} 1 {score:.6f} me\n" for row, (query, _, score) in enumerate(rows))
    )


def _one_line(runs: int) -> Row:
    """Time how long Numba takes to load a cached function, which no compiled kernel can beat."""
    with tempfile.TemporaryDirectory() as folder:
        code = "import numba\n\n@numba.njit(cache=True)\ndef twice(array):\n    return array * 2\n"
        (Path(folder) / "one_line.py").write_text(code, encoding="utf-8")
        return _against(
            "first call of a cached Numba function of one line",
            _ONE_LINE.format(folder=folder),
            "import numba",
            "import numba",
            None,
            "for comparison: loading SciPy where it is installed is a part of it",
            runs,
        )


def _compile(name: str, statements: str, bar: float | None) -> Row:
    times = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            times.append(_time(statements, **_COMPILED, NUMBA_CACHE_DIR=folder))
    return Row(
        "start", name, "", "s", *fastest(times), bar=bar, note="faster of two runs; importing included"
    )


def _small() -> Row:
    rankings = fn.Rankings.from_offsets(
        [0, 10], [3, 0, 2, 1, 0, 0, 1, 0, 4, 0], [float(9 - i) for i in range(10)]
    )
    call = timeit.Timer(lambda: fn.evaluate(rankings, ["nDCG@10"]))
    call.timeit(100)
    seconds = min(call.repeat(repeat=30, number=50)) / 50 * 1e6
    return Row(
        "start",
        "1 query of 10 documents",
        "",
        "us",
        seconds,
        seconds,
        bar=100,
        note="fastest of 30 times 50 calls",
    )


def _memory(name: str, rankings: str, threads: int) -> Row:
    try:
        code = _MEMORY.format(rankings=rankings, threads=threads)
        (extra,) = python("-c", code, environment=_RETURNED | _COMPILED)[0]
    except BenchError as error:
        return Row("start", name, note=f"not measured: {error}")
    # stored as `cpu`, the value that a row without a baseline compares with its bar
    per_thread = max(0.0, extra / threads / 1e6)
    return Row("start", name, "", "MB/thread", None, per_thread, bar=2)


def rows(*, quick: bool) -> Iterator[Row]:
    runs = 2 if quick else 7
    try:
        check()
    except BenchError as error:
        yield Row("start", "first score", note=f"failed: {error}")
        return
    yield from _whole(runs)
    yield _against(
        "first score of a process, 2 M documents, kernels kept",
        _LARGE,
        "import numpy, pyarrow, numba",
        "import numpy, pyarrow, numba",
        1.25,
        "importing and scoring included",
        runs,
    )
    yield _one_line(runs)
    yield _against(
        "a process of 1,000 calls of one small query",
        _LOOP,
        "the same with kernels that are kept",
        _LOOP,
        2,
        "importing included",
        runs,
        _COMPILED,
    )
    yield _small()
    if not quick:
        yield _compile("compiling for a first score, one thread", SCORE, 8)
        yield _compile("compiling for a first score, all threads", _LARGE, 10)
    large = "samples.even(20_000, 100, 0.5)"
    for threads in (1, 2):
        yield _memory(f"memory beyond input and output, {threads} thread{'s'[: threads - 1]}", large, threads)
    yield _memory("memory, float64 scores and int64 grades", f"samples.double({large})", 1)


def check() -> None:
    """Check the score that is timed."""
    got = fn.evaluate(
        fn.Rankings.from_groups([3, 2], [3, 0, 2, 1, 0], [0.9, 0.8, 0.7, 0.2, 0.6]), "nDCG@2"
    ).values[0]
    for query, wanted in enumerate(_ANSWER):
        if abs(got[query] - wanted) > 1e-12:
            raise WrongAnswerError("nDCG@2", f"query {query}", float(got[query]), wanted)
