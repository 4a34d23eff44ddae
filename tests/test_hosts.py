"""Nothing takes its host down: threading layers, Python threads, forks, pools of processes, folders that cannot be written.

Each case is a process of its own with a time limit, so that an abort or a deadlock fails its test and nothing else.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import engines
import pytest

import fastndcg

ROOT = Path(fastndcg.__file__).parent.parent
LIBRARIES = (
    Path(sysconfig.get_path("data")) / "lib"
)  # where the package tbb puts a library that no loader looks for
LAYERS = ["workqueue", "omp", "tbb"]
TIMEOUT = 180  # seconds; a case takes three, and ten times that where kernels are compiled first

# a host with a parallel kernel of its own, and rankings that are worth two threads
PRELUDE = """
import os, sys, threading, time
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
import numpy as np

def host_kernel():
    import numba
    @numba.njit(parallel=True, nogil=True)
    def add_up(values):
        total = 0.0
        for i in numba.prange(len(values)):
            total += values[i]
        return total
    return add_up

def rankings():
    import fastndcg as fn
    rng = np.random.default_rng(0)
    lengths = np.full(3000, 50)
    return fn.Rankings.from_groups(lengths, rng.integers(0, 5, 150_000), rng.integers(0, 20, 150_000) / 4)

def value(threads=2):
    import fastndcg as fn
    scores = fn.evaluate(DATA, ["nDCG@10", "nDCG(gain='exp2', ties='worst')"], threads=threads)
    return scores.values.tobytes()

def in_child(work):
    child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 3)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(4)
    return child

def ended(*children):
    codes = [os.waitpid(child, 0)[1] for child in children]
    assert not any(codes), codes
"""


def run(code: str, layer: str = "omp", **environment: str) -> str:
    """Run a program in a process of its own; what it prints."""
    if layer == "tbb":
        if importlib.util.find_spec("tbb") is None and not (LIBRARIES / "libtbb.so.12").exists():
            engines.missing("tbb is not installed: pip install -e '.[engines]'")
        environment["LD_LIBRARY_PATH"] = str(LIBRARIES)
    program = PRELUDE + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_THREADING_LAYER": layer, **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


SETTLED = """
DATA = rankings()
WANTED = value(threads=1)
"""


@pytest.mark.parametrize("layer", LAYERS)
def test_many_threads_beside_a_parallel_kernel_of_the_host(layer: str) -> None:
    out = run(
        SETTLED
        + """
import numba
add_up, ones = host_kernel(), np.ones(1_000_000)
add_up(ones)
done, wrong = threading.Event(), []

def host():
    while not done.is_set():
        add_up(ones)

def ours():
    for _ in range(15):
        if value() != WANTED:
            wrong.append(1)

beside = [] if numba.threading_layer() == "workqueue" else [threading.Thread(target=host)]
threads = [threading.Thread(target=ours) for _ in range(4)]
for thread in [*beside, *threads]:
    thread.start()
for thread in threads:
    thread.join()
done.set()
# one thread of the host's beside one call of ours is what workqueue would not survive if both ran on its threads
for _ in range(15):
    thread = threading.Thread(target=lambda: [add_up(ones) for _ in range(10)])
    thread.start()
    if value() != WANTED:
        wrong.append(2)
    thread.join()
print(numba.threading_layer(), wrong)
""",
        layer,
    )
    assert out.split() == [layer, "[]"]


@pytest.mark.parametrize("layer", LAYERS)
def test_forks_in_any_order(layer: str) -> None:
    run(
        SETTLED
        + """
same = lambda: value() == WANTED

def with_a_child():
    ended(in_child(same))
    return same()

ended(in_child(same))  # nothing parallel ran before
assert same()
ended(in_child(same), in_child(same), in_child(with_a_child))  # the parent ran a parallel kernel
assert same()
""",
        layer,
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_fork_of_a_host_that_ran_kernels_before_the_package_was_imported(layer: str) -> None:
    run(
        """
        add_up = host_kernel()
        add_up(np.ones(1000))
        assert "fastndcg" not in sys.modules
        def work():
            global DATA
            DATA = rankings()
            return value() == value(threads=1)
        ended(in_child(work), in_child(work))
        """,
        layer,
    )


def test_fork_while_another_thread_compiles() -> None:
    run(
        SETTLED
        + """
from numba.core.compiler_lock import global_compiler_lock
compiling = threading.Event()

def compile_for_a_while():
    with global_compiler_lock:
        compiling.set()
        time.sleep(1)

thread = threading.Thread(target=compile_for_a_while)
thread.start()
compiling.wait()

def work():
    add_up = host_kernel()  # has to be compiled
    return add_up(np.ones(10)) == 10 and value(threads=1) == WANTED

ended(in_child(work))
thread.join()
assert value() == WANTED
""",
        "workqueue",
    )


def test_fork_while_another_thread_scores() -> None:
    run(
        SETTLED
        + """
done = threading.Event()

def score():
    while not done.is_set():
        value()

value()
thread = threading.Thread(target=score)
thread.start()
for _ in range(5):
    ended(in_child(lambda: value() == WANTED), in_child(lambda: value() == WANTED))
done.set()
thread.join()
"""
    )


POOLS = """
def work(threads):
    global DATA
    DATA = rankings()
    return value(threads)

if __name__ == "__main__":
    DATA = rankings()
    wanted = value(threads=1)
    assert value() == wanted
"""


@pytest.mark.parametrize("layer", ["workqueue", "omp"])
@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
def test_multiprocessing(tmp_path: Path, start: str, layer: str) -> None:
    program = f"""{PRELUDE}{POOLS}
    import multiprocessing
    context = multiprocessing.get_context({start!r})
    with context.Pool(2) as pool:
        assert pool.map(work, [None, 1, 2, 2]) == [wanted] * 4
    assert value() == wanted
"""
    _run_file(tmp_path, program, layer)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib(tmp_path: Path, backend: str) -> None:
    program = f"""{PRELUDE}{POOLS}
    import joblib
    with joblib.parallel_config({backend!r}, n_jobs=2):
        assert joblib.Parallel()(joblib.delayed(work)(threads) for threads in [None, 1, 2, 2]) == [wanted] * 4
    assert value() == wanted
"""
    _run_file(tmp_path, program, "omp")


def _run_file(folder: Path, program: str, layer: str) -> None:
    path = folder / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, str(path)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_a_server_that_forks_its_workers(layer: str) -> None:
    """The parent loads and warms up; workers answer from several threads each, and one is replaced."""
    run(
        SETTLED
        + """
from concurrent.futures import ThreadPoolExecutor
assert value() == WANTED

def serve():
    with ThreadPoolExecutor(3) as pool:
        return all(answer == WANTED for answer in pool.map(value, [2, None, 1, 2, 2, 2]))

workers = [in_child(serve) for _ in range(3)]
ended(workers.pop())
workers.append(in_child(serve))
ended(*workers)
""",
        layer,
    )


def test_a_notebook_s_kernel() -> None:
    """Cells run in a loop of asyncio, in a thread that is not the main one, beside threads that wait for messages."""
    run(
        SETTLED
        + """
import asyncio
stop = threading.Event()
heart = threading.Thread(target=stop.wait, daemon=True)
heart.start()
answers = []

async def cells():
    answers.append(value())
    answers.append(await asyncio.to_thread(value))
    answers.extend(await asyncio.gather(*(asyncio.to_thread(value) for _ in range(4))))

kernel = threading.Thread(target=lambda: asyncio.run(cells()))
kernel.start()
kernel.join()
stop.set()
assert answers == [WANTED] * 6
""",
        "workqueue",
    )


@pytest.mark.parametrize("layer", LAYERS)
def test_settings_stay_as_they_were(layer: str) -> None:
    run(
        SETTLED
        + """
import numba
numba.set_num_threads(1)  # this thread's own choice
before = dict(os.environ), vars(numba.config).copy(), numba.get_num_threads()
for threads in (None, 1, 2, 99):
    assert value(threads) == WANTED
    assert (dict(os.environ), vars(numba.config).copy(), numba.get_num_threads()) == before
seen = []

def elsewhere():
    mask = numba.get_num_threads()
    value(2)
    seen.append(numba.get_num_threads() == mask)

thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
assert seen == [True]
""",
        layer,
    )


def test_one_thread_starts_none() -> None:
    """Workers of engines score on one thread, and need no layer."""
    run(
        SETTLED
        + """
import numba.np.ufunc.parallel as parallel
assert not parallel._is_initialized
assert threading.active_count() == 1
"""
    )


def test_a_layer_that_cannot_be_loaded() -> None:
    run(SETTLED + "assert value() == value(None) == WANTED", "nonsense")


def test_no_thread_can_be_started() -> None:
    run(
        SETTLED
        + """
def refuse(self):
    raise RuntimeError("can't start new thread")
sys._current_frames = lambda: {1: None, 2: None}
threading.Thread.start = refuse
assert value() == WANTED
""",
        "workqueue",
    )


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    """Neither the package's folder nor a home: nothing is cached, and nothing else is wrong."""
    package = tmp_path / "site" / "fastndcg"
    shutil.copytree(ROOT / "fastndcg", package, ignore=shutil.ignore_patterns("__pycache__"))
    # files where folders would have to be: permissions would not stop root
    (package / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    program = f"""
        import warnings
        warnings.simplefilter("error")
        import fastndcg as fn
        from fastndcg import kernels
        assert fn.__file__.startswith({str(tmp_path)!r})
        assert type(kernels.score_levels_serial._cache).__name__ == "NullCache"
        rankings = fn.Rankings.from_lists([[1, 0, 2], [0, 1]], [[0.3, 0.2, 0.1], [0.5, 0.5]])
        assert fn.evaluate(rankings, "CG@2", threads=1).values.tolist() == [[1.0, 1.0]]
    """
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment
        | {"PYTHONPATH": str(package.parent), "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
