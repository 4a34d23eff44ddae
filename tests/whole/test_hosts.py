"""Nothing takes its host down: threading layers, Python threads, forks, pools, interrupts.

Each case is a process of its own with a time limit, so that an abort or a deadlock fails its test and nothing
else.
"""

import importlib.util
import sysconfig
import textwrap
from pathlib import Path

import engines
import pytest
from commands import printed

pytestmark = [pytest.mark.compiled, pytest.mark.host]

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


def run(code, layer="omp", **environment):
    """Run a program in a process of its own; what it prints."""
    if layer == "tbb":
        if importlib.util.find_spec("tbb") is None and not (LIBRARIES / "libtbb.so.12").exists():
            engines.missing("tbb is not installed: pip install -e '.[engines]'")
        environment["LD_LIBRARY_PATH"] = str(LIBRARIES)
    return printed(
        PRELUDE + textwrap.dedent(code), timeout=TIMEOUT, NUMBA_THREADING_LAYER=layer, **environment
    )


SETTLED = """
DATA = rankings()
WANTED = value(threads=1)
"""


PROGRAMS = {  # with which layers, and the program
    "many threads beside a parallel kernel of the host": (LAYERS, SETTLED + """
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
assert numba.threading_layer() == os.environ["NUMBA_THREADING_LAYER"] and not wrong, wrong
"""),
    "forks in any order": (LAYERS, SETTLED + """
same = lambda: value() == WANTED

def with_a_child():
    ended(in_child(same))
    return same()

ended(in_child(same))  # nothing parallel ran before
assert same()
ended(in_child(same), in_child(same), in_child(with_a_child))  # the parent ran a parallel kernel
assert same()
"""),
    "fork of a host that ran kernels before the package was imported": (LAYERS, """
add_up = host_kernel()
add_up(np.ones(1000))
assert "fastndcg" not in sys.modules
def work():
    global DATA
    DATA = rankings()
    return value() == value(threads=1)
ended(in_child(work), in_child(work))
"""),
    "fork while another thread compiles": (["workqueue"], SETTLED + """
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
"""),
    "fork while another thread scores": (["omp"], SETTLED + """
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
"""),
    "settings stay as they were": (LAYERS, SETTLED + """
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
"""),
    "one thread starts none, as in workers of engines": (["omp"], SETTLED + """
import numba.np.ufunc.parallel as parallel
assert not parallel._is_initialized
assert threading.active_count() == 1
"""),
    "a layer that cannot be loaded": (["nonsense"], SETTLED + """
assert value() == value(None) == WANTED
"""),
    "no thread can be started": (["workqueue"], SETTLED + """
def refuse(self):
    raise RuntimeError("can't start new thread")
sys._current_frames = lambda: {1: None, 2: None}
threading.Thread.start = refuse
assert value() == WANTED
"""),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "layer"), [(name, layer) for name, (layers, _) in PROGRAMS.items() for layer in layers]
)
def test_the_host_stays_up(name, layer):
    run(PROGRAMS[name][1], layer)


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
def test_multiprocessing(tmp_path, start, layer):
    program = f"""{PRELUDE}{POOLS}
    import multiprocessing
    context = multiprocessing.get_context({start!r})
    with context.Pool(2) as pool:
        assert pool.map(work, [None, 1, 2, 2]) == [wanted] * 4
    assert value() == wanted
"""
    _run_file(tmp_path, program, layer)


def _run_file(folder, program, layer):
    (folder / "program.py").write_text(program)
    printed(folder / "program.py", timeout=TIMEOUT, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2")


def test_a_cached_kernel_is_loaded_alone(tmp_path):
    """Without what only compiling needs, which the process still gets when it compiles something."""
    program = """
        import fastndcg as fn
        from fastndcg.compiled.compile import jit
        from fastndcg.compiled import rows
        known = [name for name in ("numba.np.linalg", "numba.typed.typeddict") if name in sys.modules]
        shuffled = fn.Rankings.from_query_ids([7, 3, 7], [1, 2, 0], [0.5, 0.1, 0.9])
        assert shuffled.relevance.tolist() == [1, 0, 2]
        loaded = [name for name in ("numba.np.linalg", "numba.typed.typeddict") if name in sys.modules]
        hits = sum(rows.place_by_code.stats.cache_hits.values())
        import numba
        @numba.njit
        def doubled(values):
            return {0: np.sort(values) * 2}[0]
        assert doubled(np.array([2.0, 1.0])).tolist() == [2.0, 4.0]
        assert rows.rows_by_code(np.array([1, 0, 1]), 2)[1].tolist() == [1, 0, 2]
        print(hits, loaded == known or not jit.KNOWN)
    """
    cache = str(tmp_path)
    assert run(program, NUMBA_CACHE_DIR=cache).split()[0] == "0"
    assert run(program, NUMBA_CACHE_DIR=cache).split() == ["1", "True"]


def test_an_interrupt_while_numba_registers_its_functions(tmp_path):
    """Numba takes each from a list as it registers it; those that were left were lost, and nothing compiled after that."""
    program = """
        import _thread, time
        import fastndcg as fn
        from numba.core.typing.templates import RegistryLoader
        whole, done = RegistryLoader.new_registrations, []
        def interrupted(loader, kind):
            for place, registration in enumerate(whole(loader, kind)):
                if kind == "attributes" and place == 3 and not done:
                    done.append(kind)
                    _thread.interrupt_main()
                    time.sleep(0.01)
                yield registration
        RegistryLoader.new_registrations = interrupted
        for turn in range(2):
            try:
                print(fn.Rankings.from_query_ids([7, 3, 7], [1, 2, 0], [0.5, 0.1, 0.9]).relevance.tolist())
            except KeyboardInterrupt:
                print(done)
    """
    assert run(program, NUMBA_CACHE_DIR=str(tmp_path)) == "['attributes']\n[1, 0, 2]\n"


@pytest.mark.parametrize("name", ["_object_compiled_hook", "LLVMPY_AddModule"])
def test_an_interrupt_during_a_call_of_llvm(name, tmp_path):
    """It arrives after the call, or where LLVM calls Python. There the code was lost, and modules were freed twice."""
    program = """
        import gc, signal
        from llvmlite.binding import ffi
        from numba.core.codegen import JITCodeLibrary
        import fastndcg as fn

        name, done = os.environ["NAME"], []
        is_hook = hasattr(JITCodeLibrary, name)
        called = getattr(JITCodeLibrary, name) if is_hook else getattr(ffi.lib, name)
        def interrupted(*arguments):
            module = arguments[1]  # after the class, the engine or the module that it is linked into
            wanted = not done and "codes_by_first_appearance" in module.name
            result = called(*arguments[is_hook:])
            if wanted:
                done.append(1)
                signal.raise_signal(signal.SIGINT)
            return result
        setattr(JITCodeLibrary, name, classmethod(interrupted)) if is_hook else ffi.lib._fntab.update({name: interrupted})
        try:
            fn.Rankings.from_query_ids([7, 3, 7], [1, 2, 0], [0.5, 0.1, 0.9])
        except KeyboardInterrupt:
            from fastndcg.kernels.compile import kernel_cache
            print(any(kernel_cache.folder().rglob("*.codes_by_first_appearance-*.nbi")))
        gc.collect()
        print(fn.Rankings.from_query_ids([7, 3, 7], [1, 2, 0], [0.5, 0.1, 0.9]).relevance.tolist())
    """
    assert run(program, NUMBA_CACHE_DIR=str(tmp_path), NAME=name) == "True\n[1, 0, 2]\n"


def test_a_block_is_refused_where_it_is_called_from_python():
    """Only drivers have it as machine code."""
    program = """
        from fastndcg.compiled import real_grades
        try:
            real_grades.place_of(1.0, np.zeros(3))
        except TypeError:
            print("refused")
    """
    assert run(program).split() == ["refused"]
