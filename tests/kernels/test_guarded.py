"""No kernel reads or writes past an array: tests of values run in child processes where that is a fault."""

import guarded
import pytest
from commands import ROOT, program

pytestmark = pytest.mark.compiled

# all measures of lists whose lengths are where kernels begin to do something else, on one thread and on two; rows in any
# order by ids of every type, whole and as streams; judgments and runs
VALUES = "measures/test_crossed.py", "rankings/test_grouping.py", "sources/test_reader_laws.py"
SHORT = f"{VALUES[0]}::test_short_lists"
CASES = {
    **{side: (VALUES, {}) for side in guarded.SIDES},
    # without compiling, where NumPy itself refuses those that are too large
    "index": ((SHORT, VALUES[1]), {"NUMBA_DISABLE_JIT": "1"}),
    "bounds": ((f"{SHORT}[0]",), {"NUMBA_BOUNDSCHECK": "1"}),
}


@pytest.mark.parametrize("how", CASES)
@pytest.mark.slow
def test_nothing_is_read_or_written_past_an_array(how, tmp_path):
    chosen, environment = CASES[how]
    words = [
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "guarded",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        *(f"tests/{each}" for each in chosen),
    ]
    folder = {"NUMBA_CACHE_DIR": str(tmp_path)} if how == "bounds" else {}
    code = f"import os, pytest, sys; os.chdir({str(ROOT)!r}); sys.exit(pytest.main({words}))"
    done = program(code, timeout=1200, FASTNDCG_GUARD=how, **environment, **folder)
    assert done.returncode == 0, (
        f"{how}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )


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
