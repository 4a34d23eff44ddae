"""The choice of plain or compiled kernels: one rule of sizes, the same bits either way, nothing compiled twice."""

import subprocess
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import printed, started

import fastndcg as fn
from fastndcg import __main__
from fastndcg.errors import InputError
from fastndcg.kernels.compile import dispatch, kernel_cache

compiles = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

# small calls of many kinds, and whether they imported Numba
SMALL = """
import hashlib, sys
import numpy as np
import fastndcg as fn
found, random = hashlib.sha256(), np.random.default_rng(5)
assert abs(fn.ndcg([[0, 2, 1, 0]], [[0.5, 0.4, 0.3, 0.1]])[0] - 0.6697) < 1e-4
for dtype in (np.float32, np.float64, np.int64):
    for length in (1, 9, 40, 300):
        grades, scores = random.integers(0, 4, (3, length)), random.integers(0, 60, (3, length)).astype(dtype)
        rankings = fn.Rankings.from_dense(grades, scores)
        measures = ["nDCG@10", "nDCG(ties='worst')", "AP", "RR@10", "P@5", "ERR@10", "nDCG(ideal='returned', ties='input')@3"]
        found.update(fn.evaluate(rankings, measures).values.tobytes())
ids = random.integers(0, 5, 90)
shuffled = fn.Rankings.from_query_ids(ids, ids % 3, random.random(90))
found.update(fn.evaluate(shuffled, "nDCG").values.tobytes())
print("numba" in sys.modules, found.hexdigest())
"""


def run(code, *arguments, **environment):
    return printed(code, *arguments, without=("FASTNDCG_KERNELS", "NUMBA_DISABLE_JIT"), **environment).split()


@pytest.mark.compiled
@compiles
def test_small_calls_import_no_compiler_and_bits_are_the_same(tmp_path):
    is_imported, digest = run(SMALL, NUMBA_CACHE_DIR=str(tmp_path))
    assert is_imported == "False" and not list(tmp_path.rglob("*.nbc"))
    for setting in ("plain", "compiled"):
        assert run(SMALL, FASTNDCG_KERNELS=setting)[1] == digest


@pytest.mark.parametrize(
    ("job", "earlier", "if_kept", "if_not"),
    [
        (0.0, 0.0, "plain", "plain"),
        (0.14, 0.0, "plain", "plain"),
        (0.14, 0.85, "plain", "plain"),
        (0.14, 0.87, "load", "compile"),
        (0.16, 0.0, "load", "plain"),
        (0.9, 0.0, "load", "plain"),
        (0.9, 0.2, "load", "compile"),
        (1.1, 0.0, "load", "compile"),
        (np.inf, 0.0, "load", "compile"),
    ],
)
def test_the_rule(job, earlier, if_kept, if_not):
    assert dispatch.choose(job, earlier + job, lambda: True) == if_kept
    assert dispatch.choose(job, earlier + job, lambda: False) == if_not


@pytest.fixture
def chosen(monkeypatch):
    """What calls of `driver` choose in a fresh process: nothing is kept, and what loads or compiles is noted."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.setenv("FASTNDCG_KERNELS", "auto")
    monkeypatch.setattr(dispatch, "_loaded", {})
    monkeypatch.setattr(kernel_cache, "is_kept", lambda key: False)
    found = []

    def load(kernel, arguments, *, may_compile):
        found[-1] = "compiled" if may_compile else "loaded"
        return dispatch._loaded.setdefault(kernel, len)

    monkeypatch.setattr(dispatch, "_load", load)

    def driver(seconds, job=0.0, arguments=(1,)):
        found.append("plain")
        rate = dispatch.SECONDS["rows"]
        ready = dispatch.compiled_driver("reading.rows.place_by_code", seconds / rate, arguments, job / rate)
        assert (ready is None) == (found[-1] == "plain" and len(dispatch._loaded) == 0)
        return found[-1]

    dispatch.forget()
    yield driver
    dispatch.forget()


def test_calls_of_a_process_add_up(chosen):
    """Small calls too, of each kind of arguments by itself; what is loaded is used for calls of any size."""
    assert [chosen(0.1) for _ in range(10)] == ["plain"] * 10
    assert chosen(0.1, arguments=(1.5,)) == "plain"
    assert dispatch.seconds_without_kept_kernels() == 0  # none of them would have loaded a kernel
    assert [chosen(0.1), chosen(0.0), len(dispatch._loaded)] == ["compiled", "plain", 1]


def test_parts_of_a_job_are_chosen_for_as_the_job(chosen, monkeypatch):
    """From the first part on, or never: not in its last parts, though these add up."""
    assert [chosen(0.3, job=0.9) for _ in range(3)] == ["plain"] * 3
    assert dispatch.seconds_without_kept_kernels() == pytest.approx(0.9)
    dispatch.forget()
    with dispatch.part_of(900, 300):
        assert [chosen(0.3) for _ in range(3)] == ["plain"] * 3
    with dispatch.part_of(0, 300), dispatch.part_of(300, 0):
        assert chosen(0.01) == "plain"
    dispatch.forget()
    monkeypatch.setattr(kernel_cache, "is_kept", lambda key: True)
    with dispatch.part_of(3e6, 1e6):
        assert chosen(0.06) == "loaded"


def test_streams_and_rankings_choose_alike(chosen, monkeypatch, tmp_path):
    """A stream counts as all of its rows, in whatever parts it is read."""
    jobs = []
    monkeypatch.setattr(dispatch, "choose", lambda job, together, is_kept: jobs.append(job) or "plain")
    rows = np.arange(40_000)
    table = pa.table({"qid": rows // 10, "label": rows % 3, "score": rows % 7})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5000)
    values = fn.evaluate(fn.read_parquet(tmp_path / "a.parquet"), "nDCG@10").values
    (whole,) = jobs
    stream = fn.scan_parquet(tmp_path / "a.parquet", memory="1 MB")
    assert fn.evaluate(stream, "nDCG@10").values.tobytes() == values.tobytes()
    assert len(jobs) > 2
    assert jobs == pytest.approx([whole] * len(jobs), rel=0.05)


def test_the_setting(monkeypatch):
    assert dispatch.SECONDS.keys() <= {path.stem for path in Path(fn.__file__).parent.glob("kernels/*/*.py")}
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    for asked, expected in (("", "auto"), ("auto", "auto"), ("plain", "plain"), ("compiled", "compiled")):
        monkeypatch.setenv("FASTNDCG_KERNELS", asked)
        assert dispatch.mode() == expected
    monkeypatch.setenv("FASTNDCG_KERNELS", "fast")
    with pytest.raises(InputError, match="FASTNDCG_KERNELS='fast'; expected one of auto, plain, compiled"):
        dispatch.mode()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert dispatch.mode() == "plain"


def test_the_command_line_proposes_to_compile_once(chosen, capsys):
    chosen(0.4)
    __main__._propose_compiling()
    assert not capsys.readouterr().err
    chosen(0.4)
    __main__._propose_compiling()
    assert capsys.readouterr().err.splitlines() == [
        "About 0.8 s of this run went to kernels that are not compiled: run `fastndcg compile` once."
    ]


# a job that takes so many seconds in the plain way, and another of the same kernel for other types
JOB = """
import sys
import numpy as np
from fastndcg.common import progress
from fastndcg.kernels.compile import dispatch
told = []
progress.tell = told.append
kind, *jobs = sys.argv[1:]
for seconds in jobs:
    dispatch.SECONDS["rows"] = float(seconds) / 9
    dispatch.run("reading.rows.rows_by_code", 9, np.arange(9).astype(kind), 9)
print("compiled" if told else "loaded" if dispatch._loaded else "plain", "numba" in sys.modules)
"""


@pytest.mark.compiled
@compiles
def test_runs_of_a_job_are_alike_in_any_home(tmp_path):
    """What is not compiled in the first run is not compiled in a later one; what is kept is found."""
    for home in ("one", "other"):
        kept = {"NUMBA_CACHE_DIR": str(tmp_path / home)}
        assert [run(JOB, "int64", 0.9, **kept) for _ in range(4)] == [["plain", "False"]] * 4
        assert [run(JOB, "int64", 1.1, **kept)[0] for _ in range(2)] == ["compiled", "loaded"]
    assert run(JOB, "int64", 0.9, **kept) == ["loaded", "True"]
    assert run(JOB, "int64", 0.1, 0.1, **kept) == ["plain", "False"]
    assert run(JOB, "int32", 0.9, **kept) == ["plain", "False"]  # of another type nothing is kept
    assert run(JOB, "int32", 0.6, 0.6, **kept)[0] == "compiled"


@pytest.mark.compiled
@compiles
def test_a_kernel_of_another_processor_is_not_loaded(tmp_path):
    kept = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(JOB, "int64", 2, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="", **kept)[0] == "compiled"
    assert run(JOB, "int64", 0.5, **kept)[0] == "plain"
    assert run(JOB, "int64", 2, **kept)[0] == "compiled"
    assert run(JOB, "int64", 0.5, **kept)[0] == "loaded"


@pytest.mark.compiled
@compiles
def test_processes_at_once_compile_each_kernel_once_and_keep_all(tmp_path):
    """Kernels of one index, in different orders; each process locks what it compiles, and no more."""
    code = """
        import sys
        import numpy as np
        from fastndcg.common import progress
        from fastndcg.kernels.compile import dispatch
        told = []
        progress.tell = told.append
        for kind in sys.argv[1:]:
            dispatch.run("reading.rows.rows_by_code", 9, np.arange(9).astype(kind), 9)
        print(sum(line.startswith("compiling") for line in told))
    """
    kinds = ["int8", "int16", "int32"]
    environment = {"FASTNDCG_KERNELS": "compiled", "NUMBA_CACHE_DIR": str(tmp_path)}
    running = [started(code, *np.roll(kinds, turn), **environment) for turn in (0, 1)]
    assert sum(int(each.communicate(timeout=300)[0]) for each in running) == 3
    assert printed(code, *kinds, **environment) == "0\n"
    assert len(list(tmp_path.rglob("*rows_by_code*.nbc"))) == 3


@pytest.mark.compiled
def test_a_lock_is_waited_for_while_its_holder_lives(monkeypatch, tmp_path):
    """The lock's file stays, the lock does not; what is not finished is not kept."""
    code = "from fastndcg.kernels.compile import kernel_cache\nwith kernel_cache.alone('b') as lock:\n    print('held', flush=True)\n    {then}"

    def start(then):
        return started(code.format(then=then), NUMBA_CACHE_DIR=str(tmp_path))

    told = "from fastndcg.common import progress; progress.tell = print\n"

    with start("import time; time.sleep(300)") as holder:
        try:
            assert holder.stdout.readline() == "held\n"
            monkeypatch.setattr(kernel_cache, "folder", lambda: next(tmp_path.rglob("b.lock")).parent)
            with started(
                told + code.format(then="kernel_cache.note_kept(lock)"), NUMBA_CACHE_DIR=str(tmp_path)
            ) as waiting:
                with pytest.raises(subprocess.TimeoutExpired):
                    waiting.wait(timeout=2.5)
                assert not kernel_cache.is_kept("b")
                holder.kill()
                lines = waiting.communicate(timeout=60)[0].splitlines()
                assert lines == ["waiting for another process, which compiles kernels", "held"]
        finally:
            holder.kill()
    assert kernel_cache.is_kept("b")


@pytest.mark.compiled
@compiles
@pytest.mark.parametrize("first", [0, 1])
def test_what_a_plain_driver_hands_to_a_compiled_one_is_the_same(monkeypatch, first):
    """Digests of ids differed once, and joins found nothing."""
    random = np.random.default_rng(3)
    names = [f"{'d' * (number % 19)}{number}" for number in random.permutation(2000)]
    pair = pa.table({"query_id": [len(name) for name in names], "doc_id": names, "relevance": range(2000)})
    run = pair.take(random.permutation(2000)).rename_columns(["query_id", "doc_id", "score"])

    def answers():
        joined = fn.Rankings.from_qrels_run(pair, run, ties="docid_asc")
        shuffled = fn.Rankings.from_query_ids(names * 2, [1, 0] * 2000, np.arange(4000) / 7)
        return [fn.evaluate(each, ["nDCG@10", "AP"]).values.tobytes() for each in (joined, shuffled)]

    monkeypatch.setenv("FASTNDCG_KERNELS", "plain")
    expected, calls = answers(), []
    monkeypatch.setenv("FASTNDCG_KERNELS", "compiled")
    find = dispatch.compiled_driver

    def in_turns(name, *arguments, **job):
        calls.append(name)
        return find(name, *arguments, **job) if calls.count(name) % 2 == first else None

    monkeypatch.setattr(dispatch, "compiled_driver", in_turns)
    assert [answers(), answers()] == [expected, expected]
